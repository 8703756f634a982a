"""Pointwise operations, casts, constants."""

from collections.abc import Iterator
from typing import Any

from hipdnn_mlir_runtime import dtypes

from .case import KERNEL, ROWWISE, Number, Sample, accept, bools, f32, f64, i16, i32, kind, reject

_FLOAT_UNARY = ("sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "sin", "tan", "erf", "reciprocal", "silu")
_ANY_UNARY = ("relu", "abs", "neg", "ceil", "floor")


def unary() -> Iterator[Sample]:
    """Of one operand."""
    for name in (*_FLOAT_UNARY, *_ANY_UNARY):
        yield accept(f"aten.{name}", ROWWISE, [f32(2, 3)], f32(2, 3))
        yield reject(f"aten.{name}", "dynamic-shape", [f32(None, 3)], f32(None, 3))
    for name in _FLOAT_UNARY:
        yield reject(f"aten.{name}", "dtype", [i32(2, 3)], i32(2, 3))
    for name, extra in (("clone", None), ("contiguous", 0)):
        yield accept(f"aten.{name}", ROWWISE, [f32(2, 3), extra], f32(2, 3))
        yield reject(f"aten.{name}", "dynamic-shape", [f32(None, 3), extra], f32(None, 3))


def binary() -> Iterator[Sample]:
    """Of two operands."""
    x, y, other = f32(2, 3), f32(3), i32(3)
    for name in ("mul", "div", "add", "sub"):
        alpha = [1] if name in ("add", "sub") else []
        yield accept(f"aten.{name}.Tensor", ROWWISE, [y, x, *alpha], x)
        yield accept(f"aten.{name}.Tensor", ROWWISE, [x, Number(2.0), *alpha], x)
        yield reject(f"aten.{name}.Tensor", "dtype", [x, other, *alpha], x)
        yield accept(f"aten.{name}.Scalar", ROWWISE, [x, 2.5, *alpha], x)
        yield reject(f"aten.{name}.Scalar", "dtype", [i32(2, 3), 2.5, *alpha], x)
    for name in ("maximum", "minimum"):
        yield accept(f"aten.{name}", ROWWISE, [x, y], x)
        yield reject(f"aten.{name}", "dtype", [x, other], x)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        yield accept(f"aten.{name}.Tensor", ROWWISE, [x, y], bools(2, 3))
        yield reject(f"aten.{name}.Tensor", "dtype", [x, other], bools(2, 3))
        yield accept(f"aten.{name}.Scalar", ROWWISE, [x, 0.5], bools(2, 3))
        yield reject(f"aten.{name}.Scalar", "dynamic-shape", [f32(None, 3), 0.5], kind(dtypes.BOOL, None, 3))
    for name in ("logical_and", "logical_or", "logical_xor"):
        yield accept(f"aten.{name}", ROWWISE, [bools(2, 3), bools(3)], bools(2, 3))
        yield reject(f"aten.{name}", "dtype", [bools(2, 3), x], bools(2, 3))
    yield accept("aten.logical_not", ROWWISE, [bools(2, 3)], bools(2, 3))
    yield reject("aten.logical_not", "dynamic-shape", [kind(dtypes.BOOL, None)], kind(dtypes.BOOL, None))
    yield accept("aten.add.Tensor", ROWWISE, [x, y, 3], x)
    yield accept("aten.rsub.Scalar", ROWWISE, [x, 1.0, 1], x)
    yield reject("aten.rsub.Scalar", "attribute", [x, 1.0, 2], x)
    yield accept("aten.div.Tensor_mode", ROWWISE, [x, y, "floor"], x)
    yield accept("aten.div.Tensor_mode", ROWWISE, [i32(2, 3), other, "trunc"], i32(2, 3))
    yield reject("aten.div.Tensor_mode", "attribute", [x, y, "trunc"], x)
    yield accept("aten.pow.Tensor_Scalar", ROWWISE, [x, 3], x)
    yield accept("aten.pow.Tensor_Scalar", ROWWISE, [x, 2.5], x)
    yield accept("aten.pow.Tensor_Scalar", KERNEL, [x, 5], x)
    yield reject("aten.pow.Tensor_Scalar", "dynamic-shape", [f32(None, 3), 5], f32(None, 3))
    yield accept("aten.fmod.Tensor", ROWWISE, [i32(2, 3), i32(3)], i32(2, 3))
    yield accept("aten.fmod.Tensor", KERNEL, [x, y], x)
    yield reject("aten.fmod.Tensor", "dtype", [x, other], x)
    yield accept("aten.remainder.Tensor", ROWWISE, [i32(2, 3), i32(3)], i32(2, 3))
    yield accept("aten.remainder.Tensor", KERNEL, [x, y], x)
    yield reject("aten.remainder.Tensor", "dtype", [x, other], x)
    for name in ("and", "or", "xor"):
        yield accept(f"aten.bitwise_{name}.Tensor", ROWWISE, [bools(2, 3), bools(3)], bools(2, 3))
        yield accept(f"aten.bitwise_{name}.Tensor", KERNEL, [i32(2, 3), other], i32(2, 3))
        yield reject(f"aten.bitwise_{name}.Tensor", "dtype", [x, y], x)
    yield accept("aten.bitwise_not", ROWWISE, [bools(2, 3)], bools(2, 3))
    yield accept("aten.bitwise_not", KERNEL, [i32(2, 3)], i32(2, 3))
    yield reject("aten.bitwise_not", "dynamic-shape", [kind(dtypes.BOOL, None)], kind(dtypes.BOOL, None))
    for name in ("clamp_min", "clamp_max"):
        yield accept(f"aten.{name}.Tensor", ROWWISE, [x, f32()], x)
        yield reject(f"aten.{name}.Tensor", "dtype", [x, other], x)


def compositions() -> Iterator[Sample]:
    """Written with several pointwise operations."""
    x, wrong = f32(2, 3), f32(None, 3)
    extras: dict[str, list[Any]] = {
        "clamp": [0.0, 1.0], "hardtanh": [-1.0, 1.0], "relu6": [], "leaky_relu": [0.1], "elu": [1.0, 1.0, 1.0], "softplus": [1, 20],
        "mish": [], "gelu": ["tanh"], "hardsigmoid": [], "hardswish": [], "sign": [], "sgn": [], "cos": [], "sinh": [], "cosh": [],
        "square": [], "threshold": [1.0, 0.0], "round": [],
    }  # fmt: skip
    for name, extra in extras.items():
        yield accept(f"aten.{name}", ROWWISE, [x, *extra], x)
        yield reject(f"aten.{name}", "dynamic-shape", [wrong, *extra], wrong)
    yield accept("aten.clamp.Tensor", ROWWISE, [x, Number(0.0), Number(6.0)], x)
    yield accept("aten.clamp.Tensor", ROWWISE, [x, f32(), None], x)
    yield reject("aten.clamp.Tensor", "dynamic-shape", [wrong, None, Number(1.0)], wrong)
    yield accept("aten.prelu", ROWWISE, [x, f32(3)], x)
    yield reject("aten.prelu", "dtype", [x, f64(3)], x)
    yield accept("aten.where.self", ROWWISE, [bools(2, 3), f32(3), x], x)
    yield reject("aten.where.self", "dtype", [bools(2, 3), f64(3), x], x)
    for name in ("isnan", "isinf"):
        yield accept(f"aten.{name}", ROWWISE, [x], bools(2, 3))
        yield reject(f"aten.{name}", "dynamic-shape", [wrong], kind(dtypes.BOOL, None, 3))
    for name, extra in (("expand", [False]), ("broadcast_to", [])):
        yield accept(f"aten.{name}", ROWWISE, [f32(2, 1), [2, 3], *extra], x)
        yield reject(f"aten.{name}", "dynamic-shape", [f32(None, 1), [-1, 3], *extra], f32(None, 3))


def fills() -> Iterator[Sample]:
    """Constants."""
    yield accept("aten.full", ROWWISE, [[2, 3], 1.5, None, None, None, None], f32(2, 3))
    yield accept("aten.full", KERNEL, [[2, 3], 1, None, None, None, None], i16(2, 3))
    yield reject("aten.full", "dynamic-shape", [[2, 3], 1.0, None, None, None, None], f32(None, 3))


def casts() -> Iterator[Sample]:
    """Changes of dtype."""
    f64_in_torch = 7
    i16_in_torch = 2
    yield accept("aten.to.dtype", ROWWISE, [f32(2, 3), f64_in_torch, False, False, None], f64(2, 3))
    yield accept("aten.to.dtype", KERNEL, [f32(2, 3), i16_in_torch, False, False, None], i16(2, 3))
    dynamic = kind(dtypes.F64, None, 3)
    yield reject("aten.to.dtype", "dynamic-shape", [f32(None, 3), f64_in_torch, False, False, None], dynamic)
