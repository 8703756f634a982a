"""Lists of which data decides how many rows they have, and operators that look at all rows of them: as ONNX Runtime returns them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hipdnn_mlir
from gpu.programs import compile_for_emulator, run
from hipdnn_mlir_runtime.errors import UnsupportedError
from runtime_programs import Array
from test_counted_rows import check, feeds_of, parsed

PICKED = "z = NonZero(m) t = Transpose<perm=[1,0]>(z) v = GatherND(x, t)"
"""What is over a threshold, as torch writes `x[x > 1]`."""
MOST = """n0 = Shape(v) none = Constant<value=int64 {0}>() n1 = Gather<axis=0>(n0, none) zero = Constant<value=int64[1] {0}>()
    n2 = Unsqueeze(n1, zero) limit = Constant<value=int64[1] {4}>() both = Concat<axis=0>(limit, n2)
    least = ReduceMin<keepdims=0>(both) one = Constant<value=int64[1] {1}>() k = Reshape(least, one)"""
"""The fewer of four and as many as there are."""
LEVEL = """a{0} = Greater(x{0}, limit) z{0} = NonZero(a{0}) t{0} = Transpose<perm=[1,0]>(z{0}) v{0} = GatherND(x{0}, t{0})
    b{0} = GatherND(boxes{0}, t{0}) s{0} = Shape(v{0}) both{0} = Concat<axis=0>(most, s{0}) k{0} = ReduceMin<keepdims=1>(both{0})
    v{0}k, i{0} = TopK<axis=-1>(v{0}, k{0}) b{0}k = Gather<axis=0>(b{0}, i{0}) w{0} = Shape(v{0}k)
    c{0} = ConstantOfShape<value=int64[1] {{{0}}}>(w{0})"""
"""One of the levels of a detector: the best few of what is over a threshold, their boxes, and a label for each."""
KEPT = """s = Shape(boxes) n = ReduceProd<keepdims=0>(s) nothing = Constant<value=int64 {0}>() is_none = Equal(n, nothing)
    keep = If(is_none) <then_branch = none () => (int64[e] empty) { empty = Constant<value=int64[0] {}>() },
        else_branch = some () => (int64[r] kept) {
            far = ReduceMax<keepdims=0>(boxes) one = Constant<value=float {1}>() step = Add(far, one) f = Cast<to=1>(labels)
            d = Mul(f, step) axis1 = Constant<value=int64[1] {1}>() e = Unsqueeze(d, axis1) moved = Add(boxes, e)
            axis0 = Constant<value=int64[1] {0}>() m = Unsqueeze(moved, axis0) q = Unsqueeze(scores, axis0) p = Unsqueeze(q, axis0)
            all = Constant<value=int64[1] {9223372036854775807}>() share = Constant<value=float[1] {0.5}>()
            chosen = NonMaxSuppression(m, p, all, share) place = Constant<value=int64[1] {2}>()
            column = Gather<axis=1>(chosen, place) kept = Squeeze(column, axis1) }>
    from = Constant<value=int64[1] {0}>() to = Constant<value=int64[1] {5}>() first = Slice(keep, from, to, from)
    y = Gather<axis=0>(boxes, first) u = Gather<axis=0>(scores, first) l = Gather<axis=0>(labels, first)"""
"""Suppression of boxes label by label, as torchvision exports `batched_nms`, of which five are kept."""
DETECTOR = (
    "g (float[9] x0, float[9,4] boxes0, float[4] x1, float[4,4] boxes1) => (float[r,4] y, float[r] u, int64[r] l) {"
    "limit = Constant<value=float {1.5}>() most = Constant<value=int64[1] {3}>()"
    + LEVEL.format(0)
    + LEVEL.format(1)
    + "boxes = Concat<axis=0>(b0k, b1k) scores = Concat<axis=0>(v0k, v1k) labels = Concat<axis=0>(c0, c1)"
    + KEPT
    + "}"
)
GIVEN = f"g (float[3,5] x) => (float[n] y) {{ c = Constant<value=float {{1.5}}>() m = Greater(x, c) {PICKED}"
MODELS = {
    "detector": DETECTOR,
    "the best of a list": f"{GIVEN} {MOST} y, i = TopK(v, k) }}",
    "the worst of a list of integers": f"{GIVEN} w = Cast<to=6>(v) {MOST} q, i = TopK<largest=0>(w, k) y = Cast<to=1>(q) }}",
    "positions in a list": f"{GIVEN} d = Constant<value=float {{3}}>() w = Greater(v, d) p = NonZero(w) q = Cast<to=1>(p) "
    "o = Constant<value=int64[1] {-1}>() y = Reshape(q, o) }",
    "a list of a list": f"{GIVEN} d = Constant<value=float {{3}}>() w = Greater(v, d) y = Compress<axis=0>(v, w) }}",
    "the first of a list": f"{GIVEN} a = Constant<value=int64[1] {{0}}>() e = Constant<value=int64[1] {{3}}>() y = Slice(v, a, e) }}",
    "lists behind each other": f"{GIVEN} s = Constant<value=float[2] {{7, 8}}>() p = Neg(v) y = Concat<axis=0>(v, s, p, v) }}",
    "three numbers behind a list, and the first three of it": f"{GIVEN} "
    "s = Constant<value=float[3] {7, 8, 9}>() w = Concat<axis=0>(v, s) "
    "a = Constant<value=int64[1] {0}>() e = Constant<value=int64[1] {3}>() u = Slice(v, a, e) y = Concat<axis=0>(w, u) }",
    "the greatest of a list": f"{GIVEN} s = Constant<value=float[1] {{-1}}>() w = Concat<axis=0>(v, s) y = ReduceMax(w) }}",
    "a sum and a product of a list": f"{GIVEN} a = ReduceSum<keepdims=1>(v) b = ReduceProd<keepdims=1>(v) y = Add(a, b) }}",
    "rows as one list": """g (float[6,3] x, bool[6] c) => (float[n] y) {
        z = Compress<axis=0>(x, c) o = Constant<value=int64[1] {-1}>() w = Reshape(z, o) d = Constant<value=float {3}>()
        g = Greater(w, d) y = Compress<axis=0>(w, g) }""",
    "rows as one list, whole": """g (float[6,3] x, bool[6] c) => (float[n] y) {
        z = Compress<axis=0>(x, c) o = Constant<value=int64[1] {-1}>() y = Reshape(z, o) }""",
    "rows put together again": """g (float[6,3] x, bool[6] c) => (float[n,3] y) {
        z = Compress<axis=0>(x, c) axis = Constant<value=int64[1] {1}>() s = ReduceMax<axes=[1]>(z) d = Constant<value=float {4}>()
        low = Less(s, d) high = Not(low) f = Squeeze(low, axis) h = Squeeze(high, axis) p = NonZero(f) q = NonZero(h)
        o = Constant<value=int64[2] {-1, 1}>() i = Reshape(p, o) j = Reshape(q, o)
        o1 = Constant<value=int64[1] {-1}>() i1 = Reshape(p, o1) j1 = Reshape(q, o1)
        a = Gather<axis=0>(z, i1) b = Gather<axis=0>(z, j1) a2 = Neg(a) b2 = Exp(b)
        sa = Shape(a) sb = Shape(b) ia = Expand(i, sa) jb = Expand(j, sb) sz = Shape(z) zeros = ConstantOfShape(sz)
        r = ScatterElements<axis=0>(zeros, ia, a2) y = ScatterElements<axis=0>(r, jb, b2) }""",
    "elements put into zeros": f"{GIVEN} d = Constant<value=float {{3}}>() w = Greater(v, d) p = NonZero(w) "
    "o = Constant<value=int64[1] {-1}>() i = Reshape(p, o) a = Gather<axis=0>(v, i) b = Neg(a) s = Shape(v) zeros = ConstantOfShape(s) "
    "y = ScatterElements<axis=0>(zeros, i, b) }",
    "places counted from the last row": """g (float[6,3] x, bool[6] c, int64[4] i) => (float[n,3] y) {
        z = Compress<axis=0>(x, c) zero = Constant<value=int64 {0}>() lowest = Constant<value=int64 {-1}>() w = Greater(i, zero)
        v = Compress<axis=0>(i, w) m = Mul(v, zero) p = Add(m, lowest) y = Gather<axis=0>(z, p) }""",
    "numbers that are indices where they are chosen alone": """g (float[76] x, int64[6] i) => (float[n] y) {
        zero = Constant<value=int64 {0}>() w = Greater(i, zero) v = Compress<axis=0>(i, w) step = Constant<value=int64 {25}>()
        m = Mul(v, step) last = Constant<value=int64 {100}>() p = Sub(last, m) y = Gather<axis=0>(x, p) }""",
}


@pytest.mark.parametrize("case", MODELS)
def test_results_equal_onnx_runtime(case: str) -> None:
    model = parsed(MODELS[case])
    session = hipdnn_mlir.compile(model).session()
    seen = set()  # else lists that are empty, or full, would do
    for share in (0.6, 0.0, 1.0, 0.2):
        feeds = feeds_of(model, np.random.default_rng(5), share)
        got = session.run(None, feeds)
        seen.add(got[0].size)
        if case == "places counted from the last row" and not feeds["c"].any():
            continue  # no index is one: ONNX Runtime fails
        check(model, feeds, got)
    assert len(seen) > 1 or case.startswith(("the greatest", "a sum"))


@pytest.mark.parametrize(
    "text",
    [
        "g (float[b,4] x) => (int64[2,m] y) { r = Relu(x) z = NonZero(r) y = NonZero(z) }",
        "g (float[b,4] x, bool[4] c) => (int64[2,m] y) { r = Relu(x) z = Compress<axis=1>(r, c) y = NonZero(z) }",
        """g (float[b,5] x) => (float[n] y, float[] u) { c = Constant<value=float {1.5}>() m = Greater(x, c) z = NonZero(m)
            t = Transpose<perm=[1,0]>(z) v = GatherND(x, t) s = Constant<value=float[2] {7, 8}>() y = Concat<axis=0>(v, s, v)
            u = ReduceMax<keepdims=0>(y) }""",
    ],
)
def test_results_equal_onnx_runtime_when_dimensions_are_dynamic(text: str) -> None:
    model = parsed(text)
    session = hipdnn_mlir.compile(model).session()
    for sizes, share in (({"b": 3}, 0.5), ({"b": 1}, 0.0), ({"b": 40}, 0.9)):
        feeds = feeds_of(model, np.random.default_rng(5), share, sizes)
        check(model, feeds, session.run(None, feeds))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "k = Constant<value=int64[1] {2}>() y, i = TopK(v, k)",
            "TopK at 'TopK_6': data decides how many rows there are",
        ),
        (
            "k = Constant<value=int64 {0}>() y = Gather(v, k)",
            "Gather at 'Gather_6': data decides how many rows there are",
        ),
        (
            "a = Constant<value=int64[1] {1}>() e = Constant<value=int64[1] {3}>() y = Slice(v, a, e)",
            "Slice at 'Slice_7': data decides how many rows there are, and it takes others than the first of them",
        ),
        (  # three of four and more rows
            "s = Shape(v) c3 = Constant<value=int64[1] {3}>() c5 = Constant<value=int64[1] {5}>() g = Greater(s, c5) "
            "k = Where(g, c3, s) y, i = TopK(v, k)",
            "and it takes others than all or so many of them",
        ),
        (
            "s = Shape(v) w = Exp(v) d = Constant<value=float {3}>() h = Greater(w, d) u = Compress<axis=0>(w, h) r = Shape(u) "
            "k = Min(s, r) y, i = TopK(v, k)",
            "and it takes others than all or so many of them",
        ),
        (
            "s = Shape(v) two = Constant<value=int64[1] {2}>() c2 = Equal(s, two) axis = Constant<value=int64[1] {0}>() "
            "q = Squeeze(c2, axis) y = If(q) <then_branch = a () => (float[e] b) { b = Neg(v) }, else_branch = d () => (float[f] h) "
            "{ h = Exp(v) }>",
            "data decides how many rows it has",
        ),
        ("y = Softmax<axis=0>(v)", "'Softmax_5', torch.aten.softmax.int: it mixes elements along dimension 0"),
        ("y = ReduceMean<axes=[0]>(v)", "it mixes elements along dimension 0"),
        ("s = Shape(v) n = Cast<to=1>(s) y = Div(v, n)", "it computes with a number that depends on 'z.rows'"),
    ],
)
def test_refused_with_the_reason_when_rows_that_do_not_count_would_reach_a_result(text: str, reason: str) -> None:
    model = parsed(f"{GIVEN} {text} }}")
    with pytest.raises(UnsupportedError) as caught:
        hipdnn_mlir.compile(model)
    assert reason in str(caught.value)


@pytest.mark.parametrize("case", ["detector", "rows put together again"])
def test_results_on_a_gpu_equal_onnx_runtime(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = parsed(MODELS[case])
    program, modules = compile_for_emulator(model, monkeypatch, target="sm_90")
    for share in (0.6, 0.0):
        feeds = feeds_of(model, np.random.default_rng(5), share)
        results: dict[str, Any] = dict(
            zip([port.name for port in program.model.outputs], run(program, feeds, modules), strict=True)
        )
        check(
            model,
            feeds,
            [_counted(results, value.name, program.model.counted[value.name]) for value in model.graph.output],
        )


def _counted(results: dict[str, Array], name: str, dims: list[str]) -> Array:
    return results[name][tuple(slice(int(results[dim][0])) if dim else slice(None) for dim in dims)]
