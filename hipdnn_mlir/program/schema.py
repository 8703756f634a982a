"""A hipDNN program in memory, field by field as docs/program-format.md describes the file."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from .expressions import Size, encode

FORMAT = 1
OPEN_SIZES_FORMAT = 2
"""The first format with symbols."""
KERNELS_FORMAT = 2
"""The first format with kernels."""
CODE_FORMAT = 3
"""The first format with code in kernels."""
INSTANCES_FORMAT = 4
"""The first format with a program for each combination of buckets."""
METADATA_KEY = "hipdnn_program"
CHECKSUM_KEY = "hipdnn_checksum"

BufferKind = Literal["input", "output", "constant", "temp"]


@dataclass
class Port:
    """An input or output: ONNX name, dtype name, dims, buffer index."""

    name: str
    dtype: str
    dims: Sequence[Size]
    buffer: int


@dataclass
class Constant:
    """A tensor and the buffer that shows it.

    The tensor is one of the file, or, where `values` is set, of that dtype and those dims with elements computed from the open sizes: one
    that stands for all, or each one in C order.
    """

    tensor: str
    buffer: int
    dtype: str = ""
    dims: Sequence[Size] = ()
    values: Sequence[Any] | None = None


@dataclass
class Buffer:
    """Something a step can point into; `first` and `last` step that touch it, -1 where none does."""

    kind: BufferKind
    bytes: int
    first: int = -1
    last: int = -1


@dataclass
class Location:
    """A place in a buffer; offset in bytes."""

    buffer: int
    offset: int


@dataclass
class Executable:
    """A compiled graph: name (digest), one line for people, engine it was claimed for, operands in uid order, descriptors."""

    name: str
    summary: str
    engine: str
    operands: list[dict[str, Any]]
    descriptors: list[Any]


@dataclass
class Kernel:
    """A kernel: name (digest), one line for people, function, tensors (operands first) and attributes as the file has them.

    `code` is set for a GPU: the image, the name of its function, `grid` and `block`, and whether it `waits` itself.
    """

    name: str
    summary: str
    function: str
    tensors: list[dict[str, Any]]
    attributes: dict[str, Any]
    code: dict[str, Any] | None = None


@dataclass
class Refused:
    """A graph that the library refused when the model was compiled for its device: name, nodes, words, and the steps in its place."""

    graph: str
    summary: str
    nodes: str
    reason: str
    steps: list[int] = field(default_factory=list)


@dataclass
class Execute:
    """Run an executable; `operands` match the executable's."""

    executable: int
    name: str
    operands: list[Location]
    kind: str = "execute"


@dataclass
class Launch:
    """Run a kernel; `operands` match the kernel's tensors."""

    kernel: int
    name: str
    operands: list[Location]
    kind: str = "launch"


@dataclass
class Copy:
    """Copy contiguous bytes."""

    name: str
    bytes: int
    src: Location
    dst: Location
    kind: str = "copy"


Step = Execute | Launch | Copy


@dataclass
class Instance:
    """The program for one combination of buckets: a size per symbol, and the program."""

    sizes: list[int]
    program: "ProgramModel"


