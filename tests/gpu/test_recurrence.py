"""Generated recurrence: the host's cases, and code for every architecture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import find

from gpu import compiled
from gpu.emulated import describe
from gpu.host_cases import cases_of, emulation_of
from hipdnn_mlir.codegen import find_architecture, generate
from host_kernels import test_recurrence
from host_kernels.kernel_runs import TensorSpec

emulated = emulation_of(test_recurrence)
globals().update(cases_of(test_recurrence))


@pytest.mark.parametrize("name", compiled.ALL)
def test_code_is_whole(name: str) -> None:
    dims = (7, 70, 2 * 4 * 96), (2 * 6 * 4 * 96 * 16,), (2, 1, 96), (2, 70, 96)
    arrays = [np.zeros(each, np.float16) for each in dims]
    outs = [TensorSpec("f16", (7, 2, 70, 96)), *[TensorSpec("f16", (2, 70, 96))] * 2, TensorSpec("i32", (3, 2, 70, 96))]
    attributes = {"cell": "lstm", "reverse": False}
    compiled.check(generate(describe("recurrence", arrays, outs, attributes), find_architecture(name)))


class _Drawn:
    """Stands for drawn data: the same choice each time."""

    def __init__(self, choice: bool) -> None:
        self.choice = choice

    def draw(self, strategy: Any) -> Any:
        """Return the choice for booleans, else the simplest example."""
        return find(strategy, lambda x: not isinstance(x, bool) or x == self.choice)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize(("hidden", "batch"), [(160, 3), (256, 18), (512, 1)])
def test_units_of_a_cluster_equal_onnx_runtime(cell: str, hidden: int, batch: int) -> None:
    rng, drawn = np.random.default_rng(hidden), _Drawn(batch == 3)
    test_recurrence.check(drawn, rng, cell, "f16", "bidirectional", (3, batch, hidden, 3))
