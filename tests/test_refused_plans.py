"""What is compiled where the device's library refuses graphs that the tables give it, and what the tables say of exact f32 on NVIDIA."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

import hipdnn_mlir
from hipdnn_mlir.placement import plans
from hipdnn_mlir_runtime.abi import Attribute
from hipdnn_mlir_runtime.cli import execution
from hipdnn_mlir_runtime.cli import main as cli
from hipdnn_mlir_runtime.errors import DeviceError, PlanRefusedError, RefusedPlan, UnsupportedError, error_from_dict
from hipdnn_mlir_runtime.session.devices import open_device
from hipdnn_mlir_runtime.session.options import device_options
from hipdnn_mlir_runtime.session.recovery import Refusals
from models import GraphBuilder
from runtime_programs import Array

WORDS = "no engine for it"
ROWS = 128
"""Of a product whose epilogue is cuDNN's: those of fewer rows are generated code, or have another kernel for it."""


def model() -> bytes:
    """A convolution with a residual and an activation, a product with one."""
    b = GraphBuilder("block")
    x, residual = (b.input(name, [ROWS, 8, 6, 6]) for name in ("x", "r"))
    w, bias = (b.constant(b.rng.standard_normal(dims), "float32", "w") for dims in ([8, 8, 3, 3], [8]))
    y = b.op("Relu", b.op("Add", b.op("Conv", x, w, bias, pads=[1] * 4), residual))
    weight = b.constant(b.rng.standard_normal([8 * 36, 10]), "float32", "w")
    made = b.op("Tanh", b.op("Gemm", b.op("Flatten", y), weight))
    return b.model({made: [ROWS, 10]}).SerializeToString()


def feeds() -> dict[str, Array]:
    rng = np.random.default_rng(3)
    return {name: rng.standard_normal((ROWS, 8, 6, 6)).astype(np.float32) for name in ("x", "r")}


def expected() -> Array:
    session = ort.InferenceSession(model(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feeds())[0])


def products(program: hipdnn_mlir.Program) -> list[RefusedPlan]:
    """The graphs of a program with a convolution or a product, as a library would refuse them."""
    return [
        RefusedPlan(found.name, found.summary, "", WORDS)
        for found in program.model.executables
        if found.summary.startswith(("conv", "matmul"))
    ]


def summaries(program: hipdnn_mlir.Program) -> list[str]:
    found = (program.model.summary(step) for step in program.model.steps)
    return [summary for summary in found if summary != "copy"]


def test_refused_graphs_are_split_and_results_stay() -> None:
    whole = hipdnn_mlir.compile(model())
    assert summaries(whole) == ["conv2d + add + add + relu", "matmul + tanh"]
    program = hipdnn_mlir.compile(model(), refused=products(whole))
    assert summaries(program) == ["conv2d + add", "add + relu", "matmul", "tanh"]
    np.testing.assert_allclose(program.session().run(None, feeds())[0], expected(), rtol=1e-4, atol=1e-4)


def test_the_program_keeps_what_was_refused_and_what_runs_in_its_place() -> None:
    whole = hipdnn_mlir.compile(model())
    program = hipdnn_mlir.compile(
        model(), refused=[*products(whole), RefusedPlan("g_of_another_model", "relu", "", "no")]
    )
    assert {(found.summary, found.reason) for found in program.model.refused} == {
        ("conv2d + add + add + relu", WORDS),
        ("matmul + tanh", WORDS),
    }
    for found in program.model.refused:
        assert " + ".join(program.model.summary(program.model.steps[step]) for step in found.steps) == found.summary
    assert "refused" not in whole.model.to_dict()


def test_a_graph_that_the_host_refuses_in_every_form_is_an_error_that_names_it() -> None:
    whole = hipdnn_mlir.compile(model())
    split = hipdnn_mlir.compile(model(), refused=products(whole))
    with pytest.raises(UnsupportedError, match=r"conv2d \+ add \+ add \+ relu.*the library refuses it"):
        hipdnn_mlir.compile(model(), refused=[*products(whole), *products(split)])


def code_of(
    refused: Sequence[RefusedPlan] = (), precision: str = "model", target: str = "sm_90"
) -> hipdnn_mlir.Program:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install '.[gpu]'")
    return hipdnn_mlir.compile(model(), target=target, precision=precision, refused=refused)


def kinds(program: hipdnn_mlir.Program) -> list[tuple[str, str]]:
    found = ((step.kind, program.model.summary(step)) for step in program.model.steps)
    return [(kind, summary) for kind, summary in found if summary != "copy"]


