"""A hipDNN operation graph as the compiler builds it: tensors, nodes, and their encoding as backend descriptors."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hipdnn_mlir_runtime.abi import Attribute, AttributeType, Descriptor, Pointwise
from hipdnn_mlir_runtime.dtypes import DType

from .strides import Dims, Strides

JsonDescriptor = list[Any]
DEFAULT_ALIGNMENT = 16
"""Bytes; the alignment hipDNN assumes of a tensor that does not say otherwise."""


@dataclass
class Tensor:
    """One tensor of a graph.

    Attributes:
        dims: logical sizes (n c h w); never empty, a scalar has dims (1,).
        strides: in elements.
        operand: index of the region operand it reads, or None.
        result: index of the region result it writes, or None.
        value: raw bytes of a baked scalar, or None.
        alignment: bytes its address is a multiple of.
    """

    dims: Dims
    dtype: DType
    strides: Strides = ()
    operand: int | None = None
    result: int | None = None
    value: bytes | None = None
    alignment: int = DEFAULT_ALIGNMENT

    @property
    def is_virtual(self) -> bool:
        """Whether it lives inside the graph only."""
        return not self.has_pointer and self.value is None

    @property
    def has_pointer(self) -> bool:
        """Whether it is an operand or a result of the graph."""
        return self.operand is not None or self.result is not None


TensorKey = Attribute | tuple[Attribute, int]
"""An attribute that holds one tensor, or one that holds a list with the position in it."""


@dataclass
class Node:
    """One operation: descriptor type, tensors by attribute (indices into Graph.tensors), other attributes in setting order."""

    type: Descriptor
    inputs: dict[TensorKey, int]
    outputs: dict[TensorKey, int]
    attributes: list[tuple[Attribute, AttributeType, Any]]

    def get(self, attribute: Attribute, default: Any = None) -> Any:
        """First value of an attribute, or `default` where it is not set."""
        for name, _, values in self.attributes:
            if name == attribute:
                return values[0]
        return default


@dataclass
class Graph:
    """Nodes in topological order over a list of tensors; `compute` is the accumulation type.

    It is not changed any more once its texts have been read.
    """

    compute: DType
    tensors: list[Tensor] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)

    def producer(self, tensor: int) -> int | None:
        """Index of the node that writes `tensor`, or None for an external or baked one."""
        for index, node in enumerate(self.nodes):
            if tensor in node.outputs.values():
                return index
        return None

    def operands(self) -> list[dict[str, Any]]:
        """Tensors with a pointer, in uid order: {"uid", "role": "in" | "out", "index": region operand or result}."""
        used = self._used()
        found = []
        for uid, index in enumerate(used, 1):
            tensor = self.tensors[index]
            if tensor.operand is not None:
                found.append({"uid": uid, "role": "in", "index": tensor.operand})
            elif tensor.result is not None:
                found.append({"uid": uid, "role": "out", "index": tensor.result})
        return found

    def by_uid(self) -> list[tuple[int, "Tensor"]]:
        """The tensors that some node names, with their uids."""
        return [(uid, self.tensors[index]) for uid, index in enumerate(self._used(), 1)]

    def _used(self) -> list[int]:
        """Indices of the tensors that some node names, in order of first appearance (uid = position + 1)."""
        seen: dict[int, None] = {}
        for node in self.nodes:
            for index in (*node.inputs.values(), *node.outputs.values()):
                seen.setdefault(index)
        return list(seen)

    @cached_property
    def operands_json(self) -> str:
        """`operands` as JSON."""
        return _compact(self.operands())

    @cached_property
    def descriptors_json(self) -> str:
        """The descriptor list of docs/program-format.md as JSON: equal graphs have equal texts."""
        used = self._used()
        position = {index: place for place, index in enumerate(used)}
        encoded = [_encode_tensor(self.tensors[index], uid) for uid, index in enumerate(used, 1)]
        encoded += [_encode_node(node, position) for node in self.nodes]
        first_op = len(used)
        encoded.append(_encode_graph(self.compute, list(range(first_op, first_op + len(self.nodes)))))
        return _compact(encoded)

    def digest(self) -> str:
        """First 16 hex digits of SHA-256 over the descriptors: equal graphs have equal digests."""
        return hashlib.sha256(self.descriptors_json.encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        """Name of its executable: equal graphs have equal names."""
        return f"g_{self.digest()}"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def json_number(value: float) -> float | str:
    """A float as program files spell it: JSON has no infinities."""
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def _encode_tensor(tensor: Tensor, uid: int) -> JsonDescriptor:
    if tensor.dtype.hipdnn is None:
        raise ValueError(f"hipDNN has no data type for {tensor.dtype}")
    a, t = Attribute, AttributeType
    attributes: list[Any] = [
        [a.TENSOR_UNIQUE_ID, t.INT64, [uid]],
        [a.TENSOR_DATA_TYPE, t.DATA_TYPE, [tensor.dtype.hipdnn]],
        [a.TENSOR_DIMENSIONS, t.INT64, list(tensor.dims)],
        [a.TENSOR_STRIDES, t.INT64, list(tensor.strides)],
        [a.TENSOR_IS_VIRTUAL, t.BOOLEAN, [tensor.is_virtual]],
    ]
    if tensor.alignment != DEFAULT_ALIGNMENT and tensor.value is None and not tensor.is_virtual:
        attributes.append([a.TENSOR_BYTE_ALIGNMENT, t.INT64, [tensor.alignment]])
    if tensor.value is not None:
        attributes.append([a.TENSOR_VALUE_EXT, t.CHAR, {"hex": tensor.value.hex()}])
    return [Descriptor.TENSOR_DESCRIPTOR, attributes]


def _encode_node(node: Node, position: dict[int, int]) -> JsonDescriptor:
    lists: dict[Attribute, list[int]] = {}
    for key, index in (*node.inputs.items(), *node.outputs.items()):
        lists.setdefault(key[0] if isinstance(key, tuple) else key, []).append(position[index])
    attributes: list[Any] = [[name, AttributeType.BACKEND_DESCRIPTOR, indices] for name, indices in lists.items()]
    for name, kind, values in node.attributes:
        shown = [json_number(v) if isinstance(v, float) else v for v in values] if isinstance(values, list) else values
        attributes.append([name, kind, shown])
    return [node.type, attributes]


def _encode_graph(compute: DType, operations: Sequence[int]) -> JsonDescriptor:
    if compute.hipdnn is None:
        raise ValueError(f"hipDNN has no data type for {compute}")
    a, t = Attribute, AttributeType
    kind = [compute.hipdnn]
    return [
        Descriptor.OPERATIONGRAPH_DESCRIPTOR,
        [
            [a.OPERATIONGRAPH_OPS, t.BACKEND_DESCRIPTOR, list(operations)],
            [a.OPERATIONGRAPH_COMPUTE_DATA_TYPE_EXT, t.DATA_TYPE, kind],
            [a.OPERATIONGRAPH_INTERMEDIATE_DATA_TYPE_EXT, t.DATA_TYPE, kind],
            [a.OPERATIONGRAPH_IO_DATA_TYPE_EXT, t.DATA_TYPE, kind],
            [a.OPERATIONGRAPH_HANDLE, t.HANDLE, None],
        ],
    ]


def summary(graph: Graph) -> str:
    """The nodes of a graph in one line: "conv2d + add + relu"."""
    return " + ".join(_short_name(graph, node) for node in graph.nodes)


def _short_name(graph: Graph, node: Node) -> str:
    if node.type == Descriptor.OPERATION_POINTWISE_DESCRIPTOR:
        mode = Pointwise(node.get(Attribute.POINTWISE_MODE)).name.lower().removesuffix("_fwd")
        kinds = {graph.tensors[index].dtype for index in (*node.inputs.values(), *node.outputs.values())}
        return mode if mode != "identity" else "copy" if len(kinds) == 1 else "cast"
    rank = len(graph.tensors[next(iter(node.outputs.values()))].dims)
    names = {
        Descriptor.OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR: f"conv{rank - 2}d",
        Descriptor.OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR: f"conv_transpose{rank - 2}d",
        Descriptor.OPERATION_MATMUL_DESCRIPTOR: "matmul",
        Descriptor.OPERATION_REDUCTION_DESCRIPTOR: "reduce",
        Descriptor.OPERATION_RESAMPLE_FWD_DESCRIPTOR: "pool",
        Descriptor.OPERATION_LAYERNORM_DESCRIPTOR_EXT: "layer_norm",
        Descriptor.OPERATION_BATCHNORM_INFERENCE_VARIANCE_DESCRIPTOR_EXT: "batch_norm",
    }
    kind = Descriptor(node.type)
    return names.get(kind, kind.name.removeprefix("OPERATION_").split("_DESCRIPTOR")[0].lower())
