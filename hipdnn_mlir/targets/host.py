"""What the host's library takes: it is a part of this package, so it is asked, graph by graph, and no table repeats it."""

import json
import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from hipdnn_mlir_runtime.abi import Attribute, Reduce
from hipdnn_mlir_runtime.abi import Descriptor as D
from hipdnn_mlir_runtime.dtypes import F32
from hipdnn_mlir_runtime.errors import DeviceError, ProgramError

from ..ops.graph import Graph
from ..ops.kernels import Kernel
from .rules import ANCHORS, ATTENTION, BACKWARD_DATA, CONVOLUTION, LAYER_NORM, POINTWISE, REDUCTION, RESAMPLE
from .target import CPU_CORE, CostModel, Engine, Rates, Target

if TYPE_CHECKING:
    from hipdnn_mlir_runtime import _runtime

CUSTOM_OP_ENGINE = "HOST_CUSTOM_OP_ENGINE"
_CUSTOM_OP = [D.OPERATION_CUSTOM_OP_DESCRIPTOR_EXT]
_ROWWISE_ENGINE = "HOST_ROWWISE_ENGINE"
_LONGEST_ROW = 32768
"""Elements. A single row with more is faster in parts: its extremes by themselves, on all threads, and then what reads them."""
_LONGEST_HEAD = 16384
"""Features. Attention of longer heads is faster in parts: with 65,536 of 32 keys it takes 0.6 of the time."""
_MOST_ANSWERS = 16384


@dataclass(frozen=True)
class Answer:
    """Names of the engines that take a graph, the preferred one first; each engine's reason against it where none does."""

    engines: tuple[str, ...]
    reason: str = ""


def open_library() -> "_runtime.Device":
    """The host's library.

    Raises:
        DeviceError: it is not part of this installation.
    """
    # Whoever asks for the names of targets need not wait for the runtime.
    from hipdnn_mlir_runtime.session.devices import open_device
    from hipdnn_mlir_runtime.session.options import device_options

    try:
        return open_device(device_options({}, "host", is_tf32=False))
    except DeviceError as error:
        hint = "or compile for a GPU with --target"
        raise DeviceError(f"compiling for target 'host' asks its library: {error}", hint=hint) from error


def ask(graph: Graph) -> Answer:
    """Which engines of the host's library take a graph.

    A custom operation is taken as it is: the process that runs the program registers it, this one need not.

    Raises:
        DeviceError: as for `open_library`.
    """
    if [node.type for node in graph.nodes] == _CUSTOM_OP:
        return Answer((CUSTOM_OP_ENGINE,))
    return _answer(f'{{"name":"graph","operands":{graph.operands_json},"descriptors":{graph.descriptors_json}}}')


def refuses_kernel(kernel: Kernel) -> str | None:
    """The host library's reason against a kernel, or None where it takes it.

    Raises:
        DeviceError: as for `open_library`.
    """
    return _kernel_refusal(json.dumps(kernel.description(), separators=(",", ":"))) or None


@lru_cache(_MOST_ANSWERS)
def _answer(executable: str) -> Answer:
    try:
        names, words = open_library().engines_for(executable)
    except (
        ProgramError
    ) as error:  # no graph that a program could hold, such as one of more bytes than there are addresses
        return Answer((), str(error))
    return Answer(tuple(names), _in_one_line(words))


@lru_cache(_MOST_ANSWERS)
def _kernel_refusal(image: str) -> str:
    return open_library().refuses_kernel(image)


def _in_one_line(words: str) -> str:
    """The engines' reasons, which follow a heading, or whatever else the library says."""
    heading, *reasons = words.splitlines() or [""]
    return "; ".join(map(str.strip, reasons)) or heading


class AskedRule:
    """What the host's library takes."""

    def refuses(self, graph: Graph) -> str | None:
        """Every engine's reason against the graph, in the library's words, or None."""
        return ask(graph).reason or None


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
        engines = ask(graph).engines
        is_taken = engines and not (refused and graph.name in refused)
        return asked_engine(engines[0]) if is_taken else None

    def why_not(self, graph: Graph) -> str:
        """Every engine's reason against the graph, in the library's words."""
        return "it is faster in two graphs" if self._is_slow(graph) else ask(graph).reason

    def refuses_kernel(self, kernel: Kernel) -> str | None:
        """Why the library does not take the kernel, in its own words, or None."""
        return refuses_kernel(kernel)

    def _is_slow(self, graph: Graph) -> bool:
        first, *rest = graph.nodes
        is_long = first.type in ANCHORS and len(rest) > self.most_steps
        is_with_others = bool(rest) and any(node.type in self.alone for node in graph.nodes)
        return is_long or is_with_others or _is_one_long_row(graph) or _has_long_heads(graph)


def _has_long_heads(graph: Graph) -> bool:
    """Whether features of attention are an image's pixels, as where channels attend to each other."""
    queries = [
        graph.tensors[node.inputs[Attribute.OPERATION_SDPA_FWD_QDESC]] for node in graph.nodes if node.type == ATTENTION
    ]
    return any(tensor.dims[-1] > _LONGEST_HEAD for tensor in queries)


def _is_one_long_row(graph: Graph) -> bool:
    """Whether extremes of all of a long tensor are spread back over it, as where it is quantized dynamically.

    Sums are no matter of this: they are parts of norms, which are one operator.
    """
    folds = [node for node in graph.nodes if node.type == REDUCTION]
    sizes = {index: math.prod(tensor.dims) for index, tensor in enumerate(graph.tensors)}
    return (
        bool(folds)
        and max(sizes.values()) > _LONGEST_ROW
        and all(sizes[index] == 1 for node in folds for index in node.outputs.values())
        and all(node.get(Attribute.REDUCTION_OPERATOR) in (Reduce.MIN, Reduce.MAX) for node in folds)
        and all(node.type in (POINTWISE, REDUCTION) for node in graph.nodes)
        and ask(graph).engines[:1] == (_ROWWISE_ENGINE,)
    )


HOST_TIME_SHARE = 0.9
"""The host library's time on large operations, as a share of ONNX Runtime's (measured: 0.79 to 0.99)."""
HOST = HostTarget(
    "host",
    frozenset({CONVOLUTION, BACKWARD_DATA, RESAMPLE}),
    CostModel(
        cpu=CPU_CORE,
        device=Rates(
            CPU_CORE.start_us, CPU_CORE.flops_per_us / HOST_TIME_SHARE, CPU_CORE.bytes_per_us / HOST_TIME_SHARE
        ),
        hop_us=1.0,
        link_bytes_per_us=math.inf,
    ),
    # oneDNN's; beside other nodes it is the rowwise engine's, which takes 1.2 to 3 times as long
    alone=frozenset({LAYER_NORM}),
    # oneDNN multiplies matrices for each group otherwise: 48 groups of 4 channels take 4.4 times as long as 24 of 8
    group_channels={F32: 8},
)