def test_a_gpu_gets_kernels_for_what_its_library_refuses_whole_and_split() -> None:
    whole = code_of(precision="tf32")
    assert kinds(whole) == [("execute", "conv2d + add + add + relu"), ("execute", "matmul + tanh")]
    split = code_of(products(whole), "tf32")
    assert kinds(split) == [
        ("execute", "conv2d + add"),
        ("launch", "add + relu"),
        ("execute", "matmul"),
        ("launch", "tanh"),
    ]
    last = code_of([*products(whole), *products(split)], "tf32")
    assert kinds(last) == [("launch", "conv2d + add + add + relu"), ("launch", "matmul + tanh")]
    assert len(last.model.refused) == 4


def test_exact_f32_on_nvidia_asks_cudnn_for_convolutions_with_bias_and_cublas_for_products_only() -> None:
    program = code_of()
    conv, add, product = ("execute", "conv2d + add"), ("launch", "add + relu"), ("execute", "matmul")
    assert kinds(program) == [conv, add, product, ("launch", "tanh")]
    assert "tf32" not in program.model.to_dict()


@pytest.mark.parametrize(
    ("operators", "bias", "expected_kinds"),
    [
        ([], True, [("execute", "conv2d + add")]),
        (["Tanh"], True, [("execute", "conv2d + add + tanh")]),
        (["Softplus"], True, [("execute", "conv2d + add"), ("launch", "softplus")]),
        (["Relu"], False, [("execute", "conv2d"), ("launch", "relu")]),
        (["Relu", "Tanh"], True, [("execute", "conv2d + add + relu"), ("launch", "tanh")]),
    ],
)
def test_exact_f32_on_nvidia_fuses_what_cudnn_takes(
    operators: list[str], bias: bool, expected_kinds: list[tuple[str, str]]
) -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install '.[gpu]'")
    b = GraphBuilder("epilogue")
    operands = [b.constant(b.rng.standard_normal(dims), "float32", "w") for dims in ([8, 8, 3, 3], [8])]
    y = b.op("Conv", b.input("x", [2, 8, 6, 6]), *operands[: 1 + bias], pads=[1] * 4)
    for operator in operators:
        y = b.op(operator, y)
    made = b.model({y: [2, 8, 6, 6]})
    assert kinds(hipdnn_mlir.compile(made, target="sm_90")) == expected_kinds


@pytest.mark.parametrize("target", ["host", "sm_90"])
def test_a_transposed_convolution_adds_its_bias_where_its_engine_does(target: str) -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install '.[gpu]'")
    b = GraphBuilder("transposed")
    w, bias = (b.constant(b.rng.standard_normal(dims), "float32", "w") for dims in ([8, 8, 3, 3], [8]))
    y = b.op("ConvTranspose", b.input("x", [2, 8, 6, 6]), w, bias, pads=[1] * 4)
    expected_kinds = {
        "host": [("execute", "conv_transpose2d + add")],
        "sm_90": [("execute", "conv_transpose2d"), ("launch", "add")],
    }
    assert kinds(hipdnn_mlir.compile(b.model({y: [2, 8, 6, 6]}), target=target)) == expected_kinds[target]


def test_tf32_is_written_into_the_program_and_fuses_everything() -> None:
    program = code_of(precision="tf32", target="sm_80")
    assert [kind for kind, _ in kinds(program)] == ["execute", "execute"]
    assert program.model.to_dict()["tf32"] is True
    assert program.model.target == "sm_80"


# -- the chain at load ------------------------------------------------------------------------------------------------


def broken(program: hipdnn_mlir.Program) -> hipdnn_mlir.Program:
    """The program with results of a size that the convolution and the product do not have, which the library refuses."""
    for found in program.model.executables:
        if not found.summary.startswith(("conv", "matmul")):
            continue
        for _, attributes in found.descriptors:
            for attribute in attributes:
                if attribute[0] == int(Attribute.TENSOR_DIMENSIONS) and attribute[2][-1] > 1:
                    attribute[2][-1] -= 1
                    break
            else:
                continue
            break
    return program


def test_a_session_compiles_again_without_what_the_library_refuses(caplog: pytest.LogCaptureFixture) -> None:
    program = broken(hipdnn_mlir.compile(model()))
    with caplog.at_level(logging.WARNING):
        session = program.session()
    assert [step["summary"] for step in session.steps if step["summary"] != "copy"] == [
        "conv2d + add", "add + relu", "matmul", "tanh",
    ]  # fmt: skip
    np.testing.assert_allclose(session.run(None, feeds())[0], expected(), rtol=1e-4, atol=1e-4)
    assert sum("the library refuses a graph" in record.message for record in caplog.records) == 2


