"""Runs a program step by step: each is handed to the caller with the bytes of its operands, copies are made here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hipdnn_mlir import Program, Session
from hipdnn_mlir_runtime.dtypes import BY_NAME
from runtime_programs import Array, ProgramText, argument, document

RunStep = Callable[[dict[str, Any], dict[str, Any], list[Array]], None]
"""Runs a step of a program's JSON on the bytes of its operands, where it also writes results."""


def run_stepwise(program: Program, feeds: Mapping[str, Array], run_step: RunStep) -> list[Array]:
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
        # One array for one place, so that an emulator knows of results that lie in the memory of an operand.
        found = {(place["buffer"], place["offset"]) for place in step["operands"]}
        views = {(buffer, offset): memory[buffer][offset:] for buffer, offset in found}
        run_step(code, step, [views[place["buffer"], place["offset"]] for place in step["operands"]])
    return [memory[o["buffer"]].view(BY_NAME[o["dtype"]].numpy).reshape(o["dims"]) for o in code["outputs"]]


def run_alone(
    places: Sequence[Array],
    roles: Sequence[str],
    step: dict[str, Any],
    *,
    executables: Sequence[Any] = (),
    kernels: Sequence[Any] = (),
    target: str = "host",
    **options: Any,
) -> None:
    """Run one step as a program in a session with these options; its operands are bytes, where results are written."""
    ports = [argument(f"p{i}", "u8", [place.size], i) for i, place in enumerate(places)]
    buffers = [("input" if role == "in" else "output", place.size) for role, place in zip(roles, places, strict=True)]
    ins = [port for port, role in zip(ports, roles, strict=True) if role == "in"]
    outs = [port for port, role in zip(ports, roles, strict=True) if role == "out"]
    text = document([*executables], ins, outs, [], buffers, [step], [*kernels]) | {"target": target}
    feeds = {port["name"]: places[port["buffer"]] for port in ins}
    # In place: a result whose elements lie apart, as in a part of a tensor, leaves the bytes between them.
    Session(ProgramText(text), **options).run(None, feeds, out={port["name"]: places[port["buffer"]] for port in outs})


def _bytes(array: Any) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).copy()
