"""If with a condition that a run computes."""

from collections.abc import Sequence

from ...ops.spec import Refusal
from ..constant_branches import computes_nothing
from .call import Call
from .registry import decomposes
from .schema_body import instantiate, own_constants


@decomposes("If")
def both_branches(call: Call) -> Sequence[str | None] | None:
    """If: both branches are computed, and the condition chooses between their results.

    One that sizes decide is left, since folding takes its branch; so is one between constants, of which only rows may be needed, and one of
    sequences.

    Source: ONNX, If-21.
    """
    condition, branches = call.need(0), [call.attr("then_branch"), call.attr("else_branch")]
    has_others = any(not value.type.HasField("tensor_type") for branch in branches for value in branch.output)
    if has_others or call.is_of_sizes(condition) or computes_nothing(call.node):
        return None
    sides = []
    for branch in branches:
        names = own_constants(call, branch)
        instantiate(call, branch.node, names, {})
        sides.append([names.get(value.name, value.name) for value in branch.output])
    return [chosen(call, condition, *values) for values in zip(*sides, strict=True)]


def chosen(call: Call, condition: str, then: str, otherwise: str) -> str:
    """One of two values of the same sizes, by a condition of one element.

    Raises:
        Refusal: their sizes differ.
    """
    if then == otherwise:
        return then
    dims = [call.dims(value) for value in (then, otherwise)]
    if dims[0] != dims[1]:
        raise Refusal("shape", f"the run chooses between results of {list(dims[0])} and {list(dims[1])}")
    if call.rank(condition):
        condition = call.squeeze(condition, *range(call.rank(condition)))
    return call.op("Where", condition, then, otherwise)
