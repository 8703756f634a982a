"""What lies between the nodes that know how many rows count, as models of its own: there, rows that do not count must reach no others."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import numpy_helper

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


def pieces(model: onnx.ModelProto, walk: Walk, *, is_static: bool) -> list[Piece]:
    """The pieces of a model; one alone where it has dynamic dimensions, with all that is in front of the lists.

    Args:
        model: that was walked through.
        walk: through it.
        is_static: whether it has no dynamic dimensions.
    """
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
            return _distinct(_piece(model, walk, part, outputs) for part in _parts(behind, outputs))
        except _Open:
            pass
    return [_piece(model, walk, nodes, outputs, is_whole=True)]


def _mixes(item: onnx.NodeProto | Cut) -> bool:
    return isinstance(item, Cut) and item.operands is not None


def _parts(nodes: Sequence[onnx.NodeProto], outputs: Collection[str]) -> list[list[onnx.NodeProto]]:
    """The nodes that outputs follow from, those together that share values."""
    graph = onnx.GraphProto(node=nodes, output=[onnx.ValueInfoProto(name=name) for name in outputs])
    drop_unused(graph)
    part_of: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        part = [node]
        for other in {id(part_of[name]): part_of[name] for name in reads(node) if name in part_of}.values():
            part = [*other, *part]
        for each in part:
            part_of.update((name, part) for name in each.output if name)
    places = {node.output[0]: index for index, node in enumerate(graph.node)}
    parts = {id(part): part for part in part_of.values()}.values()
    return [sorted(part, key=lambda node: places[node.output[0]]) for part in parts]


def _piece(
    model: onnx.ModelProto,
    walk: Walk,
    nodes: Sequence[onnx.NodeProto],
    outputs: Iterable[str],
    *,
    is_whole: bool = False,
) -> Piece:
    made = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
    graph, sizes = made.graph, walk.sizes
    graph.name = model.graph.name or "rows"
    graph.node.extend(nodes)
    own = {name for node in nodes for name in node.output}
    symbols: dict[str, Times] = {}
    for name in dict.fromkeys(name for node in nodes for name in reads(node) if name and name not in own):
        numbers = None if sizes.follows(name) else sizes.numbers(name)
        if sizes.follows(name):
            graph.input.append(_list(sizes, name, symbols))
        elif numbers is not None:
            graph.initializer.append(numpy_helper.from_array(numbers[FEW], name))
        elif not is_whole:
            graph.input.append(_value(sizes, name))
    if is_whole:
        graph.input.extend(value for value in model.graph.input if value.name not in own)
        graph.initializer.extend(
            tensor
            for tensor in (*model.graph.initializer, *walk.constants)
            if tensor.name not in {known.name for known in graph.initializer}
        )
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
    graph = onnx.GraphProto()
    graph.CopyFrom(piece.model.graph)
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
