"""Resampling of images and signals: Resize, GridSample, AffineGrid, Col2Im, Fourier transforms, windows."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from .call import Call, Known
from .draws import F32, array_of, dims_of, flag, ints, one_of
from .operators import Draw, operator

_COORDINATES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")


@operator("Resize")
def _resize(draw: Draw, op: str) -> Call:
    """By scales or to sizes; nearest in all roundings, linear and cubic; inside the image; as it was before it had modes."""
    if draw(st.integers(0, 7)) == 0:
        return _upsampled(draw, op, 10)
    mode = one_of(draw, "nearest", "linear", "cubic")
    attributes: dict[str, object] = {"mode": mode, "coordinate_transformation_mode": one_of(draw, *_COORDINATES)}
    n, c = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    spatial = [draw(st.integers(2, 7)) for _ in range(2 if mode == "cubic" else draw(st.integers(1, 2)))]
    if mode == "nearest":
        attributes["nearest_mode"] = one_of(draw, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    if mode == "cubic":
        attributes["cubic_coeff_a"] = one_of(draw, -0.75, -0.5)
        attributes["exclude_outside"] = flag(draw)
    x = array_of(draw, F32, (n, c, *spatial))
    if draw(st.booleans()):
        scales = np.array([1, 1, *(one_of(draw, 0.5, 0.75, 1.0, 2.0, 2.5, 3.0) for _ in spatial)], np.float32)
        # ONNX aligns corners with the product of size and scale, ONNX Runtime with its integer part.
        reference = "onnx" if attributes["coordinate_transformation_mode"] == "align_corners" else "onnxruntime"
        return Call(op, [x, None, Known(scales)], attributes, loose=16.0, reference=reference)
    sizes = ints(n, c, *(draw(st.integers(1, 12)) for _ in spatial))
    return Call(op, [x, None, None, Known(sizes)], attributes, loose=16.0)


@operator("Upsample")
def _upsample(draw: Draw, op: str) -> Call:
    return _upsampled(draw, op, 9)


def _upsampled(draw: Draw, op: str, opset: int) -> Call:
    dims = (draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.integers(1, 5)), draw(st.integers(1, 5)))
    scales = np.array([1, 1, one_of(draw, 1, 2, 3), one_of(draw, 1, 2, 3)], np.float32)
    return Call(
        op,
        [array_of(draw, F32, dims), Known(scales)],
        {"mode": one_of(draw, "nearest", "linear")},
        opset=opset,
        loose=16.0,
    )


@operator("GridSample")
def _grid_sample(draw: Draw, op: str) -> Call:
    n, c, h, w = (draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.integers(2, 5)), draw(st.integers(2, 5)))
    out = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    # Corners of cells, where nearest neighbours are tied, are left out by an odd factor.
    grid = array_of(draw, F32, (n, *out, 2), low=-1.3, high=1.3) * np.float32(0.9371)
    attributes = {"mode": one_of(draw, "linear", "nearest", "cubic"), "align_corners": flag(draw)}
    attributes["padding_mode"] = one_of(draw, "zeros", "border", "reflection")
    return Call(op, [array_of(draw, F32, (n, c, h, w)), grid], attributes, opset=20, loose=64.0)


@operator("AffineGrid")
def _affine_grid(draw: Draw, op: str) -> Call:
    n, spatial = draw(st.integers(1, 2)), draw(st.integers(2, 3))
    size = Known(ints(n, 2, *(draw(st.integers(2, 5)) for _ in range(spatial))))
    theta = array_of(draw, F32, (n, spatial, spatial + 1))
    return Call(op, [theta, size], {"align_corners": flag(draw)}, opset=20, loose=4.0)


@operator("Col2Im")
def _col2im(draw: Draw, op: str) -> Call:
    """Windows of one to three dims with strides, dilations and padding, put together where they overlap and where they leave gaps."""
    count = draw(st.integers(1, 3))
    block, strides, dilations = ([draw(st.integers(1, 3)) for _ in range(count)] for _ in range(3))
    pads = [draw(st.integers(0, 1)) for _ in range(2 * count)]
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, block, strict=True)]
    image = [reach[i] + pads[i] + pads[i + count] + draw(st.integers(0, 4)) for i in range(count)]
    free = [image[i] + pads[i] + pads[i + count] - reach[i] for i in range(count)]
    windows = math.prod(left // stride + 1 for left, stride in zip(free, strides, strict=True))
    x = array_of(draw, F32, (draw(st.integers(1, 2)), draw(st.integers(1, 2)) * math.prod(block), windows))
    attributes = {"strides": strides, "dilations": dilations, "pads": pads}
    # ONNX Runtime 1.32 misplaces the elements of dilated windows of one or three dims.
    reference = "onnxruntime" if count == 2 else "onnx"
    return Call(op, [x, Known(ints(*image)), Known(ints(*block))], attributes, opset=18, loose=8.0, reference=reference)


@operator("DFT")
def _dft(draw: Draw, op: str) -> Call:
    """Forward and inverse, one-sided from real numbers, cut or filled up to a length."""
    dims = dims_of(draw, 2, 3, limit=200)
    axis = draw(st.integers(0, len(dims) - 1))
    one_sided = flag(draw)
    inverse = 0 if one_sided else flag(draw)
    x = array_of(draw, F32, (*dims, 1 if one_sided else draw(st.integers(1, 2))))
    length = Known(np.array(draw(st.integers(1, 9)))) if draw(st.booleans()) else None
    return Call(
        op, [x, length, Known(np.array(axis))], {"onesided": one_sided, "inverse": inverse}, opset=20, loose=32.0
    )


@operator("STFT")
def _stft(draw: Draw, op: str) -> Call:
    frame, step = one_of(draw, 4, 7, 8), draw(st.integers(1, 4))
    signal = array_of(draw, F32, (draw(st.integers(1, 2)), frame + draw(st.integers(0, 12)), 1))
    window = Known(array_of(draw, F32, (frame,), low=0, high=1)) if draw(st.booleans()) else None
    operands = [signal, Known(np.array(step)), window, Known(np.array(frame))]
    return Call(op, operands, {"onesided": flag(draw)}, opset=17, loose=32.0)


@operator("BlackmanWindow", "HammingWindow", "HannWindow")
def _window(draw: Draw, op: str) -> Call:
    return Call(op, [Known(np.array(draw(st.integers(2, 20))))], {"periodic": flag(draw)}, opset=17, atol=2e-7)
