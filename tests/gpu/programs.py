"""Programs for GPUs run without one: generated kernels in the emulator, graphs for a library on the host's."""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as np
import onnx
import pytest

from gpu.emulator import run_in_any_order
from hipdnn_mlir import Program, Session
from hipdnn_mlir.codegen.core import assemble
from hipdnn_mlir_runtime.dtypes import BY_NAME
from runtime_programs import Array, ProgramText, argument, document, execute


def compile_for_emulator(
    model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> tuple[Program, list[Any]]:
    """Compile a model; the image of a kernel is the number of its MLIR module in the list."""
    modules: list[Any] = []

    def keep(module: Any, _: Any) -> str:
        modules.append(module)
        return str(len(modules) - 1)

    monkeypatch.setattr(assemble, "compile_module", keep)
    compiler = importlib.import_module("hipdnn_mlir.compiler.compile")  # the package's name `compile` is the function
    return compiler.compile(model, **options), modules


def run(program: Program, feeds: dict[str, Array], modules: list[Any], *, wave: int = 32) -> list[Array]:
    """Run a program's steps and return its outputs."""
    code = json.loads(program.text)
    memory = [np.full(buffer["bytes"], 0xCD, np.uint8) for buffer in code["buffers"]]
    for port in code["inputs"]:
        memory[port["buffer"]] = _bytes(feeds[port["name"]])
    for constant in code["constants"]:
        memory[constant["buffer"]] = _bytes(program.tensors[constant["tensor"]])
    for step in code["steps"]:
        if step["kind"] == "copy":
            source, target, size = step["src"], step["dst"], step["bytes"]
            taken = memory[source["buffer"]][source["offset"] : source["offset"] + size]
            memory[target["buffer"]][target["offset"] : target["offset"] + size] = taken
            continue
        # One array for one place, so that the emulator knows of results that lie in the memory of an operand.
        found = {(place["buffer"], place["offset"]) for place in step["operands"]}
        views = {(buffer, offset): memory[buffer][offset:] for buffer, offset in found}
        places = [views[place["buffer"], place["offset"]] for place in step["operands"]]
        if step["kind"] == "execute":
            _execute(code["executables"][step["executable"]], places)
            continue
        kernel = code["kernels"][step["kernel"]]["code"]
        if kernel["grid"][0]:
            arguments = [places[a] for a in kernel["arguments"]]
            run_in_any_order(arguments, kernel["grid"][0], kernel["block"][0], wave, modules[int(kernel["image"])])
    return [memory[o["buffer"]].view(BY_NAME[o["dtype"]].numpy).reshape(o["dims"]) for o in code["outputs"]]


def _bytes(array: Any) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).copy()


def _execute(executable: dict[str, Any], places: list[Array]) -> None:
    """One graph on the host's library; its operands are the bytes at `places`, results are written there."""
    roles = [operand["role"] for operand in executable["operands"]]
    ports = [argument(f"p{i}", "u8", [place.size], i) for i, place in enumerate(places)]
    kinds = ["input" if role == "in" else "output" for role in roles]
    buffers = [(kind, place.size) for kind, place in zip(kinds, places, strict=True)]
    ins = [port for port, role in zip(ports, roles, strict=True) if role == "in"]
    outs = [port for port, role in zip(ports, roles, strict=True) if role == "out"]
    one = document([executable], ins, outs, [], buffers, [execute(0, "graph", *range(len(places)))])
    feeds = {port["name"]: places[port["buffer"]] for port in ins}
    for port, result in zip(outs, Session(ProgramText(one), port="host").run(None, feeds), strict=True):
        places[port["buffer"]][:] = result
