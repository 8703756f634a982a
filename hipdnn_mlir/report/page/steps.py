"""What each step of a program reads and writes, in bytes and tensors, and which steps wrote what it reads."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from hipdnn_mlir_runtime.abi import Descriptor
from hipdnn_mlir_runtime.dtypes import BY_NAME
from hipdnn_mlir_runtime.session.profiling.work import PICKS

from .descriptors import flops_of, lines_of, tensor_of
from .sizes import Json

TensorRow = tuple[str, str, list[int], list[int]]
"""Role, dtype, dims and strides."""


@dataclass(frozen=True)
class Operand:
    """A tensor of a step.

    Attributes:
        role: `in` or `out`.
        buffer: Index of its buffer.
        offset: Bytes from the buffer's start.
        extent: Bytes from its first to its last element.
        dtype: Element type; empty for a copy.
        dims: Sizes; of a copy its bytes.
        strides: In elements; empty for a copy.
        writers: For an `in`, the steps whose results lie there; none for inputs and weights.
    """

    role: str
    buffer: int
    offset: int
    extent: int
    dtype: str
    dims: list[int]
    strides: list[int]
    writers: list[int]

    @property
    def bytes(self) -> int:
        """Bytes of its elements, each counted once: a broadcast one is read once."""
        if self.dtype not in BY_NAME:
            return self.extent
        counted = [dim for dim, stride in zip(self.dims, self.strides, strict=True) if stride or not dim]
        return math.prod(counted) * BY_NAME[self.dtype].bytes


@dataclass(frozen=True)
class Step:
    """A step as the file has it.

    Attributes:
        kind: `execute`, `launch` or `copy`.
        operations: What it computes: `conv2d + bias + relu`.
        nodes: The ONNX nodes it was made from, joined by "+".
        engine: The engine it was compiled for, or the kernel's function; empty for a copy.
        module: Name of its executable or kernel; empty for a copy.
        operands: Its tensors.
        flops: Of matmuls, convolutions and attention; None where it has none.
    """

    kind: str
    operations: str
    nodes: str
    engine: str
    module: str
    operands: list[Operand]
    flops: int | None

    @property
    def read_bytes(self) -> int:
        """Bytes of what it reads; of the tensor that a kernel picks elements from, as much as it picks."""
        sizes = [operand.bytes for operand in self.operands if operand.role == "in"]
        if self.kind == "launch" and self.engine in PICKS:
            sizes[0] = min(sizes[0], self.written_bytes)
        return sum(sizes)

    @property
    def written_bytes(self) -> int:
        """Bytes of what it writes."""
        return sum(operand.bytes for operand in self.operands if operand.role == "out")


def steps_of(body: Json) -> tuple[list[Step], list[list[int]]]:
    """The steps of a body with numbers for sizes, and per buffer the steps that wrote what is in it at the end."""
    tensors = {
        "execute": [_executable_tensors(made) for made in body["executables"]],
        "launch": [
            [(t["role"], t["dtype"], t["dims"], t["strides"]) for t in made["tensors"]] for made in body["kernels"]
        ],
    }
    flops = [flops_of(made["descriptors"]) for made in body["executables"]]
    written = [_Written() for _ in body["buffers"]]
    steps: list[Step] = []
    for step in body["steps"]:
        operands = _operands(step, tensors, written)
        for operand in operands:
            if operand.role == "out":
                written[operand.buffer].write(len(steps), operand)
        steps.append(_step(step, body, operands, flops))
    return steps, [sorted({step for step, _ in rows.rows}) for rows in written]


def users_of(steps: Sequence[Step], *roles: str) -> dict[int, list[int]]:
    """Buffer -> the steps that use it in one of these roles, in order."""
    found: dict[int, list[int]] = defaultdict(list)
    for index, step in enumerate(steps):
        for buffer in {operand.buffer for operand in step.operands if operand.role in roles}:
            found[buffer].append(index)
    return found


def modules_of(body: Json) -> dict[str, list[str]]:
    """Executable or kernel -> lines that show it: descriptors with names, a kernel's fields."""
    found = {made["name"]: lines_of(made["descriptors"]) for made in body["executables"]}
    for made in body["kernels"]:
        lines = [f"function {made['function']}"]
        lines += [f"{t['role']} {t['dtype']} {t['dims']} strides {t['strides']}" for t in made["tensors"]]
        lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in made["attributes"].items()]
        code = made.get("code")
        if code:
            lines.append(
                f"code {code['function']} grid {code['grid']} block {code['block']}, {len(code['image'])} characters"
            )
        found[made["name"]] = lines
    return found


