"""Programs for GPUs, compiled on a machine without one: what they consist of, and what is refused."""

import json
import re
from ctypes.util import find_library

import numpy as np
import pytest
from onnx import TensorProto

import hipdnn_mlir
import models
from hipdnn_mlir.ops.emitter import Operand
from hipdnn_mlir.ops.graph import Graph
from hipdnn_mlir.ops.regions import emit_region
from hipdnn_mlir.ops.samples.case import accept, i32, kind
from hipdnn_mlir.ops.spec import TensorArg
from hipdnn_mlir.targets.fusilli import FusilliGraph
from hipdnn_mlir.targets.nvidia import FusedAttention
from hipdnn_mlir.targets.rocm import AsmAttention
from hipdnn_mlir.targets.table import find_target
from hipdnn_mlir.targets.target import Rule
from hipdnn_mlir_runtime.abi import Attribute, Descriptor
from hipdnn_mlir_runtime.dtypes import BF16, F16, F32, DType
from hipdnn_mlir_runtime.errors import DeviceError, ModelError
from models import GraphBuilder

pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install '.[gpu]'")


def summaries(program: hipdnn_mlir.Program) -> list[str]:
    return [program.model.summary(step) for step in program.model.steps]


def test_a_classifier_is_graphs_and_code_when_compiled_for_a_gpu() -> None:
    program = hipdnn_mlir.compile(models.resnet(), target="sm_90")
    assert {kernel.summary for kernel in program.model.kernels} >= {"pool"}
    assert all(".target sm_90" in kernel.code["image"] for kernel in program.model.kernels)
    assert {executable.engine for executable in program.model.executables} == {"CUDNN_ENGINE"}


def test_every_argument_of_code_is_a_tensor_of_its_kernel() -> None:
    program = hipdnn_mlir.compile(models.encoder(layers=1, s=16, d=32, heads=4, ffn=64), target="sm_80")
    assert program.model.kernels
    for kernel in program.model.kernels:
        assert sorted(kernel.code["arguments"]) == list(range(len(kernel.tensors)))
        assert f".visible .entry {kernel.code['function']}(" in kernel.code["image"]


@pytest.mark.parametrize(
    ("precision", "s", "d", "is_fused"),
    [
        ("f16", 16, 32, True),
        ("f16", 16, 16, True),
        ("bf16", 10, 64, True),
        ("model", 16, 64, False),
        ("f16", 10, 32, True),
        ("f16", 520, 64, True),
        ("f16", 513, 64, False),
    ],
)
def test_attention_is_one_operation_where_cudnn_has_it_or_code_is_written(
    precision: str, s: int, d: int, *, is_fused: bool
) -> None:
    proto = models.encoder(layers=1, s=s, d=d, heads=4, ffn=64)
    found = summaries(hipdnn_mlir.compile(proto, target="sm_90", precision=precision))
    assert ("sdpa_fwd" in found) == is_fused
    assert any("exp + reduce" in summary for summary in found) != is_fused


@pytest.mark.parametrize(
    ("features", "keys", "batch", "mask_type", "engine"),
    [
        (32, 256, 4, F16, "GENERATED"),
        (32, 256, 32, F16, "CUDNN_ENGINE"),
        (32, 256, 32, F32, "GENERATED"),
        (32, 256, 32, None, "GENERATED"),
        (32, 64, 128, F16, "GENERATED"),
        (64, 64, 4, None, "GENERATED"),
        (80, 64, 4, F16, "CUDNN_ENGINE"),
        (32, 264, 4, F16, "CUDNN_ENGINE"),
        (32, 264, 4, None, "CUDNN_ENGINE"),
        (32, 265, 4, F16, "GENERATED"),
    ],
)
def test_attention_is_generated_where_it_takes_less_time_or_cudnn_has_none(
    features: int, keys: int, batch: int, mask_type: DType | None, engine: str
) -> None:
    q = kind(F16, batch, 3, keys, features)
    mask = None if mask_type is None else kind(mask_type, 1, 3, keys, keys)
    view = accept("aten.scaled_dot_product_attention", "", [q, q, q, mask, 0.0, False, None, False], q).view()
    operands = {
        arg.key: Operand(arg.type.static_dims(), arg.type.dtype) for arg in view.args if isinstance(arg, TensorArg)
    }
    graph = emit_region([(view, ["y"])], operands, [("y", q)])
    assert isinstance(graph, Graph)
    found = find_target("sm_90").engine_for(graph)
    assert found is not None
    assert found.name == engine


