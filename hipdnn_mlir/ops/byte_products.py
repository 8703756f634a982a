"""Convolutions of one tap of signed bytes that have generated code on NVIDIA's matrix units (`codegen/kernels/byte_products.py`)."""

from dataclasses import dataclass

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import Pointwise as P
from hipdnn_mlir_runtime.dtypes import I8, I32, U8

from .graph import Graph, Node, Tensor
from .one_convolution import one_convolution
from .spec import Refusal

LINE = 16
"""Bytes of a pixel that a lane reads at once; their number is a multiple of it."""
_COLUMNS = 8
"""Channels of the result of one multiplication."""
_MOST_INNER = 128
"""Channels of the image. With more, and fewer bytes written for each that is read, libraries are as fast or faster."""


@dataclass(frozen=True)
class ByteProducts:
    """A convolution of one tap of signed bytes, summed in int32.

    Attributes:
        node, ahead: the convolution, and nodes in front of it that change nothing.
        image: that is read, (n, c, h, w).
        filter, result: (k, c, 1, 1), (n, k, h', w').
        strides: along h and w.
    """

    node: Node
    ahead: tuple[Node, ...]
    image: Tensor
    filter: Tensor
    result: Tensor
    strides: tuple[int, int]


def byte_products(graph: Graph) -> ByteProducts:
    """The convolution of one tap of signed bytes in a graph; raises Refusal where there is none."""
    one = one_convolution(graph)
    if (one.filter.dtype, one.result.dtype) != (I8, I32):
        raise Refusal("dtype", f"has a convolution of {one.filter.dtype}, summed in {one.result.dtype}")
    outer, inner, *taps = one.filter.dims
    if taps != [1, 1] or inner != one.image.dims[1]:
        raise Refusal("shape", f"has a filter of {taps[0]} x {taps[1]} in groups of {inner} channels")
    if inner % LINE or outer % _COLUMNS or inner > _MOST_INNER:
        raise Refusal("shape", f"sums {inner} products for each of {outer} channels")
    sizes = zip(one.image.dims[2:], one.result.dims[2:], one.strides, strict=True)
    if any(one.padding) or any(have != (size - 1) // step + 1 for size, have, step in sizes):
        raise Refusal("shape", "has a border")
    if any(t.is_virtual and t.dtype in (I8, U8) for t in graph.tensors):
        raise Refusal("graph", "goes on with bytes that it computes, which others read as bytes")
    ahead, image = _image(graph, one.place)
    return ByteProducts(one.node, ahead, image, one.filter, one.result, one.strides)


def _image(graph: Graph, place: int) -> tuple[tuple[Node, ...], Tensor]:
    """The image that is read, and the subtraction of 0 from it, if there is one."""
    tensor, ahead = graph.tensors[place], tuple[Node, ...]()
    number = graph.producer(place)
    if number is not None:
        node = graph.nodes[number]
        first, *others = (graph.tensors[index] for index in node.inputs.values())
        subtracts = node.get(A.POINTWISE_MODE) == P.SUB and others[0].value is not None and not any(others[0].value)
        if not subtracts or tensor.result is not None:
            raise Refusal("graph", "computes its image")
        tensor, ahead = first, (node,)
    if tensor.operand is None or tensor.dtype is not I8:
        raise Refusal("graph", "computes its image")
    return ahead, tensor
