"""Branches of an If: constants, of which one is chosen (decoders for long prompts: tables of angles), and names that both have."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest

import hipdnn_mlir
from hipdnn_mlir.placement import place
from hipdnn_mlir_runtime.errors import DynamicDimensionError, ModelError, UnsupportedError

LIMIT = 8
"""From more positions on, the first branch is taken."""


CHOSEN = f"""
  s = Shape(i) zero = Constant<value_int=0>() size = Gather(s, zero) limit = Constant<value_int={LIMIT}>() is_long = Greater(size, limit)
  table = If<then_branch = g1 () => (float[r,8] a) {{ a = Constant() }},
             else_branch = g2 () => (float[q,8] b) {{ b = Constant() }}>(is_long)
"""
ROWS = f"g (int64[n] i) => (float[n,8] y) {{ {CHOSEN} y = Gather(table, i) }}"


def _model(graph: str, then_rows: int, else_rows: int) -> onnx.ModelProto:
    """A graph with an If between two tables of so many rows."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]> {graph}')
    (choice,) = (node for node in model.graph.node if node.op_type == "If")
    for seed, (attribute, rows) in enumerate(zip(choice.attribute, (then_rows, else_rows), strict=True)):
        values = np.random.default_rng(seed).standard_normal((rows, 8)).astype(np.float32)
        attribute.g.node[0].attribute.append(onnx.helper.make_attribute("value", onnx.numpy_helper.from_array(values)))
        attribute.g.output[0].type.tensor_type.shape.dim[0].dim_value = rows
    return model


def _assert_equals_onnxruntime(model: onnx.ModelProto, runs: list[dict[str, np.ndarray]]) -> None:
    """One program for all runs."""
    reference = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    with hipdnn_mlir.compile(model).session() as session:
        for feeds in runs:
            np.testing.assert_allclose(session.run(None, feeds)[0], reference.run(None, feeds)[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("then_rows", "else_rows"), [(64, 64), (64, 16), (16, 64)])
@pytest.mark.parametrize("kind", ["int64", "int32"])
def test_rows_are_those_of_the_table_that_the_size_chooses(then_rows: int, else_rows: int, kind: str) -> None:
    model = _model(ROWS.replace("int64", kind), then_rows, else_rows)
    rng = np.random.default_rng(2)
    limits = {size: then_rows if size > LIMIT else else_rows for size in (3, LIMIT, LIMIT + 1, 40)}
    _assert_equals_onnxruntime(
        model, [{"i": rng.integers(-rows, rows, size).astype(kind)} for size, rows in limits.items()]
    )


def test_a_table_that_is_read_whole_is_chosen_too() -> None:
    model = _model(
        f"g (int64[n] i) => (float[n,8] y) {{ {CHOSEN} r = Gather(table, i) m = ReduceMax<keepdims=0>(table) y = Add(r, m) }}",
        9,
        9,
    )
    _assert_equals_onnxruntime(model, [{"i": np.arange(size) % 9} for size in (3, 12)])


def test_a_choice_of_positions_is_taken() -> None:
    """What is read is a constant of the model, and where is the choice."""
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 21]>
      g (float[n,4] x, bool c) => (float[2,4] y) {
        i = If<then_branch = g1 () => (int64[2] a) { a = Constant<value = int64[2] {0, 2}>() },
               else_branch = g2 () => (int64[2] b) { b = Constant<value = int64[2] {1, 0}>() }>(c)
        y = Gather(x, i) }""")
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    _assert_equals_onnxruntime(model, [{"x": x, "c": np.array(condition)} for condition in (True, False)])


def test_tables_of_different_widths_are_refused() -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 21]>
      g (int64[n] i, bool c) => (float[n,m] y) {
        t = If<then_branch = g1 () => (float[2,2] a) { a = Constant<value = float[2,2] {0, 2, 1, 3}>() },
               else_branch = g2 () => (float[2,1] b) { b = Constant<value = float[2,1] {1, 0}>() }>(c)
        y = Gather(t, i) }""")
    with pytest.raises(UnsupportedError, match="If"):
        hipdnn_mlir.compile(model)


