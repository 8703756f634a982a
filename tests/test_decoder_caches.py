"""Caches of decoders that grow, or are as long as they will ever be: one program, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import hipdnn_mlir
from drawing import every
from hipdnn_mlir_runtime.errors import UnsupportedError
from hipdnn_mlir_runtime.session.session import Session

ATTRIBUTES = {
    "plain": "",
    "rotary": ", do_rotary=1",
    "interleaved rotary": ", do_rotary=1, rotary_interleaved=1",
    "scale": ", scale=0.4",
    "window": ", local_window_size=3",
    "rotary, window and softcap": ", do_rotary=1, local_window_size=4, softcap=2.0",
    "smooth softmax": ", smooth_softmax=1",
}
CHANGED = {
    "sink": ("", ("sink",)),
    "sink and window": (", do_rotary=1, local_window_size=4", ("sink",)),
    "bias": ("", ("bias",)),
    "sink, bias and softcap": (", softcap=2.0", ("bias", "sink")),
}
"""Attributes, and operands that change scores."""
CASES: dict[str, tuple[str, tuple[str, ...]]] = {name: (text, ()) for name, text in ATTRIBUTES.items()} | CHANGED
RUNS = {
    "a prompt without a cache": (2, 5, 0, [5, 5]),
    "a step that grows": (1, 1, 5, [6]),
    "more of a prompt that grows": (1, 3, 5, [8]),
    "a padded prompt without a cache": (3, 5, 0, [5, 2, 4]),
    "a prompt into a buffer": (2, 5, 16, [5, 5]),
    "a padded prompt into a buffer": (3, 5, 16, [2, 5, 1]),
    "a prompt as long as the buffer": (1, 16, 16, [16]),
    "a step in a buffer": (2, 1, 16, [6, 6]),
    "rows of different lengths": (3, 1, 16, [6, 2, 16]),
    "more of a prompt in a buffer": (1, 4, 16, [10]),
    "the last step of a buffer": (1, 1, 16, [16]),
}
"""Batch, new tokens, length of the cache, and how many keys each row has in all."""
Run = tuple[int, int, int, list[int]]


def cache_model(
    attributes: str, batch: str = "b", kv_heads: int = 2, *, is_packed: bool = True, more: Sequence[str] = ()
) -> onnx.ModelProto:
    """Attention of 8 heads of 16 with `kv_heads` of keys and values, in one operand with the queries or each in its own.

    `more` names operands that change scores: a bias, which is an input, and a sink, which is none.
    """
    rotary = ", cos, sin" if "do_rotary" in attributes else ""
    beside = f"{rotary or ', , '}, , {'bias' if 'bias' in more else ''}, {'sink' if 'sink' in more else ''}"
    bias = f", float[{batch},8,s,t] bias" if "bias" in more else ""
    width = 16 * kv_heads
    operands = f"float[{batch},s,{128 + 2 * width}] q"
    if not is_packed:
        operands = f"float[{batch},s,128] q, float[{batch},s,{width}] k_new, float[{batch},s,{width}] v_new"
    new = "," if is_packed else "k_new, v_new"
    cache = f"float[{batch},{kv_heads},p,16]"
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
      g ({operands}, int64[{batch},t] mask, {cache} past_k, {cache} past_v{bias})
        => (float[{batch},s,128] y, float[{batch},{kv_heads},m,16] k, float[{batch},{kv_heads},m,16] v) {{
        count = ReduceSum<keepdims=0>(mask, axis)
        before = Sub(count, one)
        last = Cast<to=6>(before)
        sizes = Shape(mask)
        all = Gather(sizes, at)
        total = Cast<to=6>(all)
        y, k, v = com.microsoft.GroupQueryAttention<num_heads=8, kv_num_heads={kv_heads}{attributes}>
          (q, {new}, past_k, past_v, last, total{beside if more else rotary})
      }}""")
    angles = np.outer(np.arange(512), 1 / 10 ** np.arange(8)).astype(np.float32)
    constants = {
        "axis": np.array([1], np.int64),
        "one": np.array([1], np.int64),
        "at": np.array(1, np.int64),
        **({"cos": np.cos(angles), "sin": np.sin(angles)} if rotary else {}),
        **({"sink": np.linspace(-1, 2, 8, dtype=np.float32)} if "sink" in more else {}),
    }
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in constants.items())
    return model


