"""What a block scale node says of its blocks."""

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import Descriptor as D

from .graph import Node

QUANTIZE, DEQUANTIZE = D.OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR, D.OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR


def blocks_of(node: Node) -> tuple[int, int]:
    """The dim along which blocks lie, and the elements of a block."""
    if node.type == QUANTIZE:
        axis = node.get(A.OPERATION_BLOCK_SCALE_QUANTIZE_AXIS_EXT)
        return axis, node.get(A.OPERATION_BLOCK_SCALE_QUANTIZE_BLOCK_SIZE)
    sizes = next(values for name, _, values in node.attributes if name == A.OPERATION_BLOCK_SCALE_DEQUANTIZE_BLOCK_SIZE)
    axis = next((index for index, size in enumerate(sizes) if size != 1), 0)
    return axis, sizes[axis]
