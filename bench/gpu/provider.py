"""The provider of ONNX Runtime on an NVIDIA GPU: results, copies and waits of a run with everything bound on the device, times.

``python bench/gpu/provider.py pack DIRECTORY`` compiles models ahead into EPContext models, with inputs and ONNX Runtime's outputs in f32
on the CPU beside them: no GPU is needed. ``python bench/gpu/provider.py run DIRECTORY`` checks them on the GPU, where neither the compiler
nor torch-mlir is needed: onnxruntime 1.24 or later, PyTorch with CUDA, a C compiler and what ``bench/build_runtime.sh`` lays out. One line
per check; exits 1 where one fails.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

# The counting library and the models live with the tests, weights of other types with the scripts beside this folder.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from ort_ep.counting_port import lay_out, read_counts

EP_NAME = "HipDNNExecutionProvider"
NVIDIA = 0x10DE
LIMITS = {np.dtype(np.float32): 1e-4, np.dtype(np.float16): 2e-2}
"""Largest relative distance of outputs, as norms."""
TF32_LIMIT = 2e-3
SERIES, RUNS = 15, 20
WAITING, GOING_ON = "0", "1"
"""Values of the run's entry below."""
NO_FLUSH = "disable_synchronize_execution_providers"

Arrays = Mapping[str, np.ndarray]


