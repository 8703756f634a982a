"""hipdnn-split-bias: a convolution adds its bias in an op of its own where the target's library does not add it."""

from typing import Any

from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.blocks import body, erase_dead, functions
from ..ir.claims import is_taken
from ..ir.convolutions import CONV_BIAS
from ..ir.module_pass import module_pass
from ..ir.types import is_tensor, tensor_type
from ..ir.view_chains import reshaped
from ..targets.target import Target, find_target


@module_pass("hipdnn-split-bias")
def split_bias(module: Any, *, target: str = "host") -> None:
    """Split the bias off every convolution that an engine of the target takes without it and none takes with it alone.

    Offloading puts it back where an activation follows that an engine takes with it; else it is part of the next kernel.

    Before: `torch.aten.convolution %x, %w, %bias, ...`.
    After: `%y = torch.aten.convolution %x, %w, %none, ...`; `torch.aten.add.Tensor %y, %b, %int1`, where %b is %bias as (1, c, 1, ...).

    Args:
        module: the module operation.
        target: whose engines to ask.
    """
    library = find_target(target)
    for function in functions(module):
        for operation in body(function):
            if operation.name == "torch.aten.convolution" and is_tensor(operation.operands[CONV_BIAS].type):
                _split(operation, library)
        erase_dead(function)


def _split(convolution: Any, target: Target) -> None:
    kind = tensor_type(convolution.results[0].type)
    if not kind.is_static or is_taken(convolution, target):
        return
    bias = convolution.operands[CONV_BIAS]
    with ir.InsertionPoint(convolution), convolution.location:
        operands = list(convolution.operands)
        operands[CONV_BIAS] = torch.constant_none()
        plain = ir.Operation.create(convolution.name, results=[convolution.results[0].type], operands=operands)
        if not is_taken(plain, target):
            plain.erase()
            return
        dims = kind.static_dims()
        shaped = reshaped(bias, (dims[1], *(1,) * (len(dims) - 2)))
        added = ir.Operation.create(
            "torch.aten.add.Tensor",
            results=[plain.results[0].type],
            operands=[plain.results[0], shaped, torch.constant_int(1)],
        )
    convolution.results[0].replace_all_uses_with(added.results[0])
