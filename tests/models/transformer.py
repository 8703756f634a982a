"""A BERT-like encoder on hidden states n s d with an additive attention mask n 1 1 s."""

from __future__ import annotations

from math import sqrt
from typing import Literal

import onnx

from models.builder import GraphBuilder

Gelu = Literal["op", "erf"]


def _linear(b: GraphBuilder, x: str, k: int, n: int) -> str:
    """Append ``x @ W + bias``, the bias first, as exporters write a linear layer on more than two dimensions."""
    return b.op("Add", b.normal([n], 0.02, name="bias"), b.op("MatMul", x, b.normal([k, n], sqrt(1 / k))))


def _layer_norm(b: GraphBuilder, x: str, d: int) -> str:
    return b.op(
        "LayerNormalization", x, b.uniform([d], 0.8, 1.2), b.normal([d], 0.05, name="bias"), axis=-1, epsilon=1e-12
    )


def _gelu(b: GraphBuilder, x: str, form: Gelu) -> str:
    """Append the activation as one node (opset 20) or written out with Erf, as older exporters do."""
    if form == "op":
        return b.op("Gelu", x)
    erf = b.op("Erf", b.op("Div", x, b.constant(sqrt(2), "float32")))
    product = b.op("Mul", x, b.op("Add", erf, b.constant(1, "float32")))
    return b.op("Mul", product, b.constant(0.5, "float32"))


def _attention(b: GraphBuilder, x: str, mask: str, d: int, heads: int) -> str:
    """Append self-attention and its output layer."""
    d_head = d // heads
    split = b.constant([0, 0, heads, d_head], "int64", "split")
    q, k, v = (b.op("Reshape", _linear(b, x, d, d), split) for _ in range(3))
    q, k, v = (b.op("Transpose", y, perm=perm) for y, perm in ((q, [0, 2, 1, 3]), (k, [0, 2, 3, 1]), (v, [0, 2, 1, 3])))
    scores = b.op("Div", b.op("MatMul", q, k), b.constant(sqrt(d_head), "float32"))
    weights = b.op("Softmax", b.op("Add", scores, mask), axis=-1)
    joined = b.op("Transpose", b.op("MatMul", weights, v), perm=[0, 2, 1, 3])
    return _linear(b, b.op("Reshape", joined, b.constant([0, 0, d], "int64", "join")), d, d)


def encoder(
    layers: int = 12,
    batch: int = 1,
    s: int = 128,
    d: int = 768,
    heads: int = 12,
    ffn: int = 3072,
    *,
    gelu: Gelu = "op",
    seed: int = 0,
) -> onnx.ModelProto:
    """Return a post-norm transformer encoder; the defaults are BERT-base at sequence length 128.

    Args:
        layers: Encoder layers.
        batch: Sequences per run.
        s: Sequence length.
        d: Width of a hidden state.
        heads: Attention heads; divides ``d``.
        ffn: Width of the inner feed-forward layer.
        gelu: The activation as one node, or written out with Erf.
        seed: Seed of the weights.
    """
    b = GraphBuilder("encoder", opset=20 if gelu == "op" else 17, seed=seed)
    x = b.input("hidden", [batch, s, d])
    mask = b.input("mask", [batch, 1, 1, s])
    for _ in range(layers):
        x = _layer_norm(b, b.op("Add", _attention(b, x, mask, d, heads), x), d)
        y = _linear(b, _gelu(b, _linear(b, x, d, ffn), gelu), ffn, d)
        x = _layer_norm(b, b.op("Add", y, x), d)
    return b.model({x: [batch, s, d]})
