"""Kinds of engines on GPUs: which graphs each takes. The tables of targets say which dtypes and modes."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import Descriptor as D
from hipdnn_mlir_runtime.abi import Pointwise as P
from hipdnn_mlir_runtime.dtypes import BF16, BOOL, F8E4M3, F8E5M2, F16, F32, F64, I4, I8, I32, I64, U8, DType

from ..ops.blocks import DEQUANTIZE, QUANTIZE, blocks_of
from ..ops.byte_products import ByteProducts
from ..ops.few_channels import FewChannels
from ..ops.few_rows import few_rows, takes_rows
from ..ops.graph import Graph, Node, Tensor
from ..ops.one_convolution import Convolution
from ..ops.spec import Refusal
from ..ops.strides import Dims, packed

CONVOLUTION = D.OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
BACKWARD_DATA = D.OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
MATMUL = D.OPERATION_MATMUL_DESCRIPTOR
POINTWISE = D.OPERATION_POINTWISE_DESCRIPTOR
REDUCTION = D.OPERATION_REDUCTION_DESCRIPTOR
RESAMPLE = D.OPERATION_RESAMPLE_FWD_DESCRIPTOR
LAYER_NORM = D.OPERATION_LAYERNORM_DESCRIPTOR_EXT
RMS_NORM = D.OPERATION_RMSNORM_DESCRIPTOR_EXT
BATCH_NORM = D.OPERATION_BATCHNORM_INFERENCE_VARIANCE_DESCRIPTOR_EXT
BATCH_NORM_OF_DEVIATION = D.OPERATION_BATCHNORM_INFERENCE_DESCRIPTOR_EXT
BATCH_NORMS = (BATCH_NORM, BATCH_NORM_OF_DEVIATION)
BLOCK_SCALES = frozenset({QUANTIZE, DEQUANTIZE})
ATTENTION = D.OPERATION_SDPA_FWD_DESCRIPTOR

ANCHORS = frozenset({CONVOLUTION, BACKWARD_DATA, MATMUL})
EPILOGUE_MODES = frozenset({
    P.ADD, P.SUB, P.MUL, P.DIV, P.MIN, P.MAX, P.RELU_FWD, P.TANH_FWD, P.SIGMOID_FWD, P.GELU_FWD, P.GELU_APPROX_TANH_FWD, P.SWISH_FWD,
    P.ELU_FWD, P.SOFTPLUS_FWD, P.ABS, P.SQRT, P.EXP, P.LOG, P.IDENTITY,
})  # fmt: skip
ROWWISE_TYPES = frozenset({F32, F64, F16, BF16, F8E4M3, F8E5M2, I8, U8, I32, I64, BOOL})
MAX_DIM = 2**31 - 1
"""Larger sizes overflow inside the libraries."""
_HARD_SWISH = (P.ADD, P.RELU_FWD, P.MUL, P.MUL)


@dataclass(frozen=True)
class AnchorEpilogue:
    """One anchor, then a chain of pointwise nodes on its result: one kernel.

    Attributes:
        slow_modes: modes that the engine computes slowly -> elements of 16 bits up to which that still costs less than another kernel.
    """

    anchors: frozenset[D]
    modes: frozenset[P]
    dtypes: frozenset[DType]
    max_epilogue: int
    slow_modes: Mapping[P, int] = field(default_factory=dict)

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        anchor, *rest = graph.nodes
        if anchor.type not in self.anchors:
            return f"starts with {_name(anchor)}"
        if any(node.type != POINTWISE for node in rest):
            return "an epilogue has pointwise nodes only"
        if len(rest) > self.max_epilogue:
            return f"epilogue of {len(rest)} nodes, at most {self.max_epilogue}"
        return _bad_tensor(graph, self.dtypes) or self._breaks_chain(graph, anchor, rest)

    def _breaks_chain(self, graph: Graph, anchor: Node, rest: list[Node]) -> str | None:
        current = next(iter(anchor.outputs.values()))
        dims = graph.tensors[current].dims
        index = 0
        while index < len(rest):
            if not graph.tensors[current].is_virtual:
                return "an intermediate of the chain is used outside"
            step = 4 if _is_hard_swish(graph, rest[index : index + 4], current) else 1
            if step == 1 and (refusal := self._refuses_node(graph, rest[index], current)):
                return refusal
            current = next(iter(rest[index + step - 1].outputs.values()))
            if graph.tensors[current].dims != dims:
                return "the epilogue changes the shape"
            index += step
        return "a result is not the end of the chain" if graph.tensors[current].is_virtual else None

    def _refuses_node(self, graph: Graph, node: Node, current: int) -> str | None:
        mode = P(node.get(A.POINTWISE_MODE))
        if mode not in self.modes:
            return f"epilogue has {mode.name}"
        tensor = graph.tensors[current]
        if mode in self.slow_modes and tensor.dtype.is_narrow and math.prod(tensor.dims) > self.slow_modes[mode]:
            return f"computes {mode.name} of {math.prod(tensor.dims)} elements slowly"
        operands = list(node.inputs.values())
        if operands.count(current) != 1:
            return f"{mode.name} does not continue the chain"
        if mode in (P.SUB, P.DIV) and operands[0] != current:
            return f"{mode.name} with the chain on the right"
        if any(graph.producer(other) is not None for other in operands if other != current):
            return f"{mode.name} joins two computed values"
        return None


@dataclass(frozen=True)
class FewRows:
    """Matmuls of few rows by matrices whose columns lie along memory, with what surrounds them: as fast as the matrices are read.

    Attributes:
        modes: of the pointwise nodes behind.
        has_units: NVIDIA's matrix units are there.
    """

    modes: frozenset[P]
    has_units: bool = False

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        if graph.nodes[0].type not in (MATMUL, RMS_NORM, DEQUANTIZE):
            return f"starts with {_name(graph.nodes[0])}"
        try:
            found = few_rows(graph)
        except Refusal as refusal:
            return refusal.reason
        if too_many := takes_rows(graph, found, has_units=self.has_units):
            return too_many
        modes = (P(node.get(A.POINTWISE_MODE)) for node in graph.nodes if node.type == POINTWISE)
        wrong = next((mode for mode in modes if mode not in self.modes), None)
        return None if wrong is None else f"epilogue has {wrong.name}"


@dataclass(frozen=True)
class OwnConvolution:
    """A convolution that has generated code, and what that computes with it: pointwise nodes behind, of the result's size or the channels'.

    Of a few channels, also those in front: cuDNN takes channels by eights, so that 7 x 7 taps on 32 images of 224 x 224 pixels take
    125 us of an H100, and 20 to fill the channels up. cuDNN's depthwise ones take channels by eights, too, and longer with an activation.

    Attributes:
        find: finds the convolution in a graph, or raises Refusal.
        dtypes: of all tensors.
        max_nodes: of the graph.
    """

    find: Callable[[Graph], FewChannels | ByteProducts | Convolution]
    dtypes: frozenset[DType]
    max_nodes: int

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        try:
            found = self.find(graph)
        except Refusal as refusal:
            return refusal.reason
        if len(graph.nodes) > self.max_nodes:
            return f"{len(graph.nodes)} nodes, at most {self.max_nodes}"
        ahead = () if isinstance(found, Convolution) else found.ahead
        behind = [node for node in graph.nodes if node is not found.node and node not in ahead]
        if any(node.type != POINTWISE for node in behind):
            return "an epilogue has pointwise nodes only"
        known = (t for t in _used(replace(graph, nodes=behind)) if t.value is None)
        tensors = [found.result, *known]
        if any(not _broadcasts(tensor.dims, found.result.dims) for tensor in tensors):
            return "the epilogue changes the shape"
        stored = [tensor for tensor in tensors if tensor.result is not None]
        if any(tensor.dims != found.result.dims for tensor in stored):
            return "stores a result of fewer elements than it computes"
        if any(P(n.get(A.POINTWISE_MODE)) is P.IDENTITY and _reads_stored(graph, n) for n in behind):
            return "stores a result twice"
        return _bad_tensor(graph, self.dtypes)


def _reads_stored(graph: Graph, node: Node) -> bool:
    return any(graph.tensors[index].result is not None for index in node.inputs.values())


@dataclass(frozen=True)
class BiasActivation:
    """A convolution, alone or with a bias, then also with an activation; a transposed one alone. One kernel.

    Attributes:
        activations: those that may follow the bias.
    """

    activations: frozenset[P]
    dtypes: frozenset[DType]

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        anchor, *rest = graph.nodes
        chain = AnchorEpilogue(frozenset({CONVOLUTION, BACKWARD_DATA}), self.activations | {P.ADD}, self.dtypes, 2)
        if refusal := chain.refuses(graph):
            return refusal
        if rest and anchor.type == BACKWARD_DATA:
            return "takes a transposed convolution alone"
        modes = [P(node.get(A.POINTWISE_MODE)) for node in rest]
        if modes and (modes[0] != P.ADD or P.ADD in modes[1:] or not self._is_bias(graph, rest[0])):
            return "an epilogue is a bias, or a bias and an activation"
        return None

    @staticmethod
    def _is_bias(graph: Graph, node: Node) -> bool:
        dims = graph.tensors[next(iter(node.outputs.values()))].dims
        per_channel = (1, dims[1], *(1,) * (len(dims) - 2))
        return any(graph.tensors[index].dims == per_channel for index in node.inputs.values())


@dataclass(frozen=True)
class Single:
    """Exactly one node of the given types; what it reads beside its first operand (scale, bias, statistics) lies in C order."""

    types: frozenset[D]
    dtypes: frozenset[DType]

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        if len(graph.nodes) != 1 or graph.nodes[0].type not in self.types:
            return "takes single nodes only"
        return _bad_tensor(graph, self.dtypes) or self._strided(graph)

    def _strided(self, graph: Graph) -> str | None:
        if graph.nodes[0].type not in BATCH_NORMS:
            return None
        _, *vectors = (graph.tensors[index] for index in graph.nodes[0].inputs.values())
        return None if all(map(_is_packed, vectors)) else "takes scale, bias and statistics in C order only"


_CODES_AT_ONCE = 8
"""Numbers of 4 bits that a generated kernel reads at once."""


class WholeBlocks(Single):
    """Block scale quantize or dequantize of a dim that is a multiple of the block."""

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        if refusal := super().refuses(graph):
            return refusal
        (node,) = graph.nodes
        axis, block = blocks_of(node)
        x = graph.tensors[next(iter(node.inputs.values()))]
        if x.dtype is I4 and (block % _CODES_AT_ONCE or axis != len(x.dims) - 1):
            return f"has blocks of {block} numbers of 4 bits, expected multiples of {_CODES_AT_ONCE} along memory"
        return f"has blocks of {block} of a dim of {x.dims[axis]}" if x.dims[axis] % block else None


_FOLDING = (REDUCTION, LAYER_NORM, RMS_NORM)
_OF_A_BYTE = 4
"""Times as many nodes are taken of functions of a byte, which are computed for all bytes once."""


@dataclass(frozen=True)
class Rowwise:
    """A DAG of pointwise nodes, of reductions, layer norms and RMS norms that all reduce the same dimensions.

    Every element that a thread computes is one of each result: pointwise nodes alone store results of one size.
    """

    dtypes: frozenset[DType]
    max_nodes: int

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        if any(node.type not in (POINTWISE, *_FOLDING) for node in graph.nodes):
            return "takes pointwise, reduction, layer norm and RMS norm nodes only"
        most = self.max_nodes * (_OF_A_BYTE if _reads_one_byte(graph) else 1)
        if len(graph.nodes) > most:
            return f"{len(graph.nodes)} nodes, at most {most}"
        axes = {_reduced_axes(graph, node) for node in graph.nodes if node.type in _FOLDING}
        if len(axes) > 1:
            return "reductions over different dimensions"
        if len(set(map(len, _tensor_dims(graph)))) > 1:
            return "tensors of different rank"
        if any(len(sizes - {1}) > 1 for sizes in map(set, zip(*_tensor_dims(graph), strict=True))):
            return "tensors of different sizes in a dimension"
        if axes and not self._rows_match(graph, next(iter(axes))):
            return "tensors that broadcast over a dimension that is not reduced"
        return _bad_tensor(graph, self.dtypes) or self._stores_less(graph)

    @staticmethod
    def _rows_match(graph: Graph, axes: tuple[int, ...]) -> bool:
        results = [t.dims for t in _used(graph) if t.operand is None and t.value is None]
        rows = {tuple(size for axis, size in enumerate(dims) if axis not in axes) for dims in results}
        return len(rows) == 1

    @staticmethod
    def _stores_less(graph: Graph) -> str | None:
        if any(node.type != POINTWISE for node in graph.nodes):
            return None
        whole = tuple(map(max, zip(*_tensor_dims(graph), strict=True)))
        stored = {tensor.dims for tensor in _used(graph) if tensor.result is not None}
        return "stores a result of fewer elements than it computes" if stored - {whole} else None


@dataclass(frozen=True)
class Reduction:
    """One reduction over any dims, with pointwise nodes before (on its shape) and after (on the reduced shape)."""

    dtypes: frozenset[DType]

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        if len(graph.nodes) != 1 or graph.nodes[0].type != REDUCTION:
            return "takes one reduction"
        return _bad_tensor(graph, self.dtypes)


def _reads_one_byte(graph: Graph) -> bool:
    """Whether pointwise nodes compute what follows from one tensor of bytes, and numbers."""
    operands = [tensor for tensor in _used(graph) if tensor.operand is not None]
    is_one = len(operands) == 1 and operands[0].dtype in (I8, U8)
    return is_one and all(node.type == POINTWISE for node in graph.nodes)


def _name(node: Node) -> str:
    return D(node.type).name.removeprefix("OPERATION_").removesuffix("_DESCRIPTOR").lower()


def _used(graph: Graph) -> list[Tensor]:
    indices = {i for node in graph.nodes for i in (*node.inputs.values(), *node.outputs.values())}
    return [graph.tensors[i] for i in sorted(indices)]


def _broadcasts(dims: Dims, whole: Dims) -> bool:
    return len(dims) == len(whole) and all(size in (1, other) for size, other in zip(dims, whole, strict=True))


def _tensor_dims(graph: Graph) -> list[Dims]:
    """Dims of all tensors but baked numbers."""
    return [tensor.dims for tensor in _used(graph) if tensor.value is None]


def _bad_tensor(graph: Graph, allowed: frozenset[DType]) -> str | None:
    for tensor in _used(graph):
        if tensor.value is None and tensor.dtype not in allowed:
            return f"has a tensor of {tensor.dtype}"
        if max(tensor.dims) > MAX_DIM:
            return f"has a dim of {max(tensor.dims)}, at most {MAX_DIM}"
    return None


def _is_packed(tensor: Tensor) -> bool:
    plain = packed(tensor.dims)
    return all(a == b for size, a, b in zip(tensor.dims, tensor.strides, plain, strict=True) if size != 1)


def _reduced_axes(graph: Graph, node: Node) -> tuple[int, ...]:
    if node.type == RMS_NORM:  # over the dims that its scale spans
        scale = graph.tensors[node.inputs[A.OPERATION_RMSNORM_SCALE_EXT]].dims
        return tuple(axis for axis, size in enumerate(scale) if size != 1)
    if node.type == LAYER_NORM:
        dims = graph.tensors[node.inputs[A.OPERATION_LAYERNORM_X_EXT]].dims
        first = len(dims) - node.get(A.OPERATION_LAYERNORM_NORMALIZED_DIM_COUNT_EXT)
        return tuple(axis for axis in range(first, len(dims)) if dims[axis] != 1)
    x = graph.tensors[node.inputs[A.OPERATION_REDUCTION_XDESC]].dims
    y = graph.tensors[node.outputs[A.OPERATION_REDUCTION_YDESC]].dims
    return tuple(axis for axis in range(len(x)) if x[axis] != y[axis])


def _is_hard_swish(graph: Graph, nodes: list[Node], x: int) -> bool:
    """X * clip(x + 3, 0, 6) / 6 in the node order the op table emits."""
    if tuple(P(node.get(A.POINTWISE_MODE)) for node in nodes) != _HARD_SWISH:
        return False
    clip = nodes[1]
    inputs = [list(node.inputs.values()) for node in nodes]
    outputs = [next(iter(node.outputs.values())) for node in nodes]
    chained = (
        inputs[0][0] == x and inputs[1] == [outputs[0]] and inputs[2] == [x, outputs[1]] and inputs[3][0] == outputs[2]
    )
    virtual = all(graph.tensors[index].is_virtual for index in outputs[:3])
    clips = (clip.get(A.POINTWISE_RELU_LOWER_CLIP), clip.get(A.POINTWISE_RELU_UPPER_CLIP)) == (0.0, 6.0)
    baked = graph.tensors[inputs[0][1]].value is not None and graph.tensors[inputs[3][1]].value is not None
    return chained and virtual and clips and baked
