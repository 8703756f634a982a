"""What strategies are made of: dtypes as an operator's schema allows, shapes, and arrays with the values that are easily got wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hipdnn_mlir_runtime.dtypes import ALL

from .call import OPSET, Array
from .compare import is_float
from .operators import Draw

Dims = tuple[int, ...]
F32 = np.dtype(np.float32)
WIDE = tuple(d for d in ALL if not d.is_float8)
"""Those of 8 bits have tests/test_float8.py: few operators take them."""
FLOATS = tuple(d.numpy for d in WIDE if d.is_float)
MATMUL_FLOATS = tuple(d.numpy for d in ALL if d.name in ("f32", "f16", "bf16"))
PRODUCT_TYPES = (*MATMUL_FLOATS, *(d.numpy for d in ALL if d.name in ("f64", "i32", "i64")))
INTEGERS = tuple(d.numpy for d in ALL if d.numpy.kind in "iu")
EVERY = tuple(d.numpy for d in WIDE)
_BY_SPELLING = {f"tensor({d.onnx.lower()})": d.numpy for d in WIDE}
_SIZES = (1, 2, 3, 4, 5, 7, 9, 17)


def dtype_of(
    draw: Draw, op: str, *, among: Sequence[np.dtype] = EVERY, operand: int = 0, opset: int = OPSET
) -> np.dtype:
    """A dtype that ONNX lets an operand have."""
    schema = onnx.defs.get_schema(op, opset)
    kinds = schema.inputs[operand].types
    allowed = {_BY_SPELLING[kind] for kind in kinds if kind in _BY_SPELLING}
    return draw(st.sampled_from([dtype for dtype in among if dtype in allowed]))


def dims_of(draw: Draw, least: int = 0, most: int = 5, *, empty: bool = False, limit: int = 4096) -> Dims:
    """Dims of a rank between two; with sizes of 0 where `empty`, at most `limit` elements."""
    sizes = st.sampled_from((*_SIZES, 0) if empty else _SIZES)
    dims = draw(st.lists(sizes, min_size=least, max_size=most))
    while np.prod(dims) > limit:
        dims[int(np.argmax(dims))] = 2
    return tuple(dims)


def broadcast_dims(draw: Draw, count: int, *, most: int = 6, empty: bool = True) -> list[Dims]:
    """Dims of operands that broadcast to one another."""
    sides = {"min_side": 0 if empty and draw(st.booleans()) else 1, "max_side": 5}
    found = draw(hnp.mutually_broadcastable_shapes(num_shapes=count, min_dims=0, max_dims=most, **sides))
    return list(found.input_shapes)


def axis_of(draw: Draw, rank: int) -> int:
    """An axis, counted from either end."""
    return draw(st.integers(-rank, rank - 1))


def axes_of(draw: Draw, rank: int) -> list[int]:
    """Different axes, counted from either end."""
    chosen = draw(st.sets(st.integers(0, rank - 1))) if rank else set()
    return [axis - rank if draw(st.booleans()) else axis for axis in chosen]


def flag(draw: Draw) -> int:
    """An attribute of 0 or 1."""
    return int(draw(st.booleans()))


def one_of(draw: Draw, *values: Any) -> Any:
    """One of the values."""
    return draw(st.sampled_from(values))


def generator(draw: Draw) -> np.random.Generator:
    """A source of random numbers; arrays come from it, as drawing them by element costs far more than the models."""
    return np.random.default_rng(draw(st.integers(0, 1 << 16)))


_SPECIAL = (0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 1.0, -1.0)
_WILD = (np.inf, -np.inf, np.nan)


def array_of(
    draw: Draw, dtype: np.dtype, dims: Sequence[int], *, low: float = -4.0, high: float = 4.0, special: bool = False
) -> Array:
    """Random numbers: floats between two bounds (with halves, signed zeros, inf and NaN where `special`), small integers, booleans.

    Integers are drawn from the whole range of their dtype where `special`.
    """
    rng = generator(draw)
    if dtype == np.bool_:
        return rng.integers(0, 2, dims).astype(np.bool_)
    if not is_float(dtype):
        info = np.iinfo(dtype)
        if special and draw(st.booleans()):
            return rng.integers(info.min, info.max, dims, dtype, endpoint=True)
        return rng.integers(max(info.min, int(low)), int(high) + 1, dims).astype(dtype)
    array = np.asarray(rng.uniform(low, high, dims)).astype(dtype)
    if special:
        pool = [*_SPECIAL, *(_WILD if draw(st.booleans()) else ())]
        chosen = rng.choice(np.array(pool), dims)
        array = np.where(rng.random(dims) < 0.3, chosen, array.astype(np.float64)).astype(dtype)
    return array


def distinct(draw: Draw, dtype: np.dtype, dims: Sequence[int]) -> Array:
    """Numbers of which no two are equal where the dtype has enough, in random order: what ties would leave open is decided."""
    count = int(np.prod(dims))
    numbers = generator(draw).permutation(count) - (count // 2 if dtype.kind != "u" else 0)
    return numbers.reshape(dims).astype(dtype)


def ints(*values: int) -> Array:
    """An array of i64."""
    return np.array(values, np.int64)


BF16 = np.dtype(ml_dtypes.bfloat16)