@cache
def compiled(attributes: str, more: tuple[str, ...]) -> tuple[onnx.ModelProto, hipdnn_mlir.Program]:
    """The model with these attributes and operands, every size of which is open, and its program: many tests look at them."""
    model = cache_model(attributes, more=more)
    return model, hipdnn_mlir.compile(model)


def cache_feeds(model: onnx.ModelProto, run: Run) -> dict[str, np.ndarray]:
    """Random queries, keys and values, and caches that hold numbers behind what is valid, too."""
    batch, new, cache, lengths = run
    rng = np.random.default_rng(new + cache)
    feeds = {"mask": np.array([[int(index < length) for index in range(max(lengths))] for length in lengths], np.int64)}
    for port in model.graph.input:
        dims = port.type.tensor_type.shape.dim
        if port.name == "bias":
            feeds[port.name] = rng.standard_normal((batch, 8, new, max(lengths)), np.float32)
        elif port.name.startswith("past"):
            feeds[port.name] = rng.standard_normal((batch, dims[1].dim_value, cache, 16), np.float32)
        elif port.name != "mask":
            feeds[port.name] = rng.standard_normal((batch, new, dims[2].dim_value), np.float32)
    return feeds


def _assert_equal(model: onnx.ModelProto, session: Session, run: Run) -> None:
    feeds = cache_feeds(model, run)
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert_valid_equal(session.run(None, feeds), reference.run(None, feeds), run)


