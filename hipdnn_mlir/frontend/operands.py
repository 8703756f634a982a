"""Operands of ONNX nodes that have to be known at compile time: read from constants, or from the sizes that a node's result has."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from hipdnn_mlir_runtime.errors import Reject

from ..ir.view import KNOWN
from ..ops.registry import ONNX
from ..ops.strides import Dims
from ..ops.table import find
from .shape_inference import static_dims

Array = np.ndarray


def known_operand_names(graph: onnx.GraphProto) -> set[str]:
    """Values that some node's row wants to know at compile time."""
    return {node.input[position] for node in graph.node for position in _wanted(node)}


def attach_known_operands(model: onnx.ModelProto) -> None:
    """Turn operands that a row wants to know into attributes `operand_<position>`, flat lists of numbers, in place; idempotent.

    The node loses the input. An operand that is no constant stays, for the row to refuse or to read at run time.
    """
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        for position in _wanted(node):
            tensor = constants.get(node.input[position])
            if tensor is not None:
                numbers = numpy_helper.to_array(tensor).reshape(-1).tolist()
                kind = onnx.AttributeProto.FLOATS if _is_float(tensor) else onnx.AttributeProto.INTS
                name = f"{KNOWN}{position}"
                node.attribute.append(onnx.helper.make_attribute(name, numbers, attr_type=kind))
                node.input[position] = ""


def _wanted(node: onnx.NodeProto) -> list[int]:
    row = find(f"{ONNX}{node.op_type}") if node.domain in ("", "ai.onnx") else None
    return [position for position in row.known if position < len(node.input) and node.input[position]] if row else []


def _is_float(tensor: onnx.TensorProto) -> bool:
    return tensor.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16)


Derivation = Callable[[onnx.NodeProto, Dims, Sequence[Dims]], "Sequence[int] | None"]


def _as_result(_: onnx.NodeProto, __: Dims, results: Sequence[Dims]) -> Sequence[int]:
    return results[0]


def _repeats(_: onnx.NodeProto, data: Dims, results: Sequence[Dims]) -> Sequence[int] | None:
    """How often a Tile repeats each dim."""
    if 0 in data or len(data) != len(results[0]):
        return None
    return [after // before for before, after in zip(data, results[0], strict=True)]


def _parts(node: onnx.NodeProto, data: Dims, results: Sequence[Dims]) -> Sequence[int] | None:
    """The sizes that a Split gives its results."""
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
    fits = -len(data) <= axis < len(data) and all(len(dims) == len(data) for dims in results)
    return [dims[axis] for dims in results] if fits else None


def _reduced_axes(node: onnx.NodeProto, data: Dims, results: Sequence[Dims]) -> Sequence[int] | None:
    """The axes that a reduction with this result goes over, where only one answer fits."""
    result = results[0]
    flags = {attribute.name: attribute.i for attribute in node.attribute}
    if flags.get("keepdims", 1):
        if len(result) != len(data):
            return None
        # A dim of one element may be reduced or not: that matters to what an empty list of axes means, and to nothing else.
        return [axis for axis, size in enumerate(result) if size != data[axis]] or None
    found = list(_subsets(data, result, 0))
    return found[0] if len(found) == 1 and found[0] else None


def _subsets(data: Dims, result: Dims, axis: int) -> Iterator[list[int]]:
    """Sets of axes of `data` from `axis` on without which it has the dims `result`."""
    if len(data) < len(result):
        return
    if not data:
        yield []
        return
    if result and data[0] == result[0]:
        yield from _subsets(data[1:], result[1:], axis + 1)
    yield from ([axis, *rest] for rest in _subsets(data[1:], result, axis + 1))


_SHAPE_OPERANDS: dict[str, tuple[int, Derivation]] = {
    "Reshape": (1, _as_result), "Expand": (1, _as_result), "ConstantOfShape": (0, _as_result), "Tile": (1, _repeats),
    "Split": (1, _parts),
    **{f"Reduce{name}": (1, _reduced_axes) for name in
       ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")},
}  # fmt: skip
"""Operand that says no more than the result's sizes do, and how it follows from the sizes of data and result."""


_SIZING: dict[str, tuple[int, ...]] = {
    **{name: (position,) for name, (position, _) in _SHAPE_OPERANDS.items()},
    **dict.fromkeys(("AffineGrid", "CenterCropPad", "Col2Im", "OneHot", "Squeeze", "TopK", "Unsqueeze"), (1,)),
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), (0,)),
    "Range": (0, 1, 2),
    "Resize": (3,),
    "Slice": (2,),
}
"""Operands that the sizes of results follow from."""


def sizing_operands(node: onnx.NodeProto) -> list[str]:
    """The operands that decide what sizes a node's results have, where a program would take those that the model declares."""
    positions = _SIZING.get(node.op_type, ()) if node.domain in ("", "ai.onnx") else ()
    return [node.input[position] for position in positions if position < len(node.input) and node.input[position]]


