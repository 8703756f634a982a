"""What NVIDIA's libraries take through the port `cuda`: matmuls of cuBLASLt and attention of cuDNN, as far as tried (docs/cuda.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import Pointwise as P
from hipdnn_mlir_runtime.dtypes import BF16, F8E4M3, F8E5M2, F16, F32

from ..ops.attention_graph import units_attention
from ..ops.graph import Graph, Node, Tensor
from ..ops.spec import Refusal
from ..ops.strides import restride
from .graph_parts import copied, counts_or_bounds, mode_of, result_of, starts_with
from .rocm import HipblasltMatmul
from .rules import ATTENTION, CONVOLUTION, MATMUL, AnchorEpilogue

_FEATURE_MULTIPLE, _MOST_FEATURES = 8, 128
_KEY_MULTIPLE = 8
"""Of keys beside a mask, whose rows are read in wide accesses."""


_CLIPS = (A.POINTWISE_RELU_LOWER_CLIP, A.POINTWISE_RELU_UPPER_CLIP, A.POINTWISE_RELU_LOWER_CLIP_SLOPE)


class CublasltMatmul(AnchorEpilogue):
    """A matmul, to which a bias and a matrix of the result's size may be added, and then an activation of its modes."""

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        return (
            super().refuses(graph)
            or _epilogue(graph, graph.nodes[1:])
            or HipblasltMatmul.layouts(graph, graph.nodes[0])
        )


_LEAST_ROWS = 128
"""Rows of a tile of cuDNN's."""
_FARTHEST = 31
"""Pixels from the first to the last one of a filter."""
_MANY_GROUPS = 8
"""Of a convolution that takes less time alone; of depthwise ones nothing of the kind was measured."""


class CudnnEpilogue(AnchorEpilogue):
    """An anchor with a chain of pointwise nodes on values in one order, nothing behind wide filters or many groups.

    cuDNN 9.19 fuses into filters of 32 pixels at most, or else slowly: f16 of 256 channels, 28 x 28 pixels, 3 x 3 of them 15 apart with a
    ReLU take 17 us of an H200, 16 apart 1207 us, and without the ReLU 14 us. DeepLab has such.

    A convolution of many groups with a ReLU runs in its runtime engines, alone in others: 32 groups, 3 x 3 pixels, 32 images take 125 to
    300 us of an H200 with it and 35 to 50 without (bench/results/2026-11-27-architectures-gpu.txt).

    Some matmuls are left to cuBLASLt, or split. Those of more than one dim of batches: cuDNN 9.19 proposes nothing for them, whatever their
    strides, nor where a matrix that is multiplied, added or a result has elements that are adjacent along neither rows nor columns. And
    those of few rows: cuDNN's fused matmul has one tile of rows then, so few multiprocessors read the weights. f16 of 32 x 2048 x 8192 with
    a swish and a product take 171 us of an H100, where the matmul alone takes 20 (bench/results/2026-11-25-decode-gpu.txt).
    """

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        if refusal := super().refuses(graph):
            return refusal
        if any(_lies_otherwise(graph, node) for node in graph.nodes[1:]):
            return "has an epilogue with a value whose elements are adjacent along another axis than the result's"
        if graph.nodes[0].type == CONVOLUTION and len(graph.nodes) > 1:
            return _refuses_fusion(graph)
        if graph.nodes[0].type != MATMUL:
            return None
        scattered = next((tensor for tensor in _matrices(graph) if 1 not in _steps_of(tensor)), None)
        if scattered is not None:
            return f"has a matrix with strides {list(scattered.strides)}"
        dims = graph.tensors[result_of(graph.nodes[0])].dims
        rows, has_batches = prod(dims[:-1]), prod(dims[:-3]) > 1
        is_slow = len(graph.nodes) > 1 and rows < _LEAST_ROWS
        if not (has_batches or is_slow) or BLAS.refuses(graph) is None:
            return None
        if has_batches:
            return f"has a matmul of several dims of batches, {list(dims[:-2])}, that cuBLASLt does not take"
        return f"computes more than cuBLASLt on a matmul of {rows} rows slowly"


