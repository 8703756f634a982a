"""A program in memory: the records of a file, as schema.json has them and docs/program-format.md shows them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from importlib import resources
from typing import Any, Literal

from hipdnn_mlir_runtime.expressions import Size, encode

SCHEMA: dict[str, Any] = json.loads(resources.files(__package__).joinpath("schema.json").read_text())
"""The records and their fields; the C++ reader is made from it too."""
FORMAT: int = SCHEMA["format"]
METADATA_KEY = "hipdnn_program"
CHECKSUM_KEY = "hipdnn_checksum"
CACHE_KEY = "hipdnn_cache_key"
_FIELDS: dict[str, dict[str, Any]] = {name: record["fields"] for name, record in SCHEMA["records"].items()}

# records: generated
BufferKind = Literal["input", "output", "constant", "temp"]
Role = Literal["in", "out"]
Encoding = Literal["text", "base64"]
Relation = Literal["<", "<=", "==", "!="]


@dataclass
class Port:
    """An input or output: a dense array in C order."""

    name: str
    """Its name in the ONNX model."""
    dtype: str
    """Element type."""
    dims: Sequence[Size]
    """Dims."""
    buffer: int
    """Its buffer; -1 where the file holds specializations, which have their own."""


@dataclass
class Constant:
    """A tensor that the program reads. It is in the file, or, with `values`, computed from the symbols."""

    tensor: str
    """Name of the tensor in the file. A computed constant has one too."""
    buffer: int
    """Its buffer."""
    dtype: str = "f32"
    """Element type of a computed constant."""
    dims: Sequence[Size] = field(default_factory=list)
    """Dims of a computed constant."""
    values: list[Any] | None = None
    """Elements of a computed constant: one for all, or each one in C order. A value is a number of the element type, or an
    expression."""


@dataclass
class Buffer:
    """Memory that steps use."""

    kind: BufferKind
    """`input` and `constant` are never written. The loader places each `temp` in its arena."""
    bytes: int
    """Size of its contents. Workspaces are no buffers."""


@dataclass
class Location:
    """A place in a buffer."""

    buffer: int
    """Index in `buffers`."""
    offset: int
    """In bytes."""


@dataclass
class Executable:
    """A hipDNN graph."""

    name: str
    """`g_` and the first 16 hexadecimal digits of SHA-256 over the descriptors."""
    summary: str
    """What it computes, for people: `conv2d + bias + relu`."""
    engine: str
    """Engine that the compiler expects to take it."""
    operands: list[dict[str, Any]]
    """In the order of their uids."""
    descriptors: list[Any]
    """See [descriptors](#descriptors)."""


@dataclass
class Kernel:
    """A computation that is no hipDNN graph, or one that no library takes."""

    name: str
    """`k_` and the first 16 hexadecimal digits of SHA-256 over the description."""
    summary: str
    """What it computes, for people."""
    function: str
    """On the CPU a function of [the host library](host-library.md). With `code` it is for people."""
    tensors: list[dict[str, Any]]
    """The operands, in order."""
    attributes: dict[str, Any]
    """An object, whose keys depend on the function."""
    code: dict[str, Any] | None = None
    """Only where the target is a GPU."""


@dataclass
class Refused:
    """A graph that the device's library refused when the model was compiled for it. For people."""

    graph: str
    """Its name."""
    summary: str
    """What it computes."""
    nodes: str
    """The ONNX nodes it was made from."""
    reason: str
    """The library's words."""
    steps: list[int] = field(default_factory=list)
    """The steps that run in its place."""


@dataclass
class Execute:
    """Step that runs an executable."""

    executable: int
    """Index in `executables`."""
    name: str
    """The ONNX nodes it was made from."""
    operands: list[Location]
    """In the order of the executable's operands."""
    kind: str = "execute"


@dataclass
class Launch:
    """Step that runs a kernel."""

    kernel: int
    """Index in `kernels`."""
    name: str
    """The ONNX nodes it was made from."""
    operands: list[Location]
    """In the order of the kernel's tensors."""
    kind: str = "launch"


@dataclass
class Copy:
    """Step that copies contiguous bytes."""

    name: str
    """The ONNX node it was made from."""
    bytes: int
    """How many."""
    src: Location
    """From here."""
    dst: Location
    """To here, apart from the source."""
    kind: str = "copy"


Step = Execute | Launch | Copy


@dataclass
class Condition:
    """What must hold for the sizes of a run."""

    relation: str
    """Between the two sizes."""
    a: Size
    """Left side."""
    b: Size
    """Right side."""
    node: str
    """The ONNX node that needs it."""


@dataclass
class Cache:
    """A cache of [batch, heads, rows, features], whose rows a run adds to."""

    input: int
    """Its position among the inputs."""
    output: int
    """Its position among the outputs: the same buffer may be bound as both."""


@dataclass
class SizedInput:
    """An input with a dim that is as long as what is valid in the caches after a run."""

    input: int
    """Its position among the inputs."""
    axis: int
    """The dim. What is behind it has no effect."""


@dataclass
class Growing:
    """Caches that grow in the ONNX model, and are buffers in the program."""

    length: int
    """Position of the input that says how many rows are valid before a run: i64[1]. The model has no such input."""
    rows: int
    """The symbol that is the number of rows of the buffers."""
    added: Size
    """How many rows a run adds."""
    caches: list[Cache]
    """All of them."""
    sized: list[SizedInput]
    """Masks, mostly."""


@dataclass
class ProgramFields:
    """The whole. Its `inputs` and `outputs` are those of every specialization."""

    target: str
    """Which library's engines it was compiled for: `host`, `sm_90`, `gfx942`, ..."""
    producer: dict[str, str]
    """Versions of the compiler and of what it uses."""
    model: dict[str, str]
    """`name` and `sha256` of the ONNX model."""
    executables: list[Executable] = field(default_factory=list)
    """Of all steps."""
    kernels: list[Kernel] = field(default_factory=list)
    """Of all steps."""
    symbols: list[str] = field(default_factory=list)
    """Names of the dynamic dimensions. Each is, by itself, a dim of an input."""
    expressions: list[list[Any]] = field(default_factory=list)
    """See [dynamic dimensions](#dynamic-dimensions)."""
    conditions: list[Condition] = field(default_factory=list)
    """The program holds for sizes where all of these do."""
    buckets: list[list[int]] = field(default_factory=list)
    """Per symbol the rising sizes that it is rounded up to; an empty list leaves it as it is."""
    exact: list[str] = field(default_factory=list)
    """Per symbol why it accepts its buckets only and is not rounded up; an empty text where it is rounded."""
    filled: Sequence[Size] = field(default_factory=list)
    """Per symbol the size up to which inputs may be filled with zeros along it, which changes no output; the symbol itself where they
    may not. Empty where no input may be."""
    specializations: list["Specialization"] = field(default_factory=list)
    """See [specializations](#specializations)."""
    growing: Growing | None = None
    """Where caches grow in the model. See [growing caches](#growing-caches)."""
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Valid elements of inputs that hold indices: input -> [first, one past the last]. For tools that make inputs up; a run checks
    indices where it uses them."""
    sizing: dict[str, list[list[tuple[int, int]]]] = field(default_factory=dict)
    """Inputs from which sizes of results follow (axes, shapes, `k`), where the model declares those sizes: input -> per element spans
    of the numbers that it may be, each [first, last]. A session refuses others."""
    coded: dict[str, str] = field(default_factory=dict)
    """Inputs and outputs whose elements are codes of a type of few bits, in the lower bits of a u8: name -> `i2`, `u2`, `i4`, `u4`,
    `f4e2m1`, `f8e4m3fnuz`, `f8e5m2fnuz` or `f8e8m0`. A session takes and gives arrays of that type."""
    counted: dict[str, list[str]] = field(default_factory=dict)
    """Outputs of which data decides how many rows count: name -> per dim the output, i64[1], that says how many, an empty text where
    all do. Those outputs stand here too, with an empty list: the model has none of them. A session cuts what it returns."""
    tf32: bool = False
    """f32 matmuls may round their operands to TF32."""
    inputs: list[Port] = field(default_factory=list)
    """In the model's order."""
    outputs: list[Port] = field(default_factory=list)
    """In the model's order."""
    constants: list[Constant] = field(default_factory=list)
    """In any order."""
    buffers: list[Buffer] = field(default_factory=list)
    """Every pointer that a step may use."""
    steps: list[Step] = field(default_factory=list)
    """In the order of execution. `kind` says which record a step is: `execute`, `launch` or `copy`."""
    refused: list[Refused] = field(default_factory=list)
    """Graphs that were replaced."""


# end of records


@dataclass
class Specialization:
    """The program for one combination of buckets: a size per symbol, and the program."""

    sizes: list[int]
    program: "ProgramModel"


@dataclass
class ProgramModel(ProgramFields):
    """Everything but the weights."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the file. Executables and kernels that are equal in several specializations are in it once."""
        data = {"format": FORMAT, **_record(self, _FIELDS["Body"] | _FIELDS["Program"])}
        pools: dict[str, dict[str, tuple[Any, int]]] = {"executables": {}, "kernels": {}}
        rows = []
        for made in self.specializations:
            row = {"sizes": made.sizes, **_record(made.program, _FIELDS["Body"])}
            for name, pool in pools.items():
                row[name] = [_entered(pool, _encoded(item)) for item in getattr(made.program, name)]
            rows.append(row)
        if rows:
            data["specializations"] = rows
            data |= {name: [item for item, _ in pool.values()] for name, pool in pools.items()}
        return data

    def in_order(self, inputs: Sequence[str], outputs: Sequence[str]) -> "ProgramModel":
        """The program with its inputs and outputs in another order; an input without a place in it comes last."""
        sides = []
        for ports, names in ((self.inputs, inputs), (self.outputs, outputs)):
            place = {name: index for index, name in enumerate(names)}
            sides.append(sorted(ports, key=lambda port: place.get(port.name, len(place))))
        moved = [
            [side.index(port) for port in old] for side, old in zip(sides, (self.inputs, self.outputs), strict=True)
        ]
        growing = self.growing
        if growing is not None:
            growing = replace(
                growing,
                length=moved[0][growing.length],
                caches=[Cache(moved[0][cache.input], moved[1][cache.output]) for cache in growing.caches],
                sized=[SizedInput(moved[0][entry.input], entry.axis) for entry in growing.sized],
            )
        return replace(self, inputs=sides[0], outputs=sides[1], growing=growing)

    @property
    def stored_tensors(self) -> list[str]:
        """Names of the constants that are in the file; others hold their values themselves."""
        programs = [made.program for made in self.specializations] or [self]
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


def _record(value: Any, rows: dict[str, Any]) -> dict[str, Any]:
    """The fields of a record as JSON, without those that may be missing and are; specializations are the caller's."""
    found = {
        name: (getattr(value, name), row)
        for name, row in rows.items()
        if name != "specializations" and hasattr(value, name)
    }
    return {
        name: _encoded(item)
        for name, (item, row) in found.items()
        if "default" not in row or (item and item != row["default"])
    }


def _encoded(value: Any) -> Any:
    """A value as JSON."""
    if isinstance(value, (int, float, str)):  # most are
        return value
    if is_dataclass(value):
        kind = {"kind": value.kind} if hasattr(value, "kind") else {}
        return kind | _record(value, _FIELDS[type(value).__name__])
    return [_encoded(item) for item in value] if isinstance(value, (list, tuple)) else encode(value)


def _entered(pool: dict[str, tuple[Any, int]], item: Any) -> int:
    """The position of an item in a pool of different ones, keyed by their text."""
    return pool.setdefault(json.dumps(item, sort_keys=True), (item, len(pool)))[1]
