"""Boxes of objects that were found."""

from collections.abc import Mapping, Sequence
from typing import Any

from hipdnn_mlir_runtime.dtypes import F32, I32, I64

from ..registry import HIPDNN_DOMAIN, ONNX, kernel
from ..spec import Call, OpView, Refusal, TensorType
from .indexing import tensors

SUPPRESS = "SuppressBoxes"
"""The operator of ours that NonMaxSuppression is written with."""


def _types(operands: Sequence[TensorType | None], attributes: Mapping[str, Any]) -> list[TensorType]:
    boxes, scores = operands[:2]
    if boxes is None or scores is None or (len(boxes.dims), len(scores.dims)) != (3, 3):
        raise Refusal("operand", "boxes and scores of three dims are needed")
    of_class = scores.dims[:2]
    return [
        TensorType((*of_class, attributes.get("most", 0)), I64),
        TensorType(of_class, I64),
        TensorType(scores.dims, I32),
    ]


@kernel(f"{ONNX}{SUPPRESS}", function="suppress_boxes", onnx=(f"{HIPDNN_DOMAIN}.{SUPPRESS}",), results=_types)
def suppress_boxes(op: OpView) -> Call:
    """(boxes, scores, limit, least; most, center): of boxes that overlap, those of the greatest scores, for each batch and class.

    Boxes are f32 (batches, n, 4): two corners, or with `center` their centers and sizes; scores are f32 (batches, classes, n). `limit`, f32
    (1), is the share that two boxes may have in common of what they cover; `least`, f32 (1), is what a score has to exceed. Results: the
    positions of up to `most` boxes by falling score (i64), how many there are (i64), and numbers that only the kernel reads (i32, of the
    scores' dims).
    """
    operands = tensors(op, 4)
    if any(operand.type.dtype is not F32 for operand in operands):
        raise Refusal("dtype", f"boxes and scores of {operands[0].type.dtype} and {operands[1].type.dtype}")
    boxes, scores, *numbers = (operand.type.static_dims() for operand in operands)
    if boxes != (scores[0], scores[2], 4) or numbers != [(1,), (1,)]:
        raise Refusal("shape", f"boxes of dims {boxes} for scores of dims {scores}")
    return Call("suppress_boxes", operands, {"center": bool(op.attributes.get("center", 0))})
