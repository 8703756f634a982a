"""What hipDNN's Fusilli provider takes, as its sources state it. It compiles graphs with IREE, and is not in hipDNN's default build."""

from collections.abc import Sequence
from dataclasses import replace

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import Pointwise as P
from hipdnn_mlir_runtime.dtypes import F32

from ..ops.graph import Graph, Node, Tensor
from .graph_parts import (
    CLIPS,
    FLOATS,
    Refusal,
    breaks_chain,
    copied,
    counts_or_bounds,
    first_of,
    is_packed,
    mode_of,
    named_tensors,
    packed_strides,
    result_of,
    starts_with,
)
from .rules import ATTENTION, BACKWARD_DATA, CONVOLUTION, MATMUL
from .sources import Source


def conform_fusilli(graph: Graph) -> Graph:
    """Intermediates of the operands' type, strides of dims of size 1 as in C order or channels-last.

    A node's result of another type is no operation of torch, and Fusilli compares all strides.
    """
    graph = copied(graph)
    if not graph.nodes or not graph.nodes[0].inputs:
        return graph
    kind = graph.tensors[next(iter(graph.nodes[0].inputs.values()))].dtype
    for tensor in graph.tensors:
        if tensor.is_virtual and tensor.dtype in FLOATS:
            tensor.dtype = kind
        for channels_last in (False, True):
            if len(tensor.dims) > 2 * channels_last and is_packed(tensor, channels_last=channels_last):
                tensor.strides = packed_strides(tensor.dims, channels_last=channels_last)
                break
    return graph


class FusilliGraph:
    """FUSILLI_ENGINE: a convolution, forward or of the data, or a matmul, with a chain of pointwise nodes; attention alone.

    Nothing but the mode is read of a pointwise node.
    """

    sources = (
        Source("2026-11-24", "dnn-providers/fusilli-provider/include", ("graph_import.h", "custom_ops.h")),
        Source(
            "2026-11-24",
            "include/fusilli",
            ("attributes/pointwise_attributes.h", "node/conv_node.h", "node/matmul_node.h"),
            "iree-org/fusilli",
        ),
    )

    MODES = frozenset({P.ADD, P.SUB, P.MUL, P.DIV, P.RELU_FWD, P.SIGMOID_FWD, P.TANH_FWD})

    def refuses(self, graph: Graph) -> Refusal:
        """Why the graph is not taken, or None."""
        if starts_with(graph, ATTENTION) and len(graph.nodes) == 1:
            return counts_or_bounds(graph.nodes[0]) or self._attention(graph, graph.nodes[0])
        if not starts_with(graph, CONVOLUTION, BACKWARD_DATA, MATMUL):
            return "starts with no convolution, matmul or attention"
        anchor, *rest = graph.nodes
        return first_of(
            lambda: self._epilogue(rest),
            lambda: breaks_chain(graph),
            lambda: self._types(graph),
            lambda: self._matrices(graph, anchor) if anchor.type == MATMUL else self._images(graph, anchor),
            lambda: None if all(map(_is_dense, named_tensors(graph))) else "tensors with gaps",
        )

    def _epilogue(self, rest: Sequence[Node]) -> Refusal:
        for node in rest:
            if mode_of(node) not in self.MODES:
                return "an epilogue is sums, products, ReLU, sigmoid and tanh"
            low, *others = (node.get(name) for name in CLIPS)
            if low not in (None, 0.0) or any(other is not None for other in others):
                return "takes ReLU without limits only"
        return None

    @staticmethod
    def _types(graph: Graph) -> Refusal:
        kinds = {tensor.dtype for _, tensor in graph.by_uid() if tensor.value is None}
        if kinds - FLOATS or len(kinds) > 1:
            return f"tensors of {', '.join(sorted(map(str, kinds)))}"
        has_numbers = any(tensor.value is not None for _, tensor in graph.by_uid())
        return f"a number beside {next(iter(kinds))}" if has_numbers and kinds != {F32} else None

    @staticmethod
    def _images(graph: Graph, anchor: Node) -> Refusal:
        attributes = {name: list(values) for name, _, values in anchor.attributes}
        if attributes[A.CONVOLUTION_PRE_PADDINGS] != attributes[A.CONVOLUTION_POST_PADDINGS]:
            return "asymmetric padding"
        images = [
            graph.tensors[index] for index in (*anchor.inputs.values(), result_of(anchor), result_of(graph.nodes[-1]))
        ]
        if all(is_packed(image) or is_packed(image, channels_last=True) for image in images):
            return None
        return "images that are neither in C order nor channels-last"

    @staticmethod
    def _matrices(graph: Graph, anchor: Node) -> Refusal:
        matrices = [
            graph.tensors[index] for index in (*anchor.inputs.values(), result_of(anchor), result_of(graph.nodes[-1]))
        ]
        if len({len(matrix.dims) for matrix in matrices}) > 1:
            return "operands of different rank"
        if not all(is_packed(matrix) or is_packed(_transposed(matrix)) for matrix in matrices):
            return "batches that are not outermost, or gaps"
        a, b = matrices[:2]
        if any(max(sizes) % min(sizes) for sizes in zip(a.dims[:-2], b.dims[:-2], strict=True)):
            return "batches that do not broadcast"
        return None

    @staticmethod
    def _attention(graph: Graph, node: Node) -> Refusal:
        query, key, value, *masks = (graph.tensors[index] for index in node.inputs.values())
        tensors = [query, key, value, *masks, graph.tensors[result_of(node)]]
        if query.dtype not in FLOATS or len({tensor.dtype for tensor in tensors}) > 1:
            return f"attention of {', '.join(sorted({str(tensor.dtype) for tensor in tensors}))}"
        if key.dims[1] != value.dims[1] or (query.dims[1] != key.dims[1] and query.dtype is F32):
            return "keys and values of different heads, or heads that share them in f32"
        if masks and query.dtype is F32:
            return "a mask in f32, which stays of f32 where the rest becomes narrow"
        if masks and node.get(A.SDPA_FWD_CAUSAL_MASK_EXT):
            return "a mask beside a causal one"
        if query.dims[1] % key.dims[1] or not all(map(_is_dense, tensors)):
            return "tensors with gaps, or heads that do not divide"
        return None


def _transposed(matrix: Tensor) -> Tensor:
    """A matrix, or several, with rows and columns exchanged."""
    swapped = (*range(len(matrix.dims) - 2), len(matrix.dims) - 1, len(matrix.dims) - 2)
    return replace(
        matrix,
        dims=tuple(matrix.dims[axis] for axis in swapped),
        strides=tuple(matrix.strides[axis] for axis in swapped),
    )


def _is_dense(tensor: Tensor) -> bool:
    """Whether the elements lie side by side, in any order of dims."""
    order = sorted((axis for axis, size in enumerate(tensor.dims) if size != 1), key=lambda axis: -tensor.strides[axis])
    return is_packed(
        replace(
            tensor,
            dims=tuple(tensor.dims[axis] for axis in order),
            strides=tuple(tensor.strides[axis] for axis in order),
        )
    )
