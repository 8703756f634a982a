"""The ONNX Runtime provider: whole models against the CPU provider, and its own cost per fused node and per session.

``python bench/onnxruntime_ep.py MODEL.onnx`` prints its rows; ``bench/main.py`` makes them part of the table.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

# The operator is the tests', which this directory is not a part of.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import hipdnn_mlir
import untaken
from hipdnn_mlir_runtime import ort_ep
from hipdnn_mlir_runtime.cli.measure import interleave
from hipdnn_mlir_runtime.session.profiling.profile import profile
from row import Row

RUNS, TURNS, SESSIONS = 2000, 15, 15
DIMS = [1, 16]
LIMIT_PER_NODE_US, LIMIT_SESSION_MS = 1.0, 5.0


def chain(count: int, *, with_relu: bool) -> onnx.ModelProto:
    """Return `count` times the operator that stays on the CPU, each after a Relu, which the provider takes, or alone."""
    nodes, last = [], "x"
    for i in range(count):
        if with_relu:
            nodes.append(make_node("Relu", [last], [f"r{i}"]))
            last = f"r{i}"
        nodes.append(untaken.node(last, "y" if i == count - 1 else f"h{i}", f"n{i}"))
        last = f"h{i}"
    value = [make_tensor_value_info(name, TensorProto.FLOAT, DIMS) for name in ("x", "y")]
    return make_model(
        make_graph(nodes, "chain", value[:1], value[1:]),
        opset_imports=[make_opsetid("", 17), untaken.OPSET],
        ir_version=10,
    )


def _options(provider: dict[str, str] | None) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    if provider is not None:
        devices = [
            device
            for device in ort.get_ep_devices()
            if device.ep_name == ort_ep.get_ep_name() and device.device.type == ort.OrtHardwareDeviceType.CPU
        ]
        options.add_provider_for_devices(devices[:1], {"threads": "1", **provider})
    return options


def _runner(model: onnx.ModelProto, provider: dict[str, str] | None) -> Callable[[], float]:
    """Return a function that runs a session RUNS times on bound values and answers microseconds per run."""
    session = ort.InferenceSession(model.SerializeToString(), sess_options=_options(provider))
    binding = session.io_binding()
    x = np.random.default_rng(0).standard_normal(DIMS).astype(np.float32)
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(x))
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(np.zeros_like(x)))

    def run() -> float:
        start = time.perf_counter()
        for _ in range(RUNS):
            session.run_with_iobinding(binding)
        return (time.perf_counter() - start) / RUNS * 1e6

    run()
    return run


def _plan_us() -> float:
    """Return the time of the Relu's own plan, in microseconds."""
    node = make_node("Relu", ["x"], ["y"])
    value = [make_tensor_value_info(name, TensorProto.FLOAT, DIMS) for name in ("x", "y")]
    model = make_model(make_graph([node], "relu", value[:1], value[1:]), opset_imports=[make_opsetid("", 17)])
    session = hipdnn_mlir.compile(model).session(threads=1)
    runs = profile(session, {"x": np.zeros(DIMS, np.float32)}, repeat=RUNS).runs
    return min(step_us for run in runs for step_us in run.steps_us)


def per_fused_node(count: int, cache: Path) -> Row:
    """Time a model with `count` fused nodes and the same model without them on the CPU provider, in turns."""
    provider = {"cache_dir": str(cache), "placement": "maximal"}
    runners = {
        "provider": _runner(chain(count, with_relu=True), provider),
        "without": _runner(chain(count, with_relu=False), None),
        "cpu": _runner(chain(count, with_relu=True), None),
    }
    turns = [{name: run() for name, run in runners.items()} for _ in range(TURNS)]
    median = {name: statistics.median(turn[name] for turn in turns) for name in runners}
    plan_us = _plan_us()
    overhead_us = (median["provider"] - median["without"]) / count - plan_us
    note = (
        f"{median['provider']:.2f} us, {median['without']:.2f} us without the nodes, {median['cpu']:.2f} us with them on the "
        f"CPU provider; plan {plan_us:.2f} us"
    )
    name = f"ONNX Runtime EP: time per fused node beyond its plan, {count} in a model"
    return Row(name, LIMIT_PER_NODE_US, overhead_us, "us", note, {"turns": turns})


