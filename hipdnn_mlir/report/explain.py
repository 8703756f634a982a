"""Which nodes of a model form which graph on which engine, and why the others do not."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch_mlir import ir

from ..compile import ModelLike, lower_to_torch, points_for
from ..errors import Reject
from ..importer import read_model, slim_models
from ..ir_view import node_name, node_names
from ..passes.graph_to_executable import summary
from ..passes.offload import ENGINE, rejects
from ..passes.pipeline import OFFLOAD_STEPS, Runner
from ..passes.registration import body, functions
from ..region import region_graph
from ..sizes.open_sizes import Shapes, input_sizes
from ..target import find_target


@dataclass(frozen=True)
class GraphReport:
    """One graph: a name, the engine that takes it, the ONNX nodes in it, its operations in one line."""

    name: str
    engine: str
    nodes: list[str]
    summary: str


@dataclass(frozen=True)
class Explanation:
    """The placement of a model.

    Attributes:
        graphs: in the order they run.
        rejects: operations that no engine takes; empty where the whole model is one program.
        movements: data movement that becomes views or copies, by ONNX node name.
    """

    graphs: list[GraphReport]
    rejects: list[Reject]
    movements: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{graph.name}  {graph.engine}  {graph.summary}  ({', '.join(graph.nodes)})" for graph in self.graphs]
        lines += [f"rejected  {reject}" for reject in self.rejects]
        return "\n".join(lines)


def explain(model: ModelLike, *, target: str = "host", shapes: Shapes | None = None) -> Explanation:
    """Dry-run the placement of a model, in this process.

    Args:
        model: path, serialized bytes or loaded model.
        target: whose engines to ask.
        shapes: as for `compile`; a size that stays open is shown at a sample of it.

    Raises:
        ModelError: missing, broken or dynamic model; unknown target or input name.
        PassError: a defect of this compiler.
    """
    library = find_target(target)
    proto, _ = read_model(model)
    runner = Runner(target=target)
    where = str(model) if isinstance(model, (str, Path)) else "model"
    sizes = input_sizes(proto, shapes or {}, where)
    imported = lower_to_torch(slim_models(proto, [sizes.at(next(iter(points_for(sizes)))[0])], where), runner)[0]
    with imported.module.context:
        module = imported.module.operation
        runner.run(module, OFFLOAD_STEPS[:1])
        graphs: list[GraphReport] = []
        movements: list[str] = []
        for function in functions(module):
            if "sym_visibility" in function.attributes:
                continue
            for operation in body(function):
                if operation.name == "hipdnn.graph":
                    graphs.append(_report(operation, len(graphs)))
                elif operation.name.startswith(("torch.aten.", "torch.prims.")):
                    movements.append(node_name(operation))
        left = rejects(module, library)
    rejected = {reject.node for reject in left}
    return Explanation(graphs, left, [name for name in movements if name not in rejected])


def _report(operation: Any, index: int) -> GraphReport:
    graph = region_graph(operation)
    text = str(graph) if isinstance(graph, Reject) else summary(graph)
    engine = str(ir.StringAttr(operation.attributes[ENGINE]).value)
    return GraphReport(f"graph_{index}", engine, node_names(operation), text)
