"""A model whose data decides how many rows it has, in the forms that a program is made of."""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import onnx

from ...ops.registry import HIPDNN_DOMAIN
from ..constant_folding import MAX_SIZES
from ..prepare import name_nodes
from ..shape_inference import infer_shapes
from ..subgraphs import name_apart
from .pieces import Piece, pieces
from .sizes import MOST, Dims, Times
from .sources import is_source
from .walk import Walk
from .writer import Cut


@dataclass(frozen=True)
class Rows:
    """A list.

    Attributes:
        node: the name of the node that makes it.
        operator: as ONNX calls it.
        bound: the most rows there can be; None where that depends on dynamic dimensions.
    """

    node: str
    operator: str
    bound: int | None


class Counted:
    """A model with lists.

    Args:
        model: without large constants, with inferred types.
        constants: all of them.
        declared: what the model declares of its values.
        symbols: names of its dynamic dimensions.

    Attributes:
        rows: numbers of rows -> their lists.
        outputs: results behind rows -> their dims; None where they are not known.
        pieces: what lies between the nodes that know how many rows count.

    Raises:
        Unfollowed: nothing says how rows go through a node.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        constants: Sequence[onnx.TensorProto],
        declared: Iterable[onnx.ValueInfoProto],
        symbols: Collection[str],
    ) -> None:
        self._walk = walk = Walk(model, declared, symbols)
        self.rows = {
            name: Rows(node.name, node.op_type, walk.sizes.at(Times(name), MOST) if not symbols else None)
            for name, node in walk.write.rows.items()
        }
        results = [value.name for value in model.graph.output]
        self.outputs: dict[str, Dims | None] = {n: walk.sizes.dims_of(n) for n in results if walk.sizes.follows(n)}
        self.pieces: Sequence[Piece] = pieces(model, walk, constants, is_static=not symbols)

    def bounded(self, model: onnx.ModelProto, numbers: Iterable[Times]) -> onnx.ModelProto:
        """The model where every list fills its bound; the numbers of rows asked for are its last outputs.

        Args:
            model: as the user has it, with all constants; not modified.
            numbers: of rows.
        """
        walk = self._walk
        made = onnx.ModelProto()
        made.CopyFrom(model)
        graph = made.graph
        del graph.node[:], graph.value_info[:]
        for item in walk.items:
            graph.node.extend(item.nodes if isinstance(item, Cut) else [item])
        walk.write.begin(graph.node[-1])
        names = [walk.write.number(dim) for dim in numbers]
        graph.node.extend(walk.write.finish().nodes)
        graph.initializer.extend(walk.constants)
        for value in graph.output:
            value.type.tensor_type.ClearField("shape")
        graph.output.extend(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT64, [1]) for name in names)
        made.opset_import.append(onnx.helper.make_opsetid(HIPDNN_DOMAIN, 1))
        return made


def counted(model: onnx.ModelProto, symbols: Collection[str]) -> Counted | None:
    """A model's lists; None where it has none.

    Args:
        model: not modified.
        symbols: names of its dynamic dimensions, which it may declare of rows, too, whatever their number is.

    Raises:
        onnx.shape_inference.InferenceError: shapes do not fit.
        Unfollowed: nothing says how rows go through a node.
    """
    if not any(is_source(node) for node in model.graph.node):
        return None
    declared = (*model.graph.value_info, *model.graph.output)
    return Counted(infer_shapes(_without_constants(model), []), model.graph.initializer, declared, symbols)


def _without_constants(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy with names for all nodes, in which large constants are inputs."""
    made = onnx.ModelProto(ir_version=max(model.ir_version, 8), functions=model.functions)
    made.opset_import.extend(model.opset_import)
    if all(entry.domain != HIPDNN_DOMAIN for entry in made.opset_import):
        made.opset_import.append(onnx.helper.make_opsetid(HIPDNN_DOMAIN, 1))
    graph, given = made.graph, model.graph
    graph.name = given.name
    graph.node.extend(given.node)
    name_apart(graph)
    name_nodes(graph)
    initialized = {tensor.name for tensor in given.initializer}
    graph.input.extend(value for value in given.input if value.name not in initialized)
    graph.output.extend(
        onnx.helper.make_tensor_value_info(v.name, v.type.tensor_type.elem_type, None) for v in given.output
    )
    for tensor in given.initializer:
        is_far = tensor.data_location == onnx.TensorProto.EXTERNAL
        if is_far or math.prod(tensor.dims) > MAX_SIZES:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
        else:
            graph.initializer.append(tensor)
    return made
