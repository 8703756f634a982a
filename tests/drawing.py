"""How many random examples the properties draw: a few that are always the same, or, with HIPDNN_DRAWS=n, n times as many new ones."""

import os

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
