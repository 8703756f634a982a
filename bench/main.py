"""The table of measurements: programs against ONNX Runtime's CPU provider, load times, steps, allocations, memory.

``python bench/main.py [--json FILE] [--repeat N]``; ``make bench`` writes build/bench.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import onnx

# The models live with the tests, which this directory is not a part of.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import allocations
import dynamic_dimensions
import fresh
import hipdnn_mlir
import large_model
import models
import onnxruntime_ep
import torch_first
from hipdnn_mlir.cli.verification import TOLERANCES, distances
from hipdnn_mlir_runtime.cli.execution import reference_runner
from hipdnn_mlir_runtime.cli.inputs import Inputs
from hipdnn_mlir_runtime.cli.measure import interleave
from hipdnn_mlir_runtime.cli.progress import working
from hipdnn_mlir_runtime.cli.tables import table
from row import Row

FRESH_RUNS = 5
DIGITS = Path(__file__).resolve().parent.parent / "examples" / "digits" / "digits.onnx"
MODELS: dict[str, tuple[Callable[[], onnx.ModelProto], float]] = {
    "ResNet-50": (models.resnet50, 1.10),
    "BERT-12 encoder s128": (models.encoder, 0.95),
    "MobileNetV2": (models.mobilenet_v2, 1.10),
}
"""Models timed against ONNX Runtime, with the largest ratio that counts as reached."""
NARROW = {"BERT-12 encoder s128": 0.30, "ResNet-50": 0.60}
"""Those timed in bf16 too, against ONNX Runtime in f32."""


def against_onnxruntime(
    name: str, model: Path, program: Path, limit: float, threads: int, repeat: int, precision: str = "f32"
) -> Row:
    """Time a program and ONNX Runtime in turns on the same input, after comparing their outputs."""
    session = hipdnn_mlir.load(program, threads=threads)
    feeds = Inputs(session).draw()
    names = [port.name for port in session.outputs]
    run_reference = partial(reference_runner("ort", model, names, threads), feeds)
    for output, got, want in zip(names, session.run(None, feeds), run_reference(), strict=True):
        error, _ = distances(got, want)
        if error > TOLERANCES[precision]:
            raise RuntimeError(f"{name}: {output} differs from ONNX Runtime by {error:g} of its scale")
    timings = interleave({"program": lambda: session.run(None, feeds), "ort": run_reference}, repeat)
    ours, theirs = timings["program"].median_ms, timings["ort"].median_ms
    return Row(
        f"{name}: program time / ONNX Runtime time",
        limit,
        ours / theirs,
        "x",
        f"{ours:.2f} ms / {theirs:.2f} ms",
        {key: timing.to_dict() for key, timing in timings.items()},
    )


def from_file_to_session(name: str, action: str, file: Path, limit_s: float, threads: int) -> Row:
    """Time the way from a file to a ready session, each time in a fresh process."""
    runs = [fresh.measure(action, file, threads) for _ in range(FRESH_RUNS)]
    ready_s = statistics.median(run["ready_ms"] for run in runs) / 1e3
    imports_s = statistics.median(run["import_ms"] for run in runs) / 1e3
    return Row(name, limit_s, ready_s, "s", f"imports before it: {imports_s:.2f} s", {"runs": runs})


def steps(name: str, program: Path) -> list[Row]:
    """Count the steps of a program, and those copies among them that do not read an input of the model."""
    session = hipdnn_mlir.load(program)
    with program.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    text = json.loads(header["__metadata__"]["hipdnn_program"])
    copies = [
        index
        for index, step in enumerate(session.steps)
        if step["kind"] == "copy" or step["summary"] == "copy"  # a copy between layouts is an executable
    ]
    inner = [index for index in copies if not _reads_input(text, text["steps"][index])]
    stats = session.stats
    return [
        Row(f"{name}: steps", 60, stats.steps, note=f"{stats.executables} executables, {stats.plans} plans"),
        Row(f"{name}: copies but at the input", 0, len(inner), note=f"{len(copies)} copies in all"),
    ]


def _reads_input(program: dict[str, Any], step: dict[str, Any]) -> bool:
    """Return whether a step reads an input of the model."""
    operands = step["operands"] if step["kind"] == "execute" else [step["src"]]
    return any(program["buffers"][operand["buffer"]]["kind"] == "input" for operand in operands)


def allocations_per_run(name: str, program: Path, threads: int) -> Row:
    """Count heap allocations of a run in steady state; host memory is the device's here, so these are all.

    Those of the libraries below the runtime, such as oneDNN's per primitive, stand in the note.
    """
    by_library = allocations.count(program, threads)
    runtime = sum(number for library, number in by_library.items() if allocations.is_runtime(library))
    note = ", ".join(f"{library} {number:g}" for library, number in sorted(by_library.items()))
    return Row(f"{name}: allocations in the runtime per run", 0, runtime, note=note or "none", details=by_library)


def arena(name: str, program: Path) -> Row:
    """Compare the arena with the largest live set."""
    stats = hipdnn_mlir.load(program).stats
    ratio = stats.arena_bytes / stats.largest_live_bytes if stats.largest_live_bytes else 1.0
    note = f"{stats.arena_bytes} / {stats.largest_live_bytes} bytes"
    return Row(f"{name}: arena bytes / largest live set", 1.10, ratio, "x", note)


def measure(scratch: Path, threads: int, repeat: int, report: Callable[[str], None]) -> list[Row]:
    """Build, compile and measure every model; files go to ``scratch``."""
    rows, files = [], {}
    for name, (build, limit) in MODELS.items():
        report(name)
        model = scratch / f"{name}.onnx"
        files[name] = model, model.with_suffix(".hipdnn")
        onnx.save(build(), model)
        hipdnn_mlir.compile(model).save(files[name][1])
        rows.append(against_onnxruntime(name, *files[name], limit, threads, repeat))
    for name, limit in NARROW.items():
        report(f"{name} in bf16")
        model, program = files[name]
        narrow = program.with_name(f"{program.stem} bf16.hipdnn")
        hipdnn_mlir.compile(model, precision="bf16").save(narrow)
        rows.append(against_onnxruntime(f"{name}, bf16", model, narrow, limit, threads, repeat, "bf16"))
    report("from a file to a session")
    model, program = files["ResNet-50"]
    rows.append(from_file_to_session("ResNet-50: ONNX file to ready session", "compile", model, 1.5, threads))
    rows.append(from_file_to_session("ResNet-50: saved program to ready session", "load", program, 0.10, threads))
    rows += steps("ResNet-50", program)
    for name, (_, program) in files.items():
        report(f"allocations and memory of {name}")
        rows += [allocations_per_run(name, program, threads), arena(name, program)]
    report("a large model")
    rows += large_model.measure(scratch, threads)
    report("the ONNX Runtime provider")
    rows += onnxruntime_ep.measure(
        scratch, {name: (files[name][0], limit) for name, (_, limit) in MODELS.items()}, threads, repeat
    )
    report("torch imported first")
    rows += torch_first.measure({"digits": DIGITS, "MobileNetV2": files["MobileNetV2"][0]}, threads)
    return rows + dynamic_dimensions.measure(scratch, threads, report)


def to_table(rows: list[Row]) -> str:
    """Return the table for people."""
    cells = []
    for row in rows:
        digits = 0 if not row.unit and row.measured == int(row.measured) else 2
        target = f"<= {row.target:.{2 if row.unit else 0}f} {row.unit}"
        verdict = "reached" if row.is_reached else "missed"
        cells.append((row.name, target, f"{row.measured:.{digits}f} {row.unit}", verdict, row.note))
    return table("measured", ("what", "target", "measured", "", "behind it"), cells, ["target", "measured"])


def main() -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the table to this file")
    parser.add_argument("--repeat", type=int, default=50, help="timed runs of each model")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads on either side")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, working("measuring") as report:
        rows = measure(Path(scratch), arguments.threads, arguments.repeat, report)
    print(to_table(rows))
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        data = {
            "threads": arguments.threads,
            "cpus": os.cpu_count(),
            "load_average": os.getloadavg()[0],
            "rows": [{**asdict(row), "reached": row.is_reached} for row in rows],
        }
        arguments.json.write_text(json.dumps(data, indent=1))


if __name__ == "__main__":
    main()
