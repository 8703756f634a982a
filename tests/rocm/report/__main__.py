"""Runs the suites on the devices of a port and writes a report and an archive: `python -P -m rocm.report --write build/rocm-report`.

The machine first; then hipDNN's ABI, onnx's node cases, the op table's samples, whole models, each engine alone, and times. What is known
is written after each of them. Exits 1 where something failed.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from onnx_backend.report import Limits

from . import archive, quick, suites, timing
from .cases import Suite, failed
from .conformance import conformance
from .machine import Machine, is_dead, look
from .model_worker import MODELS
from .page import Report
from .private import Private

_PRELIMINARY_S = 180.0
_HANGS = 5
"""In a row, after which a device is taken for dead."""
_TIMEOUT_S, _QUICK_TIMEOUT_S = 120.0, 60.0

Part = tuple[str, float, Callable[[Limits], Suite]]
"""Name, share of the time, and what runs it."""


def main() -> int:
    """Run everything that is asked for, with no plans and refusals that earlier runs kept."""
    with TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        return _report(_arguments())


def _report(asked: argparse.Namespace) -> int:
    start = time.monotonic()
    asked.case_timeout = asked.case_timeout or (_QUICK_TIMEOUT_S if asked.quick else _TIMEOUT_S)
    machine = look(asked.port, _PRELIMINARY_S)
    os.environ.setdefault("HIPDNN_LOG_LEVEL", "error")  # for the logs of cases that fail
    report = Report(asked.port, machine, is_quick=asked.quick)
    written = _write(report, asked.write, start)
    if machine.problem:
        sys.stderr.write(f"{machine.problem}\nwrote {written}\n")
        return 1
    timed = ",".join(timing.QUICK if asked.quick else timing.ALL) if asked.timings is None else asked.timings
    names = [name for name in timed.split(",") if name]
    parts = [*_parts(asked, machine)]
    shares = [share for _, share, _ in parts] + [3.0]
    budget = quick.Budget(quick.QUICK_S if asked.quick else math.inf, shares)
    for name, _, run in parts:
        suite = _run(name, run, Limits(asked.case_timeout, budget.until(), _HANGS))
        report.suites.append(suite)
        written = _write(report, asked.write, start)
        if any(case.reason.startswith("hang: ") for case in suite.cases) and (dead := is_dead(asked.port)):
            report.stopped = f"{dead}, after {name}: what comes after it was not run"
            sys.stderr.write(f"{report.stopped}\nwrote {_write(report, asked.write, start)}\n")
            return 1
    limits = Limits(3 * asked.case_timeout, budget.until(), _HANGS)
    try:
        for row in timing.times(machine.targets[0], names, 1.0 if asked.quick else 5.0, limits):
            report.times.append(row)
            written = _write(report, asked.write, start)
    except Exception as error:  # noqa: BLE001 - as of `_run`
        report.suites.append(suites.stopped("times", error))
        written = _write(report, asked.write, start)
    sys.stdout.write(f"wrote {asked.write / 'report.md'}, and to send: {written}\n")
    return 1 if failed(report.suites) else 0


def _parts(asked: argparse.Namespace, machine: Machine) -> Iterator[Part]:
    device = machine.devices[0]
    models = [name for name in asked.models.split(",") if name]
    if asked.conformance:
        factor = 1 if asked.quick else 5  # the limit is that of all cases
        yield (
            "hipDNN's ABI", 1,
            lambda limits: conformance(asked.conformance, asked.port, replace(limits, case_s=factor * limits.case_s)),
        )  # fmt: skip
    for target in machine.targets:
        samples = suites.Samples(target, asked.port, asked.samples, asked.workers, is_quick=asked.quick)
        yield from _parts_of_target(asked, target, samples, models)
        wanted = asked.engines.split(",")
        engines = [row for row in device.engines if asked.engines == "all" or row[0] in wanted]
        for engine, plugin, _ in engines:
            yield f"{engine} alone", 2 / len(engines), _alone(engine, _file_of(plugin, device.plugins), samples, models)


def _parts_of_target(
    asked: argparse.Namespace, target: str, samples: suites.Samples, models: Sequence[str]
) -> Iterator[Part]:
    yield (
        f"onnx's node cases, {target}", 3,
        lambda limits: suites.node_cases(target, asked.filter, asked.workers, limits, is_quick=asked.quick),
    )  # fmt: skip
    yield f"samples of the op table, {target}", 3, samples.run
    yield f"models, {target}", 2, lambda limits: suites.whole_models(target, models, limits)


def _alone(engine: str, plugin: str, samples: suites.Samples, models: Sequence[str]) -> Callable[[Limits], Suite]:
    def run(limits: Limits) -> Suite:
        suite = samples.on_engine(engine, plugin, limits)
        suite.add(suites.models_on_engine(samples.target, models, engine, plugin, limits))
        return suite

    return run


def _file_of(plugin: str, files: tuple[str, ...]) -> str:
    """The file of the plugin that an engine names; empty where the library does not tell."""
    name = Path(plugin).name
    return next((file for file in files if name and name.removesuffix(".so") in Path(file).name), "")


def _run(name: str, run: Callable[[Limits], Suite], limits: Limits) -> Suite:
    sys.stdout.write(f"{name} ...\n")
    sys.stdout.flush()
    start = time.monotonic()
    try:
        suite = run(limits)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this suite's, and the others run
        suite = suites.stopped(name, error)
    suite.seconds = time.monotonic() - start
    return suite


def _write(report: Report, folder: Path, start: float) -> Path:
    report.seconds = time.monotonic() - start
    report = Private().within(report)  # before texts are cut: half a path is not known any more
    return archive.write(folder, report.to_markdown(), report.to_dict(), report.suites)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, required=True, help="folder of the report; the archive lies beside it")
    parser.add_argument("--port", default="hip", help="whose devices to test on")
    parser.add_argument("--quick", action="store_true", help="one case of each kind, in about ten minutes")
    parser.add_argument(
        "--conformance", type=Path, help="the C++ program test_host_abi; left out where it is not given"
    )
    parser.add_argument("--filter", default="", help="only node cases whose name contains this text")
    parser.add_argument("--samples", default="sample ", help="only samples whose name contains this text")
    parser.add_argument("--models", default=",".join(MODELS), help="models by name, separated by commas")
    parser.add_argument("--timings", help="models to time, separated by commas")
    parser.add_argument("--engines", default="all", help="engines to try alone, separated by commas")
    parser.add_argument("--case-timeout", type=float, help="seconds after which a case has hung")
    parser.add_argument("--workers", type=int, default=2, help="processes that run cases")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
