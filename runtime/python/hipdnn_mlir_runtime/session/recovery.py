"""What is done when a device's library refuses graphs: the model is compiled again without them, until all of the program is taken."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import Generic, TypeVar

from .. import _runtime
from ..errors import HipdnnMlirError, PlanRefusedError, RefusedPlan, UnsupportedError
from ..precision import TF32
from .devices import forward_log, open_device
from .options import SessionOptions, device_options

logger = logging.getLogger("hipdnn_mlir.recovery")

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


def refusals_of(target: str, precision: str, given: SessionOptions) -> Refusals:
    """Return what the library of a target has refused on this machine; nothing where it is not here, or nothing is kept."""
    try:
        port = _runtime.port_for_target(target)
        options = device_options(given, port, is_tf32=precision == TF32)
        return Refusals(open_device(options), options["plan_cache"]) if options["plan_cache"] else Refusals()
    except HipdnnMlirError:
        return Refusals()  # what is wrong is an error where it matters


class Recovery(Generic[Made]):
    """Something that is used again and again, and made again where the library refuses graphs of it.

    Args:
        make: compiles without the graphs that it is given.
        refusals: what the library has refused before, without which it is made at once; what it refuses now is added.
        known: what of it to begin with, all by default.

    Raises:
        HipdnnMlirError: whatever `make` raises.
    """

    def __init__(
        self,
        make: Callable[[Sequence[RefusedPlan]], Made],
        *,
        refusals: Refusals | None = None,
        known: Sequence[RefusedPlan] | None = None,
    ) -> None:
        self._make = make
        self._refusals = refusals or Refusals()
        self._refused = self._refusals.known() if known is None else list(known)
        try:
            self._made = make(self._refused)
        except UnsupportedError:
            if not self._refused:
                raise
            self._refused = []  # the library's own words are the better error, should it still refuse
            self._made = make(self._refused)

    def use(self, use: Callable[[Made], Used]) -> Used:
        """Use what was made; one thread at a time.

        Args:
            use: loads it, or asks the library otherwise.

        Raises:
            PlanRefusedError: what is refused has no other form, or after MAX_ROUNDS there is still something refused.
            HipdnnMlirError: whatever else `make` or `use` raises.
        """
        for _ in range(MAX_ROUNDS):
            try:
                return use(self._made)
            except PlanRefusedError as error:
                self._make_without(error)
        return use(self._made)

    def _make_without(self, error: PlanRefusedError) -> None:
        """Make it again; raises the error where that is of no use."""
        names = {plan.graph for plan in self._refused}
        new = [plan for plan in error.refusals if plan.graph not in names]
        if not new:
            raise error
        self._refused += new
        for plan in new:
            logger.warning("the library refuses a graph, it is compiled otherwise: %s", plan)
        self._refusals.add(new)
        try:
            self._made = self._make(self._refused)
        except UnsupportedError as unsupported:
            raise error from unsupported


def recovered(
    make: Callable[[Sequence[RefusedPlan]], Made],
    use: Callable[[Made], Used],
    *,
    refusals: Refusals | None = None,
    known: Sequence[RefusedPlan] | None = None,
) -> Used:
    """Make a program and use it once; where the library refuses graphs of it, make it again without them.

    Args:
        make: as for `Recovery`.
        use: as for `Recovery.use`.
        refusals: as for `Recovery`.
        known: as for `Recovery`.

    Raises:
        HipdnnMlirError: as for both.
    """
    return Recovery(make, refusals=refusals, known=known).use(use)
