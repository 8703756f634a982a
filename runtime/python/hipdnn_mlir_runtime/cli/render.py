"""What the command line shows to people: tables of programs, outputs, differences and devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import Array, Difference
from .measure import Timing
from .tables import emphasized, table

if TYPE_CHECKING:
    from ..session.devices import DeviceInfo
    from .arrays import OutputError

_CONSTANT = (
    "constant: the same for other random inputs, or one value where all inputs are given; "
    "that it agrees says nothing of the program"
)


def bytes_text(count: int) -> str:
    """Return a byte count in the largest binary unit that leaves at least 1."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def counted(things: Sequence[object], name: str, several: str = "") -> str:
    """Return how many things there are: ``1 graph``, ``2 graphs``; ``several`` is a plural of its own."""
    return f"{len(things)} {name if len(things) == 1 else several or name + 's'}"


def ports_text(ports: Iterable[tuple[str, str, Sequence[int | str]]]) -> str:
    """Return inputs or outputs, given by name, dtype and dims, in a line."""
    return ", ".join(f"{name} {dtype} {_dims(dims)}" for name, dtype, dims in ports) or "none"


def _dims(dims: Iterable[int | str]) -> str:
    sizes = list(dims)
    return ("x" if all(isinstance(size, int) for size in sizes) else " x ").join(map(str, sizes)) or "scalar"


def program(data: Mapping[str, Any]) -> str:
    """Return a program's inputs, outputs, executables, steps and memory.

    Args:
        data: What ``inspection.inspect`` returns.
    """
    ports = [
        (kind[:-1], port["name"], port["dtype"], _dims(port["dims"]))
        for kind in ("inputs", "outputs")
        for port in data[kind]
    ]
    title = f"{data['model']} for target '{data['target']}', format {data['format']}"
    parts = [table(title, ("", "name", "type", "dims"), ports)]
    if data["specializations"]:
        parts += [_specializations(data["specializations"]), emphasized(f"{_sizes(data['specializations'][-1])}:")]
    executables = [(row["name"], row["steps"], row["summary"]) for row in data["executables"]]
    steps = [
        (index, step["kind"], step["engine"], step["name"], step["summary"]) for index, step in enumerate(data["steps"])
    ]
    parts += [
        table(counted(executables, "executable"), ("name", "steps", "operations"), executables, ["steps"]),
        table(counted(steps, "step"), ("#", "kind", "engine", "name", "operations"), steps, ["#"]),
    ]
    if data["refused"]:
        parts.append(
            refused(data["refused"], lambda plan: [data["steps"][number]["summary"] for number in plan["steps"]])
        )
    parts.append(_memory(data["memory"], _dynamic_dimensions(data)))
    if data["not_loaded"]:
        parts.append(f"Not loaded: {data['not_loaded']}")
    return "\n\n".join(parts)


def refused(plans: Sequence[Mapping[str, Any]], became: Callable[[Mapping[str, Any]], Sequence[str]]) -> str:
    """Return what a library refused, with what runs in its place."""
    rows = [(plan["summary"], plan["nodes"], ", ".join(became(plan)), plan["reason"]) for plan in plans]
    columns = ("operations", "nodes", "in its place", "the library's words")
    return table(f"{counted(plans, 'graph')} refused by the library", columns, rows)


