"""An explanation as lines of plain text, from the same data as its JSON."""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

from hipdnn_mlir_runtime.tables import aligned

KERNELS = frozenset({"kernel", "GENERATED"})
"""Engines of what is no graph of a library: functions of the host's library, and code that this compiler writes."""
SHOWN_NODES = 3
_WIDEST = 60
_LINE = 120
"""Characters of a line of prose where that of the terminal is not known."""


def explanation_lines(data: Mapping[str, Any], line: int | None = None) -> list[str]:
    """Coverage, then what is left out by reason, then graphs and kernels.

    Args:
        data: `Explanation.to_dict()`.
        line: characters of a line, for which columns are folded; None for any length.
    """
    lines = _wrapped(line, _coverage(data["coverage"], data["target"])) if data["coverage"] else []
    if data["no_program"]:
        lines += ["", *_wrapped(line, f"Every node has a place, and there is no program: {data['no_program']}")]
        if data["conflicting_dimensions"]:
            tried = " or ".join(f"--shape {name}=SIZE" for name in data["conflicting_dimensions"])
            lines += _wrapped(line, f"With {tried} there is one.")
    elif not data["rejects"]:
        lines += ["Every node has a place."]
    lines += _rejected(line, data["reject_groups"])
    lines += _refused(line, data["refused"])
    if data["plans_not_asked"]:
        lines += ["", *_wrapped(line, f"Plans were not asked for: {data['plans_not_asked']}.")]
    regions = [*data["graphs"], *data["launches"]]
    if regions:
        kernels = [region for region in regions if region["engine"] in KERNELS]
        graphs = [region for region in regions if region["engine"] not in KERNELS]
        counted = f"{_count(graphs, 'graph')}, {_count(kernels, 'kernel')}"
        rows = [
            [str(region[key]) for key in ("name", "engine", "summary")] + [_names(region["nodes"])]
            for region in regions
        ]
        lines += ["", f"{counted}:", *_table(line, ["name", "engine", "operations", "nodes"], rows)]
    if data["samples"]:
        sizes = ", ".join(f"{name} = {size}" for name, size in data["samples"].items())
        lines += ["", *_wrapped(line, f"Dynamic dimensions are shown at {sizes}.")]
    return lines


def _coverage(found: Mapping[str, Any], target: str) -> str:
    """One or two sentences: how much of a model runs on hipDNN graphs.

    Args:
        found: `coverage` of `Explanation.to_dict()`.
        target: whose graphs.
    """
    work = found["flops_percent"]
    share = "" if work is None else f", with {percent_text(work)} % of the FLOPs of convolutions and matmuls"
    return (
        f"Target {target}: {found['graph']} of {found['nodes']} nodes on hipDNN graphs "
        f"({percent_text(found['percent'])} % of those that run{share}), {found['kernel']} in kernels, "
        f"{found['moved']} views or copies, {found['folded']} folded away, {found['left_out']} left out."
    )


def comparison_lines(data: Mapping[str, Any], line: int | None = None) -> list[str]:
    """A table with a column for each target: coverage, then a row for nodes of one operator that fare alike.

    Args:
        data: `TargetComparison.to_dict()`.
        line: as for `explanation_lines`.
    """
    targets = data["targets"]
    shares = [[str(name), *(_share(data["coverage"][target], name) for target in targets)] for name in _SHARES]
    rows = [
        [row["op"], str(len(row["nodes"])), *(row["places"][target] for target in targets), _names(row["nodes"])]
        for row in data["rows"]
    ]
    failed = [f"{target}: {reason}" for target, reason in data["failed"].items()]
    return [
        *_table(line, ["", *targets], shares),
        "",
        *_table(line, ["operator", "count", *targets, "nodes"], rows),
        *(["", *(line for text in failed for line in _wrapped(line, text))] if failed else []),
    ]


_SHARES = {
    "on graphs": "graph",
    "in kernels": "kernel",
    "left out": "left_out",
    "on graphs %": "percent",
    "FLOPs %": "flops_percent",
}


def _share(found: Mapping[str, Any], name: str) -> str:
    value = found[_SHARES[name]]
    return "-" if value is None else percent_text(value) if name.endswith("%") else str(value)


def percent_text(share: float) -> str:
    """A percentage without decimals: 100 is said of all alone, and 0 of none."""
    rounding_error = 1e-6
    is_part = rounding_error < share < 100 - rounding_error
    return f"{min(99, max(1, round(share)))}" if is_part else f"{share:.0f}"


def _rejected(line: int | None, groups: Sequence[Mapping[str, Any]]) -> list[str]:
    if not groups:
        return []
    columns = ["count", "operator", "reason", "what would help", "nodes", "lines"]
    rows = [
        [
            str(max(len(group["nodes"]), 1)),
            group["operator"],
            f"{group['reason']} [{group['rule']}]",
            group["advice"],
            _names(group["nodes"]),
            _names(group["lines"]),
        ]
        for group in groups
    ]
    return ["", "Left out:", *_table(line, columns, rows)]


def _refused(line: int | None, plans: Sequence[Mapping[str, Any]]) -> list[str]:
    if not plans:
        return []
    rows = [[plan["summary"], plan["nodes"], plan["reason"], ", ".join(plan["became"])] for plan in plans]
    return ["", "Refused by the library:", *_table(line, ["operations", "nodes", "reason", "became"], rows)]


def _table(line: int | None, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table; cells that are too wide go on in the next line."""
    return aligned(columns, rows, widest=_WIDEST, line=line)


def _names(nodes: Sequence[str]) -> str:
    more = len(nodes) - SHOWN_NODES
    return ", ".join(nodes[:SHOWN_NODES]) + (f" and {more} more" if more > 0 else "")


def _count(things: Sequence[object], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


def _wrapped(line: int | None, text: str) -> list[str]:
    return wrap(text, line or _LINE, break_long_words=False, break_on_hyphens=False)
