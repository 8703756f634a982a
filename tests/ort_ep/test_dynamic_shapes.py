"""Models with open sizes: one program per combination of sizes, compiled at most once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from .sessions import make_session, placed_nodes, reference, session_options
from .small_models import convolution, inputs_for

BATCH = ["batch", 3, 8, 8]


def programs(cache: Path) -> int:
    return len(list(cache.glob("*.hipdnn")))


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_each_batch_is_compiled_once(kind, tmp_path) -> None:
    model = convolution(BATCH)
    session = make_session(model, tmp_path, kind=kind, wholly=True)
    assert len(placed_nodes(session)[0]) == 2
    assert programs(tmp_path) == 0
    for round_number in range(3):
        for batch in (1, 4, 2):
            x = inputs_for(model, seed=round_number, batch=batch)
            np.testing.assert_allclose(session.run(None, x)[0], reference(model, x)[0], rtol=1e-5, atol=1e-5)
    assert programs(tmp_path) == 3


def test_threads_that_meet_new_sizes_compile_once(tmp_path) -> None:
    model = convolution(BATCH)
    session = make_session(model, tmp_path)
    x = inputs_for(model, batch=3)
    expected = reference(model, x)[0]
    with ThreadPoolExecutor(8) as pool:
        for result in pool.map(lambda _: session.run(None, x)[0], range(64)):
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
    assert programs(tmp_path) == 1


def test_programs_beyond_the_limit_are_dropped_and_found_again(tmp_path) -> None:
    model = convolution(BATCH)
    session = make_session(model, tmp_path, options={"max_shapes": "1"})
    with ThreadPoolExecutor(4) as pool:
        cases = [inputs_for(model, seed=i, batch=1 + i % 3) for i in range(60)]
        for x, result in zip(cases, pool.map(lambda x: session.run(None, x)[0], cases), strict=True):
            np.testing.assert_allclose(result, reference(model, x)[0], rtol=1e-5, atol=1e-5)
    assert programs(tmp_path) == 3


def test_empty_batch_runs(tmp_path) -> None:
    model = convolution(BATCH)
    session = make_session(model, tmp_path, wholly=True)
    for batch in (0, 2):
        x = inputs_for(model, batch=batch)
        np.testing.assert_allclose(session.run(None, x)[0], reference(model, x)[0], rtol=1e-5, atol=1e-5)


def test_run_fails_with_the_compilers_words_when_sizes_do_not_fit(tmp_path) -> None:
    text = """<ir_version: 10, opset_import: ["": 17]> g (float[batch, 12] x) => (float[4, 6] y) <int64[2] s = {4, 6}> {
        r = Relu(x) y = Reshape(r, s) }"""
    model = onnx.parser.parse_model(text)
    session = make_session(model, tmp_path, options={"placement": "maximal"})
    assert placed_nodes(session)[0]
    for _ in range(2):
        with pytest.raises(Exception, match=r"Reshape|shape"):
            session.run(None, inputs_for(model, batch=3))
    x = inputs_for(model, batch=2)
    np.testing.assert_allclose(session.run(None, x)[0], reference(model, x)[0], rtol=1e-5, atol=1e-5)


def test_fixed_by_override_is_static(tmp_path) -> None:
    model = convolution(BATCH)
    settings = session_options(tmp_path)
    settings.add_free_dimension_override_by_name("batch", 2)
    session = ort.InferenceSession(model.SerializeToString(), sess_options=settings)
    assert programs(tmp_path) == 1
    x = inputs_for(model, batch=2)
    np.testing.assert_allclose(session.run(None, x)[0], reference(model, x)[0], rtol=1e-5, atol=1e-5)
