"""Rotary position embedding."""

from collections.abc import Sequence

from ...ops.spec import Refusal
from .attention import split_heads
from .call import INT64, Call
from .registry import CONTRIB, decomposes


def rotate(call: Call, x: str, cos: str, sin: str, width: int, is_interleaved: bool) -> str:
    """Rotate pairs of the first `width` numbers of each head.

    Args:
        call: the call.
        x: [b, heads, s, d] or [b, s, heads, d].
        cos: cosines, broadcast to x with width / 2 as the last dim.
        sin: sines.
        width: even, up to d.
        is_interleaved: pairs are neighbours, not halves.
    """
    d = call.size(x, 3)
    if width < 2 or width % 2 or width > d:
        raise Refusal("shape", f"rotates {width} numbers of heads of {d}, expected an even number up to that")
    part = x if width == d else call.slice(x, 3, 0, width)
    if is_interleaved:
        a, b = call.slice(part, 3, 0, width, 2), call.slice(part, 3, 1, width, 2)
    else:
        a, b = call.split(part, 3, (width // 2, width // 2))
    real = call.op("Sub", call.op("Mul", a, cos), call.op("Mul", b, sin))
    imaginary = call.op("Add", call.op("Mul", a, sin), call.op("Mul", b, cos))
    if is_interleaved:
        turned = call.reshape(call.concat(-1, call.unsqueeze(real, 4), call.unsqueeze(imaginary, 4)), 0, 0, 0, width)
    else:
        turned = call.concat(-1, real, imaginary)
    return turned if width == d else call.concat(-1, turned, call.slice(x, 3, width, d))


def _rotary_embedding(call: Call, cos: str, sin: str, width: int) -> Sequence[str | None]:
    """Rotate [b, s, heads * d] or [b, heads, s, d] by [b, s, width / 2]."""
    x = call.need(0)
    is_interleaved = bool(call.attr("interleaved", 0))
    if call.rank(x) == 4:
        return [rotate(call, x, call.unsqueeze(cos, 1), call.unsqueeze(sin, 1), width, is_interleaved)]
    heads = call.attr("num_heads", 0) or call.size(x, 2) // max(width, 1)
    split = call.reshape(x, 0, 0, heads, -1)
    turned = rotate(call, split, call.unsqueeze(cos, 2), call.unsqueeze(sin, 2), width, is_interleaved)
    return [call.reshape(turned, 0, 0, -1)]


@decomposes("RotaryEmbedding")
def rotary_embedding(call: Call) -> Sequence[str | None]:
    """RotaryEmbedding of opset 23.

    Source: ONNX, RotaryEmbedding-23.
    """
    cos, sin, positions = call.need(1), call.need(2), call.arg(3)
    if positions:
        cos, sin = call.op("Gather", cos, positions), call.op("Gather", sin, positions)
    width = call.attr("rotary_embedding_dim", 0) or 2 * call.size(cos, 2)
    half = width // 2
    if call.size(cos, 2) > half:
        cos, sin = call.slice(cos, 2, 0, half), call.slice(sin, 2, 0, half)
    return _rotary_embedding(call, cos, sin, width)


@decomposes("RotaryEmbedding", domain=CONTRIB)
def contrib_rotary_embedding(call: Call) -> Sequence[str | None]:
    """RotaryEmbedding of com.microsoft: the caches are gathered by position, or from one position on.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.RotaryEmbedding.
    """
    x, positions, cos, sin = (call.need(index) for index in range(4))
    width = 2 * call.size(cos, 1)
    if call.rank(positions) == 1:
        axis = 1 if call.rank(x) == 3 else 2
        steps = call.unsqueeze(call.range(call.length(x, axis)), 0)
        positions = call.op("Add", steps, call.cast(positions, INT64))
    return _rotary_embedding(call, call.op("Gather", cos, positions), call.op("Gather", sin, positions), width)


def rotated_heads(call: Call, x: str, heads: int, cos: str, sin: str, is_interleaved: bool) -> str:
    """[b, s, heads * d] -> rotated [b, heads, s, d]; cos and sin are [b, s, width / 2]."""
    width = 2 * call.size(cos, 2)
    return rotate(
        call, split_heads(call, x, heads), call.unsqueeze(cos, 1), call.unsqueeze(sin, 1), width, is_interleaved
    )
