"""Kernels of a program, with code for the GPU where the target is one."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch_mlir import ir

from hipdnn_mlir_runtime.errors import Reject, UnsupportedError

from ..ir.dialect import OVERWRITES, KernelOp
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
    write: Callable[[Architecture], GpuKernel | Reject], architecture: str, order: Sequence[int], op: ir.OpView
) -> Generated:
    """Compile a kernel.

    Args:
        write: compiles it for an architecture.
        architecture: name of the GPU's.
        order: where in the kernel's tensors each one stands that the code is written for.
        op: what is compiled, for messages.

    Raises:
        UnsupportedError: there is no code for it.
    """
    made = write(find_architecture(architecture))
    if isinstance(made, Reject):
        raise UnsupportedError([Reject(made.op, made.rule, made.reason, node_name(op))], target=architecture)
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
    module: ir.Operation,
    symbol: str,
    summary: str,
    operands: list[dict[str, Any]],
    description: Mapping[str, Any],
    op: ir.OpView,
    overwrites: Sequence[int] = (),
) -> KernelOp:
    """Put the kernel of an op in front of a module's functions; `overwrites` are numbers of its operands."""
    texts = (symbol, summary, *(json.dumps(part, separators=(",", ":")) for part in (operands, description)))
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]), op.location:
        kernel = KernelOp(*map(ir.StringAttr.get, texts))
        places = [operands[number]["index"] for number in overwrites if _is_whole(operands, number)]
        if places:
            kernel.attributes[OVERWRITES] = ir.DenseI64ArrayAttr.get(places)
    return kernel


def _is_whole(operands: list[dict[str, Any]], number: int) -> bool:
    """Whether one operand is all that a kernel sees of an argument of its calls, from its first element on."""
    same = [o for o in operands if (o["role"], o["index"]) == (operands[number]["role"], operands[number]["index"])]
    return len(same) == 1 and not same[0].get("offset")
