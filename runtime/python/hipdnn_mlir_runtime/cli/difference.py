"""How two program files differ: what goes in and out, steps with their graphs, weights."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .. import _runtime
from .render import bytes_text, counted
from .tables import emphasized, table

_HEADER_BYTES = 8
"""Of a safetensors file: the length of the JSON that follows."""
_SCALARS = ("format", "target", "producer", "tf32")
_FILLER = "hipdnn_mlir.filler"


@dataclass(frozen=True)
class ChangedStep:
    """A step that only one of the programs has: ``-`` the first, ``+`` the second."""

    sign: str
    number: int
    kind: str
    name: str
    operations: str


@dataclass(frozen=True)
class Difference:
    """What differs between two programs; everything is empty where they do the same.

    Attributes:
        fields: Field of the program -> its value in both.
        steps: Steps that only one has, in order.
        weights: Name of a tensor -> how it differs.
        bytes: Size of both files.
    """

    fields: Mapping[str, tuple[Any, Any]]
    steps: Sequence[ChangedStep]
    weights: Mapping[str, str]
    bytes: tuple[int, int]

    @property
    def is_empty(self) -> bool:
        """Whether the programs do the same."""
        return not (self.fields or self.steps or self.weights)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return {
            "equal": self.is_empty,
            "fields": {name: list(values) for name, values in self.fields.items()},
            "steps": [asdict(step) for step in self.steps],
            "weights": dict(self.weights),
            "bytes": list(self.bytes),
        }

    def __str__(self) -> str:
        sizes = " and ".join(map(bytes_text, self.bytes))
        if self.is_empty:
            return emphasized(f"The programs do the same ({sizes}).", "32")
        parts = [f"{sizes}"]
        if self.fields:
            fields = [(name, json.dumps(a), json.dumps(b)) for name, (a, b) in self.fields.items()]
            parts.append(table("fields", ("field", "first", "second"), fields))
        if self.steps:
            rows = [(step.sign, step.number, step.kind, step.name, step.operations) for step in self.steps]
            parts.append(
                table(f"{counted(rows, 'step')} in one only", ("", "#", "kind", "name", "operations"), rows, ["#"])
            )
        if self.weights:
            weights = [*self.weights.items()]
            parts.append(table(f"{counted(weights, 'tensor')} not equal", ("tensor", ""), weights))
        return "\n\n".join(parts)


def difference(first: Path, second: Path) -> Difference:
    """Compare two program files.

    Raises:
        ProgramError: One is not a program, is broken, or has another format.
    """
    a, b = (json.loads(_runtime.Program.load(str(path)).text) for path in (first, second))
    fields = {name: (a.get(name), b.get(name)) for name in _SCALARS if a.get(name) != b.get(name)}
    fields |= {name: (x, y) for name, x, y in _ports(a, b) if x != y}
    sizes = (first.stat().st_size, second.stat().st_size)
    return Difference(fields, _changed(_steps(a), _steps(b)), _weights(first, second), sizes)


def _ports(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterable[tuple[str, Any, Any]]:
    for kind in ("inputs", "outputs"):
        first, second = ([f"{port['name']}: {port['dtype']}{port['dims']}" for port in made[kind]] for made in (a, b))
        yield kind, first, second
    for kind in ("symbols", "buckets"):
        yield kind, a.get(kind, []), b.get(kind, [])
    yield "model", a["model"]["sha256"], b["model"]["sha256"]


def _steps(program: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Kind, name and operations of all steps, those of specializations behind their sizes."""
    bodies = [("", program)]
    for made in program.get("specializations", []):
        pools = {key: [program[key][index] for index in made[key]] for key in ("executables", "kernels")}
        bodies.append((" at " + "x".join(map(str, made["sizes"])), {**made, **pools}))
    return [
        (step["kind"], step["name"] + where, _operations(step, body))
        for where, body in bodies
        for step in body["steps"]
    ]


def _operations(step: Mapping[str, Any], body: Mapping[str, Any]) -> str:
    match step:
        case {"executable": index}:
            made = body["executables"][index]
            return f"{made['summary']} [{made.get('engine', '')}] {made['name']}"
        case {"kernel": index}:
            made = body["kernels"][index]
            return f"{made['summary']} [{made['function']}]"
    return "copy"


def _changed(a: Sequence[tuple[str, str, str]], b: Sequence[tuple[str, str, str]]) -> list[ChangedStep]:
    changed: list[ChangedStep] = []
    for tag, a0, a1, b0, b1 in difflib.SequenceMatcher(a=a, b=b, autojunk=False).get_opcodes():
        if tag != "equal":
            changed += [ChangedStep("-", number, *a[number]) for number in range(a0, a1)]
            changed += [ChangedStep("+", number, *b[number]) for number in range(b0, b1)]
    return changed


def _weights(first: Path, second: Path) -> dict[str, str]:
    """Return how tensors differ, by name."""
    with _Tensors(first) as a, _Tensors(second) as b:
        found = {name: "in the first only" for name in a.rows if name not in b.rows}
        found |= {name: "in the second only" for name in b.rows if name not in a.rows}
        for name, row in a.rows.items():
            other = b.rows.get(name)
            if other is None:
                continue
            if (row["dtype"], row["shape"]) != (other["dtype"], other["shape"]):
                shapes = [f"{one['dtype']}{one['shape']}" for one in (row, other)]
                found[name] = " is now ".join(shapes)
            elif a.bytes_of(name) != b.bytes_of(name):
                found[name] = "other values"
        return found


class _Tensors:
    """The tensors of a program file, by name; without those that only fill gaps."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        length = int.from_bytes(self._file.read(_HEADER_BYTES), "little")
        header: dict[str, Any] = json.loads(self._file.read(length))
        self._start = _HEADER_BYTES + length
        self.rows = {n: row for n, row in header.items() if n != "__metadata__" and not n.startswith(_FILLER)}

    def __enter__(self) -> _Tensors:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def bytes_of(self, name: str) -> bytes:
        """Return the bytes of a tensor."""
        begin, end = self.rows[name]["data_offsets"]
        self._file.seek(self._start + begin)
        return self._file.read(end - begin)
