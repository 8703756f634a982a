"""Operators of ONNX's domain for classical models that others compute."""

from collections.abc import Sequence

from .call import Call
from .registry import decomposes

ML = "ai.onnx.ml"


@decomposes("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(call: Call) -> Sequence[str | None]:
    """ArrayFeatureExtractor: elements of the last dim; of a list, as a row.

    Source: ONNX, ai.onnx.ml ArrayFeatureExtractor-1.
    """
    x = call.need(0)
    axis = call.axis(x, -1)
    found = call.op("Gather", x, call.reshape(call.need(1), -1), axis=axis)
    return [found if axis else call.unsqueeze(found, 0)]
