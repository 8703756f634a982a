"""hipdnn-launch-to-kernel: launches on buffers become calls of kernels; equal ones share one `hipdnn.kernel`."""

import json
from typing import Any

from torch_mlir import ir

from hipdnn_mlir.dialect import create_launch_kernel, input_count
from hipdnn_mlir.errors import PassError, Reject, UnsupportedError
from hipdnn_mlir.ir_view import node_name
from hipdnn_mlir.ops.kernels import Kernel
from hipdnn_mlir.region import region_kernel
from hipdnn_mlir.target import Target, find_target

from .graph_to_executable import packed_operands, storage
from .registration import body, functions, module_pass

NAME = "hipdnn-launch-to-kernel"


@module_pass(NAME)
def launch_to_kernel(module: Any, *, target: str = "host") -> None:
    """Describe every launch with the strides its buffers have and replace it by a call of a kernel named after the description's digest.

    An operand whose strides the kernel cannot take is copied to C order first.

    Before: `"hipdnn.launch"(%data, %indices, %y) ({...})` on memrefs.
    After: `"hipdnn.kernel"() {sym_name = "k_...", description = "{...}"}` once, and
    `"hipdnn.launch_kernel"(%data, %indices, %y) {kernel = @k_...}`.

    Args:
        module: the module operation.
        target: whose port has the kernels.
    """
    library = find_target(target)
    made: dict[str, Any] = {}
    for function in functions(module):
        for operation in body(function):
            if operation.name == "hipdnn.launch":
                _compile(module, operation, library, made)


def _compile(module: Any, operation: Any, target: Target, made: dict[str, Any]) -> None:
    kernel = _described(operation)
    if isinstance(kernel, Reject):
        for copy in packed_operands(operation):
            if copy.name == "hipdnn.launch":  # a copy that is a graph waits for its own pass
                _compile(module, copy, target, made)
        kernel = _described(operation)
    if isinstance(kernel, Reject):
        raise PassError(f"a claimed region does not compile: {kernel}", pass_name=NAME)
    if kernel.function not in target.kernels:
        reason = f"target {target.name} has no {kernel.function} kernel"
        raise UnsupportedError([Reject(kernel.summary(), "kernel", reason, node_name(operation))])
    symbol = f"k_{kernel.digest()}"
    if symbol not in made:
        made[symbol] = _kernel(module, symbol, kernel, operation)
    ins = input_count(operation)
    with ir.InsertionPoint(operation):
        create_launch_kernel(symbol, list(operation.operands)[:ins], list(operation.operands)[ins:], operation.location)
    operation.erase()


def _described(operation: Any) -> Kernel | Reject:
    stored = [storage(value) for value in operation.operands]
    ins = input_count(operation)
    return region_kernel(operation, stored[:ins], stored[ins:])


def _kernel(module: Any, symbol: str, kernel: Kernel, operation: Any) -> Any:
    operands = [{"role": t.role, "index": t.index, "offset": t.offset} for t in kernel.tensors]
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]), operation.location:
        return ir.Operation.create(
            "hipdnn.kernel",
            attributes={
                "sym_name": ir.StringAttr.get(symbol),
                "summary": ir.StringAttr.get(kernel.summary()),
                "operands_json": ir.StringAttr.get(json.dumps(operands, separators=(",", ":"))),
                "description": ir.StringAttr.get(json.dumps(kernel.description(), separators=(",", ":"))),
            },
        )
