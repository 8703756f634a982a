"""What `make test` tries of more than there is time for; `make nightly` tries the rest.

Of random examples a few that are always the same, or, with HIPDNN_DRAWS=n, n times as many new ones; of combinations of parameters
some.
"""

import os
from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("HIPDNN_DRAWS", "0"))


def draws(count: int) -> settings:
    """The settings of a property that `make test` tries on `count` examples and `make nightly` on many more."""
    return settings(
        max_examples=count * (TIMES or 1),
        derandomize=not TIMES,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def every(step: int, *axes: Iterable[Any]) -> list[Any]:
    """All combinations of parameters, those between every `step`-th marked as `nightly`.

    A step that shares no factor with the lengths of the axes leaves each value of each in `make test`.
    """
    return [
        pytest.param(*values, marks=[pytest.mark.nightly] if index % step else [])
        for index, values in enumerate(product(*axes))
    ]
