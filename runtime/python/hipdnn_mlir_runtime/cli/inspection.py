"""What is inside a program file, as plain data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import _runtime
from ..errors import DeviceError, PlanRefusedError, ProgramError, RefusedPlan
from ..session.session import Session
from ..session.stats import Stats


def inspect(path: Path) -> dict[str, Any]:
    """Load a program file, so that everything in it is checked, and return what it holds.

    Args:
        path: The ``.hipdnn`` file.

    Returns:
        ``model``, ``target``, ``format``, ``producer``; ``inputs`` and ``outputs`` (name, dtype, dims); ``executables``
        (name, summary, steps that use it); ``steps`` (kind, name, summary, engine; a copy has its bytes for summary);
        ``memory`` (bytes of constants, of the arena, of the largest live set). Of a program with dynamic dimensions ``symbols`` names
        them, ``buckets`` has what some are rounded up to, and engines and memory, which depend on them, are left out. Where the file
        holds a program for each combination of buckets, ``specializations`` has ``sizes``, ``executables``, ``steps``, ``refused``,
        ``memory`` of each, what is said of the whole is that of the last one, for the largest sizes; ``exact`` says why sizes are not
        rounded up.
        ``refused`` has the graphs that the library refused when the model was compiled (summary, nodes, reason, steps in their place).
        ``not_loaded`` says why this machine cannot run the program, where it cannot; engines are then those that it was compiled for.

    Raises:
        ProgramError: The file is not a program, is broken, or has another format.
        PlanRefusedError: The target's library is on this machine, and refuses graphs.
    """
    parsed = _runtime.Program.load(str(path))
    program: dict[str, Any] = json.loads(parsed.text)
    try:
        rows = _specializations(program)
        described = {
            **_described(program),
            **(_largest(rows, program) if rows else _steps(program)),
            "inputs": _ports(parsed.inputs),
            "outputs": _ports(parsed.outputs),
            "specializations": rows,
        }
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # The loader leaves what is for people alone, and checks what depends on sizes when those are known.
        message = f"what it says of itself is broken: {type(error).__name__}: {error}"
        raise ProgramError(message, where=str(path), hint="compile the model again") from error
    try:
        if rows:
            return described | _all_loaded(Session(path, max_specializations=1), rows)
        session = Session(path)
        if session.symbols:  # engines and memory depend on them
            return described | {"steps": [step | {"engine": ""} for step in described["steps"]]}
        return described | _loaded(session, described)
    except PlanRefusedError:
        raise
    except DeviceError as error:
        return described | {"not_loaded": str(error)}


def _described(program: dict[str, Any]) -> dict[str, Any]:
    """What the file says of the program as a whole."""
    symbols = program.get("symbols", [])
    return {
        "symbols": symbols,
        "buckets": {n: sizes for n, sizes in zip(symbols, program.get("buckets", []), strict=False) if sizes},
        "exact": {n: reason for n, reason in zip(symbols, program.get("exact", []), strict=False) if reason},
        "model": program["model"]["name"],
        "target": program["target"],
        "format": program["format"],
        "producer": program["producer"],
        "not_loaded": "",
    }


def _steps(program: dict[str, Any]) -> dict[str, Any]:
    """What the file says of what a program does."""
    uses = Counter(
        step["executable"] for step in program["steps"] if step["kind"] == "execute"
    )  # in the order of a run
    executables = program["executables"]
    return {
        "executables": [
            {"name": executables[index]["name"], "summary": executables[index]["summary"], "steps": uses[index]}
            for index in dict.fromkeys((*uses, *range(len(executables))))
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
    }


def _specializations(program: dict[str, Any]) -> list[dict[str, Any]]:
    """The same of each program that the file holds for sizes of its own."""
    rows = []
    for made in program.get("specializations", []):
        pools = {key: [program[key][index] for index in made[key]] for key in ("executables", "kernels")}
        sizes = dict(zip(program["symbols"], made["sizes"], strict=True))
        rows.append({"sizes": sizes, **_steps({**made, **pools})})
    return rows


def _largest(rows: Sequence[dict[str, Any]], program: dict[str, Any]) -> dict[str, Any]:
    """What is said of the program as a whole where the file holds several: the last one's steps, the constants of all."""
    found = {
        constant["tensor"]: made["buffers"][constant["buffer"]]["bytes"]
        for made in program["specializations"]
        for constant in made["constants"]
    }
    shown = {key: rows[-1][key] for key in ("executables", "steps", "refused")}
    return {**shown, "memory": {"constant_bytes": sum(found.values())}}


def _loaded(session: Session, described: dict[str, Any]) -> dict[str, Any]:
    """What the runtime says of a program that it has loaded: engines of plans, memory."""
    steps = described["steps"]
    engines = [{"engine": loaded.get("engine", "")} for loaded in session.steps]
    return {
        "steps": [step | engine for step, engine in zip(steps, engines, strict=True)],
        "memory": described["memory"] | _arena(session.stats),
    }


def _all_loaded(session: Session, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the runtime says of all programs of a file, one after the other."""
    loaded = []
    refused: list[RefusedPlan] = []
    for row in rows:
        try:
            session.prewarm([row["sizes"]])
            loaded.append(row | _loaded(session, row))
        except PlanRefusedError as error:
            refused += error.refusals
    if refused:
        raise PlanRefusedError(refused)
    return {"steps": loaded[-1]["steps"], "specializations": loaded}


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
    """The bytes of the file's tensors; those of constants computed from dynamic dimensions depend on them."""
    sizes = (program["buffers"][constant["buffer"]]["bytes"] for constant in program["constants"])
    return sum(size for size in sizes if isinstance(size, int))


def _arena(stats: Stats) -> dict[str, int]:
    return {"arena_bytes": stats.arena_bytes, "largest_live_set_bytes": stats.largest_live_bytes}
