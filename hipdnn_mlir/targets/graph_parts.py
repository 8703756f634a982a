"""Questions about a graph that the rules of several libraries ask."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import Descriptor as D
from hipdnn_mlir_runtime.abi import Pointwise as P
from hipdnn_mlir_runtime.dtypes import BF16, F16, F32

from ..ops.graph import Graph, Node, Tensor
from ..ops.strides import Dims, Strides, packed
from .rules import POINTWISE

FLOATS = frozenset({F32, F16, BF16})
IMAGE_RANK = 4
"""Dims of an image of two spatial dims: batch and channels before them."""
CLIPS = (A.POINTWISE_RELU_LOWER_CLIP, A.POINTWISE_RELU_UPPER_CLIP, A.POINTWISE_RELU_LOWER_CLIP_SLOPE)
"""Attributes of a ReLU: limits below and above, slope below."""
_COUNTS = (A.OPERATION_SDPA_FWD_SEQ_LEN_QDESC, A.OPERATION_SDPA_FWD_SEQ_LEN_KVDESC)
_BOUNDS = (A.SDPA_FWD_LEFT_BOUND_EXT, A.SDPA_FWD_RIGHT_BOUND_EXT)
Refusal = str | None
"""Why a graph is not taken; None where it is."""


def copied(graph: Graph) -> Graph:
    """A graph whose tensors and nodes may be changed."""
    nodes = [Node(n.type, dict(n.inputs), dict(n.outputs), list(n.attributes)) for n in graph.nodes]
    return Graph(graph.compute, [replace(tensor) for tensor in graph.tensors], nodes)


def named_tensors(graph: Graph) -> list[Tensor]:
    """The tensors that nodes name, but baked numbers."""
    return [tensor for _, tensor in graph.by_uid() if tensor.value is None]


def starts_with(graph: Graph, *types: D) -> bool:
    """Whether the first node is of one of the types, and all others are pointwise."""
    return bool(graph.nodes) and graph.nodes[0].type in types and all(n.type == POINTWISE for n in graph.nodes[1:])


def mode_of(node: Node) -> P | None:
    """The mode of a pointwise node."""
    return P(node.get(A.POINTWISE_MODE)) if node.type == POINTWISE else None


def has_any(node: Node, names: Sequence[A]) -> bool:
    """Whether a node has one of some attributes."""
    return any(node.get(name) is not None for name in names)


def result_of(node: Node) -> int:
    """The tensor that a node writes first."""
    return next(iter(node.outputs.values()))


def other_operand(node: Node, index: int) -> int:
    """The operand of a binary node beside a given one."""
    operands: list[int] = list(node.inputs.values())
    return operands[1] if operands[0] == index else operands[0]


def counts_or_bounds(node: Node) -> Refusal:
    """Why attention is not taken that knows when it runs how many queries and keys there are, or has a band round its diagonal."""
    if any(name in node.inputs for name in _COUNTS):
        return "takes no counts of queries and keys"
    return "takes no bounds beside the diagonal" if has_any(node, _BOUNDS) else None


def breaks_chain(graph: Graph) -> Refusal:
    """Why the nodes are no chain.

    In one, each node reads the result of the one before once, which nothing else reads, and keeps its dims; only the last result is stored.
    """
    for before, node in zip(graph.nodes, graph.nodes[1:], strict=False):
        made, result = result_of(before), graph.tensors[result_of(node)]
        operands = list(node.inputs.values())
        if operands.count(made) != 1 or not graph.tensors[made].is_virtual or result.dims != graph.tensors[made].dims:
            return "an epilogue is a chain of nodes on the first one's result"
        if any(graph.producer(other) is not None for other in operands if other != made):
            return "an epilogue joins two computed values"
    return "the last result stays inside" if graph.tensors[result_of(graph.nodes[-1])].is_virtual else None


def first_of(*checks: Callable[[], Refusal]) -> Refusal:
    """The first reason of several checks."""
    return next((refusal for check in checks if (refusal := check()) is not None), None)


def is_packed(tensor: Tensor, *, channels_last: bool = False) -> bool:
    """Whether a tensor lies in C order, or channels-last, without gaps."""
    wanted = packed_strides(tensor.dims, channels_last=channels_last)
    return all(a == b for size, a, b in zip(tensor.dims, tensor.strides, wanted, strict=True) if size != 1)


def packed_strides(dims: Dims, *, channels_last: bool = False) -> Strides:
    """Strides of a tensor in C order, or channels-last, without gaps."""
    rank = len(dims)
    return packed(dims, (0, *range(2, rank), 1) if channels_last else tuple(range(rank)))
