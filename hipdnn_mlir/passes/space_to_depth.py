"""hipdnn-space-to-depth: an image of few channels, read with a stride, as one of fewer pixels and more channels."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from math import prod

from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.blocks import functions
from ..ir.claims import has_code, is_map
from ..ir.convolutions import change_operands, convolutions_of_constants
from ..ir.literals import constant_list
from ..ir.module_pass import module_pass
from ..ir.types import is_tensor, tensor_type, torch_tensor
from ..ir.view import argument, producer, readers
from ..ir.view_chains import dims_of, padded, permuted, reshaped
from ..targets.table import find_target


@module_pass("hipdnn-space-to-depth")
def space_to_depth(module: ir.Operation, *, target: str = "host") -> None:
    """Move neighbours into channels where a convolution has fewer input channels than the target's multiple.

    Kernels for matrix units read channels by 16 bytes: what would be filled up with zeros is filled with neighbours instead. With stride 2
    those are pairs of rows and columns, and the window and the stride are half as large; what has generated code for its few channels is
    left alone. Where windows lie side by side, as in patch embeddings, they are whole windows, and the convolution has one tap. The border,
    the new order and the channels that are still missing are one movement.

    Before: a convolution of `%x[n, 3, 224, 224]` with `%w[64, 3, 7, 7]`, stride 2, padding 3.
    After: one of `[n, 16, 115, 115]` with `[64, 16, 4, 4]`, stride 1, no padding.

    Before: a convolution of `%x[n, 3, 224, 224]` with `%w[192, 3, 16, 16]`, stride 16.
    After: one of `[n, 768, 14, 14]` with `[192, 768, 1, 1]`, stride 1.

    Args:
        module: the module operation.
        target: whose needs to follow.
    """
    library = find_target(target)
    multiples = library.channel_multiples
    if not multiples:
        return
    for function in functions(module):
        for convolution in convolutions_of_constants(function):
            image, weight = tensor_type(convolution.input.type), tensor_type(convolution.weight.type)
            if not (image.is_static and weight.is_static) or image.static_dims()[1] >= multiples.get(image.dtype, 0):
                continue
            if argument(convolution.transposed) or argument(convolution.groups) != 1:
                continue
            if set(argument(convolution.dilation)) != {1}:
                continue
            if _tile_the_image(convolution):
                _patches(convolution, multiples[image.dtype])
            elif not has_code(convolution, library):
                _pairs(convolution, multiples[image.dtype])


_PAIR = 2


def _tile_the_image(convolution: torch.AtenConvolutionOp) -> bool:
    """Whether windows that are larger than pairs lie side by side, and leave nothing out."""
    sizes, window = dims_of(convolution.input)[2:], dims_of(convolution.weight)[2:]
    if argument(convolution.stride) != list(window) or any(argument(convolution.padding)) or max(window) <= _PAIR:
        return False
    return not any(size % step for size, step in zip(sizes, window, strict=True))


def _patches(convolution: torch.AtenConvolutionOp, multiple: int) -> None:
    """Windows as channels; lines of a window are filled up where the multiple asks for it."""
    (n, c, *sizes), (k, _, *window) = dims_of(convolution.input), dims_of(convolution.weight)
    rank, counts = len(window), [size // step for size, step in zip(sizes, window, strict=True)]
    line = next(line for line in count(window[-1]) if c * prod(window[:-1]) * line % multiple == 0)
    missing = (0, line - window[-1])
    channels = c * prod(window[:-1]) * line
    splits = tuple(size for pair in zip(counts, window, strict=True) for size in pair)
    order = (0, *range(2, 2 * rank + 1, 2), 1, *range(3, 2 * rank + 2, 2))
    with ir.InsertionPoint(convolution), convolution.location:
        inner = _moved_ahead(convolution.input, lambda image: permuted(reshaped(image, (n, c, *splits)), order))
        filled = padded(inner, [(0, 0)] * (2 * rank + 1) + [missing])
        x = permuted(reshaped(filled, (n, *counts, channels)), (0, rank + 1, *range(1, rank + 1)))
        w = reshaped(padded(convolution.weight, [(0, 0)] * (rank + 1) + [missing]), (k, channels, *[1] * rank))
        stride = constant_list((1,) * rank)
    change_operands(convolution, input=x, weight=w, stride=stride)


def _moved_ahead(value: ir.Value, move: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """What `move` makes of a value, in front of the casts and roundings that compute it, which read in the new order without a copy."""
    maps: list[tuple[ir.OpView, int]] = []
    while (source := producer(value)) is not None and len(readers(value)) == 1 and is_map(source):
        place = next(i for i, operand in enumerate(source.operands) if is_tensor(operand.type) and dims_of(operand))
        maps.insert(0, (source, place))
        value = source.operands[place]
    moved = move(value)
    for op, place in maps:
        made = op.operation.clone()
        made.operands[place] = moved
        made.results[0].set_type(torch_tensor(dims_of(moved), tensor_type(op.results[0].type).dtype))
        moved = made.results[0]
    return moved if maps else torch.aten_clone(moved.type, moved, torch.constant_none())


@dataclass(frozen=True)
class _Axis:
    """One spatial dim: pairs of elements in front of the image and behind it, zeros in front of the window and behind it."""

    low: int
    high: int
    window_low: int
    window_high: int


def _axis(size: int, window: int, padding: int) -> _Axis | None:
    """How pairs are formed; None where they do not fit."""
    shift = padding % 2
    pairs_of_window = (window + shift + 1) // 2
    results = (size + 2 * padding - window) // 2 + 1
    low = (padding + shift) // 2
    high = results - 1 + pairs_of_window - low - size // 2
    if size % 2 or window < 2 or high < 0:
        return None
    return _Axis(low, high, shift, 2 * pairs_of_window - window - shift)


def _pairs(convolution: torch.AtenConvolutionOp, multiple: int) -> None:
    """Pairs of rows and columns as channels, of a convolution of an image with stride 2."""
    if argument(convolution.stride) != [2, 2]:
        return
    _, channels, height, width = dims_of(convolution.input)
    padding = argument(convolution.padding)
    axes = [_axis(*sizes) for sizes in zip((height, width), dims_of(convolution.weight)[2:], padding, strict=True)]
    rows, columns = axes
    if rows is None or columns is None:
        return
    missing = -channels % (multiple // 4 or 1)
    with ir.InsertionPoint(convolution), convolution.location:
        x = _image(convolution.input, rows, columns, missing)
        w = _weight(convolution.weight, rows, columns, missing)
        stride, border = constant_list((1, 1)), constant_list((0, 0))
    change_operands(convolution, input=x, weight=w, stride=stride, padding=border)


def _image(x: ir.Value, rows: _Axis, columns: _Axis, missing: int) -> ir.Value:
    """(n, c, h, w) -> (n, 4 c', h', w'); channels are innermost in between, as a channels-last image has them in memory."""
    n, c, height, width = dims_of(x)
    inner = permuted(reshaped(x, (n, c, height // 2, 2, width // 2, 2)), (0, 2, 4, 3, 5, 1))
    filled = padded(inner, [(0, 0), (rows.low, rows.high), (columns.low, columns.high), (0, 0), (0, 0), (0, missing)])
    dims = dims_of(filled)
    return permuted(reshaped(filled, (*dims[:3], 4 * dims[5])), (0, 3, 1, 2))


def _weight(w: ir.Value, rows: _Axis, columns: _Axis, missing: int) -> ir.Value:
    """(k, c, r, s) -> (k, 4 c', r', s')."""
    borders = [(0, 0), (0, missing), *((axis.window_low, axis.window_high) for axis in (rows, columns))]
    filled = padded(w, borders)
    k, c, r, s = dims_of(filled)
    inner = permuted(reshaped(filled, (k, c, r // 2, 2, s // 2, 2)), (0, 3, 5, 1, 2, 4))
    return reshaped(inner, (k, 4 * c, r // 2, s // 2))
