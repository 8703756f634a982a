"""What it costs to compare plans with the host library when a program is first loaded: the same load with and without, in turns.

``python bench/gpu/first_load.py DIRECTORY [--autotune N] [--rounds N]``; ``bench/carried.py --target sm_90`` wrote the directory.
Every load
is a process of its own without kept plans; the time is that of the session alone, with the device's start and the weights' way there.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

# The scripts beside this folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import carried
import hipdnn_mlir


def load_s(path: Path, autotune: int, *, compare: bool) -> float:
    """Seconds of a first load in this process."""
    program = carried.unpack(carried.load(path))
    start = time.perf_counter()
    hipdnn_mlir.Session(program, autotune=autotune, compare_plans=compare, plan_cache=False)
    return time.perf_counter() - start


def in_turns(path: Path, autotune: int, rounds: int) -> dict[bool, float]:
    """Median seconds with and without comparing, each load in a process of its own."""
    times: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(rounds):
        for compare, measured in times.items():
            option = "--compare-plans" if compare else "--no-compare-plans"
            command = [sys.executable, __file__, str(path), "--autotune", str(autotune), "--once", option]
            measured.append(float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))
    return {compare: statistics.median(measured) for compare, measured in times.items()}


def main() -> None:
    """Print a line for each program."""
    parser = argparse.ArgumentParser(description="The cost of comparing plans at a first load.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--autotune", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--once", action="store_true", help="load one file in this process and print the seconds")
    parser.add_argument("--compare-plans", action=argparse.BooleanOptionalAction, default=True)
    asked = parser.parse_args()
    if asked.once:
        print(load_s(asked.directory, asked.autotune, compare=asked.compare_plans))
        return
    for path in sorted(asked.directory.glob("*.pkl")):
        times = in_turns(path, asked.autotune, asked.rounds)
        share = times[True] / times[False] - 1
        print(
            f"{path.stem:28} autotune {asked.autotune}: {times[False]:.2f} s, comparing {times[True]:.2f} s, {share:+.0%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
