"""What is inside a program file, as plain data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import _runtime
from ..errors import DeviceError, PlanRefusedError
from ..session import Session, Stats


def inspect(path: Path) -> dict[str, Any]:
    """Load a program file, so that everything in it is checked, and return what it holds.

    Args:
        path: The ``.hipdnn`` file.

    Returns:
        ``model``, ``target``, ``format``, ``producer``; ``inputs`` and ``outputs`` (name, dtype, dims); ``executables``
        (name, summary, steps that use it); ``steps`` (kind, name, summary, engine; a copy has its bytes for summary);
        ``memory`` (bytes of constants, of the arena, of the largest live set). Of a program with open sizes ``symbols`` names them,
        ``buckets`` has what some are rounded up to, and engines and memory, which depend on them, are left out. ``refused`` has the graphs
        that the library refused when the model was compiled (summary, nodes, reason, steps in their place). ``not_loaded`` says why this
        machine cannot run the program, where it cannot; engines are then those that it was compiled for.

    Raises:
        ProgramError: The file is not a program, is broken, or is newer than this package.
        PlanRefusedError: The target's library is on this machine, and refuses graphs.
    """
    parsed = _runtime.Program.load(str(path))
    program: dict[str, Any] = json.loads(parsed.text)
    described = _described(program) | {"inputs": _ports(parsed.inputs), "outputs": _ports(parsed.outputs)}
    try:
        return described | _loaded(Session(path), described)
    except PlanRefusedError:
        raise
    except DeviceError as error:
        return described | {"not_loaded": str(error)}


def _described(program: dict[str, Any]) -> dict[str, Any]:
    """What the file says by itself."""
    uses = Counter(step["executable"] for step in program["steps"] if step["kind"] == "execute")
    symbols = program.get("symbols", [])
    return {
        "symbols": symbols,
        "buckets": {n: sizes for n, sizes in zip(symbols, program.get("buckets", []), strict=False) if sizes},
        "model": program["model"]["name"],
        "target": program["target"],
        "format": program["format"],
        "producer": program["producer"],
        "executables": [
            {"name": executable["name"], "summary": executable["summary"], "steps": uses[index]}
            for index, executable in enumerate(program["executables"])
        ],
        "steps": [
            {
                "kind": step["kind"],
                "name": step["name"],
                "summary": _summary(step, program),
                "engine": _claimed(step, program),
            }
            for step in program["steps"]
        ],
        "refused": [
            {key: plan[key] for key in ("summary", "nodes", "reason", "steps")} for plan in program.get("refused", [])
        ],
        "memory": {"constant_bytes": _constant_bytes(program)},
        "not_loaded": "",
    }


def _loaded(session: Session, described: dict[str, Any]) -> dict[str, Any]:
    """What the runtime says of a program that it has loaded: engines of plans, memory."""
    steps = described["steps"]
    if session.symbols:
        return {"steps": [step | {"engine": ""} for step in steps]}
    engines = [{"engine": loaded.get("engine", "")} for loaded in session.steps]
    return {
        "steps": [step | engine for step, engine in zip(steps, engines, strict=True)],
        "memory": described["memory"] | _arena(session.stats),
    }


def _claimed(step: dict[str, Any], program: dict[str, Any]) -> str:
    """The engine that a step was compiled for."""
    return str(program["executables"][step["executable"]].get("engine", "")) if step["kind"] == "execute" else ""


def _ports(rows: Sequence[tuple[str, str, list[int | str]]]) -> list[dict[str, Any]]:
    return [{"name": name, "dtype": dtype, "dims": dims} for name, dtype, dims in rows]


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
