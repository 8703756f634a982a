"""Norms, and sums that go into them."""

from collections.abc import Sequence

from ...ops.spec import Refusal
from .call import DOUBLE, FLOAT, Call
from .registry import CONTRIB, decomposes


def rms_norm(call: Call, x: str, scale: str, axes: Sequence[int], epsilon: float, precision: int) -> str:
    """The quotient x / sqrt(mean(x * x) + epsilon) * scale, the norm in another precision."""
    precise = call.cast(x, precision)
    mean = call.reduce("ReduceMean", call.op("Mul", precise, precise), axes)
    root = call.op("Sqrt", call.op("Add", mean, call.const(epsilon, precision)))
    return call.op("Mul", call.cast(call.op("Div", precise, root), call.kind(x)), scale)


@decomposes("RMSNormalization")
def rms_normalization(call: Call) -> Sequence[str | None]:
    """RMSNormalization of opset 23.

    Source: ONNX, RMSNormalization-23.
    """
    x, rank = call.need(0), call.rank(call.need(0))
    axes = range(call.axis(x, call.attr("axis", -1)), rank)
    return [rms_norm(call, x, call.need(1), [*axes], call.attr("epsilon", 1e-5), call.float_kind("stash_type"))]


@decomposes("LayerNormalization")
def layer_normalization(call: Call) -> Sequence[str | None] | None:
    """LayerNormalization in f64 without its statistics, of which hipDNN has the training phase only.

    Source: ONNX, LayerNormalization-17.
    """
    x, scale, bias = call.need(0), call.need(1), call.arg(2)
    if call.kind(x) != DOUBLE or call.wants(1) or call.wants(2):
        return None
    axes = [*range(call.axis(x, call.attr("axis", -1)), call.rank(x))]
    centred = call.op("Sub", x, call.reduce("ReduceMean", x, axes))
    variance = call.reduce("ReduceMean", call.op("Mul", centred, centred), axes)
    deviation = call.op("Sqrt", call.op("Add", variance, call.number(call.attr("epsilon", 1e-5), x)))
    y = call.op("Mul", call.op("Div", centred, deviation), scale)
    return [call.op("Add", y, bias) if bias else y]


@decomposes("BatchNormalization")
def batch_normalization(call: Call) -> Sequence[str | None] | None:
    """BatchNormalization in training mode: statistics of the batch, as standardized weights have them; torch-mlir has the others.

    Source: ONNX, BatchNormalization-15.
    """
    if not call.attr("training_mode", 0):
        return None
    x = call.cast(call.need(0), call.precision(call.need(0)))
    axes = [axis for axis in range(call.rank(x)) if axis != 1]
    mean = call.reduce("ReduceMean", x, axes)
    centred = call.op("Sub", x, mean)
    variance = call.reduce("ReduceMean", call.op("Mul", centred, centred), axes)
    deviation = call.op("Sqrt", call.op("Add", variance, call.number(call.attr("epsilon", 1e-5), x)))
    scale, bias = (
        call.cast(call.reshape(call.need(index), -1, *[1] * (call.rank(x) - 2)), call.kind(x)) for index in (1, 2)
    )
    y = call.op("Add", call.op("Mul", call.op("Div", centred, deviation), scale), bias)
    results: list[str | None] = [call.cast(y, call.kind(call.need(0)))]
    momentum = call.attr("momentum", 0.9)
    for index, found in ((3, mean), (4, variance)):
        old = call.need(index)
        new = call.scaled(call.cast(call.reshape(found, -1), call.kind(old)), 1 - momentum)
        results.append(call.op("Add", call.scaled(old, momentum), new) if call.wants(index - 2) else None)
    return results


@decomposes("SimplifiedLayerNormalization", domain=CONTRIB)
def simplified_layer_normalization(call: Call) -> Sequence[str | None]:
    """SimplifiedLayerNormalization: RMS norm under its older name.

    Source: ONNX Runtime, orttraining's and contrib's schema of SimplifiedLayerNormalization.
    """
    if call.wants(1):
        raise Refusal("result", "the inverse deviations are used")
    x, rank = call.need(0), call.rank(call.need(0))
    axes = range(call.axis(x, call.attr("axis", -1)), rank)
    return [rms_norm(call, x, call.need(1), [*axes], call.attr("epsilon", 1e-5), call.precision(x))]


def _skip_sum(call: Call, bias: str | None) -> str:
    if call.wants(1) or call.wants(2):
        raise Refusal("result", "means or deviations are used")
    total = call.op("Add", call.need(0), call.need(1))
    return call.op("Add", total, bias) if bias else total


@decomposes("SkipLayerNormalization", domain=CONTRIB)
def skip_layer_normalization(call: Call) -> Sequence[str | None]:
    """LayerNormalization of input + skip + bias; the sum is the fourth result.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.SkipLayerNormalization.
    """
    total = _skip_sum(call, call.arg(4))
    y = call.op("LayerNormalization", total, call.need(2), call.arg(3), axis=-1, epsilon=call.attr("epsilon", 1e-12))
    return [y, None, None, total]


@decomposes("SkipSimplifiedLayerNormalization", domain=CONTRIB)
def skip_simplified_layer_normalization(call: Call) -> Sequence[str | None]:
    """RMS norm of input + skip + bias; the sum is the fourth result.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.SkipSimplifiedLayerNormalization.
    """
    total = _skip_sum(call, call.arg(3))
    return [
        rms_norm(call, total, call.need(2), [-1], call.attr("epsilon", 1e-12), call.precision(total)),
        None,
        None,
        total,
    ]


