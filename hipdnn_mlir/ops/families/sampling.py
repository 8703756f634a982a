"""Kernels that interpolate: resize and grid sample."""

from typing import Any

from ..registry import kernel
from ..spec import Call, OpView, Refusal
from ..strides import Dims
from .indexing import axis_of, refuse_booleans, tensor, tensors

_CUBIC = -0.75


@kernel("hipdnn.onnx.Resize", function="resize", onnx=("Resize", "Upsample"), known=(1, 2, 3))
def resize(op: OpView) -> Call:
    """(x, roi, scales, sizes), the last three known; a scale of 0 means result size over operand size."""
    x, given = tensor(op, 0), op.attributes
    dims, result = x.type.static_dims(), op.results[0].static_dims()
    axes = [axis_of(axis, len(dims)) for axis in given.get("axes", range(len(dims)))]
    attributes: dict[str, Any] = {
        "mode": given.get("mode", "nearest"),
        "coordinates": given.get("coordinate_transformation_mode", "half_pixel"),
        "nearest": given.get("nearest_mode", "round_prefer_floor"),
        "cubic": float(given.get("cubic_coeff_a", _CUBIC)),
        "exclude_outside": bool(given.get("exclude_outside", 0)),
        "extrapolation": float(given.get("extrapolation_value", 0.0)),
        "antialias": bool(given.get("antialias", 0)),
        "scales": _scales(op, dims, result, axes),
    }
    if attributes["mode"] != "nearest":
        refuse_booleans(x)
    if attributes["coordinates"] == "tf_crop_and_resize":
        attributes["roi"] = _region(op.args[1], len(dims), axes)
    return Call("resize", [x], attributes)


def _scales(op: OpView, dims: Dims, result: Dims, axes: list[int]) -> list[float]:
    """One per dim."""
    scales, sizes = (op.args[i] if i < len(op.args) else None for i in (2, 3))
    found = [1.0] * len(dims)
    if isinstance(scales, list) and scales:
        for axis, scale in zip(axes, scales, strict=True):
            found[axis] = float(scale)
        return found
    policy = op.attributes.get("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch" and sizes is not None:
        return [0.0 if axis in axes and dims[axis] != result[axis] else 1.0 for axis in range(len(dims))]
    if not isinstance(sizes, list):
        raise Refusal("operand", "scales have to be known at compile time")
    ratios = [size / dims[axis] for axis, size in zip(axes, sizes, strict=True)]
    for axis in axes:
        found[axis] = min(ratios) if policy == "not_larger" else max(ratios)
    return found


def _region(roi: Any, rank: int, axes: list[int]) -> list[float]:
    """The region of interest: starts of all dims, then ends."""
    if not isinstance(roi, list) or len(roi) != 2 * len(axes):
        raise Refusal("operand", "the region of interest has to be known at compile time")
    starts, ends = [0.0] * rank, [1.0] * rank
    for position, axis in enumerate(axes):
        starts[axis], ends[axis] = float(roi[position]), float(roi[len(axes) + position])
    return starts + ends


@kernel("hipdnn.onnx.GridSample", function="grid_sample", onnx=("GridSample",), precision="wide")
def grid_sample(op: OpView) -> Call:
    """(x, grid), mode, padding_mode, align_corners."""
    mode = str(op.attributes.get("mode", "linear"))
    attributes = {
        "mode": {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode),
        "padding": op.attributes.get("padding_mode", "zeros"),
        "align_corners": bool(op.attributes.get("align_corners", 0)),
    }
    operands = tensors(op, 2)
    if not all(arg.type.dtype.is_float for arg in operands):
        raise Refusal("dtype", f"samples of {operands[0].type.dtype} at {operands[1].type.dtype}")
    return Call("grid_sample", operands, attributes)
