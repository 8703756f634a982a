"""Operations and tensors that no sample of the op table has: custom operations, those of training, baked and passed scalars."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import installed
import runtime_programs
from engine_plugin.graph_bytes import TABLES, configuration, graph_bytes, slots
from engine_plugin.loader import LOG_CALLBACK, Array, Plugin, PluginError, engine_id
from hipdnn_mlir_runtime.abi import Attribute, AttributeType, DataType, Descriptor

QUIET = LOG_CALLBACK(lambda *_: None)


def one_node(name: str, values: dict[str, Any], dims: dict[str, tuple[int, ...]]) -> list[Any]:
    """A graph of one operation: `values` by attribute, and a tensor of f32 for each attribute in `dims`."""
    graph = runtime_programs.Graph(name)
    row = next(node for node in TABLES["nodes"] if node["name"] == name)
    attributes: list[list[Any]] = [[Attribute[row["compute_type"]], AttributeType.DATA_TYPE, [DataType.FLOAT]]]
    for attribute, sizes in dims.items():
        index = graph.tensor("f32", sizes, "in")
        attributes.append([Attribute[attribute], AttributeType.BACKEND_DESCRIPTOR, [index]])
    for attribute, value in values.items():
        kind = AttributeType.CONVOLUTION_MODE if attribute.endswith("CONV_MODE") else AttributeType.INT64
        attributes.append([Attribute[attribute], kind, value])
    graph._operation(int(Descriptor[row["descriptor"]]), attributes)
    return list(graph.to_json()["descriptors"])


def training_graphs() -> dict[str, list[Any]]:
    """One of each operation of training, with consistent dims."""
    x, row, batch = (2, 3, 8, 8), (1, 3, 1, 1), (2, 1, 1, 1)
    weights = (4, 3, 3, 3)
    head, statistics = (1, 2, 4, 8), (1, 2, 4, 1)
    filters = "OPERATION_CONVOLUTION_BWD_FILTER_"
    norm = {
        "BATCHNORM": {
            "DY": x,
            "X": x,
            "MEAN": row,
            "INV_VARIANCE": row,
            "SCALE": row,
            "DX": x,
            "DSCALE": row,
            "DBIAS": row,
        },
        "LAYERNORM": {
            "DY": x,
            "X": x,
            "SCALE": (1, *x[1:]),
            "MEAN": batch,
            "INV_VARIANCE": batch,
            "DX": x,
            "DSCALE": (1, *x[1:]),
            "DBIAS": (1, *x[1:]),
        },
        "RMSNORM": {"DY": x, "X": x, "SCALE": row, "INV_RMS": batch, "DX": x, "DSCALE": row, "DBIAS": row},
    }
    graphs = {
        "ConvolutionWrwAttributes": one_node(
            "ConvolutionWrwAttributes",
            {
                "CONVOLUTION_PRE_PADDINGS": [1, 1],
                "CONVOLUTION_POST_PADDINGS": [1, 1],
                "CONVOLUTION_FILTER_STRIDES": [1, 1],
                "CONVOLUTION_DILATIONS": [1, 1],
                "CONVOLUTION_CONV_MODE": [1],
            },
            {f"{filters}X": x, f"{filters}DY": (2, 4, 8, 8), f"{filters}DW": weights},
        ),
        "SdpaBackwardAttributes": one_node(
            "SdpaBackwardAttributes",
            {"SDPA_BWD_LEFT_BOUND_EXT": [3]},
            {
                f"OPERATION_SDPA_BWD_{name}_EXT": statistics if name == "STATS" else head
                for name in ("Q", "K", "V", "O", "DO", "STATS", "DQ", "DK", "DV")
            },
        ),
    }
    for kind, name in (
        ("BATCHNORM", "BatchnormBackwardAttributes"),
        ("LAYERNORM", "LayernormBackwardAttributes"),
        ("RMSNORM", "RMSNormBackwardAttributes"),
    ):
        values = {"LAYERNORM_BACKWARD_NORMALIZED_DIM_COUNT_EXT": [3]} if kind == "LAYERNORM" else {}
        dims = {f"OPERATION_{kind}_BACKWARD_{tensor}_EXT": sizes for tensor, sizes in norm[kind].items()}
        graphs[name] = one_node(name, values, dims)
    return graphs


@pytest.fixture
def said(plugin: Plugin) -> Any:
    """The log's lines."""
    lines: list[str] = []
    callback = LOG_CALLBACK(lambda _, line: lines.append(line.decode()))
    plugin.call("hipdnnPluginSetLoggingCallback", callback)
    yield lines
    plugin.call("hipdnnPluginSetLoggingCallback", QUIET)