@decomposes("EmbedLayerNormalization", domain=CONTRIB)
def embed_layer_normalization(call: Call) -> Sequence[str | None]:
    """LayerNormalization of the sum of word, position and segment embeddings; with the lengths that a 0/1 mask states.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.EmbedLayerNormalization.
    """
    ids, segments, words, positions, types = (call.arg(index) for index in range(5))
    if ids is None or words is None or positions is None:
        raise Refusal("operand", "ids, word or position embeddings are missing")
    order = call.arg(8) or call.unsqueeze(call.range(call.length(ids, 1)), 0)
    total = call.op("Add", call.op("Gather", words, ids), call.op("Gather", positions, order))
    if segments and types:
        total = call.op("Add", total, call.op("Gather", types, segments))
    y = call.op("LayerNormalization", total, call.need(5), call.arg(6), axis=-1, epsilon=call.attr("epsilon", 1e-12))
    mask = call.arg(7)
    lengths = None
    if call.wants(1):
        if mask:
            lengths = call.reduce("ReduceSum", mask, [1], keepdims=False)
        else:
            first = call.squeeze(call.slice(ids, 1, 0, 1), 1)
            lengths = call.op("Sub", first, first)
    return [y, lengths, total]


@decomposes("GroupNormalization")
def group_normalization(call: Call) -> Sequence[str | None]:
    """GroupNormalization: each group of channels is normalized, then scaled and shifted by channel (opset 21) or by group (18).

    Source: ONNX, GroupNormalization-18 and -21.
    """
    x, groups = call.need(0), call.count("num_groups")
    precision = call.float_kind("stash_type") if call.opset >= 21 else call.precision(x)
    inner = [1] * (call.rank(x) - 2)
    normalized = call.cast(
        _normalize_groups(call, call.cast(x, precision), groups, call.attr("epsilon", 1e-5)), call.kind(x)
    )
    if call.opset >= 21:
        scale, bias = (call.reshape(call.need(index), -1, *inner) for index in (1, 2))
        return [call.op("Add", call.op("Mul", normalized, scale), bias)]
    split = call.reshape(normalized, 0, groups, -1)
    scale, bias = (call.reshape(call.need(index), -1, 1) for index in (1, 2))
    return [call.op("Reshape", call.op("Add", call.op("Mul", split, scale), bias), call.op("Shape", x))]


def _normalize_groups(call: Call, x: str, groups: int, epsilon: float) -> str:
    """Zero mean and unit deviation in each group of channels of [n, c, ...]."""
    split = call.reshape(x, 0, groups, -1)
    centred = call.op("Sub", split, call.reduce("ReduceMean", split, [2]))
    variance = call.reduce("ReduceMean", call.op("Mul", centred, centred), [2])
    root = call.op("Sqrt", call.op("Add", variance, call.number(epsilon, x)))
    return call.op("Reshape", call.op("Div", centred, root), call.op("Shape", x))


@decomposes("GroupNorm", "SkipGroupNorm", domain=CONTRIB)
def contrib_group_norm(call: Call) -> Sequence[str | None]:
    """GroupNorm and SkipGroupNorm of com.microsoft: channels are last by default, SiLU follows where asked for.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.GroupNorm and SkipGroupNorm.
    """
    x, scale, shift = (call.need(index) for index in range(3))
    total = None
    if call.node.op_type == "SkipGroupNorm":
        skip, bias = call.need(3), call.arg(4)
        if call.rank(skip) == 2:
            skip = call.unsqueeze(skip, 1, 2)
        total = call.op("Add", x, skip)
        x = total = call.op("Add", total, bias) if bias else total
    is_last = bool(call.attr("channels_last", 1))
    kind = call.kind(x)
    precise = call.cast(x, FLOAT)
    first = call.transpose(precise, 0, 3, 1, 2) if is_last else precise
    y = _normalize_groups(call, first, call.count("groups"), call.attr("epsilon", 1e-5))
    y = call.transpose(y, 0, 2, 3, 1) if is_last else y
    scale, shift = (call.cast(value if is_last else call.reshape(value, -1, 1, 1), FLOAT) for value in (scale, shift))
    y = call.op("Add", call.op("Mul", y, scale), shift)
    if call.attr("activation"):
        y = call.op("Mul", y, call.op("Sigmoid", y))
    return [call.cast(y, kind), total]


@decomposes("MeanVarianceNormalization")
def mean_variance_normalization(call: Call) -> Sequence[str | None]:
    """(x - mean) / (deviation + 1e-9); the deviations are summed, not the squares, which cancel.

    Source: ONNX, MeanVarianceNormalization-13.
    """
    x, axes = call.need(0), call.attr("axes", [0, 2, 3])
    centred = call.op("Sub", x, call.reduce("ReduceMean", x, axes))
    deviation = call.op("Sqrt", call.reduce("ReduceMean", call.op("Mul", centred, centred), axes))
    return [call.op("Div", centred, call.op("Add", deviation, call.number(1e-9, x)))]


@decomposes("LpNormalization")
def lp_normalization(call: Call) -> Sequence[str | None]:
    """LpNormalization: x / norm of x, zero where the norm is.

    Source: ONNX, LpNormalization-22.
    """
    x, axis = call.need(0), call.attr("axis", -1)
    norm = call.reduce(f"ReduceL{call.one_of((1, 2), 'p', 2)}", x, [axis])
    is_zero = call.op("Equal", norm, call.number(0.0, x))
    return [call.op("Div", x, call.op("Where", is_zero, call.number(1.0, x), norm))]
