"""Decides which nodes of a model become hipDNN programs."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import onnx

from hipdnn_mlir_runtime.errors import ModelError, PlanRefusedError, RefusedPlan, Reject, UnsupportedError
from hipdnn_mlir_runtime.options import options_of
from hipdnn_mlir_runtime.precision import UNCHANGED, find_precision

from ..compiler.compile import has_code
from ..compiler.lower import lower
from ..compiler.program import Lowered
from ..dynamic.input_sizes import Buckets
from ..extension import load_extensions
from ..frontend.constant_branches import computes_nothing
from ..frontend.container import stand_ins
from ..frontend.decompositions.steps import has_known_steps, steps_along
from ..frontend.model_file import is_compiled_ahead, read_model
from ..frontend.onnx_types import BY_ONNX
from ..frontend.operands import sizing_operands
from ..frontend.shape_inference import DATA_DEPENDENT, static_dims
from ..frontend.sizes.input_sizes import input_sizes
from ..frontend.sizes.samples import CACHED
from ..frontend.subgraphs import subgraphs
from ..targets.table import find_target
from .dry_run import Failure, dry_run
from .extract import Region, extract
from .graph import OnnxGraph, read_graph
from .plans import lowered_here
from .profit import drop_losing
from .regions import convex_regions
from .shapes import PROBES, Types, declare_all, drop_contradicted, infer_types, probed_inputs

logger = logging.getLogger(__name__)

MODES = options_of("provider")["placement"].choices
_FALLBACKS = options_of("provider")["dynamic_fallback"].choices


@dataclass(frozen=True)
class Partition:
    """Nodes that become one program.

    Attributes:
        nodes: names, in topological order.
        is_dynamic: whether inputs of the model have dynamic dimensions.
        model: the nodes as a model of their own, large weights external.
        lowered: the model compiled up to the values of its weights, or, of a dynamic one, possibly with numbers for its dynamic dimensions.
    """

    nodes: list[str]
    is_dynamic: bool
    model: onnx.ModelProto = field(repr=False)
    lowered: Lowered = field(repr=False)

    @property
    def is_whole(self) -> bool:
        """Whether `lowered` is what a request to compile the model as it is asks for."""
        return self.is_dynamic == bool(self.lowered.model.symbols)


@dataclass(frozen=True)
class Placement:
    """The parts of a model that run as hipDNN programs, and why the rest does not.

    Attributes:
        partitions: each compiles, and no path between two of its nodes leads through others.
        rejects: nodes that no engine takes.
        dropped: nodes of partitions that would cost more than they gain, or that have no dynamic program, with the reason.
        contradicted: values that have other sizes than the model declares, or may have -> their dims, as numbers and names.
        nodes: number of the model's nodes, constants left out.
    """

    partitions: list[Partition]
    rejects: list[Reject]
    dropped: list[tuple[list[str], str]]
    contradicted: dict[str, list[int | str]]
    nodes: int

    @property
    def graphs(self) -> int:
        """Number of hipDNN graphs in all partitions."""
        return sum(partition.lowered.graphs for partition in self.partitions)


def place(
    model: str | Path | onnx.ModelProto,
    *,
    target: str = "host",
    precision: str = UNCHANGED,
    mode: str = "profitable",
    dynamic_fallback: str = "compile",
    buckets: Buckets | None = None,
) -> Placement:
    """Decide which nodes of a model become hipDNN programs, as partitions that are known to compile.

    The compiler itself is asked: the whole model first, then convex regions of what is left without the nodes that it refuses. Values of
    large float weights are not looked at, nor are the bodies of nodes with subgraphs.

    Args:
        model: path or loaded model; not modified.
        target: whose engines to ask.
        precision: as for `compile`.
        mode: "profitable" applies the hop rule (see placement.profit), "maximal" keeps every partition.
        dynamic_fallback: "compile" keeps partitions that have no dynamic program, "cpu" drops them.
        buckets: sizes of dynamic dimensions for which a GPU's programs are made ahead, as for `compile`.

    Raises:
        ModelError: missing or broken model, unknown target, precision, mode or kind of `dynamic_fallback`.
    """
    load_extensions()
    library = find_target(target)
    find_precision(precision)
    if mode not in MODES:
        raise ModelError(f"unknown placement {mode!r}: expected one of {', '.join(MODES)}")
    if dynamic_fallback not in _FALLBACKS:
        raise ModelError(f"unknown dynamic_fallback {dynamic_fallback!r}: expected one of {', '.join(_FALLBACKS)}")
    graph = read_graph(read_model(model).proto)
    wrong = drop_contradicted(graph)
    declare_all(graph)
    search = _Search(graph, target, precision)
    verified = search.run()
    losing = (
        drop_losing(graph, search.types, verified, library.cost) if mode == "profitable" and search.rejected else []
    )
    left_out = {members for members, _ in losing}
    partitions = [search.partition(members, lowered) for members, lowered in verified if members not in left_out]
    without: list[tuple[list[str], str]] = []
    if dynamic_fallback == "cpu":
        partitions, without = _with_dynamic_program(partitions, target, precision, buckets or {})
    return Placement(
        partitions,
        [reject for index in sorted(search.rejected) for reject in search.rejected[index]],
        [([graph.nodes[member].name for member in members], reason) for members, reason in losing] + without,
        wrong,
        len(graph.nodes),
    )


def _with_dynamic_program(
    partitions: Iterable[Partition], target: str, precision: str, buckets: Buckets
) -> tuple[list[Partition], list[tuple[list[str], str]]]:
    """The partitions that have a dynamic program, with it, and the nodes of the others with the reason."""
    kept: list[Partition] = []
    without = []
    for partition in partitions:
        proto = partition.model
        if partition.is_whole or (has_code(target) and {*input_sizes(proto, {}, "part").table.symbols} <= {*buckets}):
            kept.append(partition)
            continue
        options = {"target": target, "precision": precision, "external": stand_ins(proto)}
        try:
            kept.append(replace(partition, lowered=lowered_here(partial(_lowered_without, proto, options))))
        except (ModelError, UnsupportedError, PlanRefusedError) as error:
            without.append((partition.nodes, f"there is no dynamic program: {error}"))
    return kept, without


def _lowered_without(proto: onnx.ModelProto, options: dict[str, Any], refused: Sequence[RefusedPlan]) -> Lowered:
    return lower(proto, refused=refused, **options)


TOTAL = 6
"""The operand of attention with a cache that is its number of keys."""


class _Search:
    """Finds regions that compile: nodes that the compiler names are left out, regions it refuses without naming any are halved."""

    def __init__(self, graph: OnnxGraph, target: str, precision: str) -> None:
        self._graph = graph
        self._target = target
        self._precision = precision
        self._colours = [0] * len(graph.nodes)
        self._sources = [graph.sources(index) for index in range(len(graph.nodes))]
        self._late = _shape_arithmetic(graph)
        self._outcomes: dict[tuple[int, ...], Lowered | Failure] = {}
        self.types = Types(probed_inputs(graph, PROBES[0]), {}, PROBES[0])
        self.rejected: dict[int, list[Reject]] = {}

    def run(self) -> list[tuple[tuple[int, ...], Lowered]]:
        """Disjoint regions with their compiled form, in order of their first node."""
        self._screen(_structural(self._graph, node) for node in self._graph.nodes)
        known = _shape_arithmetic(self._graph, takes_constants=True)
        self._screen(_sized_by_data(self._graph, node, known) for node in self._graph.nodes)
        if not self._graph.nodes:
            return []
        if not self.rejected:
            everything = tuple(range(len(self._graph.nodes)))
            whole = self._try(everything)
            if isinstance(whole, Lowered) and not whole.model.coded:  # ONNX Runtime has no such codes
                return [(everything, whole)]
        self._infer_types()
        self._screen(_untyped(self._graph, self.types, index) for index in range(len(self._graph.nodes)))
        while True:
            regions = [tuple(members) for members in self._regions()]
            failures = [(members, found) for members in regions if isinstance(found := self._try(members), Failure)]
            if not failures:
                return [(members, found) for members in regions if isinstance(found := self._try(members), Lowered)]
            for members, failure in failures:
                self._refine(members, failure)

    def partition(self, members: Sequence[int], lowered: Lowered) -> Partition:
        """The public form of a region."""
        region = self._region(members)
        names = [self._graph.nodes[member].name for member in members]
        return Partition(names, region.is_dynamic, region.model, lowered)

    def _infer_types(self) -> None:
        types = infer_types(self._graph)
        if types.probe != self.types.probe:
            self._outcomes.clear()
        self.types = types

    def _screen(self, found: Iterable[Reject | None]) -> None:
        for index, reject in enumerate(found):
            if reject is not None:
                self.rejected.setdefault(index, []).append(reject)

    def _regions(self) -> list[list[int]]:
        graph = self._graph
        colours = [None if index in self.rejected else colour for index, colour in enumerate(self._colours)]
        links = [
            (graph.writer[name], reader)
            for name, found in graph.readers.items()
            if name in graph.writer
            for reader in found
        ]
        links += [(a, b) for found in graph.readers.values() for a, b in pairwise(found)]
        return convex_regions(self._sources, links, colours, self._late)

    def _region(self, members: Sequence[int]) -> Region:
        return extract(self._graph, self.types, members)

    def _try(self, members: tuple[int, ...]) -> Lowered | Failure:
        if members not in self._outcomes:
            region = self._region(members)
            cut_off = self._cut_off(members)
            if cut_off:
                self._outcomes[members] = Failure(cut_off)
            elif not region.model.graph.output:
                self._outcomes[members] = Failure({}, rule="unused", reason="nothing reads its results")
            else:
                self._outcomes[members] = dry_run(self._graph, region, self._target, self._precision)
        return self._outcomes[members]

    def _cut_off(self, members: tuple[int, ...]) -> dict[int, list[Reject]]:
        """Attention whose number of keys is a size in the model, and mere data in a region: whether its cache grows cannot be told then."""
        outside = self._late - set(members)
        reason = "its number of keys is a size that nodes on the CPU read too, so whether its cache grows is not known"
        return {
            member: [Reject(node.op_type, "cut-off", reason, node.name)]
            for member, node in ((member, self._graph.nodes[member]) for member in members)
            if node.op_type in CACHED and self._graph.writer.get(node.input[TOTAL], -1) in outside
        }

    def _refine(self, members: tuple[int, ...], failure: Failure) -> None:
        """Reject the nodes that a failure is due to; where no single one is, keep two halves apart."""
        culprits = self._culprits(members, failure)
        for member, rejects in culprits.items():
            self.rejected.setdefault(member, []).extend(rejects)
        if not culprits:
            colour = max(self._colours) + 1
            for member in members[len(members) // 2 :]:
                self._colours[member] = colour

    def _culprits(self, members: tuple[int, ...], failure: Failure) -> dict[int, list[Reject]]:
        if failure.rejects and failure.is_certain:
            return failure.rejects
        if failure.rejects and len(members) > 1:
            alone = self._failing([(member,) for member in sorted(failure.rejects)])
            return alone or failure.rejects
        if len(members) == 1:
            node = self._graph.nodes[members[0]]
            return {members[0]: [Reject(node.op_type, failure.rule, failure.reason, node.name)]}
        return self._failing([members[: len(members) // 2], members[len(members) // 2 :]])

    def _failing(self, parts: Iterable[tuple[int, ...]]) -> dict[int, list[Reject]]:
        found: dict[int, list[Reject]] = {}
        for part in parts:
            outcome = self._try(part)
            if isinstance(outcome, Failure):
                found |= self._culprits(part, outcome)
        return found


def _shape_arithmetic(graph: OnnxGraph, *, takes_constants: bool = False) -> set[int]:
    """Nodes on nothing but shapes: their results are known where they are compiled, so they belong where these are needed.

    Args:
        graph: the graph.
        takes_constants: take nodes on nothing but constants, too.
    """
    found: set[int] = set()
    for index, node in enumerate(graph.nodes):
        values = graph.reads[index]
        if node.op_type in ("Shape", "Size") or (
            (values or takes_constants) and all(graph.writer.get(name, -1) in found for name in values)
        ):
            found.add(index)
    return found


def _structural(graph: OnnxGraph, node: onnx.NodeProto) -> Reject | None:
    """Why a node is out of the question, whatever its operands."""
    if is_compiled_ahead(node):
        return Reject(node.op_type, "compiled", "it is an EPContext node, which holds a compiled program", node.name)
    steps = steps_along(node)
    if steps and not all(_is_known(graph, name, axis) for name, axis in steps):
        return Reject(node.op_type, "steps", "nodes of as many steps as a run has run on the CPU", node.name)
    is_written_out = bool(steps) or computes_nothing(node) or has_known_steps(node, graph.constants)
    if any(subgraphs(node)) and not is_written_out:
        return Reject(node.op_type, "subgraph", "nodes with subgraphs run on the CPU", node.name)
    return None


def _sized_by_data(graph: OnnxGraph, node: onnx.NodeProto, known: set[int]) -> Reject | None:
    """Why the sizes of a node's results are those of each run, whatever the model declares."""
    names = [n for n in sizing_operands(node) if n not in graph.constants and graph.writer.get(n, -1) not in known]
    if not names:
        return None
    name = names[0]
    return Reject(node.op_type, "operand", f"{name!r} decides its sizes, and is known only in a run", node.name)


def _is_known(graph: OnnxGraph, name: str, axis: int) -> bool:
    """Whether a dim of a value is the same in every run."""
    if name in graph.constants or all(static_dims(value) is not None for value in graph.inputs.values()):
        return True
    dims = graph.declared[name].type.tensor_type.shape.dim if name in graph.declared else ()
    return -len(dims) <= axis < len(dims) and dims[axis].HasField("dim_value")


def _untyped(graph: OnnxGraph, types: Types, index: int) -> Reject | None:
    """Why the values of a node cannot enter or leave a program."""
    node = graph.nodes[index]
    if node.name in types.refused:
        return types.refused[node.name]
    for name in (*graph.reads[index], *graph.writes(index)):
        kind = types.kinds.get(name, 0)
        if not kind:
            return Reject(node.op_type, "type", f"{name!r} is not a tensor, or its type is unknown", node.name)
        if kind not in BY_ONNX:
            return Reject(
                node.op_type, "dtype", f"{name!r} has element type {onnx.TensorProto.DataType.Name(kind)}", node.name
            )
        if name not in types.dims:
            return Reject(
                node.op_type, DATA_DEPENDENT, f"the shape of {name!r} is not known before it is computed", node.name
            )
    return None
