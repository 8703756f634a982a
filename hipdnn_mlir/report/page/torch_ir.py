"""The torch dialect of each region of a model: a program file holds descriptors alone, so the model is compiled again up to its regions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from hipdnn_mlir_runtime.errors import ModelError, Reject
from hipdnn_mlir_runtime.precision import UNCHANGED

from ...compiler.compile import ModelLike, read_source
from ...compiler.lower import lower
from ...dynamic.input_sizes import Shapes
from ...ir.blocks import functions, operations
from ...ir.dialect import GraphOp, LaunchOp
from ...ir.imported import Imported
from ...ir.view import node_name

_LARGE_ELEMENTS = 16
_SEGMENTS = re.compile(r" \{operandSegmentSizes = array<[^>]*>\}")


def region_texts(
    model: ModelLike, *, digest: str, target: str = "host", precision: str = UNCHANGED, shapes: Shapes | None = None
) -> dict[str, str]:
    """Nodes of a step, as its name joins them -> the IR of its region, or of its regions if several came from these nodes.

    A step is found by its nodes. One that no region of this compilation has, say because the device's library refused the region or the
    model was compiled for other sizes, has no text.

    Args:
        model: The model that the program was made from.
        digest: The program's SHA-256 of its model.
        target: As for the program.
        precision: As for the program.
        shapes: As for the program, with a number for every dynamic dimension.

    Raises:
        ModelError: Another model than the program's, or as for `compile`.
        PassError: A defect of this compiler.
    """
    source = read_source(model)
    if source.sha256 != digest:
        raise ModelError(
            "not the model that the program was made from",
            where=str(model) if not isinstance(model, bytes) else None,
            expected=f"SHA-256 {digest}",
            got=source.sha256,
            hint="give the model as it was compiled, or leave it out",
        )
    texts: dict[str, list[str]] = {}

    def look(imported: Imported, left: Sequence[Reject], samples: Mapping[str, int]) -> None:
        del left, samples
        texts.clear()
        for function in functions(imported.module.operation):
            for op in operations(function):
                if isinstance(op, GraphOp | LaunchOp):
                    texts.setdefault(node_name(op), []).append(_body(op))

    lower(source, target=target, precision=precision, shapes=shapes, look=look)
    return {nodes: "\n\n".join(dict.fromkeys(found)) for nodes, found in texts.items()}


def _body(op: GraphOp | LaunchOp) -> str:
    """The block of a region, without the lines of the operation around it."""
    text = str(op.operation.get_asm(large_elements_limit=_LARGE_ELEMENTS, use_local_scope=True))
    return _SEGMENTS.sub("", "\n".join(text.splitlines()[1:-1]))
