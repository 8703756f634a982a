"""Decoders whose caches grow in the model (torch.onnx.export) on an NVIDIA GPU, token after token, against ONNX Runtime on the CPU.

``python bench/gpu/growing.py pack FOLDER [NAME...] [--exporter dynamo] [--rows 2048] [--precision model]`` exports models of
tests/generation/of_transformers.py, compiles them for sm_90, and writes greedy tokens and logits of ONNX Runtime's CPU provider beside
them. Of models with more weights than `MOST` these are left out: they are made from a seed where the model runs, and nothing is compared.
``python bench/gpu/growing.py run FOLDER`` runs them, with caches in PyTorch's memory and captured graphs: a line for each model; exits 1
where logits are further than `LIMIT` from those wanted.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from models import filled, packed_program

TESTS = str(Path(__file__).resolve().parents[2] / "tests")
WINDOWS, PROMPT, TOKENS = [1, 64], 40, 200
MOST = 16 << 20
"""Bytes of weights that travel."""
LIMIT = {"model": 2e-3, "f16": 2e-2}
"""Largest relative distance of logits, as norms."""


def pack(folder: Path, name: str, exporter: str, rows: int, precision: str) -> None:
    """Export, compile, and compute what is wanted."""
    import hipdnn_mlir

    with TemporaryDirectory() as made:
        path = Path(made) / "model.onnx"
        command = [sys.executable, "-W", "ignore", "-m", "generation.of_transformers", name, exporter, str(path)]
        subprocess.run(command, env=os.environ | {"PYTHONPATH": TESTS}, capture_output=True, check=True)
        sizes: dict[str, Any] = {"shapes": {"batch": 1}, "buckets": {"new": WINDOWS, "past": [rows]}}
        program = hipdnn_mlir.compile(path, target="sm_90", precision=precision, **sizes)
        is_whole = sum(array.nbytes for array in program.weights.values()) <= MOST
        if is_whole:
            tokens, logits = wanted(path)
            program.save(folder / f"{name}.hipdnn")
            np.savez(folder / f"{name}.npz", tokens=tokens, logits=logits, precision=precision)
        else:
            (folder / f"{name}.json.gz").write_bytes(gzip.compress(json.dumps(packed_program(program)).encode()))
    print(f"{name}: {'with weights' if is_whole else 'without weights'}")


def wanted(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """A prompt with the greedy tokens behind it, and the logits of each of these."""
    import onnxruntime as ort

    sys.path.insert(0, TESTS)
    from generation.growing import decode

    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    tokens = list(np.random.default_rng(0).integers(3, 300, PROMPT))
    logits = []
    for _ in range(TOKENS):
        ((last,), _) = decode(session, [np.array([tokens])])
        logits.append(last[0])
        tokens.append(last[0].argmax())
    return np.array(tokens), np.array(logits)


class Text:
    """A text in caches on the GPU.

    Args:
        session: the program.
    """

    def __init__(self, session: Any) -> None:
        import torch

        self._session = session
        self._stream = torch.cuda.Stream()
        ports = {port.name: port for port in (*session.program_inputs, *session.outputs)}
        self._rows = session.buckets["past"][0]
        self._vocabulary = ports["logits"].shape[2]
        self._position = "position_ids" in ports
        dtypes = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
        self._dtypes = {name: dtypes.get(port.dtype, torch.int64) for name, port in ports.items()}
        self._caches = {
            name: torch.zeros((1, port.shape[1], self._rows, port.shape[3]), dtype=self._dtypes[name], device="cuda")
            for name, port in ports.items()
            if name.startswith("past_key")
        }
        self._mask = torch.zeros((1, self._rows), dtype=torch.int64, device="cuda")
        self._length = torch.zeros(1, dtype=torch.int64, device="cuda")
        self._runs = {size: self._bound(size) for size in WINDOWS}

    def _bound(self, size: int) -> tuple[Any, Any, Any, Any]:
        """Tokens, positions and logits of so many rows, and a function that runs on them."""
        import torch

        ids, places = (torch.zeros((1, size), dtype=torch.int64, device="cuda") for _ in range(2))
        logits = torch.zeros((1, size, self._vocabulary), dtype=self._dtypes["logits"], device="cuda")
        feeds = {"input_ids": ids, "attention_mask": self._mask, **self._caches, "past_length": self._length}
        if self._position:
            feeds["position_ids"] = places
        out = {name.replace("past_key_values", "present"): cache for name, cache in self._caches.items()}
        torch.cuda.synchronize()
        run = self._session.bind(feeds, {"logits": logits, **out}, stream=self._stream)
        return ids, places, logits, run

    def logits(self, tokens: np.ndarray, start: int) -> Any:
        """Logits behind tokens of which the first are in row `start`."""
        import torch

        size = next(size for size in WINDOWS if size >= len(tokens))
        ids, places, logits, run = self._runs[size]
        with torch.cuda.stream(self._stream):
            ids[0, : len(tokens)] = torch.from_numpy(np.asarray(tokens))
            places[0] = torch.arange(start, start + size)
            self._mask[0, : start + len(tokens)] = 1
            self._length[0] = start
            run()
            self._stream.synchronize()
            return logits[0, len(tokens) - 1].float().cpu().numpy()

    def step_ms(self) -> float:
        """Milliseconds of a step by itself, as the GPU sees it: replays one behind the other."""
        import torch

        found = []
        run = self._runs[1][3]
        for _ in range(15):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record(self._stream)
            for _ in range(20):
                run()
            end.record(self._stream)
            end.synchronize()
            found.append(start.elapsed_time(end) / 20)
        return median(found)


def measure(path: Path) -> bool:
    """Print what a model is worth; whether its logits are those wanted."""
    from hipdnn_mlir_runtime.session.session import Session

    is_whole = path.suffix == ".hipdnn"
    source: Any = path if is_whole else filled(json.loads(gzip.decompress(path.read_bytes())))
    session = Session(source, port="cuda", graph_capture=True)
    text = Text(session)
    known = dict(np.load(path.with_suffix(".npz"))) if is_whole else {"tokens": np.arange(3, 3 + PROMPT + TOKENS)}
    tokens, worst, times = known["tokens"], 0.0, []
    ends = [PROMPT, *range(PROMPT + 1, PROMPT + TOKENS)]
    for number, end in enumerate(ends):
        start = time.perf_counter()
        got = text.logits(tokens[:end] if number == 0 else tokens[end - 1 : end], 0 if number == 0 else end - 1)
        times.append(1e3 * (time.perf_counter() - start))
        if is_whole:
            want = known["logits"][number]
            worst = max(worst, float(np.linalg.norm(got - want) / np.linalg.norm(want)))
    limit = LIMIT[str(known["precision"])] if is_whole else np.inf
    compared = f"logits differ by {worst:.1e} at most (limit {limit:.0e})" if is_whole else "weights from a seed"
    print(
        f"{path.name}: {compared}; first token behind the prompt {times[1]:.3f} ms, median {median(times[1:]):.3f}, "
        f"a step by itself {text.step_ms():.4f} ms, {session.stats.specializations} programs loaded",
        flush=True,
    )
    return worst <= limit


def main() -> int:
    """Pack or run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("folder", type=Path)
    packing.add_argument("names", nargs="*", default=["llama-placed", "gpt2", "llama-8"])
    packing.add_argument("--exporter", default="dynamo")
    packing.add_argument("--rows", type=int, default=2048)
    packing.add_argument("--precision", choices=LIMIT, default="model")
    running = commands.add_parser("run")
    running.add_argument("folder", type=Path)
    given = parser.parse_args()
    if given.command == "pack":
        given.folder.mkdir(parents=True, exist_ok=True)
        for name in given.names:
            pack(given.folder, name, given.exporter, given.rows, given.precision)
        return 0
    paths = [path for path in sorted(given.folder.iterdir()) if path.suffix in (".hipdnn", ".gz")]
    found = [measure(path) for path in paths]
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
