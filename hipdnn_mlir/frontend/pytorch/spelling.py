"""One spelling for ops that PyTorch has several of: the one that the op table has."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, fx

aten = torch.ops.aten
Call = tuple[Any, tuple[Any, ...], Mapping[str, Any]]
"""An op, its arguments and its keyword arguments."""
Spelling = Callable[..., tuple[Any, ...]]
"""From a writer and the arguments to an op and its arguments."""


class Writer(Protocol):
    """Writes calls in the place of one."""

    def call(self, target: Any, *args: Any, **kwargs: Any) -> fx.Node:
        """A call; its result is known."""

    def constant(self, tensor: Tensor) -> fx.Node:
        """A constant."""


def respelled(writer: Writer, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
    """The same call in the op table's spelling."""
    if target not in _SPELLINGS:
        return target, args, kwargs
    made, *arguments = _SPELLINGS[target](writer, *args, **kwargs)
    if made is aten.full.default:
        *arguments, dtype = arguments
        return made, tuple(arguments), {"dtype": dtype}
    return made, tuple(arguments), {}


_SPELLINGS: dict[Any, Spelling] = {}


def _spells(*ops: Any) -> Callable[[Spelling], Spelling]:
    def enter(function: Spelling) -> Spelling:
        _SPELLINGS.update(dict.fromkeys(ops, function))
        return function

    return enter


@_spells(aten._to_copy.default)
def to_dtype(_: Writer, x: fx.Node, *, dtype: torch.dtype | None = None, **__: Any) -> tuple[Any, ...]:
    """A copy where the dtype stays: devices and layouts are not the compiler's."""
    return (aten.clone.default, x) if dtype is None else (aten.to.dtype, x, dtype)


@_spells(aten.view.default, aten._unsafe_view.default, aten._reshape_copy.default, aten.view_copy.default)
def view(_: Writer, x: fx.Node, size: Any) -> tuple[Any, ...]:
    """Without a promise that memory is shared, which depends on strides."""
    return aten.reshape.default, x, size


@_spells(
    aten.lift_fresh_copy.default, aten.detach.default, aten.alias.default, aten.detach_copy.default, aten.alias_copy.default,
)  # fmt: skip
def copy(_: Writer, x: fx.Node, **__: Any) -> tuple[Any, ...]:
    """The same values."""
    return aten.clone.default, x


@_spells(aten.squeeze.dims)
def squeeze(_: Writer, x: fx.Node, dims: Any) -> tuple[Any, ...]:
    """As a reshape: dims are known."""
    shape = list(x.meta["val"].shape)
    dropped = {dim % len(shape) for dim in dims}
    return aten.reshape.default, x, [size for axis, size in enumerate(shape) if axis not in dropped or size != 1]


@_spells(aten._native_batch_norm_legit_no_training.default)
def batch_norm(
    writer: Writer, x: fx.Node, weight: Any, bias: Any, mean: fx.Node, variance: fx.Node, momentum: float, eps: float
) -> tuple[Any, ...]:
    """With a scale and a bias, which hipDNN wants."""
    like = mean.meta["val"]
    weight = writer.constant(torch.ones(like.shape, dtype=like.dtype)) if weight is None else weight
    bias = writer.constant(torch.zeros(like.shape, dtype=like.dtype)) if bias is None else bias
    return aten.batch_norm.default, x, weight, bias, mean, variance, False, momentum, eps, False


@_spells(aten.instance_norm.default)
def instance_norm(writer: Writer, x: fx.Node, weight: Any, bias: Any, *more: Any) -> tuple[Any, ...]:
    """With a scale and a bias."""
    like = x.meta["val"]
    count = like.shape[1]
    weight = writer.constant(torch.ones(count, dtype=like.dtype)) if weight is None else weight
    bias = writer.constant(torch.zeros(count, dtype=like.dtype)) if bias is None else bias
    return aten.instance_norm.default, x, weight, bias, *more


@_spells(aten.scalar_tensor.default)
def scalar_tensor(_: Writer, number: float, *, dtype: torch.dtype | None = None, **__: Any) -> tuple[Any, ...]:
    """A fill of rank 0."""
    return aten.full.default, [], number, dtype or torch.get_default_dtype()


@_spells(aten.full_like.default)
def full_like(_: Writer, x: fx.Node, number: float, *, dtype: torch.dtype | None = None, **__: Any) -> tuple[Any, ...]:
    """A fill of known dims."""
    like = x.meta["val"]
    return aten.full.default, list(like.shape), number, dtype or like.dtype


@_spells(aten.remainder.Scalar)
def remainder(writer: Writer, x: fx.Node, number: float) -> tuple[Any, ...]:
    """By a tensor of rank 0."""
    return aten.remainder.Tensor, x, writer.constant(torch.tensor(number, dtype=x.meta["val"].dtype))


@_spells(aten.fmod.Scalar)
def fmod(writer: Writer, x: fx.Node, number: float) -> tuple[Any, ...]:
    """By a tensor of rank 0."""
    return aten.fmod.Tensor, x, writer.constant(torch.tensor(number, dtype=x.meta["val"].dtype))


@_spells(aten.scatter.value)
def scatter(writer: Writer, x: fx.Node, dim: int, indices: fx.Node, number: float) -> tuple[Any, ...]:
    """With a tensor of that value."""
    source = writer.constant(torch.full(indices.meta["val"].shape, number, dtype=x.meta["val"].dtype))
    return aten.scatter.src, x, dim, indices, source


for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):

    def _bits(writer: Writer, x: fx.Node, number: int, name: str = _name) -> tuple[Any, ...]:
        """By a tensor of rank 0."""
        return getattr(aten, name).Tensor, x, writer.constant(torch.tensor(number, dtype=x.meta["val"].dtype))

    _SPELLINGS[getattr(aten, _name).Scalar] = _bits
