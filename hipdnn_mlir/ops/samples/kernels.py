"""What kernels do: elementwise ones, gathers and scatters, sorting, rearranging."""

from collections.abc import Iterator
from typing import Any

from hipdnn_mlir_runtime import dtypes

from .case import KERNEL, MOVEMENT, ROWWISE, Number, Sample, accept, bools, f32, f64, i16, i32, i64, kind, reject


def experts() -> Iterator[Sample]:
    """Products with the weights of chosen experts."""
    op, x, chosen, y = "ExpertMatMul", f32(3, 1, 8), i64(3, 2), f32(3, 2, 5)
    codes, scales = kind(dtypes.U8, 4, 5, 4), f32(4, 5, 2)
    stated: dict[str, Any] = {"bits": 4, "block_size": 4}
    yield accept(op, KERNEL, [x, chosen, f32(4, 5, 8)], y)
    yield accept(op, KERNEL, [f32(3, 2, 8), i32(3, 2), kind(dtypes.BF16, 4, 5, 8)], y)
    yield accept(op, KERNEL, [x, chosen, codes, scales], y, **stated)
    yield accept(
        op,
        KERNEL,
        [x, chosen, kind(dtypes.U8, 4, 5, 8), f32(4, 5, 1), kind(dtypes.U8, 4, 5, 1)],
        y,
        bits=8,
        block_size=8,
    )
    yield reject(op, "dtype", [x, f32(3, 2), f32(4, 5, 8)], y)
    yield reject(op, "dtype", [x, chosen, i32(4, 5, 8)], y)
    yield reject(op, "dtype", [x, chosen, codes], y, **stated)
    yield reject(op, "shape", [x, i64(2, 2), f32(4, 5, 8)], f32(2, 2, 5))
    yield reject(op, "shape", [x, chosen, f32(4, 5, 7)], y)
    yield reject(op, "shape", [x, chosen, codes, f32(4, 5, 3)], y, **stated)


def elementwise() -> Iterator[Sample]:
    """Elementwise kernels."""
    x, y, wrong = f32(2, 3), i16(2, 3), f32(None, 3)
    for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "trunc"):
        yield accept(f"aten.{name}", KERNEL, [x], x)
        yield reject(f"aten.{name}", "dtype", [y], y)
    for name in ("left", "right"):
        yield accept(f"aten.bitwise_{name}_shift.Tensor", KERNEL, [y, i16(3)], y)
        yield reject(f"aten.bitwise_{name}_shift.Tensor", "dtype", [x, x], x)
    yield accept("aten.add.Tensor", KERNEL, [y, i16(3), 1], y)
    yield accept("aten.pow.Tensor_Tensor", KERNEL, [x, i64(3)], x)
    yield reject("aten.pow.Tensor_Tensor", "dynamic-shape", [wrong, i64(3)], wrong)
    yield accept("aten.pow.Scalar", KERNEL, [2.0, x], x)
    yield reject("aten.pow.Scalar", "dynamic-shape", [2.0, wrong], wrong)
    chosen: dict[str, list[Any]] = {"Scalar": [1.0, 0.0], "ScalarOther": [x, 0.0], "ScalarSelf": [1.0, x]}
    for form, extra in chosen.items():
        engine = KERNEL if form == "Scalar" else ROWWISE
        yield accept(f"aten.where.{form}", engine, [bools(2, 3), *extra], x)
        yield reject(f"aten.where.{form}", "dynamic-shape", [kind(dtypes.BOOL, None, 3), *extra], wrong)
    yield accept("EyeLike", KERNEL, [x], y, k=1)
    yield reject("EyeLike", "dynamic-shape", [wrong], wrong)
    yield accept("Trilu", KERNEL, [x, i64()], x, upper=0)
    yield reject("Trilu", "dynamic-shape", [wrong, None], wrong)
    yield accept("Range", KERNEL, [f32(), f32(), f32()], f32(5))
    yield reject("Range", "dynamic-shape", [f32(), f32(), f32()], f32(None))
    yield accept("OneHot", KERNEL, [i32(2, 3), [4], f32(2)], f32(2, 4, 3), axis=1)
    yield reject("OneHot", "dynamic-shape", [i64(None), [4], f32(2)], f32(None, 4))
    yield accept("Cast", ROWWISE, [x], f64(2, 3))
    yield accept("Cast", KERNEL, [x], y)
    yield reject("Cast", "dynamic-shape", [wrong], kind(dtypes.F64, None, 3))


