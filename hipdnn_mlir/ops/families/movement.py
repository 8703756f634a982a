"""Data movement: ops that become views of buffers, or copies where no view can show them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hipdnn_mlir_runtime import dtypes
from hipdnn_mlir_runtime.dtypes import DType

from ..emitter import Emitter, Value
from ..registry import movement
from ..spec import Concat, OpView, Pad, Permute, Refusal, Reshape, Slice, TensorArg
from ..strides import Dims


def operand_dims(op: OpView) -> Dims:
    """Static dims of the first operand."""
    arg = op.args[0]
    if not isinstance(arg, TensorArg):
        raise Refusal("operand", f"expected a tensor operand, got {arg!r}")
    return arg.type.static_dims()


def _count(dims: Sequence[int]) -> int:
    total = 1
    for size in dims:
        total *= size
    return total


@movement("aten.view", "aten.reshape", becomes="view", onnx=("Reshape",))
def reshape(op: OpView) -> Reshape:
    """(x, dims), one of which may be -1."""
    old, new = operand_dims(op), [int(size) for size in op.args[1]]
    if -1 in new:
        known = _count([size for size in new if size != -1])
        new[new.index(-1)] = _count(old) // known if known else 0
    if _count(new) != _count(old):
        raise Refusal("shape", f"{old} cannot become {tuple(new)}")
    return Reshape(tuple(new))


@movement("prims.collapse", "aten.flatten.using_ints", becomes="view", onnx=("Flatten",))
def collapse(op: OpView) -> Reshape:
    """(x, first, last): dims first..last become one."""
    dims = operand_dims(op)
    if not dims:
        return Reshape((1,))
    first, last = (int(axis) % len(dims) for axis in op.args[1:3])
    return Reshape((*dims[:first], _count(dims[first : last + 1]), *dims[last + 1 :]))


@movement("prims.split_dim", becomes="view")
def split_dim(op: OpView) -> Reshape:
    """(x, dim, outer): one dim becomes two."""
    dims, axis, outer = operand_dims(op), int(op.args[1]), int(op.args[2])
    return Reshape((*dims[:axis], outer, dims[axis] // outer, *dims[axis + 1 :]))


@movement("aten.unflatten.int", becomes="view")
def unflatten(op: OpView) -> Reshape:
    """(x, dim, sizes), one of which may be -1."""
    dims = operand_dims(op)
    axis, sizes = int(op.args[1]) % len(dims), [int(size) for size in op.args[2]]
    known = _count([size for size in sizes if size != -1])
    sizes = [dims[axis] // known if size == -1 else size for size in sizes]
    return Reshape((*dims[:axis], *sizes, *dims[axis + 1 :]))


@movement("aten.squeeze", "aten.squeeze.dim", "prims.squeeze", becomes="view", onnx=("Squeeze",))
def squeeze(op: OpView) -> Reshape:
    """Drop dims of size 1: all, one, or a list."""
    dims = operand_dims(op)
    given: Any = op.args[1] if len(op.args) > 1 else None
    axes = (
        range(len(dims))
        if given is None
        else [axis % max(len(dims), 1) for axis in (given if isinstance(given, list) else [given])]
    )
    return Reshape(tuple(size for axis, size in enumerate(dims) if axis not in axes or size != 1))


@movement("aten.unsqueeze", becomes="view", onnx=("Unsqueeze",))
def unsqueeze(op: OpView) -> Reshape:
    """(x, dim): a new dim of size 1."""
    dims = list(operand_dims(op))
    dims.insert(int(op.args[1]) % (len(dims) + 1), 1)
    return Reshape(tuple(dims))


@movement("aten.transpose.int", becomes="view", onnx=("Transpose",))
def transpose(op: OpView) -> Permute:
    """(x, a, b): two dims swapped."""
    order = list(range(len(operand_dims(op))))
    a, b = (int(axis) % max(len(order), 1) for axis in op.args[1:3])
    if order:
        order[a], order[b] = order[b], order[a]
    return Permute(tuple(order))


@movement("aten.t", "aten.numpy_T", becomes="view")
def reverse_dims(op: OpView) -> Permute:
    """All dims in reverse order."""
    return Permute(tuple(reversed(range(len(operand_dims(op))))))


@movement("aten.permute", becomes="view", onnx=("Transpose",))
def permute(op: OpView) -> Permute:
    """(x, order)."""
    rank = len(operand_dims(op))
    return Permute(tuple(int(axis) % rank for axis in op.args[1]))


@movement("aten.slice.Tensor", becomes="view", onnx=("Slice", "Split"))
def slice_(op: OpView) -> Slice:
    """(x, dim, start, end, step); torch clamps start and end."""
    dims = operand_dims(op)
    axis, step = int(op.args[1]) % len(dims), int(op.args[4])
    size = dims[axis]
    if step < 1:
        raise Refusal("attribute", f"step {step}, expected a positive one")
    start = _clamped(op.args[2], size, 0)
    end = max(start, _clamped(op.args[3], size, size))
    if start == end:  # an empty slice may start past the end, which tensor.extract_slice refuses
        start = end = 0
    offsets, sizes, steps = [0] * len(dims), list(dims), [1] * len(dims)
    offsets[axis], sizes[axis], steps[axis] = start, -(-(end - start) // step), step
    return Slice(tuple(offsets), tuple(sizes), tuple(steps))


def _clamped(index: Any, size: int, default: int) -> int:
    if index is None:
        return default
    return int(min(max(index + size if index < 0 else index, 0), size))


@movement("aten.select.int", becomes="view", onnx=("Gather",))
def select(op: OpView) -> Slice:
    """(x, dim, index): one index of a dim, which the result does not have."""
    dims = operand_dims(op)
    axis, index = int(op.args[1]) % len(dims), int(op.args[2])
    offsets, sizes = [0] * len(dims), list(dims)
    offsets[axis], sizes[axis] = index % dims[axis], 1
    return Slice(tuple(offsets), tuple(sizes), (1,) * len(dims))


@movement("aten.cat", becomes="producers write in place, or copies", onnx=("Concat",))
def cat(op: OpView) -> Concat:
    """(tensors, dim)."""
    first = op.args[0][0]
    return Concat(int(op.args[1]) % len(first.type.static_dims()))


def _absorb(e: Emitter, op: OpView) -> Value:
    """A border waiting for the convolution or pool that takes it as padding."""
    x, pad = e.value(op.args[0]), _border(op)
    return Value(x.tensor, x.dims, x.dtype, (pad.low, pad.high, float(pad.value)))


def _border(op: OpView) -> Pad:
    dims, flat = operand_dims(op), [int(size) for size in op.args[1]]
    if op.name.endswith("aten.pad") and op.args[2] != "constant":
        raise Refusal("attribute", f"pad mode {op.args[2]!r}, expected 'constant'")
    if min(flat, default=0) < 0:
        raise Refusal("attribute", f"negative padding {flat}")
    low, high = [0] * len(dims), [0] * len(dims)
    for pair in range(len(flat) // 2):
        low[-1 - pair], high[-1 - pair] = flat[2 * pair], flat[2 * pair + 1]
    value: Any = op.args[-1]
    return Pad(tuple(low), tuple(high), 0 if value is None else _fitting(value, op.args[0].type.dtype))


def _fitting(fill: float, dtype: DType) -> float:
    """A number that bytes can have: around maxima of bytes torch-mlir fills with the least i64."""
    if dtype not in (dtypes.I8, dtypes.U8):
        return fill
    limits = np.iinfo(dtype.numpy)
    return min(max(fill, int(limits.min)), int(limits.max))


@movement(
    "aten.constant_pad_nd",
    "aten.pad",
    becomes="padding of a convolution or pool; else a fill and a copy",
    onnx=("Pad",),
    emit=_absorb,
)
def pad(op: OpView) -> Pad:
    """(x, pads of the last dims first[, mode], value)."""
    return _border(op)
