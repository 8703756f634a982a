"""Kernels of a program, with code for the GPU where the target is one."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch_mlir import ir

from ..errors import Reject, UnsupportedError
from ..ir.dialect import OVERWRITES
from ..ir.view import node_name
from . import Architecture, GpuKernel, find_architecture, link_code_object


@dataclass(frozen=True)
class Generated:
    """Code of a kernel.

    Attributes:
        launches: as program files have them, in order.
        overwrites: tensors of the kernel in whose memory its out may lie.
    """

    launches: list[dict[str, Any]]
    overwrites: tuple[int, ...]


def generated_code(
    write: Callable[[Architecture], GpuKernel | Reject], architecture: str, order: Sequence[int], operation: Any
) -> Generated:
    """Compile a kernel.

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
    launches = [_code(launch, order) for launch in (*made.preceded_by, made)]
    return Generated(launches, tuple(order[number] for number in made.overwrites))


def _code(launch: GpuKernel, order: Sequence[int]) -> dict[str, Any]:
    if isinstance(launch.code, str):
        encoding, image = "text", launch.code
    else:
        encoding, image = "base64", base64.b64encode(link_code_object(launch.code)).decode()
    code = {
        "function": launch.name,
        "grid": launch.grid,
        "block": launch.block,
        "arguments": [order[number] for number in launch.arguments],
        "encoding": encoding,
        "image": image,
    }
    return code | ({"waits": True} if find_architecture(launch.architecture).waits_in_kernels else {})


def create_kernel(
    module: Any,
    symbol: str,
    summary: str,
    operands: list[dict[str, Any]],
    description: Mapping[str, Any],
    operation: Any,
    overwrites: Sequence[int] = (),
) -> Any:
    """Put a `hipdnn.kernel` in front of a module's functions; `overwrites` are numbers of its operands."""
    places = [operands[number]["index"] for number in overwrites if _is_whole(operands, number)]
    shared = {OVERWRITES: ir.DenseI64ArrayAttr.get(places)} if places else {}
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]), operation.location:
        return ir.Operation.create(
            "hipdnn.kernel",
            attributes={
                "sym_name": ir.StringAttr.get(symbol),
                "summary": ir.StringAttr.get(summary),
                "operands_json": ir.StringAttr.get(json.dumps(operands, separators=(",", ":"))),
                "description": ir.StringAttr.get(json.dumps(description, separators=(",", ":"))),
                **shared,
            },
        )


def _is_whole(operands: list[dict[str, Any]], number: int) -> bool:
    """Whether one operand is all that a kernel sees of an argument of its calls, from its first element on."""
    same = [o for o in operands if (o["role"], o["index"]) == (operands[number]["role"], operands[number]["index"])]
    return len(same) == 1 and not same[0].get("offset")
