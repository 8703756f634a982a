"""A program on a device, loaded for the sizes that are asked for, and compiled again where the device's library refuses graphs."""

from __future__ import annotations

import functools
import itertools
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from .. import _runtime
from ..errors import ModelError, PlanRefusedError, RefusedPlan
from ..limits import MAX_SIZE
from .devices import forward_log
from .recovery import Recovery, Refusals
from .source import Source, known_of, read, without


class Specializations:
    """The specializations of one program on one device.

    Attributes:
        program: What is loaded: the program as given, or compiled again.
        buckets: Dynamic dimension -> rising sizes that it is rounded up to; missing where it is taken as it is.

    Args:
        device: The device.
        source: Where the program is from.
        program: What was read there.
        capacity: How many stay loaded.
        plan_cache: Folder of what the library has refused; empty for none.
        allow_code: Whether a program that is compiled again may hold code for a GPU.

    Raises:
        PlanRefusedError: The library refuses graphs, and the model is not at hand.
        DeviceError: A call into the device library failed.
    """

    def __init__(
        self,
        device: _runtime.Device,
        source: Source,
        program: _runtime.Program,
        *,
        capacity: int,
        plan_cache: str,
        allow_code: bool,
    ) -> None:
        self._device, self._capacity = device, capacity
        self._recovering = threading.Lock()

        def made(refused: Sequence[RefusedPlan]) -> _runtime.Program:
            return read(without(source, refused), allow_code=allow_code) if refused else program

        # A program whose model is not at hand has to be asked for, and names in a file may be anything.
        refusals = Refusals(device, plan_cache) if getattr(source, "compile_without", None) else Refusals()
        self._source = Recovery(made, known=known_of(program, refusals), refusals=refusals)
        self._sessions: _runtime.Sessions
        self._latest: _runtime.Session | None
        self.program: _runtime.Program
        self._source.use(self._open)
        buckets = zip(self.program.symbols, self.program.buckets, strict=False)
        self.buckets = {name: sizes for name, sizes in buckets if sizes}

    @property
    def latest(self) -> _runtime.Session:
        """What was used last.

        Raises:
            ModelError: Nothing was yet.
        """
        if self._latest is None:
            raise ModelError(
                f"the sizes {', '.join(self.program.symbols)} are open", hint="run the program, or prewarm it"
            )
        return self._latest

    @property
    def count(self) -> int:
        """How many are loaded."""
        return self._sessions.count

    def close(self) -> None:
        """Give all memory back; nothing can be asked for any more."""
        self._latest = None
        self.__dict__.pop("_sessions", None)

    def at(self, dims: Sequence[Sequence[int]]) -> _runtime.Session:
        """Return the program for inputs of these dims."""
        return self._use(self._sessions.at(dims))

    def at_sizes(self, sizes: list[int]) -> _runtime.Session:
        """Return the program for these values of the symbols."""
        return self._use(self._at_sizes(sizes))

    def sizes_of(self, dims: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
        """Return the symbols' values for inputs of these dims, and what they are rounded up to."""
        return self._sessions.sizes_of(dims)

    def output_dims(self, sizes: list[int]) -> list[list[int]]:
        """Return the dims of each output for these values of the symbols."""
        return self._sessions.output_dims(sizes)

    def prewarm(self, sizes: Iterable[Mapping[str, int]] | None) -> None:
        """Load the program for combinations of sizes, as ``Session.prewarm`` does."""
        symbols = self.program.symbols
        loaded: list[_runtime.Session] = []
        # The largest first: if memory is short it is short at once.
        for chosen in reversed(self._all_buckets()) if sizes is None else sizes:
            if sorted(chosen) != sorted(symbols):
                raise ModelError("wrong sizes", expected=_sizes_text(symbols), got=_sizes_text(chosen))
            wanted = [chosen[name] for name in symbols]
            for name, size in zip(symbols, wanted, strict=True):
                if not isinstance(size, int) or not 0 <= size < MAX_SIZE:
                    raise ModelError(f"bad size for {name!r}", expected="a number from 0 to 2^48 - 1", got=repr(size))
            loaded.append(self._logged(self._at_sizes, self._sessions.rounded(wanted) if self.buckets else wanted))
        if loaded:
            self._latest = loaded[0] if sizes is None else loaded[-1]

    def _open(self, program: _runtime.Program) -> _runtime.Program:
        """Put a program on the device, in the place of the one before."""
        sessions = _runtime.Sessions(self._device, program, self._capacity)
        self._latest = None if program.symbols else self._logged(sessions.at_sizes, [])
        self._sessions, self.program = sessions, program
        return program

    def _at_sizes(self, sizes: list[int]) -> _runtime.Session:
        """Return the program for these sizes, where the file holds one for each compiled again should the library refuse graphs."""
        try:
            return self._sessions.at_sizes(sizes)
        except PlanRefusedError:
            with self._recovering:
                return self._source.use(functools.partial(self._loaded_from, sizes))

    def _loaded_from(self, sizes: list[int], program: _runtime.Program) -> _runtime.Session:
        if program is not self.program:
            self._open(program)
        return self._sessions.at_sizes(sizes)

    def _logged(self, load: Callable[[list[int]], _runtime.Session], sizes: list[int]) -> _runtime.Session:
        """Return what is loaded, and log what that brought."""
        try:
            return load(sizes)
        finally:
            forward_log()

    def _use(self, session: _runtime.Session) -> _runtime.Session:
        """Make a session the latest one, and log what loading it brought, should that have been now."""
        if session is not self._latest:
            self._latest = session
            forward_log()
        return session

    def _all_buckets(self) -> list[dict[str, int]]:
        """Return every combination of buckets."""
        missing = [name for name in self.program.symbols if name not in self.buckets]
        if missing:
            hint = "give the sizes to load for, or compile with buckets for all"
            raise ModelError(f"no buckets for {_sizes_text(missing)}", hint=hint)
        count = math.prod(len(chosen) for chosen in self.buckets.values())
        if count > self._capacity:
            hint = f"load it with max_specializations={count}"
            raise ModelError(f"{count} combinations of buckets, the session keeps {self._capacity}", hint=hint)
        return [dict(zip(self.buckets, chosen, strict=True)) for chosen in itertools.product(*self.buckets.values())]


def _sizes_text(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
