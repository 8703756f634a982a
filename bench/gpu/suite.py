"""The op table's whole suite on a machine without the compiler: onnx's node cases and the table's samples, compiled here, run there.

``python bench/gpu/suite.py pack FILE [--target sm_90]`` compiles every node case that the compiler takes, and every accepted sample, whose
reference is the host's library. What has graphs for a device's library is compiled a second time without any, as where that refuses them.
``python bench/gpu/suite.py run FILE --port cuda`` runs both there, in worker processes, so that a crash does not end the run, and compares:
the exit status is 1 where something fails.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

# The scripts of this folder, and the tests, which it is not a part of.
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tests"))

import hipdnn_mlir
from hipdnn_mlir_runtime.errors import HipdnnMlirError, ModelError, PlanRefusedError, RefusedPlan, UnsupportedError
from onnx_backend.report import UNLIMITED, Limits, Result, Results, run_cases
from onnx_backend.values import assert_similar, to_array

Array = npt.NDArray[np.generic]

SAMPLE_RTOL = {"f64": 1e-9, "f32": 2e-5, "f16": 4e-3, "bf16": 3e-2}
"""By the narrowest type of a sample's tensors."""
REJECTED = "rejected.json"
"""In the file: name -> why the target does not take it, although the host does."""
PROGRESS_S = 20.0
MAX_GRAPHS = 50
"""Refused for one program, before the search for another form is given up."""


@dataclass(frozen=True)
class Packed:
    """A program as ``hipdnn_mlir.load`` takes it.

    Attributes:
        text: JSON.
        tensors: Its constants by name.
    """

    text: str
    tensors: Mapping[str, Array]


@dataclass(frozen=True)
class Case:
    """A program with what it is to answer.

    Attributes:
        program: The program.
        otherwise: The same without graphs for a library, as on a device whose library refuses them; None where there is no other form.
        data_sets: Inputs and expected outputs, in the program's order.
        rtol: Relative tolerance.
        atol: Absolute tolerance; ``assert_similar`` has a least one per type.
    """

    program: Packed
    otherwise: Packed | None
    data_sets: list[tuple[list[Any], list[Any]]]
    rtol: float
    atol: float

    def check(self, port: str | None) -> tuple[RefusedPlan, ...]:
        """Run both forms.

        Returns:
            The graphs that the library refused, so that only the form without any ran.

        Raises:
            HipdnnMlirError: It cannot be loaded or run.
            AssertionError: It answers something else.
        """
        refused: tuple[RefusedPlan, ...] = ()
        for form in filter(None, (self.program, self.otherwise)):
            try:
                # Without plans of earlier runs: what is tried is what this library proposes.
                session = hipdnn_mlir.Session(form, port=port, plan_cache=False)
            except PlanRefusedError as error:
                if self.otherwise is None:
                    raise
                refused = error.refusals
                continue
            self._compare(session)
        return refused

    def check_on(self, port: str | None, engine: str, plugin: str) -> bool:
        """Run the first form on one engine, as it answers: no plan is compared before.

        Args:
            port: Where to run.
            engine: The engine.
            plugin: The file of its plugin, which is loaded in the place of all others; empty where they stay.

        Returns:
            Whether the engine took any graph. A program with graphs that only others take is not for it.

        Raises:
            PlanRefusedError: It refuses a graph that was made for it.
            HipdnnMlirError: It cannot be loaded or run.
            AssertionError: It answers something else.
        """
        alone: dict[str, Any] = {"plugin_dirs": [plugin], "plugin_mode": "absolute"} if plugin else {}
        try:
            session = hipdnn_mlir.Session(
                self.program, port=port, plan_cache=False, compare_plans=False, engine=engine, **alone
            )
        except PlanRefusedError as error:
            made_for = {graph["name"]: graph["engine"] for graph in json.loads(self.program.text)["executables"]}
            if any(made_for.get(refusal.graph) == engine for refusal in error.refusals):
                raise
            return False
        if all(step.get("engine") != engine for step in session.steps):
            return False
        self._compare(session)
        return True

    def _compare(self, session: hipdnn_mlir.Session) -> None:
        for inputs, expected in self.data_sets:
            assert_similar(_run(session, inputs), expected, self.rtol, self.atol)


def _run(session: hipdnn_mlir.Session, inputs: Sequence[Any]) -> list[Any]:
    names = [port.name for port in session.inputs]
    return list(session.run(None, dict(zip(names, inputs, strict=True))))


