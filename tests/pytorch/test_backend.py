"""The backend of torch.compile: programs where there can be some, PyTorch elsewhere, and no surprise in between."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install '.[export]'")

from torch import nn  # noqa: E402

import hipdnn_mlir.torch as hipdnn_torch  # noqa: E402
from pytorch import modules  # noqa: E402
from pytorch.comparing import assert_same, run  # noqa: E402


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Any, ...]]]:
    """The sizes of the arguments of every program that is compiled."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    found: list[tuple[Any, ...]] = []
    original = hipdnn_torch.compile_model

    def watched(module: Any, arguments: Any, **options: Any) -> Any:
        found.append(tuple(tuple(argument.shape) for argument in arguments))
        return original(module, arguments, **options)

    monkeypatch.setattr(hipdnn_torch, "compile_model", watched)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield found
    torch._dynamo.reset()


def _compare(fast: Any, module: nn.Module, *arguments: Any) -> None:
    with torch.no_grad():
        got = fast(*arguments)
    assert_same(got, run(module, *arguments))


def test_backend_is_known_by_name() -> None:
    assert "hipdnn" in torch._dynamo.list_backends()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "fp16"}, "unknown precision 'fp16'"),
        ({"target": "gfx1"}, "unknown target 'gfx1'"),
        ({"presision": "f16"}, "unknown option 'presision': expected 'precision' or 'target'; did you mean precision"),
    ],
)
def test_call_fails_when_an_option_is_wrong(options: dict[str, Any], message: str) -> None:
    torch._dynamo.reset()
    fast = torch.compile(nn.Linear(8, 4).eval(), backend="hipdnn", options=options)
    with torch.no_grad(), pytest.raises(Exception, match=message):
        fast(torch.randn(3, 8))


def test_module_is_one_program_when_nothing_breaks_its_graph(compiled: list[Any]) -> None:
    module = modules.ConvNet().eval()
    fast = torch.compile(module, backend="hipdnn", fullgraph=True)
    for _ in range(3):
        _compare(fast, module, torch.randn(2, 3, 16, 16))
    assert compiled == [((2, 3, 16, 16),)]


def test_parts_are_programs_when_control_flow_breaks_the_graph(compiled: list[Any]) -> None:
    module = modules.Branching().eval()
    fast = torch.compile(module, backend="hipdnn")
    _compare(fast, module, torch.randn(3, 8))
    _compare(fast, module, torch.full((3, 8), 50.0))
    _compare(fast, module, torch.full((3, 8), -50.0))
    assert len(compiled) >= 2


@pytest.mark.parametrize("dynamic", [None, True])
def test_sizes_may_differ_from_call_to_call(compiled: list[Any], dynamic: bool | None) -> None:
    module = modules.Encoder().eval()
    fast = torch.compile(module, backend="hipdnn", dynamic=dynamic)
    for sizes in ((2, 5), (3, 7), (2, 5), (4, 9)):
        _compare(fast, module, *modules.Encoder.arguments(*sizes))


def test_program_is_compiled_again_when_a_parameter_was_changed(compiled: list[Any]) -> None:
    module, x = nn.Linear(8, 4).eval(), torch.randn(3, 8)
    fast = torch.compile(module, backend="hipdnn")
    _compare(fast, module, x)
    with torch.no_grad():
        module.weight.mul_(2.0)
    _compare(fast, module, x)
    _compare(fast, module, x)
    assert len(compiled) == 2


def _assign(module: Any) -> None:
    module.weight.data = torch.randn_like(module.weight)


def _assign_transposed(module: Any) -> None:
    module.weight.data = module.weight.data.t()


def _write_in_inference_mode(module: Any) -> None:
    with torch.inference_mode():
        module.weight.copy_(torch.randn_like(module.weight))


@pytest.mark.parametrize("change", [_assign, _assign_transposed, _write_in_inference_mode])
def test_program_is_compiled_again_when_a_parameter_has_other_values(compiled: list[Any], change: Any) -> None:
    module, x = nn.Linear(8, 8).eval(), torch.randn(3, 8)
    fast = torch.compile(module, backend="hipdnn")
    _compare(fast, module, x)
    change(module)
    _compare(fast, module, x)


