"""Torch ops that ONNX spells otherwise: kernels that ONNX operators have too, with PyTorch's arguments."""

from collections.abc import Sequence
from math import prod
from typing import Any

from ..emitter import Value
from ..kernels import ElementwiseBuilder
from ..registry import elementwise, kernel
from ..spec import Call, OpView, Refusal
from .indexing import axis_of, indexed, refuse_booleans, tensor, tensors

_CUBIC = -0.75


@kernel("aten.index_select", function="gather")
def index_select(op: OpView) -> Call:
    """(x, dim, indices): slices of x at the indices."""
    data, indices = indexed(_ordered(op, 0, 2), 2)
    return Call("gather", [data, indices], {"axis": axis_of(op.args[1], len(data.type.dims))})


@kernel("aten.gather", function="gather_elements")
def gather(op: OpView) -> Call:
    """(x, dim, indices): the result has the dims of the indices."""
    data, indices = indexed(_ordered(op, 0, 2), 2)
    return Call("gather_elements", [data, indices], {"axis": axis_of(op.args[1], len(data.type.dims))})


@kernel("aten.scatter.src", "aten.scatter_add", function="scatter_elements")
def scatter(op: OpView) -> Call:
    """(x, dim, indices, source): x with elements of the source at, or added at, the indices."""
    data, indices, source = indexed(_ordered(op, 0, 2, 3), 3)
    if source.type.dims != indices.type.dims:
        raise Refusal("shape", f"a source of dims {source.type.dims} for indices of dims {indices.type.dims}")
    reduction = "add" if op.name.endswith("scatter_add") else "none"
    if reduction == "add":
        refuse_booleans(data)
    attributes = {"axis": axis_of(op.args[1], len(data.type.dims)), "reduction": reduction}
    return Call("scatter_elements", [data, indices, source], attributes)


def _ordered(op: OpView, *positions: int) -> OpView:
    """The op with the given arguments only."""
    return OpView(op.name, [op.args[position] for position in positions], op.results, op.node)


@kernel("aten.flip", function="slice")
def flip(op: OpView) -> Call:
    """(x, dims): backwards along the dims."""
    x = tensor(op, 0)
    sizes = x.type.static_dims()
    axes = {axis_of(axis, len(sizes)) for axis in op.args[1]}
    starts = [size - 1 if axis in axes else 0 for axis, size in enumerate(sizes)]
    return Call("slice", [x], {"starts": starts, "steps": [-1 if axis in axes else 1 for axis in range(len(sizes))]})


@kernel("aten.cumsum", "aten.cumprod", function="scan", precision="wide")
def scan(op: OpView) -> Call:
    """(x, dim, dtype): running sums or products."""
    (x,) = tensors(op, 1)
    refuse_booleans(x)
    attributes = {
        "axis": axis_of(op.args[1], len(x.type.dims)),
        "operator": "add" if op.name.endswith("sum") else "mul",
    }
    return Call("scan", [x], {**attributes, "exclusive": False, "reverse": False})


@kernel("aten.argmax", "aten.argmin", function="arg_reduce")
def arg_reduce(op: OpView) -> Call:
    """(x, dim or None, keepdim): the first position of the extreme, of the whole tensor where dim is None."""
    (x,) = tensors(op, 1)
    refuse_booleans(x)
    dims = x.type.static_dims() if op.args[1] is not None else (prod(x.type.static_dims()),)
    axis = axis_of(op.args[1] or 0, len(dims))
    kept = tuple(1 if index == axis else size for index, size in enumerate(dims))
    mode = "max" if op.name.endswith("max") else "min"
    return Call("arg_reduce", [(x, dims)], {"axis": axis, "mode": mode, "select_last": False}, [kept])


