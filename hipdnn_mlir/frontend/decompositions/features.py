"""Operators of ONNX's domain for classical models that others compute."""

from collections.abc import Sequence

from ...ops.spec import Refusal
from .call import Call
from .registry import decomposes

ML = "ai.onnx.ml"


@decomposes("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(call: Call) -> Sequence[str | None]:
    """ArrayFeatureExtractor of at least two dims: elements of the last one.

    Source: ONNX, ai.onnx.ml ArrayFeatureExtractor-1.
    """
    x = call.need(0)
    if call.rank(x) < 2:  # of a list, onnx's inference says no sizes
        raise Refusal("rank", f"operand of rank {call.rank(x)}")
    return [call.op("Gather", x, call.reshape(call.need(1), -1), axis=call.rank(x) - 1)]
