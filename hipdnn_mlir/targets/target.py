"""What a target is: engines, each with a rule for the graphs it takes, and what work costs there."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from hipdnn_mlir_runtime.abi import Descriptor as D
from hipdnn_mlir_runtime.dtypes import F32, DType

from ..ops.graph import Graph
from ..ops.kernels import Kernel
from .sources import Source


class Rule(Protocol):
    """Which graphs an engine takes."""

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""


class SourcedRule(Rule, Protocol):
    """A rule that was read in a library's sources."""

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where."""


def _as_it_is(graph: Graph) -> Graph:
    return graph


@dataclass(frozen=True)
class Engine:
    """A named engine and the graphs it takes.

    Attributes:
        is_generated: it is no library's: the compiler writes a kernel for the graph.
        is_last_resort: it takes no graph whose first node an engine before it would take alone.
        alignment: bytes that the address of every operand and result has to be a multiple of.
        conform: the graph in the form that the engine wants, of equal meaning; `accepts` judges that form.
        sources: where the rule was read, if it was read in a library's sources.
    """

    name: str
    accepts: Rule
    is_generated: bool = False
    is_last_resort: bool = False
    alignment: int = 1
    conform: Callable[[Graph], Graph] = _as_it_is
    sources: tuple[Source, ...] = ()

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        loose = [tensor for _, tensor in graph.by_uid() if tensor.has_pointer and tensor.alignment < self.alignment]
        if loose:
            return f"takes tensors on {self.alignment} bytes only, one lies on {loose[0].alignment}"
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
        matrices_by_columns: constant right operands of matmuls are best stored with their columns along memory.
        channel_multiples: element type -> what the input channels of a convolution are filled up to a multiple of.
        group_channels: element type -> channels that a group of a convolution has a multiple of where it has fewer.
        head_features: what the features of a head of attention are filled up to a multiple of.
        architecture: of the GPU that code is generated for, as `hipdnn_mlir.codegen` names it; None on the host.
        merges_matmuls: matmuls of one value with several weights run as one.
        splits_inner: a matmul of few rows and columns runs as several, each of a part of the inner dim.
        exact_products: type of numbers of up to 11 bits that are multiplied and summed as exactly as in f32, to f32.
        whole_epilogues: an engine may take an epilogue and refuse the first half of it.
        cost: what decides whether a part of a model is worth bringing here.
    """

    name: str
    channels_last: frozenset[D]
    cost: CostModel
    engines: tuple[Engine, ...] = ()
    filters_channels_last: bool = False
    matrices_by_columns: bool = False
    channel_multiples: Mapping[DType, int] = field(default_factory=dict)
    group_channels: Mapping[DType, int] = field(default_factory=dict)
    head_features: int = 1
    architecture: str | None = None
    merges_matmuls: bool = False
    splits_inner: bool = False
    whole_epilogues: bool = False
    exact_products: DType = F32

    @property
    def alignment(self) -> int:
        """Bytes that an address is a multiple of where every engine takes it."""
        return max((engine.alignment for engine in self.engines), default=1)

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


def first_node(graph: Graph) -> Graph:
    """The graph of the first node alone."""
    node = graph.nodes[0]
    tensors = list(graph.tensors)
    for number, index in enumerate(node.outputs.values()):
        tensors[index] = replace(tensors[index], result=number)
    return Graph(graph.compute, tensors, [node])


CPU_CORE = Rates(start_us=1.0, flops_per_us=50e3, bytes_per_us=10e3)
"""One core of a present-day CPU, in order of magnitude: ONNX Runtime's kernels, and those of target `host`, run on it."""