def test_a_file_alone_names_every_refused_graph_and_the_way_out(tmp_path: Path) -> None:
    program = broken(hipdnn_mlir.compile(model()))
    program.save(tmp_path / "m.hipdnn")
    with pytest.raises(
        PlanRefusedError, match=r"refuses 2 graphs: .*; run the \.onnx file itself, or compile it on"
    ) as raised:
        hipdnn_mlir.load(tmp_path / "m.hipdnn")
    assert isinstance(raised.value, DeviceError)
    names = {(plan.graph, plan.summary) for plan in raised.value.refusals}
    assert names == {(plan.graph, plan.summary) for plan in products(program)}
    assert all(plan.nodes and len(plan.reason) > 20 for plan in raised.value.refusals)
    assert str(error_from_dict(raised.value.to_dict())) == str(raised.value)


def test_what_is_refused_in_every_form_is_the_librarys_error() -> None:
    program = hipdnn_mlir.compile(model())
    split = hipdnn_mlir.compile(model(), refused=products(program))
    again = split.compile_without
    assert again is not None
    program = broken(split)
    program.compile_without = again
    with pytest.raises(PlanRefusedError, match="refuses 2 graphs"):
        program.session()


def test_the_command_line_compiles_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model())
    refused = products(hipdnn_mlir.compile(path))
    programs: list[list[str]] = []
    execute = execution.execute

    def refusing(program: Path, options: execution.Options) -> execution.Report:
        session = hipdnn_mlir.load(program)
        programs.append([step["summary"] for step in session.steps if step["summary"] != "copy"])
        if len(programs) == 1:
            raise PlanRefusedError(refused)
        return execute(program, options)

    monkeypatch.setattr(execution, "execute", refusing)
    assert cli.call(["run", str(path), "--compare", "ort", "--in-process"]) == 0
    assert programs == [
        ["conv2d + add + add + relu", "matmul + tanh"], ["conv2d + add", "add + relu", "matmul", "tanh"],
    ]  # fmt: skip


# -- between processes ------------------------------------------------------------------------------------------------

SPLIT = ["conv2d + add", "add + relu", "matmul", "tanh"]


def counted(program: hipdnn_mlir.Program) -> tuple[hipdnn_mlir.Program, list[list[str]]]:
    """The program, and what it is compiled again without, each time."""
    compile_without = program.compile_without
    assert compile_without is not None
    asked: list[list[str]] = []

    def counting(refused: Sequence[RefusedPlan]) -> hipdnn_mlir.Program:
        asked.append([plan.graph for plan in refused])
        return compile_without(refused)

    program.compile_without = counting
    return program, asked


def afresh(program: hipdnn_mlir.Program, folder: Path, **options: bool) -> hipdnn_mlir.Session:
    """Load a program as a new process does."""
    open_device.cache_clear()
    return program.session(plan_cache=folder, **options)


def steps_of(session: hipdnn_mlir.Session) -> list[str]:
    return [step["summary"] for step in session.steps if step["summary"] != "copy"]


def test_the_next_process_compiles_the_right_form_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    program, asked = counted(broken(hipdnn_mlir.compile(model())))
    names = {plan.graph for plan in products(program)}
    assert steps_of(afresh(program, tmp_path)) == SPLIT
    assert [set(found) for found in asked] == [names]
    caplog.clear()
    program, asked = counted(broken(hipdnn_mlir.compile(model())))
    session = afresh(program, tmp_path)
    assert steps_of(session) == SPLIT
    assert [set(found) for found in asked] == [names]
    assert [
        record.message
        for record in caplog.records
        if record.levelno >= logging.WARNING and record.name != "hipdnn_mlir.hipdnn"
    ] == []
    np.testing.assert_allclose(session.run(None, feeds())[0], expected(), rtol=1e-4, atol=1e-4)


def test_what_one_setting_of_the_library_refuses_another_is_asked_for(tmp_path: Path) -> None:
    afresh(broken(hipdnn_mlir.compile(model())), tmp_path)
    whole = steps_of(afresh(hipdnn_mlir.compile(model()), tmp_path, tf32=True))
    assert whole == ["conv2d + add + add + relu", "matmul + tanh"]
    assert steps_of(afresh(hipdnn_mlir.compile(model()), tmp_path)) == SPLIT


