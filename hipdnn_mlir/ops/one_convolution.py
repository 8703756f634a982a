"""The convolution of a graph that has one."""

from dataclasses import dataclass

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import ConvolutionMode
from hipdnn_mlir_runtime.abi import Descriptor as D

from .graph import Graph, Node, Tensor
from .spec import Refusal

_RANK = 4


@dataclass(frozen=True)
class Convolution:
    """A convolution of images.

    Attributes:
        node: it.
        place: number of the tensor that it reads.
        image, filter, result: (n, c, h, w), (k, c / groups, r, s), (n, k, h', w').
        strides, dilations, padding: along h and w; the padding is that in front.
    """

    node: Node
    place: int
    image: Tensor
    filter: Tensor
    result: Tensor
    strides: tuple[int, int]
    dilations: tuple[int, int]
    padding: tuple[int, int]


def one_convolution(graph: Graph) -> Convolution:
    """The only convolution of a graph, of images with a filter that is an operand; raises Refusal where there is none."""
    nodes = [node for node in graph.nodes if node.type == D.OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR]
    if len(nodes) != 1:
        raise Refusal("graph", "takes one convolution")
    (node,) = nodes
    place = node.inputs[A.OPERATION_CONVOLUTION_FORWARD_X]
    x, weights = graph.tensors[place], graph.tensors[node.inputs[A.OPERATION_CONVOLUTION_FORWARD_W]]
    (result,) = (graph.tensors[index] for index in node.outputs.values())
    if weights.operand is None:
        raise Refusal("graph", "computes its filter")
    if len(x.dims) != _RANK:
        raise Refusal("shape", f"has images of {len(x.dims)} dims")
    values = {name: values for name, _, values in node.attributes}
    if values[A.CONVOLUTION_CONV_MODE] != [int(ConvolutionMode.CROSS_CORRELATION)]:
        raise Refusal("mode", "has a convolution with flipped filters")
    strides, dilations, padding = (
        (int(values[name][0]), int(values[name][1]))
        for name in (A.CONVOLUTION_FILTER_STRIDES, A.CONVOLUTION_DILATIONS, A.CONVOLUTION_PRE_PADDINGS)
    )
    return Convolution(node, place, x, weights, result, strides, dilations, padding)
