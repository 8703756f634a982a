"""Graphs with block scale nodes, and int4 as they lie in memory."""

from collections.abc import Sequence

import ml_dtypes
import numpy as np
from onnx import numpy_helper

from hipdnn_mlir_runtime.abi import Attribute, AttributeType, DataType, Descriptor
from host_engines.anchor_graph import AnchorGraph
from host_engines.host_graph import Backend, Operand


def packed_int4(numbers: np.ndarray) -> np.ndarray:
    """Numbers of an even last dim as bytes, packed by onnx: shape (..., count / 2)."""
    stored = numpy_helper.from_array(numbers.astype(ml_dtypes.int4)).raw_data
    return np.frombuffer(stored, np.uint8).reshape(*numbers.shape[:-1], -1).copy()


class BlockGraph(AnchorGraph):
    """A graph with block scale quantize and dequantize."""

    def quantize(self, x: Operand, y: Operand, scale: Operand, size: int, axis: int | None, **flags: bool) -> Operand:
        """Numbers y and their scales of x, by blocks of `size` along an axis."""
        tensors = {"XDESC": x, "YDESC": y, "SCALE_DESC": scale}
        return self.block_scale("QUANTIZE", tensors, [size], axis, **flags)

    def dequantize(self, x: Operand, scale: Operand, y: Operand, sizes: Sequence[int], **flags: bool) -> Operand:
        """Numbers x times their scales, by blocks of sizes for all dims or of one along the axis that the scale divides."""
        return self.block_scale("DEQUANTIZE", {"XDESC": x, "SCALE_DESC": scale, "YDESC": y}, sizes, **flags)

    def block_scale(
        self, kind: str, tensors: dict[str, Operand], sizes: Sequence[int], axis: int | None = None, **flags: bool
    ) -> Operand:
        """One node; tensors by the end of the attribute's name."""
        operation = Backend(Descriptor[f"OPERATION_BLOCK_SCALE_{kind}_DESCRIPTOR"])
        prefix = f"OPERATION_BLOCK_SCALE_{kind}"
        for name, operand in tensors.items():
            operation.set(Attribute[f"{prefix}_{name}"], AttributeType.BACKEND_DESCRIPTOR, [operand.descriptor])
        operation.set(Attribute[f"{prefix}_BLOCK_SIZE"], AttributeType.INT32, list(sizes))
        if axis is not None:
            operation.set(Attribute[f"{prefix}_AXIS_EXT"], AttributeType.INT64, [axis])
        for name, value in flags.items():
            operation.set(Attribute[f"{prefix}_{name}"], AttributeType.BOOLEAN, [value])
        operation.set(Attribute[f"{prefix}_MATH_PREC"], AttributeType.DATA_TYPE, [DataType.FLOAT])
        self.operations.append(operation.finalize())
        return tensors["YDESC"]
