"""Gathers and scatters of every element in order: exporters write `mask[batch, key]` and `mask[:] = x` so, with the indices of all."""

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import numpy_helper

from ..ops.evaluate import Array
from ..ops.strides import Dims
from .shape_inference import static_dims
from .subgraphs import drop_unused

_GATHERS = ("Gather", "GatherND")
_MOVES = (*_GATHERS, "ScatterND")
_MAX_NODES = 64


def without_gathers_in_order(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with reshapes in their place, and without what computed their indices.

    Before: `y = GatherND(mask[b, t], indices[b, 1, 1, t, 2])` with indices (0, 0), (0, 1), ...
    After: `y = Reshape(mask, [b, 1, 1, t])`. Likewise of the updates of ScatterND.

    Args:
        model: with static dims and inferred shapes; not modified.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    values = {value.name: static_dims(value) for value in (*graph.input, *graph.value_info, *graph.output)}
    makers = {name: node for node in graph.node for name in node.output}
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        dims, out = values.get(node.input[0]) if node.input else None, values.get(node.output[0])
        if node.op_type not in _MOVES or not dims or not out or not _takes_all(node, dims, out):
            continue
        indices = _known(node.input[1], makers, constants, made)
        if indices is None or not _is_in_order(node, indices, dims):
            continue
        shape = f"{node.output[0]}.shape"
        graph.initializer.append(numpy_helper.from_array(np.array(out, np.int64), shape))
        del node.attribute[:]
        node.input[:] = [node.input[0 if node.op_type in _GATHERS else 2], shape]
        node.op_type = "Reshape"
    drop_unused(graph)
    return made


def _takes_all(node: onnx.NodeProto, dims: Dims, out: Dims) -> bool:
    attributes = {attribute.name: attribute.i or attribute.s not in (b"", b"none") for attribute in node.attribute}
    if any(attributes.get(name) for name in ("axis", "batch_dims", "reduction")):
        return False
    return int(np.prod(dims)) == int(np.prod(out))


def _is_in_order(node: onnx.NodeProto, indices: Array, dims: Dims) -> bool:
    flat = indices.reshape(-1)
    count = dims[0]
    if node.op_type != "Gather":
        if not indices.ndim or not indices.size:
            return False
        looked_up = dims[: indices.shape[-1]]
        count = int(np.prod(looked_up))
        if indices.size != count * len(looked_up) or (indices < 0).any():
            return False
        flat = np.asarray(np.ravel_multi_index(tuple(indices.reshape(-1, len(looked_up)).T), looked_up, mode="clip"))
    return bool(np.array_equal(flat, np.arange(count)))


def _known(
    name: str, makers: Mapping[str, onnx.NodeProto], constants: Mapping[str, onnx.TensorProto], model: onnx.ModelProto
) -> Array | None:
    """A value that is computed from constants alone, by a few nodes."""
    needed: dict[str, onnx.NodeProto] = {}
    leaves: dict[str, onnx.TensorProto] = {}
    pending = [name]
    while pending:
        value = pending.pop()
        if value in constants:
            leaves[value] = constants[value]
        elif value not in makers or len(needed) == _MAX_NODES:
            return None
        elif value not in needed:
            needed[value] = makers[value]
            pending += [operand for operand in makers[value].input if operand]
    nodes = [node for node in model.graph.node if node.output and node.output[0] in needed]
    graph = onnx.helper.make_graph(nodes, "indices", [], [onnx.ValueInfoProto(name=name)], list(leaves.values()))
    from onnx.reference import ReferenceEvaluator  # importing it takes long, and most models need none

    single = onnx.helper.make_model(graph, opset_imports=list(model.opset_import), ir_version=model.ir_version)
    (found,) = ReferenceEvaluator(single).run(None, {})
    return np.asarray(found)
