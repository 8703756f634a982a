"""Which nodes of a model form which graph on which engine, and why the others do not."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from torch_mlir import ir
from torch_mlir.dialects import func, torch

from hipdnn_mlir_runtime.errors import DynamicDimensionError, ModelError, Reject, UnsupportedError
from hipdnn_mlir_runtime.precision import UNCHANGED, Precision, find_precision

from ..compiler.compile import ModelLike, has_code, read_source
from ..compiler.counted import at_bounds
from ..compiler.lower import lower
from ..compiler.source import OnnxSource, Source
from ..dynamic.buckets import check_names
from ..dynamic.input_sizes import Buckets, InputSizes, Shapes
from ..extension import load_extensions
from ..frontend.container import stand_ins
from ..frontend.prepare import with_shapes
from ..ir.blocks import functions, operations
from ..ir.claims import ENGINE, takers
from ..ir.dialect import GraphOp, LaunchOp
from ..ir.imported import Imported
from ..ir.region import region_graph, region_kernel
from ..ir.view import is_constant, node_name, node_names
from ..ops.graph import summary
from ..ops.strides import Dims
from ..placement import place
from ..placement.plans import lowered_here, why_not_asked
from ..program.schema import Execute, ProgramModel
from ..targets.table import TARGETS, TargetName, find_target, target_name
from .coverage import Coverage, NodePlace, RejectGroup, coverage, group_rejects, node_places
from .explain_text import explanation_lines
from .nodes import ModelNodes, model_nodes

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.nn import Module

    from ..frontend.pytorch.exported import Examples

KERNEL = "kernel"
_MAX_DIMENSIONS_TRIED = 4
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class GraphReport:
    """One graph or kernel: a name, the engine that takes it (KERNEL for a kernel), the model's nodes in it, its operations in one line."""

    name: str
    engine: str
    nodes: list[str]
    summary: str


@dataclass(frozen=True)
class RefusalReport:
    """A graph that the library refused: operations, nodes, the library's words, and what runs in its place."""

    summary: str
    nodes: str
    reason: str
    became: list[str]

    def __str__(self) -> str:
        return f"{self.summary} ({self.nodes}): {self.reason}; became {', '.join(self.became)}"


