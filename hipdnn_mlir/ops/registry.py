"""How a family enters its rows into the op table."""

from collections.abc import Callable
from dataclasses import replace

from .row import ElementwiseEmission, Emission, OpRow
from .spec import Call, Movement, OpView, Precision, Results

ONNX = "hipdnn.onnx."
"""What the names of ONNX operators with a row of their own start with."""
HIPDNN_DOMAIN = "hipdnn"
"""ONNX domain of the operators that stand for hipDNN's own operations."""
ROWS: dict[str, OpRow] = {}


def add(row: OpRow) -> None:
    """Enter a row. A name may appear twice: once for hipDNN or movement, once for a kernel."""
    old = ROWS.get(row.name)
    if old is None:
        ROWS[row.name] = row
        return
    first, second = (row, old) if _is_kernel(old) else (old, row)
    if _is_kernel(first) or not _is_kernel(second):
        raise ValueError(f"two rows for {row.name}")
    ROWS[row.name] = replace(
        first,
        becomes=f"{first.becomes}; else {second.becomes}",
        onnx=first.onnx or second.onnx,
        known=first.known or second.known,
        launch=second.launch,
        call=second.call,
        precision=second.precision if first.precision == "follow" else first.precision,
    )


def _is_kernel(row: OpRow) -> bool:
    """Whether the row has nothing but a kernel."""
    return row.emit is None and row.move is None


def _full(name: str) -> str:
    return name if name.startswith(ONNX) else f"torch.{name}"


def compute(
    *names: str,
    becomes: str,
    onnx: tuple[str, ...] = (),
    source: str = "",
    precision: Precision = "follow",
    keeps: tuple[int, ...] = (),
) -> Callable[[Emission], Emission]:
    """Enter the decorated emission under every op name given, torch ops without `torch.`."""

    def enter(emit: Emission) -> Emission:
        for name in names:
            add(OpRow(_full(name), becomes, emit, onnx=onnx, source=source, precision=precision, keeps=keeps))
        return emit

    return enter


def of_hipdnn(
    operator: str,
    *,
    becomes: str,
    results: Results,
    source: str,
    precision: Precision = "follow",
    keeps: tuple[int, ...] = (),
) -> Callable[[Emission], Emission]:
    """Enter the decorated emission for an operator of the domain `hipdnn`, of which `results` tells the types."""

    def enter(emit: Emission) -> Emission:
        stated = (f"{HIPDNN_DOMAIN}.{operator}",)
        add(
            OpRow(
                f"{ONNX}{operator}",
                becomes,
                emit,
                None,
                source,
                stated,
                precision=precision,
                keeps=keeps,
                results=results,
            )
        )
        return emit

    return enter


def movement(
    *names: str,
    becomes: str,
    onnx: tuple[str, ...] = (),
    emit: Emission | None = None,
    known: tuple[int, ...] = (),
) -> Callable[[Callable[[OpView], Movement]], Callable[[OpView], Movement]]:
    """Enter the decorated movement under every op name given; `emit` absorbs it into a region."""

    def enter(move: Callable[[OpView], Movement]) -> Callable[[OpView], Movement]:
        for name in names:
            add(OpRow(_full(name), becomes, emit=emit, move=move, onnx=onnx, known=known))
        return move

    return enter


def elementwise(
    *names: str, onnx: tuple[str, ...] = (), known: tuple[int, ...] = (), precision: Precision = "follow"
) -> Callable[[ElementwiseEmission], ElementwiseEmission]:
    """Enter the decorated map under every op name given, beside the emission or movement that a row has already."""

    def enter(launch: ElementwiseEmission) -> ElementwiseEmission:
        for name in names:
            add(OpRow(_full(name), "elementwise kernel", onnx=onnx, launch=launch, known=known, precision=precision))
        return launch

    return enter


def kernel(
    *names: str,
    function: str,
    onnx: tuple[str, ...] = (),
    known: tuple[int, ...] = (),
    precision: Precision = "follow",
    results: Results | None = None,
) -> Callable[[Callable[[OpView], Call]], Callable[[OpView], Call]]:
    """Enter the decorated description of one kernel under every op name given, beside what a row has already.

    For an operator of the domain `hipdnn`, `results` tells the types of its results.
    """

    def enter(call: Callable[[OpView], Call]) -> Callable[[OpView], Call]:
        for name in names:
            row = OpRow(_full(name), f"{function} kernel", onnx=onnx, call=call, known=known, precision=precision)
            add(replace(row, results=results))
        return call

    return enter
