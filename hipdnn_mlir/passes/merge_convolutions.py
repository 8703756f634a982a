"""hipdnn-merge-convolutions: branches of one value that are added, and numbers for each channel behind them, as one convolution."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.blocks import erase_dead, functions, operations
from ..ir.constants import constant_values
from ..ir.convolutions import borders, lone_convolution, with_operands
from ..ir.literals import literal
from ..ir.module_pass import module_pass
from ..ir.types import tensor_type
from ..ir.view import argument, producer
from ..ir.view_chains import dims_of, padded, reshaped


@module_pass("hipdnn-merge-convolutions")
def merge_convolutions(module: ir.Operation) -> None:
    """Add up the constant filters of convolutions whose results are added and that read the same value in the same steps.

    Smaller filters get a border of zeros. The value itself, or it times a number for each channel, is a filter with one tap. A product or
    sum with a number for each channel, behind a convolution that nothing else reads, goes into its filter and bias. Blocks that are trained
    with branches (RepVGG, MobileOne, RepViT, FastViT) become one convolution each.

    Before: `%a = torch.aten.convolution %x, %w3x3, %b`; `%c = torch.aten.convolution %x, %w1x1, %d`; `%y = torch.aten.add.Tensor %a, %c`.
    After: `%y = torch.aten.convolution %x, %w3x3 + pad(%w1x1), %b + %d`.
    """
    for function in functions(module):
        merging = _Merging(constant_values(function))
        for op in operations(function):
            if isinstance(op, torch.AtenAddTensorOp) and argument(op.alpha) == 1:
                merging.add(op)
            elif isinstance(op, torch.AtenMulTensorOp):
                merging.scale(op)
        erase_dead(function)


@dataclass(frozen=True)
class _Scaled:
    """A value times a number for each channel, plus another; None is 1 or 0."""

    value: ir.Value
    factor: ir.Value | None = None
    shift: ir.Value | None = None


class _Merging:
    """Changes a function's convolutions, knowing which values are constant."""

    def __init__(self, constants: set[ir.Value]) -> None:
        self._constants = constants

    def add(self, op: torch.AtenAddTensorOp) -> None:
        """Merge what is added, where one of it is a convolution that nothing else reads."""
        for value, other in ((op.self_, op.other), (op.other, op.self_)):
            convolution = self._convolution(value, op)
            if convolution is None:
                continue
            second = self._convolution(other, op)
            with ir.InsertionPoint(op), op.location:
                if self._is_for_channels(other, op.result):
                    shift = _flat(other)
                    self._replace(op, convolution, convolution.weight, _plus(_bias(convolution), shift))
                    return
                if second is not None:
                    if (around := _borders(convolution, second)) is not None:
                        weight = _plus(convolution.weight, _bordered(second.weight, around))
                        self._replace(op, convolution, weight, _plus(_bias(convolution), _bias(second)))
                        return
                elif _keeps_dims(convolution) and (scaled := self._scaled(other)).value == convolution.input:
                    weight = _plus(convolution.weight, _tap(convolution, scaled.factor))
                    self._replace(op, convolution, weight, _plus(_bias(convolution), scaled.shift))
                    return

    def scale(self, op: torch.AtenMulTensorOp) -> None:
        """Multiply the filter and the bias of a convolution that nothing else reads."""
        for value, other in ((op.self_, op.other), (op.other, op.self_)):
            convolution = self._convolution(value, op)
            if convolution is None or not self._is_for_channels(other, op.result):
                continue
            with ir.InsertionPoint(op), op.location:
                factor = _flat(other)
                weight, bias = convolution.weight, _bias(convolution)
                column = (dims_of(factor)[0], *[1] * (len(dims_of(weight)) - 1))
                weight = torch.aten_mul_Tensor(weight.type, weight, reshaped(factor, column))
                bias = None if bias is None else torch.aten_mul_Tensor(bias.type, bias, factor)
                self._replace(op, convolution, weight, bias)
            return

    def _convolution(self, value: ir.Value, reader: ir.OpView) -> torch.AtenConvolutionOp | None:
        """The convolution of constants that a value is, and that `reader` alone reads."""
        op = lone_convolution(value, self._constants)
        return op if op is not None and reader.result.type == op.result.type else None

    def _is_for_channels(self, value: ir.Value, result: ir.Value) -> bool:
        """Whether a value is a constant with one number for each channel of a result."""
        _, channels, *others = dims_of(result)
        column = (channels, *[1] * len(others))
        return value in self._constants and dims_of(value) in (column, (1, *column))

    def _scaled(self, value: ir.Value) -> _Scaled:
        """A value as another one times numbers for its channels, plus others."""
        shift = factor = None
        op = producer(value)
        if isinstance(op, torch.AtenAddTensorOp) and argument(op.alpha) == 1 and self._is_for_channels(op.other, value):
            value, shift = op.self_, _flat(op.other)
            op = producer(value)
        if isinstance(op, torch.AtenMulTensorOp) and self._is_for_channels(op.other, value):
            value, factor = op.self_, _flat(op.other)
        return _Scaled(value, factor, shift)

    def _replace(
        self, op: ir.OpView, convolution: torch.AtenConvolutionOp, weight: ir.Value, bias: ir.Value | None
    ) -> None:
        """Put a convolution with other constants in the place of an op, at the current insertion point."""
        bias = convolution.bias if bias is None else bias
        self._constants |= {weight, bias}
        op.result.replace_all_uses_with(with_operands(convolution, weight=weight, bias=bias).result)
        op.erase()


