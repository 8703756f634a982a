"""Where a program's results go wrong: every intermediate of carried programs as an output of its own, compared run by run and plan by plan.

``python bench/gpu/steps.py DIRECTORY --models ... [--autotune N]``; ``bench/carried.py`` wrote the directory.
The reference is the same program
with the first plan that builds for each graph. Memory is not shared between intermediates here, so a program that is right here and wrong
in ``run.py`` has a step that writes where it should not, or one that does not wait for the step before.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

# The scripts beside this folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from run import LIMITS, inputs_of, surroundings

import carried
import hipdnn_mlir
from hipdnn_mlir_runtime.dtypes import BY_NAME
from hipdnn_mlir_runtime.session.options import SessionOptions

Tensors = list[torch.Tensor]


def opened(text: str) -> tuple[str, dict[str, str]]:
    """The program with its temporaries as outputs, and the step that writes each: name of the output -> name of the step."""
    program: dict[str, Any] = json.loads(text)
    written: dict[int, str] = {}
    for step in program["steps"]:
        written[step["operands"][-1]["buffer"]] = step["name"]
    (kind,) = {port["dtype"] for port in program["outputs"]}
    size = BY_NAME[kind].numpy.itemsize
    names = {}
    for index, buffer in enumerate(program["buffers"]):
        if buffer["kind"] == "temp":
            buffer["kind"] = "output"
            name = f"b{index}"
            names[name] = written.get(index, "?")
            program["outputs"].append({
                "name": name, "dtype": kind, "dims": [buffer["bytes"] // size], "buffer": index,
            })  # fmt: skip
    return json.dumps(program), names


class Opened:
    """A session on such a program."""

    def __init__(self, program: carried.InMemory, plans: SessionOptions, seed: int) -> None:
        self.session = hipdnn_mlir.Session(program, port="cuda", **plans)
        feeds = inputs_of(self.session, seed)
        self.feeds = {name: torch.from_numpy(array).cuda() for name, array in feeds.items()}

    def run(self) -> Tensors:
        """What the program and each of its steps wrote, flat."""
        out = {
            port.name: torch.zeros(tuple(port.shape), dtype=getattr(torch, BY_NAME[port.dtype].numpy.name)).cuda()
            for port in self.session.outputs
        }
        torch.cuda.synchronize()
        self.session.enqueue(self.feeds, out, stream=torch.cuda.current_stream().cuda_stream)
        torch.cuda.synchronize()
        return [tensor.flatten() for tensor in out.values()]


def distances(got: Tensors, wanted: Tensors) -> list[float]:
    """Of each tensor, as norms."""
    return [float((a.double() - b.double()).norm() / b.double().norm()) for a, b in zip(got, wanted, strict=True)]


def report(path: Path, plans: SessionOptions, runs: int) -> None:
    """Print the steps that are off the reference, or that differ from run to run."""
    program = carried.unpack(carried.load(path))
    text, steps = opened(program.text)
    program = carried.InMemory(text, program.tensors, program.model)
    wanted = Opened(program, SessionOptions(plan_cache=False), 100).run()
    for title in ("timed", "kept"):
        subject = Opened(program, plans, 100)
        ran = {step["name"]: step.get("description", "") for step in subject.session.steps}
        first, varying = subject.run(), set()
        for _ in range(runs):
            varying |= {i for i, (a, b) in enumerate(zip(subject.run(), first, strict=True)) if not a.equal(b)}
        off = distances(first, wanted)
        limit = LIMITS[subject.session.outputs[0].dtype]
        names = [port.name for port in subject.session.outputs]
        print(
            f"{path.stem}, {title}: greatest distance {max(off):.1e}, of the output {off[0]:.1e}; {len(varying)} vary"
        )
        for index, name in enumerate(names):
            if off[index] > limit or index in varying:
                step = steps.get(name, name)
                how = "varies" if index in varying else ""
                print(f"  {off[index]:.1e} {how:8} {step:40} {ran.get(step, '')}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Report on each program."""
    parser = argparse.ArgumentParser(description="Compare every step of carried programs on a GPU.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--models", nargs="+", required=True, help="stems of files")
    parser.add_argument("--autotune", type=int, default=8, help="plans to time for each graph")
    parser.add_argument("--runs", type=int, default=10)
    asked = parser.parse_args(arguments)
    print(surroundings())
    with tempfile.TemporaryDirectory() as folder:
        for stem in asked.models:
            report(
                asked.directory / f"{stem}.pkl", SessionOptions(autotune=asked.autotune, plan_cache=folder), asked.runs
            )


if __name__ == "__main__":
    main()
