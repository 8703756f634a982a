"""A profile as a trace: JSON in Chrome's trace event format, which Perfetto (https://ui.perfetto.dev) opens.

Source: the document "Trace Event Format" of the Chromium project.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .profile import Profile, RecordedRun, StepCost

_PROCESS = 1
_RUNS, _STEPS = 1, 2
"""The rows of the trace: runs from call to return, and the steps in them."""


def trace_of(profile: Profile) -> dict[str, Any]:
    """Return the recorded runs of a profile as ``Profile.trace`` does."""
    events = [
        *_names(profile),
        *(event for number, run in enumerate(profile.runs) for event in _run_events(profile, number, run)),
    ]
    about = {key: value for key, value in profile.to_dict().items() if key not in ("steps", "runs")}
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": about}


def _names(profile: Profile) -> Iterator[dict[str, Any]]:
    """Yield the events that name the rows, in the order in which they are shown."""
    yield _about("process_name", 0, name=f"hipdnn-mlir: {profile.target} on {profile.device}")
    for row, name in ((_RUNS, "runs"), (_STEPS, "steps")):
        yield _about("thread_name", row, name=name)
        yield _about("thread_sort_index", row, sort_index=row)


def _run_events(profile: Profile, number: int, run: RecordedRun) -> Iterator[dict[str, Any]]:
    yield _span(f"run {number}", "run", _RUNS, run.began_us, run.wall_us, {"steps_us": sum(run.steps_us)})
    begin_us = run.steps_began_us
    for step, elapsed_us in zip(profile.steps, run.steps_us, strict=True):
        yield _span(step.name, step.kind, _STEPS, begin_us, elapsed_us, _step_arguments(step))
        begin_us += elapsed_us


def _step_arguments(step: StepCost) -> dict[str, Any]:
    """Return what is known of a step; what is not is left out."""
    known = {
        "operations": step.operations,
        "engine": step.engine,
        "plan": step.description,
        "bytes_read": step.work.bytes_read,
        "bytes_written": step.work.bytes_written,
        "flops": step.work.flops,
        "median_us": step.time.median_us,
        "bound": step.roofline.bound if step.roofline else None,
        "least_us": step.roofline.least_us if step.roofline else None,
    }
    return {key: value for key, value in known.items() if value not in (None, "")}


def _about(what: str, row: int, **arguments: Any) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": _PROCESS, "tid": row, "args": arguments}


def _span(name: str, category: str, row: int, begin_us: float, duration_us: float, arguments: Any) -> dict[str, Any]:
    times = {"ts": begin_us, "dur": duration_us}
    return {"ph": "X", "name": name, "cat": category, "pid": _PROCESS, "tid": row, **times, "args": arguments}
