"""hipdnn-pad-channels: fill up the input channels of convolutions to what the target's library wants."""

from typing import Any

from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.blocks import functions
from ..ir.convolutions import CONV_GROUPS, CONV_TRANSPOSED, CONV_W, CONV_X, convolutions_of_constants
from ..ir.literals import constant_list
from ..ir.module_pass import module_pass
from ..ir.types import tensor_type, torch_tensor
from ..ir.view import argument
from ..targets.target import find_target


@module_pass("hipdnn-pad-channels")
def pad_channels(module: Any, *, target: str = "host") -> None:
    """Put zeros behind the input channels of convolutions, in the image and in the constant weights, up to the target's multiple.

    Kernels for matrix units read channels by 16 bytes. Convolutions in groups and transposed ones are left alone.

    Before: `torch.aten.convolution %x, %w, ...` with 3 input channels.
    After: the same of `torch.aten.constant_pad_nd %x, [0, 0, 0, 0, 0, 5]`, and of the weights padded alike.

    Args:
        module: the module operation.
        target: whose needs to follow.
    """
    multiples = find_target(target).channel_multiples
    if not multiples:
        return
    for function in functions(module):
        padded: dict[Any, Any] = {}
        for convolution in convolutions_of_constants(function):
            _pad(convolution, multiples, padded)


def _pad(convolution: Any, multiples: Any, padded: dict[Any, Any]) -> None:
    weight = tensor_type(convolution.operands[CONV_W].type)
    image = tensor_type(convolution.operands[CONV_X].type)
    if not (weight.is_static and image.is_static) or image.dtype not in multiples:
        return
    if argument(convolution.operands[CONV_TRANSPOSED]) or argument(convolution.operands[CONV_GROUPS]) != 1:
        return
    missing = -image.static_dims()[1] % multiples[image.dtype]
    if not missing:
        return
    with ir.InsertionPoint(convolution), convolution.location:
        for index in (CONV_X, CONV_W):
            value = convolution.operands[index]
            if value not in padded:
                padded[value] = _with_channels(value, missing)
            convolution.operands[index] = padded[value]


def _with_channels(value: Any, missing: int) -> Any:
    """The value with `missing` channels of zeros behind its own."""
    kind = tensor_type(value.type)
    dims = kind.static_dims()
    sizes = (*([0] * (2 * (len(dims) - 2))), 0, missing)
    filled = torch_tensor((dims[0], dims[1] + missing, *dims[2:]), kind.dtype)
    operands = [value, constant_list(sizes), torch.constant_float(0.0)]
    return ir.Operation.create("torch.aten.constant_pad_nd", results=[filled], operands=operands).result
