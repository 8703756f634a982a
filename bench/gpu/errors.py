"""Failures of a GPU, provoked: each has to be an error that says what, where and what to do next, and the process goes on.

``python bench/gpu/errors.py DIRECTORY``; ``bench/carried.py DIRECTORY --target sm_90 --models mlp-f16 resnet50-f16 --precisions model``
wrote the directory. Every file of it is a subject. One line per check, with the message; exits 1 where one fails.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

# The scripts beside this folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import carried
import hipdnn_mlir
from hipdnn_mlir_runtime import _runtime
from hipdnn_mlir_runtime.dtypes import BY_NAME
from hipdnn_mlir_runtime.errors import DeviceError, HipdnnMlirError, WrongTargetError

MEBIBYTE = 1 << 20
OPEN_PORT = """
import hipdnn_mlir
from hipdnn_mlir_runtime import _runtime
try:
    _runtime.open_device({"port": "cuda"})
except hipdnn_mlir.HipdnnMlirError as error:
    print(error)
"""
ARCHITECTURES = ("gfx942", "sm_120")
"""Of other GPUs than those that this is run on."""


class Subject:
    """A program, an input and its output, computed before anything fails."""

    def __init__(self, path: Path) -> None:
        self.name = path.stem
        self.program = carried.unpack(carried.load(path))
        session = self.session()
        rng = np.random.default_rng(0)
        self.feeds = {
            port.name: rng.standard_normal(port.shape, np.float32).astype(BY_NAME[port.dtype].numpy)
            for port in session.inputs
        }
        self.wanted = session.run(None, self.feeds)
        if not all(np.isfinite(array.astype(np.float32)).all() for array in self.wanted):
            raise ValueError(f"{self.name}: outputs that are not finite")

    def session(self, **changes: Any) -> hipdnn_mlir.Session:
        """A session on the GPU of the program with fields changed."""
        text = json.dumps({**json.loads(self.program.text), **changes}) if changes else self.program.text
        return hipdnn_mlir.Session(replace(self.program, text=text), port="cuda", plan_cache=False)

    def compare(self, session: hipdnn_mlir.Session) -> None:
        """Run; raises ValueError for another output than at first."""
        for got, want in zip(session.run(None, self.feeds), self.wanted, strict=True):
            difference = np.linalg.norm(got.astype(np.float64) - want) / np.linalg.norm(want.astype(np.float64))
            # Not equal bits: another plan may be the first that builds.
            if not difference < 1e-2:
                raise ValueError(f"{self.name}: the next run differs by {difference:.1e}")

    def still_works(self) -> None:
        """Load and run the program."""
        self.compare(self.session())

    def checks(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """Name and body of each check; a body answers the message or raises."""
        yield "no memory to load", self.no_memory_to_load
        yield "no memory to run", self.no_memory_to_run
        yield "a launch of too many threads", self.failing_launch
        for target in ARCHITECTURES:
            yield f"a program for {target}", lambda target=target: self.wrong_architecture(target)

    def no_memory_to_load(self) -> str:
        """A program is loaded while the device's memory is full."""
        with Filled():
            return failure(DeviceError, self.session, "hipMalloc(", "out of memory", "free memory")

    def no_memory_to_run(self) -> str:
        """The memory is full between loading and the first run, which needs an arena; the same session runs when there is memory again."""
        session = self.session()
        with Filled():
            # The arena may fit into what is left; then the run takes a handle of cuDNN, which allocates memory of its own.
            try:
                self.compare(session)
                message = "what was left was enough"
            except DeviceError as error:
                message = str(error)
                if not ("hipMalloc(" in message and "out of memory" in message) and "cudnnCreate" not in message:
                    raise
        self.compare(session)
        return message

    def failing_launch(self) -> str:
        """Each kernel of the program asks for 4096 threads per block, more than any GPU has."""
        kernels = json.loads(self.program.text)["kernels"]
        if not any("code" in kernel for kernel in kernels):
            return "the program has no kernel"
        for kernel in kernels:
            if "code" in kernel:
                kernel["code"]["block"] = [1024, 4, 1]
        session = self.session(kernels=kernels)
        words = ("hipModuleLaunchKernel(step ", "1024x4x1 threads", "compile the model again")
        message = failure(DeviceError, lambda: session.run(None, self.feeds), *words)
        if failure(DeviceError, lambda: session.run(None, self.feeds), *words) != message:
            raise ValueError("the second run fails otherwise")
        return message

    def wrong_architecture(self, target: str) -> str:
        """The program says that it is another GPU's."""
        return failure(
            WrongTargetError, lambda: self.session(target=target), f"compiled for '{target}'", "--target sm_"
        )


