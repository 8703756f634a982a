"""An explanation as one HTML file: coverage, what is left out by reason, and the model's graph in the colours of where nodes run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from .document import document
from .layout import lay_out

_SCRIPTS = ("base.js", "explanation.js", "graph.js", "search.js", "controls.js", "explanation_start.js")
_SECTIONS = {"coverage": "Coverage", "left-out": "Left out", "graph": "Graph", "regions": "Graphs and kernels"}


def explanation_html(title: str, data: Mapping[str, Any]) -> str:
    """The page about where a model runs.

    Args:
        title: what the model is called.
        data: `Explanation.to_dict()`, or `TargetComparison.to_dict()` of several targets.
    """
    reports = list(data["explanations"].values()) if "explanations" in data else [data]
    nodes = reports[0]["nodes"]
    edges = [(source, target) for target, node in enumerate(nodes) for source in node["reads"]]
    shown = {
        "reports": reports,
        "failed": data.get("failed", {}),
        "edges": edges,
        "layout": asdict(lay_out(len(nodes), edges)),
    }
    return document(title, "explanation.html", _SCRIPTS, shown, _SECTIONS)
