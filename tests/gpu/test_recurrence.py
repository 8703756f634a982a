"""Generated recurrence: the host's cases, and code for every architecture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize(
    ("hidden", "batch", "lengths"), [(128, 3, np.int32), (160, 3, np.int64), (256, 18, None), (512, 1, None)]
)
def test_units_of_a_cluster_equal_onnx_runtime(cell: str, hidden: int, batch: int, lengths: Any) -> None:
    rng, sizes = np.random.default_rng(hidden), (3, batch, hidden, 3)

    def packed(dims: tuple[int, ...]) -> TensorSpec:
        return TensorSpec("f16", dims)

    test_recurrence.check(rng, cell, "f16", "bidirectional", sizes, lengths, is_broadcast=batch == 3, spec=packed)
