"""A model of more than a gigabyte: time from its file to a saved program, and memory meanwhile.

``python bench/large_model.py`` prints its rows; ``bench/main.py`` makes them part of the table.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import onnx

# The models live with the tests, which this directory is not a part of.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import fresh
import models
from row import Row

RUNS = 3
NAME = "BERT-large encoder s128"
_CHUNK_BYTES = 1 << 24


def _build(scratch: Path) -> tuple[Path, Path]:
    """Save the model, its weights in a file of their own as exporters do at this size; return both paths."""
    model = scratch / "large.onnx"
    proto = models.encoder(layers=24, d=1024, heads=16, ffn=4096)
    onnx.save(proto, model, save_as_external_data=True, location="large.data")
    return model, scratch / "large.data"


def _read_s(file: Path) -> float:
    """Time reading a file from front to back, which also leaves it in the page cache."""
    buffer = bytearray(_CHUNK_BYTES)
    start = time.perf_counter()
    with file.open("rb", buffering=0) as source:
        while source.readinto(buffer):
            pass
    return time.perf_counter() - start


def _write_s(file: Path, size: int) -> float:
    """Time writing as many bytes to a new file, without waiting for the disk, as saving a program does; the file is removed."""
    data = memoryview(bytes(range(256)) * (_CHUNK_BYTES // 256))
    start = time.perf_counter()
    with file.open("wb", buffering=0) as sink:
        for begin in range(0, size, _CHUNK_BYTES):
            sink.write(data[: size - begin])
    elapsed = time.perf_counter() - start
    file.unlink()
    return elapsed


def measure(scratch: Path, threads: int = 2) -> list[Row]:
    """Return the rows; files go to ``scratch`` and are removed."""
    model, data = _build(scratch)
    program = model.with_suffix(".hipdnn")
    size = data.stat().st_size
    runs = []
    for _ in range(RUNS):
        runs.append(
            {"read_ms": 1e3 * _read_s(data), "write_ms": 1e3 * _write_s(scratch / "plain", size)}
            | fresh.measure("save", model, threads)
        )
        program.unlink()
    model.unlink()
    data.unlink()
    read, write, compile_, save = (
        statistics.median(run[key] for run in runs) / 1e3 for key in ("read_ms", "write_ms", "compile_ms", "save_ms")
    )
    beyond = statistics.median(run["compile_ms"] + run["save_ms"] - run["read_ms"] for run in runs) / 1e3
    peak = max(run["peak_bytes"] for run in runs)
    note = (
        f"compile {compile_:.2f} s, save {save:.2f} s; reading the weights' {size / 1e9:.2f} GB, then cached, {read:.2f} s; "
        f"a plain write of as much {write:.2f} s; load average {os.getloadavg()[0]:.1f}"
    )
    return [
        Row(f"{NAME}: ONNX file to saved program, beyond reading", 3.0, beyond, "s", note, {"runs": runs}),
        Row(f"{NAME}: peak memory / weights", 2.0, peak / size, "x", f"{peak / 1e9:.2f} GB / {size / 1e9:.2f} GB"),
    ]


def main() -> None:
    """Measure and print one line per row."""
    with tempfile.TemporaryDirectory() as scratch:
        for row in measure(Path(scratch)):
            verdict = "reached" if row.is_reached else "missed"
            print(f"{row.name}: {row.measured:.2f} {row.unit} (<= {row.target:.2f}, {verdict}); {row.note}")


if __name__ == "__main__":
    main()
