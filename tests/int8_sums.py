"""Which 8-bit weights ONNX Runtime's CPU provider multiplies exactly, and so can be the reference for."""

from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import parser
from onnxruntime.quantization import QuantType, quantize_dynamic

_TEXT = """<ir_version: 8, opset_import: ["" : 21]>
    g (uint8[1,2] a, int8[2,1] b) => (int32[1,1] y) { y = MatMulInteger(a, b) }"""


@cache
def greatest_weight() -> int:
    """127, or 64 where sums of two u8 x s8 saturate at 16 bits: x86 without VNNI, says ONNX Runtime's page on quantization."""
    session = ort.InferenceSession(parser.parse_model(_TEXT).SerializeToString(), providers=["CPUExecutionProvider"])
    (got,) = session.run(None, {"a": np.full((1, 2), 255, np.uint8), "b": np.full((2, 1), 127, np.int8)})
    return 127 if got.item() == 2 * 255 * 127 else 64


def random_weights(rng: np.random.Generator, dims: tuple[int, ...]) -> np.ndarray:
    """Signed 8-bit weights, up to the greatest."""
    return rng.integers(-greatest_weight(), greatest_weight(), dims, np.int8, endpoint=True)


def quantized_in_each_run(model: onnx.ModelProto, folder: Path, *operators: str) -> onnx.ModelProto:
    """What ONNX Runtime's dynamic quantizer makes of a model, with weights that its CPU provider multiplies exactly.

    Args:
        model: the model.
        folder: for the quantizer's file.
        operators: those to quantize.
    """
    path = folder / "quantized.onnx"
    is_reduced = greatest_weight() < np.iinfo(np.int8).max
    quantize_dynamic(
        model, path, op_types_to_quantize=[*operators], weight_type=QuantType.QInt8, reduce_range=is_reduced
    )
    return onnx.load(path)
