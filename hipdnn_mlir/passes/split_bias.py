"""hipdnn-split-bias: a convolution adds its bias in an op of its own where the target's library does not add it."""

from torch_mlir import ir
from torch_mlir.dialects import torch
from torch_mlir.rewrite import PatternRewriter

from ..ir.blocks import erase_dead, functions
from ..ir.claims import is_taken
from ..ir.convolutions import with_operands
from ..ir.module_pass import module_pass
from ..ir.patterns import rewrite_ops
from ..ir.types import is_tensor, tensor_type
from ..ir.view_chains import reshaped
from ..targets.table import find_target


@module_pass("hipdnn-split-bias")
def split_bias(module: ir.Operation, *, target: str = "host") -> None:
    """Split the bias off every convolution that an engine of the target takes without it and none takes with it alone.

    Offloading puts it back where an activation follows that an engine takes with it; else it is part of the next kernel.

    Before: `torch.aten.convolution %x, %w, %bias, ...`.
    After: `%y = torch.aten.convolution %x, %w, %none, ...`; `torch.aten.add.Tensor %y, %b, %int1`, where %b is %bias as (1, c, 1, ...).

    Args:
        module: the module operation.
        target: whose engines to ask.
    """
    library = find_target(target)

    def split(op: torch.AtenConvolutionOp, rewriter: PatternRewriter) -> bool:
        kind = tensor_type(op.result.type)
        if not is_tensor(op.bias.type) or not kind.is_static or is_taken(op, library):
            return False
        plain = with_operands(op, bias=torch.constant_none())
        if not is_taken(plain, library):
            plain.erase()
            return False
        dims = kind.static_dims()
        bias = reshaped(op.bias, (dims[1], *(1,) * (len(dims) - 2)))
        rewriter.replace_op(op, torch.AtenAddTensorOp(op.result.type, plain.result, bias, torch.constant_int(1)))
        return True

    rewrite_ops(module, split)
    for function in functions(module):
        erase_dead(function)
