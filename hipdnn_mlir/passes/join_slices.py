"""hipdnn-join-slices: convolutions of parts of a value's channels, whose results lie side by side, as one."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.blocks import erase_dead, functions, operations
from ..ir.claims import has_code
from ..ir.constants import constant_values, tensor_operands
from ..ir.convolutions import borders, lone_convolution, with_operands
from ..ir.literals import splat
from ..ir.module_pass import module_pass
from ..ir.types import tensor_type
from ..ir.view import argument, producer
from ..ir.view_chains import dims_of, joined, movement_of, padded
from ..ops.spec import Concat, Slice
from ..targets.table import find_target
from ..targets.target import Target

_CHANNELS = 1
_MOST = 4
"""Convolutions of one tap that become one: with each the products are more, all but its own with zeros."""


@module_pass("hipdnn-join-slices")
def join_slices(module: ir.Operation, *, target: str = "host") -> None:
    """Make one convolution of several that read parts of a value's channels and are concatenated, where the target merges matmuls.

    Each has a kernel, reads a copy of its part, and writes another one. Depthwise convolutions get the largest filter among
    them, with borders of zeros, where the target has generated code for it; those of one tap get zeros for the other channels. A
    value that is not finite reaches all outputs of the latter.

    Before: `torch.aten.cat` of `torch.aten.convolution %a, %w3x3` and `torch.aten.convolution %b, %w5x5`, depthwise, where `%a` and `%b`
    are the halves of `%x`.
    After: `torch.aten.convolution %x, %w`, depthwise, where `%w` is `%w3x3` with a border above `%w5x5`.

    Args:
        module: the module operation.
        target: whose kernels to follow.
    """
    known = find_target(target)
    if not known.merges_matmuls:
        return
    for function in functions(module):
        joining = _Joining(constant_values(function), known)
        for op in operations(function):
            if isinstance(op, torch.AtenCatOp):
                joining.join(op)
        erase_dead(function)


@dataclass(frozen=True)
class _Part:
    """A convolution of constants, and which channels of `source` it reads."""

    convolution: torch.AtenConvolutionOp
    source: ir.Value
    first: int

    @property
    def channels(self) -> int:
        """That it reads."""
        return dims_of(self.convolution.input)[_CHANNELS]

    @property
    def is_depthwise(self) -> bool:
        """Whether each channel has a result of its own."""
        outputs, each, *_ = dims_of(self.convolution.weight)
        return each == 1 and argument(self.convolution.groups) == outputs == self.channels


class _Joining:
    """Changes a function's convolutions, knowing which values are constant."""

    def __init__(self, constants: set[ir.Value], target: Target) -> None:
        self._constants, self._target = constants, target

    def join(self, op: torch.AtenCatOp) -> None:
        """Put one convolution in the place of a concatenation, where its operands are parts of one."""
        found = [self._part(value) for value in tensor_operands(op)]
        parts = [part for part in found if part is not None]
        if len(parts) != len(found) or len(parts) < 2 or not isinstance(movement_of(op), Concat):
            return
        if argument(op.dim) % len(dims_of(op.result)) != _CHANNELS or len({part.source for part in parts}) != 1:
            return
        if len({str(argument(part.convolution.stride)) for part in parts}) != 1:
            return
        with ir.InsertionPoint(op), op.location:
            is_depthwise = all(part.is_depthwise for part in parts)
            made = self._depthwise(op.result, parts) if is_depthwise else _of_one_tap(op.result, parts)
        if made is not None:
            op.result.replace_all_uses_with(made.result)
            op.erase()

    def _part(self, value: ir.Value) -> _Part | None:
        op = lone_convolution(value, self._constants)
        if op is None:
            return None
        cut = producer(op.input)
        move = movement_of(cut)
        if cut is None or not isinstance(move, Slice):
            return _Part(op, op.input, 0)
        source = cut.operands[0]
        others = [
            (size, step)
            for axis, (size, step) in enumerate(zip(move.sizes, move.steps, strict=True))
            if axis != _CHANNELS
        ]
        whole = [(size, 1) for axis, size in enumerate(dims_of(source)) if axis != _CHANNELS]
        if others != whole or move.steps[_CHANNELS] != 1:
            return _Part(op, op.input, 0)
        return _Part(op, source, move.offsets[_CHANNELS])

    def _depthwise(self, result: ir.Value, parts: Sequence[_Part]) -> torch.AtenConvolutionOp | None:
        """Those that read all channels in their order, by filters that have one middle."""
        ends = [part.first + part.channels for part in parts]
        channels = dims_of(parts[0].source)[_CHANNELS]
        if [part.first for part in parts] != [0, *ends[:-1]] or ends[-1] != channels:
            return None
        largest = max(parts, key=lambda part: dims_of(part.convolution.weight)[2:]).convolution
        filters = []
        for part in parts:
            around = borders(largest, part.convolution)
            if around is None:
                return None
            filters.append(padded(part.convolution.weight, [(0, 0), (0, 0), *((border, border) for border in around)]))
        made = _joined(result, largest, parts, filters, groups=channels)
        if has_code(made, self._target):
            return made
        made.erase()
        return None


def _of_one_tap(result: ir.Value, parts: Sequence[_Part]) -> torch.AtenConvolutionOp | None:
    """Those in one group whose filters are matrices, of the same pixels."""
    channels = dims_of(parts[0].source)[_CHANNELS]
    for part in parts:
        op = part.convolution
        if argument(op.groups) != 1 or any(size != 1 for size in dims_of(op.weight)[2:]) or any(argument(op.padding)):
            return None
    if len(parts) > _MOST:
        return None
    filters = []
    for part in parts:
        weight = part.convolution.weight
        behind = channels - part.first - part.channels
        filters.append(padded(weight, [(0, 0), (part.first, behind), *[(0, 0)] * (len(dims_of(weight)) - 2)]))
    return _joined(result, parts[0].convolution, parts, filters, groups=1)


def _joined(
    result: ir.Value, like: torch.AtenConvolutionOp, parts: Sequence[_Part], filters: Sequence[ir.Value], groups: int
) -> torch.AtenConvolutionOp:
    """One of all channels with the result's type, at the current insertion point."""
    weight = joined(filters, 0)
    biases = [part.convolution.bias for part in parts]
    bias = torch.constant_none()
    if any(argument(value) is not None for value in biases):
        dtype = tensor_type(weight.type).dtype
        sizes = [dims_of(part)[0] for part in filters]
        given = [
            splat(0, (size,), dtype) if argument(value) is None else value
            for value, size in zip(biases, sizes, strict=True)
        ]
        bias = joined(given, 0)
    given_as = {"input": parts[0].source, "weight": weight, "bias": bias, "groups": torch.constant_int(groups)}
    return with_operands(like, result.type, **given_as)
