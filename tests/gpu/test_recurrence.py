"""Generated recurrence: the host's cases, and code for every architecture."""

from __future__ import annotations

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
