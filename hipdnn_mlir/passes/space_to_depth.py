"""hipdnn-space-to-depth: an image of few channels, read with stride 2, as one of a quarter of the pixels and four times the channels."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch_mlir import ir
from torch_mlir.dialects import torch

from hipdnn_mlir_runtime.dtypes import DType

from ..ir.blocks import functions
from ..ir.convolutions import change_operands, convolutions_of_constants
from ..ir.literals import constant_list
from ..ir.module_pass import module_pass
from ..ir.types import tensor_type
from ..ir.view import argument
from ..ir.view_chains import dims_of, padded, permuted, reshaped
from ..targets.table import find_target


@module_pass("hipdnn-space-to-depth")
def space_to_depth(module: ir.Operation, *, target: str = "host") -> None:
    """Move pairs of rows and columns into channels where a convolution of stride 2 has fewer input channels than the target's multiple.

    Kernels for matrix units read channels by 16 bytes: what would be filled up with zeros is filled with neighbours instead, and the window
    and the stride are half as large. The border of the convolution, the new order and the channels that are still missing are one movement.

    Before: a convolution of `%x[n, 3, 224, 224]` with `%w[64, 3, 7, 7]`, stride 2, padding 3.
    After: one of `[n, 16, 115, 115]` with `[64, 16, 4, 4]`, stride 1, no padding.

    Args:
        module: the module operation.
        target: whose needs to follow.
    """
    multiples = find_target(target).channel_multiples
    if not multiples:
        return
    for function in functions(module):
        for convolution in convolutions_of_constants(function):
            _rewrite(convolution, multiples)


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


def _rewrite(convolution: torch.AtenConvolutionOp, multiples: Mapping[DType, int]) -> None:
    image, weight = tensor_type(convolution.input.type), tensor_type(convolution.weight.type)
    if not (image.is_static and weight.is_static) or image.dtype not in multiples or len(image.dims) != 4:
        return
    if argument(convolution.transposed) or argument(convolution.groups) != 1:
        return
    if argument(convolution.stride) != [2, 2] or argument(convolution.dilation) != [1, 1]:
        return
    (_, channels, height, width), multiple = image.static_dims(), multiples[image.dtype]
    if channels >= multiple:
        return
    padding = argument(convolution.padding)
    axes = [_axis(*sizes) for sizes in zip((height, width), weight.static_dims()[2:], padding, strict=True)]
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
