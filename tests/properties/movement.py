"""Operators that move elements: views, copies, gathers and scatters. They are exact."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from .call import Call, Known
from .draws import (
    EVERY,
    F32,
    FLOATS,
    INTEGERS,
    array_of,
    axes_of,
    axis_of,
    broadcast_dims,
    dims_of,
    distinct,
    dtype_of,
    flag,
    generator,
    ints,
    one_of,
)
from .operators import Draw, operator


@operator("Transpose")
def _transpose(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 0, 6, empty=True)
    order = {"perm": draw(st.permutations(range(len(dims))))} if dims and draw(st.booleans()) else {}
    return Call(op, [array_of(draw, one_of(draw, *EVERY), dims)], order)


@operator("Reshape")
def _reshape(draw: Draw, op: str) -> Call:
    """Other factors of the same number of elements; a 0 keeps a dim, a -1 stands for one."""
    dims = dims_of(draw, 0, 5, empty=True)
    target = [*draw(st.permutations(dims))]
    if len(target) > 1 and draw(st.booleans()):
        target[:2] = [target[0] * target[1]]
    target.insert(draw(st.integers(0, len(target))), 1)
    if 0 in dims:
        return Call(op, [array_of(draw, one_of(draw, *EVERY), dims), Known(ints(*target))], {"allowzero": 1})
    if draw(st.booleans()):
        target[draw(st.integers(0, len(target) - 1))] = -1
    target = [
        0 if index < len(dims) and size == dims[index] and draw(st.booleans()) else size
        for index, size in enumerate(target)
    ]
    return Call(op, [array_of(draw, one_of(draw, *EVERY), dims), Known(ints(*target))])


@operator("Flatten")
def _flatten(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 0, 5, empty=True)
    return Call(op, [array_of(draw, one_of(draw, *EVERY), dims)], {"axis": draw(st.integers(-len(dims), len(dims)))})


@operator("Squeeze", "Unsqueeze")
def _ones(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 0, 4, empty=True)
    wide = [*dims]
    for _ in range(draw(st.integers(1, 2))):
        wide.insert(draw(st.integers(0, len(wide))), 1)
    x = array_of(draw, one_of(draw, *EVERY), wide if op == "Squeeze" else dims)
    if op == "Squeeze":
        axes = [axis for axis, size in enumerate(wide) if size == 1 and draw(st.booleans())]
        known = Known(ints(*axes)) if axes else None
        return Call(op, [x, known] if known else [x])
    return Call(
        op, [x, Known(ints(*([0, -1] if draw(st.booleans()) else [draw(st.integers(-len(dims) - 1, len(dims)))])))]
    )


@operator("Concat")
def _concat(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 1, 4, empty=True)
    axis, dtype = axis_of(draw, len(dims)), one_of(draw, *EVERY)
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        shape = [*dims]
        shape[axis] = draw(st.integers(0, 4))
        parts.append(array_of(draw, dtype, shape))
    return Call(op, parts, {"axis": axis})


@operator("Split")
def _split(draw: Draw, op: str) -> Call:
    """Into given sizes, or into a number of parts of which the last may be smaller."""
    dims = [*dims_of(draw, 1, 4)]
    axis, dtype, count = axis_of(draw, len(dims)), one_of(draw, *EVERY), draw(st.integers(1, 4))
    if draw(st.booleans()):
        sizes = [draw(st.integers(0, 4)) for _ in range(count)]
        dims[axis] = sum(sizes)
        return Call(op, [array_of(draw, dtype, dims), Known(ints(*sizes))], {"axis": axis}, (True,) * count)
    dims[axis] = draw(st.integers(count * count, count * count + 3))
    return Call(op, [array_of(draw, dtype, dims)], {"axis": axis, "num_outputs": count}, (True,) * count)


@operator("Slice")
def _slice(draw: Draw, op: str) -> Call:
    """Starts and ends beyond either end, steps of either sign."""
    dims = dims_of(draw, 1, 4, empty=True)
    axes = axes_of(draw, len(dims)) or [0]
    starts, ends = ([draw(st.integers(-size - 3, size + 3)) for size in (dims[a] for a in axes)] for _ in range(2))
    steps = [one_of(draw, 1, 1, 2, 3, -1, -2) for _ in axes]
    if draw(st.booleans()):  # up to the end, whatever it is
        ends = [
            one_of(draw, end, (1 << 63) - 1 if step > 0 else -(1 << 63)) for end, step in zip(ends, steps, strict=True)
        ]
    index = one_of(draw, np.int64, np.int64, np.int32)
    if index is np.int32:
        ends = [int(np.clip(end, -(1 << 31), (1 << 31) - 1)) for end in ends]
    operands = [Known(np.array(numbers, index)) for numbers in (starts, ends, axes, steps)]
    if set(steps) == {1} and draw(st.booleans()):
        operands.pop()
    return Call(op, [array_of(draw, one_of(draw, *EVERY), dims), *operands])


@operator("Pad", rejected=0.2)
def _pad(draw: Draw, op: str) -> Call:
    """Borders of any mode; negative ones, which cut, are rejected beside borders of another axis."""
    mode = one_of(draw, "constant", "constant", "reflect", "edge", "wrap")
    dtype = dtype_of(draw, op)
    dims = dims_of(draw, 1, 5)
    axes = axes_of(draw, len(dims)) or [0] if draw(st.booleans()) else None
    sizes = [dims[axis] for axis in axes] if axes else dims
    most = {"reflect": -1, "wrap": 0}
    pads = [draw(st.integers(0, min(3, size + most.get(mode, 3)))) for _ in range(2) for size in sizes]
    if (
        mode == "constant" and dtype == F32 and draw(st.booleans())
    ):  # the evaluator, which has the other dtypes, does not cut
        pads = [pad if size < 4 or draw(st.booleans()) else -1 for pad, size in zip(pads, [*sizes] * 2, strict=True)]
    value = array_of(draw, dtype, ()) if mode == "constant" and draw(st.booleans()) else None
    operands = [Known(ints(*pads)), Known(value) if value is not None else None, Known(ints(*axes)) if axes else None]
    while operands[-1] is None:
        operands.pop()
    return Call(op, [array_of(draw, dtype, dims), *operands], {"mode": mode})


@operator("Tile")
def _tile(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 1, 4, empty=True, limit=600)
    repeats = [draw(st.integers(0 if draw(st.booleans()) else 1, 3)) for _ in dims]
    return Call(op, [array_of(draw, one_of(draw, *EVERY), dims), Known(ints(*repeats))])


@operator("Expand")
def _expand(draw: Draw, op: str) -> Call:
    """To dims that broadcast in either direction."""
    dims, shape = broadcast_dims(draw, 2, most=5)
    return Call(op, [array_of(draw, one_of(draw, *EVERY), dims), Known(ints(*shape))])


@operator("DepthToSpace", "SpaceToDepth")
def _blocks(draw: Draw, op: str) -> Call:
    n, c, h, w = (draw(st.integers(1, 4)) for _ in range(4))
    block = draw(st.integers(1, 3))
    dims = (n, c * block * block, h, w) if op == "DepthToSpace" else (n, c, h * block, w * block)
    mode = {"mode": one_of(draw, "DCR", "CRD")} if op == "DepthToSpace" else {}
    return Call(op, [array_of(draw, dtype_of(draw, op), dims)], {"blocksize": block, **mode})


@operator("Gather")
def _gather(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 1, 4)
    axis = axis_of(draw, len(dims))
    indices = _indices(draw, dims_of(draw, 0, 3, empty=True, limit=60), dims[axis])
    operand = Known(indices) if draw(st.booleans()) else indices
    return Call(op, [array_of(draw, one_of(draw, *EVERY), dims), operand], {"axis": axis})


def _indices(draw: Draw, dims: tuple[int, ...], size: int) -> np.ndarray:
    """Places along an axis of a size, counted from either end."""
    dtype = one_of(draw, np.int64, np.int32)
    return generator(draw).integers(-size if draw(st.booleans()) else 0, size, dims).astype(dtype)


@operator("GatherElements")
def _gather_elements(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 1, 4)
    axis = axis_of(draw, len(dims))
    shape = [draw(st.integers(1, size)) for size in dims]
    shape[axis] = draw(st.integers(0, 6))
    return Call(
        op, [array_of(draw, one_of(draw, *EVERY), dims), _indices(draw, tuple(shape), dims[axis])], {"axis": axis}
    )


@operator("GatherND")
def _gather_nd(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 1, 4)
    batch = draw(st.integers(0, len(dims) - 1))
    depth = draw(st.integers(1, len(dims) - batch))
    outer = (*dims[:batch], *dims_of(draw, 0, 2, limit=20))
    if not outer and depth == len(dims):  # of a result of rank 0 onnx's inference does not know the dims
        outer = (3,)
    places = _places(draw, outer, dims[batch : batch + depth])
    return Call(op, [array_of(draw, one_of(draw, *EVERY), dims), places], {"batch_dims": batch})


def _places(draw: Draw, outer: tuple[int, ...], sizes: tuple[int, ...]) -> np.ndarray:
    """Index tuples [*outer, len(sizes)]."""
    rng = generator(draw)
    low = draw(st.booleans())
    columns = [rng.integers(-size if low else 0, size, outer) for size in sizes]
    return np.stack(columns, -1).astype(np.int64) if columns else np.zeros((*outer, 0), np.int64)


@operator("ScatterElements", "Scatter")
def _scatter_elements(draw: Draw, op: str) -> Call:
    """Without a reduction no place is written twice."""
    opset = 10 if op == "Scatter" else 18
    reduction = "none" if op == "Scatter" else one_of(draw, "none", "add", "mul", "max", "min")
    dtype = one_of(draw, *(EVERY if reduction == "none" else (*FLOATS, *INTEGERS)))
    dims = dims_of(draw, 1, 4, limit=600)
    axis = axis_of(draw, len(dims))
    shape = [draw(st.integers(1, size)) for size in dims]
    if reduction == "none":
        places = np.argsort(
            generator(draw).random([dims[axis] if a == axis % len(dims) else s for a, s in enumerate(shape)]), axis
        )
        indices = np.take(places, range(shape[axis]), axis)
        if draw(st.booleans()):
            indices = indices - dims[axis]
    else:
        shape[axis] = draw(st.integers(1, 6))
        indices = _indices(draw, tuple(shape), dims[axis])
    attributes = {"axis": axis} | ({"reduction": reduction} if op != "Scatter" else {})
    x, updates = (array_of(draw, dtype, d, low=-2, high=2) for d in (dims, shape))
    return Call(op, [x, indices, updates], attributes, opset=opset, loose=4.0)


@operator("TensorScatter")
def _tensor_scatter(draw: Draw, op: str) -> Call:
    """Into a cache that is not circular."""
    dims = list(dims_of(draw, 3, 5, limit=600))
    axis = draw(st.integers(1, len(dims) - 1))
    new = [draw(st.integers(1, size)) if place == axis else size for place, size in enumerate(dims)]
    starts = generator(draw).integers(0, dims[axis] - new[axis] + 1, dims[0])
    dtype = one_of(draw, *FLOATS)
    cache, update = (array_of(draw, dtype, d) for d in (tuple(dims), tuple(new)))
    return Call(op, [cache, update, *([starts] if draw(st.booleans()) else [])], {"axis": axis - len(dims)}, opset=24)


@operator("ScatterND")
def _scatter_nd(draw: Draw, op: str) -> Call:
    reduction = one_of(draw, "none", "add", "mul", "max", "min")
    dtype = one_of(draw, *(EVERY if reduction == "none" else (*FLOATS, *INTEGERS)))
    dims = dims_of(draw, 1, 4, limit=600)
    depth = draw(st.integers(1, len(dims)))
    if reduction == "none":
        rows = math.prod(dims[:depth])
        count = draw(st.integers(1, min(rows, 6)))
        flat = generator(draw).permutation(rows)[:count]
        places = np.stack(np.unravel_index(flat, dims[:depth]), -1).astype(np.int64)
    else:
        places = _places(draw, dims_of(draw, 1, 2, limit=20), dims[:depth])
    x = array_of(draw, dtype, dims, low=-2, high=2)
    updates = array_of(draw, dtype, (*places.shape[:-1], *dims[depth:]), low=-2, high=2)
    return Call(op, [x, places, updates], {"reduction": reduction}, opset=18, loose=4.0)


@operator("ReverseSequence")
def _reverse_sequence(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 2, 4)
    time = flag(draw)
    lengths = generator(draw).integers(1, dims[time] + 1, dims[1 - time])
    return Call(op, [array_of(draw, one_of(draw, *EVERY), dims), lengths], {"time_axis": time, "batch_axis": 1 - time})


@operator("Trilu")
def _trilu(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 2, 4, empty=True)
    k = [Known(np.array(draw(st.integers(-6, 6))))] if draw(st.booleans()) else []
    return Call(op, [array_of(draw, dtype_of(draw, op), dims), *k], {"upper": flag(draw)})


@operator("OneHot")
def _one_hot(draw: Draw, op: str) -> Call:
    """Indices outside of the range give no one."""
    dims = dims_of(draw, 1, 3, limit=200)
    depth = draw(st.integers(1, 6))
    kind, dtype = one_of(draw, np.int64, np.int32, np.float32), one_of(draw, *EVERY)
    indices = generator(draw).integers(-depth - 2, depth + 2, dims).astype(kind)
    values = array_of(draw, dtype, (2,)) if dtype != np.bool_ else np.array([False, True])
    return Call(op, [indices, Known(np.array(depth)), values], {"axis": axis_of(draw, len(dims) + 1)})


@operator("Range")
def _range(draw: Draw, op: str) -> Call:
    dtype = dtype_of(draw, op)
    start, step = draw(st.integers(-9, 9)), one_of(draw, 1, 2, 3, -1, -2)
    end = start + step * draw(st.integers(0, 9))
    return Call(op, [Known(np.array(number, dtype)) for number in (start, end, step)])


@operator("ConstantOfShape")
def _constant_of_shape(draw: Draw, op: str) -> Call:
    value = array_of(draw, one_of(draw, *EVERY), (1,))
    dims = dims_of(draw, 0, 4, empty=True)
    return Call(op, [Known(ints(*dims))], {"value": numpy_helper.from_array(value)}, opset=20)


@operator("EyeLike")
def _eye_like(draw: Draw, op: str) -> Call:
    source, to = dtype_of(draw, op, opset=22), dtype_of(draw, op, opset=22)
    attributes = {"dtype": helper.np_dtype_to_tensor_dtype(to)} if draw(st.booleans()) else {}
    return Call(
        op, [array_of(draw, source, dims_of(draw, 2, 2))], {"k": draw(st.integers(-3, 3)), **attributes}, opset=22
    )


@operator("Shape", "Size")
def _shape(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 0, 5, empty=True)
    attributes = (
        {"start": draw(st.integers(-4, 4)), "end": draw(st.integers(-4, 5))}
        if op == "Shape" and draw(st.booleans())
        else {}
    )
    return Call(op, [array_of(draw, one_of(draw, *EVERY), dims)], attributes)


@operator("CenterCropPad")
def _center_crop_pad(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 1, 4)
    axes = axes_of(draw, len(dims)) or [0]
    return Call(
        op,
        [array_of(draw, dtype_of(draw, op), dims), Known(ints(*(draw(st.integers(1, 9)) for _ in axes)))],
        {"axes": axes},
    )


@operator("TopK")
def _top_k(draw: Draw, op: str) -> Call:
    dtype = dtype_of(draw, op)
    dims = dims_of(draw, 1, 4, limit=120)
    axis = axis_of(draw, len(dims))
    k = Known(ints(draw(st.integers(0, dims[axis]))))
    return Call(op, [distinct(draw, dtype, dims), k], {"axis": axis, "largest": flag(draw)}, (True, True))


@operator("ArgMax", "ArgMin")
def _arg_reduce(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 1, 5)
    attributes = {"axis": axis_of(draw, len(dims)), "keepdims": flag(draw), "select_last_index": flag(draw)}
    return Call(op, [array_of(draw, dtype_of(draw, op), dims)], attributes)
