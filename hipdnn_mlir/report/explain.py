"""Which nodes of a model form which graph on which engine, and why the others do not."""

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx
from torch_mlir import ir

from ..compile import ModelLike, lower, lower_to_torch
from ..container import stand_ins
from ..errors import ModelError, Reject, UnsupportedError
from ..extension import load_extensions
from ..importer import Slim, slim_models, with_shapes
from ..ir_view import node_name, node_names
from ..model_file import ModelFile, read_model
from ..passes.graph_to_executable import summary
from ..passes.offload import ENGINE, rejects
from ..passes.pipeline import OFFLOAD_STEPS, Runner
from ..passes.registration import body, functions
from ..placement import place
from ..placement.plans import lowered_here, why_not_asked
from ..precision import UNCHANGED, find_precision
from ..program.schema import Execute, ProgramModel
from ..region import region_graph, region_kernel
from ..sizes.buckets import check_names
from ..sizes.open_sizes import Buckets, InputSizes, Shapes, input_sizes
from ..sizes.samples import samples_for
from ..target import find_target, target_name

KERNEL = "kernel"
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class GraphReport:
    """One graph or kernel: a name, the engine that takes it (KERNEL for a kernel), the ONNX nodes in it, its operations in one line."""

    name: str
    engine: str
    nodes: list[str]
    summary: str


