"""Targets: what the engines of each take, and what work costs there.

The host's library is asked. What a GPU's libraries take is stated as data, for none of them need be where a model is compiled; building the
plan is the real test.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Protocol

from .. import precision as precisions
from ..abi import Descriptor as D
from ..abi import Pointwise as P
from ..dtypes import BF16, F16, F32, I8, DType
from ..errors import ModelError
from ..ops.graph import Graph
from ..ops.kernels import Kernel
from . import host
from .cublas import BlasProduct
from .cudnn import FusedAttention
from .fusilli import FusilliGraph, conform_fusilli
from .rocm import (
    HipblasltProduct,
    HipRmsNorm,
    MiopenBatchNorm,
    MiopenConvolution,
    conform_hip_kernels,
    conform_hipblaslt,
    conform_miopen,
)
from .rules import (
    BACKWARD_DATA,
    BATCH_NORM,
    BATCH_NORM_OF_DEVIATION,
    BLOCK_SCALES,
    CONVOLUTION,
    EPILOGUE_MODES,
    LAYER_NORM,
    MATMUL,
    RESAMPLE,
    ROWWISE_TYPES,
    AnchorEpilogue,
    BiasActivation,
    Reduction,
    RowProduct,
    Rowwise,
    Single,
    WholeBlocks,
)


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
        channels_last: node types that run best (or only) with channels-last activations.
        engines: preferred first.
        filters_channels_last: constant filters of convolutions are best stored as activations are.
        channel_multiples: element type -> what the input channels of a convolution are filled up to a multiple of.
        architecture: of the GPU that code is generated for, as `hipdnn_mlir.codegen` names it; None on the host.
        merges_matmuls: matmuls of one value with several weights run as one.
        whole_epilogues: an engine may take an epilogue and refuse the first half of it.
        cost: what decides whether a part of a model is worth bringing here.
    """

    name: str
    channels_last: frozenset[D]
    cost: CostModel
    engines: tuple[Engine, ...] = ()
    filters_channels_last: bool = False
    channel_multiples: Mapping[DType, int] = field(default_factory=dict)
    architecture: str | None = None
    merges_matmuls: bool = False
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

    def refuses_kernel(self, kernel: Kernel) -> str | None:  # noqa: ARG002 - of the host's
        """Why the library does not take a kernel, or None, as for all kernels on GPUs: whether there is code, the generator says."""
        return None


class AskedRule:
    """What the host's library takes."""

    def refuses(self, graph: Graph) -> str | None:
        """Every engine's reason against the graph, in the library's words, or None."""
        return host.ask(graph).reason or None


@cache
def asked_engine(name: str) -> Engine:
    """The host's engine of a name."""
    return Engine(name, AskedRule())


@dataclass(frozen=True)
class HostTarget(Target):
    """The CPU, whose library says itself what it takes; its methods raise DeviceError where it is not part of this installation.

    Attributes:
        alone: node types that the library takes in larger graphs too, but computes faster in graphs of their own.
        most_steps: of an epilogue; the rest is in another graph, where functions such as tanh take two thirds of the time.
    """

    alone: frozenset[D] = frozenset()
    most_steps: int = 16

    def engine_for(self, graph: Graph, refused: Collection[str] = ()) -> Engine | None:
        """The engine that the library prefers, or None; as of any target."""
        if self._is_slow(graph):
            return None
        engines = host.ask(graph).engines
        is_taken = engines and not (refused and graph.name in refused)
        return asked_engine(engines[0]) if is_taken else None

    def why_not(self, graph: Graph) -> str:
        """Every engine's reason against the graph, in the library's words."""
        return "it is faster in two graphs" if self._is_slow(graph) else host.ask(graph).reason

    def refuses_kernel(self, kernel: Kernel) -> str | None:
        """Why the library does not take the kernel, in its own words, or None."""
        return host.refuses_kernel(kernel)

    def _is_slow(self, graph: Graph) -> bool:
        first, *rest = graph.nodes
        is_long = first.type in _ANCHORS and len(rest) > self.most_steps
        return is_long or (bool(rest) and any(node.type in self.alone for node in graph.nodes))


def first_node(graph: Graph) -> Graph:
    """The graph of the first node alone."""
    node = graph.nodes[0]
    tensors = list(graph.tensors)
    for number, index in enumerate(node.outputs.values()):
        tensors[index] = replace(tensors[index], result=number)
    return Graph(graph.compute, tensors, [node])


