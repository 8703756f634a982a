"""Every operator the compiler takes, on drawn models: equal to the reference, or rejected with a reason, and not too often."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from .call import Case
from .compare import assert_same
from .families import OPERATORS
from .operators import cases
from .reference import expected
from .worker import Rejected, Worker

EXAMPLES = int(os.environ.get("HIPDNN_PROPERTY_EXAMPLES", "0"))
"""Models per operator; 0 for a few that are always the same."""
SETTINGS = settings(
    max_examples=EXAMPLES or 5,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)


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
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        assert_same(one, other, case.call.loose, case.call.atol)
    return None


@pytest.mark.parametrize("key", OPERATORS, ids=lambda key: ".".join(filter(None, key)))
def test_operator_equals_reference(key: tuple[str, str], worker: Worker) -> None:
    outcomes: Counter[str] = Counter()

    @SETTINGS
    @given(case=cases(*key))
    def property_of_operator(case: Case) -> None:
        rejected = check(worker, case)
        outcomes[rejected.reasons if rejected else ""] += 1

    property_of_operator()
    refused = {reason: count for reason, count in outcomes.items() if reason}
    assert sum(refused.values()) <= OPERATORS[key].rejected * outcomes.total(), refused
