"""Engines as data: what each library behind a target accepts. Claiming asks these tables; building the plan is the real test."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from . import precision as precisions
from .abi import Attribute as A
from .abi import Descriptor as D
from .abi import Pointwise as P
from .cudnn import FusedAttention
from .dtypes import BF16, BOOL, F16, F32, F64, I8, I32, I64, U8, DType
from .errors import ModelError
from .ops.blocks import DEQUANTIZE, QUANTIZE, blocks_of
from .ops.graph import Graph, Node, Tensor
from .ops.strides import Dims, packed
from .rocm import (
    HipblasltProduct,
    HipRmsNorm,
    MiopenBatchNorm,
    MiopenConvolution,
    conform_hip_kernels,
    conform_hipblaslt,
    conform_miopen,
)

CONVOLUTION = D.OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
BACKWARD_DATA = D.OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
MATMUL = D.OPERATION_MATMUL_DESCRIPTOR
POINTWISE = D.OPERATION_POINTWISE_DESCRIPTOR
REDUCTION = D.OPERATION_REDUCTION_DESCRIPTOR
RESAMPLE = D.OPERATION_RESAMPLE_FWD_DESCRIPTOR
CUSTOM_OP = D.OPERATION_CUSTOM_OP_DESCRIPTOR_EXT
LAYER_NORM = D.OPERATION_LAYERNORM_DESCRIPTOR_EXT
RMS_NORM = D.OPERATION_RMSNORM_DESCRIPTOR_EXT
BATCH_NORM = D.OPERATION_BATCHNORM_INFERENCE_VARIANCE_DESCRIPTOR_EXT
BATCH_NORM_OF_DEVIATION = D.OPERATION_BATCHNORM_INFERENCE_DESCRIPTOR_EXT
BLOCK_SCALES = frozenset({QUANTIZE, DEQUANTIZE})
BATCH_NORM_TRAINING = D.OPERATION_BATCHNORM_DESCRIPTOR_EXT
ATTENTION = D.OPERATION_SDPA_FWD_DESCRIPTOR

EPILOGUE_MODES = frozenset({
    P.ADD, P.SUB, P.MUL, P.DIV, P.MIN, P.MAX, P.RELU_FWD, P.TANH_FWD, P.SIGMOID_FWD, P.GELU_FWD, P.GELU_APPROX_TANH_FWD, P.SWISH_FWD,
    P.ELU_FWD, P.SOFTPLUS_FWD, P.ABS, P.SQRT, P.EXP, P.LOG, P.IDENTITY,
})  # fmt: skip
ROWWISE_TYPES = frozenset({F32, F64, F16, BF16, I8, U8, I32, I64, BOOL})
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
        if mode in self.slow_modes and tensor.dtype in (F16, BF16) and math.prod(tensor.dims) > self.slow_modes[mode]:
            return f"computes {mode.name} of {math.prod(tensor.dims)} elements slowly"
        operands = list(node.inputs.values())
        if operands.count(current) != 1:
            return f"{mode.name} does not continue the chain"
        if mode in (P.SUB, P.DIV) and operands[0] != current:
            return f"{mode.name} with the chain on the right"
        if any(graph.producer(other) is not None for other in operands if other != current):
            return f"{mode.name} joins two computed values"
        return None


class RowProduct(AnchorEpilogue):
    """A vector times a matrix whose columns lie along memory, with an epilogue: as fast as the matrix is read."""

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        if refusal := super().refuses(graph):
            return refusal
        node = graph.nodes[0]
        b = graph.tensors[node.inputs[A.OPERATION_MATMUL_BDESC]]
        c = graph.tensors[node.outputs[A.OPERATION_MATMUL_CDESC]]
        if any(size != 1 for size in c.dims[:-1]):
            return "has more than one row"
        return None if b.strides[-2] == 1 else "has a matrix whose columns do not lie along memory"


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
        if graph.nodes[0].type not in (LAYER_NORM, BATCH_NORM, BATCH_NORM_OF_DEVIATION):
            return None
        _, *vectors = (graph.tensors[index] for index in graph.nodes[0].inputs.values())
        return None if all(map(_is_packed, vectors)) else "takes scale, bias and statistics in C order only"


class WholeBlocks(Single):
    """Block scale quantize or dequantize of a dim that is a multiple of the block."""

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        if refusal := super().refuses(graph):
            return refusal
        (node,) = graph.nodes
        axis, block = blocks_of(node)
        size = graph.tensors[next(iter(node.inputs.values()))].dims[axis]
        return f"has blocks of {block} of a dim of {size}" if size % block else None


@dataclass(frozen=True)
class Rowwise:
    """A DAG of pointwise nodes, of reductions and RMS norms that all reduce the same dimensions."""

    dtypes: frozenset[DType]
    max_nodes: int

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        if any(node.type not in (POINTWISE, REDUCTION, RMS_NORM) for node in graph.nodes):
            return "takes pointwise, reduction and RMS norm nodes only"
        if len(graph.nodes) > self.max_nodes:
            return f"{len(graph.nodes)} nodes, at most {self.max_nodes}"
        axes = {_reduced_axes(graph, node) for node in graph.nodes if node.type in (REDUCTION, RMS_NORM)}
        if len(axes) > 1:
            return "reductions over different dimensions"
        if len(set(map(len, _tensor_dims(graph)))) > 1:
            return "tensors of different rank"
        if any(len(sizes - {1}) > 1 for sizes in map(set, zip(*_tensor_dims(graph), strict=True))):
            return "tensors of different sizes in a dimension"
        if axes and not self._rows_match(graph, next(iter(axes))):
            return "tensors that broadcast over a dimension that is not reduced"
        return _bad_tensor(graph, self.dtypes)

    @staticmethod
    def _rows_match(graph: Graph, axes: tuple[int, ...]) -> bool:
        results = [t.dims for t in _used(graph) if t.operand is None and t.value is None]
        rows = {tuple(size for axis, size in enumerate(dims) if axis not in axes) for dims in results}
        return len(rows) == 1


@dataclass(frozen=True)
class Reduction:
    """One reduction over any dims, with pointwise nodes before (on its shape) and after (on the reduced shape)."""

    dtypes: frozenset[DType]

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        if len(graph.nodes) != 1 or graph.nodes[0].type != REDUCTION:
            return "takes one reduction"
        return _bad_tensor(graph, self.dtypes)


class Rule(Protocol):
    """Which graphs an engine takes."""

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""


def _as_it_is(graph: Graph) -> Graph:
    return graph


@dataclass(frozen=True)
class Engine:
    """A named engine and the graphs it takes.

    Attributes:
        is_generated: it is no library's: the compiler writes a kernel for the graph.
        is_last_resort: it takes no graph whose first node an engine before it would take alone.
        conform: the graph in the form that the engine wants, of equal meaning; `accepts` judges that form.
    """

    name: str
    accepts: Rule
    is_generated: bool = False
    is_last_resort: bool = False
    conform: Callable[[Graph], Graph] = _as_it_is

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        return self.accepts.refuses(self.conform(graph))


@dataclass(frozen=True)
class Rates:
    """How fast a machine computes: what a kernel costs by itself, and what arithmetic and memory allow.

    Attributes:
        start_us: microseconds to start one kernel.
        flops_per_us, bytes_per_us: floating-point operations and bytes of memory traffic per microsecond.
    """

    start_us: float
    flops_per_us: float
    bytes_per_us: float

    def time_us(self, flops: float, moved_bytes: float) -> float:
        """Microseconds of a kernel, bound by arithmetic or by memory."""
        return self.start_us + max(flops / self.flops_per_us, moved_bytes / self.bytes_per_us)


@dataclass(frozen=True)
class CostModel:
    """What it costs to run a node on the host's CPU, a graph on the device, and to bring a value from one to the other.

    Attributes:
        cpu: ONNX Runtime's CPU kernels, one per ONNX node.
        device: this target, one kernel per graph.
        hop_us: microseconds for each value that crosses, whatever its size.
        link_bytes_per_us: bytes that cross per microsecond; infinite where device and host share memory.
    """

    cpu: Rates
    device: Rates
    hop_us: float
    link_bytes_per_us: float

    def crossing_us(self, moved_bytes: int) -> float:
        """Microseconds for one value to cross."""
        return self.hop_us + moved_bytes / self.link_bytes_per_us


@dataclass(frozen=True)
class Target:
    """A library to compile for.

    Attributes:
        name: as in `--target`.
        engines: preferred first.
        channels_last: node types that run best (or only) with channels-last activations.
        kernels: functions that its port, or code for its architecture, has kernels for (docs/program-format.md).
        channel_multiples: element type -> what the input channels of a convolution are filled up to a multiple of.
        architecture: of the GPU that code is generated for, as `hipdnn_mlir.gpu` names it; None on the host.
        merges_products: products of one value with several weights run as one.
        whole_epilogues: an engine may take an epilogue and refuse the first half of it.
        cost: what decides whether a part of a model is worth bringing here.
    """

    name: str
    engines: tuple[Engine, ...]
    channels_last: frozenset[D]
    kernels: frozenset[str]
    cost: CostModel
    channel_multiples: Mapping[DType, int] = field(default_factory=dict)
    architecture: str | None = None
    merges_products: bool = False
    whole_epilogues: bool = False

    def engine_for(self, graph: Graph, refused: Collection[str] = ()) -> Engine | None:
        """The first engine that takes the graph, or None.

        Args:
            graph: what is to be computed.
            refused: names of executables that the library has refused, whatever the tables say.
        """
        for engine in self.engines:
            if engine.refuses(graph) is not None:
                continue
            if refused and not engine.is_generated and engine.conform(graph).name in refused:
                continue
            if not engine.is_last_resort or not self._takes_anchor(graph):
                return engine
        return None

    def last_resort(self, graph: Graph) -> Engine | None:
        """The engine that takes the graph if no other does, or None."""
        return next((e for e in self.engines if e.is_last_resort and e.refuses(graph) is None), None)

    def _takes_anchor(self, graph: Graph) -> bool:
        """Whether an engine takes the first node by itself, and the rest need not keep it from that."""
        alone = first_node(graph) if len(graph.nodes) > 1 else graph
        return any(not e.is_last_resort and e.refuses(alone) is None for e in self.engines)

    def why_not(self, graph: Graph) -> str:
        """Every engine's reason against the graph."""
        reasons = ((engine, engine.refuses(graph)) for engine in self.engines)
        return "; ".join(
            f"{engine.name} {reason or 'leaves the first node to an engine that takes it alone'}"
            for engine, reason in reasons
        )