@pytest.mark.parametrize("name", training_graphs())
def test_operation_of_training_is_read_whole_and_left_by_every_engine(
    plugin: Plugin, said: list[str], name: str
) -> None:
    assert plugin.applicable(graph_bytes(training_graphs()[name])) == []
    assert len(said) == len(plugin.engines())
    assert all("does not take the graph" in line for line in said)


def test_operation_that_is_not_known_has_no_engine(plugin: Plugin, said: list[str]) -> None:
    graph = bytearray(graph_bytes(training_graphs()["RMSNormBackwardAttributes"]))
    place = 1 + next(i for i, node in enumerate(TABLES["nodes"]) if node["name"] == "RMSNormBackwardAttributes")
    # The union's type lies in the node's table, which says where.
    root = struct.unpack_from("<I", graph)[0]
    nodes = _field(graph, root, slots("Graph")["nodes"])
    vector = nodes + struct.unpack_from("<I", graph, nodes)[0]
    node = vector + 4 + struct.unpack_from("<I", graph, vector + 4)[0]
    kind = _field(graph, node, slots("Node")["attributes"])
    assert graph[kind] == place
    graph[kind] = 22
    assert plugin.applicable(bytes(graph)) == []
    assert said[-1].endswith("operation 22 of hipDNN's list is not known")


def _field(raw: bytearray, table: int, slot: int) -> int:
    vtable = table - struct.unpack_from("<i", raw, table)[0]
    return table + int(struct.unpack_from("<H", raw, vtable + 4 + 2 * slot)[0])


VALUES = {
    "f32": (np.float32, [0.1, -np.inf, 3e-42]),
    "f16": (np.float16, [0.1, 65504, -6e-8, 1e-5, np.nan]),
    "bf16": (ml_dtypes.bfloat16, [0.1, 3e38, -1e-40, np.inf]),
    "f64": (np.float64, [0.1, 1e300]),
    "i8": (np.int8, [-7, 127]),
    "u8": (np.uint8, [200]),
    "i32": (np.int32, [-7, 2**31 - 1]),
    "i64": (np.int64, [2**60 + 1]),
}


@pytest.mark.parametrize(("dtype", "value"), [(d, v) for d, (_, values) in VALUES.items() for v in values])
def test_baked_value_arrives_as_it_was_written(plugin: Plugin, dtype: str, value: float) -> None:
    numpy = VALUES[dtype][0]
    graph = runtime_programs.Graph("fill")
    baked, y = graph.tensor(dtype, [1]), graph.tensor(dtype, [3], "out")
    raw = np.asarray(value, numpy).tobytes()
    graph.descriptors[baked][1][4][2] = [False]
    graph.descriptors[baked][1].append([int(Attribute.TENSOR_VALUE_EXT), int(AttributeType.CHAR), {"hex": raw.hex()}])
    graph.pointwise("IDENTITY", [baked], y)
    bytes_ = graph_bytes(graph.to_json()["descriptors"])
    result = np.zeros(3, numpy)
    with plugin.context(configuration(engine_id("HOST_ROWWISE_ENGINE")), bytes_) as context:
        context.execute({2: result})
    assert result.tobytes() == 3 * raw


class Tensor(ctypes.Structure):
    """hipdnnHostTensor_ext_t."""

    _fields_ = (
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.c_void_p),
        ("data", ctypes.POINTER(ctypes.c_float)),
    )


class Call(ctypes.Structure):
    """hipdnnHostCustomCall_ext_t."""

    _fields_ = (
        ("inputs", ctypes.POINTER(Tensor)),
        ("input_count", ctypes.c_size_t),
        ("outputs", ctypes.POINTER(Tensor)),
        ("output_count", ctypes.c_size_t),
        ("attributes", ctypes.POINTER(ctypes.c_char)),
        ("attribute_bytes", ctypes.c_size_t),
    )


EXECUTE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Call), ctypes.c_int, ctypes.c_void_p)