def _lies_otherwise(graph: Graph, node: Node) -> bool:
    """Whether a node reads a value of its result's size that lies in another order: cuDNN 9.19 proposes nothing for that."""
    result = graph.tensors[result_of(node)]
    read = (graph.tensors[index] for index in node.inputs.values())
    same = [tensor for tensor in read if tensor.value is None and tensor.dims == result.dims]
    return any(_adjacent(tensor) != _adjacent(result) for tensor in same)


def _adjacent(tensor: Tensor) -> set[int]:
    """The axes along which elements are adjacent."""
    sizes = zip(tensor.dims, tensor.strides, strict=True)
    return {axis for axis, (size, step) in enumerate(sizes) if step == 1 and size > 1}


def _refuses_fusion(graph: Graph) -> str | None:
    """Why an epilogue is not fused into a convolution."""
    image = graph.tensors[graph.nodes[0].inputs[A.OPERATION_CONVOLUTION_FORWARD_X]]
    result = graph.tensors[result_of(graph.nodes[-1])]
    if _adjacent(image) == {1} and _adjacent(result) not in (set(), {1}):  # whatever the strides between them
        return "has an epilogue whose result is not stored channels-last, as the image is"
    in_group = graph.tensors[graph.nodes[0].inputs[A.OPERATION_CONVOLUTION_FORWARD_W]].dims[1]
    if in_group > 1 and image.dims[1] >= _MANY_GROUPS * in_group:
        return f"has an epilogue behind a convolution of {image.dims[1] // in_group} groups"
    if any(_is_repeated(graph.tensors[index], result) for node in graph.nodes[1:] for index in node.inputs.values()):
        return "has an epilogue with a value that is repeated along other dims than images and pixels together"
    return None if (reach := _reach(graph)) <= _FARTHEST else f"has an epilogue behind a filter of {reach + 1} pixels"


def _is_repeated(tensor: Tensor, result: Tensor) -> bool:
    """Whether a tensor is neither whole nor one number for each channel or all of them: cuDNN 9.19 proposes nothing for that.

    Embeddings of positions are the same for all images, gates of channels for all pixels of an image.
    """
    of_channels = [dims[:1] + dims[2:] for dims in (tensor.dims, result.dims)]
    return tensor.value is None and prod(of_channels[0]) > 1 and of_channels[0] != of_channels[1]


def _reach(graph: Graph) -> int:
    """Pixels from the first to the last one that the filter of a convolution reads along one axis, where that is most."""
    node = graph.nodes[0]
    sizes = graph.tensors[node.inputs[A.OPERATION_CONVOLUTION_FORWARD_W]].dims[2:]
    (dilations,) = (values for name, _, values in node.attributes if name == A.CONVOLUTION_DILATIONS)
    return max((size - 1) * int(step) for size, step in zip(sizes, dilations, strict=True))


def _matrices(graph: Graph) -> list[Tensor]:
    """What is multiplied and added in a graph, and its results."""
    used = {index for node in graph.nodes for index in (*node.inputs.values(), *node.outputs.values())}
    return [graph.tensors[index] for index in sorted(used) if graph.tensors[index].value is None]


def _steps_of(matrix: Tensor) -> set[int]:
    """The strides of a matrix's rows and columns; those of one row or column are any."""
    sizes = zip(matrix.dims[-2:], matrix.strides[-2:], strict=True)
    return {1 if size == 1 else step for size, step in sizes}


_MATRIX = 2
"""Dims."""