def indexing() -> Iterator[Sample]:
    """Gathers, scatters, slices."""
    data, indices, wrong = f32(5, 4), i64(2, 3), f32(2, 3)
    yield accept("Gather", KERNEL, [data, indices], f32(2, 3, 4), axis=0)
    yield accept("Gather", MOVEMENT, [data, Number(-1, dtypes.I64)], f32(5), axis=1)
    yield reject("Gather", "dtype", [data, wrong], f32(2, 3, 4), axis=0)
    yield accept("GatherElements", KERNEL, [data, indices], f32(2, 3), axis=1)
    yield reject("GatherElements", "dtype", [data, wrong], f32(2, 3), axis=1)
    yield accept("GatherND", KERNEL, [data, i64(3, 2)], f32(3))
    yield accept("GatherND", MOVEMENT, [f32(2, 1, 4), i64(2, 1, 1)], f32(2, 1, 4), batch_dims=1)
    yield reject("GatherND", "dtype", [data, f32(3, 2)], f32(3))
    for name in ("ScatterElements", "Scatter"):
        yield accept(name, KERNEL, [data, indices, f32(2, 3)], data, axis=1)
        yield reject(name, "attribute", [data, indices, f32(2, 3)], data, axis=2)
    yield accept("ScatterND", KERNEL, [data, i64(3, 1), f32(3, 4)], data, reduction="add")
    yield reject("ScatterND", "attribute", [data, i64(3, 1), f32(3, 4)], data, reduction="mean")
    yield accept("Slice", MOVEMENT, [f32(6, 3), [1], [5], [0], [2]], f32(2, 3))
    yield accept("Slice", KERNEL, [f32(6, 3), [-1], [-7], [0], [-2]], f32(3, 3))
    yield reject("Slice", "operand", [f32(6, 3), i64(1), i64(1), [0], None], f32(2, 3))


def detection() -> Iterator[Sample]:
    """Boxes that overlap."""
    op, boxes, scores, number = "SuppressBoxes", f32(2, 5, 4), f32(2, 3, 5), f32(1)
    results = i64(2, 3, 2), i64(2, 3), kind(dtypes.I32, 2, 3, 5)
    yield accept(op, KERNEL, [boxes, scores, number, number], *results, most=2)
    yield reject(op, "shape", [f32(2, 4, 4), scores, number, number], *results, most=2)
    yield reject(op, "dtype", [kind(dtypes.F16, 2, 5, 4), scores, number, number], *results, most=2)


