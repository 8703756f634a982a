"""The main job: compile two models, show where their nodes run, run them, and compare with ONNX Runtime.

First a digit classifier with its held-out images, then the onnx package's ResNet-50.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
from sklearn.datasets import load_digits

# What examples share lies beside their directories.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import hipdnn_mlir
import light
from hipdnn_mlir_runtime.cli.measure import interleave
from hipdnn_mlir_runtime.cli.tables import emphasized, table
from hipdnn_mlir_runtime.session.profiling.profile import profile

HELD_OUT = 360
MODEL = Path(__file__).with_name("digits.onnx")
TOLERANCE = 1e-4
RUNS = 20

Images = npt.NDArray[np.float32]
Run = Callable[[Images], Images]


def heading(text: str) -> None:
    """Print a line that starts a part."""
    print(emphasized(f"== {text}"))


def compile_and_load(model: Path | onnx.ModelProto) -> hipdnn_mlir.Session:
    """Compile a model, save and load the program, and show its placement with the times of its slowest graphs."""
    start = time.perf_counter()
    program = hipdnn_mlir.compile(model)
    compiled = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "model.hipdnn")
        program.save(path)
        saved = time.perf_counter()
        session = hipdnn_mlir.load(path)
        ready = time.perf_counter()
    placement = hipdnn_mlir.explain(model)
    nodes = sum(len(graph.nodes) for graph in placement.graphs)
    print(
        f"{nodes} operations in {len(placement.graphs)} graphs, {len(placement.rejects)} left out; "
        f"compiled in {compiled - start:.2f} s, loaded in {1e3 * (ready - saved):.0f} ms"
    )
    return session


def show_steps(session: hipdnn_mlir.Session, images: Images, most: int) -> None:
    """Show the steps of a program that take longest."""
    found = profile(session, {session.inputs[0].name: images}, repeat=20)
    rows, total_us = found.steps, found.steps_sum_us
    title = f"{len(rows)} steps, {total_us / 1e3:.2f} ms"
    if len(rows) > most:
        title += f"; the {most} longest, in the order of a run"
    slowest = sorted(rows, key=lambda row: -row.time.median_us)[:most]
    cells = [
        (row.name, row.engine, f"{row.time.median_us:.0f}", f"{row.share:.0%}", row.operations or "copy")
        for row in rows
        if row in slowest
    ]
    print(table(title, ("step", "engine", "us", "share", "operations"), cells, ["us", "share"]))
    by_engine = Counter(row.engine or "copy" for row in rows)
    print("placement: " + ", ".join(f"{count} steps on {engine}" for engine, count in by_engine.items()))


def compare(ours: Run, theirs: Run, batches: list[Images]) -> bool:
    """Show how far outputs lie apart and how long a run takes; returns whether they agree."""
    difference = max(float(np.abs(ours(batch) - theirs(batch)).max()) for batch in batches)
    equal = difference <= TOLERANCE
    verdict = emphasized("equal", "32") if equal else emphasized(f"further apart than {TOLERANCE:g}", "31")
    print(f"largest difference from ONNX Runtime {difference:.2g}: {verdict}")
    timings = interleave({"ours": lambda: ours(batches[0]), "theirs": lambda: theirs(batches[0])}, RUNS)
    ours_ms, theirs_ms = timings["ours"].median_ms, timings["theirs"].median_ms
    print(f"time per run: {ours_ms:.2f} ms, ONNX Runtime {theirs_ms:.2f} ms\n")
    return equal


def runners(session: hipdnn_mlir.Session, model: bytes | Path) -> tuple[Run, Run]:
    """Return functions from images to scores: ours, and ONNX Runtime's."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    reference = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    name = session.inputs[0].name
    return (lambda images: session.run(None, {name: images})[0]), (
        lambda images: reference.run(None, {name: images})[0]
    )


def digits() -> bool:
    """Classify the held-out digits; returns whether all outputs equal ONNX Runtime's."""
    heading("handwritten digits")
    data = load_digits()
    images = (data.images[-HELD_OUT:] / 16).astype(np.float32)[:, None]
    labels = data.target[-HELD_OUT:]
    session = compile_and_load(MODEL)
    batch = session.inputs[0].shape[0]
    ours, theirs = runners(session, MODEL)
    show_steps(session, images[:batch], 20)

    batches = [images[start : start + batch] for start in range(0, HELD_OUT, batch)]
    scores = np.concatenate([ours(part) for part in batches])
    predictions = scores.argmax(axis=1)
    for row in range(2):
        part = slice(20 * row, 20 * (row + 1))
        pairs = zip(predictions[part], labels[part], strict=True)
        marks = [emphasized(str(p), "32") if p == t else emphasized(f"{p}({t})", "31") for p, t in pairs]
        print("predicted: " + " ".join(marks))
    right = int((predictions == labels).sum())
    print(f"held-out accuracy {right / HELD_OUT:.2%} ({right} of {HELD_OUT})")
    return compare(ours, theirs, batches)


def resnet50() -> bool:
    """Run the onnx package's ResNet-50 as shipped, and with random weights; returns whether both equal ONNX Runtime."""
    path = light.DIRECTORY / "light_resnet50.onnx"
    image = np.random.default_rng(0).random((1, 3, 224, 224), np.float32)
    heading(path.name)
    session = compile_and_load(path)
    ours, theirs = runners(session, path)
    show_steps(session, image, 8)
    as_shipped = compare(ours, theirs, [image])

    heading("the same with random weights (those shipped are constants: every class scores alike)")
    model = light.with_random_weights(onnx.load(path))
    ours, theirs = runners(compile_and_load(model), model.SerializeToString())
    return compare(ours, theirs, [image]) and as_shipped


def main() -> None:
    """Run both parts; the exit code says whether every output equals ONNX Runtime's."""
    results = [digits(), resnet50()]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
