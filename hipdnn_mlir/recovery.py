"""What is done when a device's library refuses graphs: the model is compiled again without them, until all of the program is taken."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import TypeVar

from . import _runtime
from .devices import forward_log
from .errors import PlanRefusedError, RefusedPlan, UnsupportedError

logger = logging.getLogger(__name__)

MAX_ROUNDS = 6
"""Whole, without its residual, without its epilogue, as a kernel: a region has no more than that, and what they leave behind some more."""

Made = TypeVar("Made")
Used = TypeVar("Used")


class Refusals:
    """Graphs that the library of a device has refused, kept between processes.

    Args:
        device: The device; None keeps nothing.
        folder: Where they are kept; empty for nowhere.
    """

    def __init__(self, device: _runtime.Device | None = None, folder: str = "") -> None:
        self._store = _runtime.RefusalStore(device, folder) if device is not None and folder else None

    def known(self) -> list[RefusedPlan]:
        """Return what has been refused, whichever model it was of."""
        if self._store is None:
            return []
        try:
            return [RefusedPlan(*fields) for fields in self._store.all()]
        finally:
            forward_log()

    def add(self, plans: Sequence[RefusedPlan]) -> None:
        """Keep what is refused."""
        if self._store is None:
            return
        for plan in plans:
            self._store.add(*astuple(plan))
        forward_log()


def recovered(
    make: Callable[[Sequence[RefusedPlan]], Made],
    use: Callable[[Made], Used],
    *,
    refusals: Refusals | None = None,
    known: Sequence[RefusedPlan] | None = None,
) -> Used:
    """Make a program and use it; where the library refuses graphs of it, make it again without them.

    Args:
        make: compiles without the graphs that it is given.
        use: loads what was made, or asks the library otherwise.
        refusals: what the library has refused before, without which it is made at once; what it refuses now is added.
        known: what of it to begin with, all by default.

    Raises:
        PlanRefusedError: what is refused has no other form, or after MAX_ROUNDS there is still something refused.
        HipdnnMlirError: whatever else either raises.
    """
    refusals = refusals or Refusals()
    refused = refusals.known() if known is None else list(known)
    try:
        made = make(refused)
    except UnsupportedError:
        if not refused:
            raise
        refused = []  # the library's own words are the better error, should it still refuse
        made = make(refused)
    for _ in range(MAX_ROUNDS):
        try:
            return use(made)
        except PlanRefusedError as error:
            names = {plan.graph for plan in refused}
            new = [plan for plan in error.refusals if plan.graph not in names]
            if not new:
                raise
            refused += new
            for plan in new:
                logger.warning("the library refuses a graph, it is compiled otherwise: %s", plan)
            refusals.add(new)
            try:
                made = make(refused)
            except UnsupportedError as unsupported:
                raise error from unsupported
    return use(made)
