"""Models exported by PyTorch run wholly in one program and equal ONNX Runtime and PyTorch itself."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnxruntime as ort
import pytest

import hipdnn_mlir

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install '.[export]'")

from . import cases  # noqa: E402 - it imports PyTorch

pytestmark = pytest.mark.slow

TOLERANCE = 1e-4
"""Of the largest value of an output, in f32."""


F16_TOLERANCE, BF16_TOLERANCE = 3e-3, 2.5e-2
"""The same in 16-bit types, against f32: what PyTorch's own results in these types are off by, about twice."""


def assert_close(got: list[np.ndarray], want: list[np.ndarray], tolerance: float = TOLERANCE) -> None:
    """Fail where an output is further from its reference than the tolerance."""
    assert len(got) == len(want)
    for index, (mine, theirs) in enumerate(zip(got, want, strict=True)):
        assert mine.shape == theirs.shape
        assert np.isfinite(theirs).all()
        scale = np.abs(theirs).max()
        assert scale > 0
        error = np.abs(mine.astype(np.float64) - theirs).max() / scale
        assert error < tolerance, f"output {index}: {error:.1e}"


RARE = ("unet_nearest", "unet_bilinear")
"""Left to `make nightly`: of three ways in which a U-Net's images grow those that resize them."""
ALL = [pytest.param(name, marks=[pytest.mark.nightly] if name in RARE else []) for name in cases.CASES]


@cache
def static_program(name: str) -> hipdnn_mlir.Program:
    """The program of a case for its own sizes alone."""
    exported = cases.exported(name)
    return hipdnn_mlir.compile(exported.model, shapes=exported.shapes)


@pytest.mark.parametrize("name", ALL)
def test_exported_model_equals_onnxruntime_and_pytorch_when_compiled_whole(name: str) -> None:
    exported = cases.exported(name)
    reference = ort.InferenceSession(exported.model.SerializeToString(), providers=["CPUExecutionProvider"])
    got = static_program(name).session().run(None, exported.feeds)
    assert_close(got, reference.run(None, exported.feeds))
    assert_close(got, exported.eager)


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        pytest.param("mlp", [{"batch": 1}, {"batch": 7}], marks=pytest.mark.nightly),
        ("cnn", [{"batch": 1, "h": 40, "w": 56}, {"batch": 3, "h": 64, "w": 33}]),
        ("encoder", [{"batch": 1, "s": 5}, {"batch": 3, "s": 26}]),
        ("decoder", [{"batch": 1, "s": 6, "s_past": 2}, {"batch": 2, "s": 1, "s_past": 30}]),
        ("causal_decoder", [{"batch": 1, "s": 33}, {"batch": 4, "s": 2}]),
        ("vit", [{"batch": 1}, {"batch": 5}]),
        pytest.param("speech_encoder", [{"batch": 1, "t": 37}, {"batch": 3, "t": 90}], marks=pytest.mark.nightly),
        pytest.param("unet_nearest", [{"batch": 1}, {"batch": 3}], marks=pytest.mark.nightly),
    ],
)
def test_exported_model_equals_onnxruntime_and_pytorch_when_dimensions_are_dynamic(
    name: str, runs: list[dict[str, int]]
) -> None:
    model = cases.export(name, dynamic=True)
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    session = hipdnn_mlir.compile(model).session()
    for sizes in runs:
        exported = cases.exported(name, sizes)
        got = session.run(None, exported.feeds)
        assert_close(got, reference.run(None, exported.feeds))
        assert_close(got, exported.eager)


@pytest.mark.parametrize(
    ("name", "size", "runs"),
    [
        ("vit", "batch", [1, 3, 4]),
        pytest.param("decoder", "batch", [3, 1], marks=pytest.mark.nightly),
        ("causal_decoder", "s", [7, 4, 12]),
    ],
)
def test_exported_model_equals_onnxruntime_when_a_size_is_rounded_up(name: str, size: str, runs: list[int]) -> None:
    model = cases.export(name, dynamic=True)
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    session = hipdnn_mlir.compile(model, buckets={size: [4, 12]}).session()
    for number in runs:
        exported = cases.exported(name, {size: number})
        assert_close(session.run(None, exported.feeds), reference.run(None, exported.feeds))
    assert session.stats.specializations <= 2


@pytest.mark.parametrize(
    ("name", "dtype", "tolerance"),
    [
        pytest.param("encoder", "float16", F16_TOLERANCE, marks=pytest.mark.nightly),
        ("decoder", "float16", F16_TOLERANCE),
        ("cnn", "bfloat16", BF16_TOLERANCE),
        pytest.param("speech_encoder", "bfloat16", BF16_TOLERANCE, marks=pytest.mark.nightly),
        pytest.param("vit", "bfloat16", BF16_TOLERANCE, marks=pytest.mark.nightly),
    ],
)
def test_exported_model_is_near_pytorch_in_f32_when_it_is_narrow(name: str, dtype: str, tolerance: float) -> None:
    exported = cases.narrow(name, getattr(torch, dtype))
    assert_close(hipdnn_mlir.compile(exported.model).session().run(None, exported.feeds), exported.eager, tolerance)


@pytest.mark.parametrize("name", ALL)
def test_exported_model_is_near_onnxruntime_when_it_is_run_narrow(name: str) -> None:
    """In one of both types by turns: what becomes narrow does not depend on which it is."""
    precision, tolerance = (("f16", F16_TOLERANCE), ("bf16", BF16_TOLERANCE))[list(cases.CASES).index(name) % 2]
    exported = cases.exported(name)
    reference = ort.InferenceSession(exported.model.SerializeToString(), providers=["CPUExecutionProvider"])
    program = hipdnn_mlir.compile(exported.model, shapes=exported.shapes, precision=precision)
    got = program.session().run(None, exported.feeds)
    assert_close(got, reference.run(None, exported.feeds), tolerance)


@pytest.mark.parametrize(
    ("name", "expected", "most"),
    [
        ("layer_encoder", {"sdpa_fwd": 2, "layer_norm": 4}, 20),
        ("encoder", {"sdpa_fwd": 2, "layer_norm": 5}, 19),
        ("decoder", {"sdpa_fwd": 2, "rmsnorm": 5, "matmul + swish": 2}, 37),
        ("causal_decoder", {"sdpa_fwd": 2, "layer_norm": 5, "matmul + add + gelu_approx_tanh": 2}, 18),
        ("vit", {"sdpa_fwd": 2, "layer_norm": 5}, 21),
        ("speech_encoder", {"sdpa_fwd": 2, "layer_norm": 10, "matmul + add + swish": 4, "conv1d + add + swish": 2}, 44),
        ("unet_transposed", {"sdpa_fwd": 1}, 56),
    ],
)
def test_exported_model_has_a_step_per_layer_when_written_out(name: str, expected: dict[str, int], most: int) -> None:
    steps = [step["summary"] for step in static_program(name).session().steps]
    assert {summary: steps.count(summary) for summary in expected} == expected
    assert not [summary for summary in steps if "exp" in summary or "neg" in summary]
    assert len(steps) <= most