def conform_cudnn(graph: Graph) -> Graph:
    """A matmul with its batches as more rows where all are multiplied with one matrix, else as one dim; as far as strides allow.

    Before: x[4, 6, 49, 64] w[1, 1, 64, 32] + bias[1, 1, 1, 32]. After: x[1, 1176, 64] w[1, 64, 32] + bias[1, 1, 32].
    """
    if not starts_with(graph, MATMUL) or len(graph.tensors[result_of(graph.nodes[0])].dims) == _MATRIX:
        return graph
    right = graph.tensors[graph.nodes[0].inputs[A.OPERATION_MATMUL_BDESC]]
    forms = (True, False) if prod(right.dims[:-2]) == 1 else (False,)
    return next((made for with_rows in forms if (made := _joined(graph, with_rows=with_rows)) is not None), graph)


def _joined(graph: Graph, *, with_rows: bool) -> Graph | None:
    """The matmul with its batches as one dim, or as more rows; None where something broadcasts in part, or its strides do not allow it."""
    made, product = copied(graph), graph.nodes[0]
    whole, right = graph.tensors[result_of(product)].dims, product.inputs[A.OPERATION_MATMUL_BDESC]
    used = {index for node in graph.nodes for index in (*node.inputs.values(), *node.outputs.values())}
    for index in used:
        tensor = made.tensors[index]
        has_rows = with_rows and index != right
        count = len(whole) - (1 if has_rows else 2)
        if tensor.value is not None:
            tensor.dims = tensor.strides = (1,) * (len(whole) - count + 1 + has_rows)
            continue
        if len(tensor.dims) != len(whole) or tensor.dims[:count] not in (whole[:count], (1,) * count):
            return None
        dims = (1,) * has_rows + (prod(tensor.dims[:count]), *tensor.dims[count:])
        strides = restride(tensor.dims, tensor.strides, dims)
        if strides is None:
            return None
        tensor.dims, tensor.strides = dims, strides
    return made


BLAS_EPILOGUE = frozenset({P.ADD, P.RELU_FWD, P.GELU_APPROX_TANH_FWD})
BLAS = CublasltMatmul(frozenset({MATMUL}), BLAS_EPILOGUE, frozenset({F32, F16, BF16}), 3)
"""Matmuls of cuBLASLt in any type."""


_FLOAT8 = frozenset({F8E4M3, F8E5M2})
_FLOAT8_MULTIPLE = 16


class CublasltFloat8(AnchorEpilogue):
    """A matmul of floats of 8 bits times a number, then what `CublasltMatmul` takes, but no bias of f32.

    cuBLASLt sums along memory: the rows of the first operand and the columns of the second one. One operand is of E4M3, sizes of the second
    one are multiples of 16 (cuBLAS 12 and 13, cublasLtMatmul, "FP8 kernels"; of compute capability 8.9 and 9.0).
    """

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        if refusal := super().refuses(graph):
            return refusal
        product, *rest = graph.nodes
        left, right = (graph.tensors[product.inputs[name]] for name in _OPERANDS)
        result = graph.tensors[result_of(graph.nodes[-1])]
        if not {left.dtype, right.dtype} <= _FLOAT8 or F8E4M3 not in (left.dtype, right.dtype):
            return f"multiplies {left.dtype} by {right.dtype}"
        if result.dtype in _FLOAT8:
            return f"has a result of {result.dtype}"
        if any(size % _FLOAT8_MULTIPLE for size in right.dims[-2:]):
            return f"has a matrix of {list(right.dims[-2:])}, wanted: multiples of {_FLOAT8_MULTIPLE}"
        if left.strides[-1] != 1 or right.strides[-2] != 1 or prod(right.dims[:-2]) != 1:
            return "sums products that do not lie along memory, or of several matrices"
        if not rest or mode_of(rest[0]) != P.MUL or not _has_number(graph, rest[0]):
            return "is not multiplied by a number"
        if any(mode_of(node) == P.MUL for node in rest[1:]):
            return "epilogue has MUL"
        if result.dtype is F32 and any(
            _is_row(graph.tensors[t], result) for node in rest for t in node.inputs.values()
        ):
            return "adds a bias of f32"
        return _epilogue(graph, rest[1:]) or HipblasltMatmul.layouts(graph, product)


