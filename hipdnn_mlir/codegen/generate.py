"""A description of a kernel, or a hipDNN operation graph, -> code for a GPU."""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hipdnn_mlir_runtime.abi import Descriptor
from hipdnn_mlir_runtime.errors import Reject

from ..ops.byte_products import byte_products
from ..ops.depthwise import depthwise
from ..ops.few_channels import few_channels
from ..ops.few_rows import few_rows, takes_rows, takes_units
from ..ops.graph import Graph
from ..ops.spec import Refusal
from .core.arch import Architecture
from .core.assemble import EMPTY, Launch, assembled, check_grid
from .core.kernel import GpuKernel, Operand, operands_of
from .kernels import move, scatter
from .kernels.block_scale import block_scale_body, is_block_scale
from .kernels.body import elementwise_body, reduce_body
from .kernels.byte_products import byte_products_launch
from .kernels.cache_update import cache_update_launch
from .kernels.column_waves import column_waves_launch
from .kernels.contraction import ANCHORS
from .kernels.decode_attention import decode_attention_launch
from .kernels.depthwise import depthwise_launch
from .kernels.few_channels import few_channels_launch
from .kernels.gemv import gemv_launch
from .kernels.gemv_units import gemv_units_launch
from .kernels.graph_body import graph_body
from .kernels.grid_sample import grid_sample_launch
from .kernels.pull_scatter import pull_launch
from .kernels.recurrence import recurrence_launch
from .kernels.resize import resize_launch
from .kernels.rowwise import body_launch
from .kernels.scan import scan_launch
from .kernels.select import arg_reduce_launch, top_k_launch
from .kernels.suppress_boxes import suppress_boxes_launch
from .kernels.tiled_contraction import contraction_launch
from .kernels.units_attention import units_attention_launch
from .kernels.window import pooling_launch

Attributes = Mapping[str, Any]
Generator = Callable[[Sequence[Operand], Attributes, Architecture], Launch]


@dataclass(frozen=True)
class Part:
    """One launch of a kernel and the tensors that are its arguments."""

    launch: Launch
    arguments: tuple[int, ...]


def _elementwise(operands: Sequence[Operand], attributes: Attributes, architecture: Architecture) -> Launch:
    return body_launch(elementwise_body(operands, attributes), architecture)


def _reduce(operands: Sequence[Operand], attributes: Attributes, architecture: Architecture) -> Launch:
    return body_launch(reduce_body(operands, attributes), architecture)


GENERATORS: dict[str, Generator] = {
    "elementwise": _elementwise,
    "reduce": _reduce,
    "gather": move.gather_launch,
    "gather_elements": move.gather_elements_launch,
    "gather_nd": move.gather_nd_launch,
    "slice": move.slice_launch,
    "pad": move.pad_launch,
    "reverse_sequence": move.reverse_sequence_launch,
    "arg_reduce": arg_reduce_launch,
    "top_k": top_k_launch,
    "suppress_boxes": suppress_boxes_launch,
    "recurrence": recurrence_launch,
    "scan": scan_launch,
    "resize": resize_launch,
    "grid_sample": grid_sample_launch,
    "cache_update": cache_update_launch,
    "decode_attention": decode_attention_launch,
}
"""Functions of docs/host-library.md that are one launch."""
_SCATTERS = {"scatter_elements": scatter.scatter_elements_launch, "scatter_nd": scatter.scatter_nd_launch}
FUNCTIONS = frozenset({*GENERATORS, *_SCATTERS})
"""Functions that have code for GPUs."""
READS_EARLY = frozenset({"decode_attention"})
"""Those that read what is settled while the kernel in front still runs."""


def generate(
    description: Mapping[str, Any],
    architecture: Architecture,
    alignments: Sequence[int] | None = None,
    settled: Sequence[int] = (),
) -> GpuKernel | Reject:
    """Compile a kernel.

    Args:
        description: function, tensors and attributes, as in a program file (`ops.kernels.Kernel.description`).
        architecture: of the GPU.
        alignments: bytes that each tensor's address is a multiple of, at least its element's size; 16 where nothing is said.
        settled: numbers of tensors that no kernel of the program writes.

    Returns:
        The kernel, or why there is none.

    Raises:
        MissingToolError: llvmlite is not installed.
        PassError: code that should compile does not.
    """
    try:
        parts = parts_of(description, architecture, alignments, settled)
        for part in parts:
            check_grid(part.launch, architecture)
    except Refusal as refusal:
        return Reject(description["function"], refusal.rule, refusal.reason)
    digest = hashlib.sha256(json.dumps([description, alignments, list(settled)], sort_keys=True).encode()).hexdigest()[
        :16
    ]
    *before, last = [
        assembled(part.launch, f"k_{digest}_{number}", part.arguments, architecture)
        for number, part in enumerate(parts)
    ]
    return replace(last, preceded_by=tuple(before))


