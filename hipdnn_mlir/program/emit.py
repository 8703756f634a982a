"""memref program -> flat program: buffers, executables, steps."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from math import prod
from typing import Any

from torch_mlir import ir

from ..errors import PassError, RefusedPlan
from ..ir.constants import constant_name
from ..ir.dialect import input_count
from ..ir.imported import Imported, TensorInfo
from ..ir.split_region import REFUSED
from ..ir.types import memref_strides
from ..ir.view import node_name
from ..ir.views import VIEWS, base
from .schema import Buffer, Constant, Copy, Executable, Execute, Kernel, Launch, Location, Port, ProgramModel, Refused

_BITS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16, "i64": 64, "i32": 32, "i16": 16, "i8": 8, "i1": 8}


def emit(
    imported: Imported, target: str, producer: dict[str, str], refused: Sequence[RefusedPlan] = ()
) -> ProgramModel:
    """Flatten `@main` of a fully lowered module.

    Args:
        imported: the module, its inputs and outputs.
        target: what it is compiled for.
        producer: versions of the compiler and of what it is made of.
        refused: graphs that the device's library refused; those that the model has are recorded.

    Raises:
        PassError: an operation is left that is no step.
    """
    return _Emission(imported, target, producer, refused).run()


class _Emission:
    def __init__(
        self, imported: Imported, target: str, producer: dict[str, str], refused: Sequence[RefusedPlan]
    ) -> None:
        self._imported = imported
        self._program = ProgramModel(target, producer, {"name": imported.name, "sha256": imported.sha256})
        self._buffers: dict[Any, int] = {}
        self._executables: dict[str, int] = {}
        self._kernels: dict[str, tuple[int, list[dict[str, Any]]]] = {}
        self._refused = {plan.graph: Refused(**asdict(plan)) for plan in refused}

    def run(self) -> ProgramModel:
        operations = [op.operation for op in self._imported.module.body.operations]
        for operation in operations:
            if operation.name == "hipdnn.executable":
                self._executable(operation)
            elif operation.name == "hipdnn.kernel":
                self._kernel(operation)
        main = next(op for op in operations if op.name == "func.func")
        self._arguments(main.regions[0].blocks[0].arguments)
        for item in main.regions[0].blocks[0].operations:
            self._operation(item.operation)
        self._program.set_liveness()
        self._program.refused = [plan for plan in self._refused.values() if plan.steps]
        return self._program

    def _executable(self, operation: Any) -> None:
        text = {
            name: str(ir.StringAttr(operation.attributes[name]).value)
            for name in ("sym_name", "summary", "engine", "operands_json", "descriptors")
        }
        self._executables[text["sym_name"]] = len(self._program.executables)
        self._program.executables.append(
            Executable(
                text["sym_name"],
                text["summary"],
                text["engine"],
                json.loads(text["operands_json"]),
                json.loads(text["descriptors"]),
            )
        )

    def _kernel(self, operation: Any) -> None:
        name, summary, operands, description = (
            str(ir.StringAttr(operation.attributes[key]).value)
            for key in ("sym_name", "summary", "operands_json", "description")
        )
        self._kernels[name] = len(self._program.kernels), json.loads(operands)
        self._program.kernels.append(Kernel(name, summary, **json.loads(description)))

    def _arguments(self, arguments: Any) -> None:
        """Inputs come first, constants where marked, destinations of results last."""
        plain = [value for value in arguments if constant_name(value) is None]
        inputs, outputs = self._imported.inputs, self._imported.outputs
        if len(plain) != len(inputs) + len(outputs):
            raise PassError(
                f"@main has {len(plain)} plain arguments for {len(inputs)} inputs and {len(outputs)} outputs",
                pass_name="emit",
            )
        for value in arguments:
            name = constant_name(value)
            if name is not None:
                self._program.constants.append(Constant(name, self._buffer(value, "constant")))
        for value, info in zip(plain, [*inputs, *outputs], strict=True):
            is_input = len(self._program.inputs) < len(inputs)
            ports = self._program.inputs if is_input else self._program.outputs
            ports.append(self._port(value, info, "input" if is_input else "output"))

    def _port(self, value: Any, info: TensorInfo, kind: Any) -> Port:
        return Port(info.name, info.dtype.name, info.dims, self._buffer(value, kind))

    def _buffer(self, value: Any, kind: Any) -> int:
        memref = ir.MemRefType(value.type)
        size = prod(memref.shape) * _element_bytes(memref)
        self._buffers[value] = len(self._program.buffers)
        self._program.buffers.append(Buffer(kind, size))
        return self._buffers[value]

    def _operation(self, operation: Any) -> None:
        name = str(operation.name)
        if REFUSED in operation.attributes:
            for graph in ir.ArrayAttr(operation.attributes[REFUSED]):
                self._refused[ir.StringAttr(graph).value].steps.append(len(self._program.steps))
        if name == "memref.alloc":
            self._buffer(operation.results[0], "temp")
        elif name == "hipdnn.execute":
            self._execute(operation)
        elif name == "hipdnn.launch_kernel":
            self._launch(operation)
        elif name == "memref.copy":
            self._copy(operation)
        elif name not in (*VIEWS, "func.return"):
            raise PassError(f"{name} is left in the program", pass_name="emit", where=node_name(operation) or None)

    def _place(self, value: Any, offset: int = 0) -> Location:
        """Where a buffer lies, or what is `offset` elements behind its first one."""
        layout = memref_strides(value.type)
        if layout is None:
            raise PassError(f"a buffer of type {value.type} has no static strides", pass_name="emit")
        return Location(self._buffers[base(value)], (layout[1] + offset) * _element_bytes(ir.MemRefType(value.type)))

    def _execute(self, operation: Any) -> None:
        symbol = str(ir.FlatSymbolRefAttr(operation.attributes["executable"]).value)
        index = self._executables[symbol]
        places = self._places(operation, self._program.executables[index].operands)
        self._program.steps.append(Execute(index, node_name(operation), places))

    def _launch(self, operation: Any) -> None:
        index, operands = self._kernels[str(ir.FlatSymbolRefAttr(operation.attributes["kernel"]).value)]
        self._program.steps.append(Launch(index, node_name(operation), self._places(operation, operands)))

    def _places(self, operation: Any, operands: list[dict[str, Any]]) -> list[Location]:
        """Where the operands of a call lie, in the callee's order."""
        ins, values = input_count(operation), list(operation.operands)
        found = [(values[o["index"] + (0 if o["role"] == "in" else ins)], o.get("offset", 0)) for o in operands]
        return [self._place(value, offset) for value, offset in found]

    def _copy(self, operation: Any) -> None:
        source, destination = operation.operands
        kind = ir.MemRefType(source.type)
        size = prod(kind.shape) * _element_bytes(kind)
        if size:
            self._program.steps.append(Copy(node_name(operation), size, self._place(source), self._place(destination)))


def _element_bytes(kind: Any) -> int:
    return _BITS[str(kind.element_type)] // 8
