"""`resize` and `grid_sample` against onnx's reference evaluator and ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnxruntime as ort
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawing import draws
from hipdnn_mlir_runtime.errors import ProgramError
from host_kernels import kernel_runs as runs
from host_kernels.kernel_runs import Array, TensorSpec, run_kernel
from host_kernels.onnx_reference import reference

COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def resize_attributes(rank: int, **given: Any) -> dict[str, Any]:
    """Return the attributes of a resize, those not given as ONNX has them."""
    usual = {
        "mode": "nearest",
        "coordinates": "half_pixel",
        "nearest": "round_prefer_floor",
        "cubic": -0.75,
        "exclude_outside": False,
        "extrapolation": 0.0,
        "antialias": False,
        "scales": [0.0] * rank,
    }
    return {**usual, **given}


def onnx_resize(x: Array, scales: list[float], roi: list[float] | None = None, **given: Any) -> Array:
    """Return onnx's Resize by scales."""
    region = None if roi is None else np.array(roi, np.float32)
    return reference("Resize", [x, region, np.array(scales, np.float32)], **given)[0]


@draws(75)
@given(
    data=st.data(),
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple),
    mode=st.sampled_from(["nearest", "linear", "cubic"]),
    coordinates=st.sampled_from(COORDINATES),
    antialias=st.booleans(),
    exclude=st.booleans(),
)
def test_resize_equals_reference(
    data: st.DataObject, shape: tuple[int, ...], mode: str, coordinates: str, antialias: bool, exclude: bool
) -> None:
    # Ties of nearest modes are the same in any arithmetic only where coordinates are exact: powers of two, whole sizes.
    pool = [0.25, 0.5, 1.0, 2.0, 4.0] if mode == "nearest" else [0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0]
    scales = [data.draw(st.sampled_from(pool)) for _ in shape]
    is_fit = [
        scale * dim >= 1 and (mode != "nearest" or scale * dim == int(scale * dim))
        for scale, dim in zip(scales, shape, strict=True)
    ]
    scales = [scale if fits else 1.0 for scale, fits in zip(scales, is_fit, strict=True)]
    nearest = data.draw(st.sampled_from(NEAREST)) if mode == "nearest" else "round_prefer_floor"
    exclude = exclude and mode == "cubic"
    antialias = antialias and mode != "nearest"
    x = data.draw(runs.strided("f32", shape))
    want = onnx_resize(
        np.ascontiguousarray(x),
        scales,
        mode=mode,
        coordinate_transformation_mode=coordinates,
        nearest_mode=nearest,
        antialias=int(antialias),
        exclude_outside=int(exclude),
    )
    attributes = resize_attributes(
        len(shape),
        mode=mode,
        coordinates=coordinates,
        nearest=nearest,
        scales=scales,
        antialias=antialias,
        exclude_outside=exclude,
    )
    (got,) = run_kernel("resize", [x], [data.draw(runs.out_spec("f32", want.shape))], attributes)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_resize_equals_reference_when_cropped(mode: str) -> None:
    x = runs.values("f32", (1, 1, 6, 5), 1)
    roi = [0, 0, 0.25, 0.1, 1, 1, 0.75, 1.5]
    want = onnx_resize(
        x,
        [1, 1, 1.5, 2],
        roi,
        mode=mode,
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=7.0,
    )
    attributes = resize_attributes(
        4, mode=mode, coordinates="tf_crop_and_resize", roi=roi, extrapolation=7.0, scales=[1, 1, 1.5, 2]
    )
    (got,) = run_kernel("resize", [x], [TensorSpec("f32", want.shape)], attributes)
    assert (got == 7).any()
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def ort_run(operator: str, inputs: dict[str, Array], names: list[str], **attributes: Any) -> Array:
    """Return one operator's output by ONNX Runtime."""
    helper = onnx.helper
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in inputs.items()
    ]
    out = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(next(iter(inputs.values())).dtype), None)
    graph = helper.make_graph([helper.make_node(operator, names, ["y"], **attributes)], "g", infos, [out])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, inputs)[0])


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("sizes", [(2, 3, 64, 96), (2, 3, 17, 21)])
def test_resize_equals_ort_when_large(mode: str, sizes: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).standard_normal((2, 3, 32, 48)).astype(np.float32)
    want = ort_run(
        "Resize",
        {"x": x, "sizes": np.array(sizes)},
        ["x", "", "", "sizes"],
        mode=mode,
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
    attributes = resize_attributes(4, mode=mode, coordinates="asymmetric", nearest="floor")
    (got,) = run_kernel("resize", [x], [TensorSpec("f32", sizes)], attributes)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    channels_last = TensorSpec("f32", sizes, (sizes[1] * sizes[2] * sizes[3], 1, sizes[1] * sizes[3], sizes[1]))
    (got,) = run_kernel("resize", [x], [channels_last], attributes)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16", "i8", "u8", "i32", "i64"])
def test_resize_truncates_when_integer(dtype: str) -> None:
    x = (runs.values(dtype, (5, 7), 1).astype(np.float64) * 4).astype(runs.numpy_dtype(dtype))
    # Weights are multiples of 1/8: no sum is a rounding error short of an integer.
    want = onnx_resize(x.astype(np.float64), [2, 4], mode="linear")
    (got,) = run_kernel("resize", [x], [TensorSpec(dtype, (10, 28))], resize_attributes(2, mode="linear"))
    if dtype in runs.INTEGERS:
        want = np.trunc(want)
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=1e-2 if dtype in ("f16", "bf16") else 1e-9)


