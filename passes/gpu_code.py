"""Kernels of a program, with code for the GPU where the target is one."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch_mlir import ir

from hipdnn_mlir.errors import Reject, UnsupportedError
from hipdnn_mlir.gpu import Architecture, GpuKernel, find_architecture, link_code_object
from hipdnn_mlir.ir_view import node_name


def generated_code(
    write: Callable[[Architecture], GpuKernel | Reject], architecture: str, order: Sequence[int], operation: Any
) -> list[dict[str, Any]]:
    """Code for a kernel as program files have it, once for each of its launches.

    Args:
        write: compiles it for an architecture.
        architecture: name of the GPU's.
        order: where in the kernel's tensors each one stands that the code is written for.
        operation: what is compiled, for messages.

    Raises:
        UnsupportedError: there is no code for it.
    """
    made = write(find_architecture(architecture))
    if isinstance(made, Reject):
        raise UnsupportedError([Reject(made.op, made.rule, made.reason, node_name(operation))], target=architecture)
    return [_code(launch, order) for launch in (*made.preceded_by, made)]


def _code(launch: GpuKernel, order: Sequence[int]) -> dict[str, Any]:
    if isinstance(launch.code, str):
        encoding, image = "text", launch.code
    else:
        encoding, image = "base64", base64.b64encode(link_code_object(launch.code, launch.architecture)).decode()
    return {
        "function": launch.name,
        "grid": launch.grid,
        "block": launch.block,
        "arguments": [order[number] for number in launch.arguments],
        "encoding": encoding,
        "image": image,
    }


def create_kernel(
    module: Any,
    symbol: str,
    summary: str,
    operands: list[dict[str, Any]],
    description: Mapping[str, Any],
    operation: Any,
) -> Any:
    """Put a `hipdnn.kernel` in front of a module's functions."""
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]), operation.location:
        return ir.Operation.create(
            "hipdnn.kernel",
            attributes={
                "sym_name": ir.StringAttr.get(symbol),
                "summary": ir.StringAttr.get(summary),
                "operands_json": ir.StringAttr.get(json.dumps(operands, separators=(",", ":"))),
                "description": ir.StringAttr.get(json.dumps(description, separators=(",", ":"))),
            },
        )
