"""What comparing a program with ONNX Runtime step by step found, and how the command shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hipdnn_mlir_runtime.cli.arrays import OutputError
from hipdnn_mlir_runtime.cli.tables import emphasized, folded


@dataclass(frozen=True)
class StepErrors:
    """How far the results of a step, or of steps that share nodes, lie from ONNX Runtime's.

    Attributes:
        steps: number, kind, engine, executable or kernel, and operations of each step; none where nodes only move data.
        nodes: the ONNX nodes.
        inputs: values that they read.
        errors: one per value that they give.
    """

    steps: Sequence[Mapping[str, Any]]
    nodes: Sequence[str]
    inputs: Sequence[str]
    errors: Sequence[OutputError]

    @property
    def within(self) -> bool:
        """Whether all values are within tolerance."""
        return all(error.within for error in self.errors)

    @property
    def constant(self) -> bool:
        """Whether that says nothing, since every value of ONNX Runtime's is the same number everywhere."""
        return all(error.constant for error in self.errors)

    @property
    def worst(self) -> OutputError:
        """The value that is furthest beyond its tolerance, or nearest to it."""
        return max(self.errors, key=lambda error: error.largest / error.tolerance if error.tolerance else error.largest)

    @property
    def title(self) -> str:
        """The numbers of the steps."""
        numbers = [str(step["number"]) for step in self.steps]
        return f"step{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}" if numbers else "nodes that only move data"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        values = [error.to_dict() for error in self.errors]
        return {"steps": list(self.steps), "nodes": list(self.nodes), "inputs": list(self.inputs), "values": values}


@dataclass(frozen=True)
class Reproducer:
    """A folder with a reduced model, its inputs and its program.

    Attributes:
        folder: the folder.
        command: what replays it.
        error: of the reduced model, compiled by itself.
        is_same: whether the executables and kernels of the steps are in its program, by their names, which stand for all of them.
    """

    folder: Path
    command: str
    error: OutputError
    is_same: bool

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return {
            "folder": str(self.folder),
            "command": self.command,
            "is_same": self.is_same,
            "value": self.error.to_dict(),
        }


@dataclass(frozen=True)
class Bisection:
    """What comparing a program step by step found.

    Attributes:
        precision: what the program was compiled with.
        in_place: errors of steps that read what those before them gave, in order; up to those compared together with the first beyond
            tolerance.
        alone: errors of steps that read ONNX Runtime's values: of the first beyond tolerance in place, or of others, too, where that one
            is within tolerance by itself.
        left_out: nodes that cannot be compiled without those around them.
        reproducer: of what is beyond tolerance; None where nothing is.
    """

    precision: str
    in_place: Sequence[StepErrors]
    alone: Sequence[StepErrors] = ()
    left_out: Sequence[str] = ()
    reproducer: Reproducer | None = None

    @property
    def fault(self) -> StepErrors | None:
        """The step that is beyond tolerance although what it reads is exact."""
        return _first_beyond(self.alone)

    @property
    def first_beyond(self) -> StepErrors | None:
        """The first step beyond tolerance on what the steps before it gave."""
        return _first_beyond(self.in_place)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return {
            "precision": self.precision,
            "fault": None if self.fault is None else self.fault.to_dict(),
            "in_place": [row.to_dict() for row in self.in_place],
            "alone": [row.to_dict() for row in self.alone],
            "left_out": list(self.left_out),
            "reproducer": None if self.reproducer is None else self.reproducer.to_dict(),
        }

    def __str__(self) -> str:  # the replay's command is to be copied in one line
        title = emphasized(f"step by step, precision '{self.precision}'")
        return "\n".join([title, *map(folded, [*self._summary(), *self._notes()]), *self._replay()])

    def _summary(self) -> list[str]:
        first = self.first_beyond
        if first is None:
            worst = max(self.in_place, key=lambda row: row.worst.largest, default=None)
            largest = "" if worst is None else f"; the largest error is {worst.worst.largest:.2g}, of {worst.title}"
            return [f"Every step is within tolerance{largest}."]
        before = {error.output: error.largest for row in self.in_place for error in row.errors}
        read = max((before[name] for name in first.inputs if name in before), default=0.0)
        lines = [
            f"The first beyond tolerance is {first.title}. What it reads has errors up to {read:.2g}.",
            *_described(first),
        ]
        if self.fault is None:
            alone = next((f"{row.worst.largest:.2g}" for row in self.alone if row.nodes == first.nodes), "unknown")
            lines.append(
                f"No step is beyond tolerance by itself, on ONNX Runtime's values: the error of {first.title} is {alone} there. "
                "So errors of steps add up, or the fault shows only with what is around the step."
            )
        elif self.fault.nodes == first.nodes:
            lines.append(
                f"By itself, on ONNX Runtime's values, its error is {self.fault.worst.largest:.2g}: the step is at fault."
            )
        else:
            lines.append(
                f"By itself it is within tolerance. At fault, on ONNX Runtime's values, is {self.fault.title}."
            )
            lines += _described(self.fault)
        return lines

    def _notes(self) -> list[str]:
        notes = []
        same = [row.title for row in self.in_place if row.constant and row.within]
        if same:
            notes.append(f"Constant in every element, so that nothing is known of: {'; '.join(same)}.")
        if self.left_out:
            notes.append(f"Not compared by themselves, since they cannot be compiled so: {', '.join(self.left_out)}.")
        return notes

    def _replay(self) -> list[str]:
        made = self.reproducer
        if made is None:
            return []
        same = "the same executables" if made.is_same else "other executables than the whole program has"
        shows = f"error {made.error.largest:.2g}" + (", within tolerance" if made.error.within else "")
        return [f"Reduced model, with inputs and program, in {made.folder} ({shows}; {same}):", f"  {made.command}"]


def _first_beyond(rows: Sequence[StepErrors]) -> StepErrors | None:
    """Return the first that is beyond tolerance."""
    return next((row for row in rows if not row.within), None)


def _described(found: StepErrors) -> list[str]:
    """Return what steps are, and their values that are beyond tolerance."""
    lines = [
        f"  {step['number']}: {step['operations']} [{', '.join(filter(None, (step['engine'], step['executable'])))}]"
        for step in found.steps
    ]
    lines.append(f"  nodes: {', '.join(found.nodes)}")
    lines += [
        f"  '{error.output}': largest error {error.largest:.2g}, rms {error.rms:.2g}, tolerance {error.tolerance:.2g}"
        for error in found.errors
        if not error.within
    ]
    return lines
