"""Sample cases per row of the table: calls that a target must take, and calls that a row must refuse, with the rule that does.

The tests turn each into torch IR and ask the offload pass; a row without both kinds fails them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from .. import dtypes
from ..dtypes import DType
from .spec import OpView, TensorArg, TensorType

ONEDNN, ROWWISE, REDUCTION = "HOST_ONEDNN_ENGINE", "HOST_ROWWISE_ENGINE", "HOST_REDUCTION_ENGINE"
SDPA = "HOST_SDPA_ENGINE"
MOVEMENT = ""
KERNEL = "kernel"


@dataclass(frozen=True)
class Number:
    """A tensor of rank 0 whose number is known at compile time."""

    value: float | int
    dtype: DType = dtypes.F32


@dataclass(frozen=True)
class Sample:
    """One call of an op.

    Attributes:
        op: as in the table.
        args: a TensorType for an operand of the caller, a Number, or a Python value (None, numbers, strings, lists); for an ONNX operator
            a list stands for an operand that is known at compile time.
        results: types of the results, the first of which is used (all where `uses_all`).
        engine: of target `host` where accepted; MOVEMENT for data movement, KERNEL for a launch.
        rule: that refuses it, or None where it is accepted.
        uses_all: whether the caller takes every result.
        attributes: of an ONNX operator.
    """

    op: str
    args: tuple[Any, ...]
    results: tuple[TensorType, ...]
    engine: str = MOVEMENT
    rule: str | None = None
    uses_all: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def with_dtype(self, old: DType, new: DType) -> "Sample":
        """The same call with every tensor of dtype `old` in `new`."""

        def change(arg: Any) -> Any:
            if isinstance(arg, list):
                return [change(item) for item in arg]
            if isinstance(arg, TensorType) and arg.dtype is old:
                return TensorType(arg.dims, new)
            return Number(arg.value, new) if isinstance(arg, Number) and arg.dtype is old else arg

        return replace(
            self, args=tuple(change(arg) for arg in self.args), results=tuple(change(kind) for kind in self.results)
        )

    def view(self) -> OpView:
        """The call as the table sees it."""
        keys = count()

        def seen(arg: Any) -> Any:
            if isinstance(arg, list):
                return [seen(item) for item in arg]
            if isinstance(arg, TensorType):
                return TensorArg(next(keys), arg)
            return TensorArg(next(keys), TensorType((), arg.dtype), arg.value) if isinstance(arg, Number) else arg

        used = [index == 0 or self.uses_all for index in range(len(self.results))]
        return OpView(self.op, [seen(arg) for arg in self.args], self.results, used=used, attributes=self.attributes)

    def __str__(self) -> str:
        """A name for test reports."""
        shown = ",".join(str(a) for a in self.args if isinstance(a, TensorType))
        return f"{self.op.removeprefix('torch.').removeprefix('hipdnn.')}({shown})-{self.rule or 'accepted'}"


def _kind(dtype: DType, *dims: int | None) -> TensorType:
    return TensorType(dims, dtype)


def f32(*dims: int | None) -> TensorType:
    """A tensor type of f32."""
    return _kind(dtypes.F32, *dims)


def f64(*dims: int) -> TensorType:
    """A tensor type of f64."""
    return _kind(dtypes.F64, *dims)


def i16(*dims: int) -> TensorType:
    """A tensor type of i16, which hipDNN has not."""
    return _kind(dtypes.I16, *dims)


def i64(*dims: int | None) -> TensorType:
    """A tensor type of i64."""
    return _kind(dtypes.I64, *dims)


def i32(*dims: int) -> TensorType:
    """A tensor type of i32."""
    return _kind(dtypes.I32, *dims)


def bools(*dims: int) -> TensorType:
    """A tensor type of bool."""
    return _kind(dtypes.BOOL, *dims)


def samples() -> list[Sample]:
    """Every sample, in the order of the families."""
    found: list[Sample] = []
    for family in (_convolution, _matmul, _attention, _reshapes, _views, _joins, _normalization, _unary, _binary, _compositions, _casts,
                   _fills, _pooling,
                   _reductions, _softmaxes, _maps, _indexing, _sorting, _rearranging):  # fmt: skip
        found += family()
    return found


def _accept(op: str, engine: str, args: Sequence[Any], *results: TensorType, **attributes: Any) -> Sample:
    return Sample(_row(op), tuple(args), results, engine, attributes=attributes)


def _reject(
    op: str, rule: str, args: Sequence[Any], *results: TensorType, uses_all: bool = False, **attributes: Any
) -> Sample:
    return Sample(_row(op), tuple(args), results, rule=rule, uses_all=uses_all, attributes=attributes)


def _row(op: str) -> str:
    """The name of a row: `aten.relu` is a torch op, `Gather` an ONNX operator."""
    return f"torch.{op}" if op[0].islower() or op[0] == "_" else f"hipdnn.onnx.{op}"


def _convolution() -> Iterator[Sample]:
    def call(
        x: TensorType, w: TensorType, *, bias: Any = None, spatial: int = 2, transposed: bool = False, groups: int = 1
    ) -> list[Any]:
        ones, zeros = [1] * spatial, [0] * spatial
        return [x, w, bias, ones, ones, ones, transposed, zeros, groups]

    op = "aten.convolution"
    yield _accept(op, ONEDNN, call(f32(1, 4, 8, 8), f32(6, 4, 3, 3), bias=f32(6)), f32(1, 6, 8, 8))
    yield _accept(op, ONEDNN, call(f32(1, 4, 8), f32(6, 2, 3), spatial=1, groups=2), f32(1, 6, 8))
    yield _accept(op, ONEDNN, call(f32(1, 4, 4, 4, 4), f32(6, 4, 3, 3, 3), spatial=3), f32(1, 6, 4, 4, 4))
    yield _accept(op, ONEDNN, call(f32(1, 4, 8, 8), f32(4, 6, 3, 3), transposed=True), f32(1, 6, 8, 8))
    yield _reject(op, "rank", call(f32(1, 1, 3, 3, 3, 3), f32(1, 1, 3, 3, 3, 3), spatial=4), f32(1, 1, 3, 3, 3, 3))
    yield _reject(op, "dtype", call(f64(1, 4, 8, 8), f64(6, 4, 3, 3)), f64(1, 6, 8, 8))
    yield _reject(op, "shape", call(f32(1, 4, 8, 8), f32(6, 3, 3, 3)), f32(1, 6, 8, 8))
    yield _reject(op, "dynamic-shape", call(f32(None, 4, 8, 8), f32(6, 4, 3, 3)), f32(None, 6, 8, 8))


def _matmul() -> Iterator[Sample]:
    yield _accept("aten.mm", ONEDNN, [f32(2, 3), f32(3, 4)], f32(2, 4))
    yield _reject("aten.mm", "dtype", [f64(2, 3), f64(3, 4)], f64(2, 4))
    yield _accept("aten.bmm", ONEDNN, [f32(5, 2, 3), f32(5, 3, 4)], f32(5, 2, 4))
    yield _reject("aten.bmm", "dtype", [i32(5, 2, 3), i32(5, 3, 4)], i32(5, 2, 4))
    yield _accept("aten.matmul", ONEDNN, [f32(7, 1, 2, 3), f32(5, 3, 4)], f32(7, 5, 2, 4))
    yield _accept("aten.matmul", ONEDNN, [f32(3), f32(3, 4)], f32(4))
    yield _accept("aten.matmul", ONEDNN, [f32(2, 3), f32(3)], f32(2))
    yield _reject("aten.matmul", "shape", [f32(2, 3), f32(4, 3)], f32(2, 3))
    yield _accept("aten.addmm", ONEDNN, [f32(4), f32(2, 3), f32(3, 4), 1, 1], f32(2, 4))
    yield _reject("aten.addmm", "dtype", [f64(4), f64(2, 3), f64(3, 4), 1, 1], f64(2, 4))


def _attention() -> Iterator[Sample]:
    op, q, kv = "aten.scaled_dot_product_attention", f32(2, 4, 5, 8), f32(2, 2, 7, 8)
    plain = [0.0, False, None, False]
    yield _accept(op, SDPA, [q, q, q, None, 0.0, True, 0.5, False], q)
    yield _accept(op, SDPA, [q, kv, kv, f32(5, 7), 0.0, False, None, True], q)
    yield _accept(op, SDPA, [q, q, q, bools(2, 1, 1, 5), *plain], q)
    yield _accept(op, SDPA, [f32(2, 5, 8), f32(2, 7, 8), f32(2, 7, 6), f32(2, 5, 7), *plain], f32(2, 5, 6))
    yield _reject(op, "shape", [q, kv, kv, None, *plain], q)
    yield _reject(op, "mask", [q, q, q, f32(4, 5), *plain], q)
    yield _reject(op, "mask", [q, q, q, i32(5, 5), *plain], q)
    yield _reject(op, "attribute", [q, q, q, None, 0.5, False, None, False], q)
    yield _reject(op, "rank", [f32(5, 8), f32(5, 8), f32(5, 8), None, *plain], f32(5, 8))
    yield _reject(op, "dtype", [f64(2, 4, 5, 8)] * 3 + [None, *plain], f64(2, 4, 5, 8))


def _reshapes() -> Iterator[Sample]:
    open_dim = f32(None, 3)
    for op in ("aten.view", "aten.reshape"):
        yield _accept(op, MOVEMENT, [f32(2, 3, 4), [6, -1]], f32(6, 4))
        yield _reject(op, "shape", [f32(2, 3), [4, 2]], f32(4, 2))
    yield _accept("prims.collapse", MOVEMENT, [f32(2, 3, 4), 0, 1], f32(6, 4))
    yield _reject("prims.collapse", "dynamic-shape", [f32(None, 3, 4), 0, 1], f32(None, 4))
    yield _accept("aten.flatten.using_ints", MOVEMENT, [f32(2, 3, 4), 1, -1], f32(2, 12))
    yield _reject("aten.flatten.using_ints", "dynamic-shape", [open_dim, 0, 1], f32(None))
    yield _accept("prims.split_dim", MOVEMENT, [f32(6, 4), 0, 2], f32(2, 3, 4))
    yield _reject("prims.split_dim", "dynamic-shape", [open_dim, 1, 3], f32(None, 3, 1))
    yield _accept("aten.unflatten.int", MOVEMENT, [f32(2, 12), 1, [3, -1]], f32(2, 3, 4))
    yield _reject("aten.unflatten.int", "dynamic-shape", [open_dim, 1, [3, 1]], f32(None, 3, 1))
    yield _accept("aten.squeeze", MOVEMENT, [f32(1, 3, 1)], f32(3))
    yield _reject("aten.squeeze", "dynamic-shape", [f32(None, 3, 1)], f32(None, 3))
    yield _accept("aten.squeeze.dim", MOVEMENT, [f32(2, 1, 3), 1], f32(2, 3))
    yield _reject("aten.squeeze.dim", "dynamic-shape", [f32(None, 1, 3), 1], f32(None, 3))
    yield _accept("prims.squeeze", MOVEMENT, [f32(1, 3, 1), [0, 2]], f32(3))
    yield _reject("prims.squeeze", "dynamic-shape", [f32(None, 3, 1), [2]], f32(None, 3))
    yield _accept("aten.unsqueeze", MOVEMENT, [f32(2, 3), -1], f32(2, 3, 1))
    yield _reject("aten.unsqueeze", "dynamic-shape", [open_dim, 0], f32(1, None, 3))


def _views() -> Iterator[Sample]:
    open_dim = f32(None, 3)
    yield _accept("aten.transpose.int", MOVEMENT, [f32(2, 3, 4), 0, -1], f32(4, 3, 2))
    yield _reject("aten.transpose.int", "dynamic-shape", [open_dim, 0, 1], f32(3, None))
    for op in ("aten.t", "aten.numpy_T"):
        yield _accept(op, MOVEMENT, [f32(2, 3)], f32(3, 2))
        yield _reject(op, "dynamic-shape", [open_dim], f32(3, None))
    yield _accept("aten.permute", MOVEMENT, [f32(2, 3, 4), [2, 0, 1]], f32(4, 2, 3))
    yield _reject("aten.permute", "dynamic-shape", [open_dim, [1, 0]], f32(3, None))
    yield _accept("aten.slice.Tensor", MOVEMENT, [f32(6, 3), 0, 1, 5, 2], f32(2, 3))
    yield _accept("aten.slice.Tensor", MOVEMENT, [f32(6, 3), 0, -2, None, 1], f32(2, 3))
    yield _reject("aten.slice.Tensor", "attribute", [f32(6, 3), 0, 5, 0, -1], f32(5, 3))
    yield _accept("aten.select.int", MOVEMENT, [f32(6, 3), 0, -1], f32(3))
    yield _reject("aten.select.int", "dynamic-shape", [open_dim, 1, 0], f32(None))


def _joins() -> Iterator[Sample]:
    yield _accept("aten.cat", MOVEMENT, [[f32(2, 3), f32(2, 4)], -1], f32(2, 7))
    yield _reject("aten.cat", "dynamic-shape", [[f32(None, 3), f32(2, 3)], 0], f32(None, 3))
    yield _accept("aten.constant_pad_nd", MOVEMENT, [f32(2, 3), [1, 2, 0, 1], 0.5], f32(3, 6))
    yield _reject("aten.constant_pad_nd", "attribute", [f32(2, 3), [-1, 0], 0.5], f32(2, 2))
    yield _accept("aten.pad", MOVEMENT, [f32(2, 3), [1, 2], "constant", 1.0], f32(2, 6))
    yield _reject("aten.pad", "attribute", [f32(1, 2, 3), [-1, 0], "constant", 1.0], f32(1, 2, 2))


def _normalization() -> Iterator[Sample]:
    def batch(*, training: bool = False, dtype: DType = dtypes.F32) -> list[Any]:
        return [_kind(dtype, 2, 4, 8, 8), *[_kind(dtype, 4)] * 4, training, 0.1, 1e-5, False]

    yield _accept("aten.batch_norm", ONEDNN, batch(), f32(2, 4, 8, 8))
    yield _accept("aten.batch_norm", ROWWISE, batch(training=True), f32(2, 4, 8, 8))
    yield _reject("aten.batch_norm", "rank", [f32(4), *batch()[1:]], f32(4))
    saved = (f32(2, 4, 8, 8), f32(4), f32(4))
    yield Sample("torch.aten.native_batch_norm", tuple(batch(training=True)[:-1]), saved, ROWWISE, uses_all=True)
    yield _reject("aten.native_batch_norm", "attribute", batch()[:-1], *saved)
    yield _reject("aten.batch_norm", "engine", batch(dtype=dtypes.F64), f64(2, 4, 8, 8))
    row = f32(2, 1)
    yield _accept("aten.layer_norm", ONEDNN, [f32(2, 8), [8], f32(8), f32(8), 1e-5, False], f32(2, 8))
    yield _reject("aten.layer_norm", "operand", [f32(2, 8), [8], f32(8), None, 1e-5, False], f32(2, 8))
    yield _accept("aten.native_layer_norm", ONEDNN, [f32(2, 8), [8], f32(8), f32(8), 1e-5], f32(2, 8), row, row)
    yield _reject("aten.native_layer_norm", "shape", [f32(2, 8), [4], f32(4), f32(4), 1e-5], f32(2, 8), row, row)
    normalized = (f32(2, 8), [8], f32(8), f32(8), 1e-5)
    yield Sample("torch.aten.native_layer_norm", normalized, (f32(2, 8), row, row), ROWWISE, uses_all=True)
    yield _accept("aten.rms_norm", ROWWISE, [f32(2, 8), [8], f32(8), 1e-5], f32(2, 8))
    yield _reject("aten.rms_norm", "operand", [f32(2, 8), [8], None, 1e-5], f32(2, 8))
    yield _reject("aten.rms_norm", "shape", [f32(2, 8), [4], f32(4), 1e-5], f32(2, 8))
    for rule, use_input in ((None, True), ("attribute", False)):
        args = [f32(2, 4, 8), f32(4), f32(4), None, None, use_input, 0.1, 1e-5, False]
        yield Sample(
            "torch.aten.instance_norm", tuple(args), (f32(2, 4, 8),), ROWWISE if rule is None else MOVEMENT, rule
        )


_FLOAT_UNARY = ("sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "sin", "tan", "erf", "reciprocal", "silu")
_ANY_UNARY = ("relu", "abs", "neg", "ceil", "floor")


def _unary() -> Iterator[Sample]:
    for name in (*_FLOAT_UNARY, *_ANY_UNARY):
        yield _accept(f"aten.{name}", ROWWISE, [f32(2, 3)], f32(2, 3))
        yield _reject(f"aten.{name}", "dynamic-shape", [f32(None, 3)], f32(None, 3))
    for name in _FLOAT_UNARY:
        yield _reject(f"aten.{name}", "dtype", [i32(2, 3)], i32(2, 3))
    for name, extra in (("clone", None), ("contiguous", 0)):
        yield _accept(f"aten.{name}", ROWWISE, [f32(2, 3), extra], f32(2, 3))
        yield _reject(f"aten.{name}", "dynamic-shape", [f32(None, 3), extra], f32(None, 3))


def _binary() -> Iterator[Sample]:
    x, y, other = f32(2, 3), f32(3), i32(3)
    for name in ("mul", "div", "add", "sub"):
        alpha = [1] if name in ("add", "sub") else []
        yield _accept(f"aten.{name}.Tensor", ROWWISE, [y, x, *alpha], x)
        yield _accept(f"aten.{name}.Tensor", ROWWISE, [x, Number(2.0), *alpha], x)
        yield _reject(f"aten.{name}.Tensor", "dtype", [x, other, *alpha], x)
        yield _accept(f"aten.{name}.Scalar", ROWWISE, [x, 2.5, *alpha], x)
        yield _reject(f"aten.{name}.Scalar", "dtype", [i32(2, 3), 2.5, *alpha], x)
    for name in ("maximum", "minimum"):
        yield _accept(f"aten.{name}", ROWWISE, [x, y], x)
        yield _reject(f"aten.{name}", "dtype", [x, other], x)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        yield _accept(f"aten.{name}.Tensor", ROWWISE, [x, y], bools(2, 3))
        yield _reject(f"aten.{name}.Tensor", "dtype", [x, other], bools(2, 3))
        yield _accept(f"aten.{name}.Scalar", ROWWISE, [x, 0.5], bools(2, 3))
        yield _reject(f"aten.{name}.Scalar", "dynamic-shape", [f32(None, 3), 0.5], _kind(dtypes.BOOL, None, 3))
    for name in ("logical_and", "logical_or", "logical_xor"):
        yield _accept(f"aten.{name}", ROWWISE, [bools(2, 3), bools(3)], bools(2, 3))
        yield _reject(f"aten.{name}", "dtype", [bools(2, 3), x], bools(2, 3))
    yield _accept("aten.logical_not", ROWWISE, [bools(2, 3)], bools(2, 3))
    yield _reject("aten.logical_not", "dynamic-shape", [_kind(dtypes.BOOL, None)], _kind(dtypes.BOOL, None))
    yield _accept("aten.add.Tensor", ROWWISE, [x, y, 3], x)
    yield _accept("aten.rsub.Scalar", ROWWISE, [x, 1.0, 1], x)
    yield _reject("aten.rsub.Scalar", "attribute", [x, 1.0, 2], x)
    yield _accept("aten.div.Tensor_mode", ROWWISE, [x, y, "floor"], x)
    yield _accept("aten.div.Tensor_mode", ROWWISE, [i32(2, 3), other, "trunc"], i32(2, 3))
    yield _reject("aten.div.Tensor_mode", "attribute", [x, y, "trunc"], x)
    yield _accept("aten.pow.Tensor_Scalar", ROWWISE, [x, 3], x)
    yield _accept("aten.pow.Tensor_Scalar", ROWWISE, [x, 2.5], x)
    yield _accept("aten.pow.Tensor_Scalar", KERNEL, [x, 5], x)
    yield _reject("aten.pow.Tensor_Scalar", "dynamic-shape", [f32(None, 3), 5], f32(None, 3))
    yield _accept("aten.fmod.Tensor", ROWWISE, [i32(2, 3), i32(3)], i32(2, 3))
    yield _accept("aten.fmod.Tensor", KERNEL, [x, y], x)
    yield _reject("aten.fmod.Tensor", "dtype", [x, other], x)
    yield _accept("aten.remainder.Tensor", ROWWISE, [i32(2, 3), i32(3)], i32(2, 3))
    yield _accept("aten.remainder.Tensor", KERNEL, [x, y], x)
    yield _reject("aten.remainder.Tensor", "dtype", [x, other], x)
    for name in ("and", "or", "xor"):
        yield _accept(f"aten.bitwise_{name}.Tensor", ROWWISE, [bools(2, 3), bools(3)], bools(2, 3))
        yield _accept(f"aten.bitwise_{name}.Tensor", KERNEL, [i32(2, 3), other], i32(2, 3))
        yield _reject(f"aten.bitwise_{name}.Tensor", "dtype", [x, y], x)
    yield _accept("aten.bitwise_not", ROWWISE, [bools(2, 3)], bools(2, 3))
    yield _accept("aten.bitwise_not", KERNEL, [i32(2, 3)], i32(2, 3))
    yield _reject("aten.bitwise_not", "dynamic-shape", [_kind(dtypes.BOOL, None)], _kind(dtypes.BOOL, None))
    for name in ("clamp_min", "clamp_max"):
        yield _accept(f"aten.{name}.Tensor", ROWWISE, [x, f32()], x)
        yield _reject(f"aten.{name}.Tensor", "dtype", [x, other], x)


def _compositions() -> Iterator[Sample]:
    x, wrong = f32(2, 3), f32(None, 3)
    extras: dict[str, list[Any]] = {
        "clamp": [0.0, 1.0], "hardtanh": [-1.0, 1.0], "relu6": [], "leaky_relu": [0.1], "elu": [1.0, 1.0, 1.0], "softplus": [1, 20],
        "mish": [], "gelu": ["tanh"], "hardsigmoid": [], "hardswish": [], "sign": [], "sgn": [], "cos": [], "sinh": [], "cosh": [],
        "square": [], "threshold": [1.0, 0.0], "round": [],
    }  # fmt: skip
    for name, extra in extras.items():
        yield _accept(f"aten.{name}", ROWWISE, [x, *extra], x)
        yield _reject(f"aten.{name}", "dynamic-shape", [wrong, *extra], wrong)
    yield _accept("aten.clamp.Tensor", ROWWISE, [x, Number(0.0), Number(6.0)], x)
    yield _accept("aten.clamp.Tensor", ROWWISE, [x, f32(), None], x)
    yield _reject("aten.clamp.Tensor", "dynamic-shape", [wrong, None, Number(1.0)], wrong)
    yield _accept("aten.prelu", ROWWISE, [x, f32(3)], x)
    yield _reject("aten.prelu", "dtype", [x, f64(3)], x)
    yield _accept("aten.where.self", ROWWISE, [bools(2, 3), f32(3), x], x)
    yield _reject("aten.where.self", "dtype", [bools(2, 3), f64(3), x], x)
    for name in ("isnan", "isinf"):
        yield _accept(f"aten.{name}", ROWWISE, [x], bools(2, 3))
        yield _reject(f"aten.{name}", "dynamic-shape", [wrong], _kind(dtypes.BOOL, None, 3))
    for name, extra in (("expand", [False]), ("broadcast_to", [])):
        yield _accept(f"aten.{name}", ROWWISE, [f32(2, 1), [2, 3], *extra], x)
        yield _reject(f"aten.{name}", "dynamic-shape", [f32(None, 1), [-1, 3], *extra], f32(None, 3))


def _fills() -> Iterator[Sample]:
    yield _accept("aten.full", ROWWISE, [[2, 3], 1.5, None, None, None, None], f32(2, 3))
    yield _accept("aten.full", KERNEL, [[2, 3], 1, None, None, None, None], i16(2, 3))
    yield _reject("aten.full", "dynamic-shape", [[2, 3], 1.0, None, None, None, None], f32(None, 3))


def _casts() -> Iterator[Sample]:
    f64_in_torch = 7
    i16_in_torch = 2
    yield _accept("aten.to.dtype", ROWWISE, [f32(2, 3), f64_in_torch, False, False, None], f64(2, 3))
    yield _accept("aten.to.dtype", KERNEL, [f32(2, 3), i16_in_torch, False, False, None], i16(2, 3))
    open_sizes = _kind(dtypes.F64, None, 3)
    yield _reject("aten.to.dtype", "dynamic-shape", [f32(None, 3), f64_in_torch, False, False, None], open_sizes)


def _pooling() -> Iterator[Sample]:
    for spatial in (1, 2, 3):
        x, y = f32(1, 2, *[8] * spatial), f32(1, 2, *[4] * spatial)
        wrong, also_wrong = f64(1, 2, *[8] * spatial), f64(1, 2, *[4] * spatial)
        twos, zeros, ones = [2] * spatial, [0] * spatial, [1] * spatial
        at = _kind(dtypes.I64, 1, 2, *[4] * spatial)
        names = [f"aten.max_pool{spatial}d", *([f"aten.max_pool{spatial}d_with_indices"] if spatial > 1 else [])]
        for name in names:
            results = [at] if "indices" in name else []
            yield _accept(name, ONEDNN, [x, twos, twos, zeros, ones, False], y, *results)
            yield _reject(name, "attribute", [x, twos, twos, ones, twos, False], y, *results)
            yield _reject(name, "dtype", [wrong, twos, twos, zeros, ones, False], also_wrong, *results)
        if spatial > 1:
            yield _reject(names[1], "result", [x, twos, twos, zeros, ones, False], y, at, uses_all=True)
        divisor = [None] if spatial > 1 else []
        yield _accept(f"aten.avg_pool{spatial}d", ONEDNN, [x, twos, twos, zeros, False, True, *divisor], y)
        yield _reject(
            f"aten.avg_pool{spatial}d", "dtype", [wrong, twos, twos, zeros, False, True, *divisor], also_wrong
        )
    yield _reject(
        "aten.avg_pool2d", "attribute", [f32(1, 2, 8, 8), [2, 2], [2, 2], [0, 0], False, True, 3], f32(1, 2, 4, 4)
    )


def _reductions() -> Iterator[Sample]:
    x, wrong = f32(2, 3, 4), i16(2, 3, 4)
    for name, extra in (("sum.dim_IntList", [None]), ("mean.dim", [None]), ("amax", []), ("amin", [])):
        yield _accept(f"aten.{name}", ROWWISE, [x, [-1], True, *extra], f32(2, 3, 1))
        yield _accept(f"aten.{name}", ROWWISE, [x, [0, 2], False, *extra], f32(3))
        yield _reject(f"aten.{name}", "dynamic-shape", [f32(None, 3, 4), [-1], True, *extra], f32(None, 3, 1))
    yield _accept("aten.prod.dim_int", ROWWISE, [x, 1, False, None], f32(2, 4))
    yield _reject("aten.prod.dim_int", "dynamic-shape", [f32(None, 3, 4), 1, False, None], f32(None, 4))
    yield _reject("aten.mean.dim", "dtype", [wrong, [-1], True, None], i16(2, 3, 1))
    for name, extra in (("sum", [None]), ("mean", [None]), ("max", []), ("min", [])):
        yield _accept(f"aten.{name}", ROWWISE, [x, *extra], f32())
        yield _reject(f"aten.{name}", "dynamic-shape", [f32(None, 3), *extra], f32())
    yield _accept("aten.linalg_vector_norm", ROWWISE, [x, 2.0, [1], True, None], f32(2, 1, 4))
    yield _accept("aten.linalg_vector_norm", ROWWISE, [x, math.inf, None, False, None], f32())
    yield _reject("aten.linalg_vector_norm", "attribute", [x, 3.0, [1], True, None], f32(2, 1, 4))
    yield _accept("aten.norm.ScalarOpt_dim", ROWWISE, [x, 1, [1], True], f32(2, 1, 4))
    yield _reject("aten.norm.ScalarOpt_dim", "attribute", [x, 0.5, [1], True], f32(2, 1, 4))
    yield _accept("aten.frobenius_norm.dim", ROWWISE, [x, [1], False], f32(2, 4))
    yield _reject("aten.frobenius_norm.dim", "dtype", [wrong, [1], False], i16(2, 4))


def _softmaxes() -> Iterator[Sample]:
    x, wrong = f32(2, 3), i32(2, 3)
    for name, extra in (("softmax.int", None), ("_softmax", False), ("log_softmax.int", None), ("_log_softmax", False)):
        yield _accept(f"aten.{name}", ROWWISE, [x, -1, extra], x)
        yield _reject(f"aten.{name}", "dtype", [wrong, -1, extra], wrong)
    yield _accept("aten.logsumexp", ROWWISE, [x, [1], True], f32(2, 1))
    yield _reject("aten.logsumexp", "dtype", [wrong, [1], True], i32(2, 1))


def _maps() -> Iterator[Sample]:
    x, y, wrong = f32(2, 3), i16(2, 3), f32(None, 3)
    for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "trunc"):
        yield _accept(f"aten.{name}", KERNEL, [x], x)
        yield _reject(f"aten.{name}", "dtype", [y], y)
    for name in ("left", "right"):
        yield _accept(f"aten.bitwise_{name}_shift.Tensor", KERNEL, [y, i16(3)], y)
        yield _reject(f"aten.bitwise_{name}_shift.Tensor", "dtype", [x, x], x)
    yield _accept("aten.add.Tensor", KERNEL, [y, i16(3), 1], y)
    yield _accept("aten.pow.Tensor_Tensor", KERNEL, [x, i64(3)], x)
    yield _reject("aten.pow.Tensor_Tensor", "dynamic-shape", [wrong, i64(3)], wrong)
    yield _accept("aten.pow.Scalar", KERNEL, [2.0, x], x)
    yield _reject("aten.pow.Scalar", "dynamic-shape", [2.0, wrong], wrong)
    chosen: dict[str, list[Any]] = {"Scalar": [1.0, 0.0], "ScalarOther": [x, 0.0], "ScalarSelf": [1.0, x]}
    for form, extra in chosen.items():
        yield _accept(f"aten.where.{form}", KERNEL, [bools(2, 3), *extra], x)
        yield _reject(f"aten.where.{form}", "dynamic-shape", [_kind(dtypes.BOOL, None, 3), *extra], wrong)
    yield _accept("EyeLike", KERNEL, [x], y, k=1)
    yield _reject("EyeLike", "dynamic-shape", [wrong], wrong)
    yield _accept("Trilu", KERNEL, [x, i64()], x, upper=0)
    yield _reject("Trilu", "dynamic-shape", [wrong, None], wrong)
    yield _accept("Range", KERNEL, [f32(), f32(), f32()], f32(5))
    yield _reject("Range", "dynamic-shape", [f32(), f32(), f32()], f32(None))
    yield _accept("OneHot", KERNEL, [i32(2, 3), [4], f32(2)], f32(2, 4, 3), axis=1)
    yield _reject("OneHot", "dynamic-shape", [i64(None), [4], f32(2)], f32(None, 4))
    yield _accept("Cast", ROWWISE, [x], f64(2, 3))
    yield _accept("Cast", KERNEL, [x], y)
    yield _reject("Cast", "dynamic-shape", [wrong], _kind(dtypes.F64, None, 3))


def _indexing() -> Iterator[Sample]:
    data, indices, wrong = f32(5, 4), i64(2, 3), f32(2, 3)
    yield _accept("Gather", KERNEL, [data, indices], f32(2, 3, 4), axis=0)
    yield _accept("Gather", MOVEMENT, [data, Number(-1, dtypes.I64)], f32(5), axis=1)
    yield _reject("Gather", "dtype", [data, wrong], f32(2, 3, 4), axis=0)
    yield _accept("GatherElements", KERNEL, [data, indices], f32(2, 3), axis=1)
    yield _reject("GatherElements", "dtype", [data, wrong], f32(2, 3), axis=1)
    yield _accept("GatherND", KERNEL, [data, i64(3, 2)], f32(3))
    yield _reject("GatherND", "dtype", [data, f32(3, 2)], f32(3))
    for name in ("ScatterElements", "Scatter"):
        yield _accept(name, KERNEL, [data, indices, f32(2, 3)], data, axis=1)
        yield _reject(name, "attribute", [data, indices, f32(2, 3)], data, axis=2)
    yield _accept("ScatterND", KERNEL, [data, i64(3, 1), f32(3, 4)], data, reduction="add")
    yield _reject("ScatterND", "attribute", [data, i64(3, 1), f32(3, 4)], data, reduction="mean")
    yield _accept("Slice", MOVEMENT, [f32(6, 3), [1], [5], [0], [2]], f32(2, 3))
    yield _accept("Slice", KERNEL, [f32(6, 3), [-1], [-7], [0], [-2]], f32(3, 3))
    yield _reject("Slice", "operand", [f32(6, 3), i64(1), i64(1), [0], None], f32(2, 3))


def _sorting() -> Iterator[Sample]:
    x, flat = f32(3, 4), f32(3)
    yield _accept("TopK", KERNEL, [x, [2]], f32(3, 2), i64(3, 2))
    yield Sample("hipdnn.onnx.TopK", (x, [2]), (f32(3, 2), i64(3, 2)), KERNEL, uses_all=True)
    yield _reject("TopK", "dynamic-shape", [f32(None, 4), [2]], f32(None, 2), i64(None, 2))
    for name in ("ArgMax", "ArgMin"):
        yield _accept(name, KERNEL, [x], i64(3), axis=1, keepdims=0)
        yield _reject(name, "attribute", [x], i64(3), axis=2, keepdims=0)
    for name in ("CumSum", "CumProd"):
        yield _accept(name, KERNEL, [x, [-1]], x, exclusive=1)
        yield _accept(name, KERNEL, [flat, i64()], flat)
        yield _reject(name, "operand", [x, i64()], x)
    yield _accept("ReverseSequence", KERNEL, [x, i64(4)], x)
    yield _reject("ReverseSequence", "dynamic-shape", [f32(None, 4), i64(4)], f32(None, 4))


def _rearranging() -> Iterator[Sample]:
    x, image = f32(2, 3), f32(1, 2, 4, 4)
    yield _accept("aten.pad", KERNEL, [f32(1, 2, 3), [1, 2], "reflect", None], f32(1, 2, 6))
    for name in ("tile", "repeat"):
        yield _accept(f"aten.{name}", KERNEL, [x, [2, 2]], f32(4, 6))
        yield _reject(f"aten.{name}", "dynamic-shape", [f32(None, 3), [2, 1]], f32(None, 3))
    yield _accept("BitCast", KERNEL, [x], i32(2, 3))
    yield _reject("BitCast", "dtype", [x], i16(2, 3))
    yield _accept("aten.sum.dim_IntList", KERNEL, [i16(2, 3), [1], False, None], i16(2))
    yield _accept("Resize", KERNEL, [image, None, [1.0, 1.0, 2.0, 2.0], None], f32(1, 2, 8, 8), mode="linear")
    yield _reject("Resize", "operand", [image, None, f32(4), None], f32(1, 2, 8, 8))
    yield _accept("GridSample", KERNEL, [image, f32(1, 3, 3, 2)], f32(1, 2, 3, 3))
    yield _reject("GridSample", "dynamic-shape", [image, f32(1, None, 3, 2)], f32(1, 2, None, 3))
