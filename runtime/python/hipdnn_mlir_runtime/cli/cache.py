"""What is kept between processes: the programs that the provider for ONNX Runtime compiled, and the plans of devices.

The rules of a cache's folder (which files are entries, whom to trust) are those of the runtime's DiskCache, which lists and deletes.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from .. import _runtime
from ..errors import HipdnnMlirError, ModelError
from ..options import options_of
from .render import bytes_text, counted, ports_text
from .tables import table

_KINDS = {
    "hipdnn": "program",
    "json": "placement",
    "refused": "refused-model",
    "plan": "plan",
    "refusal": "refused-graph",
}
"""By the suffix of an entry's file. A placement says which nodes of a model are compiled, a refused model why none is for all sizes."""
_PLANS = "plans"
_SHOWN_DIGITS = 12
_DAMAGED = "damaged: it is made again when it is needed"
_UNIT_S = {"d": 86400, "h": 3600, "m": 60}


@dataclass(frozen=True)
class Entry:
    """A file of a cache.

    Attributes:
        key: SHA-256, in hexadecimal, of what it was made from.
        kind: What it holds; the suffix itself of a kind that this version does not know.
        bytes: Size of the file.
        used_s: When it was last used, in seconds since 1970.
        path: The file.
    """

    key: str
    kind: str
    bytes: int
    used_s: float
    path: Path

    @property
    def used(self) -> str:
        """When it was last used, in local time with its difference from UTC."""
        return datetime.fromtimestamp(self.used_s).astimezone().isoformat(" ", "seconds")

    def to_dict(self) -> dict[str, Any]:
        """Return it for ``--json``."""
        return {**asdict(self), "path": str(self.path), "used": self.used}


def folder_of(given: SimpleNamespace) -> Path:
    """Return the folder that a command is about.

    Raises:
        ModelError: None is named, and the user has none.
    """
    folder = given.cache_dir or _runtime.default_cache_directory()
    if not folder:
        raise ModelError("there is no cache folder", hint="set HOME or XDG_CACHE_HOME, or give --cache-dir DIR")
    return Path(folder)


def entries_of(folder: Path) -> list[Entry]:
    """Return the entries of a folder and of its plans, those used latest first; none of folders that are not there.

    Raises:
        ModelError: A folder cannot be read or is not to be trusted.
    """
    found = [
        Entry(key, _KINDS.get(suffix, suffix), size, used_s, each / f"{key}.{suffix}")
        for each in (folder, folder / _PLANS)
        if each.exists()
        for key, suffix, size, used_s in _runtime.DiskCache(str(each)).entries()
    ]
    return sorted(found, key=lambda entry: -entry.used_s)


def list_report(folder: Path) -> dict[str, Any]:
    """Return what a cache holds: ``directory``, its bound and that of its plans, ``total_bytes``, ``entries``."""
    entries = entries_of(folder)
    return {
        "directory": str(folder),
        "default_limit_bytes": options_of("provider")["cache_limit_mb"].default * 2**20,
        "plans_limit_bytes": _runtime.PLAN_CACHE_BYTES,
        "total_bytes": sum(entry.bytes for entry in entries),
        "entries": [entry.to_dict() | {"content": _content(entry)} for entry in entries],
    }


def list_text(data: dict[str, Any]) -> str:
    """Return the table of a ``list_report``."""
    rows = [
        (
            row["key"][:_SHOWN_DIGITS],
            row["kind"],
            bytes_text(row["bytes"]),
            _shown_time(row["used_s"]),
            _line(row["content"]),
        )
        for row in data["entries"]
    ]
    plans = sum(row["bytes"] for row in data["entries"] if Path(row["path"]).parent.name == _PLANS)
    title = (
        f"{data['directory']}: {counted(rows, 'entry', 'entries')}, "
        f"{bytes_text(data['total_bytes'] - plans)} of {bytes_text(data['default_limit_bytes'])} (by default, cache_limit_mb), "
        f"{bytes_text(plans)} of {bytes_text(data['plans_limit_bytes'])} in plans"
    )
    return table(title, ("key", "kind", "size", "last used", "what"), rows, right=["size"]) if rows else title


def show_report(folder: Path, prefix: str) -> dict[str, Any]:
    """Return all about one entry.

    Args:
        folder: The cache.
        prefix: The first digits of its key.

    Raises:
        ModelError: No entry's key starts like this, or several do.
    """
    found = [entry for entry in entries_of(folder) if entry.key.startswith(prefix.lower())]
    if not found:
        raise ModelError("no entry has this key", where=prefix, hint=f"hipdnn-mlir cache list shows those of {folder}")
    if len(found) > 1:
        keys = ", ".join(f"{entry.key[: max(_SHOWN_DIGITS, len(prefix) + 4)]} ({entry.kind})" for entry in found[:4])
        raise ModelError(f"{len(found)} entries have keys that start so", where=prefix, expected=f"one of {keys}")
    (entry,) = found
    data = entry.to_dict() | {"content": _content(entry)}
    if entry.kind == "program" and "damaged" not in data["content"]:
        from . import inspection, render

        data |= {
            "summary": render.program_summary(inspection.inspect(entry.path)),
            "inspect": f"hipdnn-mlir inspect {entry.path}",
        }
    return data


