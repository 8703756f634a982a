"""Block scale quantize and dequantize as a program: the axis of the blocks is two dims, and a block is what is reduced."""

from ...dtypes import F32
from ...ops.blocks import DEQUANTIZE, QUANTIZE, blocks_of
from ...ops.graph import Graph, Tensor
from ...ops.spec import Refusal
from ..core.kernel import Operand
from .program import Program

_GREATEST = 127.0


def is_block_scale(graph: Graph) -> bool:
    """Whether the graph is one such node."""
    return len(graph.nodes) == 1 and graph.nodes[0].type in (QUANTIZE, DEQUANTIZE)


def block_scale_program(graph: Graph) -> Program:
    """The program of a graph for which `is_block_scale`; its operands are `graph.operands()`, in that order. Raises Refusal."""
    (node,) = graph.nodes
    axis, size = blocks_of(node)
    tensors = [graph.tensors[index] for index in (*node.inputs.values(), *node.outputs.values())]
    if tensors[0].dims[axis] % size:
        raise Refusal("shape", f"blocks of {size} do not divide a dim of {tensors[0].dims[axis]}")
    return _program(tensors, tensors[2 if node.type == QUANTIZE else 1], axis, size)


def _program(tensors: list[Tensor], scale: Tensor, axis: int, size: int) -> Program:
    wide = tensors[0].dims
    program = Program((*wide[:axis], wide[axis] // size, size, *wide[axis + 1 :]), reduced=frozenset({axis + 1}))
    for tensor in tensors:
        inner = 0 if tensor is scale else tensor.strides[axis]
        outer = tensor.strides[axis] * (1 if tensor is scale else size)
        strides = (*tensor.strides[:axis], outer, inner, *tensor.strides[axis + 1 :])
        program.operands.append(
            Operand("out" if tensor.operand is None else "in", tensor.dtype, program.dims, strides, tensor.alignment)
        )
    x = program.cast(program.append("load", tensors[0].dtype, data=0), F32)
    if tensors[1] is scale:
        product = program.apply("mul", x, program.cast(program.append("load", scale.dtype, data=1), F32))
        program.append("store", tensors[2].dtype, program.cast(product, tensors[2].dtype), data=2)
        program.reduced = frozenset()
        return program
    greatest = program.append("reduce", F32, program.apply("abs", x), data="max")
    factor = program.apply("div", greatest, program.constant(_GREATEST, F32))
    program.append("store", scale.dtype, program.cast(factor, scale.dtype), data=2)
    zero = program.constant(0.0, F32)
    nearest = program.apply("round", program.apply("div", x, factor))
    y = program.apply("where", program.apply("eq", factor, zero), zero, nearest)
    program.append("store", tensors[1].dtype, program.cast(y, tensors[1].dtype), data=1)
    return program
