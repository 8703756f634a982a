"""ONNX operators that are compositions of others, written out before import: the compiler sees basic operators only."""

from collections.abc import Sequence

import onnx
from onnx import inliner

from hipdnn_mlir_runtime.errors import UnsupportedError

from ...dynamic.facts import Fact
from ...ops.evaluate import Array
from ..constant_folding import Folded, fold_constants
from ..own_operators import RESULTS
from ..shape_inference import drop_contradicted
from .decompose import decompose
from .registry import CONTRIB

_WITHOUT_DOMAIN = frozenset(
    {"SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization", "SkipLayerNormalization"}
)
"""ONNX Runtime's operators that its optimizer writes without their domain."""


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


def decompose_and_fold(models: Sequence[onnx.ModelProto]) -> list[Folded]:
    """Decompose operators and fold constants, until neither finds more: folding tells types on which decompositions depend.

    Args:
        models: as for `fold_constants`; not modified.

    Returns:
        As for `fold_constants`.

    Raises:
        UnsupportedError: an operator whose decomposition does not cover the node.
        onnx.shape_inference.InferenceError: shapes do not fit.
    """
    large: list[dict[str, Array]] = [{} for _ in models]
    facts: list[Fact] = []
    left, has_dropped = None, False
    while True:
        decomposed = [decompose(model, has_one_size=len(models) == 1) for model in models]
        rejects = [reject for found in decomposed for reject in found.rejects]
        if left is not None and len(rejects) >= left:
            raise UnsupportedError(rejects)
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