def test_resize_moves_bool_when_nearest() -> None:
    x = runs.values("bool", (3, 4), 1)
    (got,) = run_kernel("resize", [x], [TensorSpec("bool", (6, 8))], resize_attributes(2))
    np.testing.assert_array_equal(got, x.repeat(2, 0).repeat(2, 1))


@pytest.mark.parametrize(
    ("given", "out", "message"),
    [
        ({"mode": "lanczos"}, (6, 8), 'one of "nearest" "linear" "cubic"'),
        ({"scales": [2.0]}, (6, 8), "a list of 2 numbers"),
        ({"scales": [-2.0, 2.0]}, (6, 8), r"attributes.scales\[0\]: expected a positive number, got -2"),
        ({"scales": ["nan", 2.0]}, (6, 8), "expected a positive number"),
        ({"roi": [0, 1]}, (6, 8), "a list of 4 numbers"),
        ({}, (6,), "expected 2 dims"),
        ({"mode": "linear", "antialias": True, "scales": [1e-9, 1]}, (6, 8), "takes too many elements"),
        ({"mode": "linear", "antialias": True, "scales": [1e-4, 1]}, (6, 8), "takes more elements"),
        ({"mode": "linear"}, (2**25, 1), "more than this library takes"),
    ],
)
def test_resize_refused_when_it_does_not_fit(given: dict[str, Any], out: tuple[int, ...], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        run_kernel("resize", [np.zeros((3, 4), np.float32)], [TensorSpec("f32", out)], resize_attributes(2, **given))


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_grid_sample_equals_ort(mode: str, padding: str, align: bool) -> None:
    generator = np.random.default_rng(1)
    x = generator.standard_normal((2, 3, 7, 9)).astype(np.float32)
    grid = generator.uniform(-1.6, 1.6, (2, 40, 30, 2)).astype(np.float32)
    want = ort_run(
        "GridSample", {"x": x, "grid": grid}, ["x", "grid"], mode=mode, padding_mode=padding, align_corners=int(align)
    )
    attributes = {"mode": mode, "padding": padding, "align_corners": align}
    (got,) = run_kernel("grid_sample", [x, grid], [TensorSpec("f32", (2, 3, 40, 30))], attributes)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


@draws(25)
@given(data=st.data(), dims=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple), align=st.booleans())
def test_grid_sample_equals_reference_when_dims_vary(data: st.DataObject, dims: tuple[int, ...], align: bool) -> None:
    mode = data.draw(st.sampled_from(["nearest", "linear", "cubic"] if len(dims) < 3 else ["nearest", "linear"]))
    # A cubic at the border: the reference evaluator moves points first, ONNX Runtime and PyTorch do not.
    padding = data.draw(st.sampled_from(["zeros"] if mode == "cubic" else ["zeros", "border"]))
    x = data.draw(runs.strided("f64", (2, 2, *dims)))
    shape = (2, *(3,) * len(dims), len(dims))
    # Not on the middle between elements, where single and double precision may round apart.
    grid = np.random.default_rng(data.draw(runs.seeds)).uniform(-1.3, 1.3, shape)
    (want,) = reference(
        "GridSample", [np.ascontiguousarray(x), grid], mode=mode, padding_mode=padding, align_corners=int(align)
    )
    out = data.draw(runs.out_spec("f64", want.shape))
    (got,) = run_kernel("grid_sample", [x, grid], [out], {"mode": mode, "padding": padding, "align_corners": align})
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_grid_sample_stays_inside_when_points_are_wild(mode: str, padding: str) -> None:
    x = np.ones((1, 1, 2, 3), np.float32)
    grid = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 3e38], np.float32).repeat(2).reshape(1, 1, 6, 2)
    attributes = {"mode": mode, "padding": padding, "align_corners": False}
    (got,) = run_kernel("grid_sample", [x, grid], [TensorSpec("f32", (1, 1, 1, 6))], attributes)
    np.testing.assert_allclose(got, np.full((1, 1, 1, 6), 0.0 if padding == "zeros" else 1.0), atol=1e-5)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((2, 3, 4), (2, 5, 2), (2, 3, 5)), r"expected \[2, ..., 1\] of 3 dims"),
        (((2, 3), (2, 5), (2, 3)), "expected 3 to 5 dims"),
        (((2, 3, 4), (1, 5, 1), (2, 3, 5)), r"expected \[2, ..., 1\]"),
        (((2, 3, 4), (2, 5, 1), (2, 3, 6)), r"expected \[2, 3, 5\], got \[2, 3, 6\]"),
        (((2, 3, 0), (2, 5, 1), (2, 3, 5)), "no elements to sample"),
    ],
)
def test_grid_sample_refused_when_it_does_not_fit(shapes: tuple[tuple[int, ...], ...], message: str) -> None:
    arrays = [np.zeros(shape, np.float32) for shape in shapes[:2]]
    attributes = {"mode": "linear", "padding": "border", "align_corners": False}
    with pytest.raises(ProgramError, match=message):
        run_kernel("grid_sample", arrays, [TensorSpec("f32", shapes[2])], attributes)
