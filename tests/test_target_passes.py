"""Passes that run for some targets only, on the host library: what they change is checked against ONNX Runtime."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto

import hipdnn_mlir
import models
from hipdnn_mlir.targets import table
from hipdnn_mlir_runtime.abi import Attribute
from hipdnn_mlir_runtime.dtypes import F32
from models import GraphBuilder


@pytest.fixture(autouse=True)
def host_like_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host target with the needs of cuDNN's."""
    like = replace(table.HOST, channel_multiples={F32: 4}, merges_matmuls=True)
    monkeypatch.setitem(table.TARGETS, "host", like)


def run_both(model: onnx.ModelProto, rtol: float = 1e-4) -> hipdnn_mlir.Program:
    """Compare with ONNX Runtime on random inputs, and return the program."""
    program = hipdnn_mlir.compile(model)
    session = program.session()
    rng = np.random.default_rng(5)
    feeds = {port.name: rng.standard_normal(port.shape).astype(np.float32) for port in session.inputs}
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for got, want in zip(session.run(None, feeds), reference.run(None, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)
    return program


def conv(
    channels: int, size: tuple[int, int], window: tuple[int, int], pads: list[int], **attributes: Any
) -> onnx.ModelProto:
    b = GraphBuilder("stem")
    settings = {"strides": [2, 2], "dilations": [1, 1], "group": 1} | attributes
    x = b.op("Conv", b.input("x", [2, channels, *size]), b.normal([6, channels, *window], 0.2), b.normal([6], 1.0),
             kernel_shape=[*window], pads=pads, **settings)  # fmt: skip
    model = b.model({x: [2, 6, 1, 1]})
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return onnx.shape_inference.infer_shapes(model)


@pytest.mark.parametrize(
    ("channels", "size", "window", "pads"),
    [
        (3, (32, 32), (7, 7), [3, 3, 3, 3]),
        (3, (16, 20), (3, 3), [1, 1, 1, 1]),
        (1, (14, 12), (5, 5), [2, 2, 2, 2]),
        (2, (12, 16), (4, 4), [1, 1, 1, 1]),
        (3, (12, 12), (2, 3), [0, 1, 0, 1]),
        (3, (18, 16), (6, 5), [0, 0, 0, 0]),
        (3, (8, 8), (3, 3), [4, 4, 4, 4]),
    ],
)
def test_pairs_of_pixels_become_channels(
    channels: int, size: tuple[int, int], window: tuple[int, int], pads: list[int]
) -> None:
    program = run_both(conv(channels, size, window, pads))
    (shape,) = {weight.shape for weight in program.weights.values() if weight.ndim == 4}
    assert shape[1] == 4 * channels
    assert shape[2:] == tuple((side + low % 2 + 1) // 2 for side, low in zip(window, pads[:2], strict=True))


@pytest.mark.parametrize(
    ("channels", "size", "window", "read"),
    [
        (3, (32, 48), (16, 16), 768),
        (1, (15, 21), (3, 7), 24),
        (3, (14, 28), (7, 7), 168),
        (2, (12, 12), (1, 4), 8),
    ],
)
def test_windows_side_by_side_become_channels(
    channels: int, size: tuple[int, int], window: tuple[int, int], read: int
) -> None:
    program = run_both(conv(channels, size, window, [0, 0, 0, 0], strides=[*window]))
    fields = [field for code in program.model.executables for _, fields in code.descriptors for field in fields]
    assert [6, read, 1, 1] in [value for key, _, value in fields if key == Attribute.TENSOR_DIMENSIONS]


def test_patches_of_a_text_of_samples_become_channels() -> None:
    b = GraphBuilder("samples")
    y = b.op("Conv", b.input("x", [2, 1, 60]), b.normal([6, 1, 10], 0.2), b.normal([6], 1.0), kernel_shape=[10], strides=[10])  # fmt: skip
    program = run_both(b.model({y: [2, 6, 6]}))
    assert (6, 12, 1) in {weight.shape for weight in program.weights.values()}


def test_patches_are_cut_where_the_image_is_cast() -> None:
    b = GraphBuilder("cast")
    x = b.op("Cast", b.op("Sqrt", b.op("Abs", b.input("x", [2, 3, 32, 32]))), to=TensorProto.FLOAT16)
    y = b.op("Cast", x, to=TensorProto.FLOAT)
    model = b.model(
        {
            b.op("Conv", y, b.normal([6, 3, 8, 8], 0.2), b.normal([6], 1.0), kernel_shape=[8, 8], strides=[8, 8]): [
                2,
                6,
                4,
                4,
            ]
        }
    )
    program = run_both(model, rtol=1e-3)
    assert [program.model.summary(step) for step in program.model.steps] == ["abs + sqrt + cast + cast", "conv2d + add"]


@pytest.mark.parametrize(
    ("channels", "size", "pads", "attributes"),
    [
        (3, (15, 16), [1, 1, 1, 1], {}),
        (4, (16, 16), [1, 1, 1, 1], {}),
        (3, (16, 16), [1, 1, 1, 1], {"strides": [2, 1]}),
        (3, (16, 16), [1, 1, 1, 1], {"dilations": [2, 2]}),
        (3, (16, 15), [0, 0, 0, 0], {"strides": [3, 3]}),
        (3, (15, 15), [0, 0, 0, 0], {"strides": [3, 3], "dilations": [2, 2]}),
        (3, (15, 15), [3, 3, 3, 3], {"strides": [3, 3]}),
    ],
)
def test_other_convolutions_keep_their_windows(
    channels: int, size: tuple[int, int], pads: list[int], attributes: dict[str, Any]
) -> None:
    program = run_both(conv(channels, size, (3, 3), pads, **attributes))
    (shape,) = {weight.shape for weight in program.weights.values() if weight.ndim == 4}
    assert shape[2:] == (3, 3)


@pytest.mark.parametrize(
    ("groups", "channels", "outputs", "joined"),
    [
        (8, 4, 4, 8),
        (8, 3, 5, 24),
        (4, 2, 2, 8),
        (16, 1, 3, 8),
        (3, 4, 4, 4),
        (6, 6, 2, 6),
        (12, 6, 2, 24),
        (16, 1, 1, 1),
    ],
)
def test_groups_of_few_channels_are_joined(groups: int, channels: int, outputs: int, joined: int) -> None:
    b = GraphBuilder("groups")
    x = b.input("x", [2, groups * channels, 9, 8])
    y = b.op("Conv", x, b.normal([groups * outputs, channels, 3, 3], 0.2), b.normal([groups * outputs], 1.0),
             kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], group=groups)  # fmt: skip
    program = run_both(b.model({y: [2, groups * outputs, 5, 4]}))
    (shape,) = {weight.shape for weight in program.weights.values() if weight.ndim == 4}
    assert shape[1] == joined


def test_products_of_one_value_are_one() -> None:
    program = run_both(models.encoder(layers=2, s=8, d=16, heads=2, ffn=32))
    names = [program.model.summary(step) for step in program.model.steps]
    assert names.count("matmul + add") == 2
    assert {weight.shape for weight in program.weights.values()} >= {(16, 48)}


def test_products_with_and_without_bias_stay_apart() -> None:
    b = GraphBuilder("mixed")
    x = b.input("x", [4, 8])
    plain = [b.op("MatMul", x, b.normal([8, n], 0.3)) for n in (3, 5)]
    biased = [b.op("Add", b.op("MatMul", x, b.normal([8, n], 0.3)), b.normal([n], 1.0)) for n in (2, 7)]
    other = b.op("MatMul", b.input("y", [4, 8]), b.normal([8, 5], 0.3))
    used_twice = b.op("Add", plain[1], other)
    outputs = {plain[0]: [4, 3], used_twice: [4, 5], biased[0]: [4, 2], biased[1]: [4, 7], plain[1]: [4, 5]}
    program = run_both(b.model(outputs))
    assert {weight.shape for weight in program.weights.values() if weight.ndim == 2} == {(8, 8), (8, 9), (8, 5)}


def test_a_product_that_another_reads_is_merged_with_neither() -> None:
    b = GraphBuilder("chain")
    x = b.input("x", [4, 8])
    first = b.op("MatMul", x, b.normal([8, 8], 0.3))
    second = b.op("MatMul", first, b.normal([8, 8], 0.3))
    run_both(b.model({second: [4, 8]}))
