"""Depthwise convolutions by generated code, against ONNX Runtime's of the rounded operands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest

from gpu import compiled
from gpu.graphs import Body, graph_of, run_graph
from gpu.layers import op
from gpu.programs import compile_for_emulator, run
from gpu.test_contractions import onnxruntime_of, spec, stored
from hipdnn_mlir.codegen import find_architecture, generate_graph
from hipdnn_mlir.ops.depthwise import depthwise
from hipdnn_mlir.ops.emitter import Emitter, Value
from hipdnn_mlir.ops.spec import Refusal
from hipdnn_mlir_runtime.abi import Pointwise
from hipdnn_mlir_runtime.errors import Reject
from host_kernels.kernel_runs import Array, TensorSpec

TYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "f32": np.dtype(np.float32)}
LIMITS = {"f16": 1e-3, "bf16": 8e-3, "f32": 1e-6}

CASES = [  # x, filter, strides, pads, dilations
    ((1, 16, 12, 11), (3, 3), (1, 1), (1, 1), (1, 1)),
    ((2, 24, 9, 14), (3, 5), (2, 2), (1, 2), (1, 1)),
    ((1, 12, 7, 7), (5, 5), (1, 1), (0, 4), (1, 1)),
    ((2, 7, 8, 9), (7, 7), (1, 2), (3, 3), (1, 1)),
    ((1, 32, 30, 30), (3, 3), (1, 1), (2, 2), (2, 2)),
    ((3, 8, 1, 1), (3, 3), (1, 1), (1, 1), (1, 1)),
    ((1, 40, 5, 13), (1, 9), (1, 3), (0, 0), (1, 1)),
    ((1, 10, 9, 6), (4, 2), (3, 1), (0, 0), (1, 2)),
    ((1, 64, 32, 33), (11, 11), (1, 1), (5, 5), (1, 1)),
]  # fmt: skip


def drawn(dtype: str, *dims: int, seed: int = 1) -> Array:
    return np.random.default_rng([seed, *dims]).standard_normal(dims).astype(TYPES[dtype])


def operands(case: tuple[Any, ...], dtype: str, *, by_taps: bool = True, of_image: bool = True) -> list[Array]:
    x, w = drawn(dtype, *case[0]), drawn(dtype, case[0][1], 1, *case[1], seed=2)
    filters = np.moveaxis(np.ascontiguousarray(np.moveaxis(w, 0, -1)), -1, 0) if by_taps else w
    return [stored(x, of_image), filters]


def expected(x: Array, w: Array, case: tuple[Any, ...]) -> Array:
    _, _, strides, pads, dilations = case
    given = [np.ascontiguousarray(array).astype(np.float32) for array in (x, w)]
    return onnxruntime_of("Conv", given, strides=strides, pads=pads * 2, dilations=dilations, group=len(w))


def convolution(e: Emitter, x: Value, w: Value, case: tuple[Any, ...], dims: tuple[int, ...]) -> Value:
    strides, pads, dilations = (list(values) for values in case[2:])
    return op(e, "aten.convolution", x, w, None, strides, pads, dilations, False, [0, 0], case[0][1], dims=dims)


def of_case(case: tuple[Any, ...], dims: tuple[int, ...]) -> Body:
    return lambda e, x, w: convolution(e, x, w, case, dims)


@pytest.mark.parametrize("units", [1, 132])
@pytest.mark.parametrize("dtype", [*TYPES])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_onnxruntime(case: tuple[Any, ...], dtype: str, units: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of a small GPU computes more, which takes more of a result than an emulator runs of a large one."""
    monkeypatch.setattr("gpu.graphs.find_architecture", lambda name: replace(find_architecture(name), units=units))
    x, w = operands(case, dtype)
    want = expected(x, w, case)
    out = spec(dtype, want.shape, channels_last=True)
    depthwise(graph_of(of_case(case, want.shape), [x, w], [out]))
    (got,) = run_graph(of_case(case, want.shape), [x, w], [out])
    assert np.linalg.norm(got.astype(np.float64) - want) < LIMITS[dtype] * np.linalg.norm(want)


@pytest.mark.parametrize("by_taps", [False, True])
@pytest.mark.parametrize("of_image", [False, True])
@pytest.mark.parametrize("of_result", [False, True])
def test_any_order_of_memory_and_an_epilogue(of_result: bool, of_image: bool, by_taps: bool) -> None:
    case = CASES[1]
    x, w = operands(case, "f16", by_taps=by_taps, of_image=of_image)
    plain = expected(x, w, case)
    bias, residual = drawn("f16", 1, 24, 1, 1, seed=3), stored(drawn("f16", *plain.shape, seed=4), of_result)
    out = spec("f16", plain.shape, of_result)

    def body(e: Emitter, *values: Value) -> list[Value]:
        sums = e.pointwise(Pointwise.ADD, convolution(e, *values[:2], case, plain.shape), values[2])
        return [e.pointwise(Pointwise.RELU_FWD, e.pointwise(Pointwise.ADD, sums, values[3]))]

    (got,) = run_graph(body, [x, w, bias, residual], [out])
    want = np.maximum(plain + bias.astype(np.float64) + residual.astype(np.float64), 0)
    assert np.linalg.norm(got.astype(np.float64) - want) < 1e-3 * np.linalg.norm(want)