def _name(node: Node) -> str:
    return D(node.type).name.removeprefix("OPERATION_").removesuffix("_DESCRIPTOR").lower()


def first_node(graph: Graph) -> Graph:
    """The graph of the first node alone."""
    node = graph.nodes[0]
    tensors = list(graph.tensors)
    for number, index in enumerate(node.outputs.values()):
        tensors[index] = replace(tensors[index], result=number)
    return Graph(graph.compute, tensors, [node])


def _used(graph: Graph) -> list[Tensor]:
    indices = {i for node in graph.nodes for i in (*node.inputs.values(), *node.outputs.values())}
    return [graph.tensors[i] for i in sorted(indices)]


def _tensor_dims(graph: Graph) -> list[Dims]:
    """Dims of all tensors but baked numbers."""
    return [tensor.dims for tensor in _used(graph) if tensor.value is None]


def _bad_tensor(graph: Graph, allowed: frozenset[DType]) -> str | None:
    for tensor in _used(graph):
        if tensor.dtype not in allowed:
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


_FLOATS = frozenset({F32, F16, BF16})
KERNELS = frozenset({
    "map", "gather", "gather_elements", "gather_nd", "scatter_elements", "scatter_nd", "top_k", "arg_reduce", "scan", "reduce", "pad",
    "slice", "resize", "grid_sample", "reverse_sequence",
})  # fmt: skip
"""Those of the host's library, all of which `hipdnn_mlir.gpu` writes for GPUs."""
_CORE = Rates(start_us=1.0, flops_per_us=50e3, bytes_per_us=10e3)
"""One core of a present-day CPU, in order of magnitude: both sides of the host target run on it."""
HOST_TIME_SHARE = 0.9
"""The host library's time on large operations, as a share of ONNX Runtime's (measured: 0.79 to 0.99)."""
HOST = Target(
    "host",
    (
        Engine(
            "HOST_ONEDNN_ENGINE",
            AnchorEpilogue(frozenset({CONVOLUTION, BACKWARD_DATA, MATMUL}), EPILOGUE_MODES, _FLOATS, 16),
        ),
        Engine(
            "HOST_ONEDNN_ENGINE",
            Single(frozenset({RESAMPLE, LAYER_NORM, BATCH_NORM, BATCH_NORM_OF_DEVIATION}), _FLOATS),
        ),
        Engine("HOST_SDPA_ENGINE", Single(frozenset({ATTENTION}), _FLOATS | {BOOL})),
        Engine("HOST_BLOCK_SCALE_ENGINE", Single(BLOCK_SCALES, _FLOATS | {I8})),
        Engine("HOST_CUSTOM_OP_ENGINE", Single(frozenset({CUSTOM_OP}), ROWWISE_TYPES)),
        Engine("HOST_ROWWISE_ENGINE", Rowwise(ROWWISE_TYPES, 32)),
        Engine("HOST_ROWWISE_ENGINE", Single(frozenset({BATCH_NORM_TRAINING}), ROWWISE_TYPES)),
        Engine("HOST_REDUCTION_ENGINE", Reduction(ROWWISE_TYPES)),
    ),
    frozenset({CONVOLUTION, BACKWARD_DATA, RESAMPLE}),
    KERNELS,
    CostModel(
        cpu=_CORE,
        device=Rates(_CORE.start_us, _CORE.flops_per_us / HOST_TIME_SHARE, _CORE.bytes_per_us / HOST_TIME_SHARE),
        hop_us=1.0,
        link_bytes_per_us=math.inf,
    ),
)
_GPU_COST = CostModel(
    cpu=_CORE, device=Rates(start_us=3.0, flops_per_us=50e6, bytes_per_us=2e6), hop_us=10.0, link_bytes_per_us=20e3
)
"""A data-centre GPU behind PCI Express, in order of magnitude."""


