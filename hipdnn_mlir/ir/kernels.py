"""Kernels of a program, in front of its functions."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from torch_mlir import ir

from .dialect import OVERWRITES, KernelOp


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
