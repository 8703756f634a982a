"""Which nodes of a model form which graph on which engine, and why the others do not."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch_mlir import ir

from ..compile import ModelLike, lower_to_torch, samples_for
from ..errors import Reject
from ..extension import load_extensions
from ..importer import slim_models
from ..ir_view import node_name, node_names
from ..model_file import read_model
from ..passes.graph_to_executable import summary
from ..passes.offload import ENGINE, rejects
from ..passes.pipeline import OFFLOAD_STEPS, Runner
from ..passes.registration import body, functions
from ..precision import UNCHANGED, find_precision
from ..region import region_graph, region_kernel
from ..sizes.open_sizes import Shapes, input_sizes
from ..target import find_target

KERNEL = "kernel"


@dataclass(frozen=True)
class GraphReport:
    """One graph or kernel: a name, the engine that takes it (KERNEL for a kernel), the ONNX nodes in it, its operations in one line."""

    name: str
    engine: str
    nodes: list[str]
    summary: str


@dataclass(frozen=True)
class Explanation:
    """The placement of a model.

    Attributes:
        graphs: in the order they run.
        rejects: operations that neither an engine nor a kernel takes; empty where the whole model is one program.
        movements: data movement that becomes views or copies, by ONNX node name.
        launches: kernels for what no engine takes, in the order they run.
    """

    graphs: list[GraphReport]
    rejects: list[Reject]
    movements: list[str]
    launches: list[GraphReport] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        regions = [*self.graphs, *self.launches]
        lines = [f"{found.name}  {found.engine}  {found.summary}  ({', '.join(found.nodes)})" for found in regions]
        lines += [f"rejected  {reject}" for reject in self.rejects]
        return "\n".join(lines)


def explain(
    model: ModelLike, *, target: str = "host", precision: str = UNCHANGED, shapes: Shapes | None = None
) -> Explanation:
    """Dry-run the placement of a model, in this process.

    Args:
        model: path, serialized bytes or loaded model.
        target: whose engines to ask.
        precision: as for `compile`.
        shapes: as for `compile`; a size that stays open is shown at a sample of it.

    Raises:
        ModelError: missing, broken or dynamic model; unknown target, precision or input name.
        PassError: a defect of this compiler.
    """
    load_extensions()
    library = find_target(target)
    find_precision(precision)
    file = read_model(model)
    runner = Runner(target=target, precision=precision)
    where = str(model) if isinstance(model, (str, Path)) else "model"
    sizes = input_sizes(file.proto, shapes or {}, where)
    point = () if sizes.is_static else next(iter(samples_for(file.proto, sizes))).points[0]
    imported = lower_to_torch(slim_models(file.proto, [sizes.at(point)], where, file.external), runner)[0]
    with imported.module.context:
        module = imported.module.operation
        runner.run(module, OFFLOAD_STEPS[:1])
        graphs: list[GraphReport] = []
        launches: list[GraphReport] = []
        movements: list[str] = []
        for function in functions(module):
            if "sym_visibility" in function.attributes:
                continue
            for operation in body(function):
                if operation.name == "hipdnn.graph":
                    graphs.append(_report(operation, len(graphs)))
                elif operation.name == "hipdnn.launch":
                    launches.append(_launch_report(operation, len(launches)))
                elif operation.name.startswith(("torch.aten.", "torch.prims.")):
                    movements.append(node_name(operation))
        left = rejects(module, library)
    rejected = {reject.node for reject in left}
    return Explanation(graphs, left, [name for name in movements if name not in rejected], launches)


def _report(operation: Any, index: int) -> GraphReport:
    graph = region_graph(operation)
    text = str(graph) if isinstance(graph, Reject) else summary(graph)
    engine = str(ir.StringAttr(operation.attributes[ENGINE]).value)
    return GraphReport(f"graph_{index}", engine, node_names(operation), text)


def _launch_report(operation: Any, index: int) -> GraphReport:
    kernel = region_kernel(operation)
    text = str(kernel) if isinstance(kernel, Reject) else kernel.summary()
    return GraphReport(f"kernel_{index}", KERNEL, node_names(operation), text)
