"""A hipDNN program in memory, field by field as docs/program-format.md describes the file."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ..ops.strides import Dims

FORMAT = 1
METADATA_KEY = "hipdnn_program"
CHECKSUM_KEY = "hipdnn_checksum"

BufferKind = Literal["input", "output", "constant", "temp"]


@dataclass
class Port:
    """An input or output: ONNX name, dtype name, dims, buffer index."""

    name: str
    dtype: str
    dims: Dims
    buffer: int


@dataclass
class Constant:
    """A tensor of the file and the buffer that shows it."""

    tensor: str
    buffer: int


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
class Execute:
    """Run an executable; `operands` match the executable's."""

    executable: int
    name: str
    operands: list[Location]
    kind: str = "execute"


@dataclass
class Copy:
    """Copy contiguous bytes."""

    name: str
    bytes: int
    src: Location
    dst: Location
    kind: str = "copy"


Step = Execute | Copy


@dataclass
class ProgramModel:
    """Everything but the weights."""

    target: str
    producer: dict[str, str]
    model: dict[str, str]
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    executables: list[Executable] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    format: int = FORMAT

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the file."""
        return {"format": self.format, **{key: value for key, value in asdict(self).items() if key != "format"}}

    @property
    def copies(self) -> int:
        """Number of steps that only move data, by themselves or as a graph."""
        return sum(isinstance(step, Copy) or self.executables[step.executable].summary == "copy" for step in self.steps)

    def touched(self, step: Step) -> list[Location]:
        """Every place a step reads or writes."""
        return step.operands if isinstance(step, Execute) else [step.src, step.dst]

    def set_liveness(self) -> None:
        """Fill in the first and last step that touch each buffer."""
        for index, step in enumerate(self.steps):
            for place in self.touched(step):
                buffer = self.buffers[place.buffer]
                buffer.first = index if buffer.first < 0 else buffer.first
                buffer.last = index
