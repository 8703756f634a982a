"""A model whose operations work on parts of tensors."""

import numpy as np
import onnx

from models.builder import GraphBuilder


def slices() -> onnx.ModelProto:
    """A product and a convolution of parts that lie on 4 and 8 bytes; their results are parts of another tensor that do."""
    b = GraphBuilder("slices", opset=20)
    first, *parts, last = b.split(b.input("x", [13 + 48 + 48 + 36 + 2]), [13, 48, 48, 36, 2], axis=0)
    dims = ([6, 8], [8, 6], [1, 4, 3, 3])
    rows, columns, image = (b.op("Reshape", part, b.constant(d, np.int64)) for part, d in zip(parts, dims, strict=True))
    y = b.op("Relu", b.op("MatMul", rows, columns))
    z = b.op("Relu", b.op("Conv", image, b.normal([3, 4, 1, 1], 0.5), b.normal([3], 0.5)))
    flat = (b.op("Reshape", value, b.constant([-1], np.int64)) for value in (y, z))
    return b.model({b.op("Concat", first, *flat, last, axis=0): [13 + 36 + 27 + 2]})
