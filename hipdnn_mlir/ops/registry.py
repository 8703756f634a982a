"""The one table of operations: torch op name -> row, filled by the family modules."""

from collections.abc import Callable

from .spec import Emission, Movement, OpRow, OpView

_ROWS: dict[str, OpRow] = {}


def add(row: OpRow) -> None:
    """Enter a row; a name may appear once."""
    if row.name in _ROWS:
        raise ValueError(f"two rows for {row.name}")
    _ROWS[row.name] = row


def compute(*names: str, becomes: str, onnx: tuple[str, ...] = (), source: str = "") -> Callable[[Emission], Emission]:
    """Enter the decorated emission under every torch op name given."""

    def enter(emit: Emission) -> Emission:
        for name in names:
            add(OpRow(f"torch.{name}", becomes, emit=emit, onnx=onnx, source=source))
        return emit

    return enter


def movement(
    *names: str, becomes: str, onnx: tuple[str, ...] = (), emit: Emission | None = None
) -> Callable[[Callable[[OpView], Movement]], Callable[[OpView], Movement]]:
    """Enter the decorated movement under every torch op name given; `emit` absorbs it into a region."""

    def enter(move: Callable[[OpView], Movement]) -> Callable[[OpView], Movement]:
        for name in names:
            add(OpRow(f"torch.{name}", becomes, emit=emit, move=move, onnx=onnx))
        return move

    return enter


def find(name: str) -> OpRow | None:
    """The row of a torch op, or None."""
    return rows().get(name)


def rows() -> dict[str, OpRow]:
    """All rows by torch op name."""
    if not _ROWS:
        from . import families  # noqa: F401 - the families import this module
    return _ROWS
