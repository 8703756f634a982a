"""What exported programs are written in: ops that the op table has stay, all others are decomposed, by PyTorch where it knows how."""

import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._decomp import _core_aten_decompositions_post_autograd, get_decompositions
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.export import ExportedProgram, default_decompositions, exported_program

from ...ops.table import find

aten = torch.ops.aten
Decomposition = Callable[..., Any]


def decomposed(program: ExportedProgram) -> ExportedProgram:
    """The program with every op decomposed that has no row in the op table, as far as decompositions are known.

    It is what `program.run_decompositions(table)` gives, in a sixth of the time: that prepares some hundred ops which nothing is said of,
    in every call. No public function takes what is prepared; a test compares both.
    """
    composite, others = _prepared()
    with unset_fake_temporarily(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PyTorch 2.13 warns of its own use of its LeafSpec
        made: ExportedProgram = exported_program._decompose_exported_program(
            program,
            cia_to_decomp=dict(composite),
            python_decomp_table=dict(others),
            joint_loss_index=None,
            decompose_custom_triton_ops=False,
        )
    return made


def decompositions() -> dict[Any, Decomposition]:
    """PyTorch's decompositions without those of ops that the op table has, and those of this package."""
    table: Any = default_decompositions()
    for op in [op for op in table if is_kept(op)]:
        del table[op]
    table.update(OWN)
    return dict(table)


@cache
def _prepared() -> tuple[dict[Any, Decomposition], dict[Any, Decomposition]]:
    """What to do with composite ops that PyTorch would treat otherwise, and decompositions of all other ops."""
    table = decompositions()
    composite, others = exported_program._split_decomp_table_to_cia_and_python_decomp(dict(table))
    written = {*_core_aten_decompositions_post_autograd(), *OWN}
    return {op: made for op, made in composite.items() if op not in table or op in written}, others


def is_kept(op: Any) -> bool:
    """Whether the op table has a row of that name."""
    return isinstance(op, torch._ops.OpOverload) and op not in OWN and find(row_name(op)) is not None


def row_name(op: torch._ops.OpOverload) -> str:
    """The name that the op has in the torch dialect: `torch.aten.add.Tensor`."""
    name = op._schema.name.replace("::", ".")
    return f"torch.{name}.{op._overloadname}" if op._overloadname != "default" else f"torch.{name}"


OWN: dict[Any, Decomposition] = {}
"""Decompositions of this package, where PyTorch has none or one that hides what an op is."""


def _decomposes(*ops: Any) -> Callable[[Decomposition], Decomposition]:
    def enter(function: Decomposition) -> Decomposition:
        OWN.update(dict.fromkeys(ops, function))
        return function

    return enter


@_decomposes(aten.linear.default)
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """One matmul, as engines take it with its bias; PyTorch's own merges dims in front of it."""
    product = torch.matmul(x, weight.t())
    return product if bias is None else product + bias


@_decomposes(
    aten.dropout.default, aten.native_dropout.default, aten.alpha_dropout.default, aten.feature_dropout.default
)
def dropout(x: Tensor, p: float, train: bool | None) -> Any:
    """Nothing, outside of training."""
    del p, train
    return x.clone()


@_decomposes(aten.embedding.default)
def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """Rows of the weight."""
    del padding_idx, scale_grad_by_freq, sparse
    return _taken(weight, 0, indices)


def _taken(x: Tensor, dim: int, indices: Tensor) -> Tensor:
    """Slices of x along a dim, which becomes the dims of the indices."""
    taken = torch.index_select(x, dim, indices.reshape(-1))
    return taken.reshape(*x.shape[:dim], *indices.shape, *x.shape[dim + 1 :])


@_decomposes(aten.index.Tensor, aten._unsafe_index.Tensor)
def index(x: Tensor, indices: Sequence[Tensor | None]) -> Any:
    """Indices of neighbouring dims are positions in these dims as one."""
    dims = [dim for dim, given in enumerate(indices) if given is not None]
    tensors = [given for given in indices if given is not None]
    if dims != list(range(dims[0], dims[-1] + 1)) or any(given.dtype is torch.bool for given in tensors):
        return NotImplemented
    first, count = dims[0], len(dims)
    if count == 1:
        return _taken(x, first, tensors[0])
    sizes = x.shape[first : first + count]
    position = torch.zeros_like(tensors[0])
    for given, size in zip(tensors, sizes, strict=True):
        position = position * size + torch.where(given < 0, given + size, given)
    return _taken(x.reshape(*x.shape[:first], -1, *x.shape[first + count :]), first, position)


@_decomposes(aten.split_with_sizes.default)
def split_with_sizes(x: Tensor, sizes: Sequence[int], dim: int = 0) -> list[Tensor]:
    """Slices."""
    ends = list(itertools.accumulate(sizes))
    return [x.narrow(dim, end - size, size) for end, size in zip(ends, sizes, strict=True)]


@_decomposes(aten.select_scatter.default)
def select_scatter(x: Tensor, source: Tensor, dim: int, index: int) -> Tensor:
    """One index of a dim replaced."""
    dim, size = dim % x.dim(), x.shape[dim]
    at = index + size if index < 0 else index
    return torch.cat([x.narrow(dim, 0, at), source.unsqueeze(dim), x.narrow(dim, at + 1, size - at - 1)], dim)


@_decomposes(aten.slice_scatter.default)
def slice_scatter(
    x: Tensor, source: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    """A slice replaced; where it ends is known from the source."""
    del end
    if step != 1:
        return NotImplemented
    size = x.shape[dim]
    first = 0 if start is None else max(start + size, 0) if start < 0 else min(start, size)
    last = first + source.shape[dim]
    if first == 0 and last == size:
        return source.expand(x.shape).clone()
    return torch.cat([x.narrow(dim, 0, first), source, x.narrow(dim, last, size - last)], dim)


@_decomposes(aten.copy.default)
def copy(x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """The source, in the dtype and dims of what it is written to."""
    del non_blocking
    return source.to(x.dtype).expand(x.shape).clone()


@_decomposes(aten.roll.default)
def roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Any:
    """The end in front of the start, dim by dim."""
    if not dims:
        return roll(x.reshape(-1), shifts, [0]).reshape(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        size = x.shape[dim]
        at = (-shift) % size
        x = torch.cat([x.narrow(dim, at, size - at), x.narrow(dim, 0, at)], dim)
    return x


@_decomposes(aten.prelu.default, aten._prelu_kernel.default)
def prelu(x: Tensor, weight: Tensor) -> Tensor:
    """One slope for each channel, or for all."""
    is_single = weight.numel() == 1
    dims = [1] * x.dim() if is_single or weight.dim() > 1 else [1, weight.shape[0], *[1] * (x.dim() - 2)]
    slope = weight.reshape(dims) if weight.dim() <= 1 else weight
    return torch.where(x > 0, x, slope * x)


@_decomposes(aten.native_group_norm.default)
def native_group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, n: int, c: int, hw: int, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Around an instance norm, as hipdnn-fuse-group-norm takes it; the statistics are those of training and not made."""
    del n, hw
    one, zero = torch.ones(groups, dtype=x.dtype), torch.zeros(groups, dtype=x.dtype)
    split = x.reshape(x.shape[0], groups, -1)
    y = aten.instance_norm(split, one, zero, None, None, True, 0.0, eps, False).reshape(x.shape)
    dims = [c, *[1] * (x.dim() - 2)]
    y = y if weight is None else y * weight.reshape(dims)
    y = y if bias is None else y + bias.reshape(dims)
    return y, x.new_zeros(x.shape[0], groups), x.new_zeros(x.shape[0], groups)


@_decomposes(aten.adaptive_avg_pool2d.default, aten._adaptive_avg_pool2d.default)
def adaptive_avg_pool2d(x: Tensor, size: Sequence[int]) -> Any:
    """A mean where the result is one pixel, an average pool where windows are of one size, else PyTorch's windows."""
    height, width = x.shape[-2:]
    if size[0] == 1 and size[1] == 1:
        return x.mean([-2, -1], keepdim=True)
    if height % size[0] == 0 and width % size[1] == 0:
        window = [height // size[0], width // size[1]]
        return aten.avg_pool2d(x, window, window)
    return _POOLED(x, size)


_POOLED = get_decompositions([aten._adaptive_avg_pool2d])[aten._adaptive_avg_pool2d.default]


@_decomposes(aten.var.correction)
def var(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    """The mean of squared distances to the mean."""
    dims = list(range(x.dim())) if not dim else list(dim)
    count = math.prod(x.shape[axis] for axis in dims)
    apart = x - x.mean(dims, keepdim=True)
    return (apart * apart).sum(dims, keepdim=keepdim) / (count - (1 if correction is None else correction))


@_decomposes(aten.max.dim)
def max_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The values by a reduction; positions only where they are read."""
    return torch.amax(x, dim, keepdim), torch.argmax(x, dim, keepdim)


@_decomposes(aten.min.dim)
def min_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """As the maximum."""
    return torch.amin(x, dim, keepdim), torch.argmin(x, dim, keepdim)


@_decomposes(aten.any.dim, aten.any.dims, aten.any.default)
def any_(x: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """The greatest of booleans."""
    dims = list(range(x.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    return torch.amax(x.to(torch.bool), dims, keepdim)


@_decomposes(aten.exp2.default)
def exp2(x: Tensor) -> Tensor:
    """By the natural exponential."""
    return torch.exp(x * math.log(2))


@_decomposes(aten.expm1.default)
def expm1(x: Tensor) -> Tensor:
    """Near 0 it has the absolute error of exp."""
    return torch.exp(x) - 1


@_decomposes(aten.log1p.default)
def log1p(x: Tensor) -> Tensor:
    """Near 0 it has the absolute error of log."""
    return torch.log(x + 1)


@_decomposes(aten.log2.default)
def log2(x: Tensor) -> Tensor:
    """By the natural logarithm."""
    return torch.log(x) / math.log(2)


@_decomposes(aten.log10.default)
def log10(x: Tensor) -> Tensor:
    """By the natural logarithm."""
    return torch.log(x) / math.log(10)


@_decomposes(aten.glu.default)
def glu(x: Tensor, dim: int = -1) -> Tensor:
    """One half times the sigmoid of the other."""
    a, b = x.chunk(2, dim)
    return a * torch.sigmoid(b)
