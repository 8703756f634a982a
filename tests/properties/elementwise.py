"""Operators that compute each element of the result from one of each operand, with broadcasting."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from onnx import helper

from .call import Call, Known
from .compare import is_float
from .draws import EVERY, FLOATS, array_of, broadcast_dims, dims_of, dtype_of, one_of
from .operators import Draw, operator

_RANGES = {
    "Acos": (-1.0, 1.0), "Asin": (-1.0, 1.0), "Acosh": (1.0, 9.0), "Atanh": (-0.9, 0.9), "Log": (0.1, 9.0), "Sqrt": (0.0, 9.0),
    "Reciprocal": (0.25, 4.0), "Tan": (-1.2, 1.2),
}  # fmt: skip
"""Where an operator is defined, or not steeper than its dtype."""
_ALPHA = {"Celu", "Elu", "HardSigmoid", "LeakyRelu", "Selu", "Swish", "ThresholdedRelu"}
_INEXACT = {"Gelu": 1e-7, "HardSwish": 1e-7, "Sigmoid": 2e-7}
"""Errors of the references: the constants of function bodies are f32, ONNX Runtime's sigmoid is a rational function."""
_STEEP = {"Acosh", "Cosh", "Exp", "Sinh", "Tan", "Log", "Acos", "Asin", "Atanh", "Asinh"}


@operator("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu",
          "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Reciprocal", "Round", "Selu", "Shrink", "Sigmoid",
          "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu")  # fmt: skip
def _unary(draw: Draw, op: str) -> Call:
    opset = 24 if op == "Swish" else 21
    dtype = dtype_of(draw, op, among=FLOATS, opset=opset)
    low, high = _RANGES.get(op, (-6.0, 6.0))
    x = array_of(draw, dtype, dims_of(draw, empty=True), low=low, high=high, special=op not in _RANGES)
    attributes: dict[str, object] = {}
    if op in _ALPHA and draw(st.booleans()):
        attributes["alpha"] = one_of(draw, 0.25, 0.5, 1.5)
    if op == "Gelu":
        attributes["approximate"] = one_of(draw, "none", "tanh")
    if op == "Shrink":
        attributes |= {"lambd": one_of(draw, 0.5, 1.25), "bias": one_of(draw, 0.0, 0.75)}
    if op == "IsInf":
        attributes |= {"detect_negative": one_of(draw, 0, 1), "detect_positive": one_of(draw, 0, 1)}
    loose, atol = 4.0 if op in _STEEP else 1.0, _INEXACT.get(op, 0.0)
    # ONNX Runtime shrinks f64 in f32.
    return Call(
        op, [x], attributes, opset=opset, loose=loose, atol=atol, reference="onnx" if op == "Shrink" else "onnxruntime"
    )


@operator("Abs", "Neg", "Relu", "Sign", "Identity")
def _unary_of_any(draw: Draw, op: str) -> Call:
    dtype = dtype_of(draw, op)
    # The sign of NaN is 0 here.
    return Call(op, [array_of(draw, dtype, dims_of(draw, empty=True), special=op != "Sign")])


@operator("Not", "BitwiseNot")
def _negation(draw: Draw, op: str) -> Call:
    dtype = dtype_of(draw, op)
    return Call(op, [array_of(draw, dtype, dims_of(draw, empty=True), special=True)])


@operator("Add", "Sub", "Mul", "And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Greater", "GreaterOrEqual",
          "Less", "LessOrEqual")  # fmt: skip
def _binary(draw: Draw, op: str) -> Call:
    dtype = dtype_of(draw, op)
    return Call(op, [array_of(draw, dtype, dims, special=True) for dims in broadcast_dims(draw, 2)])


@operator("Div", "Mod")
def _quotient(draw: Draw, op: str) -> Call:
    """Divisors are at least 1/4; the remainder of floats is that of fmod."""
    dtype = dtype_of(draw, op)
    x, y = (array_of(draw, dtype, dims, low=-9, high=9) for dims in broadcast_dims(draw, 2))
    y = np.where(np.abs(y.astype(np.float64)) < 0.25, 3, y).astype(dtype)
    attributes = {}
    if op == "Mod":
        attributes["fmod"] = 1 if is_float(dtype) else one_of(draw, 0, 1)
        if is_float(dtype):  # a quotient near an integer falls to either side
            x, y = (
                np.round(x.astype(np.float64)).astype(dtype),
                np.sign(y.astype(np.float64)).astype(dtype) * dtype.type(2.5),
            )
    return Call(op, [x, np.asarray(y)], attributes)


