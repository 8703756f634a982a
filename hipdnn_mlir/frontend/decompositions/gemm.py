"""Matmuls and convolutions with what is fused into them, and Einsum."""

import string
from collections.abc import Sequence

from ...ops.spec import Refusal
from .activation import activate
from .call import INT32, INT64, Call
from .registry import CONTRIB, decomposes

_TRANSPOSED = (("strides", 1), ("dilations", 1), ("output_padding", 0))
"""Attributes of a transposed convolution with what they are where they are left out."""


def _swapped(call: Call, x: str, is_batch: bool, is_last: bool) -> str:
    """The matrices of x with their rows moved before the batch dims where asked, then transposed where asked."""
    rank = call.rank(x)
    order = [*range(rank)]
    if is_batch:
        order = [*range(1, rank - 1), 0, rank - 1]
    if is_last:
        order[-2:] = reversed(order[-2:])
    return call.transpose(x, *order)


@decomposes("FusedMatMul", domain=CONTRIB)
def fused_matmul(call: Call) -> Sequence[str | None]:
    """The matmul alpha * op(A) x op(B).

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.FusedMatMul; the batch form follows its MatMul helper.
    """
    a, b = (
        _swapped(call, call.need(index), bool(call.attr(f"transBatch{name}", 0)), bool(call.attr(f"trans{name}", 0)))
        for index, name in enumerate("AB")
    )
    y, alpha = call.op("MatMul", a, b), call.attr("alpha", 1.0)
    return [y if alpha == 1.0 else call.scaled(y, alpha)]


@decomposes("Gemm")
def gemm(call: Call) -> Sequence[str | None] | None:
    """Gemm without a third operand, of which torch-mlir's conversion forgets alpha; all others stay.

    Source: ONNX, Gemm-13.
    """
    alpha, beta = call.attr("alpha", 1.0), call.attr("beta", 1.0)
    if call.kind(call.need(0)) in (INT32, INT64) and (alpha % 1 or beta % 1):
        raise Refusal("attribute", f"integers times alpha of {alpha} and beta of {beta}")
    if call.arg(2) is not None or alpha == 1.0:
        return None
    a, b = (
        _swapped(call, call.need(index), is_batch=False, is_last=bool(call.attr(f"trans{name}", 0)))
        for index, name in enumerate("AB")
    )
    y = call.op("MatMul", a, b)
    return [call.scaled(y, alpha)]


@decomposes("FusedGemm", domain=CONTRIB)
def fused_gemm(call: Call) -> Sequence[str | None]:
    """Gemm with an activation.

    Source: ONNX Runtime, contrib schema of FusedGemm.
    """
    names = ("alpha", "beta", "transA", "transB")
    y = call.op("Gemm", call.need(0), call.need(1), call.arg(2), **{name: call.attr(name) for name in names})
    parameters = [call.attr(name, 0.0) for name in ("activation_alpha", "activation_beta")]
    return [activate(call, y, call.attr("activation", ""), parameters)]


