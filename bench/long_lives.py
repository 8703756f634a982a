"""A long life in one process: runs on many threads, more sizes than stay loaded, sessions that come and go, of ONNX Runtime's provider too.

Usage: python bench/long_lives.py [--runs 100000] [--shapes 2000] [--sessions 1000] [--providers 200] [--threads 8]

Prints resident memory, descriptors and threads as it goes. Every result is compared, bit by bit, with the first one of its size. The exit
status is 1 where one differs.
"""

import argparse
import gc
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import models
from hipdnn_mlir import compile as compile_model
from hipdnn_mlir_runtime import load, ort_ep

COLUMNS = 64
STEPS = 10
PROVIDER = ort_ep.get_ep_name()


def dynamic_mlp() -> onnx.ModelProto:
    """Two layers, of any batch."""
    model = models.mlp(2, (COLUMNS, 128, 32))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    return model


def state() -> tuple[float, int, int]:
    """Resident MiB, open descriptors, threads."""
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) / 1024, len(list(Path("/proc/self/fd").iterdir())), int(status["Threads"])


class Results:
    """The first result of each size; others have to equal it."""

    def __init__(self) -> None:
        self._first: dict[int, bytes] = {}
        self.differing = 0

    def add(self, size: int, result: np.ndarray) -> None:
        """Compare a result."""
        if self._first.setdefault(size, result.tobytes()) != result.tobytes():
            self.differing += 1


def on_threads(threads: int, count: int, act: Callable[[int], None]) -> None:
    """Call with 0, 1, ... count - 1, shared out among threads."""
    failures: list[BaseException] = []

    def work(first: int) -> None:
        try:
            for number in range(first, count, threads):
                act(number)
        except BaseException as error:  # noqa: BLE001 - raised below
            failures.append(error)

    started = [threading.Thread(target=work, args=(first,)) for first in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    if failures:
        raise failures[0]


def phase(name: str, count: int, threads: int, act: Callable[[int], None]) -> None:
    """Print the state before, and after each tenth of the calls."""
    for step in range(STEPS + 1):
        if step:
            on_threads(threads, count // STEPS, act)
        memory, files, running = state()
        print(
            f"{name:10} {step * count // STEPS:8} calls: {memory:7.1f} MiB, {files:3} descriptors, {running:3} threads",
            flush=True,
        )


def main() -> int:
    """Live, and return whether a result differed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"runs": 100_000, "shapes": 2_000, "sessions": 1_000, "providers": 200, "threads": 8}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    results = Results()
    proto = dynamic_mlp()
    rng = np.random.default_rng(0)
    arrays = rng.standard_normal((given.shapes, COLUMNS)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.hipdnn"
        compile_model(proto).save(path)
        shared = load(path, threads=1)
        name = shared.inputs[0].name

        def run(_: int) -> None:
            results.add(8, shared.run(None, {name: arrays[:8]})[0])

        def run_a_size(number: int) -> None:
            size = 1 + number * 7919 % given.shapes
            results.add(size, shared.run(None, {name: arrays[:size]})[0])

        def make_a_session(number: int) -> None:
            size = 1 + number % 16
            results.add(size, load(path, threads=1 + number % 2).run(None, {name: arrays[:size]})[0])

        phase("runs", given.runs, given.threads, run)
        phase("shapes", 5 * given.shapes, given.threads, run_a_size)
        phase("sessions", given.sessions, given.threads, make_a_session)
        ort.register_execution_provider_library("hipdnn", ort_ep.get_library_path())
        model = proto.SerializeToString()

        def make_a_provider(number: int) -> None:
            settings = ort.SessionOptions()
            devices = [device for device in ort.get_ep_devices() if device.ep_name == PROVIDER]
            settings.add_provider_for_devices(devices[:1], {"cache_dir": folder, "threads": "1"})
            session = ort.InferenceSession(model, sess_options=settings)
            size = 1 + number % 16
            results.add(-size, session.run(None, {name: arrays[:size]})[0])

        phase("providers", given.providers, given.threads, make_a_provider)
    print(f"{results.differing} results differ from the first of their size")
    return results.differing > 0


if __name__ == "__main__":
    sys.exit(main())
