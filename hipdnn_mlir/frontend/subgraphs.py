"""Branches and bodies of nodes."""

from collections.abc import Iterator, Mapping

import onnx


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs that a node has as attributes."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_nodes(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and of all graphs inside them."""
    for node in graph.node:
        yield node
        for inner in subgraphs(node):
            yield from all_nodes(inner)


def name_default_domain(model: onnx.ModelProto) -> None:
    """Write ONNX's own domain as "" everywhere, in place: "ai.onnx" means the same."""
    holders = (model, *model.functions)
    nodes = [*all_nodes(model.graph), *(each for function in model.functions for each in all_nodes(function))]
    for named in (*nodes, *(entry for holder in holders for entry in holder.opset_import)):
        if named.domain == "ai.onnx":
            named.domain = ""


def reads(node: onnx.NodeProto) -> Iterator[str]:
    """Names of the values that a node reads, those that its subgraphs take from outside among them."""
    yield from node.input
    for inner in subgraphs(node):
        for each in inner.node:
            yield from reads(each)
        yield from (value.name for value in inner.output)


def drop_unused(graph: onnx.GraphProto) -> None:
    """Drop nodes whose results nothing reads, in place."""
    used = {value.name for value in graph.output}
    kept = []
    for node in reversed(graph.node):
        if used.intersection(node.output):
            used.update(reads(node))
            kept.append(node)
    del graph.node[:]
    graph.node.extend(reversed(kept))


def name_apart(graph: onnx.GraphProto) -> None:
    """Rename values of a graph's subgraphs whose names stand for other values in other subgraphs, in place.

    ONNX allows that of the two branches of an If, and its shape inference takes what one branch has for what the other has.
    """
    taken = {value for node in graph.node for value in node.output}
    for node in graph.node:
        for inner in subgraphs(node):
            _rename(inner, {}, taken)


def _rename(graph: onnx.GraphProto, outer: Mapping[str, str], taken: set[str]) -> None:
    own = {value.name for value in (*graph.input, *graph.initializer)}
    own |= {name for node in graph.node for name in node.output if name}
    names = {**outer, **{name: name for name in own}}
    for name in sorted(own & taken):
        count = 1
        while (fresh := f"{name}.{count}") in taken | own:
            count += 1
        names[name] = fresh
    taken |= {names[name] for name in own}
    for node in graph.node:
        for operands in (node.input, node.output):
            operands[:] = [names.get(name, name) for name in operands]
        for inner in subgraphs(node):
            _rename(inner, names, taken)
    for value in (*graph.input, *graph.initializer, *graph.value_info, *graph.output):
        value.name = names.get(value.name, value.name)
