"""Models whose data decides how many rows they return: as ONNX Runtime returns them, or refused with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hipdnn_mlir
from drawing import draws
from gpu.programs import compile_for_emulator, run
from hipdnn_mlir_runtime.cli import main as cli
from hipdnn_mlir_runtime.errors import ModelError, UnsupportedError
from runtime_programs import Array

BOXES = """boxes_of_interest(float[2,9,4] x, float[2,3,9] scores) => (float[n,4] y, float[n,6] z) {
    most = Constant<value=int64[1]{4}>() limit = Constant<value=float[1]{0.3}>() least = Constant<value=float[1]{0.2}>()
    kept = NonMaxSuppression<center_point_box=1>(x, scores, most, limit, least)
    places = Constant<value=int64[2]{0, 2}>() rows = Gather<axis=1>(kept, places) y = GatherND(x, rows)
    first = Constant<value=int64[1]{0}>() last = Constant<value=int64[1]{2}>() axis = Constant<value=int64[1]{1}>()
    numbers = Cast<to=1>(kept) some = Slice(numbers, first, last, axis) z = Concat<axis=1>(y, some) }"""
MODELS = {
    "columns": "g (float[3,5] x) => (int64[2,n] y) { y = NonZero(x) }",
    "columns of integers": "g (int64[2,3,2] x) => (int64[3,n] y) { y = NonZero(x) }",
    "columns of a mask, as rows": "g (bool[3,5] x) => (int64[n,2] y) { z = NonZero(x) y = Transpose<perm=[1,0]>(z) }",
    "what is picked": "g (float[3,5] x) => (float[n] y) { z = NonZero(x) t = Transpose<perm=[1,0]>(z) y = GatherND(x, t) }",
    "slices": "g (float[6,5] x, bool[6] c) => (float[n,5] y) { z = Compress<axis=0>(x, c) e = Exp(z) y = Softmax<axis=1>(e) }",
    "slices of the last dim": "g (float[6,5] x, bool[4] c) => (float[6,n] y) { y = Compress<axis=-1>(x, c) }",
    "elements": "g (int32[6,5] x, bool[30] c) => (int32[n] y) { y = Compress(x, c) }",
    "two numbers of rows": """g (float[6,5] x, bool[6] c, bool[5] d) => (float[n,5] y, float[6,m] z, float[6,5] w) {
        a = Compress<axis=0>(x, c) y = Relu(a) z = Compress<axis=1>(x, d) w = Exp(x) }""",
    "different elements": "g (float[4,5] x) => (float[n] y, int64[n] i, int64[20] j, int64[n] c) { y, i, j, c = Unique(x) }",
    "different elements as they come": """g (int64[4,5] x) => (int64[n] y, int64[n] i, int64[20] j, int64[n] c) {
        y, i, j, c = Unique<sorted=0>(x) }""",
    "how often one comes": "g (int64[7] x) => (int64[n] c) { y, i, j, c = Unique(x) }",
    "boxes": BOXES,
}


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')


def feeds_of(
    model: onnx.ModelProto, rng: np.random.Generator, share: float, sizes: Mapping[str, int] = MappingProxyType({})
) -> dict[str, Array]:
    """Inputs, of whose elements about so many are not zero."""
    feeds = {}
    for value in model.graph.input:
        dims = [sizes.get(dim.dim_param, dim.dim_value) for dim in value.type.tensor_type.shape.dim]
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        feeds[value.name] = (np.where(rng.random(dims) < share, rng.uniform(1, 5, dims), 0)).astype(kind)
    return feeds


def check(model: onnx.ModelProto, feeds: dict[str, Array], got: list[Array]) -> None:
    want = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    for mine, theirs in zip(got, want, strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", MODELS)
def test_rows_equal_onnx_runtime(case: str) -> None:
    model = parsed(MODELS[case])
    session = hipdnn_mlir.compile(model).session()
    for share in (0.5, 0.0, 1.0, 0.1):
        feeds = feeds_of(model, np.random.default_rng(3), share)
        check(model, feeds, session.run(None, feeds))


@pytest.mark.parametrize(
    "text",
    [
        "g (float[b,5] x) => (float[n] y) { z = NonZero(x) t = Transpose<perm=[1,0]>(z) y = GatherND(x, t) }",
        "g (float[b,a] x, float[b,1] w, bool[a] c) => (float[b,n] y) { z = Compress<axis=1>(x, c) y = Add(z, w) }",
        BOXES.replace("float[2,9,4]", "float[b,a,4]").replace("float[2,3,9]", "float[b,3,a]"),
        # Declared with the size of an input, which it need not have; and pooling, which holds for some sizes only.
        "g (float[b,5] x, bool[b] c) => (float[b,5] y, float[b,5] z) { y = Compress<axis=0>(x, c) z = Relu(x) }",
        """g (float[b,1,a,a] x, bool[3] c) => (float[b,1,d,d] y, float[b,n] z) {
            y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x) k = Constant<value=int64[4] {1, 1, 1, 3}>()
            f = GlobalMaxPool(x) o = Expand(f, k) p = Constant<value=int64[2] {0, -1}>() q = Reshape(o, p)
            z = Compress<axis=1>(q, c) }""",
    ],
)
def test_rows_equal_onnx_runtime_when_dimensions_are_dynamic(text: str) -> None:
    model = parsed(text)
    session = hipdnn_mlir.compile(model).session()
    for sizes in ({"b": 2, "a": 7}, {"b": 1, "a": 3}, {"b": 5, "a": 11}):  # fewer boxes than may be chosen, too
        feeds = feeds_of(model, np.random.default_rng(3), 0.5, sizes)
        check(model, feeds, session.run(None, feeds))


@draws(15)
@given(dims=st.lists(st.integers(1, 5), min_size=1, max_size=4), share=st.floats(0, 1), seed=st.integers(0, 99))
def test_positions_equal_numpy(dims: list[int], share: float, seed: int) -> None:
    x = (np.random.default_rng(seed).random(dims) < share).astype(np.float32)
    shape = ",".join(map(str, dims))
    (got,) = (
        hipdnn_mlir.compile(parsed(f"g (float[{shape}] x) => (int64[r,n] y) {{ y = NonZero(x) }}"))
        .session()
        .run(None, {"x": x})
    )
    np.testing.assert_array_equal(got, np.stack(np.nonzero(x)))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "{ z = Compress<axis=0>(x, c) y = ReduceMean<axes=[0]>(z) }",
            "node 'ReduceMean_1', torch.aten.mean.dim: it mixes elements along dimension 0",
        ),
        ("{ z = Compress<axis=0>(x, c) y = Softmax<axis=0>(z) }", "mixes elements along dimension 0"),
        ("{ z = Compress<axis=0>(x, c) s = Shape(z) y = Cast<to=1>(s) }", "its values depend on 'z.rows' itself"),
        (
            "{ z = Compress<axis=0>(x, c) t = Transpose<perm=[1,0]>(z) k = Constant<value=int64[1]{-1}>() y = Reshape(t, k) }",
            "output 'y': padding would lie between results along dimension 0",
        ),
    ],
)
def test_refused_with_the_reason_when_rows_that_do_not_count_would_reach_a_result(text: str, reason: str) -> None:
    model = parsed(f"g (float[6,5] x, bool[6] c) => (float[n] y) {text}")
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    with pytest.raises(UnsupportedError) as caught:
        hipdnn_mlir.compile(model)
    assert reason in str(caught.value)
    assert "Compress at 'Compress_0'" in str(caught.value)
    assert any(reason in reject.reason for reject in hipdnn_mlir.explain(model).rejects)


def test_weights_of_a_file_are_not_copied_into_the_model(tmp_path: Path) -> None:
    weight = np.random.default_rng(1).standard_normal((50, 60)).astype(np.float32)
    model = parsed("g (float[6,50] x, bool[6] c) => (float[n,60] y) { z = Compress<axis=0>(x, c) y = MatMul(z, w) }")
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    onnx.save(model, tmp_path / "m.onnx")
    program = hipdnn_mlir.compile(tmp_path / "m.onnx")
    assert [array.nbytes for array in program.weights.values() if array.nbytes >= weight.nbytes] == [weight.nbytes]
    feeds = feeds_of(model, np.random.default_rng(3), 0.5)
    check(model, feeds, program.session().run(None, feeds))


def test_a_file_says_which_rows_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(parsed(MODELS["slices"]), tmp_path / "m.onnx")
    assert cli.call(["compile", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "m.hipdnn")]) == 0
    session = hipdnn_mlir.load(tmp_path / "m.hipdnn")
    assert [(port.name, port.shape) for port in session.outputs] == [("y", ("z.rows", 5))]
    feeds = {"x": np.ones((6, 5), np.float32), "c": np.array([1, 0, 1, 1, 0, 0], bool)}
    assert session.run(["y"], feeds)[0].shape == (3, 5)
    assert session.run(["z.rows", "y"], feeds)[0] == [3]
    with pytest.raises(ModelError, match="'y': data decides how many rows it has"):
        session.run(None, feeds, out={"y": np.zeros((3, 5), np.float32)})
    whole = {"y": np.full((6, 5), np.nan, np.float32), "z.rows": np.zeros(1, np.int64)}
    session.bind(feeds, whole)()  # the caller cuts
    np.testing.assert_allclose(whole["y"], 0.2, rtol=1e-6)
    assert whole["z.rows"] == [3]
    assert cli.call(["verify", str(tmp_path / "m.onnx")]) == 0
    assert "within" in capsys.readouterr().out


@pytest.mark.parametrize("case", ["boxes", "slices", "what is picked"])
def test_rows_on_a_gpu_equal_onnx_runtime(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = parsed(MODELS[case])
    program, modules = compile_for_emulator(model, monkeypatch, target="sm_90")
    for share in (0.5, 0.0):
        feeds = feeds_of(model, np.random.default_rng(3), share)
        results: dict[str, Any] = dict(
            zip([port.name for port in program.model.outputs], run(program, feeds, modules), strict=True)
        )
        dims = program.model.counted
        got = [
            results[value.name][
                tuple(slice(int(results[name][0])) if name else slice(None) for name in dims[value.name])
            ]
            for value in model.graph.output
        ]
        check(model, feeds, got)


def test_buckets_on_a_gpu_have_programs_that_count(monkeypatch: pytest.MonkeyPatch) -> None:
    model = parsed(BOXES.replace("float[2,9,4]", "float[b,9,4]").replace("float[2,3,9]", "float[b,3,9]"))
    program, _ = compile_for_emulator(model, monkeypatch, target="sm_90", buckets={"b": [1, 2]})
    assert program.model.counted == {"kept.rows": [], "y": ["kept.rows", ""], "z": ["kept.rows", ""]}
    assert [specialization.sizes for specialization in program.model.specializations] == [[1], [2]]