def recurrence() -> Iterator[Sample]:
    """Steps of a recurrence."""
    op, rows, state, last = "Recurrence", f32(5, 2, 2 * 4 * 20), f32(2, 1, 20), f32(2, 2, 20)
    weights, y, scratch = f32(2 * 2 * 4 * 24 * 16), f32(5, 2, 2, 20), kind(dtypes.I32, 3, 2, 2, 32)
    yield accept(op, KERNEL, [rows, weights, state, state], y, last, last, scratch, cell="lstm")
    yield accept(op, KERNEL, [rows, weights, last, last, i64(2)], y, last, last, scratch, cell="lstm")
    of_gru = f32(5, 2, 2 * 3 * 20), f32(2 * 2 * 3 * 24 * 16), state, f32(2, 20)
    yield accept(op, KERNEL, [*of_gru, i32(2)], y, last, scratch, cell="gru")
    yield accept(
        op,
        KERNEL,
        [f32(5, 2, 20), f32(2 * 24 * 16), f32(1, 1, 20)],
        f32(5, 1, 2, 20),
        f32(1, 2, 20),
        kind(dtypes.I32, 3, 1, 2, 32),
        cell="tanh",
        reverse=1,
    )
    yield reject(op, "attribute", [rows, weights, state, state], y, last, last, scratch, cell="elman")
    yield reject(op, "operand", [rows, weights, state], y, last, last, scratch, cell="lstm")
    yield reject(op, "dtype", [rows, weights, state, state, f32(2)], y, last, last, scratch, cell="lstm")
    yield reject(op, "dtype", [f64(5, 2, 160), weights, state, state], y, last, last, scratch, cell="lstm")
    yield reject(op, "shape", [f32(5, 2, 80), weights, state, state], y, last, last, scratch, cell="lstm")
    yield reject(op, "shape", [rows, f32(2 * 2 * 4 * 20 * 16), state, state], y, last, last, scratch, cell="lstm")

    op, given = "QuantizedRecurrence", [kind(dtypes.I8, 2 * 2 * 4 * 24 * 16), state, last, f32(2 * 2 * 4 * 16), i32(2)]
    made = y, last, last, kind(dtypes.I32, 4, 2, 2, 32)
    yield accept(op, KERNEL, [rows, *given], *made)
    yield accept(op, KERNEL, [rows, *given, i64(2)], *made, reverse=1)
    yield reject(op, "operand", [rows, *given[:4]], *made)
    yield reject(op, "dtype", [rows, weights, *given[1:]], *made)
    yield reject(op, "dtype", [rows, *given, f32(2)], *made)
    yield reject(op, "shape", [rows, *given[:3], f32(2 * 4 * 20), i32(2)], *made)
    yield reject(op, "shape", [f32(5, 2, 80), *given], *made)


def sorting() -> Iterator[Sample]:
    """What looks along one dim."""
    x, flat = f32(3, 4), f32(3)
    yield accept("TopK", KERNEL, [x, [2]], f32(3, 2), i64(3, 2))
    yield Sample("hipdnn.onnx.TopK", (x, [2]), (f32(3, 2), i64(3, 2)), KERNEL, uses_all=True)
    yield reject("TopK", "dynamic-shape", [f32(None, 4), [2]], f32(None, 2), i64(None, 2))
    for name in ("ArgMax", "ArgMin"):
        yield accept(name, KERNEL, [x], i64(3), axis=1, keepdims=0)
        yield reject(name, "attribute", [x], i64(3), axis=2, keepdims=0)
    for name in ("CumSum", "CumProd"):
        yield accept(name, KERNEL, [x, [-1]], x, exclusive=1)
        yield accept(name, KERNEL, [flat, i64()], flat)
        yield reject(name, "operand", [x, i64()], x)
    yield accept("ReverseSequence", KERNEL, [x, i64(4)], x)
    yield reject("ReverseSequence", "dynamic-shape", [f32(None, 4), i64(4)], f32(None, 4))


def rearranging() -> Iterator[Sample]:
    """Padding, repetition, resizing."""
    x, image = f32(2, 3), f32(1, 2, 4, 4)
    yield accept("aten.pad", KERNEL, [f32(1, 2, 3), [1, 2], "reflect", None], f32(1, 2, 6))
    for name in ("tile", "repeat"):
        yield accept(f"aten.{name}", KERNEL, [x, [2, 2]], f32(4, 6))
        yield reject(f"aten.{name}", "dynamic-shape", [f32(None, 3), [2, 1]], f32(None, 3))
    yield accept("BitCast", KERNEL, [x], i32(2, 3))
    yield reject("BitCast", "dtype", [x], i16(2, 3))
    yield accept("aten.sum.dim_IntList", KERNEL, [i16(2, 3), [1], False, None], i16(2))
    yield accept("Resize", KERNEL, [image, None, [1.0, 1.0, 2.0, 2.0], None], f32(1, 2, 8, 8), mode="linear")
    yield reject("Resize", "operand", [image, None, f32(4), None], f32(1, 2, 8, 8))
    yield accept("GridSample", KERNEL, [image, f32(1, 3, 3, 2)], f32(1, 2, 3, 3))
    yield reject("GridSample", "dynamic-shape", [image, f32(1, None, 3, 2)], f32(1, 2, None, 3))
