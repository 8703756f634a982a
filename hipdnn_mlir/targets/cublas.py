"""What cuBLASLt takes of products, through the port `cuda` (runtime/src/ports/cuda/product.cc)."""

from math import prod

from ..abi import Attribute as A
from ..abi import Pointwise as P
from ..ops.graph import Graph, Tensor
from .rocm import HipblasltProduct
from .rules import AnchorEpilogue

_CLIPS = (A.POINTWISE_RELU_LOWER_CLIP, A.POINTWISE_RELU_UPPER_CLIP, A.POINTWISE_RELU_LOWER_CLIP_SLOPE)


class BlasProduct(AnchorEpilogue):
    """A matrix product, to which a bias and a matrix of the result's size may be added, and then an activation of its modes."""

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        return super().refuses(graph) or _epilogue(graph) or HipblasltProduct.layouts(graph, graph.nodes[0])


def _epilogue(graph: Graph) -> str | None:
    rest = graph.nodes[1:]
    result = graph.tensors[next(iter(rest[-1].outputs.values()))] if rest else None
    added = []
    for index, node in enumerate(rest):
        if node.get(A.POINTWISE_MODE) == P.ADD:
            added += [
                t for t in map(graph.tensors.__getitem__, node.inputs.values()) if t.operand is not None or t.value
            ]
        elif index + 1 < len(rest):
            return "an activation is the end of an epilogue"
        elif any(node.get(name) is not None for name in _CLIPS):
            return "a ReLU with limits"
    if result is None:
        return None
    matrices = [tensor for tensor in added if not _is_row(tensor, result)]
    if len(added) - len(matrices) > 1 or len(matrices) > 1:
        return "more is added than a bias and one matrix"
    return (
        None
        if all(_is_like(tensor, result) for tensor in matrices)
        else "what is added is no matrix of the result's size"
    )


def _is_row(tensor: Tensor, result: Tensor) -> bool:
    columns = result.dims[-1]
    return tensor.operand is not None and tensor.dims[-1] == prod(tensor.dims) == columns and tensor.strides[-1] == 1


def _is_like(tensor: Tensor, result: Tensor) -> bool:
    return tensor.operand is not None and tensor.dims == result.dims and tensor.strides == result.strides
