"""Generated suppression of boxes: the host's cases, and code for every architecture."""

from __future__ import annotations

import numpy as np
import pytest

from gpu import compiled
from gpu.emulated import describe
from gpu.host_cases import cases_of, emulation_of
from hipdnn_mlir.codegen import find_architecture, generate
from host_kernels import test_suppress_boxes
from host_kernels.kernel_runs import TensorSpec

emulated = emulation_of(test_suppress_boxes)
globals().update(cases_of(test_suppress_boxes))


@pytest.mark.parametrize("name", compiled.ALL)
def test_code_is_whole(name: str) -> None:
    arrays = [np.zeros(dims, np.float32) for dims in ((2, 300, 4), (2, 3, 300), (1,), (1,))]
    outs = [TensorSpec("i64", (2, 3, 10)), TensorSpec("i64", (2, 3)), TensorSpec("i32", (2, 3, 300))]
    compiled.check(generate(describe("suppress_boxes", arrays, outs, {"center": True}), find_architecture(name)))
