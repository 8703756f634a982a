"""hipdnn-fuse-rms-norm: RMS norm that exporters write out becomes one op."""

from dataclasses import dataclass

from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.blocks import erase_dead, functions, operations
from ..ir.claims import is_taken
from ..ir.constants import constant_values
from ..ir.literals import constant_list, splat
from ..ir.module_pass import module_pass
from ..ir.terms import (
    Product,
    cast_to,
    fused_location,
    is_float_tensor,
    is_private,
    is_read,
    number,
    product,
    total,
    without_casts,
)
from ..ir.types import tensor_type
from ..ir.view import argument, producer
from ..ir.view_chains import dims_of, reshaped
from ..ops.strides import Dims
from ..targets.table import find_target
from ..targets.target import Target

_ROOTS = (torch.AtenMulTensorOp, torch.AtenDivTensorOp, torch.AtenToDtypeOp)
_MAX_EPSILON = 1e-2


@dataclass(frozen=True)
class RmsNorm:
    """What was recognized: x / sqrt(mean(x^2) + epsilon) * scale over the trailing `dims`; no scale where there is none."""

    x: ir.Value
    dims: Dims
    scale: ir.Value | None
    epsilon: float
    operations: list[ir.OpView]


@module_pass("hipdnn-fuse-rms-norm")
def fuse_rms_norm(module: ir.Operation, *, target: str = "host") -> None:
    """Recognize `x / sqrt(mean(x^2) + eps) * scale` in any order of its factors, and write it as `torch.aten.rms_norm`.

    Casts of x to f32 and back vanish: the norm is computed in f32 anyway and rounded once. What is written out stays where no engine takes
    the norm or something else reads a part of it, and where x is constant: that is arithmetic for the compiler.

    Before: `%s = torch.aten.pow.Tensor_Scalar %x, %int2`; `%m = torch.aten.mean.dim %s, ...`; `%a = torch.aten.add.Tensor %m, %eps, %int1`;
    `%r = torch.aten.rsqrt %a`; `%n = torch.aten.mul.Tensor %x, %r`; `%y = torch.aten.mul.Tensor %n, %scale`.
    After: `%y = torch.aten.rms_norm %x, %dims, %scale, %eps`.

    Args:
        module: the module operation.
        target: whose engines to ask.
    """
    library = find_target(target)
    for function in functions(module):
        constants = constant_values(function)
        for op in reversed(operations(function)):
            if isinstance(op, _ROOTS) and is_read(op) and is_float_tensor(op.result) and op.result not in constants:
                match = _match(op)
                if match is not None:
                    _replace(op, match, library)
        erase_dead(function)


def _match(root: ir.OpView) -> RmsNorm | None:
    """The norm that ends in the product `root`."""
    whole = product(root.result, casts=True)
    for factor in (*whole.factors, *whole.divisors):
        found = _deviation(factor, inverse=factor in whole.divisors)
        if found is None:
            continue
        x, dims, epsilon, operations = found
        scaled = product(root.result, [x, factor], casts=True)
        scale = _scale(scaled, x, factor)
        operations += scaled.operations
        fits = scale is not None and x.type == root.result.type and is_private(operations, root)
        if fits and scale is not None and all(_spans(part, dims, dims_of(x)) for part in scale):
            return RmsNorm(x, dims, scale[0] if scale else None, epsilon, operations)
    return None


def _deviation(value: ir.Value, *, inverse: bool) -> tuple[ir.Value, Dims, float, list[ir.OpView]] | None:
    """From 1 / sqrt(mean(x^2) + epsilon), or its inverse: x, the dims of the mean, epsilon, and the ops."""
    source = producer(without_casts(value))
    operations: list[ir.OpView] = []
    if not inverse and isinstance(source, torch.AtenReciprocalOp):
        operations.append(source)
        source, inverse = producer(source.self_), True
    if not isinstance(source, torch.AtenSqrtOp if inverse else torch.AtenRsqrtOp):
        return None
    inner = total(source.self_)
    operations += [source, *inner.operations]
    if len(inner.terms) != 1 or not 0 < inner.constant < _MAX_EPSILON:
        return None
    mean = producer(inner.terms[0])
    if not isinstance(mean, torch.AtenMeanDimOp) or not argument(mean.keepdim):
        return None
    dims = _trailing(mean)
    x = _squared(mean.self_, operations)
    return None if x is None or dims is None else (x, dims, inner.constant, [*operations, mean])


def _trailing(mean: torch.AtenMeanDimOp) -> Dims | None:
    """The sizes of the reduced dims where they are the last ones."""
    dims = dims_of(mean.self_)
    axes = argument(mean.dim)
    reduced = sorted({axis % len(dims) for axis in axes} if axes else range(len(dims)))
    return dims[reduced[0] :] if reduced == list(range(reduced[0], len(dims))) else None


def _squared(value: ir.Value, operations: list[ir.OpView]) -> ir.Value | None:
    """X where the value is x^2, in front of its casts."""
    source: ir.OpView = producer(value)
    match source:
        case torch.AtenPowTensorScalarOp():
            is_square = number(source.exponent) == 2
        case torch.AtenMulTensorOp():
            is_square = source.self_ == source.other
        case _:
            is_square = isinstance(source, torch.AtenSquareOp)
    if not is_square:
        return None
    operations.append(source)
    return without_casts(source.self_)


def _scale(found: Product, x: ir.Value, factor: ir.Value) -> list[ir.Value] | None:
    """What else than x and the deviation is in the product: one factor or none; None where it is something else."""
    if found.coefficient != 1.0 or [d for d in found.divisors if d != factor]:
        return None
    rest = [f for f in found.factors if f != factor]
    if rest.count(x) != 1 or len(found.factors) + len(found.divisors) > 3:
        return None
    return [f for f in rest if f != x]


def _spans(scale: ir.Value, dims: Dims, whole: Dims) -> bool:
    """Whether a factor has the normalized dims and no others."""
    sizes = dims_of(scale)
    return len(sizes) <= len(whole) and (1,) * (len(sizes) - len(dims)) + dims == sizes


def _replace(root: ir.OpView, match: RmsNorm, target: Target) -> None:
    """Put the one op in the root's place, unless no engine takes it."""
    kind = tensor_type(match.x.type)
    with ir.InsertionPoint(root), fused_location([*match.operations, root]):
        scale = splat(1.0, match.dims, kind.dtype) if match.scale is None else reshaped(match.scale, match.dims)
        dims, scale = constant_list(match.dims), cast_to(scale, kind.dtype)
        made = torch.AtenRmsNormOp(match.x.type, match.x, dims, scale, torch.constant_float(match.epsilon))
        if is_taken(made, target):
            root.result.replace_all_uses_with(made.result)
