"""Decoders of onnxruntime-genai's model builder, generated with on the provider and on ONNX Runtime's CPU provider, in turns.

``python bench/decoders.py [--families llama,qwen3] [--precisions fp32,int4] [--tokens 100] [--prompt 5] [--turns 3]`` prints how many
tokens are the same, and at the median the milliseconds that a token takes after the prompt, and the prompt of a second text. The family
llama-1b, which is not among those by default, has 1.1 G parameters. Needs onnxruntime-genai and transformers.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from generation.decoders import FAMILIES, LARGE

TESTS = sys.path[0]
WARM_UP = 10
"""Tokens that do not count: the program is compiled meanwhile."""


def run(module: str, *arguments: str) -> str:
    """What a module of the tests prints; raises RuntimeError with the end of its messages where it fails."""
    command = [sys.executable, "-W", "ignore", "-m", module, *arguments]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": TESTS}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}")
    return done.stdout


def measure(family: str, precision: str, tokens: int, prompt: int, turns: int) -> str:
    """One line about a model."""
    with TemporaryDirectory() as folder:
        try:
            run("generation.decoders", family, precision, "cpu", folder)
            made: dict[str, list[dict[str, Any]]] = {"hipdnn": [], "cpu": []}
            for _ in range(turns):
                for provider, results in made.items():
                    results.append(json.loads(run("generation.generate", folder, provider, str(tokens), str(prompt))))
        except RuntimeError as error:
            return f"failed: {error}"
    ours, theirs = (median(t for one in results for t in one["milliseconds"][WARM_UP:]) for results in made.values())
    first, other = (median(one["prompt"] for one in results) for results in made.values())
    count = sum(a == b for a, b in zip(made["hipdnn"][0]["tokens"], made["cpu"][0]["tokens"], strict=True))
    same = f"{count} of {tokens} tokens the same"
    step = f"{ours:.2f} / {theirs:.2f} ms a token = {ours / theirs:.2f}"
    return f"{same}, {step}, {first:.1f} / {other:.1f} ms a prompt of {prompt} = {first / other:.2f}"


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", default=",".join(FAMILIES), help=f"also {', '.join(LARGE)}")
    parser.add_argument("--precisions", default="fp32")
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--prompt", type=int, default=5)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    for family in given.families.split(","):
        for precision in given.precisions.split(","):
            print(
                f"{family} {precision}: {measure(family, precision, given.tokens, given.prompt, given.turns)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
