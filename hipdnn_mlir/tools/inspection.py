"""What is inside a program file, as plain data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from safetensors import safe_open

import hipdnn_mlir


def largest_live_set_bytes(buffers: Sequence[Mapping[str, Any]], step_count: int) -> int:
    """Return the largest sum of temporary bytes that any step needs at once: the lower bound of an arena."""
    changes = [0] * (step_count + 1)
    for buffer in buffers:
        if buffer["kind"] == "temp" and buffer["first"] <= buffer["last"]:
            changes[buffer["first"]] += buffer["bytes"]
            changes[buffer["last"] + 1] -= buffer["bytes"]
    return max(accumulate(changes), default=0)


def inspect(path: Path) -> dict[str, Any]:
    """Load a program file, so that everything in it is checked, and return what it holds.

    Args:
        path: The ``.hipdnn`` file.

    Returns:
        ``model``, ``target``, ``format``, ``producer``; ``inputs`` and ``outputs`` (name, dtype, dims); ``executables``
        (name, summary, steps that use it); ``steps`` (kind, name, what); ``memory`` (bytes of constants, of the arena,
        of the largest live set).

    Raises:
        ProgramError: The file is not a program, is broken, or is newer than this package.
        DeviceError: The target's libraries cannot be opened here.
    """
    session = hipdnn_mlir.load(path)
    with safe_open(path, "numpy") as file:
        program: dict[str, Any] = json.loads(file.metadata()["hipdnn_program"])
    executables, steps, buffers = program["executables"], program["steps"], program["buffers"]
    uses = Counter(step["executable"] for step in steps if step["kind"] == "execute")
    return {
        "model": program["model"]["name"],
        "target": program["target"],
        "format": program["format"],
        "producer": program["producer"],
        "inputs": [{key: port[key] for key in ("name", "dtype", "dims")} for port in program["inputs"]],
        "outputs": [{key: port[key] for key in ("name", "dtype", "dims")} for port in program["outputs"]],
        "executables": [
            {"name": executable["name"], "summary": executable["summary"], "steps": uses[index]}
            for index, executable in enumerate(executables)
        ],
        "steps": [{"kind": step["kind"], "name": step["name"], "what": _what(step, executables)} for step in steps],
        "memory": {
            "constant_bytes": sum(buffer["bytes"] for buffer in buffers if buffer["kind"] == "constant"),
            "largest_live_set_bytes": largest_live_set_bytes(buffers, len(steps)),
            "arena_bytes": session.arena_bytes,
        },
    }


def _what(step: Mapping[str, Any], executables: Sequence[Mapping[str, Any]]) -> str:
    """Say what a step does."""
    if step["kind"] == "execute":
        return str(executables[step["executable"]]["summary"])
    return f"{step['bytes']} bytes"