@operator("Pow")
def _power(draw: Draw, op: str) -> Call:
    """Bases of any sign have exponents that are integers; exponents of integers are not negative."""
    dtype = dtype_of(draw, op)
    exponent = dtype if draw(st.booleans()) else dtype_of(draw, op, operand=1)
    left, right = broadcast_dims(draw, 2)
    if is_float(dtype) and is_float(exponent) and draw(st.booleans()):
        return Call(
            op,
            [array_of(draw, dtype, left, low=0.5, high=3), array_of(draw, exponent, right, low=-3, high=3)],
            loose=4.0,
        )
    y = array_of(draw, np.dtype(np.int8), right, low=0, high=3).astype(exponent)
    return Call(op, [array_of(draw, dtype, left, low=-3, high=3), y], loose=4.0)


@operator("BitShift")
def _shift(draw: Draw, op: str) -> Call:
    dtype = dtype_of(draw, op)
    left, right = broadcast_dims(draw, 2)
    y = array_of(draw, dtype, right, low=0, high=8 * dtype.itemsize - 1)
    return Call(op, [array_of(draw, dtype, left, special=True), y], {"direction": one_of(draw, "LEFT", "RIGHT")})


@operator("Max", "Min", "Sum", "Mean")
def _variadic(draw: Draw, op: str) -> Call:
    dtype = dtype_of(draw, op)
    return Call(
        op, [array_of(draw, dtype, dims, special=True) for dims in broadcast_dims(draw, draw(st.integers(1, 4)))]
    )


@operator("PRelu")
def _prelu(draw: Draw, op: str) -> Call:
    """The slope broadcasts to x, not the other way round."""
    dtype = dtype_of(draw, op)
    dims = dims_of(draw, 0, 5)
    slope = [one_of(draw, 1, size) for size in dims[draw(st.integers(0, len(dims))) :]]
    return Call(op, [array_of(draw, dtype, dims), array_of(draw, dtype, slope)])


@operator("Where")
def _where(draw: Draw, op: str) -> Call:
    dtype = dtype_of(draw, op, operand=1)
    condition, left, right = broadcast_dims(draw, 3)
    x, y = (array_of(draw, dtype, dims, special=True) for dims in (left, right))
    return Call(op, [array_of(draw, np.dtype(np.bool_), condition), x, y])


@operator("Clip")
def _clip(draw: Draw, op: str) -> Call:
    dtype = dtype_of(draw, op)
    bounds = [np.array(value, dtype) if draw(st.booleans()) else None for value in (1, 3)]
    known = [Known(b) if b is not None and draw(st.booleans()) else b for b in bounds]
    return Call(op, [array_of(draw, dtype, dims_of(draw, empty=True), low=0, high=5), *known])


@operator("Cast", "CastLike")
def _cast(draw: Draw, op: str) -> Call:
    """Floats become integers where these have the number."""
    source, to = one_of(draw, *EVERY), one_of(draw, *EVERY)
    from_float = is_float(source) and to.kind in "iu"
    dims = dims_of(draw, empty=True)
    low = 0 if from_float and to.kind == "u" else -100
    x = array_of(
        draw, source, dims, low=low, high=100, special=not from_float and not (source.kind in "iu" and is_float(to))
    )
    if op == "CastLike":
        return Call(op, [x, np.zeros(1, to)])
    return Call(op, [x], {"to": helper.np_dtype_to_tensor_dtype(to)})


@operator("BitCast")
def _bit_cast(draw: Draw, op: str) -> Call:
    source, to = one_of(
        draw, *((s, t) for s in EVERY for t in EVERY if s.itemsize == t.itemsize and np.bool_ not in (s, t))
    )
    x = array_of(draw, source, dims_of(draw, empty=True), special=not is_float(source))
    return Call(op, [x], {"to": helper.np_dtype_to_tensor_dtype(to)}, opset=26, reference="bits")
