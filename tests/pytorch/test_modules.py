"""Modules of PyTorch become programs that equal them, without ONNX in between."""

from __future__ import annotations

import sys
import warnings
from functools import cache
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install '.[export]'")

from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402

import hipdnn_mlir  # noqa: E402
from hipdnn_mlir.torch import CompiledModule  # noqa: E402
from hipdnn_mlir_runtime.errors import ModelError, UnsupportedError  # noqa: E402
from pytorch import modules  # noqa: E402
from pytorch.comparing import assert_same, run  # noqa: E402

CASES: dict[str, Any] = {
    "perceptron": (modules.Perceptron, lambda: (torch.randn(3, 8),)),
    "conv_net": (modules.ConvNet, lambda: (torch.randn(2, 3, 16, 20),)),
    "encoder": (modules.Encoder, lambda: modules.Encoder.arguments(2, 9)),
    "causal": (modules.Causal, lambda: (torch.randn(2, 7, 32),)),
}


def _case(name: str) -> tuple[nn.Module, tuple[Any, ...]]:
    torch.manual_seed(0)
    build, arguments = CASES[name]
    return build().eval(), arguments()


@cache
def _compiled(name: str) -> tuple[nn.Module, tuple[Any, ...], hipdnn_mlir.Program]:
    """A case as it is, for tests that only look at its program."""
    module, arguments = _case(name)
    return module, arguments, hipdnn_mlir.compile(module, arguments)


@cache
def _dynamic_encoder() -> tuple[nn.Module, CompiledModule]:
    """The encoder with a batch that is rounded up, and a length that stays dynamic."""
    module, arguments = _case("encoder")
    batch, s = Dim("batch"), Dim("s", max=64)
    shapes = {"ids": {0: batch, 1: s}, "visible": {0: batch, 1: s}}
    program = hipdnn_mlir.compile(module, arguments, dynamic_shapes=shapes, buckets={"batch": [2, 4]})
    return module, CompiledModule(program)


def _steps(program: hipdnn_mlir.Program) -> list[str]:
    return [step["summary"] for step in program.session().steps]


@pytest.mark.parametrize("name", CASES)
def test_module_equals_pytorch_when_compiled_whole(name: str) -> None:
    module, arguments, program = _compiled(name)
    assert_same(CompiledModule(program)(*arguments), run(module, *arguments))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_module_is_near_pytorch_in_f32_when_it_is_narrow(name: str) -> None:
    module, arguments = _case("conv_net")
    want = run(module, *arguments)
    dtype = getattr(torch, name)
    short = [argument.to(dtype) for argument in arguments]
    got = CompiledModule(hipdnn_mlir.compile(module.to(dtype), short))(*short)
    assert_same(got, want.to(dtype))


def test_module_is_near_pytorch_when_precision_is_narrow() -> None:
    module, arguments = _case("conv_net")
    got = CompiledModule(hipdnn_mlir.compile(module, arguments, precision="bf16"))(*arguments)
    assert_same(got.to(torch.bfloat16), run(module, *arguments).to(torch.bfloat16))


def test_weight_is_there_once_when_it_is_tied_and_is_the_modules_own_memory() -> None:
    module, _, program = _compiled("perceptron")
    kept = [array for array in program.weights.values() if array.size == module.first.weight.numel()]
    assert len(kept) == 1
    assert kept[0].ctypes.data == module.first.weight.data_ptr()


def test_inputs_and_outputs_have_the_modules_names() -> None:
    session = _compiled("encoder")[2].session()
    assert [port.name for port in session.inputs] == ["ids", "visible"]
    assert [port.name for port in session.outputs] == ["hidden", "parts.0", "parts.1"]
    assert [port.name for port in _compiled("causal")[2].session().outputs] == ["output_0", "output_1"]


def test_module_has_a_step_per_layer_when_pytorch_writes_it_out() -> None:
    assert _steps(_compiled("perceptron")[2]) == ["matmul + add + gelu", "matmul + add"]
    convolutions = [step for step in _steps(_compiled("conv_net")[2]) if "conv" in step]
    assert convolutions == ["conv2d + add + relu", "conv2d + add + swish"]  # batch norm is in the filters
    steps = _steps(_compiled("encoder")[2])
    assert steps.count("sdpa_fwd") == 1
    assert steps.count("layer_norm") == 1
    causal = _steps(_compiled("causal")[2])
    assert causal.count("sdpa_fwd") == 2
    assert not [step for step in causal if "exp" in step or "select" in step]


@pytest.mark.parametrize(
    ("name", "shapes", "runs"),
    [
        ("conv_net", {"x": {0: Dim("batch"), 2: Dim("h", min=4), 3: Dim("w", min=4)}}, [(1, 3, 9, 32), (3, 3, 16, 7)]),
        ("causal", {"x": {0: Dim("batch"), 1: Dim("s")}}, [(1, 4), (3, 12)]),
    ],
)
def test_one_program_equals_pytorch_at_all_sizes_when_dimensions_are_dynamic(
    name: str, shapes: Any, runs: list[tuple[int, ...]]
) -> None:
    module, arguments = _case(name)
    program = hipdnn_mlir.compile(module, arguments, dynamic_shapes=shapes)
    compiled = CompiledModule(program)
    assert {dim for port in compiled.session.inputs for dim in port.shape if isinstance(dim, str)} == {
        dim.__name__ for dim in shapes["x"].values()
    }
    for sizes in runs:
        x = torch.randn(*sizes, *arguments[0].shape[len(sizes) :])
        assert_same(compiled(x), run(module, x))


def test_encoder_equals_pytorch_when_batch_is_dynamic_and_length_is_rounded_up() -> None:
    module, compiled = _dynamic_encoder()
    for sizes in ((1, 5), (3, 64), (2, 9)):
        given = modules.Encoder.arguments(*sizes)
        assert_same(compiled(*given), run(module, *given))


