"""Image classifiers and a perceptron; images are n c h w, weights drawn so that activations keep their scale."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt

import onnx

from models.builder import GraphBuilder


def mlp(batch: int = 4, sizes: Sequence[int] = (64, 128, 10), *, seed: int = 0) -> onnx.ModelProto:
    """Return Gemm layers with Relu between them, as PyTorch's exporter writes ``nn.Linear``."""
    b = GraphBuilder("mlp", seed=seed)
    x = b.input("x", [batch, sizes[0]])
    for layer, (k, n) in enumerate(pairwise(sizes)):
        x = b.op("Gemm", x, b.normal([n, k], sqrt(2 / k)), b.normal([n], 0.1, name="bias"), transB=1)
        if layer < len(sizes) - 2:
            x = b.op("Relu", x)
    return b.model({x: [batch, sizes[-1]]})


def _conv_bn(
    b: GraphBuilder, x: str, c_in: int, c_out: int, kernel: int, *, stride: int = 1, groups: int = 1, gain: float = 1.0
) -> str:
    """Append a convolution without bias and its batch norm; ``gain`` scales what comes out."""
    fan_in = c_in // groups * kernel * kernel
    x = b.op(
        "Conv",
        x,
        b.normal([c_out, c_in // groups, kernel, kernel], sqrt(2 / fan_in)),
        kernel_shape=[kernel, kernel],
        strides=[stride, stride],
        pads=[kernel // 2] * 4,
        dilations=[1, 1],
        group=groups,
    )
    scale = b.uniform([c_out], 0.8 * gain, 1.2 * gain, name="scale")
    bias, mean = b.normal([c_out], 0.1, name="bias"), b.normal([c_out], 0.1, name="mean")
    return b.op("BatchNormalization", x, scale, bias, mean, b.uniform([c_out], 0.8, 1.2, name="var"), epsilon=1e-5)


def _bottleneck(b: GraphBuilder, x: str, c_in: int, width: int, stride: int) -> str:
    """Append ResNet's 1x1, 3x3, 1x1 block with its shortcut."""
    y = b.op("Relu", _conv_bn(b, x, c_in, width, 1))
    y = b.op("Relu", _conv_bn(b, y, width, width, 3, stride=stride))
    y = _conv_bn(b, y, width, 4 * width, 1, gain=0.25)
    if stride != 1 or c_in != 4 * width:
        x = _conv_bn(b, x, c_in, 4 * width, 1, stride=stride, gain=0.7)
    return b.op("Relu", b.op("Add", y, x))


def _classify(b: GraphBuilder, x: str, channels: int, classes: int) -> str:
    """Append global pool, flatten and linear layer."""
    x = b.op("Flatten", b.op("GlobalAveragePool", x), axis=1)
    weight, bias = b.normal([classes, channels], sqrt(1 / channels)), b.normal([classes], 0.1, name="bias")
    return b.op("Gemm", x, weight, bias, transB=1, alpha=1.0, beta=1.0)


def resnet(
    batch: int = 1, size: int = 32, *, depths: Sequence[int] = (1, 1), width: int = 8, classes: int = 10, seed: int = 0
) -> onnx.ModelProto:
    """Return a bottleneck ResNet with batch norm nodes in inference form.

    Args:
        batch: Images per run.
        size: Height and width of an image.
        depths: Blocks per stage.
        width: Channels of the stem and of the first stage's inner convolutions.
        classes: Outputs of the last layer.
        seed: Seed of the weights.
    """
    b = GraphBuilder("resnet", seed=seed)
    x = b.op("Relu", _conv_bn(b, b.input("image", [batch, 3, size, size]), 3, width, 7, stride=2))
    x = b.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = width
    for stage, depth in enumerate(depths):
        inner = width << stage
        for block in range(depth):
            x = _bottleneck(b, x, channels, inner, 2 if stage and not block else 1)
            channels = 4 * inner
    return b.model({_classify(b, x, channels, classes): [batch, classes]})


def resnet50(batch: int = 1, *, seed: int = 0) -> onnx.ModelProto:
    """Return ResNet-50 for 224x224 images."""
    return resnet(batch, 224, depths=(3, 4, 6, 3), width=64, classes=1000, seed=seed)


_MOBILENET_V2 = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Rows of (expansion, channels, blocks, first stride)."""


def mobilenet_v2(
    batch: int = 1,
    size: int = 224,
    *,
    rows: Sequence[tuple[int, int, int, int]] = _MOBILENET_V2,
    stem: int = 32,
    head: int = 1280,
    classes: int = 1000,
    seed: int = 0,
) -> onnx.ModelProto:
    """Return MobileNetV2: inverted residuals, depthwise convolutions, ``Clip`` to 0..6.

    Args:
        batch: Images per run.
        size: Height and width of an image.
        rows: (expansion, channels, blocks, first stride) of each stage.
        stem: Channels of the first convolution.
        head: Channels of the last convolution.
        classes: Outputs of the last layer.
        seed: Seed of the weights.
    """
    b = GraphBuilder("mobilenet_v2", seed=seed)
    low, high = b.constant(0, "float32", "min"), b.constant(6, "float32", "max")

    def conv(x: str, c_in: int, c_out: int, kernel: int, *, stride: int = 1, groups: int = 1) -> str:
        return b.op("Clip", _conv_bn(b, x, c_in, c_out, kernel, stride=stride, groups=groups), low, high)

    x = conv(b.input("image", [batch, 3, size, size]), 3, stem, 3, stride=2)
    channels = stem
    for expansion, c_out, blocks, first_stride in rows:
        for block in range(blocks):
            stride = first_stride if not block else 1
            hidden = channels * expansion
            y = conv(x, channels, hidden, 1) if expansion != 1 else x
            y = conv(y, hidden, hidden, 3, stride=stride, groups=hidden)
            residual = stride == 1 and channels == c_out
            y = _conv_bn(b, y, hidden, c_out, 1, gain=0.4 if residual else 1.0)
            x, channels = b.op("Add", x, y) if residual else y, c_out
    return b.model({_classify(b, conv(x, channels, head, 1), head, classes): [batch, classes]})
