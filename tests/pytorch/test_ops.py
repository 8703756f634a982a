"""Ops that ONNX spells otherwise, and PyTorch's rules of mixed types, equal PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install '.[export]'")

from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

import hipdnn_mlir  # noqa: E402
from hipdnn_mlir.frontend.pytorch.decompositions import decomposed, decompositions  # noqa: E402
from hipdnn_mlir.torch import CompiledModule  # noqa: E402
from pytorch.comparing import assert_same, run  # noqa: E402


class _Calls(nn.Module):
    """Functions of tensors, each with arguments of its own."""

    def __init__(self, functions: Sequence[Callable[..., Any]]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, arguments: Sequence[Sequence[Tensor]]) -> Any:
        return [function(*tensors) for function, tensors in zip(self.functions, arguments, strict=True)]


def _image() -> Tensor:
    return torch.randn(2, 4, 6, 8)


def _table() -> Tensor:
    return torch.randn(5, 7)


def _ids() -> Tensor:
    return torch.tensor([[1, 3, 0], [4, 2, 2]])


def _assigned(x: Tensor) -> Tensor:
    y = x.clone()
    y[:, 1:3] = 2.0
    y[0] = y[1] * 3
    return y


def _grid(x: Tensor, **options: Any) -> Tensor:
    theta = torch.tensor([[[0.713, 0.217, 0.109], [-0.311, 0.907, 0.053]]]).expand(2, 2, 3)
    return F.grid_sample(x, F.affine_grid(theta, [2, 4, 5, 5], align_corners=False), align_corners=False, **options)


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Callable[[], Tensor], ...]]] = {
    "add of f32 and i64": (lambda x, i: x[:2, :3] + i, (_table, _ids)),
    "division of integers": (lambda i: i / 3, (_ids,)),
    "sum of booleans": (lambda x: (x > 0).sum(1), (_table,)),
    "mean in another type": (lambda i: i.float().mean(1), (_ids,)),
    "comparison of mixed types": (lambda x, i: x[:2, :3] < i, (_table, _ids)),
    "product with a condition": (lambda x: x * (x > 0), (_table,)),
    "root of integers": (lambda i: torch.sqrt(i), (_ids,)),
    "remainder of a negative": (lambda x: torch.remainder(x, 0.7), (_table,)),
    "floor division": (lambda x: x // 0.3, (_table,)),
    "logical not of numbers": (lambda i: torch.logical_not(i), (_ids,)),
    "embedding with negative positions": (lambda x, i: x[i - 4], (_table, _ids)),
    "index of two dims": (lambda x, i: x[i, i + 1], (_table, _ids)),
    "index behind a slice": (lambda x, i: x[:, :, i], (_image, _ids)),
    "gather": (lambda x, i: x.gather(1, i), (_table, _ids)),
    "scatter": (lambda x, i: x.scatter(1, i[:, :1], 9.0), (_table, _ids)),
    "scatter_add": (lambda x, i: x.scatter_add(1, i, torch.ones(2, 3)), (_table, _ids)),
    "roll": (lambda x: torch.roll(x, (2, -1), (2, 3)), (_image,)),
    "flip": (lambda x: x.flip(1, 3), (_image,)),
    "cumsum": (lambda x: x.cumsum(-1), (_table,)),
    "argmax of all": (lambda x: x.argmax(), (_table,)),
    "argmin along a dim": (lambda x: x.argmin(1, keepdim=True), (_table,)),
    "max along a dim": (lambda x: x.max(1), (_table,)),
    "topk": (lambda x: x.topk(3, 1), (_table,)),
    "sort": (lambda x: x.sort(0, descending=True), (_table,)),
    "any and all": (lambda x: ((x > 1).any(1), (x > -9).all()), (_table,)),
    "var and std": (lambda x: (x.var(1), x.std(0, unbiased=False)), (_table,)),
    "prelu by channel": (lambda x: F.prelu(x, torch.tensor([0.1, 0.2, 0.3, 0.4])), (_image,)),
    "prelu of as many columns as channels": (
        lambda x: F.prelu(x[..., :4], torch.tensor([0.1, 0.2, 0.3, 0.4])),
        (_image,),
    ),
    "glu": (lambda x: F.glu(x, 1), (_image,)),
    "slices assigned": (_assigned, (_table,)),
    "split": (lambda x: x.split([1, 2, 4], 1), (_table,)),
    "chunk and stack": (lambda x: torch.stack(x.chunk(2, 1)), (_image,)),
    "einsum": (
        lambda x, y: torch.einsum("nchw,kw->nkch", x, y[:, :8] if y.shape[1] > 7 else F.pad(y, (0, 1))),
        (_image, _table),
    ),
    "layer norm without scale": (lambda x: F.layer_norm(x, (8,)), (_image,)),
    "instance norm without scale": (F.instance_norm, (_image,)),
    "group norm without scale": (lambda x: F.group_norm(x, 2), (_image,)),
    "rms norm": (lambda x: F.rms_norm(x, (8,), torch.arange(1.0, 9.0), 1e-6), (_image,)),
    "adaptive pool of even windows": (lambda x: F.adaptive_avg_pool2d(x, (3, 4)), (_image,)),
    "adaptive pool of uneven windows": (lambda x: F.adaptive_avg_pool2d(x, (4, 5)), (_image,)),
    "average pool with padding": (
        lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        (_image,),
    ),
    "max pool rounded up": (lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), (_image,)),
    "reflected border": (lambda x: F.pad(x, (1, 2, 2, 1), mode="reflect"), (_image,)),
    "pixel shuffle": (lambda x: F.pixel_shuffle(x, 2), (_image,)),
    "unfold": (lambda x: F.unfold(x, 3, padding=1, stride=2), (_image,)),
    "nearest": (lambda x: F.interpolate(x, scale_factor=1.5), (_image,)),
    "nearest exact": (lambda x: F.interpolate(x, (5, 11), mode="nearest-exact"), (_image,)),
    "bilinear": (lambda x: F.interpolate(x, (9, 5), mode="bilinear"), (_image,)),
    "bilinear with aligned corners": (
        lambda x: F.interpolate(x, (9, 5), mode="bilinear", align_corners=True),
        (_image,),
    ),
    "bicubic": (lambda x: F.interpolate(x, scale_factor=(1.7, 2.0), mode="bicubic"), (_image,)),
    "grid sample": (_grid, (_image,)),
    "grid sample of the nearest": (lambda x: _grid(x, mode="nearest", padding_mode="border"), (_image,)),
    "transposed convolution": (
        lambda x: F.conv_transpose2d(x, torch.arange(48.0).reshape(4, 3, 2, 2) / 48, stride=2),
        (_image,),
    ),
    "softmax to another type": (lambda x: torch.softmax(x, 1, dtype=torch.float64), (_table,)),
    "activations": (
        lambda x: (
            F.mish(x),
            F.elu(x),
            F.selu(x),
            F.hardswish(x),
            F.softplus(x),
            F.leaky_relu(x),
            F.logsigmoid(x),
            F.hardtanh(x),
        ),
        (_table,),
    ),
    "logarithms": (lambda x: (torch.log1p(x.abs()), torch.log2(x.abs() + 1), torch.expm1(x), torch.exp2(x)), (_table,)),
    "attention over all heads at once": (
        lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True, scale=0.3),
        (_image,),
    ),
    "clamps": (lambda x: (x.clamp(min=0.1), x.clamp(max=torch.tensor(0.2)), torch.clamp(x, -0.5, 0.5)), (_table,)),
    "nan to num": (lambda x: torch.nan_to_num(x / x.relu(), posinf=3.0), (_table,)),
    "positions": (lambda x: x + torch.arange(7) * torch.linspace(0, 1, 7) + torch.ones_like(x).triu(1), (_table,)),
    "argument as a result": (lambda x: (x, x.t(), x * 1), (_table,)),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, 1), (_table,)),
    "masked fill": (lambda x: x.masked_fill(x > 0, -3.0), (_table,)),
    "where with numbers": (lambda x: torch.where(x > 0, 1.0, x), (_table,)),
}


_IN_ONE_PROGRAM = 16
"""Most of the time goes into capturing a module, however little it computes: functions become one, in groups that share no value."""


@cache
def _results(group: int) -> dict[str, tuple[Any, Any]]:
    """What functions give as a program and in PyTorch."""
    torch.manual_seed(group)
    names = list(FUNCTIONS)[group * _IN_ONE_PROGRAM : (group + 1) * _IN_ONE_PROGRAM]
    module = _Calls([FUNCTIONS[name][0] for name in names])
    arguments = [[make() for make in FUNCTIONS[name][1]] for name in names]
    got = CompiledModule(hipdnn_mlir.compile(module, (arguments,)))(arguments)
    return dict(zip(names, zip(got, run(module, arguments), strict=True), strict=True))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_equals_pytorch(name: str) -> None:
    assert_same(*_results(list(FUNCTIONS).index(name) // _IN_ONE_PROGRAM)[name])


def test_decompositions_are_those_of_pytorchs_own_way() -> None:
    names = list(FUNCTIONS)
    module = _Calls([FUNCTIONS[name][0] for name in names])
    with torch.no_grad():
        program = torch.export.export(
            module, ([[make() for make in FUNCTIONS[name][1]] for name in names],), strict=False
        )
        assert decomposed(program).graph_module.code == program.run_decompositions(decompositions()).graph_module.code


def test_lstm_equals_pytorch_when_its_length_is_known() -> None:
    torch.manual_seed(0)
    module, x = nn.LSTM(4, 6, batch_first=True, bidirectional=True).eval(), torch.randn(2, 5, 4)
    assert_same(CompiledModule(hipdnn_mlir.compile(module, (x,)))(x), run(module, x))
