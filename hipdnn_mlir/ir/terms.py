"""Arithmetic seen through its association: a tensor as a product of factors or a sum of terms, in whatever order it was written."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from torch_mlir import ir
from torch_mlir.dialects import torch

from ..dtypes import BF16, F16, F32, F64, DType
from .types import is_tensor, tensor_type, torch_tensor
from .view import defining, literal_scalar

MAX_POWER = 4
MAX_OPERATIONS = 32
"""Ops that are seen through; what lies behind more is no formula that anybody looks for, and chains are as long as models."""
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
        torch.constant_int(_TORCH_CODES[dtype]),
        torch.constant_bool(False),
        torch.constant_bool(False),
        torch.constant_none(),
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
    waiting = [(value, False)]  # the last operand first; what is found is turned round at the end
    for _ in range(MAX_OPERATIONS):
        if not waiting:
            break
        term, inverse = waiting.pop()
        constant = number(term)
        if constant is not None and (constant or not inverse):
            found.coefficient *= 1 / constant if inverse else constant
            continue
        source: Any = defining(term) if term not in leaves else None
        parts = _factors(source, casts=casts)
        if parts is None:
            (found.divisors if inverse else found.factors).append(term)
            continue
        found.operations.append(source)
        found.coefficient *= -1 if source.name == "torch.aten.neg" else 1
        waiting += [(part, inverse != is_divisor) for part, is_divisor in parts]
    for term, inverse in reversed(waiting):
        (found.divisors if inverse else found.factors).append(term)
    operations = list(dict.fromkeys(reversed(found.operations)))
    return Product(found.coefficient, found.factors[::-1], found.divisors[::-1], operations)


def _factors(source: Any, *, casts: bool) -> list[tuple[Any, bool]] | None:
    """What an op multiplies, and whether it divides by it; None where it does neither."""
    if source is None:
        return None
    if source.name in _MUL or source.name in _DIV:
        return [(source.operands[0], False), (source.operands[1], source.name in _DIV)]
    if source.name == "torch.aten.neg" or (source.name == _CAST and casts and is_float_tensor(source.operands[0])):
        return [(source.operands[0], False)]
    power = _power(source)
    return None if power is None else [(source.operands[0], False)] * power


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
    waiting = [value]
    for _ in range(MAX_OPERATIONS):
        if not waiting:
            break
        term = waiting.pop()
        constant = number(term)
        if constant is not None:
            found.constant += constant
            continue
        source: Any = defining(term)
        is_sum = source is not None and source.name in (*_ADD, *_SUB) and number(source.operands[2]) == 1
        taken = number(source.operands[1]) if is_sum and source.name in _SUB else None
        if not is_sum or (source.name in _SUB and taken is None):
            found.terms.append(term)
            continue
        found.operations.append(source)
        found.constant -= taken or 0
        waiting += list(source.operands)[: 1 if source.name in _SUB else 2]
    return Sum(found.constant, [*waiting, *reversed(found.terms)], list(dict.fromkeys(reversed(found.operations))))


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
