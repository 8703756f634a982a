"""Kernels for data that is repeated, mirrored or reduced, where neither a view nor hipDNN does it."""

import numpy as np

from hipdnn_mlir_runtime.dtypes import BOOL, I8, U8

from ..kernels import ELEMENTWISE, PAD
from ..registry import kernel
from ..spec import Call, OpView, Refusal
from .indexing import tensor
from .reduction import axes_of

_PAD_MODES = {
    "zeros": "zeros",
    "reflect": "reflect",
    "replicate": "edge",
    "edge": "edge",
    "circular": "wrap",
    "wrap": "wrap",
}


@kernel("aten.pad", "aten.constant_pad_nd", function=PAD, onnx=("Pad",))
def pad(op: OpView) -> Call:
    """(x, pads of the last dims first[, mode], value): the border is of zeros, of another byte, or made of the operand's own elements."""
    x, flat = tensor(op, 0), [int(size) for size in op.args[1]]
    mode, fill = op.args[2] if op.name.endswith("aten.pad") else "constant", op.args[-1] or 0
    if mode == "constant":
        if min(flat, default=0) < 0:
            raise Refusal("attribute", f"negative padding {flat}")
        if fill and not (
            x.type.dtype in (I8, U8) and np.iinfo(x.type.dtype.numpy).min <= fill <= np.iinfo(x.type.dtype.numpy).max
        ):
            raise Refusal("attribute", f"a border of {fill}")
        mode = "zeros"
    if mode not in _PAD_MODES:
        raise Refusal("attribute", f"pad mode {mode!r}")
    low = [0] * len(x.type.static_dims())
    for pair in range(len(flat) // 2):
        low[-1 - pair] = flat[2 * pair]
    filled = {"fill": int(fill)} if mode == "zeros" and fill else {}
    return Call(PAD, [x], {"low": low, "mode": _PAD_MODES[mode], **filled})


@kernel("aten.tile", "aten.repeat", function=ELEMENTWISE, onnx=("Tile",))
def tile(op: OpView) -> Call:
    """(x, repeats): read with stride 0 along a dim for the repeats of each dim."""
    x, repeats = tensor(op, 0), [int(count) for count in op.args[1]]
    dims = x.type.static_dims()
    dims = (1,) * (len(repeats) - len(dims)) + dims
    repeats = [1] * (len(dims) - len(repeats)) + repeats
    shown, result = [], []
    for size, count in zip(dims, repeats, strict=True):
        shown += [size] if count == 1 else [1, size]
        result += [size] if count == 1 else [count, size]
    code = [["load", 0], ["store", 1, 0]]
    return Call(ELEMENTWISE, [(x, tuple(shown))], {"code": code}, [tuple(result)])


@kernel("hipdnn.onnx.BitCast", function=ELEMENTWISE, onnx=("BitCast",), precision="wide")
def bit_cast(op: OpView) -> Call:
    """The same bits as another dtype of the same size."""
    x, kind = tensor(op, 0), op.results[0].dtype
    if x.type.dtype.bytes != kind.bytes:
        raise Refusal("dtype", f"bits of {x.type.dtype} as {kind}")
    return Call(ELEMENTWISE, [x], {"code": [["load", 0], ["store", 1, 0]]}, dtype=kind)


_REDUCTIONS = {
    "aten.sum.dim_IntList": ("add", "ReduceSum", 1), "aten.amax": ("max", "ReduceMax", 1), "aten.amin": ("min", "ReduceMin", 1),
    "aten.prod.dim_int": ("mul", "ReduceProd", 1), "aten.sum": ("add", "ReduceSum", 9), "aten.max": ("max", "ReduceMax", 9),
    "aten.min": ("min", "ReduceMin", 9),
}  # fmt: skip
_OF_BOOLEANS = {"max": "or", "min": "and"}


def _reduction(operator: str, where: int, op: OpView) -> Call:
    x, kind = tensor(op, 0), op.results[0].dtype
    dims = x.type.static_dims()
    if x.type.dtype is not kind:
        raise Refusal("dtype", f"reduction of {x.type.dtype} to {kind}")
    if kind is BOOL and operator not in _OF_BOOLEANS:
        raise Refusal("dtype", f"{op.name} of {kind}")
    axes = axes_of(op.args[where] if where < len(op.args) else None, len(dims))
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(dims))
    return Call("reduce", [x], {"operator": _OF_BOOLEANS.get(operator, operator) if kind is BOOL else operator}, [kept])


def _enter(name: str, operator: str, onnx: str, where: int) -> None:
    kernel(name, function="reduce", onnx=(onnx,))(lambda op: _reduction(operator, where, op))


for _name, (_operator, _onnx, _where) in _REDUCTIONS.items():
    _enter(_name, _operator, _onnx, _where)