_FLOATS = frozenset({F32, F16, BF16})
_ANCHORS = frozenset({CONVOLUTION, BACKWARD_DATA, MATMUL})
_CORE = Rates(start_us=1.0, flops_per_us=50e3, bytes_per_us=10e3)
"""One core of a present-day CPU, in order of magnitude: both sides of the host target run on it."""
HOST_TIME_SHARE = 0.9
"""The host library's time on large operations, as a share of ONNX Runtime's (measured: 0.79 to 0.99)."""
HOST = HostTarget(
    "host",
    frozenset({CONVOLUTION, BACKWARD_DATA, RESAMPLE}),
    CostModel(
        cpu=_CORE,
        device=Rates(_CORE.start_us, _CORE.flops_per_us / HOST_TIME_SHARE, _CORE.bytes_per_us / HOST_TIME_SHARE),
        hop_us=1.0,
        link_bytes_per_us=math.inf,
    ),
    alone=frozenset(
        {LAYER_NORM}
    ),  # oneDNN's; beside other nodes it is the rowwise engine's, which takes 1.2 to 3 times as long
)
_GPU_COST = CostModel(
    cpu=_CORE, device=Rates(start_us=3.0, flops_per_us=50e6, bytes_per_us=2e6), hop_us=10.0, link_bytes_per_us=20e3
)
"""A data-centre GPU behind PCI Express, in order of magnitude."""


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
FUSILLI = "+fusilli"
"""Behind an AMD target's name: hipDNN's Fusilli provider is there, too, which is not in its default build."""
FUSILLI_ENGINE = "FUSILLI_ENGINE"
"""That provider's engine."""


_SLOW_IN_CUDNN = {P.GELU_FWD: 1 << 20}
"""Beside a product of (4096, 768) and (768, 3072) cuDNN's exact GELU of f16 takes 20 us of an H200, the product alone 34 us."""


_BLAS_EPILOGUE = frozenset({P.ADD, P.RELU_FWD, P.GELU_APPROX_TANH_FWD})


def _cudnn(architecture: str, *, tf32: bool = False) -> Target:
    """NVIDIA's cuDNN and, for matrix products, cuBLASLt, with generated kernels for what they are not asked for.

    Products that cuDNN takes are cuBLASLt's as well where it has their epilogues: which one runs a graph is decided when plans are made.
    Without TF32 cuDNN 9 fuses little into convolutions of f32, and nothing into matrix products: seen with 9.14 and 9.19
    on an H200, for images that are channels-last and results in C order.
    """
    activations = frozenset({P.RELU_FWD, P.TANH_FWD, P.SIGMOID_FWD, P.ELU_FWD})
    exact = (
        Engine("CUDNN_ENGINE", BiasActivation(activations, frozenset({F32}))),
        Engine("CUBLASLT_ENGINE", BlasProduct(frozenset({MATMUL}), _BLAS_EPILOGUE, frozenset({F32}), 3)),
    )
    floats = _FLOATS if tf32 else _FLOATS - {F32}
    return Target(
        architecture,
        frozenset({CONVOLUTION, BACKWARD_DATA, RESAMPLE}),
        _GPU_COST,
        (
            _ROW_PRODUCT,
            Engine("CUDNN_ENGINE", AnchorEpilogue(_ANCHORS, EPILOGUE_MODES, floats, 16, _SLOW_IN_CUDNN)),
            *(() if tf32 else exact),
            Engine("CUDNN_ENGINE", FusedAttention()),
            *_GENERATED,
        ),
        filters_channels_last=True,
        channel_multiples={F16: 8, BF16: 8, F32: 4},
        architecture=architecture,
        merges_matmuls=True,
    )


def _rocm(architecture: str, *, fusilli: bool = False) -> Target:
    """AMD's hipDNN with the providers of its default build, or with Fusilli's, too, and generated kernels for what they refuse."""
    more = (Engine(FUSILLI_ENGINE, FusilliGraph(), conform=conform_fusilli),) if fusilli else ()
    return Target(
        architecture,
        frozenset(),
        _GPU_COST,
        (
            Engine("MIOPEN_ENGINE", MiopenConvolution(), conform=conform_miopen),
            Engine("MIOPEN_ENGINE", MiopenBatchNorm(), conform=conform_miopen),
            _ROW_PRODUCT,
            Engine("HIPBLASLT_ENGINE", HipblasltProduct(), conform=conform_hipblaslt),
            Engine("HIP_KERNEL_ENGINE", HipRmsNorm(), conform=conform_hip_kernels),
            *more,
            *_GENERATED,
        ),
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
_WITH_FUSILLI = {name + FUSILLI: _rocm(name, fusilli=True) for name in AMD}


def find_target(name: str) -> Target:
    """The target of a name, with FUSILLI behind it, and TF32, which changes nothing where there is none.

    Raises:
        ModelError: unknown; it lists the known ones.
    """
    plain = name.removesuffix(TF32)
    known = TARGETS | _WITH_FUSILLI
    if plain not in known:
        listed = f"{', '.join(TARGETS)}, or one of AMD's with {FUSILLI} behind it"
        raise ModelError(f"unknown target {name!r}: expected one of {listed}")
    return _WITH_TF32.get(name, known[plain])
