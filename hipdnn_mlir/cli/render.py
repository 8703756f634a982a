"""What the command line shows to people: tables of placements, programs, outputs and differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from .arrays import Array, Difference
from .measure import Timing

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


def _count(things: Sequence[object], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


def _table(title: str, *columns: str, right: Iterable[str] = ()) -> Table:
    """Return an empty table; columns named in ``right`` hold numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold", box=box.SIMPLE_HEAD)
    numbers = set(right)
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return table


def explanation(data: Mapping[str, Any]) -> RenderableType:
    """Return the placement of a model's nodes: graphs with engine and nodes, kernels, then what is left out and why.

    Args:
        data: ``Explanation.to_dict()``.
    """
    graphs: Sequence[Mapping[str, Any]] = data["graphs"]
    rejects: Sequence[Mapping[str, Any]] = data["rejects"]
    launches: Sequence[Mapping[str, Any]] = data["launches"]
    table = _table(f"{_count(graphs, 'graph')}, {_count(launches, 'kernel')}", "name", "engine", "operations", "nodes")
    for graph in (*graphs, *launches):
        table.add_row(
            *(escape(str(graph[key])) for key in ("name", "engine", "summary")), escape(", ".join(graph["nodes"]))
        )
    parts: list[RenderableType] = [table]
    if rejects:
        left_out = _table(f"{_count(rejects, 'node')} left out", "node", "operation", "rule", "reason")
        for reject in rejects:
            left_out.add_row(*(escape(reject[key]) for key in ("node", "op", "rule", "reason")))
        parts.append(left_out)
    elif data["no_program"]:
        parts.append(Text(f"Every node has a place, and there is no program: {data['no_program']}", style="yellow"))
    else:
        parts.append(Text("Every node has a place.", style="green"))
    if data["refused"]:
        parts.append(_refused(data["refused"], lambda plan: plan["became"]))
    if data["plans_not_asked"]:
        parts.append(Text(f"Plans were not asked for: {data['plans_not_asked']}.", style="yellow"))
    samples: Mapping[str, int] = data["samples"]
    if samples:
        parts.append(
            Text(f"Dynamic dimensions are shown at {', '.join(f'{name} = {size}' for name, size in samples.items())}.")
        )
    return Group(*parts)


def _dims(dims: Iterable[int | str]) -> str:
    sizes = list(dims)
    return ("x" if all(isinstance(size, int) for size in sizes) else " x ").join(map(str, sizes)) or "scalar"


def program(data: Mapping[str, Any]) -> RenderableType:
    """Return a program's inputs, outputs, executables, steps and memory.

    Args:
        data: What ``inspection.inspect`` returns.
    """
    ports = _table(
        f"{data['model']} for target '{data['target']}', format {data['format']}", "", "name", "type", "dims"
    )
    for kind in ("inputs", "outputs"):
        for port in data[kind]:
            ports.add_row(kind[:-1], escape(port["name"]), port["dtype"], _dims(port["dims"]))
    executables = _table(_count(data["executables"], "executable"), "name", "operations", "steps", right=["steps"])
    for executable in data["executables"]:
        executables.add_row(executable["name"], escape(executable["summary"]), str(executable["steps"]))
    steps = _table(_count(data["steps"], "step"), "#", "kind", "name", "operations", "engine", right=["#"])
    for index, step in enumerate(data["steps"]):
        steps.add_row(str(index), step["kind"], escape(step["name"]), escape(step["summary"]), step["engine"])
    parts: list[RenderableType] = [ports]
    if data["specializations"]:
        parts += [
            _specializations(data["specializations"]),
            Text(f"{_sizes(data['specializations'][-1])}:", style="bold"),
        ]
    parts += [executables, steps]
    if data["refused"]:
        parts.append(
            _refused(data["refused"], lambda plan: [data["steps"][number]["summary"] for number in plan["steps"]])
        )
    parts.append(Text(_memory(data["memory"], _dynamic_dimensions(data))))
    if data["not_loaded"]:
        parts.append(Text(f"Not loaded: {data['not_loaded']}"))
    return Group(*parts)


def _refused(plans: Sequence[Mapping[str, Any]], became: Callable[[Mapping[str, Any]], Sequence[str]]) -> Table:
    """Return what a library refused, with what runs in its place."""
    title = f"{_count(plans, 'graph')} refused by the library"
    table = _table(title, "operations", "nodes", "the library's words", "in its place")
    for plan in plans:
        row = (plan["summary"], plan["nodes"], plan["reason"], ", ".join(became(plan)))
        table.add_row(*map(escape, row))
    return table


