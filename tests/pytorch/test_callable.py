"""A program is called as the module that it was: tensors in, tensors out, in the memory that the caller sees."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install '.[export]'")

from torch import nn  # noqa: E402

import hipdnn_mlir  # noqa: E402
from hipdnn_mlir.torch import CompiledModule  # noqa: E402
from hipdnn_mlir_runtime.errors import ModelError  # noqa: E402
from pytorch import modules  # noqa: E402
from pytorch.comparing import assert_same, run  # noqa: E402


class _Watched(CompiledModule):
    """Keeps what it gives to the session, and what it gets from it."""

    def _run(self, feeds: Any) -> Any:
        self.feeds = feeds
        self.results = super()._run(feeds)
        return self.results


@cache
def _linear(dtype: Any = torch.float32) -> tuple[nn.Module, _Watched]:
    torch.manual_seed(0)
    module = nn.Linear(8, 4).to(dtype).eval()
    return module, _Watched(hipdnn_mlir.compile(module, (torch.randn(3, 8, dtype=dtype),)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_tensors_are_read_and_written_where_they_lie_when_dense(dtype: Any) -> None:
    module, compiled = _linear(dtype)
    x = torch.randn(3, 8, dtype=dtype)
    y = compiled(x)
    assert compiled.feeds["input"].data_ptr() == x.data_ptr()
    assert compiled.results["output_0"].data_ptr() == y.data_ptr()
    assert_same(y, run(module, x))


def test_runtime_takes_a_tensors_own_memory_when_it_is_given_one() -> None:
    class Identity(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 1.0 + 1.0

    program = hipdnn_mlir.compile(Identity(), (torch.zeros(1 << 10),))
    out = torch.empty(1 << 10)
    (given,) = program.session().run(None, {"x": torch.ones(1 << 10)}, out={"output_0": out})
    assert given is out
    assert torch.equal(out, torch.full((1 << 10,), 2.0))


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(8, 3).t(),
        lambda: torch.randn(6, 8)[::2],
        lambda: torch.randn(25)[1:].view(3, 8),
        lambda: torch.randn(8).expand(3, 8),
        lambda: torch.randn(3, 8, requires_grad=True),
    ],
    ids=["transposed", "every second row", "misaligned", "broadcast", "with gradient"],
)
def test_result_equals_pytorch_when_an_argument_is_not_dense(make: Any) -> None:
    module, compiled = _linear()
    x = make()
    assert_same(compiled(x), run(module, x))


def test_arguments_and_results_are_nested_as_the_modules_when_it_takes_keywords() -> None:
    class Nested(nn.Module):
        def forward(self, x: Any, *, more: dict[str, Any], flag: bool = True) -> Any:
            return {"y": [x * 2, (more["b"] - more["a"], flag)], "n": None}

    module = Nested()
    given = {"x": torch.randn(3), "more": {"a": torch.randn(2), "b": torch.randn(2)}}
    compiled = CompiledModule(hipdnn_mlir.compile(module, given))
    assert_same(compiled(more=given["more"], x=given["x"]), run(module, **given))
    expected = r"expected \(x=x, more={'a': more_a, 'b': more_b}\)"
    with pytest.raises(ModelError, match=rf"nested.*{expected}, got \(Tensor, {{'a': Tensor, 'b': Tensor}}\)$"):
        compiled(given["x"], given["more"])
    with pytest.raises(ModelError, match=rf"{expected}, got \(x=Tensor, less=Tensor\)$"):
        compiled(x=given["x"], less=torch.randn(2))
    with pytest.raises(ModelError, match="more"):
        compiled(x=given["x"], more=torch.randn(2))


def test_repr_shows_inputs_and_outputs() -> None:
    _, compiled = _linear()
    assert repr(compiled) == "_Watched(Session(target 'host', input: f32[3,8] -> output_0: f32[3,4]))"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (torch.randn(3, 7), "input"),
        (torch.randn(3, 8).double(), "input"),
        ([1.0], "nested"),
        (np.ones((3, 8)), "torch.Tensor"),
    ],
)
def test_call_names_the_argument_when_it_does_not_fit(argument: Any, message: str) -> None:
    _, compiled = _linear()
    with pytest.raises(ModelError, match=message):
        compiled(argument)


def test_program_of_an_onnx_model_is_called_in_the_order_of_its_inputs() -> None:
    program = hipdnn_mlir.compile(Path(__file__).parents[2] / "examples/digits/digits.onnx")
    x = torch.rand(60, 1, 8, 8)
    (got,) = CompiledModule(program)(x)
    assert np.array_equal(got.numpy(), program.session().run(None, {"image": x.numpy()})[0])


_WITHOUT_COMPILER = """
import sys
sys.modules["hipdnn_mlir"] = sys.modules["torch_mlir"] = None  # whatever imports them fails
import torch
from hipdnn_mlir_runtime.torch import CompiledModule
x, want = torch.load(sys.argv[2])
(got,) = CompiledModule(sys.argv[1])(x)
torch.testing.assert_close(got, want)
"""


def test_saved_program_is_called_with_tensors_when_the_compiler_is_not_installed(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = modules.Perceptron().eval()
    program = hipdnn_mlir.compile(module, (torch.randn(2, 8),), dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
    program.save(tmp_path / "model.hipdnn")
    x = torch.randn(5, 8)
    torch.save((x, run(module, x)), tmp_path / "values.pt")
    arguments = [sys.executable, "-c", _WITHOUT_COMPILER, tmp_path / "model.hipdnn", tmp_path / "values.pt"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_results_have_the_arguments_sizes_when_they_are_rounded_up_inside() -> None:
    torch.manual_seed(0)
    module = modules.Perceptron().eval()
    program = hipdnn_mlir.compile(
        module, (torch.randn(2, 8),), dynamic_shapes={"x": {0: torch.export.Dim("batch")}}, buckets={"batch": [4]}
    )
    x = torch.randn(3, 8)
    assert_same(CompiledModule(program)(x), run(module, x))