@dataclass
class ProgramModel:
    """Everything but the weights.

    `symbols` names the open sizes; where there are any, every number may be an expression of them, an entry of `expressions`. The program
    holds where all `conditions` do: (relation, a, b, node that needs it). `buckets` are, per symbol, the sizes that it is rounded up to.
    `refused` is what became of graphs that the device's library had no plan for; `tf32` allows f32 matmuls to round.
    `ranges` has the valid values of inputs whose elements are indices: from the first number to the second one, that one excluded.

    Where code is made for exact sizes there are `instances`, one for each combination of buckets, and no buffers, constants and steps but
    theirs. `exact` says per symbol why sizes between its buckets are not rounded up, empty where they are.
    """

    target: str
    producer: dict[str, str]
    model: dict[str, str]
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    executables: list[Executable] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    expressions: list[list[Any]] = field(default_factory=list)
    conditions: list[list[Any]] = field(default_factory=list)
    buckets: list[list[int]] = field(default_factory=list)
    exact: list[str] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    tf32: bool = False
    format: int = FORMAT

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the file; what only programs with open sizes have is left out of others."""
        if self.instances:
            return self._with_instances()
        data = asdict(self)
        del data["instances"], data["exact"]
        for constant in data["constants"]:
            if constant["values"] is None:
                del constant["dtype"], constant["dims"], constant["values"]
        for kernel in data["kernels"]:
            if kernel["code"] is None:
                del kernel["code"]
        if self.kernels:
            has_code = any(kernel.code is not None for kernel in self.kernels)
            data["format"] = max(self.format, CODE_FORMAT if has_code else KERNELS_FORMAT)
        else:
            del data["kernels"]
        for name in ("refused", "ranges", "tf32"):
            if not data[name]:
                del data[name]
        if not any(self.buckets):
            del data["buckets"]
        if not self.symbols:
            del data["symbols"], data["expressions"], data["conditions"]
            return data
        return {**encode(data), "format": max(data["format"], OPEN_SIZES_FORMAT)}

    def _with_instances(self) -> dict[str, Any]:
        """The same of a program with instances: executables and kernels that are equal are in the file once."""
        pools: dict[str, dict[str, tuple[Any, int]]] = {"executables": {}, "kernels": {}}
        rows = []
        for instance in self.instances:
            row = instance.program.to_dict()
            for name in ("format", "target", "producer", "model", "ranges", "tf32"):
                row.pop(name, None)
            for name, pool in pools.items():
                row[name] = [_entered(pool, item) for item in row.get(name, [])]
            rows.append({"sizes": instance.sizes, **row})
        ports = {
            kind: [{"name": port.name, "dtype": port.dtype, "dims": encode(port.dims)} for port in found]
            for kind, found in (("inputs", self.inputs), ("outputs", self.outputs))
        }
        return {
            "format": INSTANCES_FORMAT,
            "target": self.target,
            **({"tf32": True} if self.tf32 else {}),
            **({"ranges": self.ranges} if self.ranges else {}),
            "producer": self.producer,
            "model": self.model,
            "symbols": self.symbols,
            "expressions": self.expressions,
            "conditions": encode(self.conditions),
            "buckets": self.buckets,
            "exact": self.exact,
            **ports,
            **{name: [item for item, _ in pool.values()] for name, pool in pools.items()},
            "instances": rows,
        }

    @property
    def stored_tensors(self) -> list[str]:
        """Names of the constants that are in the file; others hold their values themselves."""
        programs = [instance.program for instance in self.instances] or [self]
        named = [constant.tensor for program in programs for constant in program.constants if constant.values is None]
        return list(dict.fromkeys(named))

    @property
    def copies(self) -> int:
        """Number of steps that only move data, by themselves, as a graph or as a kernel."""
        return sum(self.summary(step) in ("", "copy") for step in self.steps)

    def summary(self, step: Step) -> str:
        """What a step computes, in one line for people; empty for a copy."""
        match step:
            case Execute():
                return self.executables[step.executable].summary
            case Launch():
                return self.kernels[step.kernel].summary
        return ""

    def touched(self, step: Step) -> list[Location]:
        """Every place a step reads or writes."""
        return [step.src, step.dst] if isinstance(step, Copy) else step.operands

    def set_liveness(self) -> None:
        """Fill in the first and last step that touch each buffer."""
        for index, step in enumerate(self.steps):
            for place in self.touched(step):
                buffer = self.buffers[place.buffer]
                buffer.first = index if buffer.first < 0 else buffer.first
                buffer.last = index


def _entered(pool: dict[str, tuple[Any, int]], item: Any) -> int:
    """The position of an item in a pool of different ones, keyed by their text."""
    return pool.setdefault(json.dumps(item, sort_keys=True), (item, len(pool)))[1]
