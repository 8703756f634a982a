"""Marks what depends on the open sizes of a model, by comparing the model at several sizes; no pass, since it sees several modules."""

from collections.abc import Sequence
from typing import Any

from torch_mlir import ir

from ..errors import OpenSizeError
from ..ir.blocks import body, functions
from ..ir.constants import VARIES
from ..ir.types import is_tensor
from ..ir.view import defining, node_name, op_name


def mark_varying(modules: Sequence[Any]) -> None:
    """Set `hipdnn.varies` on ops whose results have other dims in one of the modules, literals of other values, and what they feed.

    Such ops are not evaluated at compile time, but literals are kept as constants, whose elements become expressions of the sizes.

    Args:
        modules: one model at several sizes of its inputs, in one context.

    Raises:
        OpenSizeError: the modules differ in more than numbers.
    """
    for parts in zip(*map(functions, modules), strict=True):
        bodies = [[op for op in body(function) if _makes_tensors(op)] for function in parts]
        for operations in zip(*bodies, strict=False):
            first = operations[0]
            if any(op_name(op) != op_name(first) for op in operations):
                raise OpenSizeError(
                    f"what {op_name(first)} does depends on an open size", where=node_name(first) or None
                )
            if _varies(operations):
                for operation in operations:
                    operation.attributes[VARIES] = ir.UnitAttr.get()


def _makes_tensors(operation: Any) -> bool:
    """Numbers and lists come and go with what sizes happen to be equal."""
    return any(is_tensor(result.type) for result in operation.results)


def _varies(operations: Sequence[Any]) -> bool:
    first = operations[0]
    if first.name == "torch.vtensor.literal":
        return any(op.attributes["value"] != first.attributes["value"] for op in operations)
    types = [[str(result.type) for result in op.results] for op in operations]
    feeds = (defining(operand) for operand in first.operands)
    return any(kinds != types[0] for kinds in types) or any(op is not None and VARIES in op.attributes for op in feeds)
