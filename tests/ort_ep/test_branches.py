"""Nodes with graphs of their own: an If between tables of angles, as decoders have it, and a Scan; and LSTM."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from int8_sums import quantized_in_each_run

from .sessions import KINDS, make_session, partitions, reference

ROWS, WIDTH, LIMIT = 64, 128, 8


def _model() -> onnx.ModelProto:
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 17]>
      g (float[n,{WIDTH}] x) => (float[n,{WIDTH}] y) {{
        limit = Constant<value_ints=[{LIMIT}]>()
        rows = Shape<start=0, end=1>(x)
        is_long = Greater(rows, limit)
        table = If<then_branch = long () => (float[{ROWS},{WIDTH}] a) {{ a = Constant() }},
                   else_branch = short () => (float[{ROWS},{WIDTH}] b) {{ b = Constant() }}>(is_long)
        total = ReduceMean<axes=[0], keepdims=1>(table)
        y = Add(x, total)
      }}""")
    (choice,) = (node for node in model.graph.node if node.op_type == "If")
    for seed, attribute in enumerate(choice.attribute):
        values = np.random.default_rng(seed).standard_normal((ROWS, WIDTH), np.float32)
        attribute.g.node[0].attribute.append(onnx.helper.make_attribute("value", onnx.numpy_helper.from_array(values)))
    return model


@pytest.mark.parametrize("order", [(3, 20), (20, 3)], ids=["short first", "long first"])
def test_a_branch_with_large_weights_is_taken_by_the_size_of_each_run(order: tuple[int, ...], tmp_path: Path) -> None:
    model = _model()
    session = make_session(model, tmp_path, options={"placement": "maximal"})
    assert partitions(session)
    for rows in order:
        feeds = {"x": np.random.default_rng(rows).standard_normal((rows, WIDTH), np.float32)}
        (got,), (want,) = session.run(None, feeds), reference(model, feeds)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def _merged(width: int) -> onnx.ModelProto:
    """Two steps as branches that share a weight outside of them, as exporters merge decoders: one makes a cache, one goes on with it."""
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 17]>
      g (float[n,{width}] x, float[p,{width}] past, bool[1] use_past) => (float[n,{width}] y, float[t,{width}] present) {{
        h = Relu(x)
        y, present = If<
          then_branch = goes_on () => (float[n,{width}] a, float[t,{width}] b) {{
            k = MatMul(h, w) b = Concat<axis=0>(past, k) m = ReduceMean<axes=[0], keepdims=1>(b) a = Add(k, m) }},
          else_branch = begins () => (float[n,{width}] c, float[t,{width}] d) {{
            d = MatMul(h, w) e = Tanh(d) c = Add(e, x) }}>(use_past)
      }}""")
    weight = np.random.default_rng(0).standard_normal((width, width), np.float32) / width
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_branches_with_large_weights_are_placed_and_the_run_chooses_one(kind: str, tmp_path: Path) -> None:
    model, rng = _merged(256), np.random.default_rng(1)
    session = make_session(model, tmp_path, kind=kind)
    assert sorted(map(len, partitions(session))) == [3, 4]
    for use_past, new, past in ((False, 5, 1), (True, 1, 5), (True, 1, 6), (False, 3, 1), (True, 2, 3)):
        feeds = {
            "x": rng.standard_normal((new, 256), np.float32),
            "past": rng.standard_normal((past, 256), np.float32),
            "use_past": np.array([use_past]),
        }
        for got, want in zip(session.run(None, feeds), reference(model, feeds), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_branches_with_small_weights_stay_where_their_node_is(tmp_path: Path) -> None:
    assert not partitions(make_session(_merged(32), tmp_path))


def _scan(length: int | str) -> onnx.ModelProto:
    """A recurrence whose body reads a large weight from outside."""
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 17]>
      g (float[2,{WIDTH}] start, float[{length},2,{WIDTH}] x) => (float[2,{WIDTH}] last, float[{length},2,{WIDTH}] y) {{
        r = Relu(x)
        last, y = Scan<num_scan_inputs=1, body = step (float[2,{WIDTH}] s, float[2,{WIDTH}] e)
            => (float[2,{WIDTH}] n, float[2,{WIDTH}] o) {{ p = MatMul(s, w) n = Add(p, e) o = Tanh(n) }}>(start, r)
      }}""")
    weight = np.random.default_rng(0).standard_normal((WIDTH, WIDTH), np.float32) / WIDTH
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    return model