def test_a_table_whose_size_depends_on_the_choice_is_refused() -> None:
    model = _model(f"g (int64[n] i) => (float[m,8] y) {{ {CHOSEN} y = Exp(table) }}", 9, 5)
    with pytest.raises(DynamicDimensionError, match="'y'"):
        hipdnn_mlir.compile(model)


def test_a_cache_as_a_buffer_and_one_that_grows_are_one_program() -> None:
    """The larger of two sizes is the one that chooses in some runs: what each computes stays apart from the other."""
    text = """g (float[1,s,64] q, int64[1,n] i, float[1,1,p,16] past_k, float[1,1,p,16] past_v, int32[1] last)
      => (float[1,s,32] y, float[1,1,m,16] k, float[1,1,m,16] v) {
      all = Shape<start=1>(i) size = Squeeze(all) total = Cast<to=6>(size) limit = Constant<value_int=8>() is_long = Greater(size, limit)
      cos = If<then_branch = g1 () => (float[64,8] a) { a = Constant() },
               else_branch = g2 () => (float[16,8] b) { b = Constant() }>(is_long)
      y, k, v = com.microsoft.GroupQueryAttention<num_heads=2, kv_num_heads=1, do_rotary=1>
                (q, , , past_k, past_v, last, total, cos, cos) }"""
    rng = np.random.default_rng(3)
    runs = []
    for new, past, total in [(3, 0, 3), (1, 5, 6), (1, 12, 13), (1, 20, 6), (1, 20, 13)]:
        cache = rng.standard_normal((2, 1, 1, past, 16), np.float32)
        query = rng.standard_normal((1, new, 64), np.float32)
        counts = {"i": np.ones((1, total), np.int64), "last": np.array([total - 1], np.int32)}
        runs.append({"q": query, "past_k": cache[0], "past_v": cache[1], **counts})
    _assert_equals_onnxruntime(_model(text, 64, 16), runs)


@pytest.mark.parametrize("shape", [[], [1]])
def test_branches_that_compute_are_both_computed(shape: list[int]) -> None:
    """With values from outside, one handed through, a branch in a branch, and constants of their own."""
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 21]>
      g (float[n,4] x, bool{shape or ""} c, bool d) => (float[n,4] y, int64[2] k, float[n,4] same) {{
        z = Exp(x)
        y, k, same = If<then_branch = g1 () => (float[n,4] a, int64[2] i, float[n,4] s)
                <float[4] w = {{1, 2, 3, 4}}> {{
                  a = If<then_branch = g3 () => (float[n,4] p) {{ p = Mul(z, w) }},
                         else_branch = g4 () => (float[n,4] q) {{ q = Sub(z, w) }}>(d)
                  i = Constant<value = int64[2] {{0, 2}}>() s = Identity(x) }},
              else_branch = g2 () => (float[n,4] b, int64[2] j, float[n,4] t) {{
                  b = Sqrt(x) j = Constant<value = int64[2] {{1, 3}}>() t = Identity(x) }}>(c)
      }}""")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    reference = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    with hipdnn_mlir.compile(model).session() as session:
        for outer, inner in [(True, True), (True, False), (False, True)]:
            feeds = {"x": x, "c": np.full(shape, outer), "d": np.array(inner)}
            for got, want in zip(session.run(None, feeds), reference.run(None, feeds), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-6)


def test_branches_of_different_sizes_are_refused() -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 21]>
      g (float[4] x, bool c) => (float[m] y) {
        y = If<then_branch = g1 () => (float[2] a) { a, b = Split<num_outputs = 2>(x) },
               else_branch = g2 () => (float[4] d) { d = Exp(x) }>(c) }""")
    with pytest.raises(UnsupportedError, match=r"If at 'If_0': the run chooses between results of \[2\] and \[4\]"):
        hipdnn_mlir.compile(model)


