"""The table of docs/coverage.md: onnx's node cases by operator, passed and rejected with reasons."""

from __future__ import annotations

import functools
import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import onnx

from onnx_backend.node_cases import node_cases
from onnx_backend.refusals import CLASSES, class_of

Results = Mapping[str, Mapping[str, Any]]

_EXPANDED = re.compile(r"_expanded(_ver\d+)?$")
MOST_REASONS = 3

_HEAD = f"""# Conformance: the node cases of onnx

Made by `python tests/onnx_backend/report.py --coverage docs/coverage.md` from a run of every node case of onnx {onnx.__version__}; a test
compares. A case passes where the whole model is one program on target `host` and its results are those that onnx states; random ones
with a seed, those of onnx's reference implementation. Whatever does not pass is rejected before it runs, with a reason that names the
node; none is wrong. Cases that onnx writes out in other operators count for the operator that they write out.

"""


@functools.cache
def operators() -> dict[str, str]:
    """Case -> its operator; that of the case it writes out for those of several nodes."""
    models = {name: case.model for name, case in node_cases().items()}
    single = {name: model.graph.node[0].op_type for name, model in models.items() if len(model.graph.node) == 1}
    return {name: single.get(name, single.get(_EXPANDED.sub("", name), "several operators")) for name in models}


def to_coverage(results: Results) -> str:
    """Return the page for the results of all cases."""
    operator_of = operators()
    by_operator: dict[str, list[str]] = defaultdict(list)
    for name in results:
        by_operator[operator_of[name]].append(name)
    counts = Counter(result["status"] for result in results.values())
    classes = _classes(results)
    totals = Counter(classes.values())
    lines = [
        f"{len(results)} cases: {counts['passed']} passed, {counts['rejected']} rejected, {counts['failed']} wrong.",
        "",
        "Each of those rejected is of one class:",
        "",
        *(_item(f"**{name}**: {totals[name]}. {meaning}") for name, meaning in CLASSES.items()),
        "",
        "| operator | cases | passed | class of the others | which are rejected because |",
        "| --- | ---: | ---: | --- | --- |",
    ]
    for operator in sorted(by_operator):
        names = by_operator[operator]
        passed = sum(results[name]["status"] == "passed" for name in names)
        of_others = Counter(classes[name] for name in names if name in classes)
        told = "; ".join(f"{name}: {of_others[name]}" for name in CLASSES if of_others[name])
        lines.append(f"| {operator} | {len(names)} | {passed} | {told} | {_reasons(results, names)} |")
    return _HEAD + "\n".join(lines) + "\n"


def _item(text: str) -> str:
    return textwrap.fill(f"- {text}", 150, subsequent_indent="  ")


def _classes(results: Results) -> dict[str, str]:
    """Case -> its class, of those that are rejected."""
    rejected = {name: result["reasons"] for name, result in results.items() if result["status"] == "rejected"}
    return {name: class_of(operators()[name], node_cases()[name].model, rejected[name]) for name in rejected}


def _reasons(results: Results, names: list[str]) -> str:
    """Return the first reason of each case that is rejected, the most frequent ones in full."""
    first = (sorted(results[name]["reasons"])[0] for name in names if results[name]["status"] != "passed")
    found = sorted(Counter(first).items(), key=lambda item: (-item[1], item[0]))
    texts = [reason.replace("|", "/") for reason, _ in found[:MOST_REASONS]]
    return "; ".join([*texts, *([f"{len(found) - MOST_REASONS} more"] if len(found) > MOST_REASONS else [])])
