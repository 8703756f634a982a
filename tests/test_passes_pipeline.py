"""Pipelines as text, and which step is blamed when one fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from torch_mlir import ir

from hipdnn_mlir.ir.dialect import make_context
from hipdnn_mlir.ir.module_pass import PASSES, ModulePass
from hipdnn_mlir.passes.pipeline import PIPELINES, STEPS, Runner, Step, build, parse_element, split_top_level
from hipdnn_mlir_runtime.errors import HipdnnMlirError, PassError


@pytest.fixture
def module() -> Iterator[ir.Module]:
    with make_context(), ir.Location.unknown():
        yield ir.Module.parse(
            "func.func @main(%x: !torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32> { return %x : !torch.vtensor<[2],f32> }"
        )


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("a", ["a"]),
        ("a, b{x=1 y=2},c", ["a", "b{x=1 y=2}", "c"]),
        ("func.func(a,b{c=d,e}),f", ["func.func(a,b{c=d,e})", "f"]),
        ("", []),
    ],
)
def test_split_is_at_commas_outside_brackets(text: str, elements: list[str]) -> None:
    assert split_top_level(text) == elements


@pytest.mark.parametrize(
    ("element", "parsed"),
    [
        ("hipdnn-offload", ("hipdnn-offload", {})),
        ("hipdnn-offload{target=host}", ("hipdnn-offload", {"target": "host"})),
        ("p{a=1 flag b=x,y}", ("p", {"a": "1", "flag": "true", "b": "x,y"})),
        ("func.func(cse)", ("func.func(cse)", {})),
    ],
)
def test_parse_element(element: str, parsed: tuple[str, dict[str, str]]) -> None:
    assert parse_element(element) == parsed


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("no-such-pass", "unknown pass or option in 'no-such-pass'"),
        ("canonicalize{no-such-option=1}", "unknown pass or option"),
        ("hipdnn-offload{engine=x}", "pass hipdnn-offload has no option 'engine': expected one of: target"),
        ("hipdnn-fold-batch-norm{x=1}", "has no option 'x': expected one of: none"),
    ],
)
def test_build_names_what_it_does_not_know(pipeline: str, message: str) -> None:
    with pytest.raises(HipdnnMlirError, match=message):
        build(pipeline)


def test_runner_names_the_failing_step_and_those_before(module: ir.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object, **__: str) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setitem(PASSES, "hipdnn-offload", ModulePass("hipdnn-offload", broken, {}))
    steps = [
        Step("first", "cse", "runs"),
        Step("second", "hipdnn-offload", "fails"),
        Step("third", "cse", "never runs"),
    ]
    with pytest.raises(PassError) as caught:
        Runner().run(module.operation, steps)
    assert (caught.value.pass_name, caught.value.earlier) == ("second", ("first",))
    assert str(caught.value) == "pass second after first: ZeroDivisionError: division by zero"


def test_runner_quotes_mlir_when_a_pass_of_mlir_fails(module: ir.Module) -> None:
    text = module.operation.get_asm().replace(
        "return %arg0", '%y = torch.operator "onnx.Foo"(%arg0) : (!x) -> !x\n return %y'
    )
    failing = ir.Module.parse("!x = !torch.vtensor<[2],f32>\n" + text)
    with pytest.raises(PassError) as caught:
        Runner().run(
            failing.operation, [Step("backend", "torch-backend-to-linalg-on-tensors-backend-pipeline", "fails")]
        )
    assert caught.value.pass_name == "backend"
    assert "\n" not in str(caught.value)
    assert caught.value.detail


def test_ir_is_dumped_after_each_step_in_order(module: ir.Module, tmp_path: Path) -> None:
    runner = Runner(dump_ir=tmp_path / "ir")
    runner.run(module.operation, [Step("one", "cse", ""), Step("two", "canonicalize", "")])
    files = sorted((tmp_path / "ir").iterdir())
    assert [file.name for file in files] == ["01-one.mlir", "02-two.mlir"]
    assert "func.func @main" in files[0].read_text()
    assert list(runner.elapsed_ms) == ["one", "two"]


def test_every_pass_is_in_the_pipeline_or_run_by_the_importer() -> None:
    named = {parse_element(element)[0] for step in STEPS for element in split_top_level(step.passes)}
    assert set(PASSES) - named == {"hipdnn-rename-unconverted-ops"}


def test_every_pass_and_pipeline_has_a_lit_folder(pytestconfig: pytest.Config) -> None:
    folders = {path.parent.name for path in (pytestconfig.rootpath / "lit_tests").glob("*/*.mlir")}
    assert {*PASSES, *PIPELINES} <= folders