class Filled:
    """The device's memory, all of it taken for as long as this is entered."""

    def __enter__(self) -> None:
        """Take blocks of half the size, and again, until none of the smallest is left."""
        self._blocks: list[torch.Tensor] = []
        size = torch.cuda.mem_get_info()[0]
        while size >= MEBIBYTE // 4:
            try:
                self._blocks.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
            except torch.cuda.OutOfMemoryError:
                size //= 2

    def __exit__(self, *_: object) -> None:
        """Give it back to the driver."""
        self._blocks.clear()
        torch.cuda.empty_cache()


def failure(kind: type[HipdnnMlirError], call: Callable[[], object], *words: str) -> str:
    """The message of the error that a call has to raise; raises ValueError where it does not, or where words are missing from it."""
    try:
        call()
    except kind as error:
        message = str(error)
    else:
        raise ValueError(f"no {kind.__name__}")
    if missing := [word for word in words if word not in message]:
        raise ValueError(f"the message lacks {missing}: {message}")
    return message


def missing_library() -> str:
    """The port's own library is not where it is looked for."""
    with tempfile.TemporaryDirectory() as empty:
        return failure(
            DeviceError,
            lambda: _runtime.open_device({"port": "cuda"}, directory=empty),
            "port 'cuda': cannot open libhipdnn_cuda.so",
            "reinstall",
        )


def broken_library(name: str, advice: str) -> str:
    """NVIDIA's library of that name is not one, in a process of its own, which has no PyTorch that brings another."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, name).write_bytes(b"not a library")
        paths = [folder, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        environment = os.environ | {"LD_LIBRARY_PATH": os.pathsep.join(paths)}
        done = subprocess.run(
            [sys.executable, "-P", "-c", OPEN_PORT], env=environment, capture_output=True, text=True, check=False
        )
    message = done.stdout.strip()
    if done.returncode != 0 or f"cannot open {name}" not in message or advice not in message:
        raise ValueError(f"exit status {done.returncode}: {message} {done.stderr[-2000:]}")
    return message


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description="Provoke failures of a GPU.")
    parser.add_argument("directory", type=Path)
    asked = parser.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    subjects = [Subject(path) for path in sorted(asked.directory.glob("*.pkl"))]
    libraries = [
        ("no libhipdnn_cuda.so", missing_library),
        ("no cuDNN", lambda: broken_library("libcudnn_graph.so.9", "install cuDNN 9")),
        ("no driver", lambda: broken_library("libcuda.so.1", "install NVIDIA's driver")),
    ]
    checks = [("libraries", name, check, subjects[:1]) for name, check in libraries]
    checks += [(subject.name, name, check, [subject]) for subject in subjects for name, check in subject.checks()]
    failures = 0
    for where, name, check, after in checks:
        try:
            message = check()
            for subject in after:
                subject.still_works()
            print(f"ok   {where:20} {name}: {message}", flush=True)
        except Exception as error:  # noqa: BLE001 - one failure is a line of the report
            failures += 1
            print(f"FAIL {where:20} {name}: {type(error).__name__}: {error}", flush=True)
    print(f"{failures} checks failed" if failures else "all checks passed")
    sys.exit(1 if failures or not subjects else 0)


if __name__ == "__main__":
    main()