def test_what_the_image_does_not_have_is_nothing_whatever_lies_there() -> None:
    case = ((1, 8, 8, 8), (3, 3), (1, 1), (1, 1), (1, 1))
    x, w = operands(case, "f16")
    x[0, 0, 0, 0] = x[0, 5, 5, 3] = np.inf
    want = expected(x, w, case)
    (got,) = run_graph(of_case(case, want.shape), [x, w], [spec("f16", want.shape, channels_last=True)])
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))


@pytest.mark.parametrize(
    ("x", "w"), [((1, 8, 9, 9), (16, 1, 3, 3)), ((1, 8, 9, 9), (8, 2, 3, 3)), ((1, 8, 30, 30), (8, 1, 15, 15))], ids=str
)
def test_others_are_refused(x: tuple[int, ...], w: tuple[int, ...]) -> None:
    arrays = [drawn("f16", *x), drawn("f16", *w)]
    groups = x[1] // w[1]
    given = [array.astype(np.float32) for array in arrays]
    dims = onnxruntime_of("Conv", given, group=groups).shape

    def body(e: Emitter, a: Value, b: Value) -> Value:
        return op(e, "aten.convolution", a, b, None, [1, 1], [0, 0], [1, 1], False, [0, 0], groups, dims=dims)

    with pytest.raises(Refusal):
        depthwise(graph_of(body, arrays, [TensorSpec("f16", dims)]))


@pytest.mark.parametrize("arch", compiled.ALL)
@pytest.mark.parametrize(("dims", "taps"), [((1, 32, 112, 112), 3), ((32, 480, 14, 14), 5)], ids=str)
def test_code_is_made(dims: tuple[int, ...], taps: int, arch: str) -> None:
    """Of a batch, too, where a thread computes more pixels than divide a row."""
    case = (dims, (taps, taps), (1, 1), (taps // 2, taps // 2), (1, 1))
    arrays = [np.empty(dims, np.float16), np.empty((dims[1], 1, taps, taps), np.float16)]
    out = spec("f16", case[0], channels_last=True)
    made = generate_graph(graph_of(of_case(case, out.dims), arrays, [out]), find_architecture(arch))
    assert not isinstance(made, Reject)
    compiled.check(made)


def mixed() -> onnx.ModelProto:
    """A block of MixNet: convolutions of parts of the channels, with filters of several sizes, and of one tap."""
    rng, parts = np.random.default_rng(7), {3: 20, 5: 12, 9: 4}
    channels = sum(parts.values())
    weights = {f"w{k}": rng.standard_normal((count, 1, k, k)) / k for k, count in parts.items()}
    weights |= {f"m{half}": rng.standard_normal((10, channels // 2, 1, 1)) / 4 for half in range(2)}
    weights |= {name: rng.uniform(0.5, 1.5, channels) for name in ("scale", "mean", "var")}
    weights |= {"shift": rng.standard_normal(channels)}
    node = onnx.helper.make_node
    nodes = [
        node("Split", ["x", "sizes"], [f"x{k}" for k in parts], axis=1),
        *(
            node("Conv", [f"x{k}", f"w{k}"], [f"y{k}"], group=count, pads=[k // 2] * 4, strides=[2, 2])
            for k, count in parts.items()
        ),
        node("Concat", [f"y{k}" for k in parts], ["y"], axis=1),
        node("BatchNormalization", ["y", "scale", "shift", "mean", "var"], ["normed"]),
        node("Sigmoid", ["normed"], ["gate"]),
        node("Mul", ["normed", "gate"], ["swish"]),
        node("Split", ["swish"], ["h0", "h1"], axis=1, num_outputs=2),
        *(node("Conv", [f"h{half}", f"m{half}"], [f"z{half}"]) for half in range(2)),
        node("Concat", ["z0", "z1"], ["z"], axis=1),
    ]
    constants = [onnx.numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()]
    constants.append(onnx.numpy_helper.from_array(np.array([*parts.values()]), "sizes"))
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes,
        "mixed",
        [info("x", onnx.TensorProto.FLOAT, (2, channels, 11, 14))],
        [info("z", onnx.TensorProto.FLOAT, (2, 20, 6, 7))],
        constants,
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)


def test_parts_of_the_channels_are_one_convolution(monkeypatch: pytest.MonkeyPatch) -> None:
    model = mixed()
    x = np.random.default_rng(8).standard_normal((2, 36, 11, 14)).astype(np.float32)
    program, modules = compile_for_emulator(model, monkeypatch, target="sm_90")
    assert [step.kind for step in program.model.steps].count("execute") == 1
    assert len(program.model.steps) == 3  # the image is brought into the order of its channels first
    (got,) = run(program, {"x": x}, modules)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(got, session.run(None, {"x": x})[0], rtol=1e-4, atol=1e-5)