def test_program_is_compiled_again_when_statistics_were_updated(compiled: list[Any]) -> None:
    module, x = nn.BatchNorm1d(8).requires_grad_(False).eval(), torch.randn(64, 8)
    fast = torch.compile(module, backend="hipdnn")
    _compare(fast, module, x)
    module.train()(3 * x + 5)
    module.eval()
    _compare(fast, module, x)
    _compare(fast, module, x)
    assert len(compiled) == 2


def test_instances_of_a_module_keep_their_programs(compiled: list[Any]) -> None:
    layers, x = [nn.Linear(8, 8).eval() for _ in range(3)], torch.randn(3, 8)
    pairs = [(torch.compile(layer, backend="hipdnn"), layer) for layer in layers]
    for _ in range(2):
        for fast, layer in pairs:
            _compare(fast, layer, x)
    assert len(compiled) == 3
    with torch.no_grad():
        layers[1].weight.mul_(2.0)
    for fast, layer in pairs:
        _compare(fast, layer, x)
    assert len(compiled) == 4


def test_programs_go_with_their_module(compiled: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[Any]] = []
    original = hipdnn_torch.CompiledModule

    def watched(program: Any) -> Any:
        module = original(program)
        made.append(weakref.ref(module))
        return module

    monkeypatch.setattr(hipdnn_torch, "CompiledModule", watched)
    x = torch.randn(3, 8)
    for _ in range(2):
        module = nn.Linear(8, 8).eval()
        _compare(torch.compile(module, backend="hipdnn"), module, x)
    gc.collect()
    assert [program() is None for program in made] == [True, False]


def test_subgraph_runs_eagerly_with_one_warning_when_it_cannot_be_compiled(compiled: list[Any]) -> None:
    class Spectrum(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.linalg.svdvals(x)

    module = Spectrum()
    fast = torch.compile(module, backend="hipdnn")
    with pytest.warns(UserWarning, match="without hipDNN.*svd"):
        _compare(fast, module, torch.randn(3, 3))
    _compare(fast, module, torch.randn(3, 3))


def test_gradients_are_pytorchs_when_they_are_asked_for(compiled: list[Any]) -> None:
    module, x = nn.Linear(8, 4), torch.randn(3, 8)
    with pytest.warns(UserWarning, match="no_grad"):
        torch.compile(module, backend="hipdnn")(x).sum().backward()
    assert module.weight.grad is not None
    assert torch.allclose(module.weight.grad, x.sum(0).expand(4, 8))
    assert not compiled


def test_precision_is_narrow_when_the_options_say_so(compiled: list[Any]) -> None:
    module, x = modules.ConvNet().eval(), torch.randn(2, 3, 16, 16)
    fast = torch.compile(module, backend="hipdnn", options={"precision": "bf16"})
    with torch.no_grad():
        got = fast(x)
    want = run(module, x)
    assert got.dtype is torch.float32
    assert 0 < (got - want).abs().max() <= 2.5e-2 * want.abs().max()


def test_results_that_are_no_tensors_come_back(compiled: list[Any]) -> None:
    def function(x: Any) -> Any:
        return x.relu() * x.shape[0], x.shape[1], {"again": x + x.shape[0]}

    fast = torch.compile(function, backend="hipdnn", dynamic=True)
    for sizes in ((2, 3), (4, 5)):
        x = torch.randn(sizes)
        with torch.no_grad():
            assert_same(fast(x), function(x))


class _Behind(nn.Module):
    def forward(self, x: Any) -> Any:
        return x[:, 100:] * 2


def test_size_that_torch_export_fixes_is_that_of_the_example(compiled: list[tuple[Any, ...]]) -> None:
    """One row is left of 101: PyTorch makes a program for that size alone, and still calls the size a symbol."""
    module = _Behind()
    fast = torch.compile(module, backend="hipdnn")
    for size in (110, 101):
        _compare(fast, module, torch.randn(2, size))
    assert compiled
