"""Scaled dot product attention in its canonical form: q x k^T, scale, mask, Softmax, x v, with q k v as [b, heads, s, d]."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from ...ops.registry import HIPDNN_DOMAIN
from ...ops.spec import Refusal
from .call import BFLOAT16, BOOL, DOUBLE, FLOAT, FLOAT16, INT64, Call
from .registry import decomposes

BSHD_TO_BHSD = (0, 2, 1, 3)
_RAW, _CAPPED, _BIASED, _PROBABILITIES = range(4)
_PRECISIONS = (0, FLOAT, FLOAT16, BFLOAT16, DOUBLE)


@dataclass(frozen=True)
class Scores:
    """How the matmul of queries and keys becomes weights.

    Attributes:
        scale: factor of the matmul.
        softcap: bound c of c * tanh(x / c), 0 for none.
        biases: what is added, each broadcast to [b, heads, s_q, s_kv].
        precision: ONNX element type of the softmax, 0 for the operands'.
        may_mask_all: whether all keys of a query can be masked by -inf, which gives zeros.
        sink: [heads] or scalar, a further score that takes its share and no value; None for none.
    """

    scale: float
    softcap: float = 0.0
    biases: tuple[str, ...] = ()
    precision: int = 0
    may_mask_all: bool = False
    sink: str | None = None


def split_heads(call: Call, x: str, heads: int) -> str:
    """[b, s, heads * d] -> [b, heads, s, d]; refuses channels that heads do not share evenly."""
    channels = call.size_if_known(x, 2)
    if heads < 1 or (channels or 0) % heads:
        raise Refusal("shape", f"{channels} channels of {x!r} cannot be split into {heads} heads")
    return call.transpose(call.reshape(x, 0, 0, heads, -1), *BSHD_TO_BHSD)


def scale_of_heads(call: Call, d: int) -> float:
    """The factor of the matmul: that of the attribute, else what heads of `d` numbers have; refuses empty heads."""
    if d < 1:
        raise Refusal("shape", f"heads of {d} numbers")
    return call.attr("scale", 0.0) or 1 / math.sqrt(d)


def merge_heads(call: Call, x: str) -> str:
    """[b, heads, s, d] -> [b, s, heads * d]."""
    return call.reshape(call.transpose(x, *BSHD_TO_BHSD), 0, 0, -1)


def repeat_heads(call: Call, x: str, heads: int) -> str:
    """[b, kv heads, s, d] -> [b, heads, s, d]: each head serves several neighbouring ones."""
    present = call.size(x, 1)
    if present == heads:
        return x
    if present < 1 or heads % present:
        raise Refusal("shape", f"{heads} query heads are not a multiple of {present} key heads")
    repeated = call.op("Expand", call.unsqueeze(x, 2), call.ints(1, 1, heads // present, 1, 1))
    return call.reshape(repeated, 0, heads, -1, call.size(x, 3))


def additive(call: Call, mask: str, like: str, masked: float = -math.inf) -> str:
    """Booleans, true where a key takes part, as what is added to scores."""
    return call.op("Where", mask, call.number(0.0, like), call.number(masked, like))


def visible(call: Call, q: str, k: str, past: str, left: int = -1, right: int = -1) -> str:
    """Which keys a query sees: those from `left` before it to `right` behind it, -1 for all.

    Args:
        call: the call.
        q: [b, heads, s_q, d].
        k: [b, heads, s_kv, d].
        past: int64, number of keys before the first query; a list of one, or [b, 1, 1, 1].
        left: how far back.
        right: how far ahead; 0 for causal attention.

    Returns:
        bool [s_q, s_kv], or [b, 1, s_q, s_kv].
    """
    rows = call.op("Add", call.unsqueeze(call.range(call.length(q, 2)), 1), past)
    columns = call.range(call.length(k, 2))
    found = []
    if right >= 0:
        found.append(call.op("LessOrEqual", columns, _moved(call, rows, right)))
    if left >= 0:
        found.append(call.op("GreaterOrEqual", columns, _moved(call, rows, -left)))
    return found[0] if len(found) == 1 else call.op("And", *found)


def _moved(call: Call, rows: str, by: int) -> str:
    return call.op("Add", rows, call.ints(by)) if by else rows


def attend(call: Call, q: str, k: str, v: str, scores: Scores) -> tuple[str, list[str]]:
    """The attention's result [b, heads, s_q, d_v], and the scores: raw, capped, with biases, as weights."""
    heads = call.size(q, 1)
    k, v = repeat_heads(call, k, heads), repeat_heads(call, v, heads)
    raw = call.op("MatMul", q, call.transpose(k, 0, 1, 3, 2))
    if scores.scale != 1.0:
        raw = call.scaled(raw, scores.scale)
    capped = raw
    if scores.softcap:
        cap = call.number(scores.softcap, q)
        capped = call.op("Mul", call.op("Tanh", call.op("Div", raw, cap)), cap)
    biased = capped
    for bias in scores.biases:
        biased = call.op("Add", biased, bias)
    precise = call.cast(biased, scores.precision) if scores.precision else biased
    weights = _softmax(call, precise, heads, scores.sink)
    if scores.may_mask_all:
        weights = call.op("Where", call.op("IsNaN", weights), call.number(0.0, precise), weights)
    weights = call.cast(weights, call.kind(q))
    return call.op("MatMul", weights, v), [raw, capped, biased, weights]


