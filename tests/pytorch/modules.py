"""Small modules, each with what a compiler of PyTorch modules gets wrong first."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Perceptron(nn.Module):
    """Two linear layers, the first with the weight that the last one has too."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 8)
        self.last.weight = self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.last(functional.gelu(self.first(x)))


class ConvNet(nn.Module):
    """Convolutions with batch norm, one of them without scale and bias."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.plain = nn.BatchNorm2d(8, affine=False)
        self.head = nn.Linear(8, 5)
        for norm in (self.norm, self.plain):
            norm.running_mean.uniform_(-0.5, 0.5)
            norm.running_var.uniform_(0.5, 1.5)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.norm(self.stem(x)))
        y = functional.silu(self.plain(self.depthwise(y)))
        return self.head(functional.adaptive_avg_pool2d(y, 1).flatten(1))


class Encoder(nn.Module):
    """Embeddings with positions from a buffer, attention with a mask, results by name."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(50, 16), nn.Embedding(64, 16)
        self.register_buffer("order", torch.arange(64)[None])
        self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))
        self.norm = nn.LayerNorm(16)

    def forward(self, ids: Tensor, visible: Tensor) -> dict[str, Any]:
        b, s = ids.shape
        x = self.norm(self.tokens(ids) + self.positions(self.order[:, :s]))
        q, k, v = (layer(x).view(b, s, 2, 8).transpose(1, 2) for layer in (self.query, self.key, self.value))
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=visible[:, None, None, :])
        y = y.transpose(1, 2).reshape(b, s, 16)
        return {"hidden": x + y, "parts": (y.mean(1), ids + 1), "heads": 2}

    @staticmethod
    def arguments(batch: int, s: int) -> tuple[Tensor, Tensor]:
        return torch.randint(0, 50, (batch, s)), torch.rand(batch, s) < 0.8


class Causal(nn.Module):
    """Causal attention of heads in groups, and a mask that the module computes itself."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.pair = nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        b, s, _ = x.shape
        q = self.query(x).view(b, s, 4, 8).transpose(1, 2)
        k, v = self.pair(x).view(b, s, 2, 2, 8).permute(2, 0, 3, 1, 4)
        shared = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        repeated = [t.repeat_interleave(2, 1) for t in (k, v)]
        hidden = torch.full((s, s), -torch.inf).triu(1)
        scores = q @ repeated[0].transpose(-1, -2) / 8**0.5 + hidden
        return shared, scores.softmax(-1) @ repeated[1]


class Branching(nn.Module):
    """Control flow that depends on values, which Dynamo breaks at."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.norm(self.first(x)))
        y = y + 1 if y.sum() > 10 else y - 1
        return self.last(y)


class Counting(nn.Module):
    """A module that writes to a buffer, which no program can."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: Any) -> Any:
        """Return the sum of the argument and the number of calls."""
        self.calls.add_(1)
        return x + self.calls
