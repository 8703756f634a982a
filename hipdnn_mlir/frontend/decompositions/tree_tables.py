"""Decision trees as tables of nodes, read from the attributes of the operators that have them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx

from ...ops.evaluate import Array
from ...ops.spec import Refusal
from .call import Call
from .classical import table

MOST_LEVELS = 100
"""Of a tree: each is five steps of the program."""
_MOST_WEIGHTS = 1 << 28
"""Of the table that has a number for each node and target."""
_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
"""What a node compares by, in the order of their numbers in TreeEnsemble."""
COMPARISONS = {
    "BRANCH_LEQ": "LessOrEqual",
    "BRANCH_LT": "Less",
    "BRANCH_GTE": "GreaterOrEqual",
    "BRANCH_GT": "Greater",
    "BRANCH_EQ": "Equal",
}
"""Mode -> the operator that has the feature first, the node's number second."""


@dataclass(frozen=True)
class Forest:
    """Trees whose nodes are numbered across all of them.

    Attributes:
        features: [nodes] the feature that a node compares.
        splits: [nodes] what it compares it with.
        modes: [nodes] how, of `COMPARISONS`; another text is a leaf.
        follows_nan: [nodes] whether NaN goes where the comparison is true.
        children: [nodes, 2] where rows go, false first; a leaf's are itself.
        roots: [trees].
        weights: [nodes, targets] what a leaf adds to targets.
        votes: [nodes, targets] whether it does.
    """

    features: Array
    splits: Array
    modes: Array
    follows_nan: Array
    children: Array
    roots: Array
    weights: Array
    votes: Array

    def levels(self) -> int:
        """How often the deepest tree compares; refuses ones that are too deep, or without an end."""
        found, reached = 0, np.unique(self.roots)
        while (comparing := reached[np.isin(self.modes[reached], [*COMPARISONS])]).size:
            found, reached = found + 1, np.unique(self.children[comparing])
            if found > MOST_LEVELS:
                raise Refusal("attribute", f"a tree of more than {MOST_LEVELS} levels")
        return found

    def always_votes(self) -> Array:
        """[targets] whether a target has a vote whatever the row is: some tree's leaves all have one."""
        covered = self.votes
        for _ in range(self.levels()):
            covered = np.all(covered[self.children], axis=1)
        found: Array = np.any(covered[self.roots], axis=0)
        return found


def in_range(name: str, numbers: Array, end: int) -> None:
    """Refuse numbers that are negative, or not below the end."""
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < end:
        raise Refusal("attribute", f"{name} from {numbers.min()} to {numbers.max()}, expected 0 to {end - 1}")


def _same_length(parts: Mapping[str, Array]) -> None:
    if len({len(part) for part in parts.values()}) > 1:
        raise Refusal(
            "attribute", ", ".join(f"{len(part)} {name}" for name, part in parts.items()) + ": expected as many of each"
        )


def _tracks(call: Call, count: int) -> Array:
    given = table(call, "nodes_missing_value_tracks_true")
    if len(given) not in (0, count):
        raise Refusal("attribute", f"{len(given)} nodes_missing_value_tracks_true for {count} nodes")
    return given.astype(bool) if len(given) else np.zeros(count, bool)


