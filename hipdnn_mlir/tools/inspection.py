"""What is inside a program file, as plain data."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from safetensors import safe_open

from ..session import Session


def inspect(path: Path) -> dict[str, Any]:
    """Load a program file, so that everything in it is checked, and return what it holds.

    Args:
        path: The ``.hipdnn`` file.

    Returns:
        ``model``, ``target``, ``format``, ``producer``; ``inputs`` and ``outputs`` (name, dtype, dims); ``executables``
        (name, summary, steps that use it); ``steps`` (kind, name, summary, engine; a copy has its bytes for summary);
        ``memory`` (bytes of constants, of the arena, of the largest live set).

    Raises:
        ProgramError: The file is not a program, is broken, or is newer than this package.
        DeviceError: The target's libraries cannot be opened here.
    """
    session = Session(path)
    with safe_open(path, "numpy") as file:
        program: dict[str, Any] = json.loads(file.metadata()["hipdnn_program"])
    uses = Counter(step["executable"] for step in program["steps"] if step["kind"] == "execute")
    return {
        "model": program["model"]["name"],
        "target": program["target"],
        "format": program["format"],
        "producer": program["producer"],
        "inputs": [_port(port) for port in program["inputs"]],
        "outputs": [_port(port) for port in program["outputs"]],
        "executables": [
            {"name": executable["name"], "summary": executable["summary"], "steps": uses[index]}
            for index, executable in enumerate(program["executables"])
        ],
        "steps": [
            {
                "kind": step["kind"],
                "name": step["name"],
                "summary": loaded.get("summary") or f"{step['bytes']} bytes",
                "engine": loaded.get("engine", ""),
            }
            for step, loaded in zip(program["steps"], session.steps, strict=True)
        ],
        "memory": {
            "constant_bytes": session.stats.constant_bytes,
            "arena_bytes": session.stats.arena_bytes,
            "largest_live_set_bytes": session.stats.largest_live_bytes,
        },
    }


def _port(port: dict[str, Any]) -> dict[str, Any]:
    return {key: port[key] for key in ("name", "dtype", "dims")}