class Packer:
    """Compiles named cases for a target, in a worker process."""

    def __init__(self, target: str, folder: Path) -> None:
        from sample_programs import compile_sample, inputs, named_samples

        self._target, self._folder = target, folder
        self._samples, self._compile_sample, self._inputs = named_samples(), compile_sample, inputs

    @cached_property
    def _nodes(self) -> dict[str, Any]:
        from onnx_backend.node_cases import node_cases

        return node_cases()

    def pack(self, name: str) -> Result:
        """Write the case to the folder; ``rejected`` is what the host takes and the target does not, ``untaken`` what neither does."""
        make = self._sample if name in self._samples else self._node
        try:
            case = make(name, self._target)
        except (UnsupportedError, ModelError) as error:
            return {"status": "rejected" if self._on_host(make, name) else "untaken", "reasons": _reasons(error)}
        path = self._folder / f"{len(list(self._folder.iterdir()))}-{os.getpid()}"
        path.write_bytes(pickle.dumps(case))
        graphs = len(json.loads(case.program.text)["executables"])
        return {"status": "packed", "reasons": [], "path": str(path), "graphs": graphs}

    def _node(self, name: str, target: str) -> Case:
        case = self._nodes[name]
        program, otherwise = _both(lambda refused: hipdnn_mlir.compile(case.model, target=target, refused=refused))
        sets = [([to_array(v) for v in inputs], [to_array(v) for v in outputs]) for inputs, outputs in case.data_sets]
        return Case(program, otherwise, sets, case.rtol, case.atol)

    def _sample(self, name: str, target: str) -> Case:
        sample = self._samples[name]
        program, otherwise = _both(lambda refused: self._compile_sample(sample, target, refused))
        reference = self._compile_sample(sample, "host").session()
        inputs = self._inputs(sample)
        expected = _run(reference, inputs)
        types = {port.dtype for port in (*reference.inputs, *reference.outputs)}
        rtol = max((SAMPLE_RTOL[kind] for kind in types if kind in SAMPLE_RTOL), default=0.0)
        return Case(program, otherwise, [(inputs, expected)], rtol, 0.0)

    def _on_host(self, make: Callable[[str, str], Case], name: str) -> bool:
        try:
            return self._target != "host" and make(name, "host") is not None
        except (UnsupportedError, ModelError):
            return False


def _both(make: Callable[[Sequence[RefusedPlan]], hipdnn_mlir.Program]) -> tuple[Packed, Packed | None]:
    """The program, and the one of the device whose library refuses every graph, as it is made there."""
    first = made = make(())
    refused: list[RefusedPlan] = []
    while made.model.target != "host" and made.model.executables:
        known = len(refused)
        refused += [RefusedPlan(e.name, e.summary, "", "") for e in made.model.executables]
        try:
            made = make(refused)
        except UnsupportedError:
            return Packed(first.text, first.tensors), None
        if known > MAX_GRAPHS:
            raise RuntimeError(f"there is always one more graph: {refused[-1]}")
    return Packed(first.text, first.tensors), None if made is first else Packed(made.text, made.tensors)


def _reasons(error: HipdnnMlirError) -> list[str]:
    if isinstance(error, UnsupportedError):
        return sorted({f"{reject.op}: {reject.reason} [{reject.rule}]" for reject in error.rejects})
    return [f"model: {error.message}"]


class Checker:
    """Runs named cases of a packed file, in a worker process; on one engine alone where it is named."""

    def __init__(self, file: Path, port: str | None, engine: str = "", plugin: str = "") -> None:
        self._cases, self._port, self._engine, self._plugin = zipfile.ZipFile(file), port, engine, plugin

    def check(self, name: str) -> Result:
        """The status is ``passed``, ``recovered`` where the library refused graphs and the program without them passed, or ``refused``.

        On one engine alone it is ``untaken`` where another one, or none, ran the program.
        """
        # What `pack` wrote on one's own machine: a pickle, which is code.
        case: Case = pickle.loads(self._cases.read(name))  # noqa: S301
        try:
            if self._engine:
                is_taken = case.check_on(self._port, self._engine, self._plugin)
                return {"status": "passed" if is_taken else "untaken", "reasons": []}
            refused = case.check(self._port)
        except PlanRefusedError as error:
            return {"status": "refused", "reasons": [str(refusal) for refusal in error.refusals]}
        return {"status": "recovered" if refused else "passed", "reasons": [str(plan) for plan in refused]}


def serve(work: Callable[[str], Result]) -> None:
    """After ``ready`` a name per line in and a result per line out; whatever is raised is that case's failure."""
    # Libraries print on descriptor 1; results go to a private copy of it.
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print("ready", file=results, flush=True)
    for line in sys.stdin:
        try:
            result = work(line.strip())
        except Exception as error:  # noqa: BLE001 - as above
            result = {"status": "failed", "reasons": [f"{type(error).__name__}: {' '.join(str(error).split())[:1000]}"]}
        print(json.dumps(result), file=results, flush=True)