def _specializations(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return one row per program that a file holds for sizes of its own."""
    numbers = ["executables", "steps", "refused", "arena"]
    cells = []
    for row in rows:
        arena = row["memory"].get("arena_bytes")
        counts = [len(row[key]) for key in ("executables", "steps", "refused")]
        cells.append((_sizes(row), *counts, "" if arena is None else bytes_text(arena)))
    return table(counted(rows, "combination") + " of buckets", ("sizes", *numbers), cells, numbers)


def _sizes(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {size}" for name, size in row["sizes"].items())


def _dynamic_dimensions(data: Mapping[str, Any]) -> list[str]:
    """Return the dynamic dimensions with their buckets."""
    buckets = {name: f" (rounded up to {', '.join(map(str, sizes))})" for name, sizes in data["buckets"].items()}
    for name, reason in data["exact"].items():
        buckets[name] = f" ({', '.join(map(str, data['buckets'][name]))} only: {reason})"
    return [name + buckets.get(name, "") for name in data["symbols"]]


def _memory(memory: Mapping[str, int], symbols: Sequence[str]) -> str:
    constants = f"constants {bytes_text(memory['constant_bytes'])}"
    if symbols:
        return f"{constants}; dynamic dimensions: {', '.join(symbols)}"
    if "arena_bytes" not in memory:
        return constants
    arena, lower_bound = memory["arena_bytes"], memory["largest_live_set_bytes"]
    ratio = f" ({arena / lower_bound:.2f} times)" if lower_bound else ""
    return f"{constants}; arena {bytes_text(arena)} for a largest live set of {bytes_text(lower_bound)}{ratio}"


def program_summary(data: Mapping[str, Any]) -> str:
    """Return one line on a program: executables, steps by kind, bytes of constants."""
    kinds = Counter(step["kind"] for step in data["steps"])
    steps = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items(), reverse=True)) or "none"
    head = (
        f"{counted(data['specializations'], 'combination')} of buckets, the largest: "
        if data["specializations"]
        else ""
    )
    return (
        f"{head}{counted(data['executables'], 'executable')}, steps: {steps}, "
        f"constants {bytes_text(data['memory']['constant_bytes'])}"
    )


_RANGE: dict[str, Callable[[Any], Any]] = {"min": np.min, "mean": np.mean, "max": np.max}


def value_range(array: Array) -> dict[str, float | None]:
    """Return the least, the mean and the greatest value of an array as ``min``, ``mean`` and ``max``; None of one without elements."""
    values = array.astype(np.float64)
    return {name: float(of(values)) if array.size else None for name, of in _RANGE.items()}


def outputs(arrays: Mapping[str, Array]) -> str:
    """Return one row per output: type, dims, and the range of its values."""
    rows = []
    for name, array in arrays.items():
        found = value_range(array).values()
        stats = ["" if number is None else f"{number:.6g}" for number in found]
        rows.append((name, array.dtype, _dims(array.shape), *stats))
    numbers = [*_RANGE]
    return table("outputs", ("name", "type", "dims", *numbers), rows, numbers)


def _verdict(row: Difference | OutputError, good: str, bad: str) -> str:
    if not row.within:
        return bad
    return "constant" if row.constant else good


def _with_note(text: str, found: Sequence[Difference] | Sequence[OutputError]) -> str:
    """Return a table of verdicts, below it what a constant output means where there is one."""
    has_constant = any(row.within and row.constant for row in found)
    return f"{text}\n\n{emphasized(_CONSTANT, '33')}" if has_constant else text


def differences(found: Sequence[Difference], reference: str) -> str:
    """Return one row per output: how far it is from its reference, and whether that is within tolerance."""
    numbers = ["largest absolute", "largest relative"]
    rows = [
        (
            row.output,
            f"{row.absolute:.3g}",
            f"{row.relative:.3g}",
            f"{row.atol:g} + {row.rtol:g} |reference|",
            _verdict(row, "equal", "differs"),
        )
        for row in found
    ]
    return _with_note(table(f"against {reference}", ("output", *numbers, "tolerance", ""), rows, numbers), found)


def errors(found: Sequence[OutputError]) -> str:
    """Return one row per program and output: its errors relative to ONNX Runtime's output."""
    numbers = ["largest error", "rms error", "tolerance"]
    rows = [
        (
            row.precision,
            row.output,
            *(f"{figure:.2g}" for figure in (row.largest, row.rms, row.tolerance)),
            _verdict(row, "within", "beyond"),
        )
        for row in found
    ]
    title = "errors, relative to the output's scale"
    return _with_note(table(title, ("precision", "output", *numbers, ""), rows, numbers), found)


def timings(rows: Mapping[str, Timing]) -> str:
    """Return one row per timed thing, in milliseconds."""
    numbers = ["runs", "median ms", "fastest ms", "90% below ms"]
    cells = [
        (name, timing.runs, *(f"{figure:.3f}" for figure in (timing.median_ms, timing.fastest_ms, timing.p90_ms)))
        for name, timing in rows.items()
    ]
    return table("time per run", ("", *numbers), cells, numbers)


def devices(rows: Sequence[DeviceInfo]) -> str:
    """Return the devices, the engines of each library, and the ports without a device with the reason."""
    found = [row for row in rows if not row.problem]
    cells = [
        (f"{row.port}:{row.ordinal}", row.name, row.target, row.library, row.runtime, _free_memory(row))
        for row in found
    ]
    parts = [table(counted(found, "device"), ("port", "device", "target", "hipDNN", "HIP", "memory"), cells)]
    libraries: dict[tuple[str, str], DeviceInfo] = {}
    for row in found:
        libraries.setdefault((row.port, row.library), row)
    engines = [(row.port, *family) for row in libraries.values() for family in _families(row.engines)]
    if engines:
        parts.append(table("engines", ("port", "engine", "plugin", "version"), engines))
    parts += [f"{row.port}: policies {', '.join(row.policies)}" for row in libraries.values() if row.policies]
    plugins = [(row.port, path) for row in libraries.values() for path in row.plugins]
    if plugins:
        parts.append(table("plugins", ("port", "file"), plugins))
    missing = [(row.port, row.problem) for row in rows if row.problem]
    if missing:
        parts.append(table("no device", ("port", "reason"), missing))
    return "\n\n".join(parts)


def _free_memory(row: DeviceInfo) -> str:
    if row.total_bytes is None:
        return ""
    return f"{bytes_text(row.free_bytes or 0)} of {bytes_text(row.total_bytes)} free"


def _families(engines: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Return engines with those that differ in a number at their end in one row, "NAME_0 to NAME_7"."""
    members: dict[tuple[str, str, str], list[tuple[int, str]]] = {}
    for name, plugin, version in engines:
        stem = name.rstrip("0123456789")
        members.setdefault((stem, plugin, version), []).append((int(name[len(stem) :] or 0), name))
    rows = []
    for (_, plugin, version), names in members.items():
        first, last = min(names)[1], max(names)[1]
        rows.append((first if first == last else f"{first} to {last}", plugin, version))
    return rows
