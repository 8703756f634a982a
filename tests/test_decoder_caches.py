"""Caches of decoders that grow, or are as long as they will ever be: one program, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import hipdnn_mlir

ATTRIBUTES = {
    "plain": "",
    "rotary": ", do_rotary=1",
    "window": ", local_window_size=3",
    "rotary, window and softcap": ", do_rotary=1, local_window_size=4, softcap=2.0",
}
RUNS = {
    "a prompt without a cache": (2, 5, 0, [5, 5]),
    "a step that grows": (1, 1, 5, [6]),
    "more of a prompt that grows": (1, 3, 5, [8]),
    "a prompt into a buffer": (2, 5, 16, [5, 5]),
    "a prompt as long as the buffer": (1, 16, 16, [16]),
    "a step in a buffer": (2, 1, 16, [6, 6]),
    "rows of different lengths": (3, 1, 16, [6, 2, 16]),
    "more of a prompt in a buffer": (1, 4, 16, [10]),
    "the last step of a buffer": (1, 1, 16, [16]),
}
"""Batch, new tokens, length of the cache, and how many keys each row has in all."""


def _model(attributes: str, batch: str = "b") -> onnx.ModelProto:
    rotary = ", cos, sin" if "do_rotary" in attributes else ""
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
      g (float[{batch},s,128] q, int64[{batch},t] mask, float[{batch},2,p,d] past_k, float[{batch},2,p,d] past_v)
        => (float[{batch},s,64] y, float[{batch},2,m,d] k, float[{batch},2,m,d] v) {{
        count = ReduceSum<keepdims=0>(mask, axis)
        before = Sub(count, one)
        last = Cast<to=6>(before)
        sizes = Shape(mask)
        all = Gather(sizes, at)
        total = Cast<to=6>(all)
        y, k, v = com.microsoft.GroupQueryAttention<num_heads=4, kv_num_heads=2{attributes}>(q, , , past_k, past_v, last, total{rotary})
      }}""")
    angles = np.outer(np.arange(32), 1 / 10 ** np.arange(8)).astype(np.float32)
    constants = {
        "axis": np.array([1], np.int64),
        "one": np.array([1], np.int64),
        "at": np.array(1, np.int64),
        **({"cos": np.cos(angles), "sin": np.sin(angles)} if rotary else {}),
    }
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in constants.items())
    return model


def _feeds(batch: int, new: int, cache: int, lengths: list[int]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(new + cache)
    total = max(lengths)
    mask = np.array([[int(index < length) for index in range(total)] for length in lengths], np.int64)
    past = {name: rng.standard_normal((batch, 2, cache, 16), np.float32) for name in ("past_k", "past_v")}
    return {"q": rng.standard_normal((batch, new, 128), np.float32), "mask": mask, **past}


def _assert_equal(model: onnx.ModelProto, session: object, run: tuple[int, int, int, list[int]]) -> None:
    feeds = _feeds(*run)
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    got, want = session.run(None, feeds), reference.run(None, feeds)  # type: ignore[attr-defined]
    np.testing.assert_allclose(got[0], want[0], rtol=1e-5, atol=1e-5)
    for mine, theirs in zip(got[1:], want[1:], strict=True):
        assert mine.shape == theirs.shape
        for row, length in enumerate(run[3]):  # what lies behind a row's keys means nothing
            np.testing.assert_allclose(mine[row, :, :length], theirs[row, :, :length], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("attributes", ATTRIBUTES)
def test_one_program_serves_caches_that_grow_and_buffers(attributes: str) -> None:
    model = _model(ATTRIBUTES[attributes])
    session = hipdnn_mlir.compile(model).session()
    for run in RUNS.values():
        _assert_equal(model, session, run)


@pytest.mark.parametrize("run", RUNS)
def test_caches_are_right_when_sizes_are_static(run: str) -> None:
    batch, new, cache, lengths = RUNS[run]
    shapes = {"b": batch, "s": new, "p": cache, "t": max(lengths)}
    model = _model(ATTRIBUTES["rotary"])
    _assert_equal(model, hipdnn_mlir.compile(model, shapes=shapes).session(), RUNS[run])


def test_caches_are_right_when_the_batch_alone_is_static() -> None:
    model = _model(ATTRIBUTES["rotary"], "1")
    session = hipdnn_mlir.compile(model).session()
    for run in RUNS.values():
        if run[0] == 1:
            _assert_equal(model, session, run)