class CustomOp(ctypes.Structure):
    """hipdnnHostCustomOp_ext_t."""

    _fields_ = (("refuses", ctypes.c_void_p), ("execute", EXECUTE), ("user", ctypes.c_void_p))


def test_custom_operation_runs_with_its_bytes(plugin: Plugin) -> None:
    seen: list[bytes] = []

    def scale(call: Any, threads: int, user: Any) -> int:
        del threads, user
        one = call.contents
        seen.append(one.attributes[: one.attribute_bytes])
        for i in range(one.inputs[0].dims[0]):
            one.outputs[0].data[i] = one.inputs[0].data[i] * one.inputs[1].data[i]
        return 0

    execute = EXECUTE(scale)
    host = ctypes.CDLL(str(installed.library("host")))
    assert host.hipdnnHostRegisterCustomOp_ext(b"test.scale", ctypes.byref(CustomOp(None, execute, None))) == 0
    graph = runtime_programs.Graph("custom")
    a, b, y = (graph.tensor("f32", [4], role) for role in ("in", "in", "out"))
    attributes = [
        [Attribute.OPERATION_CUSTOM_OP_INPUTS_EXT, AttributeType.BACKEND_DESCRIPTOR, [a, b]],
        [Attribute.OPERATION_CUSTOM_OP_OUTPUTS_EXT, AttributeType.BACKEND_DESCRIPTOR, [y]],
        [Attribute.OPERATION_CUSTOM_OP_ID_EXT, AttributeType.CHAR, "test.scale"],
        [Attribute.OPERATION_CUSTOM_OP_DATA_EXT, AttributeType.CHAR, {"hex": "00ff10"}],
        [Attribute.CUSTOM_OP_COMP_TYPE_EXT, AttributeType.DATA_TYPE, [DataType.FLOAT]],
    ]
    graph._operation(int(Descriptor.OPERATION_CUSTOM_OP_DESCRIPTOR_EXT), attributes)
    raw = graph_bytes(graph.to_json()["descriptors"])
    try:
        assert plugin.applicable(raw) == ["HOST_CUSTOM_OP_ENGINE"]
        arrays: dict[int, Array] = {i: np.arange(4, dtype=np.float32) + i for i in (1, 2, 3)}
        with plugin.context(configuration(engine_id("HOST_CUSTOM_OP_ENGINE")), raw) as context:
            context.execute(arrays)
        np.testing.assert_array_equal(arrays[3], arrays[1] * arrays[2])
        assert seen == [b"\x00\xff\x10"]
    finally:
        host.hipdnnHostRegisterCustomOp_ext(b"test.scale", None)
    with pytest.raises(PluginError, match=r"test\.scale"):
        plugin.workspace_bytes(configuration(engine_id("HOST_CUSTOM_OP_ENGINE")), raw)


def test_passed_scalar_is_read_at_execution(plugin: Plugin) -> None:
    """From any address: a caller's own number is aligned to its size, not to a device's rules."""
    graph = runtime_programs.Graph("scale")
    x, factor, y = graph.tensor("f32", [4], "in"), graph.tensor("f32", [1], "in"), graph.tensor("f32", [4], "out")
    graph.pointwise("MUL", [x, factor], y)
    name, kind = int(Attribute.TENSOR_IS_RUNTIME_PASS_BY_VALUE_EXT), int(AttributeType.BOOLEAN)
    graph.descriptors[factor][1].append([name, kind, [True]])
    raw = graph_bytes(graph.to_json()["descriptors"])
    memory = np.array([0, 2.5, 4], np.float32)
    arrays: dict[int, Array] = {1: np.arange(4, dtype=np.float32), 3: np.zeros(4, np.float32)}
    with plugin.context(configuration(engine_id("HOST_ROWWISE_ENGINE")), raw) as context:
        for place in (1, 2):
            context.execute(arrays | {2: memory[place:]})
            np.testing.assert_array_equal(arrays[3], arrays[1] * memory[place])


def test_ragged_tensor_is_left_to_others(plugin: Plugin, said: list[str]) -> None:
    graph = runtime_programs.Graph("ragged")
    x, y = graph.tensor("f32", [4], "in"), graph.tensor("f32", [4], "out")
    graph.pointwise("NEG", [x], y)
    raw = graph_bytes(graph.to_json()["descriptors"], ragged={1: 2})
    assert plugin.applicable(raw) == []
    assert "tensor 1 has ragged offsets" in said[-1]
