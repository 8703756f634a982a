"""Decoders of onnxruntime-genai's model builder, generated with on the provider and on ONNX Runtime's CPU provider, in turns.

``python bench/decoders.py [--families llama,qwen3] [--precisions fp32,int4] [--tokens 100] [--prompt 5] [--turns 3] [--beside bf16,f16]``
prints how many tokens are the same, the milliseconds that a token takes after the prompt, at the median and at the fastest tenth, and those
of the prompt and its token in texts that follow the first; and how much longer than the few tokens behind it the first one behind the
prompt takes, at the median of those texts and of the first ones, where its program is loaded.
`--beside` names precisions in which the provider runs the model too, in the same turns. The family llama-1b, which is not among those by
default, has 1.1 G parameters. Needs onnxruntime-genai and transformers.
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


def measure(family: str, precision: str, tokens: int, prompt: int, turns: int, beside: list[str]) -> str:
    """One line for the provider beside the CPU provider, one for each other precision beside the provider's own."""
    others = [f"hipdnn:{name}" for name in beside]
    with TemporaryDirectory() as folder:
        try:
            run("generation.decoders", family, precision, "cpu", folder)
            made: dict[str, list[dict[str, Any]]] = {name: [] for name in ("hipdnn", *others, "cpu")}
            for _ in range(turns):
                for provider, results in made.items():
                    results.append(json.loads(run("generation.generate", folder, provider, str(tokens), str(prompt))))
        except RuntimeError as error:
            return f"failed: {error}"
    pairs = [("hipdnn", "cpu"), *((name, "hipdnn") for name in others)]
    return "\n  ".join(f"{one} / {other}: {compare(made[one], made[other], prompt)}" for one, other in pairs)


def compare(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], prompt: int) -> str:
    """Runs of one provider beside those of another."""
    tokens = [each[0]["tokens"] for each in (ours, theirs)]
    count = sum(a == b for a, b in zip(*tokens, strict=True))
    steps = [sorted(t for one in each for t in one["milliseconds"][WARM_UP:]) for each in (ours, theirs)]
    step = _ratio(*(median(each) for each in steps))
    fast = _ratio(*(each[len(each) // 10] for each in steps))
    first = _ratio(*(median(text[0] for one in each for text in one["again"]) for each in (ours, theirs)))
    later, loading = (
        " / ".join(f"{median(_behind(text) for text in texts):.2f}" for texts in each)
        for each in (
            [[text for one in each for text in one["again"]] for each in (ours, theirs)],
            [[one["milliseconds"] for one in each] for each in (ours, theirs)],
        )
    )
    shown = f"{count} of {len(tokens[0])} tokens the same, {step} ms a token, fastest tenth {fast}, {first} ms a prompt of {prompt}"
    return f"{shown}, the first behind it {later} x those that follow ({loading} in a process's first text)"


def _behind(text: list[float]) -> float:
    """The first token behind the prompt over those that follow it soon: the machine is the same then."""
    return text[1] / median(text[2 : WARM_UP + 2])


def _ratio(one: float, other: float) -> str:
    return f"{one:.2f} / {other:.2f} = {one / other:.2f}"


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", default=",".join(FAMILIES), help=f"also {', '.join(LARGE)}")
    parser.add_argument("--precisions", default="fp32")
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--prompt", type=int, default=5)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--beside", default="", help="precisions of the provider, such as bf16,f16")
    given = parser.parse_args()
    for family in given.families.split(","):
        for precision in given.precisions.split(","):
            beside = [name for name in given.beside.split(",") if name]
            line = measure(family, precision, given.tokens, given.prompt, given.turns, beside)
            print(f"{family} {precision}: {line}", flush=True)


if __name__ == "__main__":
    main()
