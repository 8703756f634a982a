"""Elementwise operations: those hipDNN has as one mode, then those written as compositions of modes."""

import math
from typing import Any

from hipdnn_mlir_runtime.abi import Pointwise as P
from hipdnn_mlir_runtime.dtypes import BOOL, DType

from ..emitter import Emitter, Value
from ..registry import add, compute
from ..row import Emission, OpRow
from ..spec import OpView, Refusal, TensorArg

_SOURCE = "PyTorch: torch.{}"

UNARY = {
    "aten.relu": (P.RELU_FWD, "Relu"), "aten.sigmoid": (P.SIGMOID_FWD, "Sigmoid"), "aten.tanh": (P.TANH_FWD, "Tanh"),
    "aten.exp": (P.EXP, "Exp"), "aten.log": (P.LOG, "Log"), "aten.sqrt": (P.SQRT, "Sqrt"), "aten.rsqrt": (P.RSQRT, ""),
    "aten.abs": (P.ABS, "Abs"), "aten.neg": (P.NEG, "Neg"), "aten.ceil": (P.CEIL, "Ceil"), "aten.floor": (P.FLOOR, "Floor"),
    "aten.sin": (P.SIN, "Sin"), "aten.tan": (P.TAN, "Tan"), "aten.erf": (P.ERF, "Erf"), "aten.reciprocal": (P.RECIPROCAL, "Reciprocal"),
    "aten.silu": (P.SWISH_FWD, "Swish"), "aten.clone": (P.IDENTITY, ""), "aten.contiguous": (P.IDENTITY, ""),
}  # fmt: skip
BINARY = {
    "aten.mul": (P.MUL, "Mul"), "aten.div": (P.DIV, "Div"), "aten.maximum": (P.MAX, "Max"), "aten.minimum": (P.MIN, "Min"),
}  # fmt: skip
COMPARE = {
    "aten.eq": (P.CMP_EQ, "Equal"), "aten.ne": (P.CMP_NEQ, ""), "aten.lt": (P.CMP_LT, "Less"), "aten.le": (P.CMP_LE, "LessOrEqual"),
    "aten.gt": (P.CMP_GT, "Greater"), "aten.ge": (P.CMP_GE, "GreaterOrEqual"), "aten.logical_and": (P.LOGICAL_AND, "And"),
    "aten.logical_or": (P.LOGICAL_OR, "Or"), "aten.logical_xor": (P.CMP_NEQ, "Xor"),
}  # fmt: skip
SENSITIVE = {P.EXP, P.LOG, P.SQRT, P.RSQRT, P.SIN, P.TAN, P.ERF, P.RECIPROCAL}
"""Functions that need f32: of large operands, or with results that a 16-bit type spoils."""
FLOAT_ONLY = {P.SIGMOID_FWD, P.TANH_FWD, P.EXP, P.LOG, P.SQRT, P.RSQRT, P.SIN, P.TAN, P.ERF, P.RECIPROCAL, P.SWISH_FWD}


def operands(e: Emitter, op: OpView, count: int = 2) -> list[Value]:
    """The first `count` arguments as values of one dtype; numbers take the tensors' dtype, as do floats of rank 0 beside other floats."""
    arguments = list(op.args[:count])
    kind = min((a for a in arguments if isinstance(a, TensorArg)), key=lambda a: a.scalar is not None).type.dtype
    if kind.is_float:
        arguments = [a.scalar if _is_known_float(a) else a for a in arguments]
    kinds = [kind, *(a.type.dtype for a in arguments if isinstance(a, TensorArg))]
    if len(set(kinds)) > 1:
        raise Refusal("dtype", f"operands of {' and '.join(map(str, kinds[1:]))}")
    return [e.value(a) if isinstance(a, TensorArg) else e.scalar(a, kind) for a in arguments]


def _is_known_float(argument: Any) -> bool:
    return isinstance(argument, TensorArg) and argument.scalar is not None and argument.type.dtype.is_float


def floating(e: Emitter, op: OpView) -> Value:
    """The first argument of an operation on floats."""
    x = e.value(op.args[0])
    if not x.dtype.is_float:
        raise Refusal("dtype", f"{op.name} of {x.dtype}")
    return x