_ANCHORS = frozenset({CONVOLUTION, BACKWARD_DATA, MATMUL})
_ROW_PRODUCT = Engine("GENERATED", RowProduct(frozenset({MATMUL}), EPILOGUE_MODES, _FLOATS, 16), is_generated=True)
_GENERATED = (
    Engine("GENERATED", Rowwise(ROWWISE_TYPES, 32), is_generated=True),
    Engine(
        "GENERATED",
        Single(frozenset({RESAMPLE, LAYER_NORM, BATCH_NORM, BATCH_NORM_OF_DEVIATION}), _FLOATS),
        is_generated=True,
    ),
    Engine("GENERATED", WholeBlocks(BLOCK_SCALES, _FLOATS | {I8}), is_generated=True),
    Engine("GENERATED", Reduction(ROWWISE_TYPES), is_generated=True),
    Engine("GENERATED", AnchorEpilogue(_ANCHORS, EPILOGUE_MODES, _FLOATS, 16), is_generated=True, is_last_resort=True),
)
"""What the compiler writes kernels for."""
TF32 = f"+{precisions.TF32}"
"""Behind a target's name: products of f32 may round their operands to TF32."""


_SLOW_IN_CUDNN = {P.GELU_FWD: 1 << 20}
"""Beside a product of (4096, 768) and (768, 3072) cuDNN's exact GELU of f16 takes 20 us of an H200, the product alone 34 us."""


