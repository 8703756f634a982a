"""The page of a report, for a reader who has a minute: the machine, what failed by cause, engines, times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from hipdnn_mlir.codegen.core import link

from . import causes
from .cases import STATUSES, Case, Suite, failed
from .machine import Machine
from .timing import Time

_EXAMPLES = 20
"""Failures shown one by one of each row; report.json has all."""
_ROWS = {True: 50, False: 10}
"""Of one cause, of failures and of what failed nothing."""
_LETTERS = 300
"""Of an example in a row."""
_HEADING = 80
_COLUMNS = ("wrong values", "refused by the library", "crashed", "hung", "out of memory")
"""Causes that have a column of their own in the table of engines."""


@dataclass
class Report:
    """Everything that is told.

    Attributes:
        port: Whose devices were tested.
        machine: The machine.
        suites: What ran, in order.
        times: Of models.
        seconds: How long the run took.
        is_quick: Whether it was one of ten minutes.
        stopped: Why it ended before its end.
    """

    port: str
    machine: Machine
    suites: list[Suite] = field(default_factory=list)
    times: list[Time] = field(default_factory=list)
    seconds: float = 0.0
    is_quick: bool = False
    stopped: str = ""

    def to_markdown(self) -> str:
        """The page."""
        parts = [
            self._head(),
            self._machine(),
            self._suites(),
            self._causes(),
            self._engines(),
            self._times(),
            self._each(),
        ]
        return "\n".join("\n".join(part) + "\n" for part in parts if part)

    def to_dict(self) -> dict[str, Any]:
        """All that is known, as JSON has it."""
        return {
            "port": self.port,
            "quick": self.is_quick,
            "stopped": self.stopped,
            "seconds": round(self.seconds, 1),
            "machine": asdict(self.machine),
            "suites": [asdict(suite) | {"counts": dict(suite.counts)} for suite in self.suites],
            "causes": [
                {"cause": row.cause, "message": row.message, "failure": row.is_failure, "cases": len(row.cases)}
                for row in causes.rows(self.suites)
            ],
            "times": [asdict(time) for time in self.times],
        }

    def _head(self) -> list[str]:
        kind = "quick run" if self.is_quick else "whole run"
        alone = [suite for suite in self.suites if suite.engine]
        chosen = [suite for suite in self.suites if not suite.engine]
        verdict = f"{failed(chosen)} of {sum(suite.counts.total() for suite in chosen)} cases failed"
        verdict += f", and {failed(alone)} on one engine alone" if alone else ""
        verdict = self.machine.problem or "; ".join(filter(None, (verdict, self.stopped)))
        return [f"# Tests on port {self.port}", "", f"**{verdict}.** A {kind} of {self.seconds:.0f} s."]

    def _machine(self) -> list[str]:
        rows: list[Sequence[object]] = [
            (f.topic, f.status, "; ".join(filter(None, (f.text, f.fix)))) for f in self.machine.findings
        ]
        rows += [("linker", "ok", " ".join(link.find_linker() or ["none"]))]
        for device in self.machine.devices:
            about = f"{device.name or 'unnamed'}, {device.target}, hipDNN {device.library}, HIP {device.runtime}"
            rows.append((f"device {device.ordinal}", "ok", about))
        if self.machine.targets:
            rows.append(("target", "ok", ", ".join(self.machine.targets)))
        order = ("problem", "note", "ok")
        return ["## The machine", "", *_table(("", "", ""), sorted(rows, key=lambda row: order.index(str(row[1]))))]

    def _suites(self) -> list[str]:
        rows = [
            (suite.name, *(suite.counts[status] for status in STATUSES), f"{suite.seconds:.0f}")
            for suite in self.suites
            if not suite.engine
        ]
        return ["## Suites", "", *_table(("suite", *STATUSES[:-1], "not run", "s"), rows, numbers=7)] if rows else []

    def _causes(self) -> list[str]:
        told = (
            "Equal causes are one row; numbers and names are left out of its message. In parentheses: what failed no case, "
            "because another way was found, or because the compiler says that it does not take it."
        )
        found = causes.rows(suite for suite in self.suites if not suite.engine)
        table: list[Sequence[object]] = []
        for (cause, is_failure), group in groupby(found, key=lambda row: (row.cause, row.is_failure)):
            title, rows = cause if is_failure else f"({cause})", [*group]
            table += [(title, *_cause_cells(row)) for row in rows[: _ROWS[is_failure]]]
            if rest := rows[_ROWS[is_failure] :]:
                table.append((title, sum(len(row.cases) for row in rest), f"{len(rest)} more, in report.json", "", ""))
        columns = ("cause", "cases", "message", "suites", "an example")
        return ["## By cause", "", told, "", *_table(columns, table)] if table else []

    def _engines(self) -> list[str]:
        device = self.machine.devices[0] if self.machine.devices else None
        versions = {name: f"{Path(plugin).name} {known}" for name, plugin, known in device.engines} if device else {}
        rows = []
        alone = [suite for suite in self.suites if suite.engine]
        for suite in alone:
            if set(suite.counts) - {"untaken"}:
                bad = [causes.cause_of(case.reason) for case in suite.with_status("failed")]
                bad += ["refused by the library"] * suite.counts["refused"]
                took = len(suite.cases) - sum(suite.counts[status] for status in ("untaken", "unrun", "refused"))
                other = sum(cause not in _COLUMNS for cause in bad)
                counts = [
                    took,
                    suite.counts["passed"],
                    *(bad.count(cause) for cause in _COLUMNS),
                    other,
                    suite.counts["unrun"],
                ]
                rows.append((suite.name, versions.get(suite.engine, ""), *counts))
        if not alone:
            return [] if device is None else ["## Engines", "", *_table(("engine", "plugin"), [*versions.items()])]
        told = "The samples that have graphs, and the models in f32, on one engine after another; no plan is compared before."
        idle = [suite.engine for suite in alone if not set(suite.counts) - {"untaken"}]
        told += f" Nothing is taken by: {', '.join(idle)}." if idle else ""
        columns = ("engine", "plugin", "took", "right", *_COLUMNS, "other", "not run")
        return ["## Each engine alone", "", told, "", *_table(columns, rows, numbers=len(columns) - 2)]

    def _times(self) -> list[str]:
        rows = [
            (time.model, time.way, "" if time.p50_ms is None else f"{time.p50_ms:.3f}", time.text)
            for time in self.times
        ]
        told = "Medians in milliseconds at batch 1, copies of inputs and results to and from the device among them."
        return ["## Times", "", told, "", *_table(("model", "", "ms", ""), rows)] if rows else []

    def _each(self) -> list[str]:
        lines: list[str] = []
        for row in causes.rows(self.suites):
            if row.is_failure:
                lines += ["", f"### {row.cause}: {row.message[:_HEADING]}", ""]
                lines += [_line(suite, case) for suite, case in row.cases[:_EXAMPLES]]
                if len(row.cases) > _EXAMPLES:
                    lines.append(f"- and {len(row.cases) - _EXAMPLES} more, in report.json")
        return ["## Failures one by one", *lines] if lines else []


def _cause_cells(row: causes.Row) -> tuple[object, ...]:
    example = causes.shortened(row.example)
    cut = f"{example[:_LETTERS]} ..." if len(example) > _LETTERS else example
    suites = ", ".join(dict.fromkeys(name for name, _ in row.cases))
    return len(row.cases), row.message, suites, f"`{row.cases[0][1].name}`: {cut}"


def _line(suite: str, case: Case) -> str:
    return f"- `{case.name}` ({suite}): {causes.shortened(case.reason)}"


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]], numbers: int = 0) -> list[str]:
    """A table whose last columns are numbers."""
    marks = ["---"] * (len(columns) - numbers) + ["---:"] * numbers
    lines = [[" ".join(str(cell).split()).replace("|", "\\|") for cell in row] for row in (columns, *rows)]
    return [f"| {' | '.join(line)} |" for line in (lines[0], marks, *lines[1:])]
