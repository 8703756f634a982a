"""Block scale quantize and dequantize: the axis of the blocks is two dims, and a block is what is reduced."""

from hipdnn_mlir_runtime.dtypes import F32

from ...ops.blocks import DEQUANTIZE, QUANTIZE, blocks_of
from ...ops.graph import Graph, Tensor
from ...ops.spec import Refusal
from ..core.kernel import Operand
from .body import Body

_GREATEST = 127.0


def is_block_scale(graph: Graph) -> bool:
    """Whether the graph is one such node."""
    return len(graph.nodes) == 1 and graph.nodes[0].type in (QUANTIZE, DEQUANTIZE)


def block_scale_body(graph: Graph) -> Body:
    """The body of a graph for which `is_block_scale`; its operands are `graph.operands()`, in that order. Raises Refusal."""
    (node,) = graph.nodes
    axis, size = blocks_of(node)
    tensors = [graph.tensors[index] for index in (*node.inputs.values(), *node.outputs.values())]
    if tensors[0].dims[axis] % size:
        raise Refusal("shape", f"blocks of {size} do not divide a dim of {tensors[0].dims[axis]}")
    return _body(tensors, tensors[2 if node.type == QUANTIZE else 1], axis, size)


def _body(tensors: list[Tensor], scale: Tensor, axis: int, size: int) -> Body:
    wide = tensors[0].dims
    body = Body((*wide[:axis], wide[axis] // size, size, *wide[axis + 1 :]), reduced=frozenset({axis + 1}))
    for tensor in tensors:
        inner = 0 if tensor is scale else tensor.strides[axis]
        outer = tensor.strides[axis] * (1 if tensor is scale else size)
        strides = (*tensor.strides[:axis], outer, inner, *tensor.strides[axis + 1 :])
        body.operands.append(
            Operand("out" if tensor.operand is None else "in", tensor.dtype, body.dims, strides, tensor.alignment)
        )
    x = body.cast(body.append("load", tensors[0].dtype, data=0), F32)
    if tensors[1] is scale:
        product = body.apply("mul", x, body.cast(body.append("load", scale.dtype, data=1), F32))
        body.append("store", tensors[2].dtype, body.cast(product, tensors[2].dtype), data=2)
        body.reduced = frozenset()
        return body
    greatest = body.append("reduce", F32, body.apply("abs", x), data="max")
    factor = body.apply("div", greatest, body.constant(_GREATEST, F32))
    body.append("store", scale.dtype, body.cast(factor, scale.dtype), data=2)
    zero = body.constant(0.0, F32)
    nearest = body.apply("round", body.apply("div", x, factor))
    y = body.apply("where", body.apply("eq", factor, zero), zero, nearest)
    body.append("store", tensors[1].dtype, body.cast(y, tensors[1].dtype), data=1)
    return body
