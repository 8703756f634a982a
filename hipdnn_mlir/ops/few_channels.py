"""Convolutions of images of few channels that NVIDIA's matrix units take as the images lie (`codegen/kernels/few_channels.py`)."""

from dataclasses import dataclass
from math import ceil

from hipdnn_mlir_runtime.abi import Descriptor as D
from hipdnn_mlir_runtime.dtypes import BF16, F16, DType

from .graph import Graph, Node, Tensor
from .one_convolution import one_convolution
from .spec import Refusal

CHANNELS = 4
"""Of the image, at most: as many as inner positions of a lane."""
TAPS = 4
"""Of a row of the filter that are multiplied at once."""
COLUMNS = 8
"""Channels of the result of one multiplication."""
_MOST_STEPS, _MOST_STRIDE = 16, 4
"""With these, filter and image of the smallest tile of the result have room in shared memory."""
_MOST_AHEAD = 4
"""Nodes: a block waits for its image. Rounding it to bytes there takes 40 us of an H100 for 32 images of 224 x 224, elsewhere 25."""


@dataclass(frozen=True)
class FewChannels:
    """A convolution of such an image, and pointwise nodes that make the image of another.

    Attributes:
        node, ahead: the convolution, and the nodes in front of it.
        image: that is read, (n, c, h, w).
        dtype: of what is multiplied.
        filter, result: (k, c, r, s), (n, k, h', w').
        strides, padding: along h and w; the padding is that in front.
    """

    node: Node
    ahead: tuple[Node, ...]
    image: Tensor
    dtype: DType
    filter: Tensor
    result: Tensor
    strides: tuple[int, int]
    padding: tuple[int, int]

    @property
    def steps(self) -> tuple[int, int]:
        """Rows of the filter, and multiplications of each."""
        return self.filter.dims[2], ceil(self.filter.dims[3] / TAPS)


def few_channels(graph: Graph) -> FewChannels:
    """The convolution of an image of few channels in a graph; raises Refusal where there is none."""
    one = one_convolution(graph)
    x, weights = one.image, one.filter
    if x.dtype not in (F16, BF16) or weights.dtype is not x.dtype:
        raise Refusal("dtype", f"has a convolution of {x.dtype} and {weights.dtype}")
    if x.dims[1] > CHANNELS or weights.dims[1] != x.dims[1]:
        raise Refusal("shape", f"has no image of up to {CHANNELS} channels in one group")
    if weights.dims[0] % COLUMNS:
        raise Refusal("shape", f"computes {weights.dims[0]} channels, no multiple of {COLUMNS}")
    ahead, image = _image(graph, one.node, one.place)
    found = FewChannels(one.node, ahead, image, x.dtype, weights, one.result, one.strides, one.padding)
    rows, steps = found.steps
    if rows * steps > _MOST_STEPS or max(one.strides) > _MOST_STRIDE or max(one.dilations) > 1:
        raise Refusal("shape", f"has a filter of {weights.dims[2]} x {weights.dims[3]}, strides {one.strides}")
    return found


def _image(graph: Graph, convolution: Node, place: int) -> tuple[tuple[Node, ...], Tensor]:
    """Nodes that compute the convolution's operand alone, and the image that they read; what they read are the graph's first operands."""
    wanted, ahead = {place}, list[Node]()
    for node in reversed(graph.nodes[: graph.nodes.index(convolution)]):
        if wanted.isdisjoint(node.outputs.values()):
            continue
        if node.type != D.OPERATION_POINTWISE_DESCRIPTOR:
            raise Refusal("graph", "computes its image by more than pointwise nodes")
        ahead.insert(0, node)
        wanted.update(node.inputs.values())
    for node in graph.nodes:
        if node not in ahead and node is not convolution and not wanted.isdisjoint(node.inputs.values()):
            numbers = all(graph.tensors[i].value is not None for i in wanted.intersection(node.inputs.values()))
            if not numbers:
                raise Refusal("graph", "reads its image elsewhere, too")
    if len(ahead) > _MOST_AHEAD:
        raise Refusal("graph", f"computes its image by {len(ahead)} nodes, at most {_MOST_AHEAD}")
    if any(graph.tensors[index].result is not None for index in wanted):
        raise Refusal("graph", "stores its image, too")
    read = [graph.tensors[index] for index in wanted if graph.tensors[index].operand is not None]
    dims = graph.tensors[place].dims
    whole = [tensor for tensor in read if tensor.dims == dims]
    pointers = [tensor for _, tensor in graph.by_uid() if tensor.has_pointer]
    are_first = all(any(tensor is other for other in read) for tensor in pointers[: len(read)])
    if len(whole) != 1 or not are_first or any(len(tensor.dims) != len(dims) for tensor in read):
        raise Refusal("graph", "computes its image from more than one of its size")
    return tuple(ahead), whole[0]