def _unary(mode: P) -> Emission:
    def emit(e: Emitter, op: OpView) -> Value:
        return e.pointwise(mode, floating(e, op) if mode in FLOAT_ONLY else e.value(op.args[0]))

    return emit


def _binary(mode: P, result: DType | None = None) -> Emission:
    def emit(e: Emitter, op: OpView) -> Value:
        return e.pointwise(mode, *operands(e, op), dtype=result)

    return emit


for _name, (_mode, _onnx) in UNARY.items():
    add(
        OpRow(
            f"torch.{_name}",
            f"pointwise {_mode.name}",
            _unary(_mode),
            source=_SOURCE.format(_name),
            onnx=(_onnx,) if _onnx else (),
            precision="wide" if _mode in SENSITIVE else "follow",
        )
    )
for _name, (_mode, _onnx) in BINARY.items():
    for _form in (".Tensor", ".Scalar") if _name in ("aten.mul", "aten.div") else ("",):
        add(
            OpRow(
                f"torch.{_name}{_form}",
                f"pointwise {_mode.name}",
                _binary(_mode),
                source=_SOURCE.format(_name),
                onnx=(_onnx,),
            )
        )
for _name, (_mode, _onnx) in COMPARE.items():
    for _form in (".Tensor", ".Scalar") if "logical" not in _name else ("",):
        add(
            OpRow(
                f"torch.{_name}{_form}",
                f"pointwise {_mode.name}",
                _binary(_mode, BOOL),
                source=_SOURCE.format(_name),
                onnx=(_onnx,) if _onnx else (),
            )
        )


@compute(
    "aten.bitwise_and.Tensor",
    "aten.bitwise_or.Tensor",
    "aten.bitwise_xor.Tensor",
    becomes="pointwise LOGICAL_AND, LOGICAL_OR, CMP_NEQ",
)
def bitwise(e: Emitter, op: OpView) -> Value:
    """Of booleans; hipDNN has no bit operations on integers."""
    a, b = operands(e, op)
    if a.dtype is not BOOL:
        raise Refusal("dtype", f"{op.name} of {a.dtype}")
    modes = {"and": P.LOGICAL_AND, "or": P.LOGICAL_OR, "xor": P.CMP_NEQ}
    return e.pointwise(modes[op.name.split("bitwise_")[1].split(".")[0]], a, b, dtype=BOOL)


@compute("aten.bitwise_not", becomes="pointwise LOGICAL_NOT", onnx=("Not",))
def bitwise_not(e: Emitter, op: OpView) -> Value:
    """Of booleans."""
    x = e.value(op.args[0])
    if x.dtype is not BOOL:
        raise Refusal("dtype", f"{op.name} of {x.dtype}")
    return e.pointwise(P.LOGICAL_NOT, x, dtype=BOOL)


@compute("aten.logical_not", becomes="pointwise LOGICAL_NOT", onnx=("Not",))
def logical_not(e: Emitter, op: OpView) -> Value:
    """Not x."""
    return e.pointwise(P.LOGICAL_NOT, e.value(op.args[0]), dtype=BOOL)


def _scaled(mode: P) -> Emission:
    """A op alpha * b."""

    def emit(e: Emitter, op: OpView) -> Value:
        a, b = operands(e, op)
        alpha = op.args[2] if len(op.args) > 2 else 1
        if alpha != 1:
            b = e.view(b, (1,) * (a.rank - b.rank) + b.dims)  # the product cannot be seen in another rank
            b = e.pointwise(P.MUL, b, e.scalar(alpha, b.dtype))
        return e.pointwise(mode, a, b)

    return emit


for _name, _mode, _onnx in (("aten.add", P.ADD, "Add"), ("aten.sub", P.SUB, "Sub")):
    for _form in (".Tensor", ".Scalar"):
        add(
            OpRow(
                f"torch.{_name}{_form}",
                f"pointwise {_mode.name}",
                _scaled(_mode),
                source=_SOURCE.format(_name),
                onnx=(_onnx,),
            )
        )


@compute("aten.rsub.Scalar", becomes="pointwise SUB")
def rsub(e: Emitter, op: OpView) -> Value:
    """Scalar - x (alpha = 1)."""
    x, number = operands(e, op)
    if len(op.args) > 2 and op.args[2] != 1:
        raise Refusal("attribute", f"alpha = {op.args[2]}, expected 1")
    return e.pointwise(P.SUB, number, x)


