"""Operators that read images between their pixels, against ONNX Runtime's CPU provider."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hipdnn_mlir
from decompositions.node_models import node_model, run
from hipdnn_mlir_runtime.errors import UnsupportedError


def assert_compiles(op: str, inputs: dict[str, np.ndarray], tolerance: float, **given: Any) -> None:
    """Assert that the compiled node gives what ONNX Runtime gives; the tolerance is absolute and relative."""
    model = node_model(op, inputs, domain="", **given)
    (y,) = hipdnn_mlir.load(hipdnn_mlir.compile(model)).run(None, inputs)
    (want,) = run(model, inputs)
    np.testing.assert_allclose(y.astype(np.float64), want.astype(np.float64), rtol=tolerance, atol=tolerance)


def deformed(
    dims: tuple[int, int, int, int],
    filters: tuple[int, int, int, int],
    windows: tuple[int, int],
    dtype: type = np.float32,
    *,
    offset_group: int = 1,
    has_rest: bool = False,
) -> dict[str, np.ndarray]:
    """Operands of DeformConv: many samples lie outside the image; `has_rest`: bias and mask too."""
    rng = np.random.default_rng([*dims, *filters])
    places = offset_group * filters[2] * filters[3]
    arrays = {
        "x": rng.standard_normal(dims),
        "w": rng.standard_normal(filters),
        "offset": 1.5 * rng.standard_normal((dims[0], 2 * places, *windows)),
    }
    if has_rest:
        arrays |= {"b": rng.standard_normal(filters[0]), "mask": rng.random((dims[0], places, *windows))}
    return {name: array.astype(dtype) for name, array in arrays.items()}


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float16, 1e-2), (np.float32, 2e-5), (np.float64, 1e-12)])
def test_deformed_convolution_in_groups_has_mask_and_bias(dtype: type, tolerance: float) -> None:
    inputs = deformed((2, 4, 5, 6), (6, 2, 3, 2), (5, 3), dtype, has_rest=True)
    assert_compiles("DeformConv", inputs, tolerance, group=2, strides=[1, 2], pads=[1, 0, 1, 1])


def test_deformed_convolution_has_offsets_of_groups() -> None:
    inputs = deformed((2, 4, 5, 6), (4, 4, 2, 2), (2, 7), offset_group=2)
    assert_compiles("DeformConv", inputs, 2e-5, offset_group=2, strides=[2, 1], dilations=[2, 1], pads=[0, 1, 0, 1])


def test_deformed_convolution_of_one_row_has_groups_of_both_kinds() -> None:
    inputs = deformed((1, 6, 1, 7), (6, 2, 1, 3), (3, 5), offset_group=2, has_rest=True)
    assert_compiles("DeformConv", inputs, 2e-5, group=3, offset_group=2, dilations=[1, 2], pads=[0, 1, 2, 1])


def test_deformed_convolution_of_open_batch_is_compiled_once() -> None:
    inputs = deformed((3, 4, 5, 6), (4, 4, 2, 2), (4, 5), has_rest=True)
    model = node_model(
        "DeformConv", inputs, domain="", operands=["x", "w", "offset", "b", "mask"], constants=["w", "b"]
    )
    for port in model.graph.input:
        port.type.tensor_type.shape.dim[0].dim_param = "n"
    session = hipdnn_mlir.load(hipdnn_mlir.compile(model))
    for count in (1, 3):
        feeds = {name: inputs[name][:count] for name in ("x", "offset", "mask")}
        np.testing.assert_allclose(session.run(None, feeds)[0], run(model, feeds)[0], rtol=2e-5, atol=2e-5)


def test_deformed_convolution_with_offsets_of_other_sizes_is_refused() -> None:
    inputs = deformed((1, 2, 5, 6), (2, 2, 2, 2), (4, 4))
    with pytest.raises(UnsupportedError, match=r"offsets or a mask of other sizes than \[4, 5\] for 1 groups"):
        hipdnn_mlir.compile(node_model("DeformConv", inputs, domain=""))


REGIONS = np.array([[0, 0, 5, 5], [-3, -2, 2, 9], [4, 1, 12, 8], [3, 3, 3, 3], [5, 4, 1, 2]], np.float32)
"""Inside, over two corners, without pixels, with the corners exchanged."""
ALIGNED = {"output_height": 2, "output_width": 3, "sampling_ratio": 2, "spatial_scale": 0.75}


def aligned(*dims: int) -> dict[str, np.ndarray]:
    """Operands of RoiAlign, of images in another order."""
    x = np.random.default_rng(dims).standard_normal(dims).astype(np.float32)
    return {"x": x, "rois": REGIONS, "batch": np.array([0, 2, 1, 2, 0])}


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("height", [1, 6])
def test_regions_are_aligned_over_the_border(mode: str, coordinates: str, height: int) -> None:
    given = {**ALIGNED, "mode": mode, "coordinate_transformation_mode": coordinates}
    assert_compiles("RoiAlign", aligned(3, 2, height, 7), 2e-6, opset=16, **given)


def test_regions_of_old_models_are_not_shifted() -> None:
    assert_compiles("RoiAlign", aligned(3, 2, 6, 7), 2e-6, opset=10, **ALIGNED)


def test_regions_are_of_any_number_and_those_of_no_numbers_are_zero() -> None:
    inputs = aligned(3, 2, 6, 7)
    model = node_model("RoiAlign", inputs, domain="", opset=16, **ALIGNED)
    for port in model.graph.input[1:]:
        port.type.tensor_type.shape.dim[0].dim_param = "regions"
    session = hipdnn_mlir.load(hipdnn_mlir.compile(model))
    for count in (2, 5):
        feeds = {"x": inputs["x"], "rois": REGIONS[:count], "batch": inputs["batch"][:count]}
        np.testing.assert_allclose(session.run(None, feeds)[0], run(model, feeds)[0], rtol=2e-6, atol=2e-6)
    feeds["rois"] = np.full_like(REGIONS, np.nan)
    assert not session.run(None, feeds)[0].any()


def test_regions_of_16_bits_are_computed_in_32() -> None:
    inputs = aligned(3, 2, 6, 7)
    halves = {name: array if name == "batch" else array.astype(np.float16) for name, array in inputs.items()}
    (y,) = hipdnn_mlir.load(hipdnn_mlir.compile(node_model("RoiAlign", halves, domain="", **ALIGNED))).run(None, halves)
    wide = {name: array if name == "batch" else array.astype(np.float32) for name, array in halves.items()}
    (want,) = run(node_model("RoiAlign", wide, domain="", **ALIGNED), wide)
    np.testing.assert_allclose(y.astype(np.float32), want, rtol=1e-3, atol=1e-4)


def test_regions_with_samples_of_their_sizes_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="sampling_ratio 0: the sizes of regions decide how many samples"):
        hipdnn_mlir.compile(node_model("RoiAlign", aligned(3, 2, 6, 7), domain="", output_height=2))
