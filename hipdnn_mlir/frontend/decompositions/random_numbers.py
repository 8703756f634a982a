"""Random numbers of a seed: constants of the program, the numbers that onnx's reference implementation makes of it.

They are those of NumPy's `RandomState`, whose sequence for a seed never changes.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from ...ops.evaluate import Array
from ...ops.spec import Refusal
from ..shape_inference import DATA_DEPENDENT
from .call import BFLOAT16, DOUBLE, FLOAT, FLOAT16, Call
from .registry import decomposes

RANDOM = "random"
"""The rule of what differs from run to run."""
MAX_NUMBERS = 1 << 26
"""Of one operator; more would make too large a program."""
_SEEDS = 1 << 32


@decomposes("RandomUniform", "RandomUniformLike")
def random_uniform(call: Call) -> Sequence[str | None]:
    """RandomUniform and RandomUniformLike with a seed: a constant.

    Source: ONNX, RandomUniform-22 and RandomUniformLike-22.
    """
    low, high = (np.float32(call.attr(name, default)) for name, default in (("low", 0.0), ("high", 1.0)))
    return [_constant(call, _uniform, float(high - low), float(low))]


@decomposes("RandomNormal", "RandomNormalLike")
def random_normal(call: Call) -> Sequence[str | None]:
    """RandomNormal and RandomNormalLike with a seed: a constant.

    Source: ONNX, RandomNormal-22 and RandomNormalLike-22.
    """
    return [_constant(call, _normal, call.attr("scale", 1.0), call.attr("mean", 0.0))]


@decomposes("Bernoulli")
def bernoulli(call: Call) -> Sequence[str | None]:
    """Bernoulli with a seed: probabilities are compared with a constant for those up to a half, and with another for larger ones.

    NumPy draws the rarer of the two results: up to a half a 1, where 1 - u is below the probability, and above a half a 0. It compares
    with the exponential of a logarithm, which f64 rounds: only probabilities of f64 can lie between that and 1 - u.

    Source: ONNX, Bernoulli-22.
    """
    x = call.need(0)
    drawn = _uniform(_state(call), _sizes(call, x))
    kind = call.precision(x)
    p = call.cast(x, kind)
    small, large = (call.const(_next(numbers, kind)) for numbers in (1 - drawn, np.nextafter(drawn, -1.0)))
    is_small = call.op("LessOrEqual", p, call.number(0.5, p))
    is_one = call.op("GreaterOrEqual", p, call.op("Where", is_small, small, large))
    return [call.op("Cast", is_one, to=call.attr("dtype", call.kind(x)))]


@decomposes("Dropout")
def dropout(call: Call) -> Sequence[str | None]:
    """Dropout with a seed: x times a mask, which is a constant where the ratio is known, over 1 - ratio; outside training x as it is.

    Source: ONNX, Dropout-22.
    """
    x, training = call.need(0), call.arg(2)
    is_training = call.value(training) if training else np.array(False)
    if is_training is not None and not is_training.any():
        true = onnx.helper.make_tensor("true", onnx.TensorProto.BOOL, [1], [True])
        return [x, call.op("ConstantOfShape", call.op("Shape", x), value=true) if call.wants(1) else None]
    drawn = _uniform(_state(call), _sizes(call, x))
    ratio = call.arg(1) or call.const(0.5, FLOAT)
    known = call.value(ratio)
    if known is not None:
        mask = call.const(drawn >= known.astype(np.float64))
    else:
        kind = call.precision(ratio)
        mask = call.op("Less", call.cast(ratio, kind), call.const(_next(drawn, kind)))
    one = call.number(1.0, ratio)
    scale = call.op("Div", one, call.op("Sub", one, ratio))
    kept = call.op("Mul", x, call.cast(mask, call.kind(x)))
    kind = DOUBLE if DOUBLE in (call.kind(x), call.kind(ratio)) else FLOAT
    y = call.cast(call.op("Mul", call.cast(kept, kind), call.cast(scale, kind)), call.kind(x))
    if is_training is None:
        assert training is not None
        y = call.op("Where", training, y, x)
        mask = call.op("Or", call.op("Not", training), mask)
    return [y, mask]


def _state(call: Call) -> np.random.RandomState:
    """The generator of the seed; refuses nodes without one."""
    seed = call.attr("seed")
    if seed is None or seed != seed:
        raise Refusal(RANDOM, "random numbers without a seed, but a program gives the same results at each run")
    if not isinstance(seed, (int, float)) or not 0 <= seed < _SEEDS:
        raise Refusal("attribute", f"seed {seed}, expected a number from 0 to 2^32 - 1")
    return np.random.RandomState(int(seed))


def _sizes(call: Call, like: str | None) -> list[int]:
    """The sizes of a value, or those that the node states; refuses those of a model that are open, and too many numbers."""
    if like and not call.has_one_size:
        raise Refusal(
            DATA_DEPENDENT, "its random numbers are a constant, for which the sizes of the model have to be known"
        )
    sizes = [call.size(like, axis) for axis in range(call.rank(like))] if like else call.attr("shape", [])
    if min(sizes, default=0) < 0:
        raise Refusal("attribute", f"shape {sizes}")
    if math.prod(sizes) > MAX_NUMBERS:
        raise Refusal("shape", f"{math.prod(sizes)} random numbers as a constant, expected at most {MAX_NUMBERS}")
    return list(sizes)


def _constant(call: Call, draw: Any, factor: float, offset: float) -> str:
    """Numbers of the node's type: drawn, scaled and moved, after each of these rounded to this type."""
    like = call.arg(0)
    kind = call.one_of((FLOAT, DOUBLE, FLOAT16, BFLOAT16), "dtype", call.kind(like) if like else FLOAT)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    wide = np.float64 if kind == DOUBLE else np.float32
    numbers = draw(_state(call), _sizes(call, like)).astype(dtype)
    scaled = (numbers.astype(wide) * wide(factor)).astype(dtype)
    return call.const((scaled.astype(wide) + wide(offset)).astype(dtype))


def _uniform(state: np.random.RandomState, sizes: Sequence[int]) -> NDArray[np.float64]:
    return np.asarray(state.random_sample(tuple(sizes)))


def _normal(state: np.random.RandomState, sizes: Sequence[int]) -> NDArray[np.float64]:
    return np.asarray(state.standard_normal(tuple(sizes)))


def _next(numbers: NDArray[np.float64], kind: int) -> Array:
    """The smallest numbers of a type that are larger: to compare with them is to compare with numbers of more digits."""
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    rounded = numbers.astype(dtype)
    return np.where(rounded > numbers, rounded, np.nextafter(rounded, dtype.type(np.inf)))
