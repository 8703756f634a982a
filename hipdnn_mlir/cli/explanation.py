"""The placement of a model as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hipdnn_mlir_runtime.cli.render import counted, refused
from hipdnn_mlir_runtime.cli.tables import emphasized, table


def explanation(data: Mapping[str, Any]) -> str:
    """Return the placement of a model's nodes: graphs with engine and nodes, kernels, then what is left out and why.

    Args:
        data: ``Explanation.to_dict()``.
    """
    graphs: Sequence[Mapping[str, Any]] = data["graphs"]
    rejects: Sequence[Mapping[str, Any]] = data["rejects"]
    launches: Sequence[Mapping[str, Any]] = data["launches"]
    title = f"{counted(graphs, 'graph')}, {counted(launches, 'kernel')}"
    rows = [(row["name"], row["engine"], row["summary"], ", ".join(row["nodes"])) for row in (*graphs, *launches)]
    parts = [table(title, ("name", "engine", "operations", "nodes"), rows)]
    if rejects:
        columns = ("node", "op", "rule", "reason")
        left_out = [[reject[key] for key in columns] for reject in rejects]
        parts.append(table(f"{counted(rejects, 'node')} left out", ("node", "operation", "rule", "reason"), left_out))
    elif data["no_program"]:
        parts.append(emphasized(f"Every node has a place, and there is no program: {data['no_program']}", "33"))
    else:
        parts.append(emphasized("Every node has a place.", "32"))
    if data["refused"]:
        parts.append(refused(data["refused"], lambda plan: plan["became"]))
    if data["plans_not_asked"]:
        parts.append(emphasized(f"Plans were not asked for: {data['plans_not_asked']}.", "33"))
    samples: Mapping[str, int] = data["samples"]
    if samples:
        shown = ", ".join(f"{name} = {size}" for name, size in samples.items())
        parts.append(f"Dynamic dimensions are shown at {shown}.")
    return "\n\n".join(parts)