def _bias(op: torch.AtenConvolutionOp) -> ir.Value | None:
    return None if argument(op.bias) is None else op.bias


def _plus(one: ir.Value | None, other: ir.Value | None) -> ir.Value | None:
    """The sum of constants; None is zero."""
    if one is None or other is None:
        return other if one is None else one
    return torch.aten_add_Tensor(one.type, one, other, torch.constant_int(1))


def _flat(value: ir.Value) -> ir.Value:
    """Numbers for channels as a vector."""
    return reshaped(value, (prod(dims_of(value)),))


def _borders(large: torch.AtenConvolutionOp, small: torch.AtenConvolutionOp) -> list[int] | None:
    """Zeros on either side of each dim of a filter, where two convolutions read the same at the same steps; else None."""
    is_shared = large.input == small.input and all(
        argument(getattr(large, name)) == argument(getattr(small, name)) for name in ("stride", "groups")
    )
    return borders(large, small) if is_shared else None


def _keeps_dims(op: torch.AtenConvolutionOp) -> bool:
    """Whether each result lies where the middle of its filter is, one for each element of the input."""
    sizes, parts = dims_of(op.weight)[2:], (argument(op.stride), argument(op.padding), argument(op.dilation))
    is_centred = all(
        stride == 1 and size % 2 and 2 * padding == (size - 1) * dilation
        for size, stride, padding, dilation in zip(sizes, *parts, strict=True)
    )
    return is_centred and op.input.type == op.result.type


def _bordered(weight: ir.Value, around: Sequence[int]) -> ir.Value:
    """A filter with zeros around it."""
    return padded(weight, [(0, 0), (0, 0), *((border, border) for border in around)])


def _tap(op: torch.AtenConvolutionOp, factor: ir.Value | None) -> ir.Value:
    """The filter, as large as that of a convolution, that gives each channel times its factor."""
    dims, dtype = dims_of(op.weight), tensor_type(op.weight.type).dtype
    column = (dims[0], dims[1], *[1] * (len(dims) - 2))
    own = np.zeros(column, dtype.numpy)
    channels = np.arange(dims[0])
    own[channels, channels % dims[1]] = 1
    tap = literal(own)
    if factor is not None:
        tap = torch.aten_mul_Tensor(tap.type, tap, reshaped(factor, (dims[0], *[1] * (len(dims) - 1))))
    return _bordered(tap, [size // 2 for size in dims[2:]])
