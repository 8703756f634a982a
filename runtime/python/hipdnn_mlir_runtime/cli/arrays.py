"""Arrays for the command line: read from files, written to files, and compared with a reference."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..atomic_file import written
from ..errors import ModelError
from ..precision import find_precision

Array = npt.NDArray[Any]

_TOLERANCES = {
    "float64": (1e-6, 1e-8),
    "float32": (1e-3, 1e-4),
    "float16": (1e-2, 1e-2),
    "bfloat16": (5e-2, 5e-2),
    "float8_e4m3fn": (1.3e-1, 1.3e-1),
    "float8_e5m2": (2.6e-1, 2.6e-1),
}
"""Relative and absolute tolerance per floating type of NumPy; other types must be equal."""


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
        constant: Whether that says nothing of the program, since the reference is constant: see ``is_constant``.
    """

    output: str
    absolute: float
    relative: float
    rtol: float
    atol: float
    within: bool
    constant: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form; where agreement says nothing, ``within`` is None."""
        return {**asdict(self), "within": None if self.within and self.constant else self.within}


def read_array(path: Path) -> Array:
    """Read one ``.npy`` file.

    Raises:
        ModelError: The file is missing, or is not an array that can be read without running code.
    """
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise ModelError(f"cannot read the array: {error.strerror or error}", where=str(path)) from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ModelError(
            "not a NumPy array file",
            where=str(path),
            expected="a .npy file of numbers",
            hint="write it with numpy.save",
        ) from error
    if not isinstance(array, np.ndarray):
        raise ModelError("an archive of arrays", where=str(path), expected="a single array (.npy)", got="an .npz file")
    return array


def read_arrays(path: Path) -> dict[str, Array]:
    """Read one ``.npz`` file.

    Raises:
        ModelError: The file is missing, damaged, or holds what cannot be read without running code.
    """
    found = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                with archive.open(name) as member:
                    found[name.removesuffix(".npy")] = np.lib.format.read_array(member, allow_pickle=False)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ModelError(f"cannot read the arrays: {error}", where=str(path)) from error
    return found


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays as one ``.npz`` file; it appears as a whole or not at all.

    Raises:
        HipdnnMlirError: The file cannot be written.
    """
    # numpy.savez takes some names for those of its own arguments.
    with written(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def tolerances(precision: str) -> tuple[float, float] | tuple[None, None]:
    """Return relative and absolute tolerance for what was computed in a precision; nothing where the outputs' own types decide."""
    narrow = find_precision(precision)
    return (None, None) if narrow is None else _TOLERANCES[narrow.numpy_name]


def compare(output: str, got: Array, want: Array, rtol: float | None = None, atol: float | None = None) -> Difference:
    """Compare an output with its reference, both of the same shape and dtype; NaN equals NaN.

    Args:
        output: Name for the result.
        got: The array under test.
        want: The reference.
        rtol: Relative tolerance; the default depends on the dtype.
        atol: Absolute tolerance; the default depends on the dtype.
    """
    default_rtol, default_atol = _TOLERANCES.get(got.dtype.name, (0.0, 0.0))
    rtol = default_rtol if rtol is None else rtol
    atol = default_atol if atol is None else atol
    if got.shape != want.shape or got.dtype != want.dtype:
        return Difference(output, np.inf, np.inf, rtol, atol, within=False)
    delta, magnitude = _deltas(got, want)
    relative = delta / np.maximum(magnitude, atol or 1.0)
    within = bool(np.all(delta <= atol + rtol * magnitude))
    return Difference(
        output, float(delta.max(initial=0.0)), float(relative.max(initial=0.0)), rtol, atol, within=within
    )


def distances(got: Array, want: Array) -> tuple[float, float]:
    """Return the largest difference over the largest magnitude of ``want``, and the ratio of the root mean squares.

    What is equal, NaN included, does not differ; what is not finite on one side only is infinitely far. Of integers and booleans both
    are the share of elements that differ. Arrays of other dims are infinitely far.
    """
    if got.shape != want.shape:
        return np.inf, np.inf
    if want.dtype.kind in "iub":
        share = float(np.mean(got != want)) if want.size else 0.0
        return share, share
    delta, magnitude = _deltas(got, want)
    scale, rms = float(magnitude.max(initial=0.0)), float(np.sqrt(np.mean(magnitude**2))) if want.size else 0.0
    largest, mean = float(delta.max(initial=0.0)), float(np.sqrt(np.mean(delta**2))) if want.size else 0.0
    return largest / (scale or 1.0), mean / (rms or 1.0)


def _deltas(got: Array, want: Array) -> tuple[Array, Array]:
    """Return per element the difference and the reference's magnitude: no difference between NaNs, and 0 for what is not finite."""
    a, b = got.astype(np.float64), want.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        delta = np.where(same, 0.0, np.abs(a - b))
    return np.where(np.isnan(delta), np.inf, delta), np.where(np.isfinite(b), np.abs(b), 0.0)


def is_constant(want: Array, other: Array | None, is_same: Callable[[Array, Array], bool]) -> bool:
    """Return whether an output says nothing of the program that computes it: any that ignores its inputs would be right.

    Args:
        want: The reference's output.
        other: The reference's output for other random inputs; None where no input is random, and one value everywhere has to tell.
        is_same: Whether the second array passes for the first one: the comparison in question.
    """
    if other is not None:
        return is_same(other, want)
    return want.size > 1 and bool(np.all((want == want.flat[0]) | ((want != want) & (want.flat[0] != want.flat[0]))))


@dataclass(frozen=True)
class OutputError:
    """How far one output of one program lies from ONNX Runtime's.

    Attributes:
        precision: what the program was compiled with.
        output: name of the output.
        largest: of all elements, relative to the largest magnitude of the reference; of integers and booleans the share that differs.
        rms: root mean square of the differences, relative to that of the reference.
        tolerance: on ``largest``.
        constant: whether that says nothing of the program, since the reference's output is the same for other inputs by that tolerance.
    """

    precision: str
    output: str
    largest: float
    rms: float
    tolerance: float
    constant: bool = False

    @property
    def within(self) -> bool:
        """Whether the largest error is within the tolerance."""
        return self.largest <= self.tolerance

    @property
    def verdict(self) -> bool | None:
        """What that says of the program: nothing where it is within, and constant."""
        return None if self.within and self.constant else self.within

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return {**asdict(self), "within": self.verdict}
