"""What every test of PyTorch modules compares."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.float16: 3e-3, torch.bfloat16: 2.5e-2}
"""Of an output's largest value."""


def assert_same(got: Any, want: Any) -> None:
    """Fail where results are nested otherwise, of other types or shapes, or differ by more than the tolerance of their type."""
    mine, nested = pytree.tree_flatten(got)
    theirs, expected = pytree.tree_flatten(want)
    assert nested == expected
    for index, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        if not isinstance(b, torch.Tensor):
            assert a == b
            continue
        assert (a.shape, a.dtype, a.device) == (b.shape, b.dtype, b.device), f"result {index}"
        if not b.dtype.is_floating_point:
            assert torch.equal(a, b), f"result {index}"
            continue
        scale = b.double().abs().max().item()
        assert scale > 0
        assert torch.equal(a.isnan(), b.isnan()), f"result {index}"
        error = (a.double() - b.double()).abs().max().item() / scale
        assert error <= TOLERANCE[b.dtype], f"result {index}: {error:.1e}"


def run(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
    """Return what PyTorch computes."""
    with torch.no_grad():
        return module(*args, **kwargs)
