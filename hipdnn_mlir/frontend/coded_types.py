"""Values of types of few bits: what moves them moves their codes, a byte each, and nothing else takes them."""

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from hipdnn_mlir_runtime.errors import Reject

from ..ir.imported import Weights
from ..ops.registry import HIPDNN_DOMAIN
from .onnx_types import CODED_BY_ONNX
from .own_operators import BITS, CODES, OF_CODES

_MOVES = frozenset({"Flatten", "Identity", "Reshape", "Shape", "Size", "Squeeze", "Transpose", "Unsqueeze"})


def refused_codes(model: onnx.ModelProto) -> list[Reject]:
    """The nodes that would compute with codes as if they were numbers.

    Args:
        model: its values have their inferred types.
    """
    kinds = {value.name: value.type.tensor_type.elem_type for value in _values(model.graph)}
    kinds |= {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    rejects = []
    for node in model.graph.node:
        if node.op_type in _MOVES or _is_marker(node):
            continue
        found = [CODED_BY_ONNX[kinds[n]] for n in (*node.input, *node.output) if kinds.get(n) in CODED_BY_ONNX]
        if found:
            rejects.append(Reject(node.op_type, "dtype", f"values of type {found[0].onnx}", node.name))
    return rejects


def write_codes(model: onnx.ModelProto, weights: Weights) -> None:
    """Make u8 of all values of types of few bits, in place."""
    graph = model.graph
    for value in _values(graph):
        if value.type.tensor_type.elem_type in CODED_BY_ONNX:
            value.type.tensor_type.elem_type = TensorProto.UINT8
    for tensor in graph.initializer:
        if tensor.data_type in CODED_BY_ONNX:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).view(np.uint8), tensor.name))
    coded = {dtype.numpy for dtype in CODED_BY_ONNX.values()} if weights else set()
    weights.update({name: array.view(np.uint8) for name, array in weights.items() if array.dtype in coded})
    for node in graph.node:
        if _is_marker(node):
            node.op_type, node.domain = "Identity", ""
            del node.attribute[:]
        elif (node.domain, node.op_type) == (HIPDNN_DOMAIN, BITS):
            node.op_type, node.domain = "BitCast", ""


def _values(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    yield from graph.input
    yield from graph.value_info
    yield from graph.output


def _is_marker(node: onnx.NodeProto) -> bool:
    return node.domain == HIPDNN_DOMAIN and node.op_type in (CODES, OF_CODES)