@compute("aten.div.Tensor_mode", becomes="pointwise DIV, FLOOR", onnx=("Div", "Mod"))
def div_mode(e: Emitter, op: OpView) -> Value:
    """Integers divide toward zero, floats toward minus infinity."""
    a, b = operands(e, op)
    mode = op.args[2]
    quotient = e.pointwise(P.DIV, a, b)
    if mode is None or (mode == "trunc" and not a.dtype.is_float):
        return quotient
    if mode == "floor" and a.dtype.is_float:
        return e.pointwise(P.FLOOR, quotient)
    raise Refusal("attribute", f"rounding {mode!r} of {a.dtype}")


@compute(
    "aten.pow.Tensor_Scalar", becomes="pointwise MUL, SQRT, RSQRT, RECIPROCAL, or LOG, MUL, EXP", onnx=("Pow", "LRN")
)
def pow_scalar(e: Emitter, op: OpView) -> Value:
    """X to a known exponent: small whole ones by multiplication, others as exp(exponent * log(x)), NaN for negative x as in PyTorch."""
    x, exponent = e.value(op.args[0]), op.args[1]
    one_node = {-1: P.RECIPROCAL, -0.5: P.RSQRT, 0.5: P.SQRT, 1: P.IDENTITY}
    if exponent in one_node:
        return e.pointwise(one_node[exponent], x)
    if exponent in (2, 3, 4):
        square = e.pointwise(P.MUL, x, x)
        return square if exponent == 2 else e.pointwise(P.MUL, square, x if exponent == 3 else square)
    if not x.dtype.is_float or float(exponent).is_integer():
        raise Refusal("attribute", f"exponent {exponent} of {x.dtype}: hipDNN has no power operation")
    return e.pointwise(P.EXP, e.pointwise(P.MUL, e.pointwise(P.LOG, x), e.scalar(exponent, x.dtype)))


def clamp_to(e: Emitter, x: Value, low: float | None, high: float | None) -> Value:
    """min(max(x, low), high), as one RELU with clips where the dtype is a float."""
    if low is None and high is None:
        return e.pointwise(P.IDENTITY, x)
    if low is not None and high is not None:
        low = min(low, high)  # bounds the wrong way round: the upper one wins everywhere
    if x.dtype.is_float and low is not None and math.isfinite(low):
        if high is not None and math.isfinite(high):
            return e.pointwise(P.RELU_FWD, x, RELU_LOWER_CLIP=low, RELU_UPPER_CLIP=high)
        return e.pointwise(P.RELU_FWD, x, RELU_LOWER_CLIP=low)
    if low is not None:
        x = e.pointwise(P.MAX, x, e.scalar(low, x.dtype))
    return x if high is None else e.pointwise(P.MIN, x, e.scalar(high, x.dtype))


@compute(
    "aten.clamp",
    "aten.clamp.Tensor",
    "aten.hardtanh",
    becomes="pointwise RELU_FWD with clips, or MAX and MIN",
    onnx=("Clip",),
)
def clamp(e: Emitter, op: OpView) -> Value:
    """Bounds known at compile time; a bound that is a tensor becomes MAX or MIN."""
    x = e.value(op.args[0])
    bounds = [b.scalar if isinstance(b, TensorArg) and b.scalar is not None else b for b in op.args[1:3]]
    if any(isinstance(bound, TensorArg) for bound in bounds):
        for mode, bound in zip((P.MAX, P.MIN), bounds, strict=True):
            if bound is not None:
                x = e.pointwise(mode, x, e.value(bound) if isinstance(bound, TensorArg) else e.scalar(bound, x.dtype))
        return x
    return clamp_to(e, x, *bounds)


@compute("aten.clamp_min.Tensor", "aten.clamp_max.Tensor", becomes="pointwise MAX or MIN", onnx=("Clip",))
def clamp_one_side(e: Emitter, op: OpView) -> Value:
    """Max or min with a tensor."""
    return e.pointwise(P.MAX if "clamp_min" in op.name else P.MIN, *operands(e, op))