def _specializations(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return one row per program that a file holds for sizes of its own."""
    numbers = ["executables", "steps", "refused", "arena"]
    table = _table(_count(rows, "combination") + " of buckets", "sizes", *numbers, right=numbers)
    for row in rows:
        arena = row["memory"].get("arena_bytes")
        counts = [str(len(row[key])) for key in ("executables", "steps", "refused")]
        table.add_row(escape(_sizes(row)), *counts, "" if arena is None else bytes_text(arena))
    return table


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
        f"{_count(data['specializations'], 'combination')} of buckets, the largest: " if data["specializations"] else ""
    )
    return (
        f"{head}{_count(data['executables'], 'executable')}, steps: {steps}, "
        f"constants {bytes_text(data['memory']['constant_bytes'])}"
    )


def outputs(arrays: Mapping[str, Array]) -> Table:
    """Return one row per output: type, dims, and the range of its values."""
    table = _table("outputs", "name", "type", "dims", "min", "mean", "max", right=["min", "mean", "max"])
    for name, array in arrays.items():
        values = array.astype(np.float64)
        stats = [f"{f(values):.6g}" for f in (np.min, np.mean, np.max)] if array.size else ["", "", ""]
        table.add_row(escape(name), str(array.dtype), _dims(array.shape), *stats)
    return table


def _verdict(row: Difference | OutputError, good: str, bad: str) -> str:
    if not row.within:
        return f"[red]{bad}[/]"
    return "[yellow]constant[/]" if row.constant else f"[green]{good}[/]"


def _with_note(table: Table, found: Sequence[Difference] | Sequence[OutputError]) -> RenderableType:
    """Return a table of verdicts, below it what a constant output means where there is one."""
    if not any(row.within and row.constant for row in found):
        return table
    return Group(table, Text(_CONSTANT, style="yellow"))


def differences(found: Sequence[Difference], reference: str) -> RenderableType:
    """Return one row per output: how far it is from its reference, and whether that is within tolerance."""
    numbers = ["largest absolute", "largest relative"]
    table = _table(f"against {reference}", "output", *numbers, "tolerance", "", right=numbers)
    for row in found:
        tolerance = f"{row.atol:g} + {row.rtol:g} |reference|"
        figures = (f"{row.absolute:.3g}", f"{row.relative:.3g}", tolerance)
        table.add_row(escape(row.output), *figures, _verdict(row, "equal", "differs"))
    return _with_note(table, found)


def errors(found: Sequence[OutputError]) -> RenderableType:
    """Return one row per program and output: its errors relative to ONNX Runtime's output."""
    numbers = ["largest error", "rms error", "tolerance"]
    table = _table("errors, relative to the output's scale", "precision", "output", *numbers, "", right=numbers)
    for row in found:
        figures = (f"{figure:.2g}" for figure in (row.largest, row.rms, row.tolerance))
        table.add_row(row.precision, escape(row.output), *figures, _verdict(row, "within", "beyond"))
    return _with_note(table, found)


def timings(rows: Mapping[str, Timing]) -> Table:
    """Return one row per timed thing, in milliseconds."""
    numbers = ["runs", "median ms", "fastest ms", "90% below ms"]
    table = _table("time per run", "", *numbers, right=numbers)
    for name, timing in rows.items():
        figures = (timing.median_ms, timing.fastest_ms, timing.p90_ms)
        table.add_row(escape(name), str(timing.runs), *(f"{figure:.3f}" for figure in figures))
    return table


def devices(rows: Sequence[DeviceInfo]) -> RenderableType:
    """Return the devices, the engines of each library, and the ports without a device with the reason."""
    found = [row for row in rows if not row.problem]
    table = _table(_count(found, "device"), "port", "device", "target", "hipDNN", "HIP", "memory")
    parts: list[RenderableType] = [table]
    libraries: dict[tuple[str, str], DeviceInfo] = {}
    for row in found:
        memory = (
            ""
            if row.total_bytes is None
            else f"{bytes_text(row.free_bytes or 0)} of {bytes_text(row.total_bytes)} free"
        )
        table.add_row(
            f"{row.port}:{row.ordinal}", *map(escape, (row.name, row.target, row.library, row.runtime)), memory
        )
        libraries.setdefault((row.port, row.library), row)
    engines = _table("engines", "port", "engine", "plugin", "version")
    for row in libraries.values():
        for names, plugin, version in _families(row.engines):
            engines.add_row(row.port, *map(escape, (names, plugin, version)))
    if engines.row_count:
        parts.append(engines)
    parts += [f"{row.port}: policies {escape(', '.join(row.policies))}" for row in libraries.values() if row.policies]
    for row in libraries.values():
        if row.plugins:
            plugins = _table("plugins", "port", "file")
            for path in row.plugins:
                plugins.add_row(row.port, escape(path))
            parts.append(plugins)
    missing = [row for row in rows if row.problem]
    if missing:
        reasons = _table("no device", "port", "reason")
        for row in missing:
            reasons.add_row(row.port, escape(row.problem))
        parts.append(reasons)
    return Group(*parts)


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
