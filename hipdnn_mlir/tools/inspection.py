"""What is inside a program file, as plain data."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from safetensors import safe_open

from ..session import Port, Session, Stats


def inspect(path: Path) -> dict[str, Any]:
    """Load a program file, so that everything in it is checked, and return what it holds.

    Args:
        path: The ``.hipdnn`` file.

    Returns:
        ``model``, ``target``, ``format``, ``producer``; ``inputs`` and ``outputs`` (name, dtype, dims); ``executables``
        (name, summary, steps that use it); ``steps`` (kind, name, summary, engine; a copy has its bytes for summary);
        ``memory`` (bytes of constants, of the arena, of the largest live set). Of a program with open sizes ``symbols`` names them,
        ``buckets`` has what some are rounded up to, and engines and memory, which depend on them, are left out.

    Raises:
        ProgramError: The file is not a program, is broken, or is newer than this package.
        DeviceError: The target's libraries cannot be opened here.
    """
    session = Session(path)
    with safe_open(path, "numpy") as file:
        program: dict[str, Any] = json.loads(file.metadata()["hipdnn_program"])
    uses = Counter(step["executable"] for step in program["steps"] if step["kind"] == "execute")
    steps = [{}] * len(program["steps"]) if session.symbols else session.steps
    return {
        "symbols": session.symbols,
        "buckets": session.buckets,
        "model": program["model"]["name"],
        "target": program["target"],
        "format": program["format"],
        "producer": program["producer"],
        "inputs": [_port(port) for port in session.inputs],
        "outputs": [_port(port) for port in session.outputs],
        "executables": [
            {"name": executable["name"], "summary": executable["summary"], "steps": uses[index]}
            for index, executable in enumerate(program["executables"])
        ],
        "steps": [
            {
                "kind": step["kind"],
                "name": step["name"],
                "summary": _summary(step, program),
                "engine": loaded.get("engine", ""),
            }
            for step, loaded in zip(program["steps"], steps, strict=True)
        ],
        "memory": {"constant_bytes": _constant_bytes(program)} | ({} if session.symbols else _arena(session.stats)),
    }


def _port(port: Port) -> dict[str, Any]:
    return {"name": port.name, "dtype": port.dtype, "dims": list(port.shape)}


def _summary(step: dict[str, Any], program: dict[str, Any]) -> str:
    """What a step computes, as far as the file says it in a line."""
    match step:
        case {"executable": index}:
            return str(program["executables"][index]["summary"])
        case {"kernel": index}:
            return str(program["kernels"][index]["summary"])
        case {"bytes": int(count)}:
            return f"{count} bytes"
    return ""


def _constant_bytes(program: dict[str, Any]) -> int:
    """The bytes of the file's tensors; those of constants computed from open sizes depend on them."""
    sizes = (program["buffers"][constant["buffer"]]["bytes"] for constant in program["constants"])
    return sum(size for size in sizes if isinstance(size, int))


def _arena(stats: Stats) -> dict[str, int]:
    return {"arena_bytes": stats.arena_bytes, "largest_live_set_bytes": stats.largest_live_bytes}
