"""Texts on an NVIDIA GPU through `hipdnn_mlir.generate`: milliseconds of a token, and of the first ones.

`python bench/gpu/texts.py pack FOLDER OUT [--length 256]` compiles a folder of onnxruntime-genai's builder for sm_90, without its
weights. `run OUT...` is for the GPU: it fills the weights, and prints of some texts, each behind a prompt of another length, the median
token, the first one behind the prompt, and the slowest. The first text of a process comes first.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from decode import read_packed, with_weights, write_packed

from hipdnn_mlir.generate import TextGenerator

PROGRAM = "program.json.gz"
FILES = ("genai_config.json", "model.onnx", "tokenizer.json", "tokenizer_config.json")
PROMPTS = (16, 16, 100, 64, 128, 30, 16, 100, 64, 128)
TOKENS = 100
SETTINGS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "temperature 0.8, top-p 0.9": {"temperature": 0.8, "top_p": 0.9, "seed": 1},
    "temperature 0.8, top-k 50": {"temperature": 0.8, "top_k": 50, "seed": 1},
}


def pack(folder: Path, out: Path, length: int) -> None:
    """Write what generating needs of a folder, and its program."""
    from hipdnn_mlir import compile as compiled
    from hipdnn_mlir.generate.folder import read_folder
    from hipdnn_mlir.generate.model_file import ModelFile

    config = read_folder(folder)
    shapes, buckets = ModelFile(config).sizes("sm_90", 1, length)
    program = compiled(config.model, target="sm_90", shapes=shapes, buckets=buckets, last_valid=config.last_valid)
    out.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copy(folder / name, out / name)
    write_packed(program, out / PROGRAM, {"length": length})


def measure(folder: Path) -> None:
    """Print what texts take."""
    packed = read_packed(folder / PROGRAM)
    program, _ = with_weights(packed)
    start = perf_counter()
    with TextGenerator(folder, program=program, max_length=packed["length"]) as model:
        model.load_buckets()
        print(f"{folder.name}: loaded in {perf_counter() - start:.2f} s", flush=True)
        for name, options in SETTINGS.items():
            for prompt in PROMPTS if not options else PROMPTS[:3]:
                times = _times(model, prompt, options)
                rest = median(times[2:])
                print(
                    f"{folder.name}, {name}, behind {prompt:3d}: prompt {times[0]:7.3f} ms, a token {rest:.3f}, first {times[1]:.3f}"
                    f" ({times[1] / rest:.2f} x), second {times[2]:.3f}, slowest {max(times[2:]):.3f}",
                    flush=True,
                )


def _times(model: TextGenerator, prompt: int, options: dict[str, Any]) -> list[float]:
    """Milliseconds of the prompt with its token, then of each token."""
    found, last = [], perf_counter()
    tokens = [3 + place * 7 % 900 for place in range(prompt)]
    for _ in model.stream(tokens, max_new_tokens=TOKENS, stop_tokens=(), **options):
        now = perf_counter()
        found.append(1e3 * (now - last))
        last = now
    return found


def main() -> None:
    """Pack or run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("folder", type=Path)
    packing.add_argument("out", type=Path)
    packing.add_argument("--length", type=int, default=256)
    running = commands.add_parser("run")
    running.add_argument("folders", nargs="+", type=Path)
    given = parser.parse_args()
    if given.command == "pack":
        pack(given.folder, given.out, given.length)
        return
    for folder in given.folders:
        measure(folder)


if __name__ == "__main__":
    sys.exit(main())