@pytest.mark.parametrize("is_cut", [True, False])
def test_damaged_refusals_are_asked_for_again(tmp_path: Path, caplog: pytest.LogCaptureFixture, is_cut: bool) -> None:
    afresh(broken(hipdnn_mlir.compile(model())), tmp_path)
    entries = sorted(tmp_path.glob("*.refusal"))
    assert len(entries) == 2
    for entry in entries:
        content = entry.read_bytes()
        entry.write_bytes(
            content[:-2] if is_cut else content.replace(b"matmul", b"mutmal").replace(b"conv2d", b"conv3d")
        )
    caplog.clear()
    assert steps_of(afresh(broken(hipdnn_mlir.compile(model())), tmp_path)) == SPLIT
    messages = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert sum("a damaged one; the library is asked again" in message for message in messages) == 2
    assert sum("the library refuses a graph" in message for message in messages) == 2
    assert sorted(tmp_path.glob("*.refusal")) == entries


def test_what_has_no_other_form_is_tried_although_it_was_refused(tmp_path: Path) -> None:
    whole = hipdnn_mlir.compile(model())
    split = hipdnn_mlir.compile(model(), refused=products(whole))
    device = open_device(device_options({}, "host", is_tf32=False))
    Refusals(device, str(tmp_path)).add([*products(whole), *products(split)])
    session = afresh(whole, tmp_path)
    assert steps_of(session) == ["conv2d + add + add + relu", "matmul + tanh"]


def test_words_that_are_no_text_are_kept(tmp_path: Path) -> None:
    refusals = Refusals(open_device(device_options({}, "host", is_tf32=False)), str(tmp_path))
    refusals.add([RefusedPlan("g_1", "relu", "", "x" * 4095 + "\u00e9")])
    (found,) = refusals.known()
    assert (found.graph, found.reason) == ("g_1", "x" * 4095 + "\ufffd")
    assert Refusals().known() == []


def test_the_command_line_compiles_once_the_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, folder = tmp_path / "m.onnx", tmp_path / "plans"
    path.write_bytes(model())
    refused = {plan.graph for plan in products(hipdnn_mlir.compile(path))}
    runs: list[list[str]] = []
    execute = execution.execute

    def refusing(program: Path, options: execution.Options) -> execution.Report:
        session = hipdnn_mlir.load(program)
        runs.append(steps_of(session))
        found = [row for row in session.steps if row.get("executable") in refused]
        if found:
            raise PlanRefusedError(
                [RefusedPlan(row["executable"], row["summary"], row["name"], WORDS) for row in found]
            )
        return execute(program, options)

    monkeypatch.setattr(execution, "execute", refusing)
    arguments = ["run", str(path), "--compare", "ort", "--in-process", "--plan-cache", str(folder)]
    whole = ["conv2d + add + add + relu", "matmul + tanh"]
    for programs in ([whole, SPLIT], [SPLIT]):
        runs.clear()
        assert cli.call(arguments) == 0
        assert runs == programs


# -- explain and inspect ----------------------------------------------------------------------------------------------


class NoResiduals:
    """A device whose library takes no convolution with a residual."""

    def build_plan(self, executable: str) -> dict[str, object]:
        if "conv2d + add + add" in json.loads(executable)["summary"]:
            raise PlanRefusedError([RefusedPlan("", "", "", WORDS)])
        return {}


@pytest.fixture
def no_residuals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    plans._refusal.cache_clear()
    monkeypatch.setattr(plans, "_device", lambda *_: NoResiduals())
    yield
    plans._refusal.cache_clear()


@pytest.mark.usefixtures("no_residuals")
def test_explain_shows_what_became_of_a_refused_graph() -> None:
    (found,) = hipdnn_mlir.explain(model(), plans=True).refused
    assert (found.summary, found.reason) == ("conv2d + add + add + relu", WORDS)
    assert found.became == ["conv2d + add [HOST_ONEDNN_ENGINE]", "add + relu [HOST_ROWWISE_ENGINE]"]
    assert hipdnn_mlir.explain(model()).refused == []


def test_inspect_shows_what_was_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.hipdnn"
    hipdnn_mlir.compile(model(), refused=products(hipdnn_mlir.compile(model()))).save(path)
    assert cli.call(["inspect", str(path), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [(plan["summary"], plan["reason"]) for plan in data["refused"]] == [
        ("matmul + tanh", WORDS), ("conv2d + add + add + relu", WORDS),
    ]  # fmt: skip
    assert cli.call(["inspect", str(path)]) == 0
    assert "2 graphs refused by the library" in capsys.readouterr().out


def test_a_program_for_a_device_that_is_elsewhere_is_compiled_and_inspected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install '.[gpu]'")
    path = tmp_path / "m.onnx"
    path.write_bytes(model())
    arguments = ["compile", str(path), "--target", "sm_90", "--in-process", "--json"]
    assert cli.call(arguments) == 0
    data = json.loads(capsys.readouterr().out)
    assert [step["engine"] for step in data["steps"] if step["kind"] == "execute"] == [
        "CUDNN_ENGINE",
        "CUBLASLT_ENGINE",
    ]