@decomposes("ConvTranspose")
def conv_transpose(call: Call) -> Sequence[str | None] | None:
    """ConvTranspose with other borders at the end than at the start, or with a size that it cuts: without any, and cut.

    Source: ONNX, ConvTranspose-11.
    """
    x, w = call.need(0), call.need(1)
    spatial = call.rank(x) - 2
    auto_pad = call.attr("auto_pad", "NOTSET")
    pads = call.attr("pads", [0] * (2 * spatial))
    before, after = pads[:spatial], pads[spatial:]
    stated = call.attr("output_shape")
    is_same = auto_pad in ("SAME_UPPER", "SAME_LOWER")
    if not stated and (auto_pad == "VALID" or (list(before) == list(after) and not is_same)):
        return None
    strides, dilations, grown = (call.attr(name, [one] * spatial) for name, one in _TRANSPOSED)
    inner, outer = ([call.size(name, 2 + axis) for axis in range(spatial)] for name in (x, w))
    sizes = [
        strides[axis] * (inner[axis] - 1) + grown[axis] + dilations[axis] * (outer[axis] - 1) + 1
        for axis in range(spatial)
    ]
    if is_same or stated:
        wanted = stated or [inner[axis] * strides[axis] for axis in range(spatial)]
        extra = [size - want for size, want in zip(sizes, wanted, strict=True)]
        smaller, larger = [total // 2 for total in extra], [total - total // 2 for total in extra]
        before, after = (smaller, larger) if auto_pad == "SAME_UPPER" else (larger, smaller)
    if min((*before, *after)) < 0:
        return None
    y = call.op(
        "ConvTranspose", x, w, call.arg(2), strides=strides, dilations=dilations, output_padding=grown,
        group=call.attr("group", 1),
    )  # fmt: skip
    for axis in range(spatial):
        if before[axis] or after[axis]:
            y = call.slice(y, 2 + axis, before[axis], sizes[axis] - after[axis])
    return [y]


@decomposes("FusedConv", domain=CONTRIB)
def fused_conv(call: Call) -> Sequence[str | None]:
    """Conv, plus a tensor of its shape, with an activation.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.FusedConv.
    """
    names = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    y = call.op("Conv", call.need(0), call.need(1), call.arg(2), **{name: call.attr(name) for name in names})
    added = call.arg(3)
    if added:
        y = call.op("Add", y, added)
    return [activate(call, y, call.attr("activation", ""), call.attr("activation_params", []))]


@decomposes("Einsum")
def einsum(call: Call) -> Sequence[str | None]:
    """Einsum by operands from left to right: sums, transpositions and one matmul each.

    Source: ONNX, Einsum-12.
    """
    operands = [call.need(index) for index in range(len(call.node.input))]
    terms, result = _terms(call, call.attr("equation").replace(" ", ""), operands)
    value, labels = operands[0], terms[0]
    value, labels = _diagonal(call, value, labels)
    for position in range(1, len(operands)):
        operand, term = _diagonal(call, operands[position], terms[position])
        later = set(result).union(*terms[position + 1 :])
        value, labels = _contract(call, value, labels, operand, term, later)
    value, labels = _summed(call, value, labels, set(result))
    return [call.transpose(value, *(labels.index(label) for label in result))]


def _terms(call: Call, equation: str, operands: list[str]) -> tuple[list[str], str]:
    """The operands' labels and the result's; what an ellipsis stands for gets labels of its own."""
    left, arrow, right = equation.partition("->")
    parts = left.split(",")
    if len(parts) != len(operands):
        raise Refusal("operand", f"the equation {equation!r} has {len(parts)} terms for {len(operands)} operands")
    spare = [letter for letter in string.printable if not letter.isspace() and letter not in equation]
    widths = [call.rank(x) - len(part.replace("...", "")) for x, part in zip(operands, parts, strict=True)]
    batch = "".join(spare[: max((w for w, part in zip(widths, parts, strict=True) if "..." in part), default=0)])
    terms = [
        part.replace("...", batch[len(batch) - width :] if width else "")
        for part, width in zip(parts, widths, strict=True)
    ]
    if arrow:
        return terms, right.replace("...", batch)
    every = "".join(terms)
    return terms, batch + "".join(sorted(label for label in set(every) - set(batch) if every.count(label) == 1))


def _diagonal(call: Call, x: str, labels: str) -> tuple[str, str]:
    """The diagonal over labels that an operand repeats."""
    while len(set(labels)) < len(labels):
        label = next(found for found in labels if labels.count(found) > 1)
        first, second = labels.index(label), labels.rindex(label)
        order = [axis for axis in range(len(labels)) if axis not in (first, second)]
        x = call.transpose(x, *order, first, second)
        eye = call.op(
            "EyeLike",
            call.op("ConstantOfShape", call.concat(0, call.length(x, -2), call.length(x, -1))),
            dtype=call.kind(x),
        )
        x = call.reduce("ReduceSum", call.op("Mul", x, eye), [-1], keepdims=False)
        labels = "".join(labels[axis] for axis in order) + label
    return x, labels


def _summed(call: Call, x: str, labels: str, kept: set[str]) -> tuple[str, str]:
    """Sum over the labels that nothing needs any more."""
    axes = [axis for axis, label in enumerate(labels) if label not in kept]
    if not axes:
        return x, labels
    return call.reduce("ReduceSum", x, axes, keepdims=False), "".join(label for label in labels if label in kept)


def _contract(call: Call, a: str, a_labels: str, b: str, b_labels: str, later: set[str]) -> tuple[str, str]:
    """Multiply two operands and sum over the labels they share that nothing later needs."""
    a, a_labels = _summed(call, a, a_labels, later | set(b_labels))
    b, b_labels = _summed(call, b, b_labels, later | set(a_labels))
    shared = [label for label in a_labels if label in b_labels]
    batch = [label for label in shared if label in later]
    inner = [label for label in shared if label not in later]
    rows = [label for label in a_labels if label not in shared]
    columns = [label for label in b_labels if label not in shared]
    if not inner:
        return _outer(call, a, a_labels, b, b_labels)
    left = call.transpose(a, *(a_labels.index(label) for label in (*batch, *rows, *inner)))
    right = call.transpose(b, *(b_labels.index(label) for label in (*batch, *inner, *columns)))
    left = _merged(call, left, len(batch), len(rows), len(inner))
    right = _merged(call, right, len(batch), len(inner), len(columns))
    y = call.op("MatMul", left, right)
    if len(rows) == 1 and len(columns) == 1:
        return y, "".join((*batch, *rows, *columns))
    sizes = [call.length(a, a_labels.index(label)) for label in (*batch, *rows)]
    sizes += [call.length(b, b_labels.index(label)) for label in columns]
    shape = call.concat(0, *sizes) if sizes else call.ints()
    return call.op("Reshape", y, shape), "".join((*batch, *rows, *columns))


def _outer(call: Call, a: str, a_labels: str, b: str, b_labels: str) -> tuple[str, str]:
    """Elementwise product over all labels of both."""
    labels = a_labels + "".join(label for label in b_labels if label not in a_labels)
    a = call.unsqueeze(a, *range(len(a_labels), len(labels))) if len(labels) > len(a_labels) else a
    order = sorted(range(len(b_labels)), key=lambda axis: labels.index(b_labels[axis]))
    b = call.transpose(b, *order)
    missing = [axis for axis, label in enumerate(labels) if label not in b_labels]
    return call.op("Mul", a, call.unsqueeze(b, *missing) if missing else b), labels


def _merged(call: Call, x: str, batch: int, first: int, second: int) -> str:
    """[batch..., first..., second...] -> [batch..., product of first, product of second]."""
    if first == second == 1:
        return x
    if first == 1:
        return call.reshape(x, *[0] * (batch + 1), -1)
    sizes = [call.ints(0)] * batch + [call.ints(-1)]
    rank = batch + first + second
    if second == 0:
        return call.op("Reshape", x, call.concat(0, *sizes, call.ints(1)))
    if second == 1:
        return call.op("Reshape", x, call.concat(0, *sizes, call.length(x, rank - 1)))
    product = call.op("ReduceProd", call.op("Shape", x, start=batch + first), keepdims=1)
    return call.op("Reshape", x, call.concat(0, *sizes, product))