@pytest.mark.parametrize("length", [5, "n"])
def test_a_scan_is_placed_when_its_length_is_known(length: int | str, tmp_path: Path) -> None:
    model, rng = _scan(length), np.random.default_rng(1)
    session = make_session(model, tmp_path, options={"placement": "maximal"}, wholly=length == 5)
    assert len(partitions(session)) == 1
    feeds = {name: rng.standard_normal((*dims, 2, WIDTH), np.float32) for name, dims in (("start", ()), ("x", (5,)))}
    for got, want in zip(session.run(None, feeds), reference(model, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def _loop(trips: str) -> onnx.ModelProto:
    """A loop whose body reads a large weight from outside; `trips` is a constant or an input."""
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 17]>
      g (float[2,{WIDTH}] start, int64 asked) => (float[2,{WIDTH}] y, float[n,2,{WIDTH}] all) {{
        five = Constant<value=int64 {{5}}>() go = Constant<value=bool {{1}}>() r = Relu(start)
        last, all = Loop<body = step (int64 i, bool c, float[2,{WIDTH}] s) => (bool d, float[2,{WIDTH}] n, float[2,{WIDTH}] o) {{
            d = Identity(c) p = MatMul(s, w) number = Cast<to=1>(i) n = Add(p, number) o = Tanh(n) }}>({trips}, go, r)
        y = Exp(last) }}""")
    weight = np.random.default_rng(0).standard_normal((WIDTH, WIDTH), np.float32) / WIDTH
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    return model


@pytest.mark.parametrize("trips", ["five", "asked"])
def test_a_loop_is_placed_when_its_steps_are_known(trips: str, tmp_path: Path) -> None:
    model = _loop(trips)
    session = make_session(model, tmp_path, options={"placement": "maximal"})
    nodes = [node for partition in partitions(session) for node in partition]
    assert (len(nodes) == 3) == (trips == "five")  # the loop is between two others
    feeds = {"start": np.random.default_rng(1).standard_normal((2, WIDTH), np.float32), "asked": np.array(4)}
    for got, want in zip(session.run(None, feeds), reference(model, feeds), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length", [5, "n"])
def test_an_lstm_is_placed_whatever_its_length(length: int | str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 17]>
      g (float[{length},batch,{WIDTH}] x) => (float[{length},1,batch,{WIDTH}] y, float[1,batch,{WIDTH}] last) {{
        r = Relu(x) y, last = LSTM<hidden_size={WIDTH}>(r, w, w) }}""")
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((1, 4 * WIDTH, WIDTH), np.float32) / WIDTH
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    session = make_session(model, tmp_path, options={"placement": "maximal"}, wholly=True)
    assert len(partitions(session)) == 1
    for batch in (2, 3):
        feeds = {"x": rng.standard_normal((5, batch, WIDTH), np.float32)}
        for got, want in zip(session.run(None, feeds), reference(model, feeds), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_an_lstm_that_is_quantized_in_each_run_is_placed(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 17]>
      g (float[length,1,{WIDTH}] x) => (float[length,1,1,{WIDTH}] y) {{ y = LSTM<hidden_size={WIDTH}>(x, w, r) }}""")
    rng = np.random.default_rng(0)
    for name in ("w", "r"):
        weight = rng.standard_normal((1, 4 * WIDTH, WIDTH), np.float32) / np.float32(np.sqrt(WIDTH))
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, name))
    quantized = quantized_in_each_run(model, tmp_path, "LSTM")
    assert [node.op_type for node in quantized.graph.node] == ["DynamicQuantizeLSTM"]
    session = make_session(quantized, tmp_path, options={"placement": "maximal"}, wholly=True)
    for length in (2, 9):
        feeds = {"x": rng.standard_normal((length, 1, WIDTH), np.float32)}
        (got,), (want,) = session.run(None, feeds), reference(quantized, feeds)
        np.testing.assert_allclose(got, want, atol=2e-3)
        assert np.abs(want).max() > 0.3
