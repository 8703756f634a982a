"""Operators of classical models beside ONNX Runtime: linear ones, scalers and ensembles of trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import hipdnn_mlir
from decompositions.node_models import node_model, run
from drawing import every
from hipdnn_mlir.frontend.decompositions.decompose import decompose

ML = "ai.onnx.ml"
X = np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32)


def model_of(op: str, x: np.ndarray, *, version: int = 3, **attributes: Any) -> onnx.ModelProto:
    """Return a model of one node, whose results are y, and z of a classifier."""
    outputs = ("y", "z") if op.endswith("Classifier") else ("y",)
    model = node_model(op, {"x": x}, outputs, domain=ML, **attributes)
    model.opset_import.append(onnx.helper.make_opsetid(ML, version))
    return model


def assert_same(op: str, x: np.ndarray, *, version: int = 3, **attributes: Any) -> None:
    """Assert that a program gives ONNX Runtime's results: whole numbers exactly."""
    model = model_of(op, x, version=version, **attributes)
    got = hipdnn_mlir.load(hipdnn_mlir.compile(model)).run(None, {"x": x})
    for mine, other in zip(got, run(model, {"x": x}), strict=True):
        assert (mine.dtype, mine.shape) == (other.dtype, other.shape)
        tolerance = 1e-5 if other.dtype.kind == "f" else 0
        np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance)


def reason(op: str, x: np.ndarray, *, version: int = 3, **attributes: Any) -> str:
    """Return why the node stays."""
    _, (reject,), *_ = decompose(model_of(op, x, version=version, **attributes))
    return reject.reason


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_linear_models_of_three_columns_are_those_of_onnxruntime(transform: str) -> None:
    coefficients = [0.5, -1.0, 2.0, 1.5, 0.25, -0.75, 0.0, 0.0, 0.0]  # the last column is its intercept, that is zero
    common = {"coefficients": coefficients, "intercepts": [0.1, -0.2, 0.0], "post_transform": transform}
    assert_same("LinearRegressor", X, targets=3, **common)
    assert_same("LinearClassifier", X, classlabels_ints=[4, 9, -1], **common)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_one_column_tells_two_classes_apart(transform: str, dtype: type) -> None:
    x = (X * 3).round().astype(dtype)  # with scores of zero
    x[0] = 0
    common = {"coefficients": [1.0, -1.0, 2.0], "intercepts": [0.0], "classlabels_ints": [7, 5]}
    assert_same("LinearClassifier", x, post_transform=transform, **common)


