"""A GEMV, a vector times a matrix, with its epilogue: each element of the result is a row that a reduction folds."""

from dataclasses import replace

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import Descriptor as D
from hipdnn_mlir_runtime.dtypes import F32

from ...ops.graph import Graph, Tensor
from ...ops.spec import Refusal
from ...ops.strides import Strides
from .body import Body
from .graph_body import GIVEN, graph_body


def is_gemv(graph: Graph) -> bool:
    """Whether the graph starts with a GEMV, a vector times a matrix whose columns lie along memory."""
    node = graph.nodes[0]
    if node.type != D.OPERATION_MATMUL_DESCRIPTOR:
        return False
    b, c = graph.tensors[node.inputs[A.OPERATION_MATMUL_BDESC]], graph.tensors[node.outputs[A.OPERATION_MATMUL_CDESC]]
    return all(size == 1 for size in c.dims[:-1]) and b.strides[-2] == 1


def gemv_body(graph: Graph) -> Body:
    """The body of a graph for which `is_gemv`; its operands are `graph.operands()`, in that order. Raises Refusal.

    Positions are those of the epilogue, and behind them the inner dim of the GEMV, which is reduced.
    """
    node = graph.nodes[0]
    a, b = (node.inputs[name] for name in (A.OPERATION_MATMUL_ADESC, A.OPERATION_MATMUL_BDESC))
    if a == b:
        raise Refusal("operand", "matmul of a tensor with itself")
    epilogue = graph_body(graph, given=node)
    inner = graph.tensors[a].dims[-1]
    body = Body((*epilogue.dims, inner), reduced=frozenset({len(epilogue.dims)}), rounds=epilogue.rounds)
    factors = [_strides(graph.tensors[a], len(body.dims), -1), _strides(graph.tensors[b], len(body.dims), -2)]
    for number, operand in enumerate(epilogue.operands):  # the first two are those of the first node
        strides = factors[number] if number < len(factors) else (*operand.strides, 0)
        body.operands.append(replace(operand, dims=body.dims, strides=strides))
    numbers: list[int] = []
    for step in epilogue.code:
        if step.name == GIVEN:
            loaded = [body.append("load", graph.tensors[x].dtype, data=place) for place, x in enumerate((a, b))]
            product = body.apply("mul", *(body.cast(value, F32) for value in loaded))
            numbers.append(body.cast(body.append("reduce", F32, product, data="add"), step.dtype))
        else:
            numbers.append(body.append(step.name, step.dtype, *(numbers[o] for o in step.operands), data=step.data))
    return body


def _strides(factor: Tensor, rank: int, inner: int) -> Strides:
    """Strides of a factor along the positions: of one row, its columns where the inner dim is the last but one, the inner dim."""
    along_columns = factor.strides[-1] if inner == -2 and factor.dims[-1] > 1 else 0
    return (*(0,) * (rank - 2), along_columns, factor.strides[inner])
