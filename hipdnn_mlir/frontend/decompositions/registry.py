"""How an ONNX operator that others compute is entered: by the function that writes the others."""

from collections.abc import Callable, Sequence

from .call import Call

CONTRIB = "com.microsoft"
Decomposition = Callable[[Call], Sequence[str | None] | None]
"""Writes nodes on a Call; returns the values that take the place of the node's results, or None where the node stays."""
DECOMPOSITIONS: dict[tuple[str, str], Decomposition] = {}
"""(domain, operator) -> what writes it by others."""


def decomposes(*operators: str, domain: str = "") -> Callable[[Decomposition], Decomposition]:
    """Enter the decorated function for the operators of a domain."""

    def enter(write: Decomposition) -> Decomposition:
        DECOMPOSITIONS.update({(domain, operator): write for operator in operators})
        return write

    return enter
