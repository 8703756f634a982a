"""Arithmetic seen through its association: a tensor as a product of factors or a sum of terms, in whatever order it was written."""

from collections.abc import Collection
from dataclasses import dataclass, field

from torch_mlir import ir
from torch_mlir.dialects import torch

from hipdnn_mlir_runtime.dtypes import BF16, F16, F32, F64, I8, I32, U8, DType

from .types import is_tensor, tensor_type, torch_tensor
from .view import literal_scalar, producer, readers

MAX_POWER = 4
MAX_OPERATIONS = 32
"""Ops that are seen through; what lies behind more is no formula that anybody looks for, and chains are as long as models."""
_TORCH_CODES = {U8: 0, I8: 1, I32: 3, F16: 5, F32: 6, F64: 7, BF16: 15}
"""PyTorch's numbers of the types that casts here are to."""
_SUMS = (torch.AtenAddTensorOp, torch.AtenAddScalarOp)
_DIFFERENCES = (torch.AtenSubTensorOp, torch.AtenSubScalarOp)


@dataclass
class Product:
    """coefficient * factors / divisors; `operations` are the ops that were seen through."""

    coefficient: float = 1.0
    factors: list[ir.Value] = field(default_factory=list)
    divisors: list[ir.Value] = field(default_factory=list)
    operations: list[ir.OpView] = field(default_factory=list)


@dataclass
class Sum:
    """constant + terms; `operations` are the ops that were seen through."""

    constant: float = 0.0
    terms: list[ir.Value] = field(default_factory=list)
    operations: list[ir.OpView] = field(default_factory=list)


def number(value: ir.Value) -> float | None:
    """The number that a constant of one element is, or None."""
    match producer(value):
        case torch.ConstantFloatOp() | torch.ConstantIntOp() as constant:
            return float(constant.value.value)
        case torch.ValueTensorLiteralOp() as literal if tensor_type(value.type).dtype.is_float:
            return literal_scalar(literal)
    return None


def is_float_tensor(value: ir.Value) -> bool:
    """Whether a value is a tensor of static dims and floats."""
    if not is_tensor(value.type):
        return False
    kind = tensor_type(value.type)
    return kind.is_static and kind.dtype.is_float


def without_casts(value: ir.Value) -> ir.Value:
    """The value in front of casts from floats to floats."""
    while isinstance(cast := producer(value), torch.AtenToDtypeOp) and is_float_tensor(cast.self_):
        value = cast.self_
    return value


def cast_to(value: ir.Value, dtype: DType) -> ir.Value:
    """The value in another element type, made at the current insertion point where it differs."""
    kind = tensor_type(value.type)
    if kind.dtype is dtype:
        return value
    code, no, none = torch.constant_int(_TORCH_CODES[dtype]), torch.constant_bool(False), torch.constant_none()
    return torch.aten_to_dtype(torch_tensor(kind.static_dims(), dtype), value, code, no, no, none)


def product(value: ir.Value, leaves: Collection[ir.Value] = (), *, casts: bool = False) -> Product:
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
        op = producer(term) if term not in leaves else None
        parts = _factors(op, casts=casts)
        if not parts:
            (found.divisors if inverse else found.factors).append(term)
            continue
        found.operations.append(op)
        found.coefficient *= -1 if isinstance(op, torch.AtenNegOp) else 1
        waiting += [(part, inverse != is_divisor) for part, is_divisor in parts]
    for term, inverse in reversed(waiting):
        (found.divisors if inverse else found.factors).append(term)
    operations = list(dict.fromkeys(reversed(found.operations)))
    return Product(found.coefficient, found.factors[::-1], found.divisors[::-1], operations)


def _factors(op: ir.OpView | None, *, casts: bool) -> list[tuple[ir.Value, bool]]:
    """What an op multiplies, and whether it divides by it; nothing where it does neither."""
    match op:
        case torch.AtenMulTensorOp() | torch.AtenMulScalarOp():
            return [(op.self_, False), (op.other, False)]
        case torch.AtenDivTensorOp() | torch.AtenDivScalarOp():
            return [(op.self_, False), (op.other, True)]
        case torch.AtenNegOp():
            return [(op.self_, False)]
        case torch.AtenToDtypeOp() if casts and is_float_tensor(op.self_):
            return [(op.self_, False)]
        case torch.AtenSquareOp():
            return [(op.self_, False)] * 2
        case torch.AtenPowTensorScalarOp():
            exponent = number(op.exponent) or 0
            return [(op.self_, False)] * int(exponent) if exponent in range(1, MAX_POWER + 1) else []
    return []


def total(value: ir.Value) -> Sum:
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
        op = producer(term)
        if isinstance(op, _SUMS) and number(op.alpha) == 1:
            waiting += [op.self_, op.other]
        elif isinstance(op, _DIFFERENCES) and number(op.alpha) == 1 and (taken := number(op.other)) is not None:
            found.constant -= taken
            waiting.append(op.self_)
        else:
            found.terms.append(term)
            continue
        found.operations.append(op)
    return Sum(found.constant, [*waiting, *reversed(found.terms)], list(dict.fromkeys(reversed(found.operations))))


def is_read(op: ir.OpView) -> bool:
    """Whether anything uses a result of an op."""
    return any(list(result.uses) for result in op.results)


def is_private(operations: list[ir.OpView], root: ir.OpView) -> bool:
    """Whether nothing but the ops themselves reads what they compute; the root's result is read by others."""
    inside = {*operations, root}
    results = [result for op in operations if op != root for result in op.results]
    return all(reader in inside for result in results for reader in readers(result))


def fused_location(operations: list[ir.OpView]) -> ir.Location:
    """One location that names the ONNX nodes of all the ops."""
    distinct = list(dict.fromkeys(operations))
    return ir.Location.fused([op.location for op in distinct]) if len(distinct) > 1 else distinct[0].location
