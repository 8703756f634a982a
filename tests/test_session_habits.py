"""What users of ONNX Runtime's sessions expect of ours: the same calls, and errors that name the argument at fault."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import hipdnn_mlir
import hipdnn_mlir_runtime
from hipdnn_mlir_runtime.dtypes import ALL
from hipdnn_mlir_runtime.errors import ModelError
from models import GraphBuilder


@pytest.fixture
def images() -> np.ndarray:
    return np.random.default_rng(2).standard_normal((1, 3, 32, 32)).astype(np.float32)


@pytest.fixture
def want(small_model: Path, images: np.ndarray) -> np.ndarray:
    return ort.InferenceSession(small_model, providers=["CPUExecutionProvider"]).run(None, {"image": images})[0]


def test_inputs_and_outputs_are_told_as_onnxruntime_does(small_model: Path, small_program: Path) -> None:
    theirs = ort.InferenceSession(small_model, providers=["CPUExecutionProvider"])
    ours = hipdnn_mlir.load(small_program)
    for got, wanted in ((ours.get_inputs(), theirs.get_inputs()), (ours.get_outputs(), theirs.get_outputs())):
        assert [(port.name, port.type, list(port.shape)) for port in got] == [(p.name, p.type, p.shape) for p in wanted]


@pytest.mark.parametrize("dtype", [dtype for dtype in ALL if dtype.name != "bool"], ids=lambda dtype: dtype.name)
def test_types_are_spelled_as_onnxruntime_does(dtype) -> None:
    b = GraphBuilder("m", opset=19)
    kind = getattr(onnx.TensorProto, dtype.onnx)
    model = b.model({b.op("Identity", b.input("x", [2], kind)): [2]}, dtype=kind)
    theirs = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).get_inputs()[0].type
    assert hipdnn_mlir.compile(model).session().get_inputs()[0].type == theirs


def test_repr_of_a_program_names_dynamic_dimensions() -> None:
    b = GraphBuilder("m")
    joined = b.op("Concat", b.input("x", ["batch size", 4]), b.input("y", ["n", 4]), axis=0)
    model = b.model({b.op("Relu", joined): ["batch size + n", 4]})
    program = hipdnn_mlir.compile(model)
    assert repr(program).startswith("Program('m' for 'host', inputs x: f32[batch size,4], y: f32[n,4], 3 steps, ")


@pytest.mark.parametrize("load", [hipdnn_mlir.load, hipdnn_mlir_runtime.load], ids=["compiler", "runtime"])
@pytest.mark.parametrize(
    ("source", "message"),
    [
        (3, "no program: expected the path of .* got int"),
        (None, "got NoneType"),
        (b"model", "got bytes"),
        ("digits.onnx", "an ONNX model: expected a program file .*; compile it first, with hipdnn_mlir.compile"),
        (Path("m.pt2"), "an exported PyTorch program: expected a program file"),
    ],
)
def test_load_says_what_it_takes_when_it_is_given_something_else(load, source, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load(source)


def test_run_says_what_it_takes_when_inputs_are_no_dict(small_program: Path, images: np.ndarray) -> None:
    session = hipdnn_mlir.load(small_program)
    for feeds in (images, [images], None):
        with pytest.raises(ModelError, match="the inputs are no dict: expected a dict with 'image', got "):
            session.run(None, feeds)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shapes": "x"}, "shapes: no dict: expected {input: dims} or {dynamic dimension: size}, got 'x'"),
        ({"shapes": {1: 2}}, "no input or dynamic dimension named 1: expected an input"),
        ({"buckets": [1, 2]}, r"buckets: no dict: expected {dynamic dimension: sizes}, got \[1, 2\]"),
        ({"buckets": {"n": [0]}}, "^invalid buckets for 'n': expected 1 to"),
    ],
)
def test_compile_says_what_sizes_are_when_they_are_something_else(options, message: str) -> None:
    b = GraphBuilder("m")
    model = b.model({b.op("Relu", b.input("x", ["n", 4])): ["n", 4]})
    with pytest.raises(ModelError, match=message):
        hipdnn_mlir.compile(model, **options)


def test_packages_have_versions() -> None:
    assert hipdnn_mlir.__version__ == version("hipdnn-mlir")
    assert hipdnn_mlir_runtime.__version__ == version("hipdnn-mlir-runtime")


def test_session_ends_with_its_block(small_program: Path, images: np.ndarray, want: np.ndarray) -> None:
    with hipdnn_mlir.load(small_program) as session:
        np.testing.assert_allclose(session.run(None, {"image": images})[0], want, rtol=1e-4, atol=1e-5)
        assert repr(session).startswith("Session(target 'host', image: f32[1,3,32,32] -> ")
    assert repr(session).endswith(", closed)")
    session.close()
    calls = (
        lambda: session.run(None, {"image": images}),
        lambda: session.run_async(None, {"image": images}),
        lambda: session.bind({"image": images}, {session.outputs[0].name: want}),
        lambda: session.loaded_for({"image": images}),
        lambda: session.stats,
        lambda: session.prewarm([{}]),
    )
    for call in calls:
        with pytest.raises(ModelError, match="the session is closed"):
            call()


def test_bound_arrays_are_read_and_written_in_place(small_program: Path, images: np.ndarray, want: np.ndarray) -> None:
    session = hipdnn_mlir.load(small_program)
    name = session.outputs[0].name
    out = np.zeros_like(want)
    run = session.bind({"image": images}, {name: out})
    assert not out.any()
    run()
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-5)
    images *= 2
    run()
    np.testing.assert_array_equal(out, session.run(None, {"image": images})[0])


def test_runs_in_the_background_give_what_run_gives(small_program: Path, images: np.ndarray) -> None:
    session = hipdnn_mlir.load(small_program)
    feeds = [{"image": images * factor} for factor in range(1, 9)]
    futures = [session.run_async(None, feed) for feed in feeds]
    for feed, future in zip(feeds, futures, strict=True):
        np.testing.assert_array_equal(future.result()[0], session.run(None, feed)[0])

    async def both() -> list[list[np.ndarray]]:
        return await asyncio.gather(*(asyncio.wrap_future(session.run_async(None, feed)) for feed in feeds[:2]))

    for feed, result in zip(feeds, asyncio.run(both()), strict=False):
        np.testing.assert_array_equal(result[0], session.run(None, feed)[0])
    with pytest.raises(ModelError, match="no input 'picture', missing input 'image'"):
        session.run_async(None, {"picture": images}).result()


@pytest.mark.parametrize(
    ("names", "feeds", "message"),
    [
        (None, {"picture": 0}, "no input 'picture', missing input 'image': expected 'image'"),
        (["nothing"], {"image": 0}, "no output 'nothing': expected"),
        (None, {"image": np.zeros((1, 3, 32, 31), np.float32)}, r"'image': wrong array: expected f32\[1,3,32,32\], got f32\[1,3,32,31\]"),
        (None, {"image": np.zeros((1, 3, 32, 32))}, r"'image': wrong array: expected f32\[1,3,32,32\], got f64"),
        (None, {"image": "a text"}, "'image': not an array: .*got str"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(small_program: Path, names: list[str] | None, feeds: dict, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        hipdnn_mlir.load(small_program).run(names, feeds)


def test_shapes_of_outputs_are_told_without_a_run(small_program: Path, want: np.ndarray) -> None:
    session = hipdnn_mlir.load(small_program)
    name = session.outputs[0].name
    assert session.output_shapes({"image": (1, 3, 32, 32)}) == {name: want.shape}
    with pytest.raises(ModelError, match="'image', dimension 3: expected 32, got 31"):
        session.output_shapes({"image": (1, 3, 32, 31)})
    with pytest.raises(ModelError, match="no input 'picture', missing input 'image'"):
        session.output_shapes({"picture": (1, 3, 32, 32)})
