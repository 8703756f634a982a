"""PyTorch's rules of mixed types, written out: operands of other types than an op computes in are cast first."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, fx

from .spelling import Writer

aten = torch.ops.aten
_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_MIXED = frozenset({
    "add", "sub", "rsub", "mul", "div", "maximum", "minimum", "remainder", "fmod", "bitwise_and", "bitwise_or", "bitwise_xor", "atan2",
    "where", "sum", "mean", "prod", "clamp", "clamp_min", "clamp_max", "cumsum", "cumprod",
    *_COMPARISONS,
})  # fmt: skip
"""Ops that take operands of other types than they compute in."""
_OF_FLOATS = frozenset({
    "sqrt", "rsqrt", "exp", "log", "sin", "cos", "tan", "tanh", "sigmoid", "erf", "reciprocal", "softmax", "log_softmax", "logsumexp",
    "acos", "asin", "atan", "acosh", "asinh", "atanh", "sinh", "cosh",
})  # fmt: skip
_LOGICAL = frozenset({"logical_and", "logical_or", "logical_xor", "logical_not"})


def promoted(
    writer: Writer, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """The arguments with casts where the op would cast.

    Args:
        writer: writes calls.
        target: the op.
        args: its arguments.
        kwargs: its keyword arguments.
        result: its fake result.
    """
    name = getattr(target, "_opname", "")
    if not isinstance(result, Tensor) or name not in _MIXED | _OF_FLOATS | _LOGICAL:
        return args, kwargs
    wanted = _computed_in(name, args, result)
    first = 1 if name == "where" else 0
    made = [
        _cast(writer, arg, wanted) if index >= first and isinstance(arg, fx.Node) else arg
        for index, arg in enumerate(args)
    ]
    return tuple(made), kwargs


def _computed_in(name: str, args: tuple[Any, ...], result: Tensor) -> torch.dtype:
    """The type that an op computes in."""
    if name in _LOGICAL:
        return torch.bool
    if name in _COMPARISONS:
        return torch.result_type(*(arg.meta["val"] if isinstance(arg, fx.Node) else arg for arg in args[:2]))
    return result.dtype


def _cast(writer: Writer, value: fx.Node, dtype: torch.dtype) -> fx.Node:
    found = value.meta["val"]
    if not isinstance(found, Tensor) or found.dtype is dtype:
        return value
    if dtype is torch.bool:
        return writer.call(aten.ne.Scalar, value, 0)
    return writer.call(aten.to.dtype, value, dtype)
