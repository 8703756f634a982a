"""Small models of any depth: what the compiler does must not recurse, or take quadratic time, over their layers."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
import onnx
from onnx import TensorProto, helper

from models import GraphBuilder

WIDTH = 8


def encoder(layers: int) -> onnx.ModelProto:
    """Attention and a feed-forward part in each layer; norms and GELU written out, residuals, three products of one value."""
    g = GraphBuilder("encoder")
    x = g.input("x", (1, 4, WIDTH))
    for _ in range(layers):
        x = _norm(g, g.op("Add", x, _attention(g, x)))
        x = _norm(g, g.op("Add", x, _linear(g, _gelu(g, _linear(g, x)))))
    return g.model({x: (1, 4, WIDTH)})


def _linear(g: GraphBuilder, x: str) -> str:
    return g.op("Add", g.op("MatMul", x, g.normal((WIDTH, WIDTH), sqrt(1 / WIDTH))), g.normal((WIDTH,), 0.1))


def _norm(g: GraphBuilder, x: str) -> str:
    centred = g.op("Sub", x, g.op("ReduceMean", x, axes=[-1]))
    variance = g.op("ReduceMean", g.op("Mul", centred, centred), axes=[-1])
    deviation = g.op("Sqrt", g.op("Add", variance, g.constant(1e-5, np.float32)))
    scaled = g.op("Mul", g.op("Div", centred, deviation), g.uniform((WIDTH,), 0.8, 1.2))
    return g.op("Add", scaled, g.normal((WIDTH,), 0.1))


def _gelu(g: GraphBuilder, x: str) -> str:
    erf = g.op("Erf", g.op("Div", x, g.constant(sqrt(2), np.float32)))
    return g.op("Mul", g.op("Mul", x, g.op("Add", erf, g.constant(1, np.float32))), g.constant(0.5, np.float32))


def _attention(g: GraphBuilder, x: str) -> str:
    split = g.constant([1, 4, 2, WIDTH // 2], np.int64)
    q, k, v = (g.op("Reshape", _linear(g, x), split) for _ in range(3))
    q, k, v = (g.op("Transpose", y, perm=perm) for y, perm in ((q, [0, 2, 1, 3]), (k, [0, 2, 3, 1]), (v, [0, 2, 1, 3])))
    scores = g.op("Mul", g.op("MatMul", q, k), g.constant(0.5, np.float32))
    joined = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return g.op("Reshape", joined, g.constant([1, 4, WIDTH], np.int64))


def convolutions(layers: int) -> onnx.ModelProto:
    """Convolutions with residuals, halves of the channels joined again, now and then a pool."""
    g = GraphBuilder("convolutions")
    x = g.input("x", (1, WIDTH, 6, 6))
    for layer in range(layers):
        filters, bias = g.normal((WIDTH, WIDTH, 3, 3), 0.1), g.normal((WIDTH,), 0.1)
        y = g.op("Relu", g.op("Conv", x, filters, bias, pads=[1, 1, 1, 1]))
        if layer % 4 == 1:
            y = g.op("AveragePool", y, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        if layer % 4 == 3:
            low, high = (_slice(g, y, 1, start, start + WIDTH // 2) for start in (0, WIDTH // 2))
            y = g.op("Concat", high, g.op("Sigmoid", low), axis=1)
        x = g.op("Mul", g.op("Add", x, y), g.constant(0.7, np.float32))
    return g.model({x: (1, WIDTH, 6, 6)})


def _slice(g: GraphBuilder, x: str, axis: int, start: int, end: int) -> str:
    return g.op("Slice", x, *(g.constant([number], np.int64) for number in (start, end, axis)))


def movement(layers: int) -> onnx.ModelProto:
    """Transposes, reshapes, slices, borders and concatenations, with nothing computed between them but in the middle."""
    g = GraphBuilder("movement")
    x = g.input("x", (4, WIDTH))
    for layer in range(layers):
        x = g.op("Reshape", x, g.constant([2, 4, 4], np.int64))
        x = g.op("Transpose", x, perm=[[2, 0, 1], [0, 2, 1], [1, 0, 2]][layer % 3])
        x = g.op("Reshape", x, g.constant([4, WIDTH], np.int64))
        if layer == layers // 2:
            x = g.op("MatMul", x, g.normal((WIDTH, WIDTH), sqrt(1 / WIDTH)))
        if layer % 5 == 4:
            x = g.op("Concat", _slice(g, x, 1, 3, WIDTH), _slice(g, x, 1, 0, 3), axis=1)
        if layer % 7 == 6:
            x = _slice(g, g.op("Pad", x, g.constant([0, 1, 0, 1], np.int64)), 1, 1, WIDTH + 1)
    return g.model({x: (4, WIDTH)})


def views(layers: int) -> onnx.ModelProto:
    """Reshapes and slices only, between two products: one buffer seen through as many views."""
    g = GraphBuilder("views")
    width = WIDTH + layers
    x = g.op("MatMul", g.input("x", (4, WIDTH)), g.normal((WIDTH, width), 0.3))
    for layer in range(layers):
        x = _slice(g, x, 1, 1, width - layer)
        x = g.op(
            "Reshape", x, g.constant([2, 2, width - layer - 1] if layer % 2 == 0 else [4, width - layer - 1], np.int64)
        )
        x = g.op("Reshape", x, g.constant([4, width - layer - 1], np.int64))
    x = g.op("MatMul", x, g.normal((WIDTH, WIDTH), 0.3))
    return g.model({x: (4, WIDTH)})


def elementwise(layers: int) -> onnx.ModelProto:
    """One chain of sums, products and functions, long enough for many kernels."""
    g = GraphBuilder("elementwise")
    x = first = g.input("x", (4, WIDTH))
    for layer in range(layers):
        name = ("Add", "Mul", "Tanh", "Sub", "Max", "Sigmoid", "Add")[layer % 7]
        other = first if layer % 7 == 6 else g.uniform((WIDTH,), 0.5, 1.0)
        x = g.op(name, x) if name in ("Tanh", "Sigmoid") else g.op(name, x, other)
    return g.model({x: (4, WIDTH)})


def rows(layers: int) -> onnx.ModelProto:
    """Elementwise chains in one kernel with the sums over rows that follow them."""
    g = GraphBuilder("rows")
    x = g.input("x", (4, WIDTH))
    for layer in range(layers):
        x = g.op("Mul", x, g.uniform((WIDTH,), 0.5, 1.0)) if layer % 2 else g.op("Tanh", x)
        if layer % 24 == 23 or layer == layers - 1:
            x = g.op("Softmax", x, axis=-1)
    return g.model({x: (4, WIDTH)})


def products(layers: int) -> onnx.ModelProto:
    """Products alone, then sums alone: patterns see through the association of both."""
    g = GraphBuilder("products")
    x = first = g.input("x", (4, WIDTH))
    for layer in range(layers):
        x = g.op("Mul", x, g.constant(0.9 if layer % 2 else 1.1, np.float32))
        x = g.op("Div", x, g.constant(1.01, np.float32)) if layer % 3 else g.op("Neg", x)
    for _ in range(layers):
        x = g.op("Add", x, g.constant(0.01, np.float32))
    x = g.op("Mul", first, g.op("Sigmoid", x))
    return g.model({x: (4, WIDTH)})


def weights(layers: int) -> onnx.ModelProto:
    """A product whose weights are computed from others by a long chain, in and out of transposes."""
    g = GraphBuilder("weights")
    x = g.input("x", (4, 64))
    w = g.normal((64, 64), 1 / 8)
    for layer in range(layers):
        w = g.op("Mul", w, g.uniform((64,), 0.9, 1.1)) if layer % 2 else g.op("Transpose", w, perm=[1, 0])
    y = g.op("Add", g.op("MatMul", x, w), g.op("MatMul", x, g.op("Transpose", w, perm=[1, 0])))
    return g.model({y: (4, 64)})


def sizes(layers: int) -> onnx.ModelProto:
    """Arithmetic on the sizes of an input that leaves one open, as long as the model, between the steps that use them."""
    g = GraphBuilder("sizes")
    x = first = g.input("x", ("n", WIDTH))
    size = g.op("Shape", first, start=0, end=1)
    one = g.constant([1], np.int64)
    for layer in range(layers):
        size = g.op("Add", size, one) if layer % 2 == 0 else g.op("Sub", g.op("Mul", size, one), one)
        if layer % 8 == 7:
            x = g.op("Reshape", g.op("Tanh", x), g.op("Concat", size, g.constant([WIDTH], np.int64), axis=0))
    return g.model({g.op("Reshape", x, g.op("Concat", size, g.constant([WIDTH], np.int64), axis=0)): ("n", WIDTH)})


def branches(layers: int) -> onnx.ModelProto:
    """Ifs one behind the other, whose conditions follow from constants."""
    g = GraphBuilder("branches")
    x = g.input("x", (4, WIDTH))
    known = g.constant(True, np.bool_)
    for layer in range(layers):
        then, other = (
            helper.make_graph(
                [helper.make_node(op, [x], [f"{op}_{layer}"])],
                op,
                [],
                [helper.make_tensor_value_info(f"{op}_{layer}", TensorProto.FLOAT, (4, WIDTH))],
            )
            for op in ("Tanh", "Abs")
        )
        known = g.op("Not", known)
        x = g.op("If", known, then_branch=then, else_branch=other)
    return g.model({x: (4, WIDTH)})


def dense(layers: int) -> onnx.ModelProto:
    """A product, a sum and a function in each layer; every other one reads the first layer's operand too."""
    g = GraphBuilder("dense")
    x = first = g.input("x", (4, WIDTH))
    for layer in range(layers):
        y = g.op("MatMul", x, g.normal((WIDTH, WIDTH), sqrt(1 / WIDTH)))
        x = g.op("Tanh", g.op("Add", y, first) if layer % 2 else y)
    return g.model({x: (4, WIDTH)})


MODELS: dict[str, Callable[[int], onnx.ModelProto]] = {
    make.__name__: make
    for make in (encoder, convolutions, movement, views, elementwise, rows, products, weights, sizes, branches, dense)
}
