"""What ONNX Runtime's provider claimed of a model, and why not the rest: the same report as `explain`'s."""

import json
from itertools import count

import onnx

from hipdnn_mlir_runtime.atomic_file import write_text
from hipdnn_mlir_runtime.errors import Reject
from hipdnn_mlir_runtime.ort_ep import get_ep_name

from ..placement import Placement
from ..placement.graph import read_graph
from ..program.schema import Copy, Execute, ProgramModel
from .explain import KERNEL, Explanation, GraphReport, RefusalReport, described, with_coverage
from .nodes import onnx_nodes
from .page.explanation_page import explanation_html


def explain_placement(model: onnx.ModelProto, placement: Placement, target: str) -> Explanation:
    """The explanation of a placement.

    Args:
        model: what was placed.
        placement: from `place`.
        target: whose engines were asked.
    """
    graph = read_graph(model)
    ops = {node.name: node.op_type for node in graph.nodes}
    dropped = [Reject(ops.get(name, ""), "cost", reason, name) for names, reason in placement.dropped for name in names]
    found = Explanation(
        [],
        [*placement.rejects, *dropped],
        [],
        target=target,
        partitions=[part.nodes for part in placement.partitions],
    )
    numbers = (count(), count())
    for part in placement.partitions:
        _add(found, part.lowered.model, *numbers)
    return with_coverage(found, onnx_nodes(graph))


def is_placed(model: onnx.ModelProto) -> bool:
    """Whether ONNX Runtime asks about a model of which it has taken this provider's nodes out already.

    It asks a second time once it has written operators out that are functions and that nobody took. Its first question had all nodes.
    """
    return any(node.domain == get_ep_name() for node in model.graph.node)


def write_explanation(path: str, title: str, found: Explanation) -> None:
    """Write an explanation (docs/explain.md): as a page where the file is called ``*.html``, else as JSON.

    Args:
        path: of the file.
        title: what the model is called.
        found: the explanation.

    Raises:
        HipdnnMlirError: the file cannot be written.
    """
    data = found.to_dict()
    text = explanation_html(title, data) if path.endswith(".html") else json.dumps(data, indent=1) + "\n"
    write_text(path, text)


def _add(found: Explanation, program: ProgramModel, graphs: "count[int]", kernels: "count[int]") -> None:
    """Add the steps of a program."""
    for step in program.steps:
        nodes = step.name.split("+")
        if isinstance(step, Copy):
            found.movements.append(step.name)
        elif isinstance(step, Execute):
            engine = program.executables[step.executable].engine
            found.graphs.append(GraphReport(f"graph_{next(graphs)}", engine, nodes, program.summary(step)))
        else:
            found.launches.append(GraphReport(f"kernel_{next(kernels)}", KERNEL, nodes, program.summary(step)))
    found.refused.extend(
        RefusalReport(plan.summary, plan.nodes, plan.reason, [described(program, step) for step in plan.steps])
        for plan in program.refused
    )