@compute("aten.threshold", becomes="pointwise CMP_GT, BINARY_SELECT", onnx=("ThresholdedRelu",))
def threshold(e: Emitter, op: OpView) -> Value:
    """X where it is above the threshold, a value elsewhere."""
    x, limit, value = operands(e, op, 3)
    return e.pointwise(P.BINARY_SELECT, x, value, e.pointwise(P.CMP_GT, x, limit, dtype=BOOL), dtype=x.dtype)


@compute("aten.round", becomes="pointwise FLOOR, SUB, CMP_GT, CMP_EQ, BINARY_SELECT and others", onnx=("Round",))
def round_half_even(e: Emitter, op: OpView) -> Value:
    """To the nearest whole number, halves to the even one."""
    return round_half_even_of(e, e.value(op.args[0]))


def round_half_even_of(e: Emitter, x: Value) -> Value:
    """The nodes of that."""
    if not x.dtype.is_float:
        raise Refusal("dtype", f"round of {x.dtype}")
    low = e.pointwise(P.FLOOR, x)
    high = e.pointwise(P.ADD, low, e.scalar(1.0, x.dtype))
    rest, half = e.pointwise(P.SUB, x, low), e.scalar(0.5, x.dtype)
    halved = e.pointwise(P.MUL, low, half)
    odd = e.pointwise(P.CMP_NEQ, e.pointwise(P.FLOOR, halved), halved, dtype=BOOL)
    tie_goes_up = e.pointwise(P.LOGICAL_AND, e.pointwise(P.CMP_EQ, rest, half, dtype=BOOL), odd, dtype=BOOL)
    up = e.pointwise(P.LOGICAL_OR, e.pointwise(P.CMP_GT, rest, half, dtype=BOOL), tie_goes_up, dtype=BOOL)
    return e.pointwise(P.BINARY_SELECT, high, low, up, dtype=x.dtype)


@compute("aten.relu6", becomes="pointwise RELU_FWD with an upper clip")
def relu6(e: Emitter, op: OpView) -> Value:
    """Clamp to 0..6."""
    return clamp_to(e, e.value(op.args[0]), 0.0, 6.0)


@compute("aten.leaky_relu", becomes="pointwise RELU_FWD with a slope", onnx=("LeakyRelu",))
def leaky_relu(e: Emitter, op: OpView) -> Value:
    """X where positive, slope * x elsewhere."""
    return e.pointwise(P.RELU_FWD, floating(e, op), RELU_LOWER_CLIP_SLOPE=op.args[1])


@compute("aten.prelu", becomes="pointwise RELU_FWD, MIN, MUL, ADD", onnx=("PRelu",))
def prelu(e: Emitter, op: OpView) -> Value:
    """max(x, 0) + slope * min(x, 0); the slope broadcasts as in ONNX."""
    x, slope = operands(e, op)
    negative = e.pointwise(P.MUL, e.pointwise(P.MIN, x, e.scalar(0, x.dtype)), slope)
    return e.pointwise(P.ADD, e.pointwise(P.MAX, x, e.scalar(0, x.dtype)), negative)


@compute("aten.elu", becomes="pointwise ELU_FWD", onnx=("Elu", "Celu"))
def elu(e: Emitter, op: OpView) -> Value:
    """Scale * (x where positive, alpha * (exp(input_scale * x) - 1) elsewhere)."""
    x, alpha, scale, input_scale = floating(e, op), *op.args[1:4]
    if input_scale == 1:
        y = e.pointwise(P.ELU_FWD, x, ELU_ALPHA=alpha)
    else:
        zero = e.scalar(0.0, x.dtype)
        below = e.pointwise(
            P.ELU_FWD, e.pointwise(P.MUL, e.pointwise(P.MIN, x, zero), e.scalar(input_scale, x.dtype)), ELU_ALPHA=alpha
        )
        y = e.pointwise(P.ADD, e.pointwise(P.MAX, x, zero), below)
    return y if scale == 1 else e.pointwise(P.MUL, y, e.scalar(scale, y.dtype))


@compute("aten.softplus", becomes="pointwise SOFTPLUS_FWD", onnx=("Softplus",))
def softplus(e: Emitter, op: OpView) -> Value:
    """log(1 + exp(beta * x)) / beta; torch's linear branch above the threshold agrees within rounding."""
    return e.pointwise(P.SOFTPLUS_FWD, floating(e, op), SOFTPLUS_BETA=op.args[1])