@pytest.mark.parametrize(
    "rule", [FusedAttention(), AsmAttention(), FusilliGraph()], ids=lambda rule: type(rule).__name__
)
def test_attention_with_counts_or_a_band_is_taken_by_no_library(rule: Rule) -> None:
    q, cache, counts = (kind(BF16, 2, 4, 3, 128), kind(BF16, 2, 4, 16, 128), i32(2))
    view = accept("CachedAttention", "", [q, cache, cache, counts, counts], q).view()
    operands = {arg.key: Operand(arg.type.static_dims(), arg.type.dtype) for arg in view.args}
    graph = emit_region([(view, ["y"])], operands, [("y", q)])
    assert isinstance(graph, Graph)
    assert rule.refuses(graph) == "takes no counts of queries and keys"
    (node,) = graph.nodes
    for name in (Attribute.OPERATION_SDPA_FWD_SEQ_LEN_QDESC, Attribute.OPERATION_SDPA_FWD_SEQ_LEN_KVDESC):
        del node.inputs[name]
    assert rule.refuses(graph) == "takes no bounds beside the diagonal"
    beside = (Attribute.SDPA_FWD_RIGHT_BOUND_EXT, Attribute.SDPA_FWD_PADDING_MASK_EXT)
    node.attributes = [given for given in node.attributes if given[0] not in beside]
    assert rule.refuses(graph) is None


def test_sizes_have_to_be_fixed_when_there_is_code() -> None:
    message = (
        r"code for sm_90 is made for exact sizes, but these dimensions of the model are dynamic: n; "
        r".*--bucket n=1,8,32, or .*--shape n=1"
    )
    with pytest.raises(ModelError, match=message):
        hipdnn_mlir.compile(models.resnet(), target="sm_90", shapes={"image": ["n", 3, 32, 32]})


@pytest.mark.skipif(find_library("cuda") is not None, reason="needs a machine without NVIDIA's driver")
def test_a_program_for_a_gpu_needs_a_driver() -> None:
    program = hipdnn_mlir.compile(models.mlp(), target="sm_90")
    with pytest.raises(DeviceError, match=r"cannot open libcuda\.so\.1.*install NVIDIA's driver"):
        program.session()


def test_a_program_for_another_port_is_refused() -> None:
    program = hipdnn_mlir.compile(models.mlp(), target="sm_90")
    with pytest.raises(hipdnn_mlir.HipdnnMlirError, match=r"compiled for 'sm_90', port 'host' runs 'host'"):
        program.session(port="host")


@pytest.mark.parametrize(("channels", "filled"), [(3, 8), (8, 8), (9, 16)])
def test_channels_are_filled_up(channels: int, filled: int) -> None:
    b = GraphBuilder("conv")
    x = b.op("Conv", b.input("x", [1, channels, 8, 8], TensorProto.FLOAT16), _half(b, [4, channels, 3, 3]))
    program = hipdnn_mlir.compile(b.model({x: [1, 4, 6, 6]}, dtype=TensorProto.FLOAT16), target="sm_90")
    assert 4 * filled * 9 in {weight.size for weight in program.weights.values()}


@pytest.mark.parametrize(("apart", "steps"), [(15, 1), (16, 2)])
def test_nothing_is_fused_into_filters_that_cudnn_fuses_slowly(apart: int, steps: int) -> None:
    b = GraphBuilder("conv")
    x, w = b.input("x", [1, 64, 40, 40], TensorProto.FLOAT16), _half(b, [64, 64, 3, 3])
    y = b.op("Relu", b.op("Conv", x, w, dilations=[apart, apart], pads=[apart] * 4))
    program = hipdnn_mlir.compile(b.model({y: [1, 64, 40, 40]}, dtype=TensorProto.FLOAT16), target="sm_90")
    assert len([step for step in summaries(program) if step not in ("copy", "cast")]) == steps