def _weighted(nodes: Array, targets: Array, numbers: Array, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Tables of weights and of votes; refuses two votes of a node for a target, and tables that are too large."""
    in_range("targets", targets, shape[1])
    if shape[0] * shape[1] > _MOST_WEIGHTS:
        raise Refusal("attribute", f"{shape[1]} targets of {shape[0]} nodes")
    weights, votes = np.zeros(shape, numbers.dtype), np.zeros(shape, np.int64)
    np.add.at(votes, (nodes, targets), 1)
    if (votes > 1).any():
        raise Refusal("attribute", "a leaf that votes twice for a target")
    weights[nodes, targets] = numbers
    return weights, votes > 0


def _without_unequal(modes: Array, follows_nan: Array, children: Array) -> tuple[Array, Array, Array]:
    """Comparisons for unequal as ones for equal with children exchanged; NaN is unequal to everything."""
    is_unequal = modes == "BRANCH_NEQ"
    exchanged = np.where(is_unequal[:, None], children[:, ::-1], children)
    return np.where(is_unequal, "BRANCH_EQ", modes), follows_nan & ~is_unequal, exchanged


def tensor(call: Call, name: str) -> Array:
    """An attribute that is a list of numbers as a tensor; empty where it is left out."""
    found = call.attr(name)
    if not isinstance(found, onnx.TensorProto | None):
        raise Refusal("attribute", f"{name}, expected a tensor")
    return np.zeros(0) if found is None else onnx.numpy_helper.to_array(found).reshape(-1)


def of_names(call: Call, prefix: str, targets: int) -> Forest:
    """The trees of TreeEnsembleRegressor (prefix target) and TreeEnsembleClassifier (class): nodes have numbers within trees."""

    def numbers(name: str) -> Array:
        found = tensor(call, f"{name}_as_tensor")
        return found if found.size else table(call, name).astype(np.float32)

    names = ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
    nodes = {f"nodes_{name}": table(call, f"nodes_{name}") for name in names}
    nodes["nodes_values"] = numbers("nodes_values")
    modes = nodes["nodes_modes"] = np.array([mode.decode(errors="replace") for mode in call.attr("nodes_modes", [])])
    leaves = {f"{prefix}_{name}": table(call, f"{prefix}_{name}") for name in ("treeids", "nodeids", "ids")}
    leaves[f"{prefix}_weights"] = numbers(f"{prefix}_weights")
    _same_length(nodes)
    _same_length(leaves)
    if not len(modes) or set(modes) - {*_MODES[:-1], "LEAF"}:
        raise Refusal("attribute", f"nodes_modes {', '.join(sorted(set(modes))) or 'of no node'}")
    trees = nodes["nodes_treeids"].tolist()
    places = {place: i for i, place in enumerate(zip(trees, nodes["nodes_nodeids"].tolist(), strict=True))}
    own = np.arange(len(modes))
    is_leaf = modes == "LEAF"
    try:
        below = [
            [i, i] if leaf else [places[tree, false], places[tree, true]]
            for i, (leaf, tree, false, true) in enumerate(
                zip(
                    is_leaf,
                    trees,
                    nodes["nodes_falsenodeids"].tolist(),
                    nodes["nodes_truenodeids"].tolist(),
                    strict=True,
                )
            )
        ]
        voting = [
            places[tree, node]
            for tree, node in zip(
                leaves[f"{prefix}_treeids"].tolist(), leaves[f"{prefix}_nodeids"].tolist(), strict=True
            )
        ]
    except KeyError as error:
        raise Refusal("attribute", f"tree {error.args[0][0]} has no node {error.args[0][1]}") from error
    if len(places) < len(own):
        raise Refusal("attribute", "two nodes of a tree have the same number")
    modes, follows_nan, children = _without_unequal(modes, _tracks(call, len(own)) & ~is_leaf, np.array(below))
    weights, votes = _weighted(
        np.array(voting, int), leaves[f"{prefix}_ids"].astype(int), leaves[f"{prefix}_weights"], (len(own), targets)
    )
    roots = np.sort(np.unique(trees, return_index=True)[1])
    features = np.where(is_leaf, 0, nodes["nodes_featureids"])
    return Forest(features, nodes["nodes_values"], modes, follows_nan, children, roots, weights, votes)


def of_tables(call: Call) -> Forest:
    """The trees of TreeEnsemble: leaves are numbered for themselves. Here they follow the nodes, then what is left of sets."""
    names = ("featureids", "truenodeids", "falsenodeids", "trueleafs", "falseleafs")
    nodes = {f"nodes_{name}": table(call, f"nodes_{name}") for name in names}
    nodes["nodes_splits"], nodes["nodes_modes"] = tensor(call, "nodes_splits"), tensor(call, "nodes_modes").astype(int)
    leaves = {"leaf_targetids": table(call, "leaf_targetids"), "leaf_weights": tensor(call, "leaf_weights")}
    _same_length(nodes)
    _same_length(leaves)
    count, ends = len(nodes["nodes_modes"]), len(leaves["leaf_weights"])
    in_range("nodes_modes", nodes["nodes_modes"], len(_MODES))
    roots = table(call, "tree_roots")
    if not len(roots) or not count:
        raise Refusal("attribute", f"{len(roots)} tree_roots, {count} nodes")
    in_range("tree_roots", roots, count)
    below = []
    for side in ("false", "true"):
        numbers, is_leaf = nodes[f"nodes_{side}nodeids"], nodes[f"nodes_{side}leafs"].astype(bool)
        in_range(f"nodes_{side}nodeids", numbers[is_leaf], ends)
        in_range(f"nodes_{side}nodeids", numbers[~is_leaf], count)
        below.append(np.where(is_leaf, numbers + count, numbers))
    own = np.arange(count, count + ends)
    forest = {
        "features": np.concatenate([nodes["nodes_featureids"], 0 * own]),
        "splits": np.concatenate([nodes["nodes_splits"], 0 * leaves["leaf_weights"]]),
        "modes": np.concatenate([np.array(_MODES)[nodes["nodes_modes"]], ["LEAF"] * ends]),
        "follows_nan": np.concatenate([_tracks(call, count), np.zeros(ends, bool)]),
        "children": np.concatenate([np.stack(below, 1), np.stack([own, own], 1)]),
    }
    _write_out_sets(forest, tensor(call, "membership_values"))
    forest["modes"], forest["follows_nan"], forest["children"] = _without_unequal(
        forest["modes"], forest["follows_nan"], forest["children"]
    )
    shape = (len(forest["modes"]), call.count("n_targets", 1))
    weights, votes = _weighted(own, leaves["leaf_targetids"].astype(int), leaves["leaf_weights"], shape)
    return Forest(roots=roots, weights=weights, votes=votes, **forest)


def _write_out_sets(forest: dict[str, Array], values: Array) -> None:
    """Make nodes of sets chains of comparisons with one member each, of which all but the first are new nodes at the end."""
    ends = np.flatnonzero(np.isnan(values))
    sets = [members[~np.isnan(members)] for members in np.split(values, ends)] if values.size else []
    at = np.flatnonzero(forest["modes"] == "BRANCH_MEMBER")
    sets = sets[: len(at)]
    if len(sets) < len(at) or any(not len(members) for members in sets):
        raise Refusal(
            "attribute",
            f"membership_values of {sum(map(bool, map(len, sets)))} sets for {len(at)} nodes of BRANCH_MEMBER",
        )
    first = len(forest["modes"])
    for node, members in zip(at.tolist(), sets, strict=True):
        chain = [node, *range(first, first + len(members) - 1)]
        first += len(members) - 1
        otherwise, found = forest["children"][node]
        copied = [*range(len(forest["modes"])), *[node] * (len(members) - 1)]
        forest.update({name: part[copied] for name, part in forest.items()})
        forest["splits"][chain], forest["modes"][chain] = members, "BRANCH_EQ"
        forest["children"][chain] = np.stack([[*chain[1:], otherwise], [found] * len(chain)], 1)