def assert_valid_equal(got: Sequence[np.ndarray], want: Sequence[np.ndarray], run: Run) -> None:
    """What lies behind a row's queries and keys means nothing."""
    for mine, theirs in zip(got, want, strict=True):
        assert mine.shape == theirs.shape
    for row, length in enumerate(run[3]):
        np.testing.assert_allclose(got[0][row, :length], want[0][row, :length], rtol=1e-5, atol=1e-5)
        for mine, theirs in zip(got[1:], want[1:], strict=True):
            np.testing.assert_allclose(mine[row, :, :length], theirs[row, :, :length], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_one_program_serves_caches_that_grow_and_buffers(case: str) -> None:
    model, program = compiled(*CASES[case])
    session = program.session()
    for run in RUNS.values():
        _assert_equal(model, session, run)


@pytest.mark.parametrize("attributes", ["rotary", "window"])
def test_batches_are_rounded_up_to_buckets(attributes: str) -> None:
    model = cache_model(ATTRIBUTES[attributes])
    session = hipdnn_mlir.compile(model, buckets={"b": [2, 4]}).session()
    for run in RUNS.values():
        _assert_equal(model, session, run)


def test_batches_of_packed_weights_are_rounded_up_to_buckets() -> None:
    rng = np.random.default_rng(5)
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
      g (float[b,s,64] x) => (float[b,s,24] y) {
        y = com.microsoft.MatMulNBits<K=64, N=24, bits=4, block_size=32>(x, codes, scales) }""")
    codes, scales = rng.integers(0, 256, (24, 2, 16), np.uint8), rng.random((24, 2), np.float32)
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(a, n) for n, a in (("codes", codes), ("scales", scales))
    )
    session = hipdnn_mlir.compile(model, buckets={"b": [2, 4]}).session()
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for batch in (1, 2, 3):
        feeds = {"x": rng.standard_normal((batch, 5, 64), np.float32)}
        for got, want in zip(session.run(None, feeds), reference.run(None, feeds), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("run", RUNS)
def test_caches_are_right_when_sizes_are_static(run: str) -> None:
    batch, new, cache, lengths = RUNS[run]
    shapes = {"b": batch, "s": new, "p": cache, "t": max(lengths)}
    model = cache_model(ATTRIBUTES["rotary"])
    _assert_equal(model, hipdnn_mlir.compile(model, shapes=shapes).session(), RUNS[run])


def test_caches_are_right_when_the_batch_alone_is_static() -> None:
    model = cache_model(ATTRIBUTES["rotary"], "1")
    session = hipdnn_mlir.compile(model).session()
    for run in RUNS.values():
        if run[0] == 1:
            _assert_equal(model, session, run)


@pytest.mark.parametrize(("kv_heads", "is_packed"), every(5, [1, 2, 8], [True, False]))
def test_caches_are_right_when_heads_share_keys(kv_heads: int, *, is_packed: bool) -> None:
    model = cache_model(ATTRIBUTES["rotary"], kv_heads=kv_heads, is_packed=is_packed)
    session = hipdnn_mlir.compile(model).session()
    for run in RUNS.values():
        _assert_equal(model, session, run)


@pytest.mark.parametrize("case", CASES)
def test_caches_are_updated_by_kernels_of_their_own_and_read_by_one_graph(case: str) -> None:
    program = compiled(*CASES[case])[1].model.to_dict()
    functions = [
        program["kernels"][step["kernel"]]["function"] for step in program["steps"] if step["kind"] == "launch"
    ]
    assert functions.count("cache_update") == 2
    assert not {"scatter_elements", "scatter_nd"} & {*functions}
    assert (
        sum(
            "sdpa" in program["executables"][step["executable"]]["summary"]
            for step in program["steps"]
            if step["kind"] == "execute"
        )
        == 1
    )


@pytest.mark.parametrize("run", [name for name, (_, _, cache, lengths) in RUNS.items() if cache >= max(lengths)])
@pytest.mark.parametrize("attributes", ["rotary", "window", "rotary, window and softcap"])
def test_caches_are_right_when_results_are_in_their_memory(attributes: str, run: str) -> None:
    model, program = compiled(*CASES[attributes])
    session = program.session()
    feeds = cache_feeds(model, RUNS[run])
    want = session.run(None, feeds)
    y = np.empty_like(want[0])
    session.bind(feeds, {"y": y, "k": feeds["past_k"], "v": feeds["past_v"]})()
    for mine, theirs in zip((y, feeds["past_k"], feeds["past_v"]), want, strict=True):
        np.testing.assert_array_equal(mine, theirs)


WINDOW = ", local_window_size=5, sliding_window_cache=1"
WINDOWS = {
    "plain": (WINDOW, (), 1),
    "rotary": (f"{WINDOW}, do_rotary=1", (), 1),
    "sink and softcap": (f"{WINDOW}, softcap=2.0", ("sink",), 1),
    "rows of the batch": (WINDOW, (), 3),
}
"""Attributes, further operands, batch."""


@pytest.mark.parametrize(("window", "capacity"), [(5, 5), (5, 8), (300, 310)])
@pytest.mark.parametrize("case", WINDOWS)
def test_a_cache_that_keeps_a_window_alone_is_what_onnx_runtime_makes_of_it(
    case: str, window: int, capacity: int
) -> None:
    attributes, more, batch = WINDOWS[case]
    model, program = compiled(attributes.replace("size=5", f"size={window}"), more)
    session = program.session()
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    mine = theirs = [rng.standard_normal((batch, 2, capacity, 16), np.float32) for _ in range(2)]
    totals = np.zeros(batch, np.int64)
    # Prompts of any length and steps; rows of a larger batch have pasts of their own in steps alone.
    if batch == 3:
        totals += [5, 1, 3]
    for new in (window - 2, 1, 1, 1, 1, 4, 1, 12, 1) if batch == 1 else (1,) * 9:
        totals += new
        mask = (np.arange(totals.max()) < totals[:, None]).astype(np.int64)
        common = {"q": rng.standard_normal((batch, new, 192), np.float32), "mask": mask}
        got = session.run(None, {**common, "past_k": mine[0], "past_v": mine[1]})
        want = reference.run(None, {**common, "past_k": theirs[0], "past_v": theirs[1]})
        group = capacity - window + 1
        for row, total in enumerate(totals):
            kept = total - group * max(0, -(-(total - capacity) // group))
            valid = min(new, total)
            np.testing.assert_allclose(got[0][row, :valid], want[0][row, :valid], rtol=1e-5, atol=1e-5)
            for ours, others in zip(got[1:], want[1:], strict=True):
                np.testing.assert_allclose(ours[row, :, :kept], others[row, :, :kept], rtol=1e-5, atol=1e-6)
        mine, theirs = [np.array(x) for x in got[1:]], want[1:]


def test_a_cache_shorter_than_its_window_holds_the_texts_that_fit() -> None:
    session = compiled(WINDOW, ())[1].session()
    plain = cache_model(", local_window_size=5")  # ONNX Runtime refuses the other's cache
    reference = ort.InferenceSession(plain.SerializeToString(), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(2)
    mine = theirs = [np.zeros((1, 2, 3, 16), np.float32) for _ in range(2)]
    for new, total in ((2, 2), (1, 3)):
        common = {"q": rng.standard_normal((1, new, 192), np.float32), "mask": np.ones((1, total), np.int64)}
        got = session.run(None, {**common, "past_k": mine[0], "past_v": mine[1]})
        want = reference.run(None, {**common, "past_k": theirs[0], "past_v": theirs[1]})
        for ours, others in zip(got, want, strict=True):
            np.testing.assert_allclose(ours[..., :total, :], others[..., :total, :], rtol=1e-5, atol=1e-5)
        mine, theirs = [np.array(x) for x in got[1:]], want[1:]


def test_a_cache_of_a_window_may_be_its_own_result() -> None:
    session = compiled(WINDOW, ())[1].session()
    rng = np.random.default_rng(1)
    caches = {name: rng.standard_normal((1, 2, 5, 16), np.float32) for name in ("past_k", "past_v")}
    feeds = {"q": rng.standard_normal((1, 1, 192), np.float32), "mask": np.ones((1, 9), np.int64), **caches}
    want = session.run(None, feeds)
    y = np.empty_like(want[0])
    session.bind(feeds, {"y": y, "k": feeds["past_k"], "v": feeds["past_v"]})()
    for mine, theirs in zip((y, feeds["past_k"], feeds["past_v"]), want, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("attributes", "more", "message"),
    [
        (WINDOW, ("bias",), "sliding_window_cache without a window, or with a bias"),
        (", sliding_window_cache=1", (), "sliding_window_cache without a window, or with a bias"),
        (", causal=0", (), "attention that is not causal"),
    ],
)
def test_what_is_not_computed_is_refused_with_a_reason(attributes: str, more: tuple[str, ...], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        hipdnn_mlir.compile(cache_model(attributes, more=more))


def test_many_layers_compile_at_static_sizes() -> None:
    layers = 12
    caches = ", ".join(f"float[1,2,8,16] past_{index}_{name}" for index in range(layers) for name in "kv")
    body = "".join(
        f"""
        k{index} = Slice(x{index}, start, end, axis)
        a{index}, pk{index}, pv{index} = com.microsoft.GroupQueryAttention<num_heads=8, kv_num_heads=2, do_rotary=1>
          (x{index}, k{index}, k{index}, past_{index}_k, past_{index}_v, last, total, cos, sin)
        x{index + 1} = Add(x{index}, a{index})"""
        for index in range(layers)
    )
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
      g (float[1,s,128] x0, int64[1,t] mask, {caches}) => (float[1,s,128] x{layers}) {{
        count = ReduceSum<keepdims=0>(mask, axis1)
        before = Sub(count, one)
        last = Cast<to=6>(before)
        sizes = Shape(mask)
        all = Gather(sizes, at)
        total = Cast<to=6>(all){body}
      }}""")
    angles = np.outer(np.arange(32), 1 / 10 ** np.arange(8)).astype(np.float32)
    constants = {
        "start": np.array([0], np.int64),
        "end": np.array([32], np.int64),
        "axis": np.array([2], np.int64),
        "axis1": np.array([1], np.int64),
        "one": np.array([1], np.int64),
        "at": np.array(1, np.int64),
        "cos": np.cos(angles),
        "sin": np.sin(angles),
    }
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in constants.items())
    rng = np.random.default_rng(0)
    feeds = {name: rng.standard_normal((1, 2, 8, 16), np.float32) for name in (p.name for p in model.graph.input[2:])}
    feeds |= {"x0": rng.standard_normal((1, 1, 128), np.float32), "mask": np.ones((1, 5), np.int64)}
    (want,) = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    (got,) = hipdnn_mlir.compile(model, shapes={"s": 1, "t": 5}).session().run(None, feeds)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
