"""Ensembles of decision trees of ONNX's domain for classical models: all trees of all rows descend a level at a time.

What the standard leaves open is as ONNX Runtime's CPU provider has it; a node on which the two differ is refused.
"""

from collections.abc import Sequence

import numpy as np
import onnx

from ...ops.evaluate import Array
from ...ops.spec import Refusal
from .call import BOOL, DOUBLE, FLOAT, INT32, Call
from .classical import TRANSFORMS, class_labels, label_of_most, label_of_two, rows, table, transformed, with_complement
from .features import ML
from .registry import decomposes
from .tree_tables import COMPARISONS, Forest, in_range, of_names, of_tables, tensor

_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
"""In the order of their numbers in TreeEnsemble."""


def _leaves(call: Call, x: str, forest: Forest) -> str:
    """[rows, trees] the leaves that rows end at; x is of the type to compare in."""
    kind = call.kind(x)
    used = [mode for mode in COMPARISONS if (forest.modes == mode).any()] or ["BRANCH_LEQ"]
    splits = {
        mode: np.where(forest.modes == mode, forest.splits, np.nan) if len(used) > 1 else forest.splits for mode in used
    }
    node: str | None = None

    def of_node(values: Array, of: int) -> str:
        if node is None:
            return call.const(values[forest.roots], of)
        return call.op("Gather", call.const(values, of), node)

    for _ in range(max(forest.levels(), 1)):
        feature = of_node(forest.features, INT32)
        value = call.op("Gather", x, feature, axis=1) if node is None else call.op("GatherElements", x, feature, axis=1)
        is_true = ""
        for mode in used:
            found = call.op(COMPARISONS[mode], value, of_node(splits[mode], kind))
            is_true = call.op("Or", is_true, found) if is_true else found
        if forest.follows_nan.any():
            is_true = call.op("Or", is_true, call.op("And", call.op("IsNaN", value), of_node(forest.follows_nan, BOOL)))
        first = call.const(2 * forest.roots, INT32) if node is None else call.op("Add", node, node)
        below = call.op("Add", first, call.cast(is_true, INT32))
        node = call.op("Gather", call.const(forest.children.reshape(-1), INT32), below)
    return str(node)


def _scores(call: Call, forest: Forest, aggregate: str) -> tuple[str, str]:
    """[rows, targets] in the type to compute in, and [rows, trees] the leaves."""
    x = call.need(0)
    if aggregate in ("MIN", "MAX") and not forest.always_votes().all():
        raise Refusal("attribute", f"aggregate_function {aggregate} of targets that some rows have no vote for")
    is_double = DOUBLE in (
        call.kind(x),
        *map(onnx.helper.np_dtype_to_tensor_dtype, (forest.splits.dtype, forest.weights.dtype)),
    )
    x = call.cast(rows(call, call.size_if_known(x, 1) or 0), DOUBLE if is_double else FLOAT)
    in_range("featureids", forest.features, call.size_if_known(x, 1) or int(forest.features.max()) + 1)
    leaves = _leaves(call, x, forest)
    votes = call.op("Gather", call.const(forest.weights, call.kind(x)), leaves)
    found = call.reduce(
        {"MIN": "ReduceMin", "MAX": "ReduceMax"}.get(aggregate, "ReduceSum"), votes, [1], keepdims=False
    )
    if aggregate == "AVERAGE":
        found = call.op("Div", found, call.number(len(forest.roots), found))
    return found, leaves


def _base(call: Call, counts: Sequence[int]) -> Array:
    """Numbers to add to scores, of which there may be none or one of these counts."""
    given = tensor(call, "base_values_as_tensor")
    base = given if given.size else table(call, "base_values")
    if len(base) not in (0, *counts):
        raise Refusal("attribute", f"{len(base)} base_values, expected {' or '.join(map(str, counts))}")
    return base


