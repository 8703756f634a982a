"""U-Nets: with transposed convolutions, with interpolation; group norm and SiLU, attention at the bottom."""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - its usual name


class ResidualBlock(nn.Module):
    """Group norm, SiLU and convolution twice, an embedding of the time added between, and the sum with the input."""

    def __init__(self, channels: int, result: int, embedded: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(4, channels), nn.GroupNorm(4, result)])
        self.convolutions = nn.ModuleList(
            [nn.Conv2d(channels, result, 3, padding=1), nn.Conv2d(result, result, 3, padding=1)]
        )
        self.time = nn.Linear(embedded, result)
        self.skip = nn.Conv2d(channels, result, 1) if channels != result else nn.Identity()

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        y = self.convolutions[0](F.silu(self.norms[0](x))) + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.convolutions[1](F.silu(self.norms[1](y)))


class SpatialAttention(nn.Module):
    """Self-attention over the pixels of f32[n, c, h, w]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = (
            nn.GroupNorm(4, channels),
            nn.Conv2d(channels, 3 * channels, 1),
            nn.Conv2d(channels, channels, 1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        q, k, v = (part.reshape(n, 1, c, h * w).transpose(2, 3) for part in self.qkv(self.norm(x)).chunk(3, dim=1))
        attended = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(attended.transpose(2, 3).reshape(n, c, h, w))


class Up(nn.Module):
    """Twice the height and width."""

    def __init__(self, channels: int, result: int, how: str) -> None:
        super().__init__()
        if how == "transposed":
            self.body: nn.Module = nn.ConvTranspose2d(channels, result, 4, 2, 1)
        else:
            mode: Literal["nearest", "bilinear"] = "nearest" if how == "nearest" else "bilinear"
            self.body = nn.Sequential(nn.Upsample(scale_factor=2, mode=mode), nn.Conv2d(channels, result, 3, padding=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


class UNet(nn.Module):
    """image f32[n, 3, h, w], time f32[n] -> f32[n, 3, h, w]; `how` is "transposed", "nearest" or "bilinear"."""

    def __init__(self, how: str, channels: int = 8) -> None:
        super().__init__()
        embedded = 4 * channels
        self.enter, self.leave = nn.Conv2d(3, channels, 3, padding=1), nn.Conv2d(channels, 3, 3, padding=1)
        self.time = nn.Sequential(nn.Linear(channels, embedded), nn.SiLU(), nn.Linear(embedded, embedded))
        self.down = nn.ModuleList(
            [ResidualBlock(channels, channels, embedded), ResidualBlock(channels, 2 * channels, embedded)]
        )
        self.shrink = nn.ModuleList([nn.Conv2d(channels, channels, 3, 2, 1), nn.MaxPool2d(2)])
        self.middle = nn.ModuleList(
            [ResidualBlock(2 * channels, 2 * channels, embedded), SpatialAttention(2 * channels)]
        )
        self.grow = nn.ModuleList([Up(2 * channels, 2 * channels, how), Up(channels, channels, how)])
        self.up = nn.ModuleList(
            [ResidualBlock(4 * channels, channels, embedded), ResidualBlock(2 * channels, channels, embedded)]
        )
        self.norm = nn.GroupNorm(4, channels)
        self.register_buffer("rates", torch.exp(torch.arange(channels // 2) * -1.0))

    def forward(self, image: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        angles = time[:, None] * self.rates
        time = self.time(torch.cat([angles.sin(), angles.cos()], dim=-1))
        x, skips = self.enter(image), []
        for block, shrink in zip(self.down, self.shrink, strict=True):
            x = block(x, time)
            skips.append(x)
            x = shrink(x)
        x = self.middle[1](self.middle[0](x, time))
        for block, grow in zip(self.up, self.grow, strict=True):
            x = block(torch.cat([grow(x), skips.pop()], dim=1), time)
        return self.leave(F.silu(self.norm(x)))