_OPERANDS = (A.OPERATION_MATMUL_ADESC, A.OPERATION_MATMUL_BDESC)


def _has_number(graph: Graph, node: Node) -> bool:
    return any(graph.tensors[index].value is not None for index in node.inputs.values())


FLOAT8 = CublasltFloat8(frozenset({MATMUL}), BLAS_EPILOGUE | {P.MUL}, frozenset({F32, F16, BF16}) | _FLOAT8, 4)
"""Those of 8 bits."""


def _epilogue(graph: Graph, rest: Sequence[Node]) -> str | None:
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


@dataclass(frozen=True)
class FusedAttention:
    """One attention of f16 or bf16 with heads of up to 128 features, and a mask that is added."""

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        if len(graph.nodes) != 1 or graph.nodes[0].type != ATTENTION:
            return "takes one attention"
        (node,) = graph.nodes
        unknown = counts_or_bounds(node)
        if unknown is not None:
            return unknown
        query, key, value, *masks = (graph.tensors[index] for index in node.inputs.values())
        output = graph.tensors[node.outputs[A.OPERATION_SDPA_FWD_ODESC]]
        if query.dtype not in (F16, BF16):
            return f"has attention of {query.dtype}"
        for tensor in (query, key, value, output):
            features = tensor.dims[3]
            if features % _FEATURE_MULTIPLE or features > _MOST_FEATURES:
                return f"has heads of {features} features: expected a multiple of {_FEATURE_MULTIPLE} up to {_MOST_FEATURES}"
            if tensor.strides[3] != 1:
                return "has features that are not adjacent"
        for mask in masks:
            if mask.dtype not in (query.dtype, F32):
                return f"has a mask of {mask.dtype}"
            if mask.dims[3] != key.dims[2] or mask.dims[3] % _KEY_MULTIPLE or mask.strides[3] != 1:
                return f"has a mask of dims {list(mask.dims)} with strides {list(mask.strides)} for {key.dims[2]} keys"
        return None


_MOST_KEYS, _FEW_KEYS, _FEW_FEATURES = 512, 256, 64
"""Of a generated kernel that reads keys again for every 16 queries: at all, and where it takes less time than cuDNN's."""
_WINDOW_KEYS, _MANY_QUERIES = 64, 12288
"""Beside a mask of the query's type, the keys up to which it takes less time however many queries there are in all heads; else these."""


@dataclass(frozen=True)
class UnitsAttention:
    """One attention for a generated kernel: any mask, and heads of a multiple of 16 features.

    Attributes:
        is_faster: takes only what takes less time than in cuDNN: with a mask of 64 keys, 1536 heads of 64 queries of 32 features take 15 us
            of an H200 in place of 46 (bench/results/2026-11-26-models-gpu.txt); with 128 and 197 keys of 64 features, whole models of one
            text or image take 0.93 to 0.95 of the time, of 32 of them 0.93 to 0.98 (2026-11-27-architectures-gpu.txt). Not so 32 texts of
            128 words with a mask of 16 bits: with cuDNN's, whole models take 0.96 to 0.97 of the time, of 8 texts 1.00, of one 1.09.
    """

    is_faster: bool = False

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        try:
            found = units_attention(graph)
        except Refusal as refusal:
            return refusal.reason
        keys, features = found.key.dims[2:]
        queries = prod(found.query.dims[:3])
        has_mask = found.mask is not None and found.mask.dtype is found.query.dtype
        if self.is_faster and has_mask and keys > _WINDOW_KEYS and queries > _MANY_QUERIES:
            return f"has {queries} queries beside a mask of {found.query.dtype}, at most {_MANY_QUERIES}"
        if self.is_faster and features > _FEW_FEATURES:
            return f"has heads of {features} features, at most {_FEW_FEATURES}"
        most = _FEW_KEYS if self.is_faster else _MOST_KEYS
        return f"has attention of {keys} keys, at most {most}" if keys > most else None
