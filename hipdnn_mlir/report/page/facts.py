"""All that the page shows of a program, as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors import safe_open

from hipdnn_mlir_runtime import _runtime
from hipdnn_mlir_runtime.errors import DeviceError, ModelError, PlanRefusedError
from hipdnn_mlir_runtime.session.session import Session

from ...program.schema import Refused
from .layout import Layout, lay_out
from .memory import Arena, arena_of
from .sizes import Json, body_at, chosen_sizes
from .steps import Step, modules_of, steps_of, users_of


@dataclass(frozen=True)
class Port:
    """An input or output.

    Attributes:
        name: As in the model.
        dtype: Element type.
        dims: At the sizes that are shown.
        stated: As the program has them: numbers, or expressions of its dynamic dimensions.
        buffer: Its buffer.
        steps: The steps that read an input; those that wrote an output.
    """

    name: str
    dtype: str
    dims: list[int]
    stated: list[int | str]
    buffer: int
    steps: list[int]


@dataclass(frozen=True)
class Weight:
    """A constant of the program.

    Attributes:
        name: Of the tensor in the file.
        dtype: Element type.
        dims: Sizes.
        bytes: Of its elements.
        buffer: Its buffer.
        steps: The steps that read it.
        is_computed: Whether it is computed from the dynamic dimensions, and not in the file.
    """

    name: str
    dtype: str
    dims: list[int]
    bytes: int
    buffer: int
    steps: list[int]
    is_computed: bool


@dataclass(frozen=True)
class Facts:
    """A program at one combination of sizes.

    Attributes:
        model: Name of the ONNX model.
        digest: SHA-256 of the ONNX model.
        target: What it was compiled for.
        producer: Versions of what made it.
        sizes: A number per dynamic dimension.
        inputs: In the model's order.
        outputs: In the model's order.
        steps: In the order of execution.
        weights: In the file's order.
        modules: Executable or kernel -> lines that show it.
        arena: Memory over time.
        edges: From one node of the graph to another. Nodes are the inputs, then the steps, then the outputs.
        layout: Where the graph's nodes are drawn.
        plans: Per step what the library says of its plan; empty where there is none, or it is not loaded here.
        times_us: Microseconds per step, where it was profiled.
        torch_ir: Per step the torch dialect of its region; empty where the model was not at hand, and for steps that move data.
        refused: Graphs that the library refused when the model was compiled, with the steps in their place.
        not_loaded: Why this machine cannot load the program; else empty.
    """

    model: str
    digest: str
    target: str
    producer: dict[str, str]
    sizes: dict[str, int]
    inputs: list[Port]
    outputs: list[Port]
    steps: list[Step]
    weights: list[Weight]
    modules: dict[str, list[str]]
    arena: Arena
    edges: list[tuple[int, int]]
    layout: Layout
    plans: list[str]
    times_us: list[float]
    torch_ir: list[str]
    refused: list[Refused]
    not_loaded: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        data = asdict(self)
        for row, step in zip(data["steps"], self.steps, strict=True):
            row |= {"read_bytes": step.read_bytes, "written_bytes": step.written_bytes}
            for operand, made in zip(row["operands"], step.operands, strict=True):
                operand["bytes"] = made.bytes
        return data


def read_facts(
    path: Path,
    *,
    sizes: Mapping[str, int] | None = None,
    times_us: Sequence[float] | None = None,
    torch_ir: Mapping[str, str] | None = None,
) -> Facts:
    """Read a program file, so that everything in it is checked, and load it where its device is here.

    Args:
        path: The `.hipdnn` file.
        sizes: A number per dynamic dimension; one with buckets is shown at the largest where nothing is given.
        times_us: Microseconds per step.
        torch_ir: As `torch_ir.region_texts` returns it.

    Raises:
        ProgramError: The file is not a program, is broken, or has another format.
        PlanRefusedError: The target's library is on this machine, and refuses graphs.
        ModelError: A size is open or unknown; the times are not one per step.
    """
    parsed = _runtime.Program.load(str(path))
    program: Json = json.loads(parsed.text)
    chosen = chosen_sizes(program, sizes or {})
    body = body_at(program, chosen)
    steps, written = steps_of(body)
    if times_us is not None and len(times_us) != len(steps):
        raise ModelError("the times are not one per step", expected=f"{len(steps)} numbers", got=str(len(times_us)))
    session, not_loaded = _loaded(path, chosen)
    readers = users_of(steps, "in")
    inputs = [
        _port(port, row, readers.get(port["buffer"], []))
        for port, row in zip(body["inputs"], parsed.inputs, strict=True)
    ]
    outputs = [
        _port(port, row, written[port["buffer"]]) for port, row in zip(body["outputs"], parsed.outputs, strict=True)
    ]
    edges = _edges(inputs, steps, outputs)
    return Facts(
        model=program["model"].get("name") or "program",
        digest=program["model"].get("sha256", ""),
        target=program["target"],
        producer=program["producer"],
        sizes=chosen,
        inputs=inputs,
        outputs=outputs,
        steps=steps,
        weights=_weights(path, body, readers),
        modules=modules_of(body),
        arena=arena_of(body, steps, session),
        edges=edges,
        layout=lay_out(len(inputs) + len(steps) + len(outputs), edges),
        plans=[_plan(row) for row in session.steps] if session else [""] * len(steps),
        times_us=[float(time) for time in times_us or ()],
        torch_ir=[_ir(step, torch_ir or {}) for step in steps],
        refused=[Refused(**row) for row in body.get("refused", [])],
        not_loaded=not_loaded,
    )


def _loaded(path: Path, sizes: Mapping[str, int]) -> tuple[Session | None, str]:
    try:
        session = Session(path)
        if sizes:
            session.prewarm([sizes])
    except PlanRefusedError:
        raise
    except DeviceError as error:
        return None, str(error)
    return session, ""


def _ir(step: Step, texts: Mapping[str, str]) -> str:
    """The IR of a step's region; a copy that the compiler added is named after nodes of a region, and is none itself."""
    return "" if step.operations == "copy" else texts.get(step.nodes, "")


