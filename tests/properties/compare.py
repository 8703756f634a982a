"""When two results are equal: exactly for integers and booleans, within a few roundings of the dtype for floats."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from .call import Array

ROUNDINGS = 16
"""Of the result itself; and of the largest one, which sums that cancel are measured by, half as many."""


def assert_same(got: Array, want: Array, loose: float = 1.0, atol: float = 0.0) -> None:
    """Assert equal dims and values; the caller knows the dtype.

    Args:
        got: The compiler's result.
        want: The reference's, of the same dtype or a wider one.
        loose: A factor on the tolerance of floats.
        atol: An absolute difference that is allowed.
    """
    assert got.shape == want.shape, f"dims {got.shape}, expected {want.shape}"
    if not is_float(got.dtype):
        assert not is_float(want.dtype), f"dtype {got.dtype}, expected {want.dtype}"
        if not atol:
            np.testing.assert_array_equal(got, want.astype(got.dtype))
            return
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=0, atol=atol)
        return
    assert is_float(want.dtype), f"dtype {got.dtype}, expected {want.dtype}"
    with np.errstate(over="ignore"):
        one, other = got.astype(np.float64), want.astype(got.dtype).astype(np.float64)
    eps = loose * float(ml_dtypes.finfo(got.dtype).eps)
    largest = np.max(np.abs(other), where=np.isfinite(other), initial=0.0)
    np.testing.assert_allclose(one, other, rtol=ROUNDINGS * eps, atol=max(ROUNDINGS / 2 * eps * largest, atol))


def is_float(dtype: np.dtype) -> bool:
    """Whether it is one of the floating-point types, bfloat16 included."""
    return dtype.kind == "f" or dtype == ml_dtypes.bfloat16
