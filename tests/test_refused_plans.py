"""What is compiled where the device's library refuses graphs that the tables give it, and what the tables say of exact f32 on NVIDIA."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnxruntime as ort
import pytest

import hipdnn_mlir
from hipdnn_mlir.errors import RefusedPlan, UnsupportedError
from models import GraphBuilder
from runtime_programs import Array

WORDS = "no engine for it"


def model() -> bytes:
    """A convolution with a residual and an activation, a product with one."""
    b = GraphBuilder("block")
    x = b.input("x", [2, 8, 6, 6])
    w, bias = (b.constant(b.rng.standard_normal(dims), "float32", "w") for dims in ([8, 8, 3, 3], [8]))
    y = b.op("Relu", b.op("Add", b.op("Conv", x, w, bias, pads=[1] * 4), x))
    weight = b.constant(b.rng.standard_normal([8 * 36, 10]), "float32", "w")
    made = b.op("Tanh", b.op("Gemm", b.op("Flatten", y), weight))
    return b.model({made: [2, 10]}).SerializeToString()


def feeds() -> dict[str, Array]:
    return {"x": np.random.default_rng(3).standard_normal((2, 8, 6, 6)).astype(np.float32)}


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


def test_exact_f32_on_nvidia_asks_cudnn_for_convolutions_without_residuals_only() -> None:
    program = code_of()
    assert kinds(program) == [("execute", "conv2d + add"), ("launch", "add + relu"), ("launch", "matmul + tanh")]
    assert "tf32" not in program.model.to_dict()


def test_tf32_is_written_into_the_program_and_fuses_everything() -> None:
    program = code_of(precision="tf32", target="sm_80")
    assert [kind for kind, _ in kinds(program)] == ["execute", "execute"]
    assert program.model.to_dict()["tf32"] is True
    assert program.model.target == "sm_80"
