"""Operators of the ONNX standard: what is written out, what stays, and against which reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import hipdnn_mlir
from decompositions.node_models import CONTRIB, assert_decomposes, decomposed, node_model, run
from hipdnn_mlir.frontend.decompositions import inline_local_functions
from hipdnn_mlir.frontend.decompositions.decompose import decompose
from hipdnn_mlir.frontend.decompositions.schema_body import BODIES
from hipdnn_mlir.frontend.decompositions.table import DECOMPOSITIONS, KEPT
from hipdnn_mlir_runtime.errors import UnsupportedError


def numbers(*dims: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *dims]).standard_normal(dims).astype(np.float32)


def test_every_operator_that_onnx_defines_by_others_is_written_out_or_stays_for_a_reason() -> None:
    functions = {
        (schema.domain, schema.name)
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.has_function or schema.has_context_dependent_function
    }
    kept = {("", op) for op in KEPT}
    assert functions - set(DECOMPOSITIONS) - kept == set()
    assert kept & set(DECOMPOSITIONS) == set()
    assert set(BODIES) - {name for _, name in functions} == set()


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("length", [None, 4, 9])
def test_dft_is_that_of_numpy(axis: int, length: int | None) -> None:
    x = numbers(3, 5, 6, 2)
    inputs = {"x": x, "axis": np.array(axis)} | ({} if length is None else {"length": np.array(length)})
    operands = ["x", "length" if length else "", "axis"]
    constants = [name for name in inputs if name != "x"]
    model = node_model("DFT", inputs, domain="", operands=operands, constants=constants)
    (got,) = run(decomposed(model), inputs)
    np.testing.assert_allclose(
        got[..., 0] + 1j * got[..., 1], np.fft.fft(x[..., 0] + 1j * x[..., 1], length, axis), atol=1e-5
    )


@pytest.mark.parametrize("length", [7, 8])
def test_half_spectrum_is_that_of_numpy_when_taken_and_inverted(length: int) -> None:
    x = numbers(2, length, 1)
    half = run(decomposed(node_model("DFT", {"x": x}, domain="", onesided=1)), {"x": x})[0]
    np.testing.assert_allclose(half[..., 0] + 1j * half[..., 1], np.fft.rfft(x[..., 0]), atol=1e-5)
    inputs = {"x": half, "length": np.array(length)}
    model = node_model("DFT", inputs, domain="", constants=["length"], onesided=1, inverse=1)
    np.testing.assert_allclose(run(decomposed(model), inputs)[0], x, atol=1e-5)


@pytest.mark.parametrize("has_window", [False, True])
@pytest.mark.parametrize("onesided", [0, 1])
def test_stft_is_transforms_of_frames(has_window: bool, onesided: int) -> None:
    length, step, x = 16, 5, numbers(2, 64, 1)
    window = np.hanning(length).astype(np.float32) if has_window else np.ones(length, np.float32)
    inputs = {"x": x, "step": np.array(step), "window": window, "length": np.array(length)}
    operands = ["x", "step", "window" if has_window else "", "length"]
    constants = ["step", "window", "length"] if has_window else ["step", "length"]
    model = node_model("STFT", inputs, domain="", operands=operands, constants=constants, onesided=onesided)
    frames = np.stack([x[:, s : s + length, 0] * window for s in range(0, 64 - length + 1, step)], 1)
    want = np.fft.rfft(frames) if onesided else np.fft.fft(frames)
    (got,) = run(decomposed(model), inputs)
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], want, atol=1e-4)


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"pads": [1, 0, 1, 1]},
        {"strides": [2, 3], "ceil_mode": 1},
        {"dilations": [2, 1]},
        {"auto_pad": "SAME_UPPER"},
    ],
    ids=str,
)
def test_lp_pool_gives_the_same(p: int, attributes: dict[str, Any]) -> None:
    assert_decomposes("LpPool", {"x": numbers(2, 3, 7, 8)}, domain="", kernel_shape=[2, 3], p=p, **attributes)


def test_linear_attention_is_refused_when_long() -> None:
    inputs = {name: numbers(1, 300, 8) for name in "qkv"}
    heads = {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear"}
    _, (reject,), *_ = decompose(node_model("LinearAttention", inputs, ("y", "state"), domain="", opset=27, **heads))
    assert "300 tokens" in reject.reason


def test_functions_of_the_model_are_put_in_place() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "own": 1]>
    main (float[2, 4] x) => (float[2, 4] y) { y = own.Twice (x) }
    <domain: "own", opset_import: ["": 21, "com.microsoft": 1]> Twice (a) => (c) { b = Add (a, a) c = com.microsoft.QuickGelu (b) }"""
    model = onnx.parser.parse_model(text)
    model.opset_import.append(onnx.helper.make_opsetid(CONTRIB, 1))
    written, rejects, *_ = decompose(inline_local_functions(model))
    assert not rejects
    assert {node.op_type for node in written.graph.node} == {"Add", "Mul", "Sigmoid"}


