"""Random convolutions, matrix products and attentions on a GPU, right or wrong by float64 on the CPU, and the engines that were caught.

``python bench/gpu/sweep.py pack FILE [--target sm_90]`` compiles the cases here; weights are made again from the seed.
``python bench/gpu/sweep.py run FILE [--autotune N] [--no-compare-plans]`` runs them there in worker processes: the exit status is 1 where
one is wrong, which it is where its relative distance from float64, as norms, is above the limit of its type.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import pickle
import re
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

# The scripts beside this folder, and the tests, which it is not a part of.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tests"))

from suite import Progress, serve
from sweep_cases import COUNTS, Case, build, cases, reference

import carried
import hipdnn_mlir
from hipdnn_mlir_runtime.dtypes import BY_NAME
from hipdnn_mlir_runtime.errors import PlanRefusedError, RefusedPlan, UnsupportedError
from onnx_backend.report import Result, run_cases

LIMITS = {"f16": 3e-3, "bf16": 2e-2, "tf32": 3e-3}
"""Largest relative distance of norms. A wrong plan is at about 1."""
LEFT_OUT = re.compile(r": (\S+)(?: \(.*?\))? (answers [^:;]*)")
MOST_GRAPHS = 20
"""Of one case, in all its forms."""


def _seed(name: str) -> int:
    return int.from_bytes(name.encode(), "little") % 2**32


def register(name: str, case: Case) -> None:
    """Make a case one of the models that `carried` packs."""
    carried.MODELS[name] = lambda: build(case, _seed(name))


class Packer:
    """Compiles cases, in a worker process."""

    def __init__(self, folder: Path, target: str) -> None:
        self._folder, self._target, self._cases = folder, target, cases()

    def pack(self, name: str) -> Result:
        """Write the case to the folder: its program, and the one of a library that refuses every graph."""
        case = self._cases[name]
        register(name, case)
        precision = "tf32" if case.dtype == "tf32" else "model"
        forms = [carried.pack(name, precision, self._target)]
        refused: list[RefusedPlan] = []
        while graphs := json.loads(forms[-1].text)["executables"] if len(refused) < MOST_GRAPHS else []:
            refused += [RefusedPlan(graph["name"], graph["summary"], "", "") for graph in graphs]
            try:
                forms[1:] = [carried.pack(name, precision, self._target, refused)]
            except UnsupportedError:  # nothing but the library takes it
                break
        path = self._folder / name.replace(" ", "-")
        path.write_bytes(pickle.dumps(forms))
        return {"status": "packed", "reasons": [], "path": str(path)}


class Caught(logging.Handler):
    """Engines whose plans were left out, with the reason."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Take one line of the runtime."""
        if match := LEFT_OUT.search(record.getMessage()):
            self.found.append(f"{match[1]} {match[2]}")


class Checker:
    """Runs cases of a packed file, in a worker process."""

    def __init__(self, file: Path, options: dict[str, Any]) -> None:
        self._file, self._options, self._cases = zipfile.ZipFile(file), options, cases()
        self._caught = Caught()
        logging.getLogger("hipdnn_mlir.runtime").addHandler(self._caught)

    def check(self, name: str) -> Result:
        """The status is ``passed``, ``recovered`` where the library took no graph, or ``failed``."""
        case = self._cases[name]
        register(name, case)
        self._caught.found.clear()
        # What `pack` wrote on one's own machine: a pickle, which is code.
        first, *others = (carried.unpack(form) for form in pickle.loads(self._file.read(name)))  # noqa: S301
        try:
            return self._compare(name, case, first, "passed")
        except PlanRefusedError:
            return self._compare(name, case, others[-1], "recovered")

    def _compare(self, name: str, case: Case, program: carried.InMemory, status: str) -> Result:
        session = hipdnn_mlir.Session(program, plan_cache=False, **self._options)
        rng = np.random.default_rng(_seed(name) + 1)
        feeds = {
            port.name: rng.standard_normal(port.shape, np.float32).astype(BY_NAME[port.dtype].numpy)
            for port in session.inputs
        }
        (got,) = session.run(None, feeds)
        want = reference(case, program.model, feeds)
        distance = float(np.linalg.norm(got.astype(np.float64) - want) / np.linalg.norm(want))
        engines = [step["engine"] for step in session.steps if step.get("engine")]
        is_right = distance <= LIMITS[case.dtype]  # false for a NaN
        reasons = [] if is_right else [f"distance {distance:.1e} by {', '.join(engines) or 'generated code'}: {case}"]
        return {
            "status": status if is_right else "failed",
            "reasons": reasons,
            "caught": list(self._caught.found),
            "distance": distance,
            "engines": engines,
        }


