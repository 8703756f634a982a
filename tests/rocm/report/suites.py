"""The suites that run in worker processes: onnx's node cases, the op table's samples, whole models, one engine alone."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import suite as op_suite
from sample_programs import named_samples

from onnx_backend.coverage import operators
from onnx_backend.report import Limits, Results, run_cases

from . import quick
from .cases import Case, Suite
from .model_worker import PRECISIONS


def node_cases(target: str, wanted: str, workers: int, limits: Limits, *, is_quick: bool) -> Suite:
    """Onnx's node cases, each compiled for the target and run on its port."""
    kinds = {name: operator for name, operator in operators().items() if wanted in name}
    names = quick.representative(kinds, kinds.__getitem__) if is_quick else sorted(kinds)
    suite = Suite(f"onnx's node cases, {target}")
    os.environ["HIPDNN_MLIR_TEST_TARGET"] = target
    suite.add(run_cases(names, workers, limits=limits))
    return suite


class Samples:
    """The op table's samples, packed once and run with all engines and with each alone.

    Args:
        target: What they are compiled for.
        port: Where they run.
        wanted: Only those with this text in their name.
        workers: Processes at a time.
        is_quick: One of each operator and type.
    """

    def __init__(self, target: str, port: str, wanted: str, workers: int, *, is_quick: bool) -> None:
        self.target, self._port, self._workers = target, port, workers
        self._wanted, self._is_quick = wanted, is_quick
        self._folder = TemporaryDirectory()  # deleted with this object
        self._file = Path(self._folder.name, "samples")
        self._made: Results = {}

    def pack(self, limits: Limits) -> None:
        """Compile them, which needs CPUs alone."""
        names = [name for name in named_samples() if self._wanted in name]
        names = quick.representative(names, quick.sample_kind) if self._is_quick else names
        workers = max(self._workers, min((os.cpu_count() or 1) // 2, 8))
        self._made = op_suite.pack(self._file, self.target, names, workers, limits)

    def run(self, limits: Limits) -> Suite:
        """Against the host's library, as compiled for the target and, where its library refuses graphs, without them."""
        suite = Suite(f"samples of the op table, {self.target}")
        if not self._made:  # half of the time compiles them
            now = time.monotonic()
            self.pack(replace(limits, until=now + (limits.until - now) / 2))
        # What neither the target nor the host takes is no matter of this target.
        suite.add({name: made for name, made in self._made.items() if made["status"] not in ("packed", "untaken")})
        packed = [name for name, made in self._made.items() if made["status"] == "packed"]
        for name, result in op_suite.run(self._file, self._port, packed, self._workers, limits).items():
            status = "failed" if result["status"] == "refused" else result["status"]
            suite.add({name: {**result, "status": status}})
        return suite

    def on_engine(self, engine: str, plugin: str, limits: Limits) -> Suite:
        """The programs with graphs on one engine, the others refused: with its plugin alone, where the library tells the file."""
        suite = Suite(f"{engine} alone, {self.target}", engine=engine)
        alone = ("--engine", engine, *(("--plugin", plugin) if plugin else ()))
        with_graphs = [name for name, made in self._made.items() if made.get("graphs")]
        suite.add(op_suite.run(self._file, self._port, with_graphs, self._workers, limits, alone))
        return suite


def whole_models(target: str, names: Sequence[str], limits: Limits) -> Suite:
    """Models in f32 and f16 against ONNX Runtime on the CPU in f32, one after another."""
    suite = Suite(f"models, {target}")
    cases = [f"{name} in {precision}" for precision in PRECISIONS for name in names]
    suite.add(_models(cases, (target,), limits))
    return suite


def models_on_engine(target: str, names: Sequence[str], engine: str, plugin: str, limits: Limits) -> Results:
    """Models in f32 on one engine, as ``Samples.on_engine``; what its plugin alone refuses is compiled another way."""
    arguments = (target, engine, *filter(None, [plugin]))
    return _models([f"{name} in f32" for name in names], arguments, limits)


def _models(cases: Sequence[str], arguments: Sequence[str], limits: Limits) -> Results:
    # A model has dozens of graphs, for each of which a library may look for kernels.
    limits = replace(limits, case_s=3 * limits.case_s)
    return run_cases(cases, 1, ("-P", "-m", "rocm.report.model_worker", *arguments), limits=limits)


def stopped(name: str, error: Exception) -> Suite:
    """A suite that did not end, or not even begin."""
    log = "".join(traceback.format_exception(error))
    return Suite(name, [Case("all of it", "failed", f"crash: {type(error).__name__}: {error}", log)])
