"""What profiling costs while it is off: this build against an older one, as ratios of times taken in turns.

``python bench/profile_cost.py FOLDER``: FOLDER has the libraries of the older build as an installation has them, ``_runtime*.so`` and
``lib/``. ONNX Runtime's provider is compared in one process that has both, and a third time the older one from another place, which tells
what a ratio of equals looks like here. Sessions of Python are compared in a process for each, of which one works at a time. All run on one
thread, and its CPU time counts: time in which the machine does something else does not.
"""

from __future__ import annotations

import importlib.util
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

import hipdnn_mlir
from onnxruntime_ep import chain

DIGITS = Path(__file__).resolve().parent.parent / "examples/digits/digits.onnx"
IMAGES = np.random.default_rng(0).random((60, 1, 8, 8), np.float32)
TURNS, TURN_S = 600, 0.01

_WORKER = """
import importlib.util, sys, time
import numpy as np
import hipdnn_mlir, hipdnn_mlir_runtime
spec = importlib.util.spec_from_file_location("hipdnn_mlir_runtime._runtime", sys.argv[1])
sys.modules["hipdnn_mlir_runtime._runtime"] = hipdnn_mlir_runtime._runtime = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
session = hipdnn_mlir.load(sys.argv[2], threads=1)
feeds = {session.inputs[0].name: np.load(sys.argv[3])}
for line in sys.stdin:
    start = time.thread_time()
    for _ in range(int(line)):
        session.run(None, feeds)
    print((time.thread_time() - start) / int(line) * 1e6, flush=True)
"""


def compare(subjects: Mapping[str, Callable[[int], float]]) -> dict[str, list[float]]:
    """Return the times of each subject, microseconds of a call, one for each turn.

    Args:
        subjects: What makes so many calls and answers microseconds of one.
    """
    counts = {name: max(1, int(TURN_S * 1e6 / max(call(5), 0.1))) for name, call in subjects.items()}
    count = min(counts.values())
    order = list(subjects)
    times: dict[str, list[float]] = {name: [] for name in subjects}
    for turn in range(TURNS):
        for name in order if turn % 2 == 0 else reversed(order):
            times[name].append(subjects[name](count))
    return times


def report(what: str, times: Mapping[str, list[float]]) -> None:
    """Print the median of the first subject, and of the others' ratios to it, turn by turn; with the bounds of that median."""
    base, *others = times
    print(f"{what}: {statistics.median(times[base]):.2f} us a run with the older build")
    for name in others:
        ratios = sorted(a / b for a, b in zip(times[name], times[base], strict=True))
        middle, reach = len(ratios) // 2, math.ceil(math.sqrt(len(ratios)))
        sure = f"95 % sure between {ratios[middle - reach]:.4f} and {ratios[middle + reach]:.4f}"
        spread = f"half of the turns between {ratios[len(ratios) // 4]:.3f} and {ratios[3 * len(ratios) // 4]:.3f}"
        print(f"  {name:28} {statistics.median(ratios):.4f} of that, {sure}; {spread}")


def provider_runner(
    library: Path, model: onnx.ModelProto, feeds: Mapping[str, np.ndarray], cache: Path
) -> Callable[[int], float]:
    """Return what runs a model on a provider's library so many times, on bound values, and answers microseconds of one run."""
    device = next(each for each in ort.get_ep_devices() if each.ep_metadata.get("library_path") == str(library))
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.add_provider_for_devices([device], {"threads": "1", "cache_dir": str(cache), "placement": "maximal"})
    session = ort.InferenceSession(model.SerializeToString(), sess_options=options)
    binding = session.io_binding()
    for key, array in feeds.items():
        binding.bind_ortvalue_input(key, ort.OrtValue.ortvalue_from_numpy(array))
    for output in session.get_outputs():
        binding.bind_output(output.name)

    def run(count: int) -> float:
        start = time.thread_time()
        for _ in range(count):
            session.run_with_iobinding(binding)
        return (time.thread_time() - start) / count * 1e6

    return run


def worker(module: Path, program: Path, images: Path) -> Callable[[int], float]:
    """Return the same for a session of Python on a runtime module, in a process of its own."""
    command = [sys.executable, "-P", "-c", _WORKER, str(module), str(program), str(images)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(count: int) -> float:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(f"{count}\n")
        child.stdin.flush()
        return float(child.stdout.readline())

    return run


def main() -> None:
    """Compare and print."""
    older = Path(sys.argv[1]).resolve()
    spec = importlib.util.find_spec("hipdnn_mlir_runtime._runtime")
    assert spec is not None
    module = Path(str(spec.origin))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        shutil.copytree(older, folder / "again")
        libraries = {
            "older": older,
            "older, another copy": folder / "again",
            "this build, profiling off": module.parent,
        }
        models = {
            "provider, 8 nodes of 16 elements": (chain(8, with_relu=True), {"x": np.zeros((1, 16), np.float32)}),
            "provider, digits": (onnx.load(DIGITS), {"image": IMAGES}),
        }
        for name, path in libraries.items():
            ort.register_execution_provider_library(name, str(path / "lib/libhipdnn_ep.so"))
        for what, (model, feeds) in models.items():
            subjects = {
                name: provider_runner(path / "lib/libhipdnn_ep.so", model, feeds, folder / f"cache of {name}")
                for name, path in libraries.items()
            }
            report(what, compare(subjects))
        program, images = folder / "digits.hipdnn", folder / "images.npy"
        hipdnn_mlir.compile(DIGITS).save(program)
        np.save(images, IMAGES)
        modules = {name: next(path.glob("_runtime*.so")) for name, path in libraries.items()}
        report("session, digits", compare({name: worker(path, program, images) for name, path in modules.items()}))


if __name__ == "__main__":
    main()