def _step(step: Json, body: Json, operands: list[Operand], flops: list[int | None]) -> Step:
    match step["kind"]:
        case "execute":
            made = body["executables"][step["executable"]]
            engine = made.get("engine", "")
            return Step(
                "execute",
                made.get("summary", ""),
                step["name"],
                engine,
                made["name"],
                operands,
                flops[step["executable"]],
            )
        case "launch":
            made = body["kernels"][step["kernel"]]
            text = made.get("summary") or made["function"]
            return Step("launch", text, step["name"], made["function"], made["name"], operands, None)
    return Step("copy", "copy", step["name"], "", "", operands, None)


def _executable_tensors(executable: Json) -> list[TensorRow]:
    known = {}
    for descriptor in executable["descriptors"]:
        if descriptor[0] == Descriptor.TENSOR_DESCRIPTOR:
            tensor = tensor_of(descriptor)
            known[tensor["uid"]] = tensor
    return [
        (operand["role"], *(known[operand["uid"]][key] for key in ("dtype", "dims", "strides")))
        for operand in executable["operands"]
    ]


def _operands(step: Json, tensors: dict[str, list[list[TensorRow]]], written: list[_Written]) -> list[Operand]:
    if step["kind"] == "copy":
        size = step["bytes"]
        return [
            _operand((role, "", [size], []), step[side], size, written)
            for role, side in (("in", "src"), ("out", "dst"))
        ]
    rows = tensors[step["kind"]][step["executable"] if step["kind"] == "execute" else step["kernel"]]
    return [_operand(row, place, _extent(*row[1:]), written) for row, place in zip(rows, step["operands"], strict=True)]


def _operand(row: TensorRow, place: Json, extent: int, written: list[_Written]) -> Operand:
    role, dtype, dims, strides = row
    buffer, offset = place["buffer"], place["offset"]
    writers = written[buffer].sources(offset, extent) if role == "in" else []
    return Operand(role, buffer, offset, extent, dtype, dims, strides, writers)


def _extent(dtype: str, dims: list[int], strides: list[int]) -> int:
    if 0 in dims:
        return 0
    size = BY_NAME[dtype].bytes if dtype in BY_NAME else 1
    return (1 + sum((dim - 1) * stride for dim, stride in zip(dims, strides, strict=True))) * size


class _Written:
    """What lies in a buffer: the steps that wrote it, without those whose bytes were overwritten as a whole."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, Operand]] = []

    def write(self, step: int, new: Operand) -> None:
        is_dense = new.bytes == new.extent

        def is_replaced(old: Operand) -> bool:
            covers = new.offset <= old.offset and old.offset + old.extent <= new.offset + new.extent
            # Rows of a concatenation lie between each other: extents overlap, bytes do not.
            return covers and (is_dense or (old.offset, old.dims, old.strides) == (new.offset, new.dims, new.strides))

        self.rows = [(other, old) for other, old in self.rows if not is_replaced(old)]
        self.rows.append((step, new))

    def sources(self, offset: int, extent: int) -> list[int]:
        """The steps that wrote something between these bytes."""
        found = (step for step, old in self.rows if old.offset < offset + extent and offset < old.offset + old.extent)
        return sorted(set(found))