def test_operators_in_branches_are_written_out() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
    main (float[2, 4] x, bool c) => (float[2, 4] y) {
        y = If (c) <then_branch = a () => (float[2, 4] t) { t = com.microsoft.QuickGelu (x) },
                    else_branch = b () => (float[2, 4] e) { e = Identity (x) }>
    }"""
    model = onnx.parser.parse_model(text)
    written, rejects, *_ = decompose(model)
    assert not rejects
    feeds = {"x": numbers(2, 4), "c": np.array(True)}
    np.testing.assert_allclose(run(written, feeds)[0], run(model, feeds)[0], rtol=1e-6)


def test_unknown_operator_is_named_when_compiled() -> None:
    model = node_model("Nonesuch", {"x": numbers(2, 4)})
    model.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 4]))
    with pytest.raises(UnsupportedError, match=r"Nonesuch at 'the_Nonesuch'"):
        hipdnn_mlir.compile(model)


def test_uncovered_operator_is_named_with_its_reason_when_compiled() -> None:
    inputs = {"q": numbers(1, 4, 32), "last": np.array([3], np.int32), "total": np.array(4, np.int32)}
    operands = ["q", "", "", "", "", "last", "total"]
    outputs = ("y", "k", "v", "scores")
    model = node_model("GroupQueryAttention", inputs, outputs, operands=operands, num_heads=2, kv_num_heads=1)
    with pytest.raises(
        UnsupportedError, match=r"GroupQueryAttention at 'the_GroupQueryAttention': .*scores as an output"
    ):
        hipdnn_mlir.compile(model)


def test_scan_gives_the_same_when_its_length_is_known() -> None:
    text = """<ir_version: 10, opset_import: ["": 21]>
    main (float[2] start, float[3, 2] x, float[2, 3] z, float[1] outer) => (float[2] last, float[2, 3] sums) {
        last, sums = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [1, 0], scan_output_axes = [1],
            body = step (float[2] s, float[2] a, float[2] b) => (float[2] s2, float[2] o) {
                t = Mul (s, a) u = Add (t, b) s2 = Add (u, outer) o = Identity (s2) }> (start, x, z)
    }"""
    model = onnx.parser.parse_model(text)
    feeds = {"start": numbers(2), "x": numbers(3, 2), "z": numbers(2, 3), "outer": numbers(1)}
    written = decomposed(model)
    assert "Scan" not in {node.op_type for node in written.graph.node}
    for got, want in zip(run(written, feeds), run(model, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def loop_model(trips: str = "n", condition: str = "go", goes_on: str = "again = Identity (before)") -> onnx.ModelProto:
    """A loop with two states, of which one grows, values from outside, a result of each step, and a loop in its body."""
    text = f"""<ir_version: 10, opset_import: ["": 21]>
    main (float[2] start, float[1, 2] rows, float[1] outer, int64 asked, bool wanted)
        => (float[2] last, float[m, 2] grown, float[k, 2] all) {{
        n = Constant <value = int64 {{3}}> () go = Constant <value = bool {{1}}> ()
        last, grown, all = Loop <body = step (int64 i, bool before, float[2] s, float[r, 2] t)
            => (bool again, float[2] s2, float[q, 2] t2, float[2] o) {{
            {goes_on} number = Cast <to = 1> (i) two = Constant <value = int64 {{2}}> () yes = Constant <value = bool {{1}}> ()
            u = Loop <body = inner (int64 j, bool c, float[2] v) => (bool d, float[2] w) {{
                d = Identity (c) w = Add (v, number) }}> (two, yes, s)
            s2 = Mul (u, outer) one = Constant <value = int64[1] {{0}}> () row = Unsqueeze (s2, one)
            t2 = Concat <axis = 0> (t, row) o = Identity (s) }}> ({trips}, {condition}, start, rows)
    }}"""
    return onnx.parser.parse_model(text)


@pytest.mark.parametrize("condition", ["go", ""])
@pytest.mark.parametrize("goes_on", ["again = Identity (before)", "again = Constant <value = bool {1}> ()"])
def test_loop_gives_the_same_when_its_steps_are_known(condition: str, goes_on: str) -> None:
    model = loop_model(condition=condition, goes_on=goes_on)
    feeds = {
        "start": numbers(2),
        "rows": numbers(1, 2),
        "outer": numbers(1),
        "asked": np.array(2),
        "wanted": np.array(True),
    }
    got = hipdnn_mlir.load(hipdnn_mlir.compile(model)).run(None, feeds)
    for mine, want in zip(got, run(model, feeds), strict=True):
        assert mine.shape == want.shape
        np.testing.assert_allclose(mine, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"trips": "asked"}, "the number of steps is not known at compile time"),
        ({"trips": ""}, "the number of steps is not known at compile time"),
        ({"condition": "wanted"}, "the run computes how many steps there are"),
        ({"goes_on": "again = Less (i, asked)"}, "the run computes how many steps there are"),
    ],
)
def test_loop_is_refused_when_the_run_decides_its_steps(change: dict[str, str], reason: str) -> None:
    with pytest.raises(UnsupportedError, match=f"Loop at 'Loop_[02]': {reason}"):
        hipdnn_mlir.compile(loop_model(**change))


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("limit", [-1.0, 3.0, 1e6])
def test_loop_ends_where_the_run_says(wanted: bool, limit: float) -> None:
    """At once, behind the step that says so, or behind all."""
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 21]>
        main (float[2] start, float limit, bool wanted) => (float[2] last, int64 count) {
            n = Constant <value = int64 {6}> () zero = Constant <value = int64 {0}> ()
            last, count = Loop <body = step (int64 i, bool before, float[2] s, int64 c) => (bool again, float[2] s2, int64 c2) {
                s2 = Add (s, s) one = Constant <value = int64 {1}> () c2 = Add (c, one)
                most = ReduceMax <keepdims = 0> (s2) again = Less (most, limit) }> (n, wanted, start, zero)
        }""")
    feeds = {"start": np.array([1, 0.5], np.float32), "limit": np.array(limit, np.float32), "wanted": np.array(wanted)}
    got = hipdnn_mlir.load(hipdnn_mlir.compile(model)).run(None, feeds)
    for mine, want in zip(got, run(model, feeds), strict=True):
        np.testing.assert_array_equal(mine, want)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_hardmax_gives_the_same(axis: int) -> None:
    x = np.round(numbers(3, 4, 5))  # with equal maxima
    assert_decomposes("Hardmax", {"x": x}, domain="", axis=axis)