@compute("aten.mish", becomes="pointwise SOFTPLUS_FWD, TANH_FWD, MUL", onnx=("Mish",))
def mish(e: Emitter, op: OpView) -> Value:
    """X * tanh(softplus(x))."""
    x = floating(e, op)
    return e.pointwise(P.MUL, x, e.pointwise(P.TANH_FWD, e.pointwise(P.SOFTPLUS_FWD, x, SOFTPLUS_BETA=1.0)))


@compute("aten.gelu", becomes="pointwise GELU_FWD or GELU_APPROX_TANH_FWD", onnx=("Gelu",))
def gelu(e: Emitter, op: OpView) -> Value:
    """Exact with erf, or the tanh approximation."""
    tanh = len(op.args) > 1 and op.args[1] == "tanh"
    return e.pointwise(P.GELU_APPROX_TANH_FWD if tanh else P.GELU_FWD, floating(e, op))


@compute("aten.hardsigmoid", becomes="pointwise MUL, ADD, RELU_FWD with clips", onnx=("HardSigmoid",))
def hardsigmoid(e: Emitter, op: OpView) -> Value:
    """X / 6 + 1/2 clamped to 0..1."""
    x = floating(e, op)
    line = e.pointwise(P.ADD, e.pointwise(P.MUL, x, e.scalar(1 / 6, x.dtype)), e.scalar(0.5, x.dtype))
    return clamp_to(e, line, 0.0, 1.0)


@compute("aten.hardswish", becomes="pointwise ADD, RELU_FWD with clips, MUL, MUL", onnx=("HardSwish",))
def hardswish(e: Emitter, op: OpView) -> Value:
    """X * clamp(x + 3, 0, 6) / 6, in the node order that engines recognize."""
    x = floating(e, op)
    gate = clamp_to(e, e.pointwise(P.ADD, x, e.scalar(3.0, x.dtype)), 0.0, 6.0)
    return e.pointwise(P.MUL, e.pointwise(P.MUL, x, gate), e.scalar(1 / 6, x.dtype))


@compute(
    "aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", becomes="pointwise BINARY_SELECT", onnx=("Shrink", "Where")
)  # fmt: skip
def where(e: Emitter, op: OpView) -> Value:
    """A where the condition holds, b elsewhere."""
    condition = e.value(op.args[0])
    a, b = operands(e, OpView(op.name, op.args[1:], op.results, op.node))
    return e.pointwise(P.BINARY_SELECT, a, b, condition, dtype=a.dtype)


@compute(
    "aten.to.dtype",
    "hipdnn.onnx.Cast",
    becomes="pointwise IDENTITY to another type",
    onnx=("Cast",),
    precision="wide",
)
def cast(e: Emitter, op: OpView) -> Value:
    """Another element type; to bool it is x != 0."""
    x, kind = e.value(op.args[0]), op.results[0].dtype
    if kind.hipdnn is None:
        raise Refusal("dtype", f"hipDNN has no data type for {kind}")
    if kind is BOOL and x.dtype is not BOOL:
        return e.pointwise(P.CMP_NEQ, x, e.scalar(0, x.dtype), dtype=BOOL)
    return e.pointwise(P.IDENTITY, x, dtype=kind)


@compute("aten.sign", "aten.sgn", becomes="pointwise CMP_GT, CMP_LT, IDENTITY, SUB", onnx=("Sign",))
def sign(e: Emitter, op: OpView) -> Value:
    """(x > 0) - (x < 0)."""
    x = e.value(op.args[0])
    zero = e.scalar(0, x.dtype)
    above, below = (
        e.pointwise(P.IDENTITY, e.pointwise(mode, x, zero, dtype=BOOL), dtype=x.dtype) for mode in (P.CMP_GT, P.CMP_LT)
    )
    return e.pointwise(P.SUB, above, below)


@compute("aten.isnan", becomes="pointwise CMP_NEQ", onnx=("IsNaN",))
def isnan(e: Emitter, op: OpView) -> Value:
    """X differs from itself."""
    x = e.value(op.args[0])
    return e.pointwise(P.CMP_NEQ, x, x, dtype=BOOL)


