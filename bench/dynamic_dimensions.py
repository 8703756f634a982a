"""Dynamic dimensions: what the first run with new sizes costs beyond a run with known ones, and whether memory stays bounded.

``python bench/dynamic_dimensions.py`` prints its rows; ``bench/main.py`` makes them part of the table.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, numpy_helper
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

# The models live with the tests, which this directory is not a part of.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import models
from hipdnn_mlir_runtime import ort_ep
from row import Row

STEADY_RUNS = 5
WARM_SHAPES = 100
GROWTH_LIMIT_MIB = 32.0
"""What the allocators of the process may hold back in ever different places."""

Feeds = dict[str, np.ndarray]


def _opened(model: onnx.ModelProto, names: Mapping[int, str]) -> onnx.ModelProto:
    """The model with named sizes in the place of the given axes of its first input, and all types inferred anew."""
    for axis, name in names.items():
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    return onnx.shape_inference.infer_shapes(model)


def encoder() -> onnx.ModelProto:
    """BERT's encoder with open batch n and sequence s."""
    model = models.encoder()
    hidden, mask = (value.type.tensor_type.shape.dim for value in model.graph.input)
    hidden[0].dim_param = mask[0].dim_param = "n"
    hidden[1].dim_param = mask[3].dim_param = "s"
    return _opened(model, {})


def small() -> onnx.ModelProto:
    """Conv 3x3 and Relu on images of open batch and size."""
    weight = np.random.default_rng(1).standard_normal((8, 3, 3, 3)).astype(np.float32)
    nodes = [make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), make_node("Relu", ["c"], ["y"])]
    x = make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", "w"])
    y = make_tensor_value_info("y", TensorProto.FLOAT, ["n", 8, "h", "w"])
    graph = make_graph(nodes, "small", [x], [y], [numpy_helper.from_array(weight, "w")])
    return make_model(graph, opset_imports=[make_opsetid("", 17)], ir_version=10)


def _session(model: Path, cache: Path, threads: int, max_specializations: int = 16) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    settings = {"cache_dir": str(cache), "threads": str(threads), "max_specializations": str(max_specializations)}
    ort_ep.add_to_session_options(options, settings)
    return ort.InferenceSession(str(model), sess_options=options)


def _image(name: str, n: int, h: int, w: int) -> Feeds:
    return {name: np.random.default_rng(n).standard_normal((n, 3, h, w)).astype(np.float32)}


def _run_ms(session: ort.InferenceSession, feeds: Feeds) -> float:
    start = time.perf_counter()
    session.run(None, feeds)
    return (time.perf_counter() - start) * 1e3


def instantiation(name: str, limit_ms: float, session: ort.InferenceSession, feeds: list[Feeds], new_ms: float) -> Row:
    """Time the first run with each feeds' sizes beyond a steady run; the first feeds load weights and do not count."""
    for _ in range(STEADY_RUNS):
        session.run(None, feeds[0])
    beyond, firsts, steadies = [], [], []
    for given in feeds[1:]:
        firsts.append(_run_ms(session, given))
        steadies.append(statistics.median(_run_ms(session, given) for _ in range(STEADY_RUNS)))
        beyond.append(firsts[-1] - steadies[-1])
    note = (
        f"median of {len(beyond)}, from {min(beyond):.1f} to {max(beyond):.1f} ms; steady runs {min(steadies):.0f} to "
        f"{max(steadies):.0f} ms; session of the new model {new_ms / 1e3:.2f} s; load average {os.getloadavg()[0]:.1f}"
    )
    details = {"first_ms": firsts, "steady_ms": steadies}
    return Row(f"instantiation, {name}", limit_ms, statistics.median(beyond), "ms", note, details)


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def memory_growth(name: str, session: ort.InferenceSession, feeds: Iterator[Feeds], count: int, warm: int) -> Row:
    """Compare resident memory after `warm` different shapes and after `count` more."""
    for _ in range(warm):
        session.run(None, next(feeds))
    gc.collect()
    before = _resident_mib()
    for _ in range(count):
        session.run(None, next(feeds))
    gc.collect()
    after = _resident_mib()
    note = f"{before:.0f} MiB resident after {warm} shapes, {after:.0f} MiB after {count} more; 16 kept"
    return Row(f"memory growth over {count:,} shapes, {name}", GROWTH_LIMIT_MIB, after - before, "MiB", note)


def _random_images(name: str, images: int, heights: range, widths: range) -> Iterator[Feeds]:
    """Images of all different sizes in random order, the largest first: the arena of ONNX Runtime has then seen what it has to hold."""
    yield _image(name, images, heights[-1], widths[-1])
    sizes = [(n, h, w) for n in range(1, images + 1) for h in heights for w in widths][:-1]
    for index in np.random.default_rng(0).permutation(len(sizes)):
        yield _image(name, *sizes[index])


def measure(scratch: Path, threads: int = 2, report: Callable[[str], None] = print) -> list[Row]:
    """Return all rows; files go to ``scratch``."""
    cache = scratch / "open_cache"
    build: dict[str, Callable[[], onnx.ModelProto]] = {
        "resnet": lambda: _opened(models.resnet50(), {0: "n", 2: "h"}),
        "resnet batch": lambda: _opened(models.resnet50(), {0: "n"}),
        "encoder": encoder,
        "small": small,
    }
    rows: list[Row] = []

    def start(name: str) -> tuple[ort.InferenceSession, str, float]:
        report(f"dynamic dimensions: {name}")
        file = scratch / f"open {name}.onnx"
        if not file.exists():
            onnx.save(build[name](), file)
        begin = time.perf_counter()
        session = _session(file, cache, threads)
        return session, session.get_inputs()[0].name, (time.perf_counter() - begin) * 1e3

    start("small")  # the compiler's process starts
    session, x, new_ms = start("resnet batch")
    batches = [_image(x, n, 224, 224) for n in (1, 2, 3, 4, 5, 6)]
    rows.append(instantiation("ResNet-50, new batch", 20.0, session, batches, new_ms))
    session, _, new_ms = start("encoder")
    rng = np.random.default_rng(0)
    sequences = [
        {"hidden": rng.standard_normal((n, s, 768)).astype(np.float32), "mask": np.zeros((n, 1, 1, s), np.float32)}
        for n, s in ((1, 128), (2, 64), (1, 100), (3, 33), (2, 128), (4, 17))
    ]
    rows.append(instantiation("BERT-12, new batch and sequence", 50.0, session, sequences, new_ms))
    session, x, _ = start("small")
    rows.append(
        memory_growth("Conv and Relu", session, _random_images(x, 8, range(3, 65), range(3, 65)), 1000, WARM_SHAPES)
    )
    session, x, _ = start("resnet")
    rows.append(memory_growth("ResNet-50", session, _random_images(x, 2, range(32, 129), range(224, 225)), 100, 30))
    return rows


def main() -> None:
    """Measure and print one line per row."""
    with tempfile.TemporaryDirectory() as scratch:
        for row in measure(Path(scratch), report=lambda what: print(what, file=sys.stderr)):
            verdict = "reached" if row.is_reached else "missed"
            print(f"{row.name}: {row.measured:.2f} {row.unit} (<= {row.target:.2f}, {verdict}); {row.note}")


if __name__ == "__main__":
    main()
