"""What is done when a device's library refuses graphs: the model is compiled again without them, until all of the program is taken."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from .errors import PlanRefusedError, RefusedPlan, UnsupportedError

logger = logging.getLogger(__name__)

MAX_ROUNDS = 6
"""Whole, without its residual, without its epilogue, as a kernel: a region has no more than that, and what they leave behind some more."""

Made = TypeVar("Made")
Used = TypeVar("Used")


def recovered(make: Callable[[Sequence[RefusedPlan]], Made], use: Callable[[Made], Used]) -> Used:
    """Make a program and use it; where the library refuses graphs of it, make it again without them.

    Args:
        make: compiles without the graphs that it is given, none at first.
        use: loads what was made, or asks the library otherwise.

    Raises:
        PlanRefusedError: what is refused has no other form, or after MAX_ROUNDS there is still something refused.
        HipdnnMlirError: whatever else either raises.
    """
    refused: list[RefusedPlan] = []
    made = make(refused)
    for _ in range(MAX_ROUNDS):
        try:
            return use(made)
        except PlanRefusedError as error:
            known = {plan.graph for plan in refused}
            new = [plan for plan in error.refusals if plan.graph not in known]
            if not new:
                raise
            refused += new
            for plan in new:
                logger.warning("the library refuses a graph, it is compiled otherwise: %s", plan)
            try:
                made = make(refused)
            except UnsupportedError as unsupported:
                raise error from unsupported
    return use(made)