def _plan(row: Mapping[str, Any]) -> str:
    """The engine of a loaded step's plan, with the library's line about it."""
    return ": ".join(filter(None, (row.get("engine", ""), row.get("description", ""))))


def _port(port: Json, row: tuple[str, str, list[int | str]], steps: list[int]) -> Port:
    return Port(port["name"], port["dtype"], port["dims"], row[2], port["buffer"], steps)


def _weights(path: Path, body: Json, readers: Mapping[int, list[int]]) -> list[Weight]:
    found = []
    with safe_open(path, "np") as file:
        for constant in body["constants"]:
            is_computed = constant.get("values") is not None
            if is_computed:
                dtype, dims = constant.get("dtype", "f32"), constant.get("dims", [])
            else:
                stored = file.get_slice(constant["tensor"])
                dtype, dims = stored.get_dtype().lower(), stored.get_shape()
            buffer = constant["buffer"]
            size = body["buffers"][buffer]["bytes"]
            found.append(Weight(constant["tensor"], dtype, dims, size, buffer, readers.get(buffer, []), is_computed))
    return found


def _edges(inputs: Sequence[Port], steps: Sequence[Step], outputs: Sequence[Port]) -> list[tuple[int, int]]:
    first, last = len(inputs), len(inputs) + len(steps)
    found = [(index, first + reader) for index, port in enumerate(inputs) for reader in port.steps]
    found += [
        (first + writer, first + index)
        for index, step in enumerate(steps)
        for operand in step.operands
        for writer in operand.writers
    ]
    found += [(first + writer, last + index) for index, port in enumerate(outputs) for writer in port.steps]
    return sorted(set(found))
