"""Matrix products, convolutions and pooling."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from .call import CONTRIB, OPSET, Array, Call
from .draws import (
    BF16,
    F32,
    FLOATS,
    MATMUL_FLOATS,
    PRODUCT_TYPES,
    Dims,
    array_of,
    broadcast_dims,
    dims_of,
    flag,
    one_of,
)
from .operators import Draw, operator

LOOSE = 8.0
"""Sums of up to some hundred products, in any order."""
_BYTES = (np.dtype(np.uint8), np.dtype(np.int8))


@operator("MatMul")
def _matmul(draw: Draw, op: str) -> Call:
    """Matrices, vectors on either side, batches that broadcast."""
    dtype = one_of(draw, *PRODUCT_TYPES)
    m, k, n = (one_of(draw, 1, 2, 3, 5, 8, 17, 33) for _ in range(3))
    left, right = broadcast_dims(draw, 2, most=3, empty=False)
    first: Dims = (*left, m, k)
    second: Dims = (*right, k, n)
    if not left and draw(st.booleans()):
        first = (k,)
    if not right and draw(st.booleans()):
        second = (k,)
    return Call(op, [array_of(draw, dtype, first), array_of(draw, dtype, second)], loose=LOOSE)


@operator("Gemm")
def _gemm(draw: Draw, op: str) -> Call:
    return Call(op, *_gemm_operands(draw, one_of(draw, *FLOATS)), loose=LOOSE)


def _gemm_operands(draw: Draw, dtype: np.dtype) -> tuple[list[Array], dict[str, object]]:
    m, k, n = (one_of(draw, 1, 2, 3, 8, 17) for _ in range(3))
    flags = {"transA": flag(draw), "transB": flag(draw)}
    operands = [array_of(draw, dtype, (k, m) if flags["transA"] else (m, k))]
    operands.append(array_of(draw, dtype, (n, k) if flags["transB"] else (k, n)))
    if draw(st.booleans()):
        operands.append(array_of(draw, dtype, one_of(draw, (m, n), (n,), (1, n), (m, 1), (1,), ())))
    return operands, {**flags, "alpha": one_of(draw, 1.0, 0.5, 2.0), "beta": one_of(draw, 1.0, 0.25, 0.0)}


@operator("FusedGemm", domain=CONTRIB)
def _fused_gemm(draw: Draw, op: str) -> Call:
    operands, attributes = _gemm_operands(draw, F32)
    activation = one_of(draw, "Relu", "Tanh", "Sigmoid")
    return Call(op, operands, {**attributes, "activation": activation}, domain=CONTRIB, loose=2 * LOOSE)


@operator("FusedMatMul", domain=CONTRIB)
def _fused_matmul(draw: Draw, op: str) -> Call:
    m, k, n = (one_of(draw, 1, 2, 3, 8, 17) for _ in range(3))
    batch = dims_of(draw, 0, 2, limit=20)
    flags = {"transA": flag(draw), "transB": flag(draw)}
    first = array_of(draw, F32, (*batch, *((k, m) if flags["transA"] else (m, k))))
    second = array_of(draw, F32, (*batch, *((n, k) if flags["transB"] else (k, n))))
    return Call(op, [first, second], {**flags, "alpha": one_of(draw, 1.0, 0.5)}, domain=CONTRIB, loose=LOOSE)


_EQUATIONS = (
    ("ij,jk->ik", "ab", "bc"), ("bij,bjk->bik", "xab", "xbc"), ("bhqd,bhkd->bhqk", "xyad", "xybd"), ("i,j->ij", "a", "b"),
    ("ij->ji", "ab"), ("ij->i", "ab"), ("ij->", "ab"), ("ij,ij->", "ab", "ab"), ("...ij,...jk->...ik", "xab", "xbc"),
    ("bij,kj->bik", "xab", "cb"), ("ij,jk,kl->il", "ab", "bc", "cd"), ("bqhd,bkhd->bhqk", "xayd", "xbyd"), ("ij,jk", "ab", "bc"),
)  # fmt: skip


@operator("Einsum")
def _einsum(draw: Draw, op: str) -> Call:
    equation, *labels = one_of(draw, *_EQUATIONS)
    sizes = {label: one_of(draw, 1, 2, 3, 5, 8) for label in "abcdxy"}
    dtype = one_of(draw, *PRODUCT_TYPES)
    operands = [array_of(draw, dtype, [sizes[label] for label in text]) for text in labels]
    return Call(op, operands, {"equation": equation}, loose=LOOSE)


def _windows(
    draw: Draw, spatial: int, kernel: list[int], *, dilated: bool = True
) -> tuple[dict[str, object], list[int]]:
    """Strides, dilations and padding of windows, and the least sizes they need."""
    strides = [draw(st.integers(1, 3)) for _ in range(spatial)]
    dilations = [draw(st.integers(1, 2)) if dilated else 1 for _ in range(spatial)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    attributes: dict[str, object] = {"strides": strides}
    if dilated:
        attributes["dilations"] = dilations
    auto = one_of(draw, "NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    if auto != "NOTSET":
        attributes.pop(
            "dilations", None
        )  # which ONNX Runtime does not take together with it, as it takes no gaps between windows
        attributes["strides"] = [min(s, k) for s, k in zip(strides, kernel, strict=True)]
        return {**attributes, "auto_pad": auto}, kernel
    most = [k - 1 for k in kernel]
    attributes["pads"] = [draw(st.integers(0, size)) for size in (*most, *most)]
    return attributes, reach


def _spatial(draw: Draw) -> tuple[int, list[int]]:
    spatial = draw(st.integers(1, 3))
    return spatial, [one_of(draw, 1, 2, 3) for _ in range(spatial)]


@operator("Conv")
def _conv(draw: Draw, op: str) -> Call:
    operands, attributes = _conv_operands(draw, one_of(draw, *MATMUL_FLOATS))
    return Call(op, operands, attributes, opset=_opset(operands), loose=LOOSE)


def _opset(operands: list[Array]) -> int:
    """The operator set from which on convolutions are of bf16 too, where they are."""
    return 22 if operands[0].dtype == BF16 else OPSET


def _conv_operands(draw: Draw, dtype: np.dtype) -> tuple[list[Array], dict[str, object]]:
    spatial, kernel = _spatial(draw)
    attributes, reach = _windows(draw, spatial, kernel)
    groups, each, makes = one_of(draw, 1, 1, 2, 3), one_of(draw, 1, 2, 3, 8), one_of(draw, 1, 2, 4)
    sizes = [size + draw(st.integers(0, 5)) for size in reach]
    x = array_of(draw, dtype, (draw(st.integers(1, 2)), groups * each, *sizes))
    operands = [x, array_of(draw, dtype, (groups * makes, each, *kernel))]
    if draw(st.booleans()):
        operands.append(array_of(draw, dtype, (groups * makes,)))
    if draw(st.booleans()):
        attributes["kernel_shape"] = kernel
    return operands, {**attributes, "group": groups}


@operator("FusedConv", domain=CONTRIB)
def _fused_conv(draw: Draw, op: str) -> Call:
    operands, attributes = _conv_operands(draw, F32)
    activation = one_of(draw, "Relu", "Tanh", "Sigmoid")
    return Call(op, operands, {**attributes, "activation": activation}, domain=CONTRIB, loose=2 * LOOSE)


@operator("ConvTranspose", rejected=0.05)
def _conv_transpose(draw: Draw, op: str) -> Call:
    dtype = one_of(draw, *MATMUL_FLOATS)
    spatial, kernel = _spatial(draw)
    attributes, reach = _windows(draw, spatial, kernel)
    groups, each, makes = one_of(draw, 1, 1, 2), one_of(draw, 1, 2, 3), one_of(draw, 1, 2, 3)
    sizes = [draw(st.integers(3, 6)) for _ in kernel]
    operands = [array_of(draw, dtype, (draw(st.integers(1, 2)), groups * each, *sizes))]
    operands.append(array_of(draw, dtype, (groups * each, makes, *kernel)))
    if draw(st.booleans()):
        operands.append(array_of(draw, dtype, (groups * makes,)))
    if "pads" in attributes and draw(st.booleans()):
        attributes["output_padding"] = [draw(st.integers(0, stride - 1)) for stride in attributes["strides"]]
    elif draw(st.booleans()):  # sizes that cut up to 3 elements, in which ONNX leaves `pads` out of account
        full = [(n - 1) * by + k for n, by, k in zip(sizes, attributes["strides"], reach, strict=True)]
        attributes["output_shape"] = [max(1, size - draw(st.integers(0, 3))) for size in full]
    return Call(op, operands, {**attributes, "group": groups}, opset=_opset(operands), loose=LOOSE)


@operator("LpPool", "AveragePool")
@operator("MaxPool", rejected=0.6)
def _pool(draw: Draw, op: str) -> Call:
    """Maxima with and without indices, which are rejected of dilated windows and with `auto_pad`."""
    dtype = one_of(draw, *MATMUL_FLOATS, *(_BYTES if op == "MaxPool" else ()))
    spatial, kernel = _spatial(draw)
    dilated = draw(st.booleans())
    attributes, reach = _windows(draw, spatial, kernel, dilated=dilated)
    sizes = [size + draw(st.integers(0, 5)) for size in reach]
    x = array_of(draw, dtype, (draw(st.integers(1, 2)), one_of(draw, 1, 3, 8), *sizes))
    attributes["kernel_shape"] = kernel
    if "pads" in attributes:
        attributes["ceil_mode"] = flag(draw)
    if op == "AveragePool":
        attributes["count_include_pad"] = flag(draw)
    if op == "LpPool":
        attributes["p"] = one_of(draw, 1, 2, 3)
    with_indices = op == "MaxPool" and draw(st.booleans())
    if with_indices:
        attributes["storage_order"] = int(spatial == 2 and flag(draw))
    return Call(op, [x], attributes, results=(True,) * (1 + with_indices), opset=22, loose=LOOSE)


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def _global_pool(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 3, 5, limit=1500)
    attributes = {"p": one_of(draw, 1, 2, 3)} if op == "GlobalLpPool" else {}
    return Call(op, [array_of(draw, one_of(draw, *MATMUL_FLOATS), dims)], attributes, loose=LOOSE)
