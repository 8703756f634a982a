"""A speech encoder: convolutions that shorten the sequence, sinusoidal positions, conformer blocks."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from .attention import merge_heads, split_heads


class FeedForward(nn.Module):
    """Layer norm, expansion with SiLU, projection, halved."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0.5 * self.body(x)


class ConvolutionModule(nn.Module):
    """Gated pointwise, depthwise and pointwise convolution over time."""

    def __init__(self, width: int, kernel: int = 7) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.enter, self.leave = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 1)
        self.depthwise = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.batch_norm = nn.BatchNorm1d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.glu(self.enter(self.norm(x).transpose(1, 2)), dim=1)
        return self.leave(F.silu(self.batch_norm(self.depthwise(y)))).transpose(1, 2)


class RelativeAttention(nn.Module):
    """Self-attention with a learned bias per head and distance, written out."""

    def __init__(self, width: int, heads: int, reach: int = 16) -> None:
        super().__init__()
        self.heads, self.reach = heads, reach
        self.norm = nn.LayerNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.bias = nn.Embedding(2 * reach + 1, heads)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, s = self.norm(x), x.shape[1]
        q, k, v = (split_heads(part(y), self.heads) for part in (self.q, self.k, self.v))
        at = torch.arange(s, device=x.device)
        distance = (at[None, :] - at[:, None]).clamp(-self.reach, self.reach) + self.reach
        bias = self.bias(distance).permute(2, 0, 1)
        scores = torch.matmul(q, k.transpose(-2, -1)) * (q.shape[-1] ** -0.5) + bias
        return self.out(merge_heads(torch.matmul(torch.softmax(scores, -1), v)))


class ConformerBlock(nn.Module):
    """Half a feed-forward network, attention, convolution, the other half."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.parts = nn.ModuleList(
            [FeedForward(width), RelativeAttention(width, heads), ConvolutionModule(width), FeedForward(width)]
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for part in self.parts:
            x = x + part(x)
        return self.norm(x)


class SpeechEncoder(nn.Module):
    """features f32[batch, 20, t] (mel bands over time) -> f32[batch, t / 4, width]."""

    def __init__(self, layers: int = 2, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.shorten = nn.Sequential(
            nn.Conv1d(20, width, 3, 2, 1), nn.GELU(), nn.Conv1d(width, width, 3, 2, 1), nn.GELU()
        )
        self.blocks = nn.ModuleList([ConformerBlock(width, heads) for _ in range(layers)])
        self.register_buffer("rates", torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width)))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        x = self.shorten(features).transpose(1, 2)
        angles = torch.arange(x.shape[1], device=x.device)[:, None] * self.rates
        x = x + torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
        for block in self.blocks:
            x = block(x)
        return x
