"""Inputs of a program for the command line: from files, the others at random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..dtypes import BY_NAME, is_foreign
from ..errors import ModelError, meant
from ..expressions import Expressions, names_in
from ..session.arrays import Port
from ..session.session import Session
from .arrays import Array, read_array

Range = tuple[float, float]
_INTEGER_LIMIT = 10
"""Random integers lie below it: small enough to be a token, an index or a count."""
_DRAWS = 8
"""Random inputs that are looked at for some that differ."""


@dataclass(frozen=True)
class Given:
    """What the user says of inputs.

    Attributes:
        files: Files of inputs by name; the others are random.
        ranges: Ranges that random inputs are drawn from, by name: a number, and a higher one that is not drawn itself.
        sizes: Sizes of dynamic dimensions: a number by symbol, or dims by input.
        seed: Of random inputs; None for 0.
    """

    files: Mapping[str, Path] = field(default_factory=dict)
    ranges: Mapping[str, Range] = field(default_factory=dict)
    sizes: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None


class Inputs:
    """The inputs of a program: the same from files in every draw, the others at random.

    Args:
        session: The program.
        given: What the user says.

    Raises:
        ModelError: What is said is of no input or size, contradicts the program or a file, or has no effect; a file is no array.
    """

    def __init__(self, session: Session, given: Given | None = None) -> None:
        given = given or Given()
        self._ports, self._seed = session.inputs, given.seed or 0
        files = _by_input(given.files, self._ports)
        _check_names("--input", files, self._ports)
        _check_names("--range", given.ranges, self._ports)
        self._ranges: dict[str, Range] = {**session.ranges, **given.ranges}
        self._sizing = session.sizing
        for port in self._ports:
            if port.name in given.ranges:
                _check_range(port, given.ranges[port.name], is_from_file=port.name in files)
        _check_sizes(self._ports, session.symbols, given.sizes)
        self._files = {port.name: _read(files[port.name], port) for port in self._ports if port.name in files}
        if given.seed is not None and not self._is_random:
            raise ModelError("no input is random", where="--seed", hint="leave it out")
        shapes = {name: array.shape for name, array in self._files.items()}
        known = {**session.least_exact, **_known_sizes(self._ports, shapes, given.sizes)}
        self._dims = {port.name: shapes.get(port.name, _dims(port, known)) for port in self._ports}
        for port in self._ports:
            _check_said(port, self._dims[port.name], given.sizes)

    @property
    def _is_random(self) -> bool:
        return any(port.name not in self._files for port in self._ports)

    def draw(self, number: int = 0) -> dict[str, Array]:
        """Return every input by name; each number gives other random ones.

        Raises:
            ModelError: An input does not fit into memory.
        """
        rng = np.random.default_rng([self._seed, number] if number else self._seed)
        return {port.name: self._input(port, rng) for port in self._ports}

    def draw_others(self, feeds: Mapping[str, Array]) -> dict[str, Array] | None:
        """Return inputs that are not all the same as these; None where there are none such."""
        if not self._is_random:
            return None
        draws = (self.draw(number) for number in range(1, _DRAWS + 1))
        return next((draw for draw in draws if any(not _is_same(draw[name], feeds[name]) for name in draw)), None)

    def _input(self, port: Port, rng: np.random.Generator) -> Array:
        if port.name in self._files:
            return self._files[port.name]
        dims = self._dims[port.name]
        if port.name in self._sizing:
            return _sizing(port, dims, self._sizing[port.name])
        try:
            return _random(port, rng, dims, self._ranges.get(port.name))
        except (MemoryError, ValueError) as error:  # the latter for more elements than NumPy can count
            shown = f"{port.dtype}[{','.join(map(str, dims))}]"
            hint = "give smaller sizes with --shape"
            raise ModelError(f"no memory for random values of {shown}", where=f"'{port.name}'", hint=hint) from error


def _sizing(port: Port, dims: Sequence[int], numbers: Sequence[Sequence[tuple[int, int]]]) -> Array:
    """What an input has to hold that decides sizes; of several numbers one that no other element has, since axes differ."""
    chosen: list[int] = []
    for spans in numbers:
        known = [max(first, min(last, 0)) for first, last in spans]
        chosen.append(next((number for number in known if number not in chosen), next(iter(known), 0)))
    return np.array(chosen, port.numpy_dtype).reshape(dims)


def symbol_sizes(session: Session, feeds: Mapping[str, Array]) -> dict[str, int]:
    """Return the sizes of a program's dynamic dimensions in its inputs."""
    pairs = (pair for port in session.inputs for pair in zip(port.shape, feeds[port.name].shape, strict=True))
    return {name: size for name, size in pairs if isinstance(name, str) and name in session.symbols}


