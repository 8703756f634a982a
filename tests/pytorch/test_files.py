"""`.pt2` files in the command: taken wherever an ONNX file is, with PyTorch as the reference."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnxruntime as ort
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install '.[export]'")

from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402

import hipdnn_mlir  # noqa: E402
from hipdnn_mlir_runtime.cli import main as cli  # noqa: E402
from hipdnn_mlir_runtime.cli.pytorch import TorchModel  # noqa: E402
from hipdnn_mlir_runtime.errors import ModelError  # noqa: E402
from pytorch import modules  # noqa: E402
from pytorch.comparing import assert_same, run  # noqa: E402

DIGITS = Path(__file__).parents[2] / "examples/digits/digits.onnx"
QUICK = ("--warmup", "0", "--duration", "0.1", "--threads", "1")
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`conv.pt2` with a dynamic batch, its program `conv.hipdnn`, `encoder.pt2` with nested arguments, an unused one and a flag."""

    class Keywords(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = modules.Encoder()

        def forward(self, *, visible: Any, ids: Any, unused: Any, scale: float) -> Any:
            return self.encoder(ids["tokens"], visible), None, ids["tokens"] * scale

    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("exported")
    net = modules.ConvNet().eval()
    program = torch.export.export(net, (torch.randn(2, 3, 16, 20),), dynamic_shapes=({0: Dim("batch")},))
    torch.export.save(program, path / "conv.pt2")
    hipdnn_mlir.compile(path / "conv.pt2").save(path / "conv.hipdnn")
    torch.export.save(torch.export.export(modules.ConvNet().eval(), (torch.randn(1, 3, 16, 20),)), path / "other.pt2")
    ids, visible = modules.Encoder.arguments(2, 5)
    named = {"visible": visible, "ids": {"tokens": ids}, "unused": torch.randn(3), "scale": 2.0}
    torch.export.save(torch.export.export(Keywords().eval(), (), named), path / "encoder.pt2")
    return path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the command in this process, which has loaded PyTorch; threads of PyTorch are as before afterwards."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))  # inductor takes half a minute
    threads = torch.get_num_threads()

    def called(*arguments: object) -> tuple[int, str, str]:
        try:
            status = cli.call([str(argument) for argument in arguments])
        finally:
            torch.set_num_threads(threads)
        return status, *capsys.readouterr()

    return called


def test_program_of_a_file_equals_pytorch(folder: Path) -> None:
    module = torch.export.load(folder / "conv.pt2").module()
    session = hipdnn_mlir.load(folder / "conv.hipdnn")
    assert session.inputs[0].shape == ("x.0", 3, 16, 20)
    x = torch.randn(4, 3, 16, 20)
    assert_same(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), run(module, x))


def test_child_takes_a_file_and_knows_its_program_again(call: Call, folder: Path, tmp_path: Path) -> None:
    made, page = tmp_path / "made.hipdnn", tmp_path / "p.html"
    status, _, errors = call("compile", folder / "conv.pt2", "-o", made)
    assert (status, errors) == (0, "")
    assert call("diff", made, folder / "conv.hipdnn")[0] == 0
    status, _, errors = call(
        "inspect", folder / "conv.hipdnn", "--html", page, "--shape", "x.0=4", "--reference", folder / "conv.pt2"
    )
    assert (status, errors) == (0, "")
    assert "torch.aten.convolution" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "rows", "verdict"),
    [(["run", "--compare", "torch"], "differences", "equal"), (["verify", "--precision", "bf16"], "outputs", "within")],
    ids=["run", "verify"],
)
def test_results_are_compared_with_pytorch(
    call: Call, folder: Path, arguments: list[str], rows: str, verdict: str
) -> None:
    status, text, _ = call(arguments[0], folder / "encoder.pt2", *arguments[1:], "--in-process", "--json")
    assert status == 0
    data = json.loads(text)
    assert {row["output"] for row in data[rows]} == {
        "output_0.hidden",
        "output_0.parts.0",
        "output_0.parts.1",
        "output_2",
    }
    assert all(row["within"] and not row["constant"] for row in data[rows])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("w.pt2", "cannot load it: We ran into an error when deserializing the saved file: expected a file that"),
        ("w.pt", "not a complete ONNX model"),
    ],
)
def test_error_names_what_writes_pt2_files_when_torch_save_wrote_one(
    call: Call, tmp_path: Path, name: str, message: str
) -> None:
    torch.save({"w": torch.zeros(2)}, tmp_path / name)
    status, _, errors = call("compile", tmp_path / name)
    assert (status, message in errors, "torch.export.save" in errors, "warnings" in errors) == (2, True, True, False)