def session_from_context(name: str, model: onnx.ModelProto | Path, scratch: Path, cache: Path) -> Row:
    """Time the creation of a session from a compiled model, its program in a file, beyond the runtime's loading of that program."""
    stem = name.replace(" ", "_")
    compiled = scratch / f"{stem}_ctx.onnx"
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    options = _options({"cache_dir": str(cache), "placement": "maximal"})
    ort.ModelCompiler(options, source, embed_compiled_data_into_model=False).compile_to_file(str(compiled))
    programs = sorted(scratch.glob(f"{stem}_ctx_*.hipdnn"))
    created, loaded, read = [], [], []
    for _ in range(SESSIONS):
        settings = _options({"compiler": "none"})
        start = time.perf_counter()
        session = ort.InferenceSession(str(compiled), sess_options=settings)
        created.append((time.perf_counter() - start) * 1e3)
        del session
        start = time.perf_counter()
        kept = [hipdnn_mlir.load(program, threads=1) for program in programs]
        loaded.append((time.perf_counter() - start) * 1e3)
        del kept
        start = time.perf_counter()
        for program in programs:
            program.read_bytes()
        read.append((time.perf_counter() - start) * 1e3)
    total_ms, load_ms, read_ms = (statistics.median(times) for times in (created, loaded, read))
    weight_bytes = sum(program.stat().st_size for program in programs)
    is_heavy = weight_bytes > 1 << 20
    note = (
        f"{total_ms:.2f} ms in all; the runtime loads the {len(programs)} programs, {weight_bytes >> 10} KiB, in {load_ms:.2f} ms, "
        f"packing weights included; merely reading the files takes {read_ms:.2f} ms"
    )
    label = f"ONNX Runtime EP: session from a compiled model, {name}" + (
        ", beyond loading its weights" if is_heavy else ""
    )
    measured = total_ms - load_ms if is_heavy else total_ms
    return Row(label, LIMIT_SESSION_MS, measured, "ms", note, {"created_ms": created, "loaded_ms": loaded})


def whole_model(name: str, model: Path, limit: float, cache: Path, threads: int, repeat: int) -> Row:
    """Time a model's runs on the provider and on the CPU provider, in turns, and the creation of their sessions."""

    def make(provider: dict[str, str] | None) -> tuple[ort.InferenceSession, float]:
        options = _options(provider)
        options.intra_op_num_threads = threads
        start = time.perf_counter()
        session = ort.InferenceSession(str(model), sess_options=options)
        return session, time.perf_counter() - start

    provider = {"cache_dir": str(cache), "threads": str(threads), "strict": "1"}
    _, new_s = make(provider)
    session, known_s = make(provider)
    reference, cpu_s = make(None)
    rng = np.random.default_rng(0)
    feeds = {
        given.name: rng.standard_normal(given.shape).astype(np.float32)
        if "float" in given.type
        else rng.integers(0, 8, given.shape)
        for given in session.get_inputs()
    }
    timings = interleave(
        {"provider": lambda: session.run(None, feeds), "cpu": lambda: reference.run(None, feeds)}, repeat
    )
    ours, theirs = timings["provider"].median_ms, timings["cpu"].median_ms
    sessions = (
        f"session of a new model {new_s:.2f} s, of a known one {known_s:.2f} s, on the CPU provider {cpu_s:.2f} s"
    )
    label = f"ONNX Runtime EP: {name}, time / CPU provider's time"
    return Row(label, limit, ours / theirs, "x", f"{ours:.2f} ms / {theirs:.2f} ms; {sessions}")


def measure(scratch: Path, models: Mapping[str, tuple[Path, float]], threads: int = 2, repeat: int = 20) -> list[Row]:
    """Return all rows; files go to ``scratch``.

    Args:
        scratch: An existing folder.
        models: Name -> file and largest ratio of times that counts as reached; the first is compiled ahead too.
        threads: CPU threads of the whole models' runs, on either side.
        repeat: Timed runs of each.
    """
    ort.register_execution_provider_library("hipdnn", ort_ep.get_library_path())
    cache = scratch / "ep_cache"
    large_model = next(file for file, _ in models.values())
    whole = [whole_model(name, file, limit, cache, threads, repeat) for name, (file, limit) in models.items()]
    return [
        *whole,
        per_fused_node(1, cache),
        per_fused_node(8, cache),
        session_from_context("one node", chain(1, with_relu=True), scratch, cache),
        session_from_context("8 partitions", chain(8, with_relu=True), scratch, cache),
        session_from_context(large_model.stem, large_model, scratch, cache),
    ]


def main() -> None:
    """Measure and print one line per row."""
    with tempfile.TemporaryDirectory() as scratch:
        model = Path(sys.argv[1])
        for row in measure(Path(scratch), {model.stem: (model, 1.10)}):
            verdict = "reached" if row.is_reached else "missed"
            print(f"{row.name}: {row.measured:.2f} {row.unit} (<= {row.target:.2f}, {verdict}); {row.note}")


if __name__ == "__main__":
    main()