def _cudnn(architecture: str, *, tf32: bool = False) -> Target:
    """NVIDIA's cuDNN, with generated kernels for what it is not asked for.

    Without TF32 cuDNN 9 fuses little into convolutions of f32, and nothing into matrix products: seen with 9.14 and 9.19
    on an H200, for images that are channels-last and results in C order.
    """
    activations = frozenset({P.RELU_FWD, P.TANH_FWD, P.SIGMOID_FWD, P.ELU_FWD})
    exact = Engine("CUDNN_ENGINE", BiasActivation(activations, frozenset({F32})))
    floats = _FLOATS if tf32 else _FLOATS - {F32}
    return Target(
        architecture,
        (
            _ROW_PRODUCT,
            Engine("CUDNN_ENGINE", AnchorEpilogue(_ANCHORS, EPILOGUE_MODES, floats, 16, _SLOW_IN_CUDNN)),
            *([] if tf32 else [exact]),
            Engine("CUDNN_ENGINE", FusedAttention()),
            *_GENERATED,
        ),
        frozenset({CONVOLUTION, BACKWARD_DATA, RESAMPLE}),
        KERNELS,
        _GPU_COST,
        {F16: 8, BF16: 8, F32: 4},
        architecture,
        merges_products=True,
    )


def _rocm(architecture: str) -> Target:
    """AMD's hipDNN with the providers of its default build, and generated kernels for what they refuse."""
    return Target(
        architecture,
        (
            Engine("MIOPEN_ENGINE", MiopenConvolution(), conform=conform_miopen),
            Engine("MIOPEN_ENGINE", MiopenBatchNorm(), conform=conform_miopen),
            _ROW_PRODUCT,
            Engine("HIPBLASLT_ENGINE", HipblasltProduct(), conform=conform_hipblaslt),
            Engine("HIP_KERNEL_ENGINE", HipRmsNorm(), conform=conform_hip_kernels),
            *_GENERATED,
        ),
        frozenset(),
        KERNELS,
        _GPU_COST,
        architecture=architecture,
        whole_epilogues=True,
    )


NVIDIA = ("sm_80", "sm_90")
AMD = ("gfx90a", "gfx942", "gfx1100", "gfx1201")
TARGETS: dict[str, Target] = {target.name: target for target in (HOST, *map(_cudnn, NVIDIA), *map(_rocm, AMD))}


def target_name(name: str, precision: str) -> str:
    """The name under which `find_target` finds what a precision allows."""
    return name + TF32 if precision == precisions.TF32 and not name.endswith(TF32) else name


_WITH_TF32 = {name + TF32: _cudnn(name, tf32=True) for name in NVIDIA}


def find_target(name: str) -> Target:
    """The target of a name, with TF32 behind it where that is allowed; raises ModelError listing the known ones."""
    plain = name.removesuffix(TF32)
    if plain not in TARGETS:
        raise ModelError(f"unknown target {name!r}: expected one of {', '.join(TARGETS)}")
    return _WITH_TF32.get(name, TARGETS[plain])
