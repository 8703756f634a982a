"""Outputs of which only the last valid position is read: what is computed for each position by itself is computed for that one."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from hipdnn_mlir_runtime.errors import ModelError

from .growing_caches import joined_caches

_EACH_POSITION = frozenset({"Add", "Cast", "Div", "Identity", "Mul", "Sub", "Tanh"})
"""Operators whose result at a position comes of their first operand there, if the second one is a number, or one for each column."""
_PRODUCTS = frozenset({"MatMul", "MatMulNBits"})
"""The same if the second one is a matrix, and worth to be done for one position alone."""


def keep_last_valid(model: onnx.ModelProto, masks: Mapping[str, str], where: str) -> onnx.ModelProto:
    """The model whose outputs `[batch, sequence, ...]` have one position, `[batch, 1, ...]`: the last valid one of each row.

    A mask `[batch, total]` counts the positions that are valid with those that came before. A row with fewer of them than the sequence has
    is padded on the right; in all others the last position is the last valid one. Where caches grow, a mask is as long as they are after
    the run, and its last element that is not 0 is that of the last valid position. The position is taken in front of the product that the
    output comes of, such as that with the vocabulary in a language model.

    Before: `logits = MatMul(x, w)`. After: `logits = MatMul(GatherND(x, Min(ReduceSum(mask), Shape(x)[1]) - 1), w)`; where caches grow,
    at `Max(ArgMax(mask) - (Shape(mask)[1] - Shape(x)[1]), 0)`.

    Args:
        model: not modified.
        masks: output -> the input that is its mask.
        where: the model's file, for messages.

    Raises:
        ModelError: there is no such output or input, or it has another rank.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for output, mask in masks.items():
        _keep(made.graph, output, mask, where)
    return made


def _keep(graph: onnx.GraphProto, output: str, mask: str, where: str) -> None:
    _check(graph.input, "input", mask, 2, where)
    result = _check(graph.output, "output", output, 3, where)
    path = _path(graph, output)
    dim = result.type.tensor_type.shape.dim[1]
    dim.Clear()
    dim.dim_value = 1
    other = {name for node in path for name in node.output}  # these have other sizes than declared
    for value in [value for value in graph.value_info if value.name in other]:
        graph.value_info.remove(value)
    nodes = list(graph.node)
    taken = f"{output}.last_valid"
    if path:
        source, path[-1].input[0] = path[-1].input[0], taken
        position = nodes.index(path[-1])
    else:  # of the output itself
        source, taken = f"{output}.every_position", output
        for node in nodes:
            for names in (node.input, node.output):
                names[:] = [source if name == output else name for name in names]
        position = len(nodes)
    taking = _taking(source, mask, taken, f"{output}.last_valid.", grows=bool(joined_caches(graph)))
    del graph.node[:]
    graph.node.extend([*nodes[:position], *taking, *nodes[position:]])
    _widen(graph, result)


def _widen(graph: onnx.GraphProto, result: onnx.ValueInfoProto) -> None:
    """Have an output of floats of 16 bits as float32: whoever reads logits computes with them, and NumPy takes its time to widen them."""
    kind = result.type.tensor_type
    if kind.elem_type not in (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16):
        return
    kind.elem_type = onnx.TensorProto.FLOAT
    narrow = f"{result.name}.narrow"
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [narrow if name == result.name else name for name in names]
    graph.node.append(
        helper.make_node("Cast", [narrow], [result.name], name=f"{result.name}.wide", to=onnx.TensorProto.FLOAT)
    )


def _check(values: Sequence[onnx.ValueInfoProto], kind: str, name: str, rank: int, where: str) -> onnx.ValueInfoProto:
    found = next((value for value in values if value.name == name), None)
    if found is None:
        names = ", ".join(repr(value.name) for value in values)
        raise ModelError(f"last_valid: no {kind} {name!r}", where=where, expected=names)
    dims = found.type.tensor_type.shape.dim
    if len(dims) != rank:
        expected = "[batch, sequence, ...]" if kind == "output" else "[batch, total]"
        raise ModelError(f"last_valid: the {kind} {name!r} has rank {len(dims)}", where=where, expected=expected)
    return found


def _path(graph: onnx.GraphProto, output: str) -> list[onnx.NodeProto]:
    """The nodes from an output back to the product that it comes of, each for each position by itself; none where there is no product."""
    makers = {name: node for node in graph.node for name in node.output}
    ranks = dict(_constant_ranks(graph))
    read = [name for node in graph.node for name in node.input] + [value.name for value in graph.output]
    path: list[onnx.NodeProto] = []
    name = output
    while (node := makers.get(name)) is not None and read.count(name) == 1:
        is_product = node.op_type in _PRODUCTS
        rest = [ranks.get(name, -1) for name in node.input[1:]]
        if any(rank < 0 or (rank > 1 and not is_product) for rank in rest):
            break
        path.append(node)
        name = node.input[0]
        if is_product:
            return path
        if node.op_type not in _EACH_POSITION:
            break
    return []


def _constant_ranks(graph: onnx.GraphProto) -> Iterator[tuple[str, int]]:
    yield "", 0  # an operand that is left out
    known = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    yield from known.items()
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            yield node.output[0], len(node.attribute[0].t.dims)
        elif node.op_type == "Transpose" and node.input[0] in known:
            yield node.output[0], known[node.input[0]]


def _taking(x: str, mask: str, result: str, prefix: str, *, grows: bool) -> Iterator[onnx.NodeProto]:
    """Nodes that take the last valid position of each row of x."""

    def named(name: str) -> str:
        return prefix + name

    def node(op: str, operands: Sequence[str], name: str, **attributes: Any) -> onnx.NodeProto:
        return helper.make_node(op, [*operands], [name], name=name, **attributes)

    def constant(name: str, value: Sequence[int]) -> onnx.NodeProto:
        return helper.make_node("Constant", [], [named(name)], value=numpy_helper.from_array(np.array(value, np.int64)))

    yield constant("one", [1])
    yield node("Shape", [x], named("length"), start=1, end=2)
    if grows:
        yield constant("first", [0])
        yield node("Cast", [mask], named("valid"), to=onnx.TensorProto.FLOAT)
        yield node("ArgMax", [named("valid")], named("end"), axis=1, select_last_index=1)
        yield node("Shape", [mask], named("total"), start=1, end=2)
        yield node("Sub", [named("total"), named("length")], named("past"))
        yield node("Sub", [named("end"), named("past")], named("place"))
        yield node("Max", [named("place"), named("first")], named("last"))
    else:
        yield node("Cast", [mask], named("valid"), to=onnx.TensorProto.INT64)
        yield node("ReduceSum", [named("valid"), named("one")], named("count"))
        yield node("Min", [named("count"), named("length")], named("end"))
        yield node("Sub", [named("end"), named("one")], named("last"))
    yield node("Unsqueeze", [named("last"), named("one")], named("places"))
    yield node("GatherND", [x, named("places")], result, batch_dims=1)
