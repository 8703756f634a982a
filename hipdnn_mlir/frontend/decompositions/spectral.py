"""Fourier transforms as matmuls with constant matrices, and window functions."""

import math
from collections.abc import Sequence

import numpy as np

from ...ops.evaluate import Array
from ...ops.spec import Refusal
from .call import Call
from .registry import decomposes

MAX_MATRIX_ELEMENTS = 1 << 24
"""A transform of a longer signal would take too large a matrix."""


def _matrix(samples: int, parts: int, length: int, bins: int, sign: float) -> Array:
    """[samples * parts, bins * 2]: from real or complex samples to complex bins.

    Args:
        samples: numbers of a signal; those behind `length` do not count.
        parts: 1 for real samples, 2 for complex ones.
        length: of the transform.
        bins: how many results.
        sign: -1 forward, 1 inverse, which is not divided by the length here.
    """
    if samples * parts * bins * 2 > MAX_MATRIX_ELEMENTS:
        raise Refusal("shape", f"a Fourier transform of {samples} samples into {bins} bins")
    angles = sign * 2 * np.pi / length * (np.outer(np.arange(samples), np.arange(bins)) % length)
    angles = np.where(np.arange(samples)[:, None] < length, angles, np.nan)
    cos, sin = np.nan_to_num(np.cos(angles)), np.nan_to_num(np.sin(angles))
    real = np.stack([cos, sin], -1)  # of a real part to both
    if parts == 1:
        return real.reshape(samples, bins * 2)
    return np.stack([real, np.stack([-sin, cos], -1)], 1).reshape(samples * 2, bins * 2)


def _real_matrix(samples: int, length: int) -> Array:
    """[samples * 2, length]: from the first half of a spectrum to the real signal, not divided by the length."""
    if samples * 2 * length > MAX_MATRIX_ELEMENTS:
        raise Refusal("shape", f"a Fourier transform of {samples} bins into {length} samples")
    bins = np.arange(samples)
    angles = 2 * np.pi / length * (np.outer(bins, np.arange(length)) % length)
    mirrored = np.where((bins == 0) | (2 * bins == length), 1.0, 2.0) * (2 * bins <= length)
    matrix: Array = (
        np.stack([np.cos(angles), -np.sin(angles)], 1).reshape(samples * 2, length) * np.repeat(mirrored, 2)[:, None]
    )
    return matrix


@decomposes("DFT")
def dft(call: Call) -> Sequence[str | None]:
    """DFT along one axis, forward or inverse, one-sided or not.

    Source: ONNX, DFT-17 and -20.
    """
    x, given = call.need(0), call.arg(1)
    rank = call.rank(x)
    axis = call.axis(x, _axis(call, x))
    is_inverse, is_onesided = bool(call.attr("inverse", 0)), bool(call.attr("onesided", 0))
    samples, parts = call.size(x, axis), call.size(x, -1)
    default = 2 * (samples - 1) if is_inverse and is_onesided else samples
    length = call.known_number(given) if given else default
    if length < 1 or axis == rank - 1:
        raise Refusal("shape", f"a Fourier transform of length {length} along axis {axis} of {rank}")
    order = [*(d for d in range(rank - 1) if d != axis), axis, rank - 1]
    flat = call.reshape(call.transpose(x, *order), *[0] * (rank - 2), -1)
    if is_inverse and is_onesided:
        matrix, shape = _real_matrix(samples, length) / length, (length, 1)
    else:
        bins = length // 2 + 1 if is_onesided else length
        matrix, shape = _matrix(samples, parts, length, bins, 1.0 if is_inverse else -1.0), (bins, 2)
        matrix = matrix / length if is_inverse else matrix
    y = call.op("MatMul", flat, call.const(matrix, call.kind(x)))
    y = call.reshape(y, *[0] * (rank - 2), *shape)
    return [call.transpose(y, *np.argsort(order).tolist())]


def _axis(call: Call, x: str) -> int:
    """The axis of a DFT: given, or the only one that differs between operand and result."""
    given = call.arg(2)
    if given is None:
        return int(call.attr("axis", 1 if call.opset < 20 else -2))
    pairs = (
        zip(call.dims(x)[:-1], call.dims(call.node.output[0])[:-1], strict=True) if call.value(given) is None else ()
    )
    differing = [axis for axis, (before, after) in enumerate(pairs) if before != after]
    return differing[0] if len(differing) == 1 else call.known_number(given)


@decomposes("STFT")
def stft(call: Call) -> Sequence[str | None]:
    """STFT: frames times window times matrix, which is a convolution with strides.

    Source: ONNX, STFT-17.
    """
    signal, window = call.need(0), call.arg(2)
    step, parts = call.known_number(call.need(1)), call.size(signal, 2)
    given = call.arg(3)
    default = call.size(window, 0) if window else call.size(signal, 1)
    length = call.known_number(given) if given else default
    if step < 1 or length < 1:
        raise Refusal("operand", f"frames of {length} samples, each {step} behind the last")
    bins = length // 2 + 1 if call.attr("onesided", 1) else length
    matrix = _matrix(length, parts, length, bins, -1.0).reshape(length, parts, bins * 2).transpose(2, 1, 0)
    weights = call.const(matrix, call.kind(signal))
    if window:
        weights = call.op("Mul", weights, window)
    y = call.op("Conv", call.transpose(signal, 0, 2, 1), weights, strides=[step])
    return [call.reshape(call.transpose(y, 0, 2, 1), 0, 0, bins, 2)]


_WINDOWS = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}


@decomposes(*_WINDOWS)
def window(call: Call) -> Sequence[str | None]:
    """HannWindow, HammingWindow, BlackmanWindow of a size that is known.

    Source: ONNX, the operators with these names, version 17.
    """
    known = call.sizing(call.need(0))
    size = call.known_number(call.need(0)) if known is not None else call.size(call.node.output[0], 0)
    if not 0 <= size <= MAX_MATRIX_ELEMENTS:
        raise Refusal("shape", f"a window of {size} elements, expected at most {MAX_MATRIX_ELEMENTS}")
    mean, first, second = _WINDOWS[call.node.op_type]
    with np.errstate(invalid="ignore"):  # a symmetric window of one element is not a number
        angles = np.arange(size) * math.tau / np.float64(size if call.attr("periodic", 1) else size - 1)
    values = mean - first * np.cos(angles) + second * np.cos(2 * angles)
    return [call.const(values, call.float_kind("output_datatype"))]