def _by_input(files: Mapping[str, Path], ports: Sequence[Port]) -> dict[str, Path]:
    """Return files by inputs, where signs of equality in names of inputs and of files left open where a name ends."""
    names = [port.name for port in ports]
    found: dict[str, Path] = {}
    for given, path in files.items():
        text = f"{given}={path}"
        name = given if given in names else max((n for n in names if text.startswith(f"{n}=")), key=len, default=given)
        if name in found:
            raise ModelError(f"two values for {name!r}", where="--input", expected="each name once")
        found[name] = Path(text[len(name) + 1 :])
    return found


def _read(path: Path, port: Port) -> Array:
    """Return the array of an input. Of types that NumPy itself has not, files tell the width alone."""
    array, dtype = read_array(path), port.numpy_dtype
    is_untold = array.dtype.kind == "V" and array.dtype.names is None and is_foreign(dtype)
    return array.view(dtype) if is_untold and array.dtype.itemsize == dtype.itemsize else array


def _is_same(a: Array, b: Array) -> bool:
    return a.tobytes() == b.tobytes()


def _random(port: Port, rng: np.random.Generator, dims: Sequence[int], given: Range | None) -> Array:
    """Return numbers of a range; without one standard normal floats, small integers, zeros and ones for masks and bools."""
    dtype = port.numpy_dtype
    if not _is_float(port):
        least, most = _limits(port)
        low, high = given or (0, 2 if "mask" in port.name else _INTEGER_LIMIT)
        wide = np.uint64 if dtype.kind == "u" else np.int64
        return rng.integers(max(int(low), least), min(int(high), most), dims, wide).astype(dtype)
    if given is None:
        numbers = rng.standard_normal(dims)
        return (np.abs(numbers) if _limits(port)[0] > 0 else numbers).astype(dtype)
    share = rng.random(dims)
    values = (given[0] * (1 - share) + given[1] * share).astype(dtype)
    return np.where(values < dtype.type(given[1]), values, dtype.type(given[0]))


def _limits(port: Port) -> tuple[Any, Any]:
    """Return the ends of the widest range of an input's type."""
    if port.dtype == "bool":
        return 0, 2
    limits: Any = np
    if is_foreign(port.numpy_dtype):
        import ml_dtypes as limits
    if _is_float(port):
        info = limits.finfo(port.numpy_dtype)
        return float(info.min), float(info.max)
    info = limits.iinfo(port.numpy_dtype)
    return int(info.min), int(info.max) + 1


def _is_float(port: Port) -> bool:
    return port.coded.startswith("f") if port.coded else BY_NAME[port.dtype].is_float


def _check_range(port: Port, given: Range, *, is_from_file: bool) -> None:
    """Refuse a range that an input cannot have."""
    if is_from_file:
        hint = "leave one of them out"
        raise ModelError(f"input {port.name!r} is not random, --input names its file", where="--range", hint=hint)
    least, most = _limits(port)
    is_float = _is_float(port)
    if not (least <= given[0] and given[1] <= most and (is_float or all(isinstance(end, int) for end in given))):
        expected = f"numbers from {least:g} to {most:g}" if is_float else f"whole numbers from {least} to {most}"
        got = f"{given[0]}:{given[1]}"
        raise ModelError(f"input {port.name!r} is of type {port.dtype}", where="--range", expected=expected, got=got)


