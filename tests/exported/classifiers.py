"""Classifiers: a multilayer perceptron, a convolutional network with the blocks of the common ones."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - its usual name


class MLP(nn.Module):
    """x f32[batch, 20] -> log-probabilities f32[batch, 7], one hidden layer each of GELU (both forms), SiLU and layer norm."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(20, width),
            nn.GELU(),
            nn.LayerNorm(width),
            nn.Linear(width, width),
            nn.GELU(approximate="tanh"),
            nn.Dropout(0.1),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 7),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.log_softmax(self.layers(x), dim=-1)


class SqueezeExcite(nn.Module):
    """Scales the channels of f32[n, c, h, w] by what a small network makes of their means."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.down, self.up = nn.Conv2d(channels, 4, 1), nn.Conv2d(4, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * F.hardsigmoid(self.up(F.relu(self.down(self.pool(x)))))


class InvertedResidual(nn.Module):
    """Expansion, depthwise convolution, squeeze and excite, projection, and the sum with the input where strides allow."""

    def __init__(self, inner: int, channels: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, inner, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.Hardswish(),
            nn.Conv2d(inner, inner, 3, stride, 1, groups=inner, bias=False),
            nn.BatchNorm2d(inner),
            nn.Hardswish(),
            SqueezeExcite(inner),
            nn.Conv2d(inner, channels, 1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.skips = stride == 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.skips else self.body(x)


class CNN(nn.Module):
    """image f32[batch, 3, h, w] -> logits f32[batch, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        self.blocks = nn.Sequential(InvertedResidual(32, 16, 1), InvertedResidual(24, 16, 2))
        self.last = nn.Sequential(nn.Conv2d(16, 24, 3, padding=1), nn.BatchNorm2d(24), nn.SiLU(), nn.AvgPool2d(2))
        self.head = nn.Linear(24, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        y = self.last(self.blocks(self.stem(image)))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(y, 1), 1))
