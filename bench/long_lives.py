"""A long life in one process: runs on many threads, more sizes than stay loaded, sessions that come and go, of ONNX Runtime's provider too.

Usage: python bench/long_lives.py [--runs 100000] [--shapes 2000] [--sessions 1000] [--providers 200] [--threads 8]

Prints resident memory, descriptors and threads as it goes. Every result is compared, bit by bit, with the first one of its size. The exit
status is 1 where one differs.
"""

import argparse
import gc
import math
import sys
import tempfile
import threading
import zlib
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
BATCHES = 16
STEPS = 10
PROVIDER = ort_ep.get_ep_name()


def dynamic_mlp() -> onnx.ModelProto:
    """Two layers, of any batch."""
    model = models.mlp(2, (COLUMNS, 128, 32))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    return model


def dynamic_image() -> onnx.ModelProto:
    """The mean of each column of a softmax over rows, of any height and width: many sizes, none of them large."""
    builder = models.GraphBuilder("image")
    softmax = builder.op("Softmax", builder.input("x", ["h", "w"]), axis=1)
    return builder.model({builder.op("ReduceMean", softmax, axes=[0]): [1, "w"]})


def state() -> tuple[float, int, int]:
    """Resident MiB, open descriptors, threads."""
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) / 1024, len(list(Path("/proc/self/fd").iterdir())), int(status["Threads"])


class Results:
    """The first result of each of some sizes, as a checksum; others have to equal it. Takes all its memory at once."""

    def __init__(self, sizes: int) -> None:
        self._first = np.full(sizes, -1, np.int64)
        self.differing = 0

    def add(self, size: int, result: np.ndarray) -> None:
        """Compare a result."""
        checksum = zlib.crc32(result.tobytes())
        if self._first[size] < 0:
            self._first[size] = checksum
        self.differing += int(self._first[size] != checksum)


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
    side = math.isqrt(given.shapes - 1) + 1
    of_batches, of_providers, of_images = Results(BATCHES + 1), Results(BATCHES + 1), Results(given.shapes)
    proto = dynamic_mlp()
    rng = np.random.default_rng(0)
    arrays = rng.standard_normal((BATCHES, COLUMNS)).astype(np.float32)
    image = rng.standard_normal((side, side)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.hipdnn"
        compile_model(proto).save(path)
        shared = load(path, threads=1)
        name = shared.inputs[0].name
        compile_model(dynamic_image()).save(path.with_name("image.hipdnn"))
        images = load(path.with_name("image.hipdnn"), threads=1)

        def run(_: int) -> None:
            of_batches.add(8, shared.run(None, {name: arrays[:8]})[0])

        def run_a_size(number: int) -> None:
            shape = number * 7919 % given.shapes
            part = np.ascontiguousarray(image[: 1 + shape // side, : 1 + shape % side])
            of_images.add(shape, images.run(None, {"x": part})[0])

        def make_a_session(number: int) -> None:
            size = 1 + number % BATCHES
            of_batches.add(size, load(path, threads=1 + number % 2).run(None, {name: arrays[:size]})[0])

        phase("runs", given.runs, given.threads, run)
        phase("shapes", 2 * given.shapes, given.threads, run_a_size)
        phase("sessions", given.sessions, given.threads, make_a_session)
        ort.register_execution_provider_library("hipdnn", ort_ep.get_library_path())
        model = proto.SerializeToString()

        def make_a_provider(number: int) -> None:
            settings = ort.SessionOptions()
            devices = [device for device in ort.get_ep_devices() if device.ep_name == PROVIDER]
            settings.add_provider_for_devices(devices[:1], {"cache_dir": folder, "threads": "1"})
            session = ort.InferenceSession(model, sess_options=settings)
            size = 1 + number % BATCHES
            of_providers.add(size, session.run(None, {name: arrays[:size]})[0])

        phase("providers", given.providers, given.threads, make_a_provider)
    differing = of_batches.differing + of_images.differing + of_providers.differing
    print(f"{differing} results differ from the first of their size")
    return differing > 0


if __name__ == "__main__":
    sys.exit(main())