def test_session_refuses_a_size_when_it_is_out_of_the_range_of_its_dim() -> None:
    _, compiled = _dynamic_encoder()
    with pytest.raises(ModelError):
        compiled(*modules.Encoder.arguments(2, 65))


def test_dim_is_fixed_when_shapes_says_so() -> None:
    module, arguments = _case("perceptron")
    program = hipdnn_mlir.compile(module, arguments, dynamic_shapes={"x": {0: Dim("batch")}}, shapes={"batch": 6})
    assert program.session().inputs[0].shape == (6, 8)


def test_dim_has_the_inputs_name_when_the_user_gives_none() -> None:
    module, arguments = _case("perceptron")
    program = hipdnn_mlir.compile(module, arguments, dynamic_shapes={"x": {0: Dim.DYNAMIC}})
    assert program.session().inputs[0].shape == ("x.0", 8)


def test_attention_is_written_out_when_no_engine_of_the_target_takes_it() -> None:
    module, arguments = _case("causal")
    in_f32, in_f16 = (
        hipdnn_mlir.compile(module, arguments, target="sm_90", precision=precision).model
        for precision in ("model", "f16")
    )
    assert not [step for step in map(in_f32.summary, in_f32.steps) if "sdpa" in step]
    assert [step for step in map(in_f16.summary, in_f16.steps) if "sdpa" in step]


class _Unsupported(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.linalg.svdvals(x * 2)


def test_compiling_names_op_and_source_line_when_an_op_is_unsupported() -> None:
    with pytest.raises(UnsupportedError, match=r"svd.*test_modules\.py:\d+") as raised:
        hipdnn_mlir.compile(_Unsupported(), (torch.randn(3, 3),))
    assert "torch.compile" in str(raised.value)


class _Selected(nn.Module):
    def forward(self, x: Any) -> Any:
        return x[x > 0] + torch.nonzero(x).sum()


class _Read(nn.Module):
    def forward(self, x: Any) -> Any:
        return x * x.sum().item()


@pytest.mark.parametrize(
    ("module", "ops"),
    [(_Selected(), ["index.Tensor", "nonzero"]), (_Read(), ["_local_scalar_dense"])],
    ids=["sizes", "number"],
)
@pytest.mark.parametrize("use", [hipdnn_mlir.compile, hipdnn_mlir.explain])
def test_every_op_is_named_with_its_line_when_results_are_sized_by_values(
    use: Any, module: Any, ops: list[str]
) -> None:
    with pytest.raises(UnsupportedError, match="depends on values") as raised:
        use(module, (torch.randn(3),))
    assert [reject.op for reject in raised.value.rejects] == [f"torch.aten.{op}" for op in ops]
    assert all("test_modules.py:" in reject.node for reject in raised.value.rejects)


class _Branching(nn.Module):
    def forward(self, x: Any) -> Any:
        sys.stderr.write("of the module\n")
        return self.branched(x)

    def branched(self, x: Any) -> Any:
        return x if x.sum() > 0 else -x


def test_one_error_says_all_when_a_module_cannot_be_exported(capfd: pytest.CaptureFixture[str]) -> None:
    line = _Branching.branched.__code__.co_firstlineno + 1
    with pytest.raises(ModelError, match=rf"data-dependent.* at \S+test_modules\.py:{line}; "):
        hipdnn_mlir.compile(_Branching(), (torch.randn(3),))
    with pytest.raises(ModelError, match=r"got \[2, 9\] X \[8, 4\]; "):
        hipdnn_mlir.compile(nn.Linear(8, 4), (torch.zeros(2, 9),))
    assert capfd.readouterr().err == "of the module\n"


@pytest.mark.parametrize(
    ("make", "arguments", "options", "message"),
    [
        (lambda: nn.Linear(2, 2), None, {}, "example inputs"),
        (lambda: nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)), (1, 2), {}, r"training mode.*eval\(\)"),
        (lambda: nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), (4, 2), {}, r"training mode.*eval\(\)"),
        (lambda: modules.Branching().eval(), (3, 8), {}, "torch.export cannot export it"),
        (lambda: nn.Linear(2, 2), (3, 5), {}, "torch.export cannot export it"),
        (modules.Counting, (1, 2), {}, "calls.*writes to it"),
        (lambda: nn.Linear(2, 2), (3, 2), {"shapes": {"batch": 2}}, "no input or dynamic dimension named 'batch'"),
    ],
)
def test_compiling_says_what_is_wrong_when_a_module_cannot_be_compiled(
    make: Any, arguments: Any, options: dict[str, Any], message: str
) -> None:
    given = None if arguments is None else (torch.randn(*arguments),)
    with pytest.raises((ModelError, UnsupportedError), match=message):
        hipdnn_mlir.compile(make(), given, **options)


def test_compiling_refuses_example_inputs_when_the_model_is_onnx() -> None:
    with pytest.raises(ModelError, match="example_inputs"):
        hipdnn_mlir.compile("examples/digits/digits.onnx", (torch.randn(1),))


def test_no_warning_is_printed_when_a_module_compiles() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hipdnn_mlir.compile(modules.Perceptron().eval(), (torch.randn(2, 8),))


def test_samples_are_within_the_range_of_a_dimension() -> None:
    class Last(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[:, -300:] * 2

    module, shapes = Last(), ({1: Dim("n", min=301)},)
    compiled = CompiledModule(hipdnn_mlir.compile(module, (torch.ones(2, 333),), dynamic_shapes=shapes))
    for n in (301, 450):
        x = torch.randn(2, n)
        assert_same(compiled(x), module(x))
