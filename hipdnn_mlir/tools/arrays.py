"""Arrays for the command line: inputs from files or at random, outputs to files, and comparison with a reference."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ..dtypes import BY_NAME
from ..errors import ModelError
from ..precision import find_precision
from ..sizes.expressions import Expressions, names_in

Array = npt.NDArray[Any]

_INTEGER_LIMIT = 10
"""Random integers lie below it: small enough to be a token, an index or a count."""

_TOLERANCES = {
    np.dtype(np.float64): (1e-6, 1e-8),
    np.dtype(np.float32): (1e-3, 1e-4),
    np.dtype(np.float16): (1e-2, 1e-2),
    np.dtype(ml_dtypes.bfloat16): (5e-2, 5e-2),
}
"""Relative and absolute tolerance per floating type; other types must be equal."""


class Port(Protocol):
    """What this module needs to know of an input or output of a session."""

    @property
    def name(self) -> str:
        """Name as in the ONNX model."""

    @property
    def dtype(self) -> str:
        """Element type as program files spell it, such as ``f32``."""

    @property
    def shape(self) -> Sequence[int | str]:
        """Dims; an open one is a text."""


@dataclass(frozen=True)
class Difference:
    """How far one output lies from its reference.

    Attributes:
        output: Name of the output.
        absolute: Largest absolute difference.
        relative: Largest difference over the larger of the reference's magnitude and ``atol``.
        rtol: Relative tolerance that was applied.
        atol: Absolute tolerance that was applied.
        within: Whether every element satisfies ``|got - want| <= atol + rtol * |want|``.
    """

    output: str
    absolute: float
    relative: float
    rtol: float
    atol: float
    within: bool

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return asdict(self)


def check_sizes(ports: Sequence[Port], symbols: Sequence[str], sizes: Mapping[str, Any]) -> None:
    """Refuse sizes of random inputs that a program does not have.

    Args:
        ports: The program's inputs.
        symbols: Its open sizes.
        sizes: What the user says: a number by open size, or dims by input.

    Raises:
        ModelError: A name is that of no input or open size, or dims contradict the program's; names the dimension.
    """
    inputs = {port.name: port for port in ports}
    for name, given in sizes.items():
        if name not in inputs:
            if name not in symbols:
                expected = f"an input ({', '.join(inputs)}) or an open size ({', '.join(symbols) or 'there is none'})"
                raise ModelError(f"no input or size named {name!r}", where="--shape", expected=expected)
            continue
        dims, shape = _listed(given), inputs[name].shape
        if len(dims) != len(shape):
            raise ModelError(f"input {name!r} has rank {len(shape)}", where="--shape", got=f"{len(dims)} sizes")
        for axis, (size, wanted) in enumerate(zip(dims, shape, strict=True)):
            if isinstance(wanted, int) and isinstance(size, int) and size != wanted:
                message = f"dimension {axis} of input {name!r} is fixed in the program"
                hint = "compile the model with this size"
                raise ModelError(message, where="--shape", expected=str(wanted), got=str(size), hint=hint)


def random_input(port: Port, rng: np.random.Generator, dims: Sequence[int]) -> Array:
    """Return an array for an input: standard normal floats, small integers, zeros and ones for masks and bools.

    Raises:
        ModelError: The array does not fit into memory.
    """
    try:
        return _random(port, rng, dims)
    except (MemoryError, ValueError) as error:  # the latter for more elements than NumPy can count
        shown = f"{port.dtype}[{','.join(map(str, dims))}]"
        hint = "give smaller sizes with --shape"
        raise ModelError(f"no memory for random values of {shown}", where=f"'{port.name}'", hint=hint) from error


def _random(port: Port, rng: np.random.Generator, dims: Sequence[int]) -> Array:
    dtype = BY_NAME[port.dtype].numpy
    if dtype == np.bool_:
        return rng.integers(0, 2, dims).astype(np.bool_)
    if dtype.kind in "iu":
        return rng.integers(0, 2 if "mask" in port.name else _INTEGER_LIMIT, dims).astype(dtype)
    return rng.standard_normal(dims).astype(dtype)


def gather_inputs(
    ports: Sequence[Port],
    files: Mapping[str, Path],
    seed: int,
    sizes: Mapping[str, Any] | None = None,
    least: Mapping[str, int] | None = None,
) -> dict[str, Array]:
    """Return every input by name: from its file where one is named, else at random.

    Args:
        ports: The inputs.
        files: Input name -> file.
        seed: Of random inputs.
        sizes: Sizes of random inputs that the program leaves open, by their name, or dims by input name.
        least: What they are where neither says anything, nor an input from a file; 1 where this says nothing, too.

    Raises:
        ModelError: A file is named for an input that does not exist, or cannot be read as an array.
    """
    names = [port.name for port in ports]
    for name in files:
        if name not in names:
            raise ModelError(
                f"the model has no input '{name}'",
                where="--input",
                expected=f"one of {', '.join(map(repr, names))}",
                got=repr(name),
            )
    rng = np.random.default_rng(seed)
    given = {port.name: read_array(files[port.name]) for port in ports if port.name in files}
    known = {**(least or {}), **_known_sizes(ports, {name: array.shape for name, array in given.items()}, sizes or {})}
    return {
        port.name: given[port.name] if port.name in given else random_input(port, rng, _dims(port, known))
        for port in ports
    }


def _known_sizes(
    ports: Sequence[Port], shapes: Mapping[str, Sequence[Any]], sizes: Mapping[str, Any]
) -> dict[str, int]:
    """Return the open sizes that arrays, dims of inputs or the user state."""
    pairs = (
        (size, dim)
        for port in ports
        for size, dim in zip(port.shape, _listed(shapes.get(port.name, sizes.get(port.name, ()))), strict=False)
    )
    known = {size: dim for size, dim in pairs if isinstance(size, str) and isinstance(dim, int)}
    return known | {name: size for name, size in sizes.items() if isinstance(size, int)}


def _listed(dims: Any) -> Sequence[Any]:
    """Return dims of which a single one may have been given by itself."""
    return dims if isinstance(dims, (tuple, list)) else [dims]


def _dims(port: Port, known: Mapping[str, int]) -> tuple[int, ...]:
    """Return the dims of an input where the open sizes are as known, or 1."""
    return tuple(size if isinstance(size, int) else _value(size, known) for size in port.shape)


def _value(text: str, known: Mapping[str, int]) -> int:
    table = Expressions(())
    if not names_in(text) or text in known:
        return known.get(text, 1)
    return table.value(table.parse(text, lambda name: known.get(name, 1)), ())


def read_array(path: Path) -> Array:
    """Read one ``.npy`` file.

    Raises:
        ModelError: The file is missing, or is not an array that can be read without running code.
    """
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise ModelError(f"cannot read the array: {error.strerror or error}", where=str(path)) from error
    except (ValueError, EOFError) as error:
        raise ModelError(
            "not a NumPy array file",
            where=str(path),
            expected="a .npy file of numbers",
            hint="write it with numpy.save",
        ) from error
    if not isinstance(array, np.ndarray):
        raise ModelError("an archive of arrays", where=str(path), expected="a single array (.npy)", got="an .npz file")
    return array


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays as one ``.npz`` file; it appears as a whole or not at all.

    Raises:
        ModelError: The file cannot be written.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partial.open("wb") as stream:
            np.savez(stream, **dict(arrays))  # type: ignore[arg-type]
        partial.replace(path)
    except OSError as error:
        raise ModelError(f"cannot write the outputs: {error.strerror or error}", where=str(path)) from error
    finally:
        partial.unlink(missing_ok=True)


def tolerances(precision: str) -> tuple[float, float] | tuple[None, None]:
    """Return relative and absolute tolerance for what was computed in a precision; nothing where the outputs' own types decide."""
    narrow = find_precision(precision)
    return (None, None) if narrow is None else _TOLERANCES[narrow.numpy]


def compare(output: str, got: Array, want: Array, rtol: float | None = None, atol: float | None = None) -> Difference:
    """Compare an output with its reference, both of the same shape and dtype; NaN equals NaN.

    Args:
        output: Name for the result.
        got: The array under test.
        want: The reference.
        rtol: Relative tolerance; the default depends on the dtype.
        atol: Absolute tolerance; the default depends on the dtype.
    """
    default_rtol, default_atol = _TOLERANCES.get(got.dtype, (0.0, 0.0))
    rtol = default_rtol if rtol is None else rtol
    atol = default_atol if atol is None else atol
    if got.shape != want.shape or got.dtype != want.dtype:
        return Difference(output, np.inf, np.inf, rtol, atol, within=False)
    a, b = got.astype(np.float64), want.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        delta = np.where(same, 0.0, np.abs(a - b))
    delta = np.where(np.isnan(delta), np.inf, delta)
    magnitude = np.where(np.isfinite(b), np.abs(b), 0.0)
    relative = delta / np.maximum(magnitude, atol or 1.0)
    within = bool(np.all(delta <= atol + rtol * magnitude))
    return Difference(
        output, float(delta.max(initial=0.0)), float(relative.max(initial=0.0)), rtol, atol, within=within
    )
