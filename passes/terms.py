"""Arithmetic seen through its association: a tensor as a product of factors or a sum of terms, in whatever order it was written."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from torch_mlir import ir

from hipdnn_mlir.dtypes import BF16, F16, F32, F64, DType
from hipdnn_mlir.ir_types import is_tensor, tensor_type, torch_tensor
from hipdnn_mlir.ir_view import defining, literal_scalar

from .canonicalize_torch import constant_bool, constant_int, constant_none

MAX_POWER = 4
_CAST = "torch.aten.to.dtype"
_TORCH_CODES = {F16: 5, F32: 6, F64: 7, BF16: 15}
"""PyTorch's numbers of the float types, which casts name them by."""
_MUL = ("torch.aten.mul.Tensor", "torch.aten.mul.Scalar")
_DIV = ("torch.aten.div.Tensor", "torch.aten.div.Scalar")
_ADD = ("torch.aten.add.Tensor", "torch.aten.add.Scalar")
_SUB = ("torch.aten.sub.Tensor", "torch.aten.sub.Scalar")


@dataclass
class Product:
    """coefficient * factors / divisors; `operations` are the ops that were seen through."""

    coefficient: float = 1.0
    factors: list[Any] = field(default_factory=list)
    divisors: list[Any] = field(default_factory=list)
    operations: list[Any] = field(default_factory=list)


@dataclass
class Sum:
    """constant + terms; `operations` are the ops that were seen through."""

    constant: float = 0.0
    terms: list[Any] = field(default_factory=list)
    operations: list[Any] = field(default_factory=list)


def number(value: Any) -> float | None:
    """The number that a constant of one element is, or None."""
    source = defining(value)
    if source is None:
        return None
    if source.name in ("torch.constant.float", "torch.constant.int"):
        return float(source.attributes["value"].value)
    if source.name == "torch.vtensor.literal" and tensor_type(value.type).dtype.is_float:
        return literal_scalar(source)
    return None


def is_float_tensor(value: Any) -> bool:
    """Whether a value is a tensor of static dims and floats."""
    if not is_tensor(value.type):
        return False
    kind = tensor_type(value.type)
    return kind.is_static and kind.dtype.is_float


def without_casts(value: Any) -> Any:
    """The value in front of casts from floats to floats."""
    while (source := defining(value)) is not None and source.name == _CAST and is_float_tensor(source.operands[0]):
        value = source.operands[0]
    return value


def cast_to(value: Any, dtype: DType) -> Any:
    """The value in another element type, made at the current insertion point where it differs."""
    kind = tensor_type(value.type)
    if kind.dtype is dtype:
        return value
    operands = [
        value,
        constant_int(_TORCH_CODES[dtype]),
        constant_bool(value=False),
        constant_bool(value=False),
        constant_none(),
    ]
    return ir.Operation.create(_CAST, results=[torch_tensor(kind.static_dims(), dtype)], operands=operands).result


def product(value: Any, leaves: Collection[Any] = (), *, casts: bool = False) -> Product:
    """Factors of a value.

    Args:
        value: a float tensor.
        leaves: values that are not taken apart.
        casts: look through casts between floats.
    """
    found = Product()
    _multiply(found, value, leaves, casts=casts, inverse=False)
    return found


def _multiply(found: Product, value: Any, leaves: Collection[Any], *, casts: bool, inverse: bool) -> None:
    constant = number(value)
    if constant is not None and (constant or not inverse):
        found.coefficient *= 1 / constant if inverse else constant
        return
    source: Any = defining(value) if value not in leaves else None
    name = source.name if source is not None else ""
    if name == _CAST and casts and is_float_tensor(source.operands[0]):
        _multiply(found, source.operands[0], leaves, casts=casts, inverse=inverse)
    elif name in _MUL or name in _DIV:
        _multiply(found, source.operands[0], leaves, casts=casts, inverse=inverse)
        _multiply(found, source.operands[1], leaves, casts=casts, inverse=inverse != (name in _DIV))
    elif name == "torch.aten.neg":
        found.coefficient = -found.coefficient
        _multiply(found, source.operands[0], leaves, casts=casts, inverse=inverse)
    elif (power := _power(source)) is not None:
        for _ in range(power):
            _multiply(found, source.operands[0], leaves, casts=casts, inverse=inverse)
    else:
        (found.divisors if inverse else found.factors).append(value)
        return
    if source not in found.operations:
        found.operations.append(source)


def _power(source: Any) -> int | None:
    """The exponent of a small whole power."""
    if source is None:
        return None
    if source.name == "torch.aten.square":
        return 2
    if source.name != "torch.aten.pow.Tensor_Scalar":
        return None
    exponent = number(source.operands[1])
    whole = exponent is not None and exponent in range(1, MAX_POWER + 1)
    return int(exponent) if whole and exponent is not None else None


def total(value: Any) -> Sum:
    """Terms of a value; subtracted tensors are not taken apart."""
    found = Sum()
    _add(found, value)
    return found


def _add(found: Sum, value: Any) -> None:
    constant = number(value)
    if constant is not None:
        found.constant += constant
        return
    source: Any = defining(value)
    if source is not None and source.name in _ADD and number(source.operands[2]) == 1:
        _add(found, source.operands[0])
        _add(found, source.operands[1])
    elif (
        source is not None
        and source.name in _SUB
        and number(source.operands[2]) == 1
        and number(source.operands[1]) is not None
    ):
        _add(found, source.operands[0])
        found.constant -= number(source.operands[1]) or 0
    else:
        found.terms.append(value)
        return
    if source not in found.operations:
        found.operations.append(source)


def is_read(operation: Any) -> bool:
    """Whether anything uses a result of an op."""
    return any(list(result.uses) for result in operation.results)


def is_private(operations: list[Any], root: Any) -> bool:
    """Whether nothing but the ops themselves reads what they compute; the root's result is read by others."""
    inside = set(operations) | {root}
    return all(
        use.owner.operation in inside for op in operations if op != root for result in op.results for use in result.uses
    )


def fused_location(operations: list[Any]) -> Any:
    """One location that names the ONNX nodes of all the ops."""
    distinct = list(dict.fromkeys(operations))
    return ir.Location.fused([op.location for op in distinct]) if len(distinct) > 1 else distinct[0].location