class Progress:
    """Prints counts now and then, and at once what failed or was refused."""

    def __init__(self, total: int) -> None:
        self._total, self._counts = total, Counter[str]()
        self._start = self._last = time.monotonic()

    def __call__(self, name: str, result: Result) -> None:
        """Take one result."""
        self._counts[result["status"]] += 1
        if result["status"] in ("failed", "refused", "recovered"):
            print(f"{result['status']}: {name}: {'; '.join(result['reasons'])}", flush=True)
        if time.monotonic() - self._last > PROGRESS_S:
            self._last = time.monotonic()
            print(f"  {self}", flush=True)

    def __str__(self) -> str:
        """Return the counts so far."""
        counts = ", ".join(f"{count} {status}" for status, count in sorted(self._counts.items()))
        return f"{self._counts.total()} of {self._total} in {time.monotonic() - self._start:.0f} s: {counts or 'none'}"


def _each(names: Sequence[str], workers: int, arguments: Sequence[str], limits: Limits) -> tuple[Results, Progress]:
    progress = Progress(len(names))
    return run_cases(names, workers, (str(Path(__file__).resolve()), *arguments), progress, limits), progress


def pack(file: Path, target: str, names: Sequence[str], workers: int, limits: Limits = UNLIMITED) -> Results:
    """Compile node cases and samples by name; a status is ``packed``, ``rejected``, ``untaken`` or ``failed``."""
    with tempfile.TemporaryDirectory() as folder:
        results, progress = _each(names, workers, ["pack-worker", folder, "--target", target], limits)
        rejected = {name: result["reasons"] for name, result in results.items() if result["status"] == "rejected"}
        with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as packed:
            packed.writestr(REJECTED, json.dumps(rejected))
            for name, result in results.items():
                if result["status"] == "packed":
                    packed.write(result["path"], name)
    print(progress)
    for reason, count in Counter(reason for reasons in rejected.values() for reason in reasons).most_common():
        print(f"rejected for {target}, not for host: {count} x {reason}")
    taken = Counter(
        name.partition(" ")[0] == "sample" for name, result in results.items() if result["status"] == "packed"
    )
    print(f"{file}: {taken[False]} node cases, {taken[True]} samples, {file.stat().st_size / 1e6:.1f} MB")
    return results


def run(
    file: Path,
    port: str | None,
    names: Sequence[str],
    workers: int,
    limits: Limits = UNLIMITED,
    alone: Sequence[str] = (),
) -> Results:
    """Run packed cases by name; a status is as ``Checker.check`` states it, or ``failed``.

    Args:
        file: What ``pack`` wrote.
        port: Where to run; the programs' target by default.
        names: The cases.
        workers: Processes at a time.
        limits: How long it may take.
        alone: Options of the command for one engine alone.
    """
    options = [*(["--port", port] if port else []), *alone]
    results, progress = _each(names, workers, ["run-worker", str(file), *options], limits)
    print(progress)
    return results


def _known(wanted: str) -> list[str]:
    from sample_programs import named_samples

    from onnx_backend.report import case_names

    return [name for name in (*named_samples(), *case_names()) if wanted in name]


def _packed(file: Path, wanted: str) -> list[str]:
    with zipfile.ZipFile(file) as packed:
        return [name for name in packed.namelist() if name != REJECTED and wanted in name]


def is_right(results: Results) -> bool:
    """Whether something ran, nothing failed, and the library refused nothing that was not compiled otherwise."""
    return bool(results) and all(result["status"] in ("passed", "recovered") for result in results.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """Pack or run; the exit status is 1 where something failed."""
    parser = argparse.ArgumentParser(description="The op table's suite, compiled here and run elsewhere.")
    # The worker commands are this script's own.
    parser.add_argument("command", choices=["pack", "run", "pack-worker", "run-worker"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--target", default="sm_90", help="what to compile for")
    parser.add_argument("--port", help="where to run; the programs' target by default")
    parser.add_argument("--filter", default="", help="only cases and samples whose name contains this text")
    parser.add_argument("--engine", default="", help="the only engine whose plans are tried")
    parser.add_argument(
        "--plugin", default="", help="the file of its plugin, which is loaded in the place of all others"
    )
    parser.add_argument("--workers", type=int, default=min(os.cpu_count() or 1, 8))
    asked = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")  # of NumPy, while onnx makes its cases
    if asked.command == "pack-worker":
        serve(Packer(asked.target, asked.file).pack)
        return 0
    if asked.command == "run-worker":
        serve(Checker(asked.file, asked.port, asked.engine, asked.plugin).check)
        return 0
    if asked.command == "pack":
        made = pack(asked.file, asked.target, _known(asked.filter), asked.workers)
        return 1 if any(result["status"] == "failed" for result in made.values()) else 0
    alone = [
        text for name in ("engine", "plugin") if getattr(asked, name) for text in (f"--{name}", getattr(asked, name))
    ]
    results = run(asked.file, asked.port, _packed(asked.file, asked.filter), asked.workers, alone=alone)
    return 0 if is_right(results) else 1


if __name__ == "__main__":
    # Pickles name their classes by module: the one that both sides import, not __main__.
    import suite

    sys.exit(suite.main())
