"""Programs for AMD's GPUs give ONNX Runtime's values: graphs in the providers' forms on the host's library, kernels in the emulator."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

import installed
import models
from gpu.programs import compile_for_emulator, run
from models import GraphBuilder

F16_ERROR = 5e-3
"""As norms: a few roundings to f16 one after the other."""
BF16_ERROR = 4e-2
"""The same of bf16, which has three bits less."""
VECTORS = ("mean", "inverse", "scale", "bias")
"""What batch norm reads beside the image."""


def convolutions() -> onnx.ModelProto:
    """Bias alone, bias and residual, a clamp, groups, a transposed one: batches of 2, so that channel slices are not dense."""
    b = GraphBuilder("convolutions")
    x = b.input("x", [2, 4, 8, 8])
    a = b.op("Conv", x, b.normal([4, 4, 3, 3], 0.2), b.normal([4], 0.5), pads=[1, 1, 1, 1])
    c = b.op("Relu", b.op("Add", a, x))
    d = b.op(
        "Clip",
        b.op("Conv", c, b.normal([4, 2, 3, 3], 0.2), b.normal([4], 0.5), pads=[1, 0, 1, 2], group=2),
        _limit(b, 0),
        _limit(b, 6),
    )
    e = b.op("Relu", b.op("Conv", c, b.normal([8, 4, 1, 1], 0.5), b.normal([8], 0.5)))
    joined = b.op("Concat", b.op("Relu", b.op("Conv", c, b.normal([4, 4, 1, 1], 0.5))), e, d, axis=1)
    y = b.op("ConvTranspose", joined, b.normal([16, 3, 2, 2], 0.2), b.normal([3], 0.5), strides=[2, 2])
    return b.model({y: [2, 3, 16, 16]})


def lines() -> onnx.ModelProto:
    """Convolutions of one spatial dim, with bias and ReLU and without; a batch norm that nothing folds, of a 3-dim tensor."""
    b = GraphBuilder("lines")
    x = b.input("x", [2, 4, 16])
    vectors = [b.uniform([4], 0.5, 1.5) for _ in range(4)]
    x = b.op("Relu", b.op("BatchNormalization", x, *vectors))
    y = b.op("Relu", b.op("Conv", x, b.normal([8, 4, 3], 0.3), b.normal([8], 0.5), strides=[2], pads=[1, 1]))
    z = b.op("Conv", y, b.normal([4, 8, 3], 0.3))
    return b.model({z: [2, 4, 6]})


def products() -> onnx.ModelProto:
    """Every epilogue, batches of two dims that one stride does not reach, and that broadcast."""
    b = GraphBuilder("products", opset=20)
    x = b.input("x", [2, 6, 8])
    for activation in ("Relu", "Sigmoid", "Gelu", "Tanh"):
        options = {"approximate": "tanh"} if activation == "Gelu" else {}
        x = b.op(activation, b.op("Add", b.op("MatMul", x, b.normal([8, 8], 0.35)), b.normal([8], 0.3)), **options)
    gate = b.op("MatMul", x, b.normal([8, 8], 0.35))
    x = b.op("Mul", gate, b.op("Sigmoid", gate))
    heads = b.op("Transpose", b.op("Reshape", x, b.constant([2, 6, 2, 4], np.int64)), perm=[0, 2, 1, 3])
    y = b.op("MatMul", b.op("Relu", heads), b.op("Transpose", heads, perm=[0, 1, 3, 2]))
    z = b.op("MatMul", b.op("MatMul", y, b.normal([6, 5], 0.35)), b.normal([1, 2, 5, 5], 0.35))
    return b.model({z: [2, 2, 6, 5]})


def norms() -> onnx.ModelProto:
    """RMS norm written out, as exporters do, over rows of a 3-dim tensor."""
    b = GraphBuilder("norms")
    x = b.input("x", [2, 3, 8])
    mean = b.op("ReduceMean", b.op("Mul", x, x), axes=[-1], keepdims=1)
    root = b.op("Sqrt", b.op("Add", mean, b.constant(1e-5, np.float32)))
    y = b.op("MatMul", b.op("Mul", b.op("Div", x, root), b.uniform([8], 0.5, 1.5)), b.normal([8, 8], 0.35))
    return b.model({y: [2, 3, 8]})


def attention(*, is_causal: bool) -> onnx.ModelProto:
    """Attention written out, as exporters do, with heads as the assembly kernels have them."""
    b = GraphBuilder("attention")
    q, k, v = b.input("q", [1, 2, 6, 192]), b.input("k", [1, 2, 6, 192]), b.input("v", [1, 2, 6, 128])
    scores = b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = b.op("Mul", scores, b.constant(0.07, np.float32))
    if is_causal:
        scores = b.op("Add", scores, b.constant(np.triu(np.full((6, 6), -np.inf), 1), np.float32))
    return b.model({b.op("MatMul", b.op("Softmax", scores, axis=-1), v): [1, 2, 6, 128]})


def scaled(dims: list[int]) -> onnx.ModelProto:
    """Batch norm with an inverse deviation, hipDNN's operator, and ReLU."""
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)]
    values += [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims[1:2]) for name in VECTORS]
    nodes = [
        helper.make_node("BatchNormalizationInference", [value.name for value in values], ["t"], domain="hipdnn"),
        helper.make_node("Relu", ["t"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", values, [helper.make_tensor_value_info("y", TensorProto.FLOAT, dims)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("hipdnn", 1)])


def _limit(b: GraphBuilder, value: float) -> str:
    return b.constant(value, np.float32)


@pytest.fixture(autouse=True)
def providers() -> Iterator[None]:
    """Let the host's library take what AMD's takes for its providers."""
    library = ctypes.CDLL(str(installed.library("host")))
    library.hipdnnHostSetPluginApi_ext(2)
    yield
    library.hipdnnHostSetPluginApi_ext(3)


CASES: dict[str, Callable[[], onnx.ModelProto]] = {
    "convolutions": convolutions,
    "lines": lines,
    "products": products,
    "norms": norms,
    "slices": models.slices,
    "perceptron": lambda: models.mlp(batch=5),
    "encoder": lambda: models.encoder(layers=1, s=8, d=16, heads=2, ffn=32),
}


def reference(model: onnx.ModelProto) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """Inputs and ONNX Runtime's outputs."""
    rng = np.random.default_rng(1)
    dims = {port.name: [d.dim_value for d in port.type.tensor_type.shape.dim] for port in model.graph.input}
    feeds = {name: rng.standard_normal(sizes).astype(np.float32) for name, sizes in dims.items()}
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return feeds, session.run(None, feeds)


@pytest.mark.parametrize(("target", "wave"), [("gfx942", 64), ("gfx1100", 32), ("gfx942+fusilli", 64)])
@pytest.mark.parametrize("name", CASES)
def test_program_equals_onnx_runtime(name: str, target: str, wave: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = CASES[name]()
    feeds, wanted = reference(model)
    program, modules = compile_for_emulator(model, monkeypatch, target=target)
    assert program.model.executables
    for got, want in zip(run(program, feeds, modules, wave=wave), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("target", ["gfx942", "gfx942+fusilli"])
@pytest.mark.parametrize("name", CASES)
def test_f16_program_is_near_onnx_runtime(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = CASES[name]()
    feeds, wanted = reference(model)
    program, modules = compile_for_emulator(model, monkeypatch, target=target, precision="f16")
    assert program.model.executables
    for got, want in zip(run(program, feeds, modules, wave=64), wanted, strict=True):
        assert np.linalg.norm(got - want) <= F16_ERROR * np.linalg.norm(want)


def test_sums_of_integers_stay_exact_when_the_precision_is_f16(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights with a zero point, which no row of the table takes as integers; the sums are beyond f16's 65504."""
    b, rng = GraphBuilder("integers"), np.random.default_rng(0)
    sizes = {"x": (1, 8, 6, 6), "a": (40, 600)}
    feeds = {name: rng.integers(0, 256, dims).astype(np.uint8) for name, dims in sizes.items()}
    x, a = (b.input(name, dims, TensorProto.UINT8) for name, dims in sizes.items())
    zeros = b.constant(3, np.uint8), b.constant(7, np.uint8)
    image = b.op("ConvInteger", x, b.constant(rng.integers(0, 256, (4, 8, 3, 3)), np.uint8), *zeros, pads=[1, 1, 1, 1])
    weights = b.constant(rng.integers(0, 256, (600, 8)), np.uint8)
    product = b.op("MatMulInteger", a, weights, *zeros)
    one, many = b.constant(1, np.float32), b.constant(50000, np.float32)
    scaled = b.op("QLinearMatMul", a, one, zeros[0], weights, one, zeros[1], many, zeros[1])
    model = b.model({image: [1, 4, 6, 6], product: [40, 8], scaled: [40, 8]}, dtype=TensorProto.INT32)
    model.graph.output[2].type.tensor_type.elem_type = TensorProto.UINT8
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    program, modules = compile_for_emulator(model, monkeypatch, target="gfx942", precision="f16")
    for got, want in zip(run(program, feeds, modules, wave=64), session.run(None, feeds), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_in_the_assembly_kernels_form_is_near_onnx_runtime(
    monkeypatch: pytest.MonkeyPatch, *, is_causal: bool
) -> None:
    model = attention(is_causal=is_causal)
    feeds, wanted = reference(model)
    program, modules = compile_for_emulator(model, monkeypatch, target="gfx950", precision="bf16")
    assert [executable.engine for executable in program.model.executables] == ["ASM_SDPA_ENGINE"]
    for got, want in zip(run(program, feeds, modules, wave=64), wanted, strict=True):
        assert np.linalg.norm(got - want) <= BF16_ERROR * np.linalg.norm(want)


@pytest.mark.parametrize("precision", ["model", "f16"])
@pytest.mark.parametrize("dims", [[2, 3, 4, 5], [2, 3, 7]])
def test_batch_norm_with_an_inverse_deviation_in_miopens_form(
    dims: list[int], precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    feeds = {"x": rng.standard_normal(dims), **{name: rng.uniform(0.5, 1.5, dims[1]) for name in VECTORS}}
    mean, inverse, scale, bias = (feeds[name].reshape(-1, *[1] * (len(dims) - 2)) for name in VECTORS)
    want = np.maximum((feeds["x"] - mean) * inverse * scale + bias, 0)
    program, modules = compile_for_emulator(scaled(dims), monkeypatch, target="gfx942", precision=precision)
    assert [executable.engine for executable in program.model.executables] == ["MIOPEN_ENGINE"]
    (got,) = run(program, {name: value.astype(np.float32) for name, value in feeds.items()}, modules, wave=64)
    assert np.linalg.norm(got - want) <= (1e-6 if precision == "model" else F16_ERROR) * np.linalg.norm(want)
