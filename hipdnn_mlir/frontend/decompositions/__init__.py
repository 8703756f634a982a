"""ONNX operators that are compositions of others, written out before import: the compiler sees basic operators only."""

from collections.abc import Sequence

import onnx
from onnx import inliner

from hipdnn_mlir_runtime.errors import Reject, UnsupportedError

from ...dynamic.facts import Fact
from ...ops.evaluate import Array
from ..constant_folding import Folded, fold_constants
from ..own_operators import RESULTS, unknown_operators
from ..shape_inference import drop_contradicted
from ..sizes.cuts import untold
from .decompose import Decomposed, decompose
from .registry import CONTRIB

_WITHOUT_DOMAIN = frozenset(
    {"SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization", "SkipLayerNormalization"}
)
"""ONNX Runtime's operators that its optimizer writes without their domain."""

_OF_TYPES = frozenset({"rank", "type"})
"""The rules of rejects for values of which nothing is known."""


def inline_local_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Put the bodies of the model's own functions in the place of their calls, and ONNX Runtime's operators into their domain.

    What an extension registered for an operator comes before the model's own function of that name.

    Args:
        model: changed where it has no functions of its own.
    """
    if model.functions:
        model = inliner.inline_selected_functions(model, list(RESULTS), exclude=True)
        del model.functions[:]
    for node in model.graph.node:
        if node.op_type in _WITHOUT_DOMAIN and not node.domain:
            node.domain = CONTRIB
    if any(node.domain == CONTRIB for node in model.graph.node) and all(
        entry.domain != CONTRIB for entry in model.opset_import
    ):
        model.opset_import.append(onnx.helper.make_opsetid(CONTRIB, 1))
    return model


def _causes(model: onnx.ModelProto, rejects: list[Reject]) -> list[Reject]:
    """The rejects, with operators that nobody knows in the place of nodes behind them, whose operands have no types for that alone."""
    named = {reject.node for reject in rejects}
    unknown = [reject for reject in unknown_operators(model) if reject.node not in named]
    behind, values = {reject.node for reject in unknown}, set[str]()
    for node in model.graph.node:
        if node.name in behind or not values.isdisjoint(node.input):
            behind.add(node.name)
            values.update(filter(None, node.output))
    return [*unknown, *(reject for reject in rejects if reject.node not in behind or reject.rule not in _OF_TYPES)]


def _check_alike(model: onnx.ModelProto, decomposed: Sequence[Decomposed]) -> None:
    """Name a node that is written out in other ways at other sizes.

    Raises:
        DynamicDimensionError: there is one.
    """
    names = [{tensor.name for tensor in found.model.graph.initializer} for found in decomposed]
    if all(each == names[0] for each in names):
        return
    for node, *counts in zip(model.graph.node, *(found.counts for found in decomposed), strict=True):
        if len(set(counts)) > 1:
            raise untold(
                node, f"is written out as {min(counts)} operators at one sample size, as {max(counts)} at another"
            )


def decompose_and_fold(models: Sequence[onnx.ModelProto]) -> list[Folded]:
    """Decompose operators and fold constants, until neither finds more: folding tells types on which decompositions depend.

    Args:
        models: as for `fold_constants`; not modified.

    Returns:
        As for `fold_constants`.

    Raises:
        UnsupportedError: an operator whose decomposition does not cover the node.
        DynamicDimensionError: an operator that is written out differently at different sizes.
        onnx.shape_inference.InferenceError: shapes do not fit.
    """
    large: list[dict[str, Array]] = [{} for _ in models]
    facts: list[Fact] = []
    left, has_dropped = None, False
    while True:
        decomposed = [decompose(model, has_one_size=len(models) == 1) for model in models]
        _check_alike(models[0], decomposed)
        rejects = [reject for found in decomposed for reject in found.rejects]
        if left is not None and len(rejects) >= left:
            raise UnsupportedError(_causes(decomposed[0].model, rejects))
        folded = fold_constants([found.model for found in decomposed])
        facts += folded[0].facts
        large = [
            before | made.large | found.large for before, made, found in zip(large, decomposed, folded, strict=True)
        ]
        models, left = [found.model for found in folded], len(rejects) or None
        # Sizes that were computed tell more of what the model declares wrongly; once, whatever inference makes of the rest.
        asks_again = not rejects and not has_dropped and sum(map(drop_contradicted, models)) > 0
        has_dropped |= asks_again
        if not rejects and not asks_again:
            return [Folded(model, arrays, tuple(facts)) for model, arrays in zip(models, large, strict=True)]
