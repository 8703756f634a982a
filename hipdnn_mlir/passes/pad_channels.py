"""hipdnn-pad-channels: fill up the input channels of convolutions to what the target's library wants."""

from collections.abc import Mapping

from torch_mlir import ir
from torch_mlir.dialects import torch

from hipdnn_mlir_runtime.dtypes import DType

from ..ir.blocks import functions
from ..ir.claims import has_code
from ..ir.convolutions import change_operands, convolutions_of_constants, is_of_one_pixel
from ..ir.module_pass import module_pass
from ..ir.types import tensor_type
from ..ir.view import argument
from ..ir.view_chains import dims_of, padded
from ..targets.table import find_target


@module_pass("hipdnn-pad-channels")
def pad_channels(module: ir.Operation, *, target: str = "host") -> None:
    """Put zeros behind the input channels of convolutions, in the image and in the constant weights, up to the target's multiple.

    Kernels for matrix units read channels by 16 bytes. Convolutions in groups, transposed ones, those that have generated code and those of
    one pixel, which become matmuls, are left alone.

    Before: `torch.aten.convolution %x, %w, ...` with 3 input channels.
    After: the same of `torch.aten.constant_pad_nd %x, [0, 0, 0, 0, 0, 5]`, and of the weights padded alike.

    Args:
        module: the module operation.
        target: whose needs to follow.
    """
    library = find_target(target)
    multiples = library.channel_multiples
    if not multiples:
        return
    for function in functions(module):
        filled: dict[ir.Value, ir.Value] = {}
        for convolution in convolutions_of_constants(function):
            is_matmul = library.matrices_by_columns and is_of_one_pixel(convolution)
            if not is_matmul and not has_code(convolution, library):
                _pad(convolution, multiples, filled)


def _pad(
    convolution: torch.AtenConvolutionOp, multiples: Mapping[DType, int], filled: dict[ir.Value, ir.Value]
) -> None:
    image, weight = tensor_type(convolution.input.type), tensor_type(convolution.weight.type)
    if not (weight.is_static and image.is_static) or image.dtype not in multiples:
        return
    if argument(convolution.transposed) or argument(convolution.groups) != 1:
        return
    missing = -image.static_dims()[1] % multiples[image.dtype]
    if not missing:
        return
    with ir.InsertionPoint(convolution), convolution.location:
        for value in (convolution.input, convolution.weight):
            if value not in filled:
                filled[value] = _with_channels(value, missing)
    change_operands(convolution, input=filled[convolution.input], weight=filled[convolution.weight])


def _with_channels(value: ir.Value, missing: int) -> ir.Value:
    """The value with `missing` channels of zeros behind its own."""
    return padded(value, [(0, 0), (0, missing), *[(0, 0)] * (len(dims_of(value)) - 2)])