@pytest.mark.parametrize(("groups", "steps"), [(4, 1), (8, 2)])
def test_nothing_is_fused_behind_many_groups(groups: int, steps: int) -> None:
    b = GraphBuilder("conv")
    x, w = b.input("x", [1, 128, 16, 16], TensorProto.FLOAT16), _half(b, [128, 128 // groups, 3, 3])
    y = b.op("Relu", b.op("Conv", x, w, group=groups, pads=[1] * 4))
    program = hipdnn_mlir.compile(b.model({y: [1, 128, 16, 16]}, dtype=TensorProto.FLOAT16), target="sm_90")
    assert len([step for step in summaries(program) if step not in ("copy", "cast")]) == steps


def test_a_fused_convolution_writes_channels_last_whatever_the_order_of_the_output() -> None:
    b = GraphBuilder("output")
    x = b.op("Conv", b.input("x", [1, 64, 16, 16], TensorProto.FLOAT16), _half(b, [64, 64, 3, 3]), pads=[1] * 4)
    model = b.model({b.op("Relu", x): [1, 64, 16, 16]}, dtype=TensorProto.FLOAT16)
    assert summaries(hipdnn_mlir.compile(model, target="sm_90")) == ["copy", "conv2d + relu", "copy"]


def test_a_constant_that_is_added_to_a_convolution_lies_as_its_result_does() -> None:
    b = GraphBuilder("patches")
    x = b.op("Conv", b.input("x", [1, 8, 64, 64], TensorProto.FLOAT16), _half(b, [64, 8, 16, 16]), strides=[8, 8])
    x = b.op("Reshape", b.op("Add", x, _half(b, [1, 64, 7, 7])), b.constant(np.array([1, 64, 49]), "int64", "dims"))
    model = b.model({b.op("Transpose", x, perm=[0, 2, 1]): [1, 49, 64]}, dtype=TensorProto.FLOAT16)
    (graph,) = json.loads(hipdnn_mlir.compile(model, target="sm_90").text)["executables"]
    tensors = [
        {name: values for name, _, values in given}
        for kind, given in graph["descriptors"]
        if kind == Descriptor.TENSOR_DESCRIPTOR
    ]
    assert {tensor[Attribute.TENSOR_STRIDES][1] for tensor in tensors} == {1}


def _half(b: GraphBuilder, dims: list[int]) -> str:
    return b.constant(b.rng.standard_normal(dims), "float16", "weight")


def test_a_value_that_is_stored_and_broadcast_is_a_kernel_of_its_own() -> None:
    b = GraphBuilder("mask")
    shared = b.op("Neg", b.input("m", [2, 1, 4, 8]))
    model = b.model({shared: [2, 1, 4, 8], b.op("Add", b.input("x", [2, 3, 4, 8]), shared): [2, 3, 4, 8]})
    assert sorted(summaries(hipdnn_mlir.compile(model, target="sm_90"))) == ["add", "neg"]


def test_products_of_exact_f32_are_graphs_of_cublas_with_what_is_added() -> None:
    b = GraphBuilder("product")
    w, bias = (b.constant(b.rng.standard_normal(dims), "float32", "w") for dims in ([16, 24], [24]))
    y = b.op("Add", b.op("Add", b.op("MatMul", b.input("x", [2, 8, 16]), w), bias), b.input("r", [2, 8, 24]))
    program = hipdnn_mlir.compile(b.model({b.op("Relu", y): [2, 8, 24]}), target="sm_90")
    assert [executable.engine for executable in program.model.executables] == ["CUBLASLT_ENGINE"]
    assert summaries(program) == ["matmul + add + add + relu"]


def filter_strides(target: str) -> tuple[int, ...]:
    """Of the second operand of the first convolution with more than one input channel."""
    program = hipdnn_mlir.compile(models.resnet(), target=target).model.to_dict()
    graphs = [e for e in program["executables"] if e["summary"].startswith("conv2d")]
    tensors = [
        {name: value for name, _, value in attributes}
        for graph in graphs
        for kind, attributes, *_ in graph["descriptors"]
        if kind == Descriptor.TENSOR_DESCRIPTOR
    ]
    filters = [t for t in tensors if t[Attribute.TENSOR_DIMENSIONS][2:] == [3, 3]]
    return tuple(filters[0][Attribute.TENSOR_STRIDES])


def test_filters_lie_channels_last_for_cudnn_alone() -> None:
    assert filter_strides("sm_90")[1] == 1
    assert filter_strides("host")[-1] == 1
    assert filter_strides("gfx942")[-1] == 1


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
@pytest.mark.parametrize("bits", [16, 4])
def test_a_layer_of_a_decoder_is_five_kernels_for_one_token(bits: int, target: str) -> None:
    program = hipdnn_mlir.compile(models.decoder(2, bits=bits), target=target, shapes={"s": 1})
    found = summaries(program)
    matmul = "matmul" if bits == 16 else "block_scale_dequantize + matmul"
    layer = [
        f"rmsnorm + {matmul}", "decode_attention", f"{matmul} + add",
        f"rmsnorm + {matmul} + {matmul} + swish + mul", f"{matmul} + add",
    ]  # fmt: skip
    assert found[-5:] == layer
    assert len(found) <= 2 * len(layer) + 6  # what both layers compute from the position, once
    assert sum(found.count(step) for step in set(layer)) == 2 * len(layer)
    assert not program.model.executables


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_attention_is_written_out_for_several_tokens(target: str) -> None:
    found = summaries(hipdnn_mlir.compile(models.decoder(1), target=target, shapes={"s": 8}))
    assert "decode_attention" not in found
    assert found.count("cache_update") == 2
    assert ("sdpa_fwd" in found) == (target == "sm_90")


def test_programs_of_few_and_of_many_tokens_have_one_layout_of_weights() -> None:
    programs = [hipdnn_mlir.compile(models.decoder(1), target="sm_90", shapes={"s": s}) for s in (1, 64)]
    one, many = ({name: w for name, w in p.weights.items() if w.ndim == 2 and "literal" not in name} for p in programs)
    assert len(one) >= 5
    for name in one.keys() | many.keys():
        np.testing.assert_array_equal(one[name], many[name])


@pytest.mark.parametrize(
    ("rows", "activation", "steps"),
    [(32, "Tanh", 1), (64, "Tanh", 2), (64, "Relu", 1), (128, "Tanh", 1)],
    ids=str,
)
def test_an_epilogue_is_cudnns_where_it_has_rows_enough(rows: int, activation: str, steps: int) -> None:
    b = GraphBuilder("product")
    product = b.op("MatMul", b.input("x", [rows, 256], TensorProto.FLOAT16), _half(b, [256, 64]))
    model = b.model({b.op(activation, product): [rows, 64]}, dtype=TensorProto.FLOAT16)
    program = hipdnn_mlir.compile(model, target="sm_90")
    assert len(summaries(program)) == steps
    assert bool(program.model.executables) == (rows > 32)  # few rows are generated code, whatever follows


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("sm_90+fusilli", "behind it$"),
        ("gfx942:sramecc+:xnack-", "; write gfx942, without modes$"),
        ("gfx1036", "; there is no code for gfx1036: run on the CPU, target 'host' or the provider's device of"),
        ("sm_89", "; a GPU of sm_89 runs programs for sm_80$"),
        ("sm_120", "; a GPU of sm_120 runs programs for sm_90$"),
        ("sm_75", "; there is no code for sm_75: "),
    ],
)
def test_an_unknown_target_is_an_error_that_says_what_to_do(name: str, hint: str) -> None:
    with pytest.raises(ModelError, match=f"unknown target '{re.escape(name)}': expected one of host, sm_80.*{hint}"):
        find_target(name)
