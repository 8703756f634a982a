"""Which engine takes what on AMD's targets, and what is split off to a generated kernel: one case per rule of a provider."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import hipdnn_mlir
import models
from drawing import every
from hipdnn_mlir.codegen.core import link
from hipdnn_mlir.targets.rocm import ENGINE_NAMES
from hipdnn_mlir.targets.table import AMD, FUSILLI, FUSILLI_ENGINE, find_target
from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import DataType
from hipdnn_mlir_runtime.abi import Descriptor as D
from models import GraphBuilder

pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install '.[gpu]'")
pytestmark = pytest.mark.skipif(
    link.find_linker() is None, reason="no ld.lld of LLVM 15 or newer: pip install '.[gpu-amd]'"
)
CONV, MATMUL = "MIOPEN_ENGINE", "HIPBLASLT_ENGINE"
ASM = "ASM_SDPA_ENGINE"
KERNEL = "kernel"
Steps = list[tuple[str, str]]
Tail = Callable[[GraphBuilder, str], str]


def steps(model: onnx.ModelProto, target: str = "gfx942", **options: Any) -> Steps:
    """Engine and nodes of every step of the compiled model."""
    program = hipdnn_mlir.compile(model, target=target, **options).model
    found = []
    for step in program.steps:
        action = getattr(step, "executable", None)
        found.append((KERNEL if action is None else program.executables[action].engine, program.summary(step)))
    return found


def limit(b: GraphBuilder, value: float) -> str:
    return b.constant(value, np.float32)


def op(name: str, **attributes: Any) -> Tail:
    return lambda b, x: b.op(name, x, **attributes)


def clip(low: float | None, high: float | None) -> Tail:
    return lambda b, x: b.op("Clip", x, "" if low is None else limit(b, low), "" if high is None else limit(b, high))


def convolved(tail: Tail | None, *, bias: bool = True, **attributes: Any) -> onnx.ModelProto:
    b = GraphBuilder("conv", opset=20)
    x = b.input("x", [1, 4, 8, 8])
    operands = [b.normal([4, 4 // attributes.get("group", 1), 3, 3], 0.2)] + ([b.normal([4], 0.5)] if bias else [])
    attributes = {"pads": [1, 1, 1, 1], **attributes}
    y = b.op("Conv", x, *operands, **attributes)
    y = y if tail is None else tail(b, y)
    size = 8 + (sum(attributes["pads"][::2]) - 2)
    return b.model({y: [1, 4, size, 8 + (sum(attributes["pads"][1::2]) - 2)]})


CONVOLUTIONS: dict[str, tuple[onnx.ModelProto, Steps]] = {
    "alone": (convolved(None, bias=False), [(CONV, "conv2d")]),
    "relu": (convolved(op("Relu"), bias=False), [(CONV, "conv2d + relu")]),
    "bias": (convolved(None), [(CONV, "conv2d"), (KERNEL, "add")]),
    "bias and relu": (convolved(op("Relu")), [(CONV, "conv2d + add + relu")]),
    "bias and clamp": (convolved(clip(0.0, 6.0)), [(CONV, "conv2d + add + relu")]),
    "bias and lower limit": (convolved(clip(0.5, None)), [(CONV, "conv2d"), (KERNEL, "add + relu")]),
    "bias and leaky relu": (convolved(op("LeakyRelu")), [(CONV, "conv2d"), (KERNEL, "add + relu")]),
    "bias and sigmoid": (convolved(op("Sigmoid")), [(CONV, "conv2d"), (KERNEL, "add + sigmoid")]),
    "bias and two": (
        convolved(lambda b, x: b.op("Tanh", b.op("Relu", x))),
        [(CONV, "conv2d + add + relu"), (KERNEL, "tanh")],
    ),
    "residual": (
        convolved(lambda b, x: b.op("Relu", b.op("Add", x, b.input("r", [1, 4, 8, 8])))),
        [(CONV, "conv2d"), (KERNEL, "add + add + relu")],
    ),
    "groups": (convolved(op("Relu"), group=2), [(CONV, "conv2d + add + relu")]),
    "uneven padding": (convolved(op("Relu"), pads=[0, 1, 2, 1]), [(KERNEL, "pad"), (CONV, "conv2d + add + relu")]),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_miopen_takes_a_convolution_alone_with_relu_or_with_bias_and_relu(name: str) -> None:
    model, wanted = CONVOLUTIONS[name]
    assert steps(model) == wanted


@pytest.mark.parametrize("target", ["gfx90a", "gfx1100", "gfx1151", "gfx1201", "gfx1250"])
@pytest.mark.parametrize("name", ["alone", "relu", "bias and clamp"])
def test_a_convolution_is_alone_where_miopen_has_no_kernels_for_what_follows_it(name: str, target: str) -> None:
    model, fused = CONVOLUTIONS[name]
    ((engine, summary),) = fused
    first, *rest = summary.split(" + ")
    assert steps(model, target) == [(engine, first)] + ([(KERNEL, " + ".join(rest))] if rest else [])


def test_fusilli_takes_a_convolution_with_what_follows_where_miopen_does_not() -> None:
    assert steps(convolved(op("Relu")), "gfx90a+fusilli") == [(FUSED, "conv2d + add + relu")]
    assert steps(convolved(None, bias=False), "gfx90a+fusilli") == [(CONV, "conv2d")]


def multiplied(tail: Tail | None, *, bias: bool = True) -> onnx.ModelProto:
    b = GraphBuilder("product", opset=20)
    y = b.op("MatMul", b.input("x", [6, 8]), b.normal([8, 8], 0.3))
    y = b.op("Add", y, b.normal([8], 0.3)) if bias else y
    return b.model({(y if tail is None else tail(b, y)): [6, 8]})


def swish(b: GraphBuilder, x: str) -> str:
    return b.op("Mul", x, b.op("Sigmoid", x))


MATMULS: dict[str, tuple[onnx.ModelProto, Steps]] = {
    "alone": (multiplied(None, bias=False), [(MATMUL, "matmul")]),
    "bias": (multiplied(None), [(MATMUL, "matmul + add")]),
    "relu": (multiplied(op("Relu"), bias=False), [(MATMUL, "matmul + relu")]),
    "bias and relu": (multiplied(op("Relu")), [(MATMUL, "matmul + add + relu")]),
    "bias and clamp": (multiplied(clip(-1.0, 1.0)), [(MATMUL, "matmul + add + relu")]),
    "bias and lower limit": (multiplied(clip(-1.0, None)), [(MATMUL, "matmul + add"), (KERNEL, "relu")]),
    "bias and gelu by tanh": (
        multiplied(op("Gelu", approximate="tanh")),
        [(MATMUL, "matmul + add + gelu_approx_tanh")],
    ),
    "bias and gelu": (multiplied(op("Gelu")), [(MATMUL, "matmul + add"), (KERNEL, "gelu")]),
    "bias and swish": (multiplied(swish), [(MATMUL, "matmul + add + swish")]),
    "bias and sigmoid": (multiplied(op("Sigmoid")), [(MATMUL, "matmul + add"), (KERNEL, "sigmoid")]),
    "residual": (multiplied(lambda b, x: b.op("Add", x, "x")), [(MATMUL, "matmul + add"), (KERNEL, "add")]),
}


@pytest.mark.parametrize("name", MATMULS)
def test_hipblaslt_takes_bias_and_some_activations(name: str) -> None:
    model, wanted = MATMULS[name]
    assert steps(model) == wanted


FUSED = "FUSILLI_ENGINE"
TAILS: dict[str, tuple[onnx.ModelProto, Steps]] = {
    "what MIOpen takes": (convolved(op("Relu")), [(CONV, "conv2d + add + relu")]),
    "bias": (convolved(None), [(FUSED, "conv2d + add")]),
    "bias and sigmoid": (convolved(op("Sigmoid")), [(FUSED, "conv2d + add + sigmoid")]),
    "residual": (
        convolved(lambda b, x: b.op("Relu", b.op("Add", x, b.input("r", [1, 4, 8, 8])))),
        [(FUSED, "conv2d + add + add + relu")],
    ),
    "a limit": (convolved(clip(0.5, None)), [(FUSED, "conv2d + add"), (KERNEL, "relu")]),
    "leaky relu": (convolved(op("LeakyRelu")), [(FUSED, "conv2d + add"), (KERNEL, "relu")]),
    "a function it lacks": (convolved(op("Elu")), [(FUSED, "conv2d + add"), (KERNEL, "elu")]),
    "product": (multiplied(op("Sigmoid")), [(FUSED, "matmul + add + sigmoid")]),
    "product and residual": (multiplied(lambda b, x: b.op("Add", x, "x")), [(FUSED, "matmul + add + add")]),
    "product and erf": (multiplied(op("Gelu")), [(MATMUL, "matmul + add"), (KERNEL, "gelu")]),
}


@pytest.mark.parametrize("name", TAILS)
def test_fusilli_takes_chains_that_the_others_refuse(name: str) -> None:
    model, wanted = TAILS[name]
    assert steps(model, "gfx942+fusilli") == wanted


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.FLOAT16])
def test_fusilli_is_given_tensors_of_one_type(kind: int) -> None:
    b = GraphBuilder("product", opset=20)
    dtype = np.float32 if kind == TensorProto.FLOAT else np.float16
    y = b.op("MatMul", b.input("x", [6, 8], kind), b.constant(np.ones((8, 8)), dtype))
    y = b.op("Tanh", b.op("Mul", y, b.constant(np.full(8, 0.5), dtype)))
    program = hipdnn_mlir.compile(b.model({y: [6, 8]}, dtype=kind), target="gfx942+fusilli").model
    (executable,) = program.executables
    assert executable.engine == FUSED
    types = {
        value
        for kind_of_descriptor, attributes in executable.descriptors
        if kind_of_descriptor == D.TENSOR_DESCRIPTOR
        for name, _, values in attributes
        if name == A.TENSOR_DATA_TYPE
        for value in values
    }
    assert types == {int(DataType.FLOAT if kind == TensorProto.FLOAT else DataType.HALF)}


@pytest.mark.parametrize(
    ("mask", "is_causal", "kind", "is_taken"),
    [
        (None, 0, TensorProto.FLOAT16, True),
        (None, 1, TensorProto.FLOAT, True),
        (TensorProto.FLOAT16, 0, TensorProto.FLOAT16, True),
        (TensorProto.FLOAT, 0, TensorProto.FLOAT, False),
        (TensorProto.BOOL, 0, TensorProto.FLOAT16, True),  # as numbers that are added
        (TensorProto.FLOAT16, 1, TensorProto.FLOAT16, False),
    ],
)
def test_fusilli_takes_attention_of_one_type(mask: int | None, is_causal: int, kind: int, is_taken: bool) -> None:
    b = GraphBuilder("attention", opset=23)
    q, k, v = (b.input(name, [2, 4, 6, 8], kind) for name in "qkv")
    y = b.op("Attention", q, k, v, *([b.input("mask", [6, 6], mask)] if mask else []), is_causal=is_causal)
    found = steps(b.model({y: [2, 4, 6, 8]}, dtype=kind), "gfx942+fusilli")
    assert any("sdpa" in summary for _, summary in found) == is_taken
    assert ((FUSED, "sdpa_fwd") in found) == is_taken


def test_fusilli_is_given_tensors_without_gaps_and_with_the_strides_it_compares() -> None:
    b = GraphBuilder("strides", opset=20)
    x = b.input("x", [6, 16])
    part = b.op("Slice", x, *(b.constant([value], np.int64) for value in (0, 8, 1)))
    y = b.op("Add", b.op("Tanh", b.op("MatMul", b.input("a", [6, 8]), b.normal([8, 8], 0.3))), part)
    assert steps(b.model({y: [6, 8]}), "gfx942+fusilli") == [(KERNEL, "copy"), (FUSED, "matmul + tanh + add")]
    b = GraphBuilder("images", opset=20)
    image = b.op("Transpose", b.input("x", [3, 1, 8, 8]), perm=[1, 0, 2, 3])
    y = b.op("Sigmoid", b.op("Conv", image, b.normal([4, 3, 3, 3], 0.2), pads=[1, 1, 1, 1]))
    program = hipdnn_mlir.compile(b.model({y: [1, 4, 8, 8]}), target="gfx942+fusilli").model
    strides = [
        list(values)
        for executable in program.executables
        if executable.engine == FUSED
        for kind, attributes in executable.descriptors
        if kind == D.TENSOR_DESCRIPTOR
        for name, _, values in attributes
        if name == A.TENSOR_STRIDES
    ]
    assert [192, 64, 8, 1] in strides
    assert [64, 64, 8, 1] not in strides


def attended(
    kind: int, *, queries: int = 6, features: tuple[int, int] = (128, 128), masked: bool = False, causal: int = 0
) -> onnx.ModelProto:
    b = GraphBuilder("attention", opset=23)
    q, k = b.input("q", [2, 4, queries, features[0]], kind), b.input("k", [2, 4, 6, features[0]], kind)
    v = b.input("v", [2, 4, 6, features[1]], kind)
    y = b.op("Attention", q, k, v, *([b.input("mask", [queries, 6], kind)] if masked else []), is_causal=causal)
    return b.model({y: [2, 4, queries, features[1]]}, dtype=kind)


@pytest.mark.parametrize(
    ("kind", "target", "case"),
    every(
        3,
        [TensorProto.BFLOAT16, TensorProto.FLOAT],
        ["gfx942", "gfx950"],
        [{}, {"queries": 4}, {"features": (192, 128)}, {"causal": 1}, {"causal": 1, "features": (192, 128)}],
    ),
)
def test_attention_of_bf16_with_large_heads_is_the_assembly_kernels(
    kind: int, target: str, case: dict[str, Any]
) -> None:
    precision = {} if kind == TensorProto.BFLOAT16 else {"precision": "bf16"}
    found = steps(attended(kind, **case), target, **precision)
    assert [step for step in found if step != (KERNEL, "cast")] == [(ASM, "sdpa_fwd")]


@pytest.mark.parametrize(
    ("case", "kind", "target"),
    [
        ({"features": (64, 64)}, TensorProto.BFLOAT16, "gfx942"),
        ({"features": (192, 192)}, TensorProto.BFLOAT16, "gfx942"),
        ({"masked": True}, TensorProto.BFLOAT16, "gfx942"),
        ({"causal": 1, "queries": 4}, TensorProto.BFLOAT16, "gfx942"),
        ({}, TensorProto.FLOAT16, "gfx942"),
        ({}, TensorProto.FLOAT, "gfx950"),
        ({}, TensorProto.BFLOAT16, "gfx1100"),
        ({}, TensorProto.BFLOAT16, "gfx90a"),
    ],
)
def test_attention_that_the_assembly_kernels_do_not_have_is_products(
    case: dict[str, Any], kind: int, target: str
) -> None:
    engines = [engine for engine, _ in steps(attended(kind, **case), target)]
    assert ASM not in engines
    assert engines.count(MATMUL) == 2


@pytest.mark.parametrize(("causal", "bottom_right"), [(0, False), (1, True)])
def test_causal_attention_ends_at_the_bottom_right_for_the_assembly_kernels(causal: int, *, bottom_right: bool) -> None:
    program = hipdnn_mlir.compile(attended(TensorProto.BFLOAT16, causal=causal), target="gfx942").model
    (executable,) = program.executables
    (found,) = (
        {name: list(values) for name, _, values in attributes}
        for kind, attributes in executable.descriptors
        if kind == D.OPERATION_SDPA_FWD_DESCRIPTOR
    )
    assert found[A.SDPA_FWD_CAUSAL_MASK_EXT] == [False]
    assert found[A.SDPA_FWD_CAUSAL_MASK_BOTTOM_RIGHT_EXT] == [bottom_right]


def test_explain_knows_of_fusilli() -> None:
    report = hipdnn_mlir.explain(multiplied(op("Sigmoid")), target="gfx942+fusilli")
    assert [graph.engine for graph in report.graphs] == [FUSED]


@pytest.mark.parametrize("target", AMD)
def test_engines_have_the_names_that_hipdnn_registers(target: str) -> None:
    for name in (target, target + FUSILLI):
        libraries = {engine.name for engine in find_target(name).engines if not engine.is_generated}
        attention = {ASM} if target in ("gfx942", "gfx950") else set()
        assert libraries - {FUSILLI_ENGINE} == {"MIOPEN_ENGINE", "HIPBLASLT_ENGINE", "HIP_MLOPS_ENGINE"} | attention
        assert libraries - {FUSILLI_ENGINE} <= ENGINE_NAMES


@pytest.mark.parametrize("target", ["gfx942", "gfx942+fusilli"])
def test_what_does_not_lie_on_16_bytes_is_copied_for_a_provider(target: str) -> None:
    product, convolution = (MATMUL, "matmul + relu"), (CONV, "conv2d + add + relu")
    found = steps(models.slices(), target)
    assert {step for step in found if step[0] != KERNEL} == {product, convolution}
    place = found.index(product)
    assert found[place - 2 : place] == [(KERNEL, "copy")] * 2
    assert found[found.index(convolution) - 1] == (KERNEL, "copy")
    executables = hipdnn_mlir.compile(models.slices(), target=target).model.executables
    stated = [name for made in executables for _, body in made.descriptors for name, _, _ in body]
    assert A.TENSOR_BYTE_ALIGNMENT not in stated


def test_a_generated_kernel_reads_what_does_not_lie_on_16_bytes() -> None:
    b = GraphBuilder("part")
    first, last = b.split(b.input("x", [7]), [3, 4], axis=0)
    assert (KERNEL, "copy") not in (found := steps(b.model({b.op("Tanh", last): [4], first: [3]})))
    assert (KERNEL, "tanh") in found


def test_a_transposed_operand_stays_where_it_is_beside_one_that_is_copied() -> None:
    b = GraphBuilder("product")
    _, part = b.split(b.input("x", [1 + 48]), [1, 48], axis=0)
    rows = b.op("Reshape", part, b.constant([6, 8], np.int64))
    y = b.op("MatMul", rows, b.op("Transpose", b.input("w", [8, 8]), perm=[1, 0]))
    assert steps(b.model({y: [6, 8]})) == [(KERNEL, "copy"), (MATMUL, "matmul")]


def test_heads_are_copied_where_one_stride_does_not_reach_all_batches() -> None:
    def heads(batch: int) -> Steps:
        b = GraphBuilder("heads")
        x = b.op("Reshape", b.input("x", [batch, 6, 8]), b.constant([batch, 6, 2, 4], np.int64))
        x = b.op("Transpose", x, perm=[0, 2, 1, 3])
        y = b.op("MatMul", x, b.op("Transpose", x, perm=[0, 1, 3, 2]))
        return steps(b.model({y: [batch, 2, 6, 6]}))

    assert heads(1) == [(MATMUL, "matmul")]
    assert heads(2)[-1] == (MATMUL, "matmul")
    assert set(heads(2)[:-1]) == {(KERNEL, "copy")}


def normalized(dims: list[int], kind: int) -> onnx.ModelProto:
    b = GraphBuilder("norm")
    # Statistics that are known become a product and a sum.
    vectors = [b.input(name, dims[1:2], kind) for name in ("scale", "shift", "mean", "variance")]
    y = b.op("Relu", b.op("BatchNormalization", b.input("x", dims, kind), *vectors))
    return b.model({y: dims}, dtype=kind)


@pytest.mark.parametrize(
    ("dims", "kind", "wanted"),
    [
        ([2, 3, 4, 4], TensorProto.FLOAT, [(CONV, "batch_norm + relu")]),
        ([2, 3, 4], TensorProto.FLOAT, [(CONV, "batch_norm + relu")]),
        ([2, 3, 4, 4], TensorProto.FLOAT16, [(KERNEL, "batch_norm"), (KERNEL, "relu")]),  # statistics of f16
        ([2, 3, 2, 2, 2, 2], TensorProto.FLOAT, [(KERNEL, "batch_norm"), (KERNEL, "relu")]),
    ],
)
def test_miopen_takes_batch_norm_with_statistics_of_f32(dims: list[int], kind: int, wanted: Steps) -> None:
    assert steps(normalized(dims, kind)) == wanted


def scaled(tail: str | None, dims: list[int], kinds: tuple[int, int]) -> onnx.ModelProto:
    """Batch norm with an inverse deviation: hipDNN's operator."""
    x = helper.make_tensor_value_info("x", kinds[0], dims)
    vectors = [
        helper.make_tensor_value_info(name, kinds[1], dims[1:2]) for name in ("mean", "inverse", "scale", "bias")
    ]
    names = ["x", *(vector.name for vector in vectors)]
    nodes = [helper.make_node("BatchNormalizationInference", names, ["y" if tail is None else "t"], domain="hipdnn")]
    nodes += [] if tail is None else [helper.make_node(tail, ["t"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x, *vectors], [helper.make_tensor_value_info("y", kinds[0], dims)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("hipdnn", 1)])


NARROW, WIDE = TensorProto.FLOAT16, TensorProto.FLOAT


@pytest.mark.parametrize(
    ("tail", "dims", "kinds", "wanted"),
    [
        (None, [2, 3, 4, 4], (WIDE, WIDE), [(CONV, "batchnorm_inference")]),
        ("Relu", [2, 3, 4, 4], (WIDE, WIDE), [(CONV, "batchnorm_inference + relu")]),
        ("Relu", [2, 3, 4], (NARROW, WIDE), [(CONV, "batchnorm_inference + relu")]),
        ("LeakyRelu", [2, 3, 4, 4], (WIDE, WIDE), [(CONV, "batchnorm_inference"), (KERNEL, "relu")]),
        ("Relu", [2, 3, 4, 4], (NARROW, NARROW), [(KERNEL, "batchnorm_inference"), (KERNEL, "relu")]),
        ("Relu", [2, 3, 2, 2, 2, 2], (WIDE, WIDE), [(KERNEL, "batchnorm_inference"), (KERNEL, "relu")]),
    ],
)
def test_miopen_takes_batch_norm_with_an_inverse_deviation(
    tail: str | None, dims: list[int], kinds: tuple[int, int], wanted: Steps
) -> None:
    assert steps(scaled(tail, dims, kinds)) == wanted


@pytest.mark.parametrize(("kind", "engine"), [(TensorProto.FLOAT, "HIP_MLOPS_ENGINE"), (TensorProto.FLOAT16, KERNEL)])
def test_rms_norm_with_a_scale_of_f32_is_the_hip_kernel_providers(kind: int, engine: str) -> None:
    b = GraphBuilder("rms", opset=23)
    x = b.input("x", [2, 5, 8], kind)
    scale = b.constant(np.ones(8), np.float32 if kind == TensorProto.FLOAT else np.float16)
    y = b.op("RMSNormalization", x, scale)
    assert steps(b.model({y: [2, 5, 8]}, dtype=kind)) == [(engine, "rmsnorm")]


@pytest.mark.parametrize(("rows", "engine"), [(2**20 - 1, "HIP_MLOPS_ENGINE"), (2**20, KERNEL)])
def test_rms_norm_of_elements_that_32_bits_do_not_count_is_generated(rows: int, engine: str) -> None:
    b = GraphBuilder("rms", opset=23)
    y = b.op("RMSNormalization", b.input("x", [rows, 4096]), b.constant(np.ones(4096), np.float32))
    assert steps(b.model({y: [rows, 4096]})) == [(engine, "rmsnorm")]


ALONE: dict[str, Tail] = {
    "activation": op("Sigmoid"),
    "sum": lambda b, x: b.op("Add", x, x),
    "pooling": op("MaxPool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    "layer norm": lambda b, x: b.op("LayerNormalization", x, b.constant(np.ones(8), np.float32)),
}


@pytest.mark.parametrize("name", ALONE)
def test_what_a_generated_kernel_does_as_well_is_generated(name: str) -> None:
    b = GraphBuilder("alone", opset=20)
    y = ALONE[name](b, b.input("x", [1, 4, 8, 8]))
    assert [engine for engine, _ in steps(b.model({y: [1, 4, 8, 8]}))] == [KERNEL]


@pytest.mark.parametrize("target", AMD)
def test_rules_of_libraries_say_where_and_when_they_were_read(target: str) -> None:
    for engine in find_target(target + FUSILLI).engines:
        assert bool(engine.sources) != engine.is_generated
        for source in engine.sources:
            assert len(set(source.files)) == len(source.files) > 0
            assert date.fromisoformat(source.read) >= date(2026, 11, 24)


@pytest.mark.parametrize("target", every(3, AMD))
def test_whole_models_compile_into_one_program(target: str) -> None:
    for model in (
        models.mlp(),
        models.resnet(),
        models.encoder(layers=1, s=16, d=32, heads=4, ffn=64),
        models.mobilenet_v2(2, 32, rows=((1, 8, 1, 1), (4, 12, 2, 2)), stem=8, head=32, classes=10),
    ):
        engines = {engine for engine, _ in steps(model, target)}
        assert engines <= {CONV, MATMUL, KERNEL}


def test_attention_is_products_and_a_generated_softmax() -> None:
    found = steps(models.encoder(layers=1, s=16, d=32, heads=4, ffn=64))
    assert (KERNEL, "div + add + reduce + sub + exp + reduce + div") in found
    assert found.count((MATMUL, "matmul")) == 2


def test_intermediates_are_f32_and_a_bias_is_added_in_its_own_type() -> None:
    program = hipdnn_mlir.compile(convolved(op("Relu")), target="gfx942", precision="f16").model
    (executable,) = program.executables
    bodies = [(kind, {name: values for name, _, values in body}) for kind, body in executable.descriptors]
    tensors = [body for kind, body in bodies if kind == D.TENSOR_DESCRIPTOR]
    stored = {(body[A.TENSOR_IS_VIRTUAL][0], body[A.TENSOR_DATA_TYPE][0]) for body in tensors}
    assert stored == {(True, DataType.FLOAT), (False, DataType.HALF)}
    precisions = [body[A.POINTWISE_MATH_PREC] for kind, body in bodies if kind == D.OPERATION_POINTWISE_DESCRIPTOR]
    assert precisions == [[DataType.HALF], [DataType.FLOAT]]


def test_hipblaslt_is_told_the_zero_of_a_relu_and_the_factor_of_a_swish() -> None:
    for tail, name, value in ((op("Relu"), A.POINTWISE_RELU_LOWER_CLIP, 0.0), (swish, A.POINTWISE_SWISH_BETA, 1.0)):
        (executable,) = hipdnn_mlir.compile(multiplied(tail), target="gfx942").model.executables
        stated = [values for _, body in executable.descriptors for known, _, values in body if known == name]
        assert stated == [[value]]


def test_lines_are_images_of_height_one() -> None:
    b = GraphBuilder("line")
    y = b.op("Conv", b.input("x", [1, 4, 16]), b.normal([8, 4, 3], 0.3), strides=[2], pads=[1, 1], dilations=[1])
    (executable,) = hipdnn_mlir.compile(b.model({y: [1, 8, 8]}), target="gfx942").model.executables
    bodies = [{name: values for name, _, values in body} for _, body in executable.descriptors]
    assert [body[A.TENSOR_DIMENSIONS] for body in bodies if A.TENSOR_DIMENSIONS in body] == [
        [1, 4, 16, 1], [8, 4, 3, 1], [1, 8, 8, 1],
    ]  # fmt: skip
    (node,) = (body for body in bodies if A.CONVOLUTION_FILTER_STRIDES in body)
    assert node[A.CONVOLUTION_FILTER_STRIDES] == [2, 1]
    assert node[A.CONVOLUTION_PRE_PADDINGS] == node[A.CONVOLUTION_POST_PADDINGS] == [1, 0]
