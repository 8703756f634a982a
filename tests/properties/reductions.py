"""Reductions, softmax, norms and scans."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from .call import CONTRIB, Call, Known
from .draws import (
    F32,
    FLOATS,
    INTEGERS,
    MATMUL_FLOATS,
    array_of,
    axes_of,
    axis_of,
    dims_of,
    dtype_of,
    flag,
    ints,
    one_of,
)
from .operators import Draw, operator


@operator("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
          "ReduceSumSquare", rejected=0.2)  # fmt: skip
def _reduce(draw: Draw, op: str) -> Call:
    """Axes as an operand, or as the attribute that they were before; none of them; without any the node may do nothing.

    Means of u32 and u64 are rejected: hipDNN has no such type.
    """
    opset = one_of(draw, 17, 18, 20) if op != "ReduceSum" else 18
    # onnx lists more types than ONNX Runtime computes logarithms and roots of
    among = FLOATS if "L" in op.removeprefix("Reduce") and op != "ReduceL1" else (*FLOATS, *INTEGERS)
    dtype = dtype_of(draw, op, among=among, opset=opset)
    is_empty = op in ("ReduceSum", "ReduceProd", "ReduceL1", "ReduceSumSquare")
    dims = dims_of(draw, 0, 5, empty=is_empty, limit=800)
    positive = op == "ReduceLogSum"
    product = {"low": 0.5, "high": 1.5} if op == "ReduceProd" else {}
    x = array_of(draw, dtype, dims, **({"low": 0.5} if positive else product))
    if op == "ReduceProd" and dtype in INTEGERS:
        x = np.ones_like(x) + (np.arange(x.size).reshape(x.shape) % 17 == 0).astype(dtype)
    axes = axes_of(draw, len(dims))
    attributes: dict[str, object] = {"keepdims": flag(draw)}
    reference = "onnx" if 0 in dims else "onnxruntime"  # which does not drop a dim of size 0
    if opset < 18 and op != "ReduceSum":
        return Call(op, [x], attributes | ({"axes": axes} if axes else {}), opset=opset, loose=4.0, reference=reference)
    attributes["noop_with_empty_axes"] = flag(draw) if axes or op in ("ReduceSum", "ReduceMean", "ReduceMax") else 0
    known = [Known(ints(*axes))] if axes or draw(st.booleans()) else []
    return Call(op, [x, *known], attributes, opset=opset, loose=4.0, reference=reference)


@operator("Softmax", "LogSoftmax", "Hardmax")
def _softmax(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 1, 5)
    dtype = dtype_of(draw, op, among=FLOATS)
    return Call(op, [array_of(draw, dtype, dims)], {"axis": axis_of(draw, len(dims))}, loose=4.0)


@operator("CumSum", "CumProd")
def _scan(draw: Draw, op: str) -> Call:
    opset = 26 if op == "CumProd" else 14
    dtype = dtype_of(draw, op, opset=opset)
    dims = dims_of(draw, 1, 4)
    x = array_of(draw, dtype, dims, low=0.5, high=2) if op == "CumProd" else array_of(draw, dtype, dims)
    axis = np.array(axis_of(draw, len(dims)), one_of(draw, np.int32, np.int64))
    return Call(
        op,
        [x, Known(axis) if draw(st.booleans()) else axis],
        {"exclusive": flag(draw), "reverse": flag(draw)},
        opset=opset,
        loose=8.0,
    )


@operator("BatchNormalization")
def _batch_norm(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 2, 5, limit=1500)
    dtype = one_of(draw, *MATMUL_FLOATS)
    scale, bias, mean = (array_of(draw, dtype, dims[1:2]) for _ in range(3))
    variance = array_of(draw, dtype, dims[1:2], low=0.5, high=3)
    return Call(
        op, [array_of(draw, dtype, dims), scale, bias, mean, variance], {"epsilon": one_of(draw, 1e-5, 0.25)}, loose=4.0
    )


@operator("InstanceNormalization", "GroupNormalization")
def _instance_norm(draw: Draw, op: str) -> Call:
    n, c, *spatial = dims_of(draw, 3, 5, limit=600)
    dtype = one_of(draw, *FLOATS)
    attributes: dict[str, object] = {"epsilon": one_of(draw, 1e-5, 0.25)}
    if op == "GroupNormalization":
        attributes["num_groups"] = groups = one_of(draw, 1, 2, 3)
        c = groups * (c % 4 + 1)
    spatial[0] = max(spatial[0], 3)  # the norm of two numbers has no more digits than their difference
    scale, bias = (array_of(draw, dtype, (c,)) for _ in range(2))
    # The precision of its norm is an attribute, f32 by default.
    atol = 1e-5 if op == "GroupNormalization" else 0.0
    return Call(op, [array_of(draw, dtype, (n, c, *spatial)), scale, bias], attributes, loose=16.0, atol=atol)


@operator("LayerNormalization")
def _layer_norm(draw: Draw, op: str) -> Call:
    x, parts, attributes = _rows(draw)
    bias = [array_of(draw, x.dtype, parts)] if draw(st.booleans()) else []
    return Call(op, [x, array_of(draw, x.dtype, parts), *bias], attributes, loose=16.0, atol=1e-5)  # in f32 by default


def _rows(draw: Draw) -> tuple[np.ndarray, tuple[int, ...], dict[str, object]]:
    """What is normalized, the dims of its scale, and the attributes."""
    dims = dims_of(draw, 1, 4, limit=800)
    axis = axis_of(draw, len(dims))
    dims = (*dims[:-1], max(dims[-1], 3))
    return array_of(draw, one_of(draw, *FLOATS), dims), dims[axis:], {"axis": axis, "epsilon": one_of(draw, 1e-5, 0.25)}


@operator("RMSNormalization")
def _rms_norm(draw: Draw, op: str) -> Call:
    x, parts, attributes = _rows(draw)
    return Call(
        op, [x, array_of(draw, x.dtype, parts)], attributes, opset=23, loose=8.0, atol=1e-5
    )  # in f32 by default


@operator("SimplifiedLayerNormalization", domain=CONTRIB)
def _simplified_norm(draw: Draw, op: str) -> Call:
    dims = (*dims_of(draw, 1, 2, limit=200), one_of(draw, 4, 7, 16))
    x, scale = array_of(draw, F32, dims), array_of(draw, F32, dims[-1:])
    return Call(op, [x, scale], {"axis": -1, "epsilon": 1e-5, "stash_type": 1}, domain="", loose=8.0)


@operator("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=CONTRIB)
def _skip_norm(draw: Draw, op: str) -> Call:
    dims = (*dims_of(draw, 2, 2, limit=200), one_of(draw, 4, 7, 16))
    x, skip = (array_of(draw, F32, dims) for _ in range(2))
    vectors = [array_of(draw, F32, dims[-1:]) for _ in range(3 if op == "SkipLayerNormalization" else 2)]
    operands = [x, skip, *(vectors if draw(st.booleans()) else vectors[:-1])]
    results = (True, False, False, True) if draw(st.booleans()) else (True,)
    return Call(op, operands, {"epsilon": 1e-5}, results, domain=CONTRIB, loose=16.0)


@operator("LRN")
def _lrn(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 4, 4, limit=800)
    dtype = one_of(draw, *MATMUL_FLOATS)
    attributes = {"size": one_of(draw, 1, 3, 5), "alpha": 0.25, "beta": one_of(draw, 0.5, 0.75), "bias": 1.5}
    return Call(op, [array_of(draw, dtype, dims)], attributes, loose=4.0)


@operator("LpNormalization")
def _lp_norm(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 1, 4, limit=800)
    dtype = dtype_of(draw, op, among=FLOATS, opset=22)
    return Call(
        op,
        [array_of(draw, dtype, dims)],
        {"axis": axis_of(draw, len(dims)), "p": one_of(draw, 1, 2)},
        opset=22,
        loose=8.0,
    )


@operator("MeanVarianceNormalization")
def _mean_variance(draw: Draw, op: str) -> Call:
    dims = (*dims_of(draw, 3, 3, limit=200), 5)
    dtype = one_of(draw, *MATMUL_FLOATS)
    return Call(op, [array_of(draw, dtype, dims)], {"axes": one_of(draw, [0, 2, 3], [2, 3], [3], [1, 3])}, loose=16.0)
