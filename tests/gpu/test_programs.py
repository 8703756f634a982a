"""Whole programs for a GPU target whose steps are all generated kernels, run in the emulator: onnx's node cases of many operators."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto

from gpu.programs import compile_for_emulator, run
from models import GraphBuilder
from onnx_backend.node_cases import node_cases

CASES = (
    "add_bcast", "and_bcast4v3d", "argmax_keepdims_example", "argmin_negative_axis_keepdims_random_select_last_index",
    "averagepool_2d_pads", "averagepool_2d_strides", "batchnorm_example", "bitshift_right_uint16",
    "clip_example", "concat_3d_axis_1", "depthtospace_crd_mode_example", "div_uint8", "erf",
    "expand_dim_changed", "gather_elements_1", "gathernd_example_int32_batch_dim1", "gelu_tanh_2", "globalaveragepool",
    "globalmaxpool", "greater_equal_bcast", "group_normalization_example", "hardswish", "instancenorm_example", "isnan",
    "layer_normalization_4d_axis2", "log", "logsoftmax_axis_1", "lrn", "max_int16", "maxpool_2d_same_lower", "maxpool_3d_default",
    "mean_example", "mod_mixed_sign_int32", "mvn", "nllloss_NCd1_weight_ii", "not_4d", "pow_bcast_array", "quantizelinear_axis",
    "reduce_l2_keep_dims_random", "reduce_log_sum_exp_keepdims_random", "reduce_max_bool_inputs",
    "reduce_prod_negative_axes_keepdims_random", "resize_downsample_sizes_cubic", "reversesequence_batch",
    "rms_normalization_4d_axis2", "rotary_embedding", "gridsample_volumetric_nearest_align_corners_1",
    "scatter_elements_with_duplicate_indices", "scatternd_max", "sce_mean_weight_ii_4d", "selu", "sinh", "softmax_axis_0", "softplus",
    "spacetodepth", "split_equal_parts_1d_opset18", "swish", "tan", "tile_precomputed", "top_k_smallest",
    "transpose_all_permutations_4", "where_long_example", "xor_bcast4v2d",
)  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_program_equals_the_expected_outputs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = node_cases()[f"test_{name}"]
    program, modules = compile_for_emulator(case.model, monkeypatch, target="sm_90")
    assert not program.model.executables, "a step of a library"
    inputs, outputs = case.data_sets[0]
    feeds = {port.name: np.asarray(value) for port, value in zip(case.model.graph.input, inputs, strict=True)}
    got = run(program, feeds, modules)
    for result, want in zip(got, outputs, strict=True):
        if np.asarray(want).dtype.kind == "f":
            np.testing.assert_allclose(result, want, rtol=2e-3 if result.dtype == np.float16 else 2e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(result, want)


def test_scatter_of_many_updates_is_two_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    b = GraphBuilder("scatter")
    data, updates = b.input("data", [400, 2], TensorProto.FLOAT), b.input("updates", [300, 2], TensorProto.FLOAT)
    indices = b.input("indices", [300, 1], TensorProto.INT64)
    model = b.model({b.op("ScatterND", data, indices, updates, reduction="add"): [400, 2]})
    program, modules = compile_for_emulator(model, monkeypatch, target="sm_90")
    assert [step.kind for step in program.model.steps] == ["launch", "launch"]
    rng = np.random.default_rng(5)
    feeds = {
        "data": rng.standard_normal((400, 2), np.float32), "updates": rng.standard_normal((300, 2), np.float32),
        "indices": rng.integers(0, 400, (300, 1)),
    }  # fmt: skip
    want = feeds["data"].copy()
    np.add.at(want, feeds["indices"][:, 0], feeds["updates"])
    np.testing.assert_allclose(run(program, feeds, modules)[0], want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("groups", [1, 4])
def test_norms_of_few_long_rows_are_three_kernels(groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    b = GraphBuilder("norm")
    x, scale, bias = (
        b.input("x", [1, 64, 32, 34], TensorProto.FLOAT),
        b.normal([64, 1, 1], 1.0),
        b.normal([64, 1, 1], 1.0),
    )
    ones, zeros = b.constant(np.ones(groups), np.float32), b.constant(np.zeros(groups), np.float32)
    split = b.op("Reshape", x, b.constant([1, groups, -1], np.int64))
    norm = b.op("Reshape", b.op("InstanceNormalization", split, ones, zeros), b.constant([1, 64, 32, 34], np.int64))
    model = b.model({b.op("Add", b.op("Mul", norm, scale), bias): [1, 64, 32, 34]})
    program, modules = compile_for_emulator(model, monkeypatch, target="sm_90")
    assert [step.kind for step in program.model.steps] == ["launch"] * 3
    rng = np.random.default_rng(5)
    given = (1000 + 10 * rng.standard_normal((1, 64, 1, 1)) + rng.standard_normal((1, 64, 32, 34))).astype(np.float32)
    rows = given.astype(np.float64).reshape(groups, -1)
    rows = (rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + 1e-5)
    weights = [np.asarray(program.weights[name]).reshape(64, 1, 1).astype(np.float64) for name in (scale, bias)]
    want = rows.reshape(given.shape) * weights[0] + weights[1]
    (got,) = run(program, {"x": given}, modules)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [40, 768, 9001])
def test_a_sum_and_its_layer_norm_are_one_kernel_that_stores_both(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    b = GraphBuilder("norm", opset=17)
    x, residual = (b.input(name, [2, 5, size], TensorProto.FLOAT) for name in ("x", "residual"))
    total = b.op("Add", x, residual)
    norm = b.op("LayerNormalization", total, b.normal([size], 1.0), b.normal([size], 1.0))
    narrow = b.op("Cast", norm, to=TensorProto.FLOAT16)
    model = b.model({total: [2, 5, size], norm: [2, 5, size], narrow: [2, 5, size]})
    model.graph.output[2].type.tensor_type.elem_type = TensorProto.FLOAT16
    program, modules = compile_for_emulator(model, monkeypatch, target="sm_90")
    assert [step.kind for step in program.model.steps] == ["launch"]
    rng = np.random.default_rng(5)
    feeds = {name: rng.standard_normal((2, 5, size), np.float32) for name in ("x", "residual")}
    wanted = ort.InferenceSession(model.SerializeToString()).run(None, feeds)
    for result, want in zip(run(program, feeds, modules), wanted, strict=True):
        np.testing.assert_allclose(result, want, rtol=1e-5 if result.dtype == np.float32 else 2e-3, atol=1e-5)


@pytest.mark.parametrize(("rows", "kernels"), [(5, 1), (6, 2)], ids=["all rows", "not the last row"])
def test_rotated_pairs_behind_a_row_that_is_kept(rows: int, kernels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    b = GraphBuilder("rotary", opset=17)
    x, (cos, sin) = b.input("x", [1, 3, rows, 8], TensorProto.FLOAT), (b.normal([4, 8], 1.0) for _ in range(2))

    def cut(value: str, axis: int, start: int, step: int = 1, end: int = 1000) -> str:
        return b.op("Slice", value, *(b.constant([number], np.int64) for number in (start, end, axis, step)))

    rest, last = cut(x, 2, 1, end=5), b.constant([4], np.int64)
    pairs = [b.op("Unsqueeze", part, last) for part in (b.op("Neg", cut(rest, 3, 1, 2)), cut(rest, 3, 0, 2))]
    turned = b.op("Reshape", b.op("Concat", *pairs, axis=-1), b.constant([1, 3, 4, 8], np.int64))
    rotated = b.op("Add", b.op("Mul", rest, cos), b.op("Mul", turned, sin))
    model = b.model({b.op("Concat", cut(x, 2, 0, end=1), rotated, axis=2): [1, 3, 5, 8]})
    program, modules = compile_for_emulator(model, monkeypatch, target="sm_90")
    assert [step.kind for step in program.model.steps] == ["launch"] * kernels
    feeds = {"x": np.random.default_rng(5).standard_normal((1, 3, rows, 8), np.float32)}
    (want,) = ort.InferenceSession(model.SerializeToString()).run(None, feeds)
    np.testing.assert_allclose(run(program, feeds, modules)[0], want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("batch", [1, 2])
def test_shifted_windows_are_gathered(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    size, side, channels = 6, 3, 8
    b = GraphBuilder("windows")
    x = b.input("x", [batch, size, size, channels], TensorProto.FLOAT)

    def numbers(*values: int) -> str:
        return b.constant(values, np.int64)

    def shifted(value: str, by: int) -> str:
        for axis in (1, 2):
            parts = [(by % size, size), (0, by % size)]
            cut = [b.op("Slice", value, numbers(start), numbers(end), numbers(axis)) for start, end in parts]
            value = b.op("Concat", *cut, axis=axis)
        return value

    def reordered(value: str, *dims: int) -> str:
        return b.op("Transpose", b.op("Reshape", value, numbers(*dims)), perm=[0, 1, 3, 2, 4, 5])

    count = size // side
    parted = reordered(shifted(b.op("Relu", x), 1), batch, count, side, count, side, channels)
    windows = b.op("Softmax", b.op("Reshape", parted, numbers(batch * count**2, side**2, channels)), axis=1)
    whole = reordered(windows, batch, count, count, side, side, channels)
    back = shifted(b.op("Reshape", whole, numbers(batch, size, size, channels)), -1)
    model = b.model({b.op("Add", back, x): [batch, size, size, channels]})
    program, modules = compile_for_emulator(model, monkeypatch, target="sm_90")
    assert len(program.model.steps) == 5
    feeds = {"x": np.random.default_rng(6).standard_normal((batch, size, size, channels), np.float32)}
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(run(program, feeds, modules)[0], session.run(None, feeds)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("batch", [1, 2])
def test_norms_and_resizes_between_convolutions_take_no_copy(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """ConvNeXt's and SegFormer's: channels are brought to the end and back, tokens are an image again."""
    b = GraphBuilder("channels", opset=19)
    x = b.input("x", [batch, 16, 6, 5])
    first = b.op("Conv", x, b.normal([24, 16, 1, 1], 0.25))
    norm = b.op(
        "LayerNormalization", b.op("Transpose", first, perm=[0, 2, 3, 1]), b.normal([24], 1.0), b.normal([24], 1.0)
    )
    inner = b.op("Conv", b.op("Transpose", norm, perm=[0, 3, 1, 2]), b.normal([24, 24, 1, 1], 0.2))
    tokens = b.op("Transpose", b.op("Reshape", inner, b.constant([batch, 24, 30], np.int64)), perm=[0, 2, 1])
    normed = b.op("LayerNormalization", tokens, b.normal([24], 1.0), b.normal([24], 1.0))
    image = b.op("Reshape", b.op("Transpose", normed, perm=[0, 2, 1]), b.constant([batch, 24, 6, 5], np.int64))
    large = b.op("Resize", image, "", "", b.constant([batch, 24, 12, 10], np.int64), mode="linear")
    model = b.model({b.op("Conv", large, b.normal([8, 24, 3, 3], 0.07), pads=[1] * 4): [batch, 8, 12, 10]})
    program, modules = compile_for_emulator(model, monkeypatch, target="sm_90", precision="f16")
    of_input = ["cast", "copy"]
    launched = [program.model.kernels[step.kernel].summary for step in program.model.steps if step.kind == "launch"]
    assert launched == [*of_input, "layer_norm", "layer_norm", "resize", "cast"]
    feeds = {"x": np.random.default_rng(5).standard_normal((batch, 16, 6, 5), np.float32)}
    want = ort.InferenceSession(model.SerializeToString()).run(None, feeds)[0]
    (got,) = run(program, feeds, modules)
    assert np.abs(got - want).max() < 5e-3 * np.abs(want).max()


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_heads_whose_features_are_no_multiple_are_filled_up(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    b = GraphBuilder("heads", opset=17)
    q, k, v = (b.input(name, [2, 3, 20, 10]) for name in "qkv")
    scores = b.op("Mul", b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2])), b.constant(scale, np.float32))
    weights = b.op("Softmax", b.op("Add", scores, b.normal([3, 20, 20], 1.0)))
    model = b.model({b.op("MatMul", weights, v): [2, 3, 20, 10]})
    program, modules = compile_for_emulator(model, monkeypatch, target="sm_90", precision="f16")
    assert not program.model.executables, "a matmul of its own"
    rng = np.random.default_rng(5)
    feeds = {name: rng.standard_normal((2, 3, 20, 10), np.float32) for name in "qkv"}
    (want,) = ort.InferenceSession(model.SerializeToString()).run(None, feeds)
    np.testing.assert_allclose(run(program, feeds, modules)[0], want, atol=5e-3)


def test_positions_that_rows_share_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    b = GraphBuilder("positions", opset=17)
    x, indices = b.input("x", [4, 5, 9]), b.input("indices", [5, 3], TensorProto.INT64)
    shared = b.op("Expand", indices, b.constant([4, 5, 3], np.int64))
    model = b.model({b.op("GatherElements", x, shared, axis=2): [4, 5, 3]})
    program, modules = compile_for_emulator(model, monkeypatch, target="sm_90")
    assert len(program.model.steps) == 1
    rng = np.random.default_rng(5)
    feeds = {"x": rng.standard_normal((4, 5, 9), np.float32), "indices": rng.integers(-9, 9, (5, 3))}
    (want,) = ort.InferenceSession(model.SerializeToString()).run(None, feeds)
    np.testing.assert_array_equal(run(program, feeds, modules)[0], want)