def derive_shape_operands(model: onnx.ModelProto) -> None:
    """Replace operands that are computed, but follow from sizes that are known, by constants, in place.

    Squeeze and Unsqueeze with computed axes become reshapes.
    """
    graph = model.graph
    dims = _known_dims(graph)
    constants = {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type in ("Squeeze", "Unsqueeze") and _is_computed(node, 1, constants) and node.output[0] in dims:
            node.op_type = "Reshape"
        position, derive = _SHAPE_OPERANDS.get(node.op_type, (0, _as_result))
        if node.op_type not in _SHAPE_OPERANDS or node.domain not in ("", "ai.onnx"):
            continue
        if not _is_computed(node, position, constants) or not {node.input[0], *node.output} <= set(dims):
            continue
        numbers = derive(node, dims[node.input[0]], [dims[name] for name in node.output])
        if numbers is not None:
            name = f"{node.output[0]}.operand_{position}"
            graph.initializer.append(numpy_helper.from_array(np.array(numbers, np.int64), name))
            node.input[position] = name


def refused_axes(model: onnx.ModelProto) -> list[Reject]:
    """The nodes on which torch-mlir's conversion (20261001) dies: axes that are computed, no list, or of no dim, convolutions without any.

    Args:
        model: its values have their inferred types.
    """
    graph = model.graph
    dims = _known_dims(graph)
    constants = {tensor.name for tensor in graph.initializer}
    rejects = []
    for node in graph.node:
        if node.domain not in ("", "ai.onnx") or not node.input:
            continue
        reason = _refused_axis(node, len(dims.get(node.input[0], ()))) or _refused_ranks(node, dims)
        if reason:
            rejects.append(Reject(node.op_type, "attribute", reason, node.name))
        elif node.op_type.startswith("Reduce") and len(node.input) > 1 and node.input[1]:
            axes = dims.get(node.input[1], ())
            if _is_computed(node, 1, constants) and 0 not in axes:
                rejects.append(Reject(node.op_type, "operand", "its axes are not known at compile time", node.name))
            elif len(axes) != 1:
                rejects.append(Reject(node.op_type, "operand", f"its axes are of rank {len(axes)}", node.name))
    return rejects


_BEHIND_THE_LAST = ("Flatten", "OneHot")
"""Their axis is a place between dims."""
_AXIS_OF_FEW = ("DequantizeLinear", "QuantizeLinear")
"""Their axis means nothing where there is one scale."""


_CHANNELS = 2
"""Dims of batch and channels."""
_PER_DIM = {"dilations": 1, "kernel_shape": 1, "pads": 2, "strides": 1}
"""Numbers for each dim of an image; onnx's inference looks at those of other convolutions."""
_LEAST_RANK = {"Conv": 3, "ConvTranspose": 3, "DeformConv": 4, "TfIdfVectorizer": 1}
_OF_ONE_RANK = {"Concat": None, "Conv": 2, "ConvTranspose": 2, "DeformConv": 3}
"""How many operands have the same rank, None for all."""


def _refused_axis(node: onnx.NodeProto, rank: int) -> str | None:
    if rank < _LEAST_RANK.get(node.op_type, 0):
        return f"an operand of rank {rank}"
    for attribute in node.attribute:
        per_dim = _PER_DIM.get(attribute.name) if node.op_type == "DeformConv" else None
        if per_dim is not None and len(attribute.ints) != per_dim * (rank - _CHANNELS):
            return f"{len(attribute.ints)} {attribute.name} of an operand of rank {rank}"
    order = next((list(attribute.ints) for attribute in node.attribute if attribute.name == "perm"), None)
    if order is not None and sorted(order) != list(range(rank)):
        return f"perm {order} of an operand of rank {rank}"
    default = -1 if node.op_type == "LayerNormalization" else None
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), default)
    if axis is None or node.op_type in _AXIS_OF_FEW:
        return None
    places = rank + (node.op_type in _BEHIND_THE_LAST)
    return None if -places <= axis < places else f"axis {axis} of an operand of rank {rank}"


def _refused_ranks(node: onnx.NodeProto, dims: Mapping[str, Dims]) -> str | None:
    ranks = [len(dims[name]) for name in node.input if name in dims]
    if node.op_type == "Tile" and ranks[1:] not in ([], [1]):
        return f"repeats of rank {ranks[1]}"
    alike = set(ranks[: _OF_ONE_RANK.get(node.op_type, 0)])
    return f"operands of ranks {sorted(alike)}" if len(alike) > 1 else None


def _known_dims(graph: onnx.GraphProto) -> dict[str, Dims]:
    values = (*graph.input, *graph.value_info, *graph.output)
    dims = {value.name: known for value in values if (known := static_dims(value)) is not None}
    return dims | {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}


def _is_computed(node: onnx.NodeProto, position: int, constants: set[str]) -> bool:
    return position < len(node.input) and bool(node.input[position]) and node.input[position] not in constants
