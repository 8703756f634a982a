"""hipdnn-fuse-rms-norm: RMS norm that exporters write out becomes one op."""

from dataclasses import dataclass
from typing import Any

from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.blocks import body, erase_dead, functions
from ..ir.claims import is_taken
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
from ..ir.view import argument, defining
from ..ir.view_chains import dims_of, reshaped
from ..ops.strides import Dims
from ..targets.target import Target, find_target

_PRODUCTS = ("torch.aten.mul.Tensor", "torch.aten.div.Tensor", "torch.aten.to.dtype")
_MEAN = "torch.aten.mean.dim"
_MAX_EPSILON = 1e-2


@dataclass(frozen=True)
class RmsNorm:
    """What was recognized: x / sqrt(mean(x^2) + epsilon) * scale over the trailing `dims`; no scale where there is none."""

    x: Any
    dims: Dims
    scale: Any | None
    epsilon: float
    operations: list[Any]


@module_pass("hipdnn-fuse-rms-norm")
def fuse_rms_norm(module: Any, *, target: str = "host") -> None:
    """Recognize `x / sqrt(mean(x^2) + eps) * scale` in any order of its factors, and write it as `torch.aten.rms_norm`.

    Casts of x to f32 and back vanish: the norm is computed in f32 anyway and rounded once. What is written out stays where no engine takes
    the norm or something else reads a part of it.

    Before: `%s = torch.aten.pow.Tensor_Scalar %x, %int2`; `%m = torch.aten.mean.dim %s, ...`; `%a = torch.aten.add.Tensor %m, %eps, %int1`;
    `%r = torch.aten.rsqrt %a`; `%n = torch.aten.mul.Tensor %x, %r`; `%y = torch.aten.mul.Tensor %n, %scale`.
    After: `%y = torch.aten.rms_norm %x, %dims, %scale, %eps`.

    Args:
        module: the module operation.
        target: whose engines to ask.
    """
    library = find_target(target)
    for function in functions(module):
        for operation in reversed(body(function)):
            if operation.name in _PRODUCTS and is_read(operation) and is_float_tensor(operation.results[0]):
                match = _match(operation)
                if match is not None:
                    _replace(operation, match, library)
        erase_dead(function)


def _match(root: Any) -> RmsNorm | None:
    """The norm that ends in the product `root`."""
    whole = product(root.results[0], casts=True)
    for factor in (*whole.factors, *whole.divisors):
        found = _deviation(factor, inverse=factor in whole.divisors)
        if found is None:
            continue
        x, dims, epsilon, operations = found
        scaled = product(root.results[0], [x, factor], casts=True)
        scale = _scale(scaled, x, factor)
        operations += scaled.operations
        fits = scale is not None and x.type == root.results[0].type and is_private(operations, root)
        if fits and scale is not None and all(_spans(part, dims, dims_of(x)) for part in scale):
            return RmsNorm(x, dims, scale[0] if scale else None, epsilon, operations)
    return None


def _deviation(value: Any, *, inverse: bool) -> tuple[Any, Dims, float, list[Any]] | None:
    """From 1 / sqrt(mean(x^2) + epsilon), or its inverse: x, the dims of the mean, epsilon, and the ops."""
    value = without_casts(value)
    source: Any = defining(value)
    operations = []
    if not inverse and source is not None and source.name == "torch.aten.reciprocal":
        operations.append(source)
        source, inverse = defining(source.operands[0]), True
    if source is None or source.name != ("torch.aten.sqrt" if inverse else "torch.aten.rsqrt"):
        return None
    inner = total(source.operands[0])
    operations += [source, *inner.operations]
    if len(inner.terms) != 1 or not 0 < inner.constant < _MAX_EPSILON:
        return None
    mean: Any = defining(inner.terms[0])
    if mean is None or mean.name != _MEAN or not argument(mean.operands[2]):
        return None
    dims = _trailing(mean)
    x = _squared(mean.operands[0], operations)
    return None if x is None or dims is None else (x, dims, inner.constant, [*operations, mean])


def _trailing(mean: Any) -> Dims | None:
    """The sizes of the reduced dims where they are the last ones."""
    dims = dims_of(mean.operands[0])
    axes = argument(mean.operands[1])
    reduced = sorted({axis % len(dims) for axis in axes} if axes else range(len(dims)))
    return dims[reduced[0] :] if reduced == list(range(reduced[0], len(dims))) else None


def _squared(value: Any, operations: list[Any]) -> Any | None:
    """X where the value is x^2, in front of its casts."""
    source: Any = defining(value)
    if source is None:
        return None
    is_power = source.name == "torch.aten.pow.Tensor_Scalar" and number(source.operands[1]) == 2
    is_square = source.name == "torch.aten.square" or (
        source.name == _PRODUCTS[0] and source.operands[0] == source.operands[1]
    )
    if not is_power and not is_square:
        return None
    operations.append(source)
    return without_casts(source.operands[0])


def _scale(found: Product, x: Any, factor: Any) -> list[Any] | None:
    """What else than x and the deviation is in the product: one factor or none; None where it is something else."""
    if found.coefficient != 1.0 or [d for d in found.divisors if d != factor]:
        return None
    rest = [f for f in found.factors if f != factor]
    if rest.count(x) != 1 or len(found.factors) + len(found.divisors) > 3:
        return None
    return [f for f in rest if f != x]


def _spans(scale: Any, dims: Dims, whole: Dims) -> bool:
    """Whether a factor has the normalized dims and no others."""
    sizes = dims_of(scale)
    return len(sizes) <= len(whole) and (1,) * (len(sizes) - len(dims)) + dims == sizes


def _replace(root: Any, match: RmsNorm, target: Target) -> None:
    """Put the one op in the root's place, unless no engine takes it."""
    kind = tensor_type(match.x.type)
    with ir.InsertionPoint(root), fused_location([*match.operations, root]):
        scale = splat(1.0, match.dims, kind.dtype) if match.scale is None else reshaped(match.scale, match.dims)
        made = ir.Operation.create(
            "torch.aten.rms_norm",
            results=[match.x.type],
            operands=[
                match.x,
                constant_list(match.dims),
                cast_to(scale, kind.dtype),
                torch.constant_float(match.epsilon),
            ],
        )
        if is_taken(made, target):
            root.results[0].replace_all_uses_with(made.results[0])