def show_text(data: dict[str, Any]) -> str:
    """Return a ``show_report`` as a table of its fields."""
    fields = {name: data[name] for name in ("kind", "path", "used")}
    fields |= {"size": bytes_text(data["bytes"]), **data["content"]}
    fields |= {name: data[name] for name in ("summary", "inspect") if name in data}
    return table(data["key"], ("", ""), [(name, _cell(value)) for name, value in fields.items()])


def prune_report(folder: Path, *, kinds: Sequence[str], older_than: str | None, is_all: bool) -> dict[str, Any]:
    """Delete entries, and return which: ``deleted`` (paths), ``bytes``, ``kinds`` (kind to number of entries).

    Args:
        folder: The cache.
        kinds: Kinds to delete; all kinds where none is given.
        older_than: For how long they have not been used.
        is_all: Whether all are meant.

    Raises:
        ModelError: Nothing is chosen, or the age is not of its form.
    """
    if not (kinds or older_than or is_all):
        hint = "hipdnn-mlir cache list shows what there is"
        raise ModelError("nothing is chosen", expected="--older-than 30d, --kind KIND or --all", hint=hint)
    if is_all and (kinds or older_than):
        raise ModelError("--all beside what chooses some", hint="leave one of them out")
    latest_s = time.time() - (_age_s(older_than) if older_than else 0)
    gone = [
        entry
        for entry in entries_of(folder)
        if (not kinds or entry.kind in kinds)
        and (is_all or not older_than or entry.used_s < latest_s)
        and _runtime.DiskCache(str(entry.path.parent)).remove(entry.key, entry.path.suffix[1:])
    ]
    return {
        "directory": str(folder),
        "deleted": [str(entry.path) for entry in gone],
        "bytes": sum(entry.bytes for entry in gone),
        "kinds": Counter(entry.kind for entry in gone),
    }


def prune_text(data: dict[str, Any]) -> str:
    """Return a ``prune_report`` in a line."""
    what = ", ".join(f"{count} {kind}" for kind, count in data["kinds"].items()) or "nothing"
    return f"{data['directory']}: {bytes_text(data['bytes'])} freed, deleted {what}"


def _age_s(text: str) -> float:
    match = re.fullmatch(r"(\d{1,6})([dhm])", text)
    if match is None:
        raise ModelError("bad value", where="--older-than", expected="a number with d, h or m, as 30d", got=repr(text))
    return float(match[1]) * _UNIT_S[match[2]]


def _content(entry: Entry) -> dict[str, Any]:
    """Return what an entry's file says."""
    try:
        return _READERS[entry.kind](entry.path) if entry.kind in _READERS else {}
    except (HipdnnMlirError, OSError, ValueError, LookupError, TypeError):
        return {"damaged": _DAMAGED}


def _program(path: Path) -> dict[str, Any]:
    program = _runtime.Program.load(str(path))
    text = json.loads(program.text)
    return {
        "target": program.target,
        "model": text["model"]["name"],
        "inputs": ports_text(program.inputs),
        "outputs": ports_text(program.outputs),
        "compiler": text["producer"],
    }


def _placement(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text())
    nodes = [len(part["nodes"]) for part in found["partitions"]]
    return {"programs": len(nodes), "nodes": sum(nodes), "graphs": found["graphs"]}


def _sealed(path: Path) -> dict[str, Any]:
    line = _runtime.sealed_line(str(path))
    if line is None:
        raise ValueError
    return dict(json.loads(line))


_READERS = {
    "program": _program,
    "placement": _placement,
    "refused-model": lambda path: {"reason": json.loads(path.read_text())["reason"]},
    "plan": _sealed,
    "refused-graph": _sealed,
}


def _shown_time(seconds: float) -> str:
    """Return a time to the minute, in local time with the zone's name."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M %Z")


def _line(content: dict[str, Any]) -> str:
    """Return what an entry says, in short."""
    match content:
        case {"damaged": text} | {"summary": text} | {"reason": text}:
            return str(text)
        case {"target": target, "model": model, "inputs": inputs, "outputs": outputs, "compiler": compiler}:
            return f"{model} for {target}: {inputs} -> {outputs}; {_cell(compiler)}"
        case {"programs": programs, "nodes": nodes}:
            return f"programs {programs}, nodes {nodes}"
        case {"engine": engine, "time_us": time_us}:
            return f"{engine}, {time_us:.1f} us" if time_us else str(engine)
    return ""


def _cell(value: Any) -> str:
    return ", ".join(map(str, _flat(value))) if isinstance(value, dict | list) else str(value)


def _flat(value: dict[str, Any] | list[Any]) -> Iterable[object]:
    return (f"{name} {each}" for name, each in value.items()) if isinstance(value, dict) else value
