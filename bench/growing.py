"""A token of decoders whose caches grow (torch.onnx.export), by the length of the text, beside ONNX Runtime's CPU provider.

``python bench/growing.py [--models llama,llama-8] [--exporter dynamo] [--prompt 32] [--tokens 900] [--threads 1] [--turns 3]`` prints
milliseconds of CPU time, for each token the least of the turns: of the first token behind the prompt, the median of all, and medians of
32 tokens that end at some lengths. `buffers` is the provider on tensors that are bound as past and present. Tokens that are not those of
the CPU provider are marked. Needs transformers.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnxruntime as ort

import hipdnn_mlir

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from ort_ep.sessions import make_session

TESTS = sys.path[0]
LENGTHS = (64, 128, 256, 512, 900)
WINDOW = 32
Step = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Tokens and mask to logits; keeps the caches."""


def handing_back(session: Any, rows: int) -> Step:
    """A loop that hands outputs back as inputs."""
    del rows
    names = [port.name for port in session.get_outputs()]
    ports = [port for port in session.get_inputs() if port.name.startswith("past")]
    caches = {port.name: np.zeros((1, port.shape[1], 0, port.shape[3]), np.float32) for port in ports}

    def step(tokens: np.ndarray, mask: np.ndarray) -> np.ndarray:
        made = dict(zip(names, session.run(None, {"input_ids": tokens, "attention_mask": mask, **caches}), strict=True))
        caches.update({name: made[name.replace("past_key_values", "present")] for name in caches})
        return made["logits"]

    return step


def bound(session: ort.InferenceSession, rows: int) -> Step:
    """A loop on one tensor for each cache."""
    ports = [port for port in session.get_inputs() if port.name.startswith("past")]
    made = {port.name: np.zeros((1, port.shape[1], rows, port.shape[3]), np.float32) for port in ports}
    buffers = {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in made.items()}

    def step(tokens: np.ndarray, mask: np.ndarray) -> np.ndarray:
        binding = session.io_binding()
        binding.bind_cpu_input("input_ids", tokens)
        binding.bind_cpu_input("attention_mask", mask)
        for name, buffer in buffers.items():
            binding.bind_ortvalue_input(name, buffer)
            binding.bind_ortvalue_output(name.replace("past_key_values", "present"), buffer)
        binding.bind_output("logits")
        session.run_with_iobinding(binding)
        return next(value for value in binding.get_outputs() if len(value.shape()) == 3).numpy()

    return step


def generate(step: Step, prompt: int, count: int) -> tuple[list[int], list[float]]:
    """The greedy tokens behind a prompt, and the milliseconds of each but the first, which comes of the prompt."""
    tokens, total = np.arange(3, 3 + prompt)[None], prompt
    found, times = [], []
    for _ in range(count + 1):
        start = time.process_time()
        logits = step(tokens, np.ones((1, total), np.int64))
        times.append(1e3 * (time.process_time() - start))
        found.append(int(logits[0, -1].argmax()))
        tokens, total = np.array([found[-1:]]), total + 1
    return found, times[1:]


def line(name: str, times: Sequence[float], prompt: int) -> str:
    """What is printed of one way."""
    middle = median(times)
    ends = [length - prompt for length in LENGTHS if WINDOW <= length - prompt <= len(times)]
    windows = " ".join(f"{median(times[end - WINDOW : end]):8.3f}" for end in ends)
    slow = sorted(times)[int(0.95 * len(times))]
    return f"{name:>9} {times[0]:8.3f} {middle:8.3f} {times[0] / middle:6.2f} {slow / middle:6.2f} {windows}"


def measure(model: str, given: argparse.Namespace) -> None:
    """Print a table for a model."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        command = [sys.executable, "-W", "ignore", "-m", "generation.of_transformers", model, given.exporter, str(path)]
        subprocess.run(command, env=os.environ | {"PYTHONPATH": TESTS}, capture_output=True, check=True)
        options = ort.SessionOptions()
        options.intra_op_num_threads = given.threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        provider = make_session(path, Path(folder) / "cache", options={"threads": str(given.threads)}, wholly=True)
        ways: dict[str, tuple[Callable[[Any, int], Step], Any]] = {
            "session": (handing_back, hipdnn_mlir.compile(path).session(threads=given.threads)),
            "provider": (handing_back, provider),
            "buffers": (bound, provider),
            "cpu": (handing_back, ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])),
        }
        ways = {name: ways[name] for name in given.ways.split(",")}
        tokens: dict[str, list[int]] = {}
        best: dict[str, list[float]] = {}
        for _ in range(given.turns):
            for name, (loop, session) in ways.items():
                tokens[name], times = generate(
                    loop(session, given.prompt + given.tokens + 1), given.prompt, given.tokens
                )
                best[name] = [*map(min, zip(times, best.get(name, times), strict=True))]
        shown = [length for length in LENGTHS if WINDOW <= length - given.prompt <= given.tokens]
        print(f"{model} ({given.exporter}), prompt of {given.prompt}, {given.tokens} tokens")
        print(
            f"{'':>9} {'first':>8} {'median':>8} {'first/':>6} {'95%/':>6} "
            + " ".join(f"at {length:>5}" for length in shown)
        )
        for name, times in best.items():
            same = "" if tokens[name] == tokens.get("cpu", tokens[name]) else "  other tokens than the CPU provider's"
            print(line(name, times, given.prompt) + same, flush=True)


def main() -> None:
    """Print a table for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="llama,llama-8")
    parser.add_argument("--exporter", default="dynamo")
    parser.add_argument("--prompt", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=900)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--ways", default="session,provider,buffers,cpu")
    given = parser.parse_args()
    for model in given.models.split(","):
        measure(model, given)


if __name__ == "__main__":
    main()