@decomposes("TreeEnsemble", domain=ML)
def tree_ensemble(call: Call) -> Sequence[str | None]:
    """TreeEnsemble in all modes: rows descend all trees a level at a time, with a table of the nodes of all trees.

    Source: ONNX, ai.onnx.ml TreeEnsemble-5.
    """
    aggregate = _AGGREGATES[call.one_of(range(len(_AGGREGATES)), "aggregate_function", 1)]
    transform = TRANSFORMS[call.one_of(range(len(TRANSFORMS)), "post_transform", 0)]
    if transform in ("SOFTMAX", "LOGISTIC"):
        raise Refusal(
            "attribute",
            f"post_transform {transform}, whose number ONNX Runtime has for another; put the operator behind the node",
        )
    forest = of_tables(call)
    found = transformed(call, _scores(call, forest, aggregate)[0], forest.votes.shape[1], transform)
    return [call.cast(found, call.kind(call.need(0)))]


@decomposes("TreeEnsembleRegressor", domain=ML)
def tree_ensemble_regressor(call: Call) -> Sequence[str | None]:
    """TreeEnsembleRegressor, as TreeEnsemble.

    Source: ONNX, ai.onnx.ml TreeEnsembleRegressor-3.
    """
    targets = call.count("n_targets", 1)
    forest, base = of_names(call, "target", targets), _base(call, [targets])
    found, _ = _scores(call, forest, call.one_of(_AGGREGATES, "aggregate_function", "SUM"))
    if len(base):
        if not forest.always_votes().all():
            raise Refusal(
                "attribute", "base_values of targets that some rows have no vote for, which ONNX Runtime leaves out"
            )
        found = call.op("Add", found, call.const(base, call.kind(found)))
    return [call.cast(transformed(call, found, targets, call.one_of(TRANSFORMS, "post_transform", "NONE")), FLOAT)]


@decomposes("TreeEnsembleClassifier", domain=ML)
def tree_ensemble_classifier(call: Call) -> Sequence[str | None]:
    """TreeEnsembleClassifier of labels that are numbers; of two classes, the trees vote for the second one with the number of the first.

    Source: ONNX, ai.onnx.ml TreeEnsembleClassifier-3, and ONNX Runtime for two classes.
    """
    labels = class_labels(call, "classlabels_int64s", "classlabels_strings")
    transform = call.one_of(TRANSFORMS, "post_transform", "NONE")
    if len(labels) == 2:
        return _of_two_classes(call, labels, transform)
    forest, base = of_names(call, "class", len(labels)), _base(call, [len(labels)])
    scores, leaves = _scores(call, forest, "SUM")
    compared = scores
    if len(base):
        compared = scores = call.op("Add", scores, call.const(base, call.kind(scores)))
    elif not forest.always_votes().all():  # a class without a vote is none to choose
        votes = call.reduce(
            "ReduceMax", call.op("Gather", call.const(forest.votes, call.kind(scores)), leaves), [1], keepdims=False
        )
        lowest = call.number(float(np.finfo(np.float32).min), scores)
        compared = call.op("Where", call.op("Greater", votes, call.number(0.0, votes)), scores, lowest)
    return [label_of_most(call, compared, labels), call.cast(transformed(call, scores, len(labels), transform), FLOAT)]


def _of_two_classes(call: Call, labels: Array, transform: str) -> Sequence[str | None]:
    """One score: a probability where no weight is negative, else one whose sign tells."""
    if table(call, "class_ids").any():
        raise Refusal(
            "attribute", "class_ids 1 of two classes, which ONNX Runtime does not compare with the votes for 0"
        )
    forest, base = of_names(call, "class", 1), _base(call, [1])
    is_positive = bool((forest.weights >= 0).all())
    if transform not in ("NONE", "LOGISTIC") or (transform == "NONE" and not is_positive):
        raise Refusal(
            "attribute",
            f"post_transform {transform} of votes for one of two classes{'' if is_positive else ' with negative weights'}",
        )
    score, _ = _scores(call, forest, "SUM")
    if len(base):
        score = call.op("Add", score, call.const(base, call.kind(score)))
    second = call.op("Sigmoid", score) if transform == "LOGISTIC" else score
    return [
        label_of_two(call, score, 0.5 if is_positive else 0.0, labels),
        call.cast(with_complement(call, second), FLOAT),
    ]