def _softmax(call: Call, scores: str, heads: int, sink: str | None) -> str:
    if sink is None:
        return call.op("Softmax", scores, axis=-1)
    column = call.op(
        "Expand",
        call.reshape(sink, 1, -1, 1, 1),
        call.concat(0, call.length(scores, 0), call.ints(heads), call.length(scores, 2), call.ints(1)),
    )
    joined = call.op("Softmax", call.concat(-1, scores, column), axis=-1)
    return call.slice(joined, 3, 0, -1)


@decomposes("Attention")
def attention(call: Call) -> Sequence[str | None]:
    """Attention of opsets 23 to 25.

    Source: ONNX, Attention-23, -24 and -25.
    """
    q, k, v = (call.need(index) for index in range(3))
    is_merged = call.rank(q) == 3
    if is_merged:
        heads, kv_heads = call.count("q_num_heads"), call.count("kv_num_heads")
        q, k, v = split_heads(call, q, heads), split_heads(call, k, kv_heads), split_heads(call, v, kv_heads)
    past_key, past_value, lengths = call.arg(4), call.arg(5), call.arg(6)
    past = call.length(past_key, 2) if past_key else call.ints(0)
    if past_key and past_value:
        k, v = call.concat(2, past_key, k), call.concat(2, past_value, v)
    shown, precision = (
        call.one_of(range(4), "qk_matmul_output_mode", _RAW),
        call.one_of(_PRECISIONS, "softmax_precision", 0),
    )
    scale = scale_of_heads(call, call.size(q, 3))
    biases, may_mask_all = _biases(call, q, k, past, lengths)
    scores = Scores(scale, call.attr("softcap", 0.0), biases, precision, may_mask_all)
    y, steps = attend(call, q, k, v, scores)
    return [merge_heads(call, y) if is_merged else y, k, v, steps[shown]]


def _biases(call: Call, q: str, k: str, past: str, lengths: str | None) -> tuple[tuple[str, ...], bool]:
    """What masks add, and whether they can mask everything."""
    biases = []
    mask = call.arg(3)
    if mask:
        mask = _padded(call, mask, k)
        biases.append(additive(call, mask, q) if call.kind(mask) == BOOL else mask)
    left, right = call.attr("left_window_size", -1), call.attr("right_window_size", -1)
    if call.attr("is_causal", 0):
        right = 0
    count = None
    if lengths:
        count = call.reshape(call.cast(lengths, INT64), -1, 1, 1, 1)
        past = call.op("Sub", count, call.length(q, 2))
    if left >= 0 or right >= 0:
        biases.append(additive(call, visible(call, q, k, past, left, right), q))
    if count:
        biases.append(additive(call, call.op("Less", call.range(call.length(k, 2)), count), q))
    return tuple(biases), bool(mask or lengths or left >= 0)


def _padded(call: Call, mask: str, k: str) -> str:
    """The mask for all keys: those that it does not reach are masked."""
    have, want = call.size_if_known(mask, -1), call.size_if_known(k, 2)
    if have is None or want is None or have in (1, want):
        return mask
    pads = call.ints(*[0] * (2 * call.rank(mask) - 1), want - have)
    if call.kind(mask) == BOOL:
        dtype = np.int32  # Pad of booleans is rare; the padded mask is compared instead
        return call.cast(call.op("Pad", call.cast(mask, 6), pads, call.const(dtype(0))), BOOL)
    return call.op("Pad", mask, pads, call.number(-math.inf, mask))


@decomposes("TensorScatter")
def tensor_scatter(call: Call) -> Sequence[str | None]:
    """TensorScatter into a cache that is not circular: each batch has its new rows from its own position on.

    Source: ONNX, TensorScatter-24.
    """
    cache, new, start = call.need(0), call.need(1), call.arg(2)
    axis = call.axis(cache, call.attr("axis", -2))
    if call.attr("mode", "linear") != "linear" or axis == 0:
        raise Refusal("attribute", f"mode {call.attr('mode', 'linear')} along axis {axis}")
    dims = call.dims(cache)
    before, behind = (_volume(part) for part in (dims[1:axis], dims[axis + 1 :]))
    first = start or call.op(
        "ConstantOfShape", call.length(cache, 0), value=onnx.numpy_helper.from_array(np.zeros(1, np.int64))
    )
    places = call.range(call.length(cache, axis))
    flat = (call.reshape(x, 0, before, -1, behind) if len(dims) != 4 or axis != 2 else x for x in (cache, new))
    y = call.op("CacheUpdate", *flat, first, places, domain=HIPDNN_DOMAIN)
    return [y if len(dims) == 4 and axis == 2 else call.op("Reshape", y, call.op("Shape", cache))]


def _volume(dims: Sequence[int | None]) -> int:
    """Elements of a part of a tensor; refuses open sizes."""
    if None in dims:
        raise Refusal("dynamic-shape", "sizes beside a cache's rows are not known at compile time")
    return math.prod(size for size in dims if size is not None)