@pytest.mark.parametrize(
    ("name", "holds"),
    [("Less", operator.lt), ("LessOrEqual", operator.le), ("Greater", operator.gt), ("GreaterOrEqual", operator.ge)],
)
def test_an_order_of_sizes_that_is_a_result_is_of_each_run(name: str, holds: Callable[[int, int], bool]) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 21]>
      g (float[n,8] x, float[m,8] z) => (bool[1] c, bool[1] d) {{
        a = Shape<start=0, end=1>(x) b = Shape<start=0, end=1>(z) l = Constant<value_ints=[7]>() c = {name}(a, l) d = {name}(a, b) }}""")
    with hipdnn_mlir.compile(model).session() as session:
        for n, m in [(3, 5), (7, 7), (8, 2), (300, 301)]:
            results = session.run(None, {"x": np.ones((n, 8), np.float32), "z": np.ones((m, 8), np.float32)})
            assert [result.tolist() for result in results] == [[holds(n, 7)], [holds(n, m)]]


def test_equal_sizes_that_are_a_result_are_an_error_where_they_are_not_those_of_the_program() -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 21]>
      g (float[n,8] x) => (bool[1] c) {
        a = Shape<start=0, end=1>(x) l = Constant<value_ints=[7]>() c = Equal(a, l) }""")
    with hipdnn_mlir.compile(model).session() as session:
        assert session.run(None, {"x": np.ones((8, 8), np.float32)})[0].tolist() == [False]
        with pytest.raises(ModelError, match="n != 7"):
            session.run(None, {"x": np.ones((7, 8), np.float32)})


def test_branches_may_call_different_values_by_one_name() -> None:
    """As the merged decoders of Optimum do; onnx's inference takes the one for the other."""
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 21]>
      g (float[2,n] x) => (float[2,n] y) {
        s = Shape<start=0, end=1>(x) two = Constant<value_ints=[2]>() c = Equal(s, two)
        y = If<then_branch = g1 () => (float[2,n] a) { w = Concat<axis=0>(x, x) k = Shape(w) t = ConstantOfShape(k)
                 r = ReduceSum<keepdims=0>(t) a = Add(x, r) },
               else_branch = g2 () => (float[2,n] b) { w = Shape(x) k = Shape(w) t = ConstantOfShape<value=int64[1]{0}>(k)
                 q = Add(w, t) e = Expand(x, q) b = Softsign(e) }>(c) }""")
    _assert_equals_onnxruntime(model, [{"x": np.ones((2, size), np.float32)} for size in (3, 5)])


def test_a_model_with_such_an_if_is_placed_as_a_whole() -> None:
    model = _model(ROWS, 64, 16)
    placement = place(model)
    assert not placement.rejects
    assert [len(part.nodes) for part in placement.partitions] == [placement.nodes]


def test_a_recurrence_in_a_branch_is_computed_with_open_sizes() -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 21]>
      g (float[steps,n,3] x, bool c) => (float[steps,1,n,4] y) {
        y = If<then_branch = g1 () => (float[steps,1,n,4] a) { a = LSTM<hidden_size = 4>(x, w, r) },
               else_branch = g2 () => (float[steps,1,n,4] b) { b = LSTM<hidden_size = 4>(x, v, r) }>(c) }""")
    rng = np.random.default_rng(3)
    for name, dims in {"w": (1, 16, 3), "v": (1, 16, 3), "r": (1, 16, 4)}.items():
        array = rng.standard_normal(dims, np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    runs = [
        {"x": rng.standard_normal((steps, n, 3), np.float32), "c": np.array(steps > 3)} for steps, n in ((2, 1), (5, 3))
    ]
    _assert_equals_onnxruntime(model, runs)
