"""What lies between the nodes that know how many rows count, as models of its own: there, rows that do not count must reach no others."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import numpy_helper

from ..constant_folding import MAX_SIZES
from ..subgraphs import all_nodes, drop_unused, reads
from .sizes import FEW, Dims, Sizes, Times
from .walk import Walk
from .writer import Cut


@dataclass(frozen=True)
class Piece:
    """A part of a model.

    Attributes:
        model: lists are inputs of it, whose numbers of rows are dynamic dimensions.
        symbols: their names -> what they are.
        outputs: those of it -> their dims; None where they are not known.
    """

    model: onnx.ModelProto
    symbols: Mapping[str, Times]
    outputs: Mapping[str, Dims | None]


class _Open(Exception):  # noqa: N818 - control flow
    """Raised where a value that is no list has sizes that are not known."""


def pieces(
    model: onnx.ModelProto, walk: Walk, constants: Sequence[onnx.TensorProto], *, is_static: bool
) -> list[Piece]:
    """The pieces of a model; one alone where it has dynamic dimensions, with all that is in front of the lists.

    Args:
        model: that was walked through.
        walk: through it.
        constants: the model's.
        is_static: whether it has no dynamic dimensions.
    """
    cutter = _Cutter(model, walk, constants)
    nodes = [item if isinstance(item, onnx.NodeProto) else item.node for item in walk.items if not _mixes(item)]
    behind = [node for node in nodes if any(map(walk.sizes.follows, node.output))]
    made = {name for node in behind for name in node.output if name}
    wanted = dict.fromkeys(name for item in walk.items if isinstance(item, Cut) for name in item.operands or ())
    wanted.update(dict.fromkeys(value.name for value in model.graph.output))
    outputs = [name for name in wanted if name in made]
    if not outputs:
        return []
    if is_static:
        try:
            return _distinct(cutter.piece(part, outputs) for part in _parts(behind, outputs))
        except _Open:
            pass
    return [cutter.piece(nodes, outputs, is_whole=True)]


def _mixes(item: onnx.NodeProto | Cut) -> bool:
    return isinstance(item, Cut) and item.operands is not None


def _parts(nodes: Sequence[onnx.NodeProto], outputs: Collection[str]) -> list[list[onnx.NodeProto]]:
    """The nodes that outputs follow from, those together that share values."""
    graph = onnx.GraphProto(node=nodes, output=[onnx.ValueInfoProto(name=name) for name in outputs])
    drop_unused(graph)
    above: dict[str, str] = {}  # the first value of a part is its name, which the others lead to

    def part_of(name: str) -> str:
        while above[name] != name:
            above[name] = name = above[above[name]]
        return name

    for node in graph.node:
        first, *others = filter(None, node.output)
        above.update((name, first) for name in (first, *others))
        for name in reads(node):
            if name in above:
                above[part_of(name)] = part_of(first)
    parts: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        parts.setdefault(part_of(next(filter(None, node.output))), []).append(node)
    return list(parts.values())


class _Cutter:
    """Makes pieces; constants are as the model has them."""

    def __init__(self, model: onnx.ModelProto, walk: Walk, constants: Sequence[onnx.TensorProto]) -> None:
        self._model = model
        self._sizes = walk.sizes
        self._constants = {tensor.name: tensor for tensor in (*constants, *walk.constants)}

    def piece(self, nodes: Sequence[onnx.NodeProto], outputs: Iterable[str], *, is_whole: bool = False) -> Piece:
        """The piece of some nodes, or of them all."""
        model, sizes = self._model, self._sizes
        made = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
        graph = made.graph
        graph.name = model.graph.name or "rows"
        graph.node.extend(nodes)
        own = {name for node in nodes for name in node.output}
        symbols: dict[str, Times] = {}
        for name in dict.fromkeys(name for node in nodes for name in reads(node) if name and name not in own):
            if sizes.follows(name):
                graph.input.append(_list(sizes, name, symbols))
            elif name in self._constants:
                graph.initializer.append(self._constants[name])
            elif (numbers := sizes.numbers(name)) is not None:
                graph.initializer.append(numpy_helper.from_array(numbers[FEW], name))
            elif not is_whole:
                graph.input.append(_value(sizes, name))
        if is_whole:
            graph.input.extend(value for value in model.graph.input if value.name not in self._constants)
        kept = {name: sizes.dims_of(name) for name in outputs if name in own}
        graph.output.extend(onnx.helper.make_tensor_value_info(name, sizes.kind_of(name), None) for name in kept)
        drop_unused(graph)
        return Piece(made, symbols, kept)


def _list(sizes: Sizes, name: str, symbols: dict[str, Times]) -> onnx.ValueInfoProto:
    dims = sizes.dims_of(name) or ()
    symbols.update((str(dim), dim) for dim in dims if isinstance(dim, Times))
    shown = [str(dim) if isinstance(dim, Times) else dim for dim in dims]
    return onnx.helper.make_tensor_value_info(name, sizes.kind_of(name), shown)


def _value(sizes: Sizes, name: str) -> onnx.ValueInfoProto:
    if not sizes.is_static(name):
        raise _Open(name)
    return onnx.ValueInfoProto(name=name, type=sizes.type_at(name, FEW))


def _distinct(found: Iterable[Piece]) -> list[Piece]:
    """Pieces that differ in more than names: what holds of one holds of the others."""
    return list({_unnamed(piece): piece for piece in reversed([*found])}.values())[::-1]


def _unnamed(piece: Piece) -> bytes:
    """A piece with names that tell nothing but what is the same."""
    given = piece.model.graph
    graph = onnx.GraphProto(node=given.node, input=given.input, output=given.output)
    for tensor in given.initializer:  # of large ones nothing but the dims
        is_small = math.prod(tensor.dims) <= MAX_SIZES
        graph.initializer.append(tensor if is_small else onnx.TensorProto(name=tensor.name, dims=tensor.dims))
    names: dict[str, str] = {"": ""}

    def number(name: str) -> str:
        return names.setdefault(name, str(len(names)))

    for value in (*graph.input, *graph.output, *graph.initializer):
        value.name = number(value.name)
    for value in graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = number(dim.dim_param)
    for node in all_nodes(graph):
        node.name = ""
        if node.op_type == "ConstantOfShape":  # whatever it is filled with
            del node.attribute[:]
        node.input[:] = map(number, node.input)
        node.output[:] = map(number, node.output)
    kept = [
        [number(str(dim)) if isinstance(dim, Times) else str(dim) for dim in dims or ()]
        for dims in piece.outputs.values()
    ]
    return bytes(graph.SerializeToString(deterministic=True)) + repr(kept).encode()
