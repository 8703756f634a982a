"""Linear models and scalers of ONNX's domain for classical models, and what such models make of their scores.

What the standard leaves open is as ONNX Runtime's CPU provider has it; a node on which the two differ is refused.
"""

from collections.abc import Sequence

import numpy as np

from ...ops.evaluate import Array
from ...ops.spec import Refusal
from .call import FLOAT, Call
from .features import ML
from .registry import decomposes

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""What becomes of scores, in the order of their numbers in TreeEnsemble."""
_ZERO = 1e-7
"""What SOFTMAX_ZERO takes for zero."""


def table(call: Call, name: str) -> Array:
    """An attribute that is a list of numbers; empty where it is left out."""
    return np.array(call.attr(name, []))


def rows(call: Call, features: int) -> str:
    """The operand, [rows, features]; refuses other ranks and numbers of features."""
    x = call.need(0)
    if call.rank(x) != 2:
        raise Refusal("rank", f"operand of rank {call.rank(x)}, expected rows of features")
    if call.size_if_known(x, 1) not in (None, features):
        raise Refusal("shape", f"{call.size(x, 1)} features for coefficients of {features}")
    return x


def transformed(call: Call, scores: str, columns: int, transform: str) -> str:
    """Scores [rows, columns] after the transform, which is one of `TRANSFORMS`."""
    if transform == "NONE":
        return scores
    if transform == "PROBIT":
        raise Refusal("attribute", "post_transform PROBIT: no operator is the inverse of erf")
    if columns == 1:
        raise Refusal("attribute", f"post_transform {transform} of one column, which ONNX Runtime leaves out")
    if transform == "LOGISTIC":
        return call.op("Sigmoid", scores)
    if transform == "SOFTMAX":
        return call.op("Softmax", scores, axis=1)
    most = call.reduce("ReduceMax", scores, [1])
    is_term = call.op("Greater", call.op("Abs", scores), call.number(_ZERO, scores))
    powers = call.op("Exp", call.op("Sub", scores, most))
    total = call.reduce("ReduceSum", call.op("Where", is_term, powers, call.number(0.0, scores)), [1])
    others = call.op("Mul", scores, call.op("Exp", call.op("Neg", most)))
    return call.op("Div", call.op("Where", is_term, powers, others), total)


def class_labels(call: Call, ints: str, strings: str) -> Array:
    """The labels of classes; refuses texts, and fewer than two."""
    if call.attr(strings):
        raise Refusal(
            "attribute", f"{strings}: labels that are strings, which programs do not have; label classes by numbers"
        )
    labels = table(call, ints)
    if len(labels) < 2:
        raise Refusal("attribute", f"{len(labels)} {ints}, expected at least 2")
    return labels


def label_of_two(call: Call, score: str, threshold: float, labels: Array) -> str:
    """The label of rows by one score, [rows, 1]: the second one above the threshold."""
    is_second = call.op("Greater", call.squeeze(score, 1), call.number(threshold, score))
    return call.op("Where", is_second, call.const(labels[1]), call.const(labels[0]))


def label_of_most(call: Call, scores: str, labels: Array) -> str:
    """The label of rows by the largest score, the first one of equals."""
    return call.op("Gather", call.const(labels), call.op("ArgMax", scores, axis=1, keepdims=0))


def with_complement(call: Call, score: str) -> str:
    """[rows, 2]: 1 - score, score."""
    return call.concat(1, call.op("Sub", call.number(1.0, score), score), score)


def _products(call: Call, columns: int) -> str:
    """[rows, columns] of f32."""
    coefficients, intercepts = table(call, "coefficients"), table(call, "intercepts")
    if not len(coefficients) or len(coefficients) % columns or len(intercepts) not in (0, columns):
        raise Refusal(
            "attribute", f"{len(coefficients)} coefficients and {len(intercepts)} intercepts for {columns} columns"
        )
    matrix = coefficients.reshape(columns, -1).T
    scores = call.op("MatMul", call.cast(rows(call, len(matrix)), FLOAT), call.const(matrix, FLOAT))
    return call.op("Add", scores, call.const(intercepts, FLOAT)) if len(intercepts) else scores


@decomposes("LinearRegressor", domain=ML)
def linear_regressor(call: Call) -> Sequence[str | None]:
    """LinearRegressor: a product in f32, then the transform, which is refused for one target.

    Source: ONNX, ai.onnx.ml LinearRegressor-1.
    """
    targets = call.count("targets", 1)
    return [transformed(call, _products(call, targets), targets, call.one_of(TRANSFORMS, "post_transform", "NONE"))]


@decomposes("LinearClassifier", domain=ML)
def linear_classifier(call: Call) -> Sequence[str | None]:
    """LinearClassifier of labels that are numbers; one column is the score of the second of two classes.

    Source: ONNX, ai.onnx.ml LinearClassifier-1.
    """
    labels = class_labels(call, "classlabels_ints", "classlabels_strings")
    transform = call.one_of(TRANSFORMS, "post_transform", "NONE")
    columns = len(table(call, "intercepts"))
    if columns == len(labels):
        scores = _products(call, columns)
        return [label_of_most(call, scores, labels), transformed(call, scores, columns, transform)]
    if (columns, len(labels)) != (1, 2):
        raise Refusal("attribute", f"{columns} intercepts for {len(labels)} classes")
    score = _products(call, 1)
    second = call.op("Sigmoid", score) if transform == "LOGISTIC" else transformed(call, score, 1, transform)
    return [label_of_two(call, score, 0.0, labels), with_complement(call, second)]


@decomposes("Scaler", domain=ML)
def scaler(call: Call) -> Sequence[str | None]:
    """Scaler: (x - offset) * scale in f32, each of one element or one for each feature.

    Source: ONNX, ai.onnx.ml Scaler-1.
    """
    x, offset, scale = call.need(0), table(call, "offset"), table(call, "scale")
    if (
        not len(offset)
        or len(offset) != len(scale)
        or (len(scale) > 1 and call.size_if_known(x, -1) not in (None, len(scale)))
    ):
        raise Refusal("attribute", f"{len(offset)} elements of offset and {len(scale)} of scale")
    moved = call.op("Sub", call.cast(x, FLOAT), call.const(offset, FLOAT))
    return [call.op("Mul", moved, call.const(scale, FLOAT))]


@decomposes("Normalizer", domain=ML)
def normalizer(call: Call) -> Sequence[str | None]:
    """Normalizer of the last dim in f32: by the largest element, the sum of magnitudes or the norm, where that is not 0.

    Source: ONNX, ai.onnx.ml Normalizer-1.
    """
    norm = call.one_of(("MAX", "L1", "L2"), "norm", "MAX")
    x = call.cast(call.need(0), FLOAT)
    if call.rank(x) not in (1, 2):
        raise Refusal("rank", f"operand of rank {call.rank(x)}, expected rows of features")
    last = [call.rank(x) - 1]
    if norm == "MAX":
        size = call.reduce("ReduceMax", x, last)
    elif norm == "L1":
        size = call.reduce("ReduceSum", call.op("Abs", x), last)
    else:
        size = call.op("Sqrt", call.reduce("ReduceSum", call.op("Mul", x, x), last))
    is_zero = call.op("Equal", size, call.number(0.0, x))
    return [call.op("Div", x, call.op("Where", is_zero, call.number(1.0, x), size))]
