"""Programs for GPUs run without one: generated kernels in the emulator, graphs for a library on the host's."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import onnx
import pytest

from gpu.emulator import Kernel, run_in_any_order
from hipdnn_mlir import Program
from hipdnn_mlir.codegen.core import assemble
from runtime_programs import Array, execute
from stepwise import run_alone, run_stepwise


def compile_for_emulator(
    model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> tuple[Program, list[Any]]:
    """Compile a model; the image of a kernel is its number in the list."""
    kernels: list[Kernel] = []

    def keep(module: Any, _: Any) -> str:
        kernels.append(Kernel(module))
        return str(len(kernels) - 1)

    monkeypatch.setattr(assemble, "compile_module", keep)
    compiler = importlib.import_module("hipdnn_mlir.compiler.compile")  # the package's name `compile` is the function
    return compiler.compile(model, **options), kernels


def run_on_host(executable: dict[str, Any], places: list[Array]) -> None:
    """Run a graph on the host's library."""
    roles = [operand["role"] for operand in executable["operands"]]
    run_alone(places, roles, execute(0, "graph", *range(len(places))), executables=[executable], port="host")


def run(
    program: Program,
    feeds: dict[str, Array],
    modules: list[Any],
    *,
    wave: int = 32,
    library: Callable[[dict[str, Any], list[Array]], None] = run_on_host,
) -> list[Array]:
    """Run a program's steps, graphs by a library, and return its outputs."""

    def run_step(code: dict[str, Any], step: dict[str, Any], places: list[Array]) -> None:
        if step["kind"] == "execute":
            library(code["executables"][step["executable"]], places)
            return
        kernel = code["kernels"][step["kernel"]]["code"]
        if kernel["grid"][0]:
            arguments = [places[a] for a in kernel["arguments"]]
            module, asked_bytes = modules[int(kernel["image"])], kernel.get("shared_bytes", 0)
            run_in_any_order(arguments, kernel["grid"][0], kernel["block"][0], wave, module, asked_bytes)

    return run_stepwise(program, feeds, run_step)
