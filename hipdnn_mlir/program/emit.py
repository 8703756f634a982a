"""memref program -> flat program: buffers, executables, steps."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from math import prod
from typing import Any

from torch_mlir import ir
from torch_mlir.dialects import func, memref

from hipdnn_mlir_runtime.errors import PassError, RefusedPlan

from ..ir.blocks import functions, operations
from ..ir.constants import constant_name
from ..ir.dialect import ExecutableOp, ExecuteOp, KernelOp, LaunchKernelOp, StepOp
from ..ir.imported import Imported, TensorInfo
from ..ir.split_region import REFUSED
from ..ir.types import memref_strides
from ..ir.view import node_name
from ..ir.views import VIEWS, base
from .schema import (
    Buffer,
    BufferKind,
    Constant,
    Copy,
    Executable,
    Execute,
    Kernel,
    Launch,
    Location,
    Port,
    ProgramModel,
    Refused,
)


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
        self._buffers: dict[ir.Value, int] = {}
        self._executables: dict[str, tuple[int, list[dict[str, Any]]]] = {}
        self._kernels: dict[str, tuple[int, list[dict[str, Any]]]] = {}
        self._refused = {plan.graph: Refused(**asdict(plan)) for plan in refused}

    def run(self) -> ProgramModel:
        module = self._imported.module.operation
        for op in operations(module):
            match op:
                case ExecutableOp():
                    self._executable(op)
                case KernelOp():
                    self._kernel(op)
        main = functions(module)[0]
        self._arguments(main.arguments)
        for op in operations(main):
            self._operation(op)
        self._program.refused = [plan for plan in self._refused.values() if plan.steps]
        return self._program

    def _executable(self, op: ExecutableOp) -> None:
        name, summary, engine = op.sym_name.value, op.summary.value, op.engine.value
        operands, descriptors = json.loads(op.operands_json.value), json.loads(op.descriptors.value)
        self._executables[name] = len(self._program.executables), operands
        roles = [{"uid": operand["uid"], "role": operand["role"]} for operand in operands]
        self._program.executables.append(Executable(name, summary, engine, roles, descriptors))

    def _kernel(self, op: KernelOp) -> None:
        name, description = op.sym_name.value, json.loads(op.description.value)
        self._kernels[name] = len(self._program.kernels), json.loads(op.operands_json.value)
        self._program.kernels.append(Kernel(name, op.summary.value, **description))

    def _arguments(self, arguments: Sequence[ir.Value]) -> None:
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

    def _port(self, value: ir.Value, info: TensorInfo, kind: BufferKind) -> Port:
        if info.coded:
            self._program.coded[info.name] = info.coded
        return Port(info.name, info.dtype.name, info.dims, self._buffer(value, kind))

    def _buffer(self, value: ir.Value, kind: BufferKind) -> int:
        size = prod(value.type.shape) * _element_bytes(value.type)
        self._buffers[value] = len(self._program.buffers)
        self._program.buffers.append(Buffer(kind, size))
        return self._buffers[value]

    def _operation(self, op: ir.OpView) -> None:
        for graph in op.attributes.get(REFUSED, ()):
            self._refused[graph.value].steps.append(len(self._program.steps))
        match op:
            case memref.AllocOp():
                self._buffer(op.memref, "temp")
            case ExecuteOp():
                index, operands = self._executables[op.executable.value]
                self._program.steps.append(Execute(index, node_name(op), self._places(op, operands)))
            case LaunchKernelOp():
                index, operands = self._kernels[op.kernel.value]
                self._program.steps.append(Launch(index, node_name(op), self._places(op, operands)))
            case memref.CopyOp():
                self._copy(op)
            case _ if not isinstance(op, (*VIEWS, func.ReturnOp)):
                name = op.operation.name
                raise PassError(f"{name} is left in the program", pass_name="emit", where=node_name(op) or None)

    def _place(self, value: ir.Value, offset: int = 0) -> Location:
        """Where a buffer lies, or what is `offset` elements behind its first one."""
        layout = memref_strides(value.type)
        if layout is None:
            raise PassError(f"a buffer of type {value.type} has no static strides", pass_name="emit")
        return Location(self._buffers[base(value)], (layout[1] + offset) * _element_bytes(value.type))

    def _places(self, call: StepOp, operands: list[dict[str, Any]]) -> list[Location]:
        """Where the operands of a call lie, in the callee's order."""
        groups = {"in": call.ins, "out": call.outs}
        return [self._place(groups[o["role"]][o["index"]], o.get("offset", 0)) for o in operands]

    def _copy(self, op: memref.CopyOp) -> None:
        kind = op.source.type
        size = prod(kind.shape) * _element_bytes(kind)
        if size:
            self._program.steps.append(Copy(node_name(op), size, self._place(op.source), self._place(op.target)))


def _element_bytes(kind: ir.MemRefType) -> int:
    return int(max(kind.element_type.width, 8)) // 8