def test_explain_and_profile_take_a_file(call: Call, folder: Path) -> None:
    status, text, _ = call("explain", folder / "conv.pt2", "--in-process", "--json")
    assert status == 0
    assert {node["op"] for node in json.loads(text)["nodes"]} >= {"aten.convolution", "aten.relu"}
    status, text, _ = call("profile", folder / "conv.pt2", "--in-process", "--repeat", 1, "--json")
    assert status == 0
    assert "stem/convolution+relu" in {step["name"] for step in json.loads(text)["steps"]}


def test_bench_has_a_row_for_each_way_of_pytorch(call: Call, folder: Path) -> None:
    conv = (folder / "conv.hipdnn", "--reference", folder / "conv.pt2")
    status, text, errors = call("bench", *conv, "--against", "torch", *QUICK, "--json")
    assert status == 0, errors
    names = [row["name"] for row in json.loads(text)["latencies"]]
    assert names == ["hipdnn-mlir", "PyTorch eager", "PyTorch torch.compile"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="PyTorch has a GPU here")
def test_error_names_pytorch_when_a_gpu_is_wanted_and_it_has_none(folder: Path) -> None:
    with pytest.raises(ModelError, match=r"conv.pt2: PyTorch \S+ has no GPU here; install a PyTorch for this GPU"):
        TorchModel(folder / "conv.pt2", device="cuda")


def test_bench_goes_on_when_torch_compile_cannot(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("no C++ compiler")

    monkeypatch.setattr(torch, "compile", lambda _: broken)
    conv = (folder / "conv.hipdnn", "--reference", folder / "conv.pt2")
    status, text, _ = call("bench", *conv, "--against", "torch", *QUICK, "--json")
    assert status == 0
    assert [row["name"] for row in json.loads(text)["latencies"]] == ["hipdnn-mlir", "PyTorch eager"]
    assert "torch.compile is left out" in caplog.text
    assert "no C++ compiler" in caplog.text


def test_bench_refuses_to_time_what_computes_something_else(call: Call, folder: Path) -> None:
    program = folder / "conv.hipdnn"
    status, text, errors = call("bench", program, "--against", "torch", "--reference", folder / "other.pt2", *QUICK)
    assert (status, text) == (2, "")
    assert "output 'output_0' differs from that of PyTorch eager, so nothing is timed" in errors


def test_bench_runs_an_onnx_model_that_onnx2torch_converts(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    class OfDigits(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.from_numpy(ort.InferenceSession(DIGITS).run(None, {"image": x.numpy()})[0])

    monkeypatch.setitem(sys.modules, "onnx2torch", SimpleNamespace(convert=lambda _: OfDigits()))
    status, text, errors = call("bench", DIGITS, "--against", "torch", *QUICK, "--in-process", "--json")
    assert status == 0, errors
    assert "PyTorch eager" in {row["name"] for row in json.loads(text)["latencies"]}


def test_bench_names_what_onnx2torch_lacks(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def convert(_: str) -> Any:
        described = "OperationDescription(domain='', operation_type='Gelu', version=20)"  # as the package has it
        raise NotImplementedError(f"Converter is not implemented ({described})")

    monkeypatch.setitem(sys.modules, "onnx2torch", SimpleNamespace(convert=convert))
    status, _, errors = call("bench", DIGITS, "--against", "torch", *QUICK, "--in-process")
    assert status == 2
    assert "does not know Gelu of opset 20" in errors
    monkeypatch.setitem(sys.modules, "onnx2torch", None)
    assert "pip install onnx2torch" in call("bench", DIGITS, "--against", "torch", *QUICK, "--in-process")[2]


def test_error_is_one_line_when_a_file_cannot_be_used(
    call: Call, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def error(*arguments: object) -> str:
        status, text, errors = call(*arguments)
        assert (status, text, errors.count("\n")) == (2, "", 1)
        return errors

    broken = tmp_path / "broken.pt2"
    broken.write_bytes(b"no archive")
    assert "torch.export.save" in error("compile", broken, "--in-process")
    whole = (folder / "conv.pt2").read_bytes()
    broken.write_bytes(whole.replace(b"aten.conv2d", b"aten.convex"))
    assert "cannot load it" in error("explain", broken, "--in-process")
    assert "no such file" in error("compile", tmp_path / "missing.pt2", "--in-process")
    assert "compare with torch" in error("run", folder / "conv.pt2", "--compare", "ort", "--in-process")
    assert "nodes of an ONNX model" in error("verify", folder / "conv.pt2", "--bisect", "--in-process")
    other = ("--reference", folder / "encoder.pt2", "--against", "torch")
    assert "not the model of the program" in error("bench", folder / "conv.hipdnn", *other, *QUICK)
    assert "an exported PyTorch program" in error("inspect", folder / "conv.pt2")
    monkeypatch.setattr("hipdnn_mlir_runtime.pytorch.find_spec", lambda _: None)
    assert "PyTorch is not installed; pip install torch" in error("compile", folder / "conv.pt2", "--in-process")