@kernel("aten.topk", "aten.sort", function="top_k")
def top_k(op: OpView) -> Call:
    """(x, k, dim, largest, sorted), or (x, dim, descending) with all of them: values and positions."""
    (x,) = tensors(op, 1)
    refuse_booleans(x)
    is_sort = op.name.endswith("sort")
    dim, largest = op.args[1:3] if is_sort else op.args[2:4]
    in_order = True if is_sort else bool(op.args[4])
    attributes = {"axis": axis_of(dim, len(x.type.dims)), "largest": bool(largest), "sorted": in_order}
    return Call("top_k", [x], attributes)


@elementwise("aten.arange.start_step", precision="wide")
def arange(m: ElementwiseBuilder, op: OpView) -> Value:
    """(start, end, step): as many as the result has."""
    kind = op.results[0]
    if kind.dtype.is_narrow:
        raise Refusal("dtype", f"a range of {kind.dtype}")
    start, _, step = op.args[:3]
    position = m.cast(m.position(0, kind.static_dims()), kind.dtype)
    steps = m.op("mul", position, m.scalar(step, kind.dtype))
    return m.expand(m.op("add", steps, m.scalar(start, kind.dtype)), kind.static_dims())


_UPSAMPLING: dict[str, tuple[str, str]] = {
    "aten.upsample_nearest1d.vec": ("nearest", "asymmetric"), "aten.upsample_nearest2d.vec": ("nearest", "asymmetric"),
    "aten.upsample_nearest3d.vec": ("nearest", "asymmetric"), "aten._upsample_nearest_exact2d.vec": ("nearest", "half_pixel"),
    "aten.upsample_linear1d.vec": ("linear", "half_pixel"), "aten.upsample_bilinear2d.vec": ("linear", "half_pixel"),
    "aten.upsample_trilinear3d.vec": ("linear", "half_pixel"), "aten.upsample_bicubic2d.vec": ("cubic", "half_pixel"),
}  # fmt: skip
"""Op -> how it interpolates, and where it finds the positions."""


@kernel(*_UPSAMPLING, function="resize")
def upsample(op: OpView) -> Call:
    """(x, sizes or None[, align_corners], scales or None) over the dims behind batch and channels."""
    x = tensor(op, 0)
    dims, result = x.type.static_dims(), op.results[0].static_dims()
    mode, coordinates = _UPSAMPLING[op.name.removeprefix("torch.")]
    if mode != "nearest":
        refuse_booleans(x)
        coordinates = "align_corners" if op.args[2] else coordinates
    attributes: dict[str, Any] = {
        "mode": mode,
        "coordinates": coordinates,
        "nearest": "floor" if coordinates == "asymmetric" else "round_prefer_ceil",
        "cubic": _CUBIC,
        "exclude_outside": False,
        "extrapolation": 0.0,
        "antialias": False,
        "scales": _scales(dims, result, op.args[-1]),
    }
    return Call("resize", [x], attributes)


def _scales(dims: Sequence[int], result: Sequence[int], given: Any) -> list[float]:
    """One per dim; 0 stands for the ratio of the sizes."""
    own = list(given or ())
    spatial = len(dims) - 2
    return (
        [1.0, 1.0, *(float(s) for s in own)]
        if len(own) == spatial
        else [1.0 if before == after else 0.0 for before, after in zip(dims, result, strict=True)]
    )


@kernel("aten.grid_sampler_2d", function="grid_sample", precision="wide")
def grid_sampler(op: OpView) -> Call:
    """(x, grid, interpolation, padding, align_corners), the modes as PyTorch counts them."""
    operands = tensors(op, 2)
    if not all(arg.type.dtype.is_float for arg in operands):
        raise Refusal("dtype", f"samples of {operands[0].type.dtype} at {operands[1].type.dtype}")
    modes, paddings = ("linear", "nearest", "cubic"), ("zeros", "border", "reflection")
    attributes = {"mode": modes[op.args[2]], "padding": paddings[op.args[3]], "align_corners": bool(op.args[4])}
    return Call("grid_sample", operands, attributes)