def _check_names(option: str, given: Mapping[str, Any], ports: Sequence[Port]) -> None:
    """Refuse what is said of inputs that a program does not have."""
    names = [port.name for port in ports]
    for name in given:
        if name not in names:
            expected = f"one of {', '.join(map(repr, names))}" if names else "none: it has no inputs"
            raise ModelError(f"the model has no input '{name}'", where=option, expected=expected, got=repr(name))


def _check_sizes(ports: Sequence[Port], symbols: Sequence[str], sizes: Mapping[str, Any]) -> None:
    """Refuse sizes of random inputs that a program does not have; names the dimension."""
    inputs = {port.name: port for port in ports}
    for name, given in sizes.items():
        if name not in inputs and name not in symbols:
            expected = (
                f"an input ({', '.join(inputs)}) or a dynamic dimension ({', '.join(symbols) or 'there is none'})"
            )
            hint = meant(name, [*inputs, *symbols]) or None
            raise ModelError(
                f"no input or dynamic dimension named {name!r}", where="--shape", expected=expected, hint=hint
            )
        if name not in inputs and not isinstance(given, (int, str)):
            message = f"dynamic dimension {name!r} takes one size"
            raise ModelError(message, where="--shape", expected=f"{name}=4", got=f"{len(given)} sizes")
        dims = _listed(given)
        unsaid = [size for size in dims if not isinstance(size, int)]
        if unsaid:
            hint = "to make dimensions dynamic or to rename them, compile the model with --shape"
            raise ModelError(
                "a program runs with numbers for its dimensions",
                where="--shape",
                expected="numbers",
                got=f"{unsaid[0]!r}",
                hint=hint,
            )
        if name not in inputs:
            continue
        shape = inputs[name].shape
        if len(dims) != len(shape):
            raise ModelError(f"input {name!r} has rank {len(shape)}", where="--shape", got=f"{len(dims)} sizes")
        for axis, (size, wanted) in enumerate(zip(dims, shape, strict=True)):
            if isinstance(wanted, int) and size != wanted:
                message = f"dimension {axis} of input {name!r} is static in the program"
                hint = "compile the model with this size"
                raise ModelError(message, where="--shape", expected=str(wanted), got=str(size), hint=hint)


def _check_said(port: Port, dims: Sequence[int], sizes: Mapping[str, Any]) -> None:
    """Refuse sizes that an input does not get, since its file or another option says otherwise."""
    said = _listed(sizes[port.name]) if port.name in sizes else [sizes.get(str(size)) for size in port.shape]
    for axis, (size, wanted) in enumerate(zip(dims, said, strict=False)):
        if wanted is not None and size != wanted:
            message = f"dimension {axis} of input {port.name!r} cannot be {wanted}, its file or another --shape makes it {size}"
            raise ModelError(message, where="--shape", hint="leave one of them out")


def _known_sizes(
    ports: Sequence[Port], shapes: Mapping[str, Sequence[Any]], sizes: Mapping[str, Any]
) -> dict[str, int]:
    """Return the dynamic dimensions' sizes that arrays, dims of inputs or the user state."""
    pairs = (
        (size, dim)
        for port in ports
        for size, dim in zip(port.shape, _listed(shapes.get(port.name, sizes.get(port.name, ()))), strict=False)
    )
    known = {size: dim for size, dim in pairs if isinstance(size, str)}
    return known | {name: size for name, size in sizes.items() if isinstance(size, int)}


def _listed(dims: Any) -> Sequence[Any]:
    """Return dims of which a single one may have been given by itself."""
    return dims if isinstance(dims, (tuple, list)) else [dims]


def _dims(port: Port, known: Mapping[str, int]) -> tuple[int, ...]:
    """Return the dims of an input where the dynamic dimensions are as known, or 1."""
    return tuple(size if isinstance(size, int) else _value(size, known) for size in port.shape)


def _value(text: str, known: Mapping[str, int]) -> int:
    table = Expressions(())
    if not names_in(text) or text in known:
        return known.get(text, 1)
    return table.value(table.parse(text, lambda name: known.get(name, 1)), ())
