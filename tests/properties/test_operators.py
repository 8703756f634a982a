"""Every operator the compiler takes, on drawn models: equal to the reference, or rejected with a reason, and not too often."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import onnx
import pytest
from hypothesis import Phase, given, settings
from onnx import helper

from drawing import draws

from .call import Case
from .compare import assert_same
from .families import OPERATORS
from .operators import cases
from .reference import expected
from .worker import Rejected, Worker

EXAMPLES = 3
"""Models per operator in `make test`."""
SETTINGS = settings(draws(EXAMPLES), report_multiple_bugs=False, phases=[Phase.explicit, Phase.generate, Phase.shrink])


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.close()


def check(worker: Worker, case: Case) -> Rejected | None:
    """Assert that a model's results are the reference's; returns the rejection where the compiler refuses it."""
    worker.submit(case.model, case.feeds)
    try:
        want = expected(case)
    finally:
        got = worker.result()
    if isinstance(got, Rejected):
        return got
    kinds = [value.type.tensor_type.elem_type for value in onnx.shape_inference.infer_shapes(case.model).graph.output]
    for one, other, kind in zip(got, want, kinds, strict=True):
        assert kind in (0, helper.np_dtype_to_tensor_dtype(one.dtype)), f"dtype {one.dtype}"
        assert_same(one, other, case.call.loose, case.call.atol)
    return None


@pytest.mark.parametrize("key", OPERATORS, ids=lambda key: ".".join(filter(None, key)))
def test_operator_equals_reference(key: tuple[str, str], worker: Worker) -> None:
    outcomes: Counter[str] = Counter()

    @SETTINGS
    @given(case=cases(*key))
    def property_of_operator(case: Case) -> None:
        rejected = check(worker, case)
        outcomes[f"{rejected.reasons}\n{case}" if rejected else ""] += 1

    property_of_operator()
    refused = [reason for reason in outcomes.elements() if reason]
    assert len(refused) <= math.ceil(OPERATORS[key].rejected * outcomes.total()), "\n".join(refused)