def parts_of(
    description: Mapping[str, Any],
    architecture: Architecture,
    alignments: Sequence[int] | None = None,
    settled: Sequence[int] = (),
) -> list[Part]:
    """The launches of a kernel, not compiled yet; raises Refusal."""
    function, attributes = description["function"], description["attributes"]
    operands = operands_of(description["tensors"], alignments, settled)
    if function not in FUNCTIONS:
        raise Refusal("kernel", f"no code for {function} on GPUs")
    if all(operand.elements == 0 for operand in operands if operand.role == "out"):
        return [Part(EMPTY, tuple(range(len(operands))))]
    if function in GENERATORS:
        return [Part(GENERATORS[function](operands, attributes, architecture), tuple(range(len(operands))))]
    pulled = pull_launch(function, operands, attributes)
    if pulled is not None:
        return [Part(pulled, tuple(range(len(operands))))]
    data, out = operands[0], operands[-1]
    copy = move.move_launch(move.Move(0, 1, data.strides), [data, out], architecture)
    update = _SCATTERS[function](operands, attributes)
    parts = [Part(copy, (0, len(operands) - 1)), Part(update, tuple(range(len(operands))))]
    return [part for part in parts if part.launch.blocks]


def generate_graph(graph: Graph, architecture: Architecture, constants: Collection[int] = ()) -> GpuKernel | Reject:
    """Compile a hipDNN operation graph: pointwise nodes, reductions over the same dims, norms; or one pooling, attention, block scale.

    Args:
        graph: with strides and alignments of its buffers.
        architecture: of the GPU.
        constants: region operands that never change, which may be read while the kernel in front still runs.

    Returns:
        The kernel, whose arguments are numbers of `graph.operands()`, or why there is none.

    Raises:
        ModelError, PassError: as `generate`.
    """
    try:
        launch = launch_of_graph(graph, architecture, constants)
        check_grid(launch, architecture)
    except Refusal as refusal:
        return Reject(_summary(graph), refusal.rule, refusal.reason)
    return assembled(launch, f"g_{graph.digest()}", range(len(graph.operands())), architecture)


def _summary(graph: Graph) -> str:
    names = [
        Descriptor(node.type).name.removeprefix("OPERATION_").split("_DESCRIPTOR")[0].lower() for node in graph.nodes
    ]
    return " + ".join(names)


def _few_rows_launch(graph: Graph, architecture: Architecture, constants: Collection[int]) -> Launch | None:
    """Of a graph whose matrices are read once, or None where there are other rows or other nodes; raises Refusal."""
    try:
        found = few_rows(graph)
    except Refusal:
        return None
    has_units = architecture.vendor == "nvidia"
    if takes_rows(graph, found, has_units=has_units) is not None:
        return None
    if not (has_units and takes_units(graph, found)):
        return gemv_launch(graph, architecture, constants)
    made = column_waves_launch(graph, architecture, constants)
    return gemv_units_launch(graph, architecture, constants) if made is None else made


def _convolution_launch(graph: Graph, architecture: Architecture, constants: Collection[int]) -> Launch | None:
    """Of a convolution that has a kernel of its own, or None where there is none or the GPU has no units for it; raises Refusal."""
    if _is(depthwise, graph):
        return depthwise_launch(graph, architecture)
    if architecture.vendor != "nvidia":
        return None
    if _is(byte_products, graph):
        return byte_products_launch(graph, architecture, constants)
    return few_channels_launch(graph, architecture) if _is(few_channels, graph) else None


def _is(find: Callable[[Graph], object], graph: Graph) -> bool:
    try:
        find(graph)
    except Refusal:
        return False
    return True


def launch_of_graph(graph: Graph, architecture: Architecture, constants: Collection[int] = ()) -> Launch:
    """The launch of a graph, not compiled yet; raises Refusal. For `constants` see `generate_graph`."""
    if len(graph.nodes) == 1 and graph.nodes[0].type == Descriptor.OPERATION_RESAMPLE_FWD_DESCRIPTOR:
        return pooling_launch(graph, architecture)
    if graph.nodes[0].type == Descriptor.OPERATION_SDPA_FWD_DESCRIPTOR:
        return units_attention_launch(graph, architecture)
    few = _few_rows_launch(graph, architecture, constants)
    if few is not None:
        return few
    convolution = _convolution_launch(graph, architecture, constants)
    if convolution is not None:
        return convolution
    if graph.nodes[0].type in ANCHORS:
        return contraction_launch(graph, architecture)
    if is_block_scale(graph):
        return body_launch(block_scale_body(graph), architecture)
    return body_launch(graph_body(graph), architecture)