def pack(folder: Path, target: str) -> None:
    """Compile the models for a target, each in f32 and in f16."""
    import onnx

    import carried
    import models
    from hipdnn_mlir_runtime import ort_ep

    ort.register_execution_provider_library("hipdnn", ort_ep.get_library_path())
    cpu = [found for found in ort.get_ep_devices() if found.ep_name == EP_NAME and found.device.type.name == "CPU"][:1]
    small = {
        "resnet": models.resnet(4, 64, depths=(2, 2), width=32),
        "encoder": models.encoder(2, 1, s=128, d=256, heads=4, ffn=1024),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in small.items():
        rng = np.random.default_rng(0)
        dims = {value.name: [d.dim_value for d in value.type.tensor_type.shape.dim] for value in model.graph.input}
        feeds = {key: rng.standard_normal(sizes, np.float32).astype(np.float16) for key, sizes in dims.items()}
        half = carried.retyped(model, onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)
        for suffix, made, dtype in (("f32", model, np.float32), ("f16", half, np.float16)):
            wide = carried.retyped(made, onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT)
            session = ort.InferenceSession(wide.SerializeToString(), providers=["CPUExecutionProvider"])
            wanted = session.run(None, {key: array.astype(np.float32) for key, array in feeds.items()})
            arrays = {f"in_{key}": array.astype(dtype) for key, array in feeds.items()}
            arrays |= {f"out_{value.name}": array for value, array in zip(session.get_outputs(), wanted, strict=True)}
            np.savez(folder / f"{name}-{suffix}.npz", **arrays)
            settings = ort.SessionOptions()
            settings.add_provider_for_devices(cpu, {"target": target, "strict": "1", "cache_limit_mb": "0"})
            path = folder / f"{name}-{suffix}.onnx"
            ort.ModelCompiler(settings, made.SerializeToString(), embed_compiled_data_into_model=True).compile_to_file(
                str(path)
            )
            print(f"{path}: {path.stat().st_size / 1024:.0f} KiB")
    pack_growing(folder, target, cpu)


GROWING, ROWS, PROMPT = "growing", 64, 4
"""A decoder whose caches grow, rows of its buffers, and how many tokens a text begins with."""


def pack_growing(folder: Path, target: str, cpu: Any) -> None:
    """Compile a small decoder whose caches grow, with tokens and ONNX Runtime's logits behind each of them."""
    from generation.growing import decode, growing_model, pieces_of

    model = growing_model()
    pieces = pieces_of(1, [PROMPT] + [1] * (ROWS - PROMPT))
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    logits = np.concatenate(decode(session, pieces)[0])
    np.savez(folder / f"{GROWING}.npz", tokens=np.concatenate(pieces, axis=1), logits=logits)
    settings = ort.SessionOptions()
    buckets = f"b=1;s=1,{PROMPT};p={ROWS}"
    settings.add_provider_for_devices(cpu, {"target": target, "buckets": buckets, "strict": "1", "cache_limit_mb": "0"})
    compiler = ort.ModelCompiler(settings, model.SerializeToString(), embed_compiled_data_into_model=True)
    compiler.compile_to_file(str(folder / f"{GROWING}.onnx"))


def gpu_session(path: Path, **options: str) -> ort.InferenceSession:
    """A session on the GPU, without a compiler."""
    gpus = [found for found in ort.get_ep_devices() if found.ep_name == EP_NAME and found.device.vendor_id == NVIDIA]
    settings = ort.SessionOptions()
    settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    settings.add_provider_for_devices(gpus[:1], {"compiler": "none", "plan_cache": "none", **options})
    session = ort.InferenceSession(str(path), sess_options=settings)
    session.disable_fallback()
    return session


def distance(got: np.ndarray, want: np.ndarray) -> float:
    """Norm of the difference over the norm of the reference."""
    return float(np.linalg.norm(got.astype(np.float64) - want) / np.linalg.norm(want.astype(np.float64)))


def run_options(entry: str) -> ort.RunOptions:
    """Options of a run at whose end ONNX Runtime waits for the device, or does not."""
    options = ort.RunOptions()
    options.add_run_config_entry(NO_FLUSH, entry)
    return options


class Subject:
    """A compiled model, its inputs on the host and what is wanted of it."""

    def __init__(self, path: Path, provider: Path) -> None:
        self.path, self.provider = path, provider
        arrays = dict(np.load(path.with_suffix(".npz")))
        self.feeds = {key.removeprefix("in_"): array for key, array in arrays.items() if key.startswith("in_")}
        self.wanted = {key.removeprefix("out_"): array for key, array in arrays.items() if key.startswith("out_")}
        self.dtype = next(iter(self.feeds.values())).dtype

    def session(self, **options: str) -> ort.InferenceSession:
        """A session on the GPU, without a compiler."""
        return gpu_session(self.path, **options)

    def check(self, got: Arrays, limit: float | None = None) -> str:
        """The distance of outputs from what is wanted; raises ValueError where it is too large."""
        worst = max(distance(got[name], want) for name, want in self.wanted.items())
        allowed = LIMITS[self.dtype] if limit is None else limit
        if not worst <= allowed:
            raise ValueError(f"error {worst:.1e}, allowed {allowed:.0e}")
        return f"error {worst:.1e}"

    def checks(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """Name and body of each check; a body answers its line or raises."""
        yield "host arrays", self.host_arrays
        yield "ONNX Runtime's values on the device", self.device_values
        yield "outputs that ONNX Runtime allocates", self.allocated_outputs
        for graph in ("0", "1"):
            yield f"PyTorch's tensors on its stream, graph={graph}", lambda graph=graph: self.tensors(graph)
        yield "plans timed, kept and found again", self.tuned
        if self.dtype == np.float32:
            yield "TF32 allowed", self.rounded
        yield "what the CUDA profiler sees", self.profiled

    def host_arrays(self) -> str:
        """Arrays of the host, copied in and out."""
        session = self.session()
        names = [value.name for value in session.get_outputs()]
        return self.check(dict(zip(names, session.run(None, self.feeds), strict=True)))

    def device_values(self) -> str:
        """OrtValues in the device's memory."""
        session = self.session()
        binding = session.io_binding()
        for name, array in self.feeds.items():
            binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array, "cuda", 0))
        results = {
            name: ort.OrtValue.ortvalue_from_numpy(np.full(want.shape, np.nan, self.dtype), "cuda", 0)
            for name, want in self.wanted.items()
        }
        for name, value in results.items():
            binding.bind_ortvalue_output(name, value)
        line = self.count(session, binding)
        return f"{self.check({name: value.numpy() for name, value in results.items()})}  {line}"

    def allocated_outputs(self) -> str:
        """Outputs left to ONNX Runtime, which takes them from the provider's allocator."""
        session = self.session()
        binding = session.io_binding()
        for name, array in self.feeds.items():
            binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array, "cuda", 0))
        for name in self.wanted:
            binding.bind_output(name, "cuda", 0)
        line = self.count(session, binding)
        values = dict(zip(self.wanted, binding.get_outputs(), strict=True))
        return f"{self.check({name: value.numpy() for name, value in values.items()})}  {line}"

    def tuned(self) -> str:
        """Two sessions on one folder of plans: the first times them."""
        with tempfile.TemporaryDirectory() as plans:
            lines, kept = [], []
            for _ in range(2):
                session = self.session(autotune="4", plan_cache=plans)
                names = [value.name for value in session.get_outputs()]
                lines.append(self.check(dict(zip(names, session.run(None, self.feeds), strict=True))))
                kept.append({path.name: path.stat().st_mtime_ns for path in Path(plans).iterdir() if path.is_file()})
        if not kept[0] or set(kept[0]) != set(kept[1]):
            raise ValueError(f"{len(kept[0])} plans kept by the first session, {len(kept[1])} after the second")
        return f"{lines[0]}, {lines[1]}  {len(kept[0])} plans"

    def rounded(self) -> str:
        """Products that may round to TF32, whose error shows whether they do."""
        session = self.session(tf32="1")
        names = [value.name for value in session.get_outputs()]
        return self.check(dict(zip(names, session.run(None, self.feeds), strict=True)), TF32_LIMIT)

    def bound_tensors(self, graph: str) -> tuple[ort.InferenceSession, ort.IOBinding, Any, dict[str, Any]]:
        """A session on a stream of PyTorch's, its tensors bound by address, the stream and the outputs (the inputs stay with them)."""
        import torch

        stream = torch.cuda.Stream()
        session = self.session(user_compute_stream=str(stream.cuda_stream), graph_capture=graph)
        binding = session.io_binding()
        tensors = {}
        for name, array in self.feeds.items():
            tensors[f"in {name}"] = given = torch.from_numpy(array).cuda()
            binding.bind_input(name, "cuda", 0, self.dtype.type, tuple(given.shape), given.data_ptr())
        for name, want in self.wanted.items():
            tensors[name] = result = torch.full(want.shape, torch.nan, dtype=getattr(torch, self.dtype.name)).cuda()
            binding.bind_output(name, "cuda", 0, self.dtype.type, tuple(result.shape), result.data_ptr())
        torch.cuda.synchronize()
        return session, binding, stream, tensors

    def tensors(self, graph: str) -> str:
        """Tensors bound by address: the result, what a run calls, and its time between device events."""
        import torch

        session, binding, stream, tensors = self.bound_tensors(graph)
        line = self.count(session, binding)
        options = run_options(GOING_ON)
        times = []
        for _ in range(SERIES):
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record(stream)
            for _ in range(RUNS):
                session.run_with_iobinding(binding, options)
            stop.record(stream)
            stop.synchronize()
            times.append(1e3 * start.elapsed_time(stop) / RUNS)
        error = self.check({name: tensors[name].cpu().numpy() for name in self.wanted})
        return f"{error}  {line}  {statistics.median(times):.1f} us"

    def count(self, session: ort.InferenceSession, binding: ort.IOBinding) -> str:
        """What a run in steady state calls; raises ValueError where it copies, allocates, or waits more than ONNX Runtime asks for."""
        counts = {}
        for entry in (WAITING, GOING_ON):
            options = run_options(entry)
            for _ in range(3):
                before = read_counts(self.provider)
                session.run_with_iobinding(binding, options)
                counts[entry] = read_counts(self.provider).since(before)
        session.run_with_iobinding(binding, run_options(WAITING))
        line = f"calls {counts[WAITING]} without ONNX Runtime's wait {counts[GOING_ON]}"
        for entry, waits in ((WAITING, 1), (GOING_ON, 0)):
            seen = counts[entry]
            if any(seen.get(kind) for kind in ("to_device", "to_host", "allocations")):
                raise ValueError(f"a run copies or allocates: {line}")
            if seen.get("synchronizations", 0) > waits:
                raise ValueError(f"a run waits: {line}")
        return line

    def profiled(self) -> str:
        """Copies and waits of ten runs as CUPTI records them, cuDNN's included; raises ValueError for a copy to or from the host."""
        import torch
        from torch.profiler import ProfilerActivity, profile

        session, binding, stream, _tensors = self.bound_tensors("0")
        options = run_options(GOING_ON)
        for _ in range(3):
            session.run_with_iobinding(binding, options)
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as record:
            for _ in range(10):
                session.run_with_iobinding(binding, options)
        stream.synchronize()
        events = record.events() or []
        on_device = [event.name for event in events if event.device_type == torch.autograd.DeviceType.CUDA]
        copies = [name for name in on_device if name.startswith("Memcpy")]
        waits = [
            event.name
            for event in events
            if event.device_type != torch.autograd.DeviceType.CUDA and "Synchronize" in event.name
        ]
        line = f"{len(on_device)} activities of the device, of them copies {sorted(set(copies))}; waits {len(waits)} {sorted(set(waits))}"
        if any("HtoD" in name or "DtoH" in name for name in copies):
            raise ValueError(line)
        return line if on_device else "nothing recorded: the profiler has no access to the device here"