@dataclass(frozen=True)
class RefusalReport:
    """A graph that the library refused: operations, ONNX nodes, the library's words, and what runs in its place."""

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
        movements: data movement that becomes views or copies, by ONNX node name.
        launches: kernels for what no engine takes, in the order they run.
        samples: open size -> the number that stands for it in reasons and operations.
        refused: where plans were asked for: what the library of this machine refused, with what became of it.
        plans_not_asked: why plans were not asked for although they were to be; else empty.
    """

    graphs: list[GraphReport]
    rejects: list[Reject]
    movements: list[str]
    launches: list[GraphReport] = field(default_factory=list)
    samples: dict[str, int] = field(default_factory=dict)
    refused: list[RefusalReport] = field(default_factory=list)
    plans_not_asked: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        regions = [*self.graphs, *self.launches]
        lines = [f"{found.name}  {found.engine}  {found.summary}  ({', '.join(found.nodes)})" for found in regions]
        lines += [f"rejected  {reject}" for reject in self.rejects]
        lines += [f"refused by the library  {refusal}" for refusal in self.refused]
        if self.plans_not_asked:
            lines.append(f"plans were not asked for: {self.plans_not_asked}")
        if self.samples:
            lines.append(f"open sizes are shown at {', '.join(f'{n} = {size}' for n, size in self.samples.items())}")
        return "\n".join(lines)


def explain(
    model: ModelLike,
    *,
    target: str = "host",
    precision: str = UNCHANGED,
    shapes: Shapes | None = None,
    buckets: Buckets | None = None,
    plans: bool = False,
) -> Explanation:
    """Dry-run the placement of a model, in this process.

    Args:
        model: path, serialized bytes or loaded model.
        target: whose engines to ask.
        precision: as for `compile`.
        shapes: as for `compile`; a size that stays open is shown at a sample of it.
        buckets: as for `compile`; a size with buckets is shown at the largest.
        plans: also build the plan of every graph with the target's library, at the sizes that are shown, and show what it refuses and what
            is compiled in its place; without that library or its device here, or with operations rejected, why not.

    Raises:
        ModelError: missing or broken model; unknown target, precision or input name; sizes that do not fit the model.
        PlanRefusedError: the library refuses a graph in all its forms.
        PassError: a defect of this compiler.
    """
    load_extensions()
    find_precision(precision)
    find_target(target)
    file = read_model(model)
    where = str(model) if isinstance(model, (str, Path)) else "model"
    sizes = input_sizes(file.proto, shapes or {}, where)
    check_names(buckets or {}, sizes)
    largest = {name: rising[-1] for name, rising in (buckets or {}).items()}
    if all(name in largest for name in sizes.table.symbols):
        point = [largest[name] for name in sizes.table.symbols]
        return _explained(file, sizes, point, target, precision, where, plans)
    failure: ModelError | None = None
    for chosen in samples_for(file.proto, sizes):
        point = [largest.get(*pair) for pair in zip(sizes.table.symbols, chosen.points[0], strict=True)]
        try:
            return _explained(file, sizes, point, target, precision, where, plans)
        except ModelError as error:  # as in compiling: another sample may fit the model
            error.hint = f"{sizes.meaning(tuple(point))}; give sizes that are fixed or equal with --shape"
            failure = failure or error
    assert failure is not None
    raise failure


def _explained(
    file: ModelFile, sizes: InputSizes, point: Sequence[int], target: str, precision: str, where: str, plans: bool
) -> Explanation:
    """The placement of a model where its open sizes have the given values; with what the library says of it, if asked."""
    found = Explanation([], [], [], samples=dict(zip(sizes.table.symbols, point, strict=True)))
    dims = sizes.at(point)
    try:
        _add(found, slim_models(file.proto, [dims], where, file.external), target, precision)
    except UnsupportedError as error:
        logger.info("explained in parts, since the whole cannot be imported: %s", error)
        _add_parts(found, with_shapes(file.proto, dims), target, precision, error.rejects)
    if not plans:
        return found
    if found.rejects:
        return replace(found, plans_not_asked="the model is no whole program, since operations are rejected")
    program = lowered_here(
        lambda refused: lower(
            file.proto,
            target=target,
            precision=precision,
            shapes=dims,
            refused=refused,
            where=where,
            external=file.external,
        )
    ).model
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


def _add_parts(
    found: Explanation, model: onnx.ModelProto, target: str, precision: str, known: Sequence[Reject]
) -> None:
    """Add the parts of a model that can be imported, and the nodes that keep the rest from it."""
    placement = place(model, target=target, precision=precision, mode="maximal")
    for partition in placement.partitions:
        slims = slim_models(partition.model, [{}], external=stand_ins(partition.model))
        _add(found, slims, target, precision)
    of_whole = {reject.node: reject for reject in known}
    found.rejects.extend(of_whole.get(reject.node, reject) for reject in placement.rejects)


def _add(found: Explanation, slims: Sequence[Slim], target: str, precision: str) -> None:
    """Add the placement of a model to an explanation."""
    runner = Runner(target=target, precision=precision)
    (imported,) = lower_to_torch(slims, runner)
    with imported.module.context:
        module = imported.module.operation
        runner.run(module, OFFLOAD_STEPS[:1])
        left = rejects(module, find_target(target_name(target, precision)))
        rejected = {reject.node for reject in left}
        for function in functions(module):
            if "sym_visibility" in function.attributes:
                continue
            for operation in body(function):
                if operation.name == "hipdnn.graph":
                    found.graphs.append(_report(operation, len(found.graphs)))
                elif operation.name == "hipdnn.launch":
                    found.launches.append(_launch_report(operation, len(found.launches)))
                elif (
                    operation.name.startswith(("torch.aten.", "torch.prims.")) and node_name(operation) not in rejected
                ):
                    found.movements.append(node_name(operation))
        found.rejects.extend(left)


def _report(operation: Any, index: int) -> GraphReport:
    graph = region_graph(operation)
    text = str(graph) if isinstance(graph, Reject) else summary(graph)
    engine = str(ir.StringAttr(operation.attributes[ENGINE]).value)
    return GraphReport(f"graph_{index}", engine, node_names(operation), text)


def _launch_report(operation: Any, index: int) -> GraphReport:
    kernel = region_kernel(operation)
    text = str(kernel) if isinstance(kernel, Reject) else kernel.summary()
    return GraphReport(f"kernel_{index}", KERNEL, node_names(operation), text)