def test_regression_of_one_target_takes_open_rows() -> None:
    model = model_of("LinearRegressor", X, coefficients=[1.0, -1.0, 2.0], targets=1)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "rows"
    (y,) = hipdnn_mlir.load(hipdnn_mlir.compile(model)).run(None, {"x": X})
    np.testing.assert_allclose(y, run(model, {"x": X})[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("count", [1, 3])
def test_scaler_is_that_of_onnxruntime(dtype: type, count: int) -> None:
    assert_same("Scaler", (X * 9).astype(dtype), offset=[0.1, -0.3, 2.0][:count], scale=[3.0, 0.7, -1.0][:count])


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer_is_that_of_onnxruntime_with_rows_of_zero(norm: str) -> None:
    x = X.copy()
    x[2] = 0
    assert_same("Normalizer", x, norm=norm)


@pytest.mark.parametrize(
    ("op", "attributes", "words"),
    [
        ("LinearClassifier", {"classlabels_strings": ["a", "b"], "intercepts": [0.0]}, "labels that are strings"),
        ("LinearClassifier", {"classlabels_ints": [0, 1], "intercepts": [0.0] * 3}, "3 intercepts for 2 classes"),
        ("LinearRegressor", {"post_transform": "PROBIT", "targets": 3}, "PROBIT"),
        ("LinearRegressor", {"post_transform": "LOGISTIC", "targets": 1, "coefficients": [1.0] * 3}, "of one column"),
        ("LinearRegressor", {"targets": 2}, "9 coefficients"),
        ("LinearRegressor", {}, "3 features for coefficients of 9"),
    ],
)
def test_linear_model_is_refused_with_its_reason(op: str, attributes: dict[str, Any], words: str) -> None:
    assert words in reason(op, X, **{"coefficients": [1.0] * 9, **attributes})


MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
ROWS = np.random.default_rng(1).integers(-2, 3, (40, 4)).astype(np.float32)
ROWS[::7, ::2] = np.nan


def forest(
    prefix: str, *, modes: Any = ("BRANCH_LEQ",), ids: Any = (0,), least: float = -1.0, tracks: bool = False
) -> dict[str, Any]:
    """Return attributes of three trees of two levels and one that is a leaf: whole numbers as splits, a vote for all ids in every leaf."""
    draw = np.random.default_rng(2)
    inner = 9
    nodes = [(tree, node) for tree in range(3) for node in range(7)] + [(3, 0)]
    is_leaf = [node > 2 or tree == 3 for tree, node in nodes]
    below = [(0, 0) if leaf else (2 * node + 1, 2 * node + 2) for (_, node), leaf in zip(nodes, is_leaf, strict=True)]
    kinds = iter([*modes] * inner)
    votes = [(tree, node, each) for (tree, node), leaf in zip(nodes, is_leaf, strict=True) if leaf for each in ids]
    return {
        "nodes_treeids": [tree for tree, _ in nodes],
        "nodes_nodeids": [node for _, node in nodes],
        "nodes_featureids": draw.integers(0, 4, len(nodes)).tolist(),
        "nodes_values": draw.integers(-1, 2, len(nodes)).astype(float).tolist(),
        "nodes_modes": ["LEAF" if leaf else next(kinds) for leaf in is_leaf],
        "nodes_truenodeids": [true for true, _ in below],
        "nodes_falsenodeids": [false for _, false in below],
        "nodes_missing_value_tracks_true": draw.integers(0, 2, len(nodes)).tolist() if tracks else None,
        f"{prefix}_treeids": [tree for tree, _, _ in votes],
        f"{prefix}_nodeids": [node for _, node, _ in votes],
        f"{prefix}_ids": [each for _, _, each in votes],
        f"{prefix}_weights": draw.uniform(least, 0.5, len(votes)).tolist(),
    }


@pytest.mark.parametrize(("modes", "tracks"), every(3, [*([mode] for mode in MODES), MODES], [False, True]))
def test_trees_compare_as_in_onnxruntime(modes: list[str], tracks: bool) -> None:
    assert_same("TreeEnsembleRegressor", ROWS, n_targets=1, **forest("target", modes=modes, tracks=tracks))


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_trees_take_rows_of_other_types(dtype: type) -> None:
    attributes = forest("class", ids=(0, 1, 2)) | {"classlabels_int64s": [2, 1, 0]}
    assert_same("TreeEnsembleClassifier", np.nan_to_num(ROWS).astype(dtype), **attributes)


@pytest.mark.parametrize("aggregate", ["AVERAGE", "SUM", "MIN", "MAX"])
def test_votes_for_targets_are_aggregated(aggregate: str) -> None:
    attributes = forest("target", ids=(0, 1)) | {"base_values": [0.5, -2.0], "aggregate_function": aggregate}
    assert_same("TreeEnsembleRegressor", ROWS, n_targets=2, post_transform="SOFTMAX", **attributes)


@pytest.mark.parametrize(
    ("least", "transform", "base"),
    [(0.0, "NONE", []), (0.0, "LOGISTIC", []), (-1.0, "LOGISTIC", [0.4])],
)
def test_votes_for_one_of_two_classes_choose(least: float, transform: str, base: list[float]) -> None:
    attributes = forest("class", least=least) | {"post_transform": transform, "base_values": base or None}
    attributes["class_weights"] = [weight / 2 for weight in attributes["class_weights"]]  # about one half in all
    assert_same("TreeEnsembleClassifier", ROWS, classlabels_int64s=[7, -5], **attributes)


@pytest.mark.parametrize(
    ("ids", "base", "transform"), [((0, 1, 2), [], "NONE"), ((2, 1), [], "NONE"), ((1,), [-1.0, 0.1, -1.0], "SOFTMAX")]
)
def test_most_votes_choose_among_classes_that_have_any(ids: tuple[int, ...], base: list[float], transform: str) -> None:
    attributes = forest("class", ids=ids) | {"post_transform": transform, "base_values": base or None}
    assert_same("TreeEnsembleClassifier", ROWS, classlabels_int64s=[4, 9, -1], **attributes)


def ensemble(**attributes: Any) -> dict[str, Any]:
    """Return attributes of TreeEnsemble: a tree of two levels, of which the second asks for members of a set, and one that is a leaf."""
    tensor, f32 = onnx.numpy_helper.from_array, np.float32
    return {
        "n_targets": 2,
        "tree_roots": [0, 2],
        "nodes_featureids": [1, 0, 0],
        "nodes_modes": tensor(np.array([3, 6, 0], np.uint8)),
        "nodes_splits": tensor(np.array([0, 0, 0], f32)),
        "nodes_truenodeids": [1, 0, 3],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [2, 1, 3],
        "nodes_falseleafs": [1, 1, 1],
        "nodes_missing_value_tracks_true": [1, 1, 0],
        "membership_values": tensor(np.array([-2, 0, 1, np.nan], f32)),
        "leaf_targetids": [0, 1, 0, 1],
        "leaf_weights": tensor(np.array([0.5, -1, 2, 0.25], f32)),
        **attributes,
    }


@pytest.mark.parametrize("transform", [0, 3])
def test_tree_ensemble_asks_for_members_of_sets(transform: int) -> None:
    assert_same("TreeEnsemble", ROWS, version=5, **ensemble(post_transform=transform))


@pytest.mark.parametrize(
    ("op", "attributes", "words"),
    [
        ("TreeEnsembleClassifier", forest("class") | {"classlabels_strings": ["a", "b"]}, "labels that are strings"),
        ("TreeEnsembleClassifier", forest("class", ids=(0, 1)) | {"classlabels_int64s": [0, 1]}, "class_ids 1"),
        ("TreeEnsembleClassifier", forest("class") | {"classlabels_int64s": [0, 1]}, "negative weights"),
        ("TreeEnsembleRegressor", forest("target") | {"base_values": [1.0, 2.0]}, "2 base_values, expected 1"),
        ("TreeEnsembleRegressor", forest("target") | {"n_targets": 2, "base_values": [1.0, 2.0]}, "no vote for"),
        ("TreeEnsembleRegressor", forest("target", ids=(0, 0)), "votes twice"),
        ("TreeEnsembleRegressor", forest("target") | {"nodes_truenodeids": [0] * 22}, "levels"),
        ("TreeEnsembleRegressor", forest("target") | {"nodes_truenodeids": [9] * 22}, "tree 0 has no node 9"),
        ("TreeEnsembleRegressor", forest("target") | {"nodes_featureids": [4] * 22}, "expected 0 to 3"),
        ("TreeEnsembleRegressor", forest("target") | {"nodes_values": [0.0]}, "expected as many of each"),
        ("TreeEnsembleRegressor", {}, "of no node"),
        ("TreeEnsemble", ensemble(n_targets=10**9), "1000000000 targets"),
        ("TreeEnsemble", ensemble(aggregate_function=2), "aggregate_function MIN"),
        ("TreeEnsemble", ensemble(post_transform=1), "SOFTMAX, whose number"),
        ("TreeEnsemble", ensemble(membership_values=None), "0 sets for 1 nodes"),
        ("TreeEnsemble", ensemble(tree_roots=[3]), "tree_roots from 3"),
    ],
)
def test_trees_are_refused_with_their_reason(op: str, attributes: dict[str, Any], words: str) -> None:
    assert words in reason(
        op,
        ROWS,
        version=5 if op == "TreeEnsemble" else 3,
        **{"n_targets": 1, **attributes} if "Class" not in op else attributes,
    )