class GrowingSubject:
    """A decoder whose caches grow, token after token."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known = dict(np.load(path.with_suffix(".npz")))

    def checks(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """Name and body of each check; a body answers its line or raises."""
        yield "caches handed back as host arrays", lambda: self.text(on_device=False)
        yield "caches handed back on the device", lambda: self.text(on_device=True)
        yield "buffers bound as past and present", lambda: self.text(on_device=True, owns_buffers=True)

    def text(self, *, on_device: bool, owns_buffers: bool = False) -> str:
        """The whole text; its largest error, and milliseconds of a token at the median."""
        session = gpu_session(self.path)
        tokens, place = self.known["tokens"], "cuda" if on_device else "cpu"

        def value(array: np.ndarray) -> ort.OrtValue:
            return ort.OrtValue.ortvalue_from_numpy(array, place, 0)

        caches = {
            port.name: value(np.zeros((1, port.shape[1], ROWS * owns_buffers, port.shape[3]), np.float32))
            for port in session.get_inputs()
            if port.name.startswith("past")
        }
        times, worst, start = [], 0.0, 0
        for number, end in enumerate(range(PROMPT, ROWS + 1)):
            began = time.perf_counter()
            binding = session.io_binding()
            binding.bind_ortvalue_input("input_ids", value(tokens[:, start:end]))
            binding.bind_ortvalue_input("attention_mask", value(np.ones((1, end), np.int64)))
            for name, cache in caches.items():
                binding.bind_ortvalue_input(name, cache)
            for port in session.get_outputs():
                past = port.name.replace("present", "past_key_values")
                if past in caches and owns_buffers:
                    binding.bind_ortvalue_output(port.name, caches[past])
                else:
                    binding.bind_output(port.name, place if past in caches else "cpu", 0)
            session.run_with_iobinding(binding)
            outputs = dict(zip((port.name for port in session.get_outputs()), binding.get_outputs(), strict=True))
            logits = outputs["logits"].numpy()[0, -1]
            times.append(1e3 * (time.perf_counter() - began))
            if not owns_buffers:
                caches = {name: outputs[name.replace("past_key_values", "present")] for name in caches}
            worst = max(worst, distance(logits, self.known["logits"][number]))
            start = end
        if not worst <= LIMITS[np.dtype(np.float32)]:
            raise ValueError(f"error {worst:.1e}")
        return f"error {worst:.1e}, {statistics.median(times):.3f} ms a token"


def run(folder: Path) -> int:
    """Check every compiled model of a folder; answer how many checks failed."""
    import torch

    torch.cuda.init()  # so that its context is the primary one before anything else is
    print(torch.cuda.get_device_name(), "onnxruntime", ort.__version__, "torch", torch.__version__)
    failures = 0
    with tempfile.TemporaryDirectory() as libraries:
        provider = lay_out(Path(libraries))
        ort.register_execution_provider_library("hipdnn", str(provider))
        offers = [
            (found.device.type.name, hex(found.device.vendor_id))
            for found in ort.get_ep_devices()
            if found.ep_name == EP_NAME
        ]
        print("devices on offer", offers)
        if ("GPU", hex(NVIDIA)) not in offers:
            print("FAIL the provider offers no NVIDIA GPU; the log above says why")
            return 1
        for path in sorted(folder.glob("*.onnx")):
            subject = GrowingSubject(path) if path.stem == GROWING else Subject(path, provider)
            for name, check in subject.checks():
                try:
                    print(f"ok   {path.stem:12} {name}: {check()}", flush=True)
                except Exception as error:  # noqa: BLE001 - one failure is a line of the report
                    failures += 1
                    print(f"FAIL {path.stem:12} {name}: {error}", flush=True)
                    traceback.print_exc()
        with suppress(Exception):
            ort.unregister_execution_provider_library("hipdnn")
    print("failed" if failures else "all checks passed", failures or "")
    return failures


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="Check the ONNX Runtime provider on an NVIDIA GPU.")
    parser.add_argument("action", choices=["pack", "run"])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--target", default="sm_90")
    asked = parser.parse_args()
    if asked.action == "pack":
        pack(asked.directory, asked.target)
    elif run(asked.directory):
        sys.exit(1)


if __name__ == "__main__":
    main()