@compute("aten.isinf", becomes="pointwise ABS, CMP_EQ", onnx=("IsInf",))
def isinf(e: Emitter, op: OpView) -> Value:
    """|x| is infinite."""
    x = floating(e, op)
    return e.pointwise(P.CMP_EQ, e.pointwise(P.ABS, x), e.scalar(math.inf, x.dtype), dtype=BOOL)


@compute("aten.cos", becomes="pointwise ADD, SIN", onnx=("Cos",), precision="wide")
def cos(e: Emitter, op: OpView) -> Value:
    """sin(x + pi/2)."""
    x = floating(e, op)
    return e.pointwise(P.SIN, e.pointwise(P.ADD, x, e.scalar(math.pi / 2, x.dtype)))


@compute(
    "aten.sinh",
    "aten.cosh",
    becomes="pointwise EXP, NEG, SUB or ADD, MUL",
    onnx=("Sinh", "Cosh"),
    precision="wide",
)
def sinh_cosh(e: Emitter, op: OpView) -> Value:
    """(exp(x) -/+ exp(-x)) / 2."""
    x = floating(e, op)
    up, down = e.pointwise(P.EXP, x), e.pointwise(P.EXP, e.pointwise(P.NEG, x))
    both = e.pointwise(P.SUB if op.name.endswith("sinh") else P.ADD, up, down)
    return e.pointwise(P.MUL, both, e.scalar(0.5, x.dtype))


@compute("aten.square", becomes="pointwise MUL")
def square(e: Emitter, op: OpView) -> Value:
    """X * x."""
    x = e.value(op.args[0])
    return e.pointwise(P.MUL, x, x)


@compute("aten.fmod.Tensor", becomes="pointwise DIV, MUL, SUB", onnx=("Mod",))
def fmod(e: Emitter, op: OpView) -> Value:
    """A - trunc(a / b) * b of integers; hipDNN cannot truncate floats."""
    a, b = operands(e, op)
    if a.dtype.is_float:
        raise Refusal("dtype", f"fmod of {a.dtype}: hipDNN cannot truncate")
    return e.pointwise(P.SUB, a, e.pointwise(P.MUL, e.pointwise(P.DIV, a, b), b))


@compute(
    "aten.remainder.Tensor",
    becomes="pointwise DIV, MUL, SUB, CMP_LT, CMP_NEQ, LOGICAL_AND, ADD, BINARY_SELECT",
    onnx=("Mod",),
)
def remainder(e: Emitter, op: OpView) -> Value:
    """Of integers, with the sign of the divisor: the C remainder, plus the divisor where the signs differ."""
    a, b = operands(e, op)
    if a.dtype.is_float:
        raise Refusal("dtype", f"remainder of {a.dtype}: hipDNN cannot truncate")
    b = e.view(b, (1,) * (a.rank - b.rank) + b.dims)  # what is computed from it cannot change its rank
    rest = e.pointwise(P.SUB, a, e.pointwise(P.MUL, e.pointwise(P.DIV, a, b), b))
    zero = e.scalar(0, a.dtype)
    signs_differ = e.pointwise(
        P.CMP_NEQ, e.pointwise(P.CMP_LT, rest, zero, dtype=BOOL), e.pointwise(P.CMP_LT, b, zero, dtype=BOOL), dtype=BOOL
    )
    moves = e.pointwise(P.LOGICAL_AND, signs_differ, e.pointwise(P.CMP_NEQ, rest, zero, dtype=BOOL), dtype=BOOL)
    return e.pointwise(P.BINARY_SELECT, e.pointwise(P.ADD, rest, b), rest, moves, dtype=a.dtype)


@compute("aten.full", becomes="pointwise IDENTITY of a number", onnx=("ConstantOfShape",))
def full(e: Emitter, op: OpView) -> Value:
    """(dims, number): one number everywhere."""
    kind = op.results[0]
    return e.pointwise(P.IDENTITY, e.scalar(op.args[1], kind.dtype), dims=kind.static_dims() or (1,))


@compute("aten.expand", "aten.broadcast_to", becomes="pointwise IDENTITY with broadcasting", onnx=("Expand",))
def expand(e: Emitter, op: OpView) -> Value:
    """NumPy broadcasting to given dims; -1 keeps a dim."""
    x = e.value(op.args[0])
    dims = op.results[0].static_dims()
    return e.pointwise(P.IDENTITY, x, dims=dims or (1,))