def pack(file: Path, target: str, wanted: str, workers: int) -> bool:
    """Compile the cases into one file; answers whether all compiled."""
    names = [name for name in cases() if wanted in name]
    with tempfile.TemporaryDirectory() as folder:
        command = (str(Path(__file__).resolve()), "pack-worker", folder, "--target", target)
        results = run_cases(names, workers, command, Progress(len(names)))
        with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as packed:
            for name, result in results.items():
                if result["status"] == "packed":
                    packed.write(result["path"], name)
    print(f"{file}: {len(names)} cases, {file.stat().st_size / 1e6:.1f} MB")
    return all(result["status"] == "packed" for result in results.values())


def run(file: Path, options: dict[str, Any], wanted: str, workers: int) -> bool:
    """Run the cases and print what was wrong, what was caught and what ran; answers whether all were right."""
    with zipfile.ZipFile(file) as packed:
        names = [name for name in packed.namelist() if wanted in name]
    progress = Progress(len(names))
    results = run_cases(
        names,
        workers,
        (str(Path(__file__).resolve()), "run-worker", str(file), "--options", json.dumps(options)),
        progress,
    )
    print(f"options {options}: {progress}")
    for kind in COUNTS:
        of_kind = [result for name, result in results.items() if name.startswith(kind)]
        statuses = Counter(result["status"] for result in of_kind)
        engines = Counter(engine for result in of_kind for engine in result.get("engines", ()))
        worst = max((result["distance"] for result in of_kind if result["status"] != "failed"), default=0.0)
        print(
            f"  {kind}: {dict(statuses)}, worst distance of right ones {worst:.1e}, plans by {dict(engines.most_common())}"
        )
    caught = Counter(line for result in results.values() for line in set(result.get("caught", ())))
    for line, count in caught.most_common():
        print(f"  caught in {count} cases: {line}")
    return bool(results) and all(result["status"] in ("passed", "recovered") for result in results.values())


def main() -> int:
    """Pack or run."""
    parser = argparse.ArgumentParser(description="Random cases on a GPU against float64.")
    # The worker commands are this script's own.
    parser.add_argument("command", choices=["pack", "run", "pack-worker", "run-worker"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--filter", default="", help="only cases whose name contains this text")
    parser.add_argument("--autotune", type=int, default=0)
    parser.add_argument("--compare-plans", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--port", default=None)
    parser.add_argument("--options", default="{}")
    parser.add_argument("--workers", type=int, default=min(os.cpu_count() or 1, 8))
    asked = parser.parse_args()
    if asked.command == "pack-worker":
        serve(Packer(asked.file, asked.target).pack)
        return 0
    if asked.command == "run-worker":
        serve(Checker(asked.file, json.loads(asked.options)).check)
        return 0
    if asked.command == "pack":
        return 0 if pack(asked.file, asked.target, asked.filter, asked.workers) else 1
    options = {"autotune": asked.autotune, "compare_plans": asked.compare_plans}
    if asked.port:
        options["port"] = asked.port
    return 0 if run(asked.file, options, asked.filter, asked.workers) else 1


if __name__ == "__main__":
    # Pickles name their classes by module: the one that both sides import, not __main__.
    import sweep

    sys.exit(sweep.main())
