"""Models with dynamic dimensions: one program, specialized for the sizes of each run; compiled anew only where there is no one form."""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import hipdnn_mlir_runtime

from .sessions import make_session, placed_nodes, reference, session_options
from .small_models import convolution, inputs_for, without_one_form

BATCH = ["batch", 3, 8, 8]


def parse(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 17]> {text}')


CACHE = """g (float[batch,past,8] c, float[batch,seq,8] x) => (float[batch,total,8] y) {
    r = Relu(x) y = Concat<axis=1>(c, r) }"""


def programs(cache: Path) -> int:
    return len(list(cache.glob("*.hipdnn")))


def check(session: ort.InferenceSession, model: onnx.ModelProto, seed: int = 0, **sizes: int) -> None:
    x = inputs_for(model, seed=seed, **sizes)
    for got, want in zip(session.run(None, x), reference(model, x), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_one_program_serves_every_batch(kind, tmp_path) -> None:
    model = convolution(BATCH)
    session = make_session(model, tmp_path, kind=kind, wholly=True)
    assert len(placed_nodes(session)[0]) == 2
    for seed in range(2):
        for batch in (1, 4, 2):
            check(session, model, seed, batch=batch)
    assert programs(tmp_path) == 1


def test_sizes_of_images_are_open(tmp_path) -> None:
    model = convolution(["batch", 3, "height", "width"])
    session = make_session(model, tmp_path, wholly=True)
    check(session, model, batch=2, height=5, width=9)
    check(session, model, batch=1, height=32, width=3)
    assert programs(tmp_path) == 1


def test_two_dynamic_dimensions_are_joined(tmp_path) -> None:
    model = parse(CACHE)
    session = make_session(model, tmp_path, wholly=True, options={"placement": "maximal"})
    for past in (0, 1, 7, 8):
        check(session, model, batch=2, past=past, seq=3)
    assert programs(tmp_path) == 1


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_threads_meet_new_sizes(kind, tmp_path) -> None:
    model = convolution(BATCH)
    session = make_session(model, tmp_path, kind=kind, options={"max_specializations": "2"})
    cases = [inputs_for(model, seed=i, batch=1 + i % 4) for i in range(60)]
    with ThreadPoolExecutor(6) as pool:
        for x, result in zip(cases, pool.map(lambda x: session.run(None, x)[0], cases), strict=True):
            np.testing.assert_allclose(result, reference(model, x)[0], rtol=1e-5, atol=1e-5)
    assert programs(tmp_path) == 1


def test_empty_batch_runs(tmp_path) -> None:
    model = convolution(BATCH)
    session = make_session(model, tmp_path, wholly=True)
    for batch in (0, 2, 0):
        check(session, model, batch=batch)
    assert programs(tmp_path) == 1


def test_known_model_needs_no_compiler(tmp_path) -> None:
    model = convolution(BATCH)
    make_session(model, tmp_path)
    # An interpreter that cannot start: whatever asks the compiler fails.
    session = make_session(model, tmp_path, options={"python": "/nowhere", "compiler": "subprocess"}, wholly=True)
    check(session, model, batch=3)


def test_contradicting_sizes_name_input_and_dimension(tmp_path) -> None:
    # ONNX Runtime compares sizes of the same name with a warning alone.
    model = parse(CACHE)
    session = make_session(model, tmp_path, wholly=True, options={"placement": "maximal"})
    c, x = np.zeros((2, 1, 8), np.float32), np.zeros((3, 1, 8), np.float32)
    with pytest.raises(
        Exception, match=r"'[cx]', dimension 0 \('batch'\): expected \d as in '[cx]', dimension 0, got \d"
    ):
        session.run(None, {"c": c, "x": x})
    check(session, model, batch=3, past=2, seq=1)


def test_model_without_one_form_is_compiled_for_each_size(tmp_path, capfd) -> None:
    model = without_one_form()
    settings = session_options(tmp_path, options={"placement": "maximal"})
    settings.log_severity_level = 2
    session = ort.InferenceSession(model.SerializeToString(), sess_options=settings)
    assert "has no dynamic program" in capfd.readouterr().err
    session.disable_fallback()
    assert placed_nodes(session)[0]
    for _ in range(2):
        with pytest.raises(Exception, match=r"Reshape|shape"):
            session.run(None, inputs_for(model, batch=3))
    check(session, model, batch=2)
    assert programs(tmp_path) == 1


def test_refusal_of_one_form_is_remembered(tmp_path) -> None:
    model = without_one_form()
    options = {"placement": "maximal"}
    check(make_session(model, tmp_path, options=options), model, batch=2)
    session = make_session(model, tmp_path, options={**options, "python": "/nowhere", "compiler": "subprocess"})
    check(session, model, batch=2)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_fixed_by_override_is_static(kind, tmp_path) -> None:
    model = convolution(BATCH)
    settings = session_options(tmp_path, kind=kind)
    settings.add_free_dimension_override_by_name("batch", 2)
    session = ort.InferenceSession(model.SerializeToString(), sess_options=settings)
    (program,) = tmp_path.glob("*.hipdnn")
    with hipdnn_mlir_runtime.load(program) as compiled:
        assert tuple(compiled.inputs[0].shape) == (2, 3, 8, 8)
    check(session, model, batch=2)


def test_override_makes_one_program_of_what_has_no_dynamic_one(tmp_path, capfd) -> None:
    model = without_one_form()
    settings = session_options(tmp_path, options={"placement": "maximal"})
    settings.log_severity_level = 2
    settings.add_free_dimension_override_by_name("batch", 2)
    session = ort.InferenceSession(model.SerializeToString(), sess_options=settings)
    assert "has no dynamic program" not in capfd.readouterr().err
    assert programs(tmp_path) == 1
    check(session, model, batch=2)
    assert programs(tmp_path) == 1


def _memory_files(bytes_at_least: int) -> list[os.stat_result]:
    """Those of the provider that are so large."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if link.readlink().name.startswith("memfd:hipdnn_mlir") and link.stat().st_size >= bytes_at_least:
                found.append(link.stat())
    return found


def test_weights_that_the_program_has_are_not_kept_for_other_sizes(tmp_path) -> None:
    """The model is kept for sizes that come later; its weights are in the program's file."""
    width = 1537  # of no other test
    model = parse(f"""g (float[batch,{width}] x) => (float[1,{width}] y) <int64[1] a = {{0}}> {{
        r = Relu(x) s = ReduceSum<keepdims=1>(r, a) y = MatMul(s, w) }}""")
    weight = np.random.default_rng(0).standard_normal((width, width), np.float32) / width
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    session = make_session(model, tmp_path, wholly=True)
    check(session, model, batch=3)
    (kept,) = _memory_files(weight.nbytes)
    assert kept.st_blocks * 512 < weight.nbytes // 8
    check(session, model, batch=0)
    assert programs(tmp_path) == 2


@pytest.mark.parametrize("width", ["8", "width"])
def test_size_for_which_the_program_does_not_hold_is_compiled(width, tmp_path) -> None:
    # A sum over nothing is 0, which no graph computes.
    model = parse(f"""g (float[batch,{width}] x) => (float[1,{width}] y) <int64[1] a = {{0}}> {{
        r = Relu(x) y = ReduceSum<keepdims=1>(r, a) }}""")
    session = make_session(model, tmp_path, wholly=True)
    for batch in (3, 0, 2):
        check(session, model, batch=batch, width=8)
    assert programs(tmp_path) == 2


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_image_smaller_than_a_window_is_compiled_for_its_size(op, tmp_path) -> None:
    # ONNX has a window for it all the same, cut to the image.
    model = parse(f"""g (float[batch,3,height,width] x) => (float[batch,3,1,1] y) {{
        r = Relu(x) p = {op}<kernel_shape=[3,2], strides=[3,2]>(r) y = GlobalAveragePool(p) }}""")
    session = make_session(model, tmp_path, wholly=True)
    for height in (6, 1, 7):
        check(session, model, batch=2, height=height, width=9)
    assert programs(tmp_path) == 2


@pytest.mark.parametrize(
    ("body", "sizes"),
    [
        ("t = Slice(x, a, b, zero) y = Relu(t)", (3, 12, 20)),
        ("t = Slice(x, c, end, zero) y = Relu(t)", (50, 150, 99)),
        ("n = Shape<start=0, end=1>(x) d = Sub(h, n) p = Concat<axis=0>(none, d, zero) y = Pad(x, p)", (99, 150, 160)),
    ],
    ids=["empty", "last", "padded"],
)
def test_part_that_one_program_cannot_take_of_all_sizes_is_taken_at_each(body, sizes, tmp_path) -> None:
    model = parse(f"""g (float[batch,8] x) => (float[rows,8] y) <int64[1] a = {{-5}}, int64[1] b = {{9}}, int64[1] c = {{-100}},
        int64[1] h = {{150}}, int64[1] end = {{9223372036854775807}}, int64[1] zero = {{0}}, int64[2] none = {{0, 0}}> {{ {body} }}""")
    session = make_session(model, tmp_path, wholly=True)
    for batch in sizes:
        check(session, model, batch=batch)
