"""Requests in a running batch against the same ones one after the other, on the CPU.

``python bench/batching.py [--family llama-1b] [--precision int4] [--folder DIR] [--requests 8] [--prompt 32] [--tokens 64] [--turns 3]
[--threads 2]`` prints tokens per second and CPU time of: one text after the other with a cache of its own (`TextGenerator`), the same in
pages (`BatchGenerator` with one running), and all together (`BatchGenerator`). The ways take turns; ratios are medians of these. Prompts
differ in length; each request's tokens are compared. Needs onnxruntime-genai and transformers, unless a folder is given.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import decoders
import hipdnn_mlir
from hipdnn_mlir.generate import BatchGenerator, TextGenerator

PAGE_ROWS = 32
Tokens = list[list[int]]


def timed(way: Callable[[], Tokens]) -> tuple[Tokens, float, float]:
    """What a way gives, and its seconds by the clock and of all CPUs."""
    wall, cpu = time.perf_counter(), time.process_time()
    made = way()
    return made, time.perf_counter() - wall, time.process_time() - cpu


def measure(folder: Path, given: argparse.Namespace) -> None:
    """Print a table."""
    prompts = [[3 + (7 * row + index) % 97 for index in range(given.prompt + row)] for row in range(given.requests)]
    length = given.prompt + given.requests + given.tokens
    pages = given.requests * (length // PAGE_ROWS + 1)
    options = {"max_length": length, "threads": given.threads}
    program = hipdnn_mlir.compile(folder / "model.onnx", page_rows=PAGE_ROWS)
    with (
        TextGenerator(folder, **options) as buffers,
        BatchGenerator(folder, pages=pages, max_running=1, program=program, **options) as single,
        BatchGenerator(folder, pages=pages, max_running=given.requests, program=program, **options) as batch,
    ):

        def alone() -> Tokens:
            stated = {"max_new_tokens": given.tokens, "stop_tokens": ()}
            return [list(buffers.generate(prompt, **stated)[0].tokens) for prompt in prompts]

        def of(model: BatchGenerator) -> Tokens:
            stated = {"max_new_tokens": given.tokens, "stop_tokens": ()}
            requests = [model.submit(prompt, **stated) for prompt in prompts]
            return [list(request.result().tokens) for request in requests]

        ways = {
            "one after the other, a cache each": alone,
            "one after the other, in pages": lambda: of(single),
            f"{given.requests} running, in pages": lambda: of(batch),
        }
        want = {name: timed(way)[0] for name, way in ways.items()}  # loads the sizes
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(given.turns):
            for name, way in ways.items():
                made, *seconds = timed(way)
                assert made == want[name]
                found[name].append((seconds[0], seconds[1]))
    first = next(iter(ways))
    count = given.requests * given.tokens
    for name, seconds in found.items():
        wall, cpu = (median(column) for column in zip(*seconds, strict=True))
        ratios = [
            median(own[which] / other[which] for own, other in zip(seconds, found[first], strict=True))
            for which in (0, 1)
        ]
        same = sum(a == b for a, b in zip(want[name], want[first], strict=True))
        print(
            f"{name:34} {count / wall:8.1f} tokens/s, {cpu:7.2f} s of CPUs; {1 / ratios[0]:.2f} x the tokens/s, {ratios[1]:.2f} x the "
            f"CPU time; {same} of {len(prompts)} texts the same"
        )  # fmt: skip


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", default="llama-1b")
    parser.add_argument("--precision", default="int4")
    parser.add_argument("--folder", type=Path)
    for name, value in (("requests", 8), ("prompt", 32), ("tokens", 64), ("turns", 3), ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    if given.folder is not None:
        measure(given.folder, given)
        return
    with TemporaryDirectory() as folder:
        decoders.run("generation.decoders", given.family, given.precision, "cpu", folder)
        measure(Path(folder), given)


if __name__ == "__main__":
    main()
