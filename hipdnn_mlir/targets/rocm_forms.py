"""Graphs in the forms that AMD's hipDNN providers want: same values, other types of intermediates, other attributes."""

from math import prod

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import AttributeType as T
from hipdnn_mlir_runtime.abi import Pointwise as P
from hipdnn_mlir_runtime.dtypes import F32

from ..ops.graph import Graph, Node
from ..ops.strides import Dims, packed
from .graph_parts import (
    CLIPS,
    FLOATS,
    IMAGE_RANK,
    copied,
    has_any,
    is_packed,
    mode_of,
    named_tensors,
    other_operand,
    result_of,
    starts_with,
)
from .rules import ATTENTION, BACKWARD_DATA, BATCH_NORMS, CONVOLUTION, RMS_NORM

_SPATIAL = {
    A.CONVOLUTION_PRE_PADDINGS: 0,
    A.CONVOLUTION_POST_PADDINGS: 0,
    A.CONVOLUTION_FILTER_STRIDES: 1,
    A.CONVOLUTION_DILATIONS: 1,
}
"""Attributes with a number per spatial dim, and that of a dim of size 1."""


def conform_miopen(graph: Graph) -> Graph:
    """Images of one spatial dim, or none, as those of two; intermediates in f32; the bias is added in its own type.

    Before: conv x[n, c, l] f16 -> y f16 (virtual), add in f32, relu. After: conv x[n, c, l, 1] -> y f32, add in f16, relu.
    """
    graph = copied(graph)
    if starts_with(graph, CONVOLUTION, BACKWARD_DATA, *BATCH_NORMS):
        ranks = {len(tensor.dims) for tensor in named_tensors(graph)}
        for rank in ranks if len(ranks) == 1 and max(ranks) < IMAGE_RANK else ():
            _add_spatial_dims(graph, IMAGE_RANK - rank)
    _widen_intermediates(graph)
    if len(graph.nodes) == 3 and mode_of(graph.nodes[1]) == P.ADD:
        bias = graph.tensors[other_operand(graph.nodes[1], result_of(graph.nodes[0]))].dtype
        _set(graph.nodes[1], A.POINTWISE_MATH_PREC, T.DATA_TYPE, bias.hipdnn_value)
    return graph


def conform_hipblaslt(graph: Graph) -> Graph:
    """Intermediates in f32; attributes that other libraries have a default for are stated: the 0 of a ReLU, the 1 of a swish."""
    graph = copied(graph)
    _widen_intermediates(graph)
    for node in graph.nodes:
        if mode_of(node) == P.RELU_FWD and not has_any(node, CLIPS):
            _set(node, A.POINTWISE_RELU_LOWER_CLIP, T.FLOAT, 0.0)
        elif mode_of(node) == P.SWISH_FWD and not has_any(node, (A.POINTWISE_SWISH_BETA,)):
            _set(node, A.POINTWISE_SWISH_BETA, T.FLOAT, 1.0)
    return graph


def conform_hip_kernels(graph: Graph) -> Graph:
    """An RMS norm over trailing dims of tensors in C order as one over channels: x[rows, c, 1, 1]."""
    graph = copied(graph)
    if not starts_with(graph, RMS_NORM) or len(graph.nodes) != 1:
        return graph
    node = graph.nodes[0]
    scale = graph.tensors[node.inputs[A.OPERATION_RMSNORM_SCALE_EXT]]
    x = graph.tensors[node.inputs[A.OPERATION_RMSNORM_X_EXT]]
    y = graph.tensors[result_of(node)]
    whole = prod(scale.dims)
    if (
        all(is_packed(tensor) for tensor in (scale, x, y))
        and scale.dims[_leading_ones(scale.dims) :] == x.dims[_leading_ones(scale.dims) :]
    ):
        for tensor in (x, y):
            tensor.dims = (prod(tensor.dims) // whole, whole, 1, 1)
        scale.dims = (1, whole, 1, 1)
        for tensor in (x, y, scale):
            tensor.strides = packed(tensor.dims)
    return graph


def conform_asm_sdpa(graph: Graph) -> Graph:
    """A causal mask of as many queries as keys said to end at the bottom right: the diagonals are one, and the kernels know that one."""
    graph = copied(graph)
    if not starts_with(graph, ATTENTION):
        return graph
    node = graph.nodes[0]
    query, key = (graph.tensors[node.inputs[name]] for name in (A.OPERATION_SDPA_FWD_QDESC, A.OPERATION_SDPA_FWD_KDESC))
    if node.get(A.SDPA_FWD_CAUSAL_MASK_EXT) and query.dims[2] == key.dims[2]:
        changed = {A.SDPA_FWD_CAUSAL_MASK_EXT: False, A.SDPA_FWD_CAUSAL_MASK_BOTTOM_RIGHT_EXT: True}
        node.attributes = [
            (name, kind, [changed[name]] if name in changed else values) for name, kind, values in node.attributes
        ]
    return graph


def _add_spatial_dims(graph: Graph, count: int) -> None:
    for tensor in named_tensors(graph):
        tensor.dims, tensor.strides = tensor.dims + (1,) * count, tensor.strides + (1,) * count
    for node in graph.nodes:
        node.attributes = [
            (name, kind, list(values) + [_SPATIAL[name]] * count if name in _SPATIAL else values)
            for name, kind, values in node.attributes
        ]


def _widen_intermediates(graph: Graph) -> None:
    for tensor in graph.tensors:
        if tensor.is_virtual and tensor.dtype in FLOATS:
            tensor.dtype = F32


def _set(node: Node, name: A, kind: T, value: float) -> None:
    """Set an attribute, in front of the precision where it is a new one, as hipDNN's frontend orders them."""
    rest = [entry for entry in node.attributes if entry[0] != name]
    place = len(rest) if name == A.POINTWISE_MATH_PREC else max(len(rest) - 1, 0)
    node.attributes = [*rest[:place], (name, kind, [value]), *rest[place:]]


def _leading_ones(dims: Dims) -> int:
    return next((index for index, size in enumerate(dims) if size != 1), len(dims))
