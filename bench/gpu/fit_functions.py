"""Fits the polynomials of hipdnn_mlir/codegen/math/coefficients.py: prints that module. Needs mpmath.

Each is the Chebyshev fit, in 60 digits, of a function that is smooth where it is used; the degree is the least whose error is below a
quarter of a unit in the last place of the type.
"""

from collections.abc import Callable
from typing import Any

import mpmath as mp

mp.mp.dps = 60
SMALL = mp.mpf(10) ** -14


def series(function: Callable[[Any], Any], at_zero: Any) -> Callable[[Any], Any]:
    """A function of z with its limit at 0."""
    return lambda z: at_zero if abs(z) < SMALL**2 else function(z)


FITS: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    # exp(r) = 1 + r + r^2 E(r)
    "EXP": (series(lambda r: (mp.exp(r) - 1 - r) / r**2, mp.mpf(1) / 2), -0.34658, 0.34658),
    # log(1 + f) = f - s (f - z L(z)), s = f / (2 + f), z = s^2
    "LOG": (series(lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z, mp.mpf(2) / 3), 1e-24, 0.02945),
    # sin(x) = x + x z S(z), cos(x) = 1 - z / 2 + z^2 C(z), z = x^2
    "SIN": (series(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, -mp.mpf(1) / 6), 1e-24, 0.6169),
    "COS": (series(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, mp.mpf(1) / 24), 1e-24, 0.6169),
    # asin(x) = x + x z A(z)
    "ASIN": (series(lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mp.mpf(1) / 6), 1e-24, 0.25),
    "ATAN": (series(lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, -mp.mpf(1) / 3), 1e-24, 0.1717),
    "SINH": (series(lambda z: (mp.sinh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mp.mpf(1) / 6), 1e-24, 1.0),
    "TANH": (series(lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, -mp.mpf(1) / 3), 1e-24, 0.36),
    # erf(x) = x ERF(z) near 0; elsewhere 1 - exp(-x^2) ERFC(t) where t = ((x - 1) - 2.5) / ((x - 1) + 2.5), x from 1 on
    "ERF": (series(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z), 2 / mp.sqrt(mp.pi)), 1e-24, 1.0),
    "ERFC": (lambda t: mp.erfc(_of(t)) * mp.exp(_of(t) ** 2) * (_of(t) + mp.mpf(1.5)), -1, 0.45),
}


def _of(t: Any) -> Any:
    return 1 + mp.mpf(2.5) * (1 + t) / (1 - t)


SHORT: dict[str, tuple[Callable[[Any], Any], Any, Any, int]] = {
    # What 16 bits need (hipdnn_mlir/codegen/math/short_functions.py), and the number of terms that has errors of about 2^-17.
    "TANH": (FITS["TANH"][0], 1e-24, 0.0625, 2),
    "ERF": (FITS["ERF"][0], 1e-24, 0.25, 3),
    # log(1 + f) = f L(f)
    "NEAR_LOG": (series(lambda f: mp.log(1 + f) / f, mp.mpf(1)), -1 / 16, 1 / 16, 4),
    # Q(a) = exp(-a^2 / 2) t N(t), t = 1 / (1 + 0.31 a), a to 13.5; the slope is the best of those with two digits
    "NORMAL": (lambda t: _rest((1 / t - 1) / mp.mpf(0.31)) / t, 1 / (1 + mp.mpf(0.31) * mp.mpf(13.5)), 1, 6),
}


def _rest(a: Any) -> Any:
    return mp.erfc(a / mp.sqrt(2)) / 2 * mp.exp(a * a / 2)


def fitted(name: str, bits: int) -> tuple[list[Any], Any]:
    """Coefficients, of the highest power first, and the error relative to the function's greatest value."""
    function, low, high = FITS[name]
    scale = max(abs(function(mp.mpf(low) + (mp.mpf(high) - low) * k / 16)) for k in range(17))
    if name in ("EXP", "LOG", "SIN", "COS", "ASIN", "ATAN", "SINH", "TANH"):  # a correction: the leading term is exact
        scale /= max(abs(mp.mpf(low)), abs(mp.mpf(high))) * scale
    for terms in range(2, 40):
        coefficients, error = mp.chebyfit(function, [low, high], terms, error=True)
        if error < scale * mp.mpf(2) ** (-bits - 3):
            return coefficients, error / scale
    raise ValueError(name)


def show(width: int, coefficients: list[Any], error: Any) -> None:
    """Print the polynomial for a type of a width."""
    numbers = ", ".join(mp.nstr(c, 20 if width == 64 else 12, strip_zeros=False) for c in coefficients)
    print(f"        {width}: ({numbers}),  # {mp.nstr(error, 2)}")


def main() -> None:
    """Print the module."""
    print(
        '"""Coefficients of polynomials, highest power first, by bits of the float type; made by bench/gpu/fit_functions.py."""\n'
    )
    print("COEFFICIENTS: dict[str, dict[int, tuple[float, ...]]] = {")
    for name in {**FITS, **SHORT}:
        print(f'    "{name}": {{')
        if name in SHORT:
            function, low, high, terms = SHORT[name]
            show(16, *mp.chebyfit(function, [low, high], terms, error=True))
        if name in FITS:
            show(32, *fitted(name, 24))
            show(64, *fitted(name, 53))
        print("    },")
    print("}")


if __name__ == "__main__":
    main()