@dataclass(frozen=True)
class Explanation:
    """The placement of a model.

    Attributes:
        graphs: in the order they run.
        rejects: operations that neither an engine nor a kernel takes; empty where the whole model is one program.
        movements: data movement that becomes views or copies, by node name.
        launches: kernels for what no engine takes, in the order they run.
        samples: symbol -> the number that stands for it in reasons and operations.
        refused: where plans were asked for: what the library of this machine refused, with what became of it.
        no_program: why a model of which every operation has a place has no program nevertheless; else empty.
        plans_not_asked: why plans were not asked for although they were to be; else empty.
        target: whose engines were asked.
        nodes: where each node of the model is.
        coverage: how many nodes, and how much of the work, are where.
        reject_groups: the rejects by operator and reason, with what would change the verdict.
        conflicting_dimensions: where there is no program because of dynamic dimensions: each of these, made static alone, gives one.
        partitions: in ONNX Runtime, the nodes of each program; else empty.
        taken_by: other targets that take what is rejected, for the first reject of each reason.
    """

    graphs: list[GraphReport]
    rejects: list[Reject]
    movements: list[str]
    launches: list[GraphReport] = field(default_factory=list)
    samples: dict[str, int] = field(default_factory=dict)
    refused: list[RefusalReport] = field(default_factory=list)
    no_program: str = ""
    plans_not_asked: str = ""
    target: str = "host"
    nodes: list[NodePlace] = field(default_factory=list)
    coverage: Coverage | None = None
    reject_groups: list[RejectGroup] = field(default_factory=list)
    conflicting_dimensions: list[str] = field(default_factory=list)
    partitions: list[list[str]] = field(default_factory=list)
    taken_by: dict[Reject, list[str]] = field(default_factory=dict, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON (docs/explain.md)."""
        found = asdict(replace(self, taken_by={}))
        del found["taken_by"]  # is in the groups
        if self.coverage is not None:
            found["coverage"]["percent"] = self.coverage.percent
        return found

    def __str__(self) -> str:
        return "\n".join(explanation_lines(self.to_dict()))


def explain(
    model: "ModelLike | Module | ExportedProgram",
    example_inputs: "Examples | None" = None,
    *,
    dynamic_shapes: Any = None,
    target: TargetName = "host",
    precision: Precision = UNCHANGED,
    shapes: Shapes | None = None,
    buckets: Buckets | None = None,
    plans: bool = False,
) -> Explanation:
    """Compile a model up to its weights, in this process, and show its placement: what compiles is explained as such, and nothing else.

    Args:
        model: as for `compile`. The nodes of a PyTorch module are the ops that it is compiled as: those of the exported program, and for
            one without a row in the op table those that it is decomposed into.
        example_inputs: as for `compile`.
        dynamic_shapes: as for `compile`.
        target: whose engines to ask.
        precision: as for `compile`.
        shapes: as for `compile`; a size that stays open is shown at a sample of it.
        buckets: as for `compile`; for GPUs, where every dynamic dimension has some, the model is shown at the largest.
        plans: also build the plan of every graph with the target's library, at the sizes that are shown, and show what it refuses and what
            is compiled in its place; without that library or its device here, or with operations rejected, why not.

    Raises:
        ModelError: missing or broken model; unknown target, precision or input name; sizes that do not fit the model.
        UnsupportedError: a PyTorch module that cannot be imported, so that nothing is placed.
        PlanRefusedError: the library refuses a graph in all its forms.
        PassError: a defect of this compiler.
    """
    load_extensions()
    find_precision(precision)
    find_target(target)
    source = read_source(model, example_inputs, dynamic_shapes)
    options: dict[str, Any] = {"target": target, "precision": precision}
    sizes = source.sizes(shapes or {})
    check_names(buckets or {}, sizes)
    given: dict[str, Any] = {"shapes": shapes, "buckets": buckets}
    largest: dict[str, int] = {}
    if has_code(target) and all(name in (buckets or {}) for name in sizes.table.symbols):
        largest = {name: (buckets or {})[name][-1] for name in sizes.table.symbols}
        given = {"shapes": sizes.at([*largest.values()])}
    watch = _Watch(largest, target_name(target, precision), until_placed=sizes.is_static or bool(largest))
    try:
        at_bounds(lower, source, look=watch, **given, **options)
        found = watch.found[-1]
    except _PlacedError:
        found = watch.found[-1]
    except (ModelError, UnsupportedError) as error:
        if watch.found:
            found = watch.found[0]
            if not found.rejects:
                conflicting = _conflicting(source, sizes, options) if isinstance(error, DynamicDimensionError) else []
                found = replace(found, no_program=str(error), conflicting_dimensions=conflicting)
        elif not isinstance(error, UnsupportedError):
            raise
        elif isinstance(source, OnnxSource):
            logger.info("the whole model cannot be imported, so partitions are explained: %s", error)
            found = _in_partitions(source, sizes, error.rejects, options)
            if not found.rejects:  # all nodes have a place at the sizes that are shown
                found = replace(found, no_program=str(error))
        else:
            raise source.located(error) from error
    found = with_coverage(found, model_nodes(source, watch.shapes), list(sizes.table.symbols))
    return _with_plans(found, source, watch.shapes, options) if plans else found


def with_coverage(found: Explanation, nodes: ModelNodes, symbols: Sequence[str] = ()) -> Explanation:
    """An explanation with what follows from it: where each node is, the shares of all, rejects by reason."""
    generated = {engine.name for engine in find_target(found.target).engines if engine.is_generated}
    regions = [*found.graphs, *found.launches]
    kernels = {region.name: region.nodes for region in regions if region.engine in {KERNEL, *generated}}
    graphs = {region.name: region.nodes for region in regions if region.name not in kernels}
    places = node_places(nodes, graphs, kernels, found.movements, found.rejects)
    groups = group_rejects(found.rejects, found.taken_by, nodes, symbols)
    return replace(found, nodes=places, coverage=coverage(nodes, places), reject_groups=groups)


def _conflicting(source: Source[Any], sizes: InputSizes, options: Mapping[str, Any]) -> list[str]:
    """The dynamic dimensions of which each, made static, gives the model a program."""
    found = []
    names = sizes.table.symbols if len(sizes.table.symbols) <= _MAX_DIMENSIONS_TRIED else []
    point = next(iter(source.samples(sizes))).points[0] if names else ()
    for name, size in zip(names, point, strict=False):
        try:
            lower(source, shapes={name: size}, **options)
        except (ModelError, UnsupportedError):
            continue
        found.append(name)
    return found


class _PlacedError(Exception):
    """Ends the compilation of a model that is placed; what follows decides nothing that an explanation has."""


class _Watch:
    """Keeps the placements that compiling a model comes by."""

    def __init__(self, samples: Mapping[str, int], target: str, *, until_placed: bool) -> None:
        self._samples = samples
        self._target = find_target(target)
        self._until_placed = until_placed
        self.found: list[Explanation] = []
        self.shapes: dict[str, Dims] = {}

    def __call__(self, imported: Imported, left: Sequence[Reject], samples: Mapping[str, int]) -> None:
        found = Explanation([], [], [], samples={**self._samples, **samples}, target=self._target.name)
        _add(found, imported.module.operation, left)
        if left:
            others = [other for other in TARGETS.values() if other.name != self._target.name.partition("+")[0]]
            found.taken_by.update(takers(imported.module.operation, self._target, others))
        self.found.append(found)
        self.shapes = {info.name: info.dims for info in imported.inputs}
        if self._until_placed and not left:
            raise _PlacedError


def _with_plans(
    found: Explanation, source: Source[Any], shapes: Mapping[str, Dims], options: Mapping[str, Any]
) -> Explanation:
    """An explanation with what the library says of the graphs at the sizes that are shown."""
    if found.rejects:
        return replace(found, plans_not_asked="operations are rejected, so there is no program of the whole model")
    if found.no_program:
        return replace(found, plans_not_asked="the model has no program")
    program = lowered_here(lambda refused: at_bounds(lower, source, shapes=shapes, refused=refused, **options)).model
    refused = [
        RefusalReport(plan.summary, plan.nodes, plan.reason, [described(program, step) for step in plan.steps])
        for plan in program.refused
    ]
    return replace(found, refused=refused, plans_not_asked=why_not_asked(program))


def described(program: ProgramModel, number: int) -> str:
    """What a step computes, and by which engine."""
    step = program.steps[number]
    engine = program.executables[step.executable].engine if isinstance(step, Execute) else KERNEL
    return f"{program.summary(step)} [{engine}]"


def _in_partitions(
    source: OnnxSource, sizes: InputSizes, known: Sequence[Reject], options: Mapping[str, Any]
) -> Explanation:
    """The parts of a model that can be imported, and the nodes that keep the rest from it."""
    point = next(iter(source.samples(sizes))).points[0] if sizes.table.symbols else ()
    samples = dict(zip(sizes.table.symbols, point, strict=True))
    found = Explanation([], [], [], samples=samples, target=options["target"])
    model = with_shapes(source.proto, sizes.at(point))
    placement = place(model, target=options["target"], precision=options["precision"], mode="maximal")
    for partition in placement.partitions:
        lower(
            partition.model,
            target=options["target"],
            precision=options["precision"],
            external=stand_ins(partition.model),
            look=lambda imported, left, _: _add(found, imported.module.operation, left),
        )
    of_whole = {reject.node: reject for reject in known}
    found.rejects.extend(of_whole.get(reject.node, reject) for reject in placement.rejects)
    return found


def _add(found: Explanation, module: ir.Operation, left: Sequence[Reject]) -> None:
    """Add a placed model to an explanation."""
    rejected = {reject.node for reject in left}
    for function in functions(module):
        if function.sym_visibility is not None:
            continue
        for op in operations(function):
            if isinstance(op, GraphOp):
                found.graphs.append(_report(op, len(found.graphs)))
            elif isinstance(op, LaunchOp):
                found.launches.append(_launch_report(op, len(found.launches)))
            elif is_constant(op) or isinstance(op, func.ReturnOp | torch.OperatorOp):
                continue
            elif node_name(op) not in rejected:
                found.movements.append(node_name(op))
    found.rejects.extend(left)


def _report(op: GraphOp, index: int) -> GraphReport:
    graph = region_graph(op)
    text = str(graph) if isinstance(graph, Reject) else summary(graph)
    return GraphReport(f"graph_{index}", op.attributes[ENGINE].value, node_names(op), text)


def _launch_report(op: LaunchOp, index: int) -> GraphReport:
    kernel = region_kernel(op)
    text = str(kernel) if isinstance(kernel, Reject) else kernel.summary()
    return GraphReport(f"kernel_{index}", KERNEL, node_names(op), text)
