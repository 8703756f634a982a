"""Reductions over dimensions, and what is written with them: softmax, log-softmax, log-sum-exp."""

import math
from typing import Any

from hipdnn_mlir_runtime.abi import Pointwise as P
from hipdnn_mlir_runtime.abi import Reduce as R

from ..emitter import Emitter, Value
from ..registry import compute
from ..spec import OpView, Refusal


def axes_of(argument: Any, rank: int) -> tuple[int, ...]:
    """Normalized axes of a dim argument: an int, a list, or None/empty for all. A scalar has none, and torch takes axis 0 for it."""
    if rank == 0 or argument is None or argument == []:
        return tuple(range(rank))
    return tuple(sorted({axis % rank for axis in ([argument] if isinstance(argument, int) else argument)}))


def reduced(e: Emitter, op: OpView, operator: R, axes_argument: Any) -> Value:
    """One reduction; an empty set of axes or axes of size 1 only is a copy of the operand."""
    x = e.value(op.args[0])
    if x.dtype is not op.results[0].dtype:
        raise Refusal("dtype", f"reduction of {x.dtype} to {op.results[0].dtype}")
    return e.reduction(operator, x, axes_of(axes_argument, x.rank))


def _entry(name: str, operator: R, onnx: str, where: int) -> None:
    @compute(
        name,
        becomes=f"reduction {operator.name}",
        onnx=(onnx,),
        source=f"PyTorch: torch.{name}",
        precision="follow" if operator in (R.MAX, R.MIN) else "wide",
    )
    def emit(e: Emitter, op: OpView) -> Value:
        return reduced(e, op, operator, op.args[where] if where < len(op.args) else None)


for _name, _operator, _onnx, _where in (
    ("aten.sum.dim_IntList", R.ADD, "ReduceSum", 1), ("aten.mean.dim", R.AVG, "ReduceMean", 1), ("aten.amax", R.MAX, "ReduceMax", 1),
    ("aten.amin", R.MIN, "ReduceMin", 1), ("aten.prod.dim_int", R.MUL, "ReduceProd", 1), ("aten.sum", R.ADD, "ReduceSum", 9),
    ("aten.mean", R.AVG, "ReduceMean", 9), ("aten.max", R.MAX, "ReduceMax", 9), ("aten.min", R.MIN, "ReduceMin", 9),
):  # fmt: skip
    _entry(_name, _operator, _onnx, _where)


@compute(
    "aten.linalg_vector_norm", "aten.norm.ScalarOpt_dim", "aten.frobenius_norm.dim",
    becomes="reduction NORM1, NORM2 or AMAX", onnx=("ReduceL1", "ReduceL2"), precision="wide",
)  # fmt: skip
def vector_norm(e: Emitter, op: OpView) -> Value:
    """Norms 1, 2 and infinity over dims."""
    frobenius = "frobenius" in op.name
    order = 2 if frobenius else op.args[1]
    operators = {1: R.NORM1, 2: R.NORM2, math.inf: R.AMAX}
    if order not in operators:
        raise Refusal("attribute", f"norm of order {order}, expected 1, 2 or infinity")
    return reduced(e, op, operators[order], op.args[1 if frobenius else 2])


def _stable(e: Emitter, op: OpView) -> tuple[Value, tuple[int, ...], Value]:
    x = e.value(op.args[0])
    if not x.dtype.is_float or x.dtype is not op.results[0].dtype:
        raise Refusal("dtype", f"{op.name} of {x.dtype} to {op.results[0].dtype}")
    axes = axes_of(op.args[1], x.rank)
    return x, axes, e.pointwise(P.SUB, x, e.reduction(R.MAX, x, axes))


@compute(
    "aten.softmax.int",
    "aten._softmax",
    becomes="reduction MAX, SUB, EXP, reduction ADD, DIV",
    onnx=("Softmax",),
    precision="wide",
)
def softmax(e: Emitter, op: OpView) -> Value:
    """exp(x - max) / sum, the five nodes that engines recognize."""
    _, axes, shifted = _stable(e, op)
    raised = e.pointwise(P.EXP, shifted)
    return e.pointwise(P.DIV, raised, e.reduction(R.ADD, raised, axes))


@compute(
    "aten.log_softmax.int",
    "aten._log_softmax",
    becomes="reduction MAX, SUB, EXP, reduction ADD, LOG, SUB",
    onnx=("LogSoftmax",),
    precision="wide",
)
def log_softmax(e: Emitter, op: OpView) -> Value:
    """X - max - log(sum(exp(x - max)))."""
    _, axes, shifted = _stable(e, op)
    return e.pointwise(P.SUB, shifted, e.pointwise(P.LOG, e.reduction(R.ADD, e.pointwise(P.EXP, shifted), axes)))


@compute(
    "aten.logsumexp",
    becomes="reduction MAX, SUB, EXP, reduction ADD, LOG, ADD",
    onnx=("ReduceLogSumExp",),
    precision="wide",
)
def logsumexp(e: Emitter, op: OpView) -> Value:
    """Max + log(sum(exp(x - max)))."""
    x, axes, shifted = _stable(e, op)
    return e.pointwise(
        P.ADD, e.pointwise(P.LOG, e.reduction(R.ADD, e.pointwise(P.EXP, shifted), axes)), e.reduction(R.MAX, x, axes)
    )
