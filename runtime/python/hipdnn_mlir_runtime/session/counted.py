"""Outputs of which data decides how many rows count: a program fills all that there can be, and says how many to look at."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import ModelError
from .arrays import Port
from .padding import Array, cut


class CountedOutputs:
    """Cuts outputs behind a run.

    Args:
        dims: Output of the program -> per dim the output that says how many of it count, or an empty text; of those outputs nothing.
        outputs: All of the program.

    Attributes:
        shown: The outputs of the model; a dim that is counted has the name of what counts it.
        numbers: Positions of the outputs that count.
    """

    def __init__(self, dims: Mapping[str, Sequence[str]], outputs: Sequence[Port]) -> None:
        self._dims = {name: names for name, names in dims.items() if names}
        self.numbers = {port.name: index for index, port in enumerate(outputs) if dims.get(port.name) == []}
        self.shown = [self._as_shown(port) for port in outputs if port.name not in self.numbers]

    def _as_shown(self, port: Port) -> Port:
        names = self._dims.get(port.name, [""] * len(port.shape))
        return replace(port, shape=tuple(name or size for name, size in zip(names, port.shape, strict=True)))

    def check(self, given: Mapping[str, Any]) -> None:
        """Refuse arrays for outputs whose sizes are not known.

        Raises:
            ModelError: One is given.
        """
        for name in given:
            if name in self._dims:
                message = "data decides how many rows it has, so no array can be given for it"
                raise ModelError(message, where=f"'{name}'", hint="leave it out of out, and use what run returns")

    def cut(self, results: Sequence[Array], outputs: Sequence[Port]) -> list[Array]:
        """Return results without what does not count."""
        counts = {name: int(results[index][0]) for name, index in self.numbers.items()}
        return [
            cut(result, [counts.get(name, size) for name, size in zip(names, result.shape, strict=True)])
            if (names := self._dims.get(port.name))
            else result
            for port, result in zip(outputs, results, strict=True)
        ]


def counted_outputs(program: str, outputs: Sequence[Port]) -> CountedOutputs | None:
    """Return what a program, as text, says of such outputs; None where it has none."""
    dims = json.loads(program).get("counted") if '"counted"' in program else None
    return CountedOutputs(dims, outputs) if dims else None
