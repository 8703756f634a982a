"""The section of docs/ops.md on operators that are written out before import, from their table."""

import inspect
from collections.abc import Iterator

from ..frontend.decompositions.registry import Decomposition
from ..frontend.decompositions.schema_body import write_body
from ..frontend.decompositions.table import DECOMPOSITIONS

_SOURCE = "Source:"


def decomposition_rows() -> Iterator[list[str]]:
    """Operators with what they are written out as, and the document that says so."""
    operators: dict[Decomposition, list[str]] = {}
    for (domain, op), write in sorted(DECOMPOSITIONS.items()):
        operators.setdefault(write, []).append(f"{domain}.{op}" if domain else op)
    for write, names in sorted(operators.items(), key=lambda item: item[1]):
        yield [", ".join(f"`{name}`" for name in names), *_described(write)]


def _described(write: Decomposition) -> tuple[str, str]:
    """The first sentence of a decomposition's docstring, and its source."""
    paragraphs = [" ".join(part.split()) for part in (inspect.getdoc(write) or "").split("\n\n")]
    source = next(part.removeprefix(_SOURCE).strip() for part in paragraphs if part.startswith(_SOURCE))
    what = "its function body" if write is write_body else paragraphs[0]
    return what.rstrip("."), source.rstrip(".")
