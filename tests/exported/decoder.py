"""A decoder of the LLaMA family: grouped-query attention with a key-value cache, rotary embedding, RMS norm, SwiGLU."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - its usual name


@dataclass(frozen=True)
class Sizes:
    """Numbers of the decoder; `heads` share `groups` keys and values."""

    vocabulary: int = 60
    width: int = 32
    heads: int = 4
    groups: int = 2
    layers: int = 2

    @property
    def d_head(self) -> int:
        return self.width // self.heads


class RMSNorm(nn.Module):
    """x * rsqrt(mean(x^2) + eps) * weight, computed in f32."""

    def __init__(self, width: int, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.rand(width) + 0.5), epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.epsilon)
        return self.weight * wide.to(x.dtype)


def rotate_half(x: torch.Tensor) -> torch.Tensor:
    """(a, b) -> (-b, a) of the halves of the last dim."""
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary embedding of f32[batch, heads, s, d] by f32[batch, s, d]."""
    return x * cos.unsqueeze(1) + rotate_half(x) * sin.unsqueeze(1)


def repeat(x: torch.Tensor, times: int) -> torch.Tensor:
    """f32[batch, groups, s, d] -> f32[batch, groups * times, s, d]."""
    batch, groups, s, d = x.shape
    return x[:, :, None].expand(batch, groups, times, s, d).reshape(batch, groups * times, s, d)


class Attention(nn.Module):
    """Returns the output and the keys and values of past and present."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        shared = sizes.groups * sizes.d_head
        self.q, self.out = (nn.Linear(sizes.width, sizes.width, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(sizes.width, shared, bias=False) for _ in range(2))

    def forward(
        self,
        x: torch.Tensor,
        mask: torch.Tensor,
        turn: tuple[torch.Tensor, torch.Tensor],
        past: tuple[torch.Tensor, torch.Tensor],
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        batch, s, _ = x.shape
        d_head = self.sizes.d_head
        q, k, v = (part(x).view(batch, s, -1, d_head).transpose(1, 2) for part in (self.q, self.k, self.v))
        q, k = rotate(q, *turn), rotate(k, *turn)
        k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        times = self.sizes.heads // self.sizes.groups
        y = F.scaled_dot_product_attention(q, repeat(k, times), repeat(v, times), attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(batch, s, -1)), k, v


class DecoderLayer(nn.Module):
    """Attention and SwiGLU, each on the RMS norm of its input."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.norms = nn.ModuleList([RMSNorm(sizes.width), RMSNorm(sizes.width)])
        self.attention = Attention(sizes)
        inner = 3 * sizes.width
        self.gate, self.up = (nn.Linear(sizes.width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, sizes.width, bias=False)

    def forward(self, x, mask, turn, past):
        attended, k, v = self.attention(self.norms[0](x), mask, turn, past)
        x = x + attended
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y)), k, v


class Decoder(nn.Module):
    """tokens i64[batch, s] and per layer past keys and values f32[batch, groups, s_past, d] -> logits, and the longer keys and values."""

    def __init__(self, sizes: Sizes = Sizes()) -> None:
        super().__init__()
        self.sizes = sizes
        self.tokens = nn.Embedding(sizes.vocabulary, sizes.width)
        self.layers = nn.ModuleList([DecoderLayer(sizes) for _ in range(sizes.layers)])
        self.norm, self.head = RMSNorm(sizes.width), nn.Linear(sizes.width, sizes.vocabulary, bias=False)
        rates = 1.0 / 10000 ** (torch.arange(0, sizes.d_head, 2) / sizes.d_head)
        self.register_buffer("rates", rates)

    def forward(self, tokens: torch.Tensor, past: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """`past` holds keys and values of the layers by turns."""
        s, s_past = tokens.shape[1], past[0].shape[2]
        positions = torch.arange(s_past, s_past + s, device=tokens.device)
        angles = positions[None, :, None].to(torch.float32) * self.rates.to(torch.float32)
        angles = torch.cat([angles, angles], dim=-1)
        turn = tuple(part.to(past[0].dtype) for part in (torch.cos(angles), torch.sin(angles)))
        mask = torch.arange(s_past + s, device=tokens.device)[None, :] <= positions[:, None]
        x, present = self.tokens(tokens), []
        for index, layer in enumerate(self.layers):
            x, k, v = layer(x, mask, turn, (past[2 * index], past[2 * index + 1]))
            present += [k, v]
        return (self.head(self.norm(x)), *present)


class CausalDecoder(nn.Module):
    """Without a cache: tokens i64[batch, s] -> logits, masked by a constant triangle of -inf as GPT-2 has it, with tanh GELU."""

    def __init__(self, layers: int = 2, width: int = 32, heads: int = 4, longest: int = 64) -> None:
        super().__init__()
        self.heads = heads
        self.tokens, self.positions = nn.Embedding(60, width), nn.Parameter(torch.randn(longest, width))
        self.qkv = nn.ModuleList([nn.Linear(width, 3 * width) for _ in range(layers)])
        self.out = nn.ModuleList([nn.Linear(width, width) for _ in range(layers)])
        self.up = nn.ModuleList([nn.Linear(width, 4 * width) for _ in range(layers)])
        self.down = nn.ModuleList([nn.Linear(4 * width, width) for _ in range(layers)])
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2 * layers + 1)])
        self.register_buffer("mask", torch.full((longest, longest), float("-inf")).triu(1))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        s = tokens.shape[1]
        x = self.tokens(tokens) + self.positions[:s]
        for index, (qkv, out, up, down) in enumerate(zip(self.qkv, self.out, self.up, self.down, strict=True)):
            q, k, v = (
                part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                for part in qkv(self.norms[2 * index](x)).chunk(3, -1)
            )
            scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + self.mask[:s, :s]
            attended = torch.softmax(scores, dim=-1) @ v
            x = x + out(attended.transpose(1, 2).flatten(2))
            x = x + down(F.gelu(up(self.norms[2 * index + 1](x)), approximate="tanh"))
        return self.norms[-1](x) @ self.tokens.weight.T
