"""One model on several targets side by side: no GPU is needed, since what their libraries take is data."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from hipdnn_mlir_runtime.errors import HipdnnMlirError, ModelError
from hipdnn_mlir_runtime.precision import UNCHANGED, Precision

from ..compiler.compile import ModelLike
from ..dynamic.input_sizes import Buckets, Shapes
from ..targets.table import TARGETS, TargetName, find_target
from .coverage import Coverage
from .explain import Explanation, explain
from .explain_text import comparison_lines


@dataclass(frozen=True)
class ComparedNodes:
    """Nodes of one operator that fare alike on every target.

    Attributes:
        op: the operator.
        nodes: their names.
        places: target -> the engine that takes them, `kernel` where there is none, `moved`, `folded`, or `left out`.
    """

    op: str
    nodes: list[str]
    places: dict[str, str]


@dataclass(frozen=True)
class TargetComparison:
    """The placement of a model on several targets.

    Attributes:
        targets: in the order asked for, without those that failed.
        coverage: target -> how many nodes are where.
        rows: nodes by operator and fate, in the order of the model.
        explanations: target -> the whole explanation.
        failed: target -> why it has no explanation.
    """

    targets: list[str]
    coverage: dict[str, Coverage]
    rows: list[ComparedNodes]
    explanations: dict[str, Explanation]
    failed: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON (docs/explain.md)."""
        explanations = {target: found.to_dict() for target, found in self.explanations.items()}
        return {
            "targets": self.targets,
            "coverage": {target: found["coverage"] for target, found in explanations.items()},
            "rows": [asdict(row) for row in self.rows],
            "explanations": explanations,
            "failed": self.failed,
        }

    def __str__(self) -> str:
        return "\n".join(comparison_lines(self.to_dict()))


def compare_targets(
    model: ModelLike,
    targets: Sequence[str] = tuple(TARGETS),
    *,
    precision: Precision = UNCHANGED,
    shapes: Shapes | None = None,
    buckets: Buckets | None = None,
) -> TargetComparison:
    """Explain a model for several targets, and show where they differ.

    Args:
        model: as for `explain`.
        targets: whose engines to ask.
        precision: as for `compile`.
        shapes: as for `compile`.
        buckets: as for `compile`.

    Raises:
        ModelError: missing or broken model; unknown target, precision or input name; no target has an explanation.
    """
    for target in targets:
        find_target(target)
    explanations: dict[str, Explanation] = {}
    failed: dict[str, str] = {}
    errors: list[HipdnnMlirError] = []
    for target in dict.fromkeys(targets):
        try:
            explanations[target] = explain(
                model, target=cast("TargetName", target), precision=precision, shapes=shapes, buckets=buckets
            )
        except ModelError as error:
            failed[target] = str(error)
            errors.append(error)
    if not explanations and errors:
        raise errors[0]
    coverages = {target: found.coverage for target, found in explanations.items() if found.coverage is not None}
    return TargetComparison(list(explanations), coverages, _rows(explanations), explanations, failed)


def _rows(explanations: dict[str, Explanation]) -> list[ComparedNodes]:
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    engines = {target: {graph.name: graph.engine for graph in found.graphs} for target, found in explanations.items()}
    for same in zip(*(found.nodes for found in explanations.values()), strict=True):
        fates = tuple(
            next((engines[target][name] for name in node.within if name in engines[target]), node.place)
            if node.within and node.place != "left out"
            else node.place
            for target, node in zip(explanations, same, strict=True)
        )
        groups.setdefault((same[0].op, fates), []).append(same[0].name)
    return [
        ComparedNodes(op, nodes, dict(zip(explanations, fates, strict=True))) for (op, fates), nodes in groups.items()
    ]