@pytest.mark.parametrize("dims", [(5,), (3, 5), (2, 3, 5)])
def test_features_are_extracted_as_by_onnxruntime(dims: tuple[int, ...]) -> None:
    feeds = {"x": numbers(*dims), "i": np.array([4, 0, 2])}
    model = node_model("ArrayFeatureExtractor", feeds, domain="ai.onnx.ml")
    model.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", 3))
    declared = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [*(dims[:-1] or [1]), 3])
    model.graph.output[0].CopyFrom(declared)  # of a list, onnx's inference says no sizes
    (y,) = hipdnn_mlir.load(hipdnn_mlir.compile(model)).run(None, feeds)
    np.testing.assert_array_equal(y, run(model, feeds)[0])


def test_mask_of_dropout_is_true() -> None:
    x = numbers(3, 5)
    model = node_model("Dropout", {"x": x}, ("y", "mask"), domain="")
    y, mask = hipdnn_mlir.load(hipdnn_mlir.compile(model)).run(None, {"x": x})
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(mask, np.ones((3, 5), np.bool_))


@pytest.mark.parametrize("dims", [(1, 1), (2, 2), (3, 3), (4, 1, 3, 3)])
def test_determinant_of_few_rows_is_the_products(dims: tuple[int, ...]) -> None:
    x = numbers(*dims)
    (y,) = hipdnn_mlir.load(hipdnn_mlir.compile(node_model("Det", {"x": x}, domain=""))).run(None, {"x": x})
    np.testing.assert_allclose(y, np.linalg.det(x.astype(np.float64)), rtol=1e-5, atol=1e-5)


def test_determinant_of_many_rows_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="the determinant of a matrix of 4 rows; at most 3"):
        hipdnn_mlir.compile(node_model("Det", {"x": numbers(4, 4)}, domain=""))
