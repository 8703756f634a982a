"""Maps: elementwise operations that hipDNN has no mode for, and data that is computed from its position."""

from hipdnn_mlir_runtime.dtypes import BOOL, F32, F64, I64, DType

from ..emitter import Value
from ..kernels import ElementwiseBuilder
from ..registry import elementwise
from ..row import ElementwiseEmission
from ..spec import OpView, Refusal, TensorArg
from .pointwise import operands

_UNARY = {
    "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh", "trunc": "",
}  # fmt: skip
_BITS = {
    "bitwise_and.Tensor": "bit_and", "bitwise_or.Tensor": "bit_or", "bitwise_xor.Tensor": "bit_xor",
    "bitwise_left_shift.Tensor": "shl", "bitwise_right_shift.Tensor": "shr",
}  # fmt: skip
_BIT_OPERATORS = {
    "bit_and": "BitwiseAnd",
    "bit_or": "BitwiseOr",
    "bit_xor": "BitwiseXor",
    "shl": "BitShift",
    "shr": "BitShift",
}
_LOGIC = {"bit_and": "and", "bit_or": "or", "bit_xor": "xor"}


def _unary(name: str) -> ElementwiseEmission:
    def launch(m: ElementwiseBuilder, op: OpView) -> Value:
        return m.op(name, m.value(op.args[0]))

    return launch


def _bits(name: str) -> ElementwiseEmission:
    def launch(m: ElementwiseBuilder, op: OpView) -> Value:
        a, b = operands(m, op)
        return m.op(_LOGIC.get(name, name) if a.dtype is BOOL else name, a, b)

    return launch


for _name, _onnx in _UNARY.items():
    elementwise(f"aten.{_name}", onnx=(_onnx,) if _onnx else (), precision="wide")(_unary(_name))
for _name, _instruction in _BITS.items():
    elementwise(f"aten.{_name}", onnx=(_BIT_OPERATORS[_instruction],))(_bits(_instruction))


@elementwise("aten.bitwise_not", onnx=("BitwiseNot",))
def bitwise_not(m: ElementwiseBuilder, op: OpView) -> Value:
    """Every bit turned."""
    x = m.value(op.args[0])
    return m.op("not" if x.dtype is BOOL else "bit_not", x)


@elementwise("aten.to.dtype", "hipdnn.onnx.Cast", onnx=("Cast",), precision="wide")
def cast(m: ElementwiseBuilder, op: OpView) -> Value:
    """Another element type, as ONNX's Cast."""
    return m.cast(m.value(op.args[0]), op.results[0].dtype)


@elementwise("aten.remainder.Tensor", onnx=("Mod",))
def remainder(m: ElementwiseBuilder, op: OpView) -> Value:
    """With the sign of the divisor."""
    return m.op("mod", *operands(m, op))


@elementwise("aten.fmod.Tensor", onnx=("Mod",))
def fmod(m: ElementwiseBuilder, op: OpView) -> Value:
    """With the sign of the dividend."""
    return m.op("fmod", *operands(m, op))


@elementwise("aten.pow.Tensor_Tensor", "aten.pow.Tensor_Scalar", "aten.pow.Scalar", onnx=("Pow",), precision="wide")
def power(m: ElementwiseBuilder, op: OpView) -> Value:
    """Operands of any dtypes: computed in the wider float where one is a float, rounded to the result's dtype."""
    kind = op.results[0].dtype
    given = [arg.type.dtype for arg in op.args[:2] if isinstance(arg, TensorArg)]
    wide = _common(given, kind)
    base, exponent = (m.cast(m.value(a), wide) if isinstance(a, TensorArg) else m.scalar(a, wide) for a in op.args[:2])
    return m.cast(m.op("pow", base, exponent), kind)


def _common(kinds: list[DType], result: DType) -> DType:
    """The type to compute in: the result's where it is a float, at least f32, or all are integers; else a float that holds both."""
    floats = [kind for kind in kinds if kind.is_float]
    if result.is_float or not floats:
        return F32 if result.is_narrow else result
    return F64 if any(kind.bytes > F32.bytes for kind in kinds) else F32


@elementwise("aten.where.self", onnx=("Where",))
def where(m: ElementwiseBuilder, op: OpView) -> Value:
    """A where the condition holds, b elsewhere."""
    condition = m.value(op.args[0])
    return m.op("where", condition, *operands(m, OpView(op.name, op.args[1:], op.results)))


@elementwise("aten.where.Scalar", "aten.where.ScalarOther", "aten.where.ScalarSelf", onnx=("Shrink", "Where"))
def where_number(m: ElementwiseBuilder, op: OpView) -> Value:
    """As aten.where.self, with numbers."""
    kind = op.results[0].dtype
    condition, a, b = (m.value(x) if isinstance(x, TensorArg) else m.scalar(x, kind) for x in op.args[:3])
    return m.op("where", condition, m.cast(a, kind), m.cast(b, kind))


@elementwise("aten.full", onnx=("ConstantOfShape",))
def full(m: ElementwiseBuilder, op: OpView) -> Value:
    """(dims, number): one number everywhere."""
    kind = op.results[0]
    return m.expand(m.scalar(op.args[1], kind.dtype), kind.static_dims() or (1,))


@elementwise("hipdnn.onnx.EyeLike", onnx=("EyeLike",))
def eye_like(m: ElementwiseBuilder, op: OpView) -> Value:
    """Ones on a diagonal, k above the main one."""
    kind = op.results[0]
    return m.cast(_column_less_row(m, op, m.scalar(int(op.attributes.get("k", 0)), I64), "eq"), kind.dtype)


@elementwise("hipdnn.onnx.Trilu", onnx=("Trilu",))
def trilu(m: ElementwiseBuilder, op: OpView) -> Value:
    """(x, k), upper: x above (or below) a diagonal, zeros on the other side."""
    x = m.value(op.args[0])
    k = m.value(op.args[1]) if len(op.args) > 1 and op.args[1] is not None else m.scalar(0, I64)
    kept = _column_less_row(m, op, k, "ge" if op.attributes.get("upper", 1) else "le")
    return m.op("where", kept, x, m.scalar(0, x.dtype))


def _column_less_row(m: ElementwiseBuilder, op: OpView, k: Value, test: str) -> Value:
    """Whether column - row stands in a relation to k."""
    dims = op.results[0].static_dims()
    column, row = m.position(len(dims) - 1, dims), m.position(len(dims) - 2, dims)
    return m.expand(m.op(test, m.op("sub", column, row), k), dims)


@elementwise("hipdnn.onnx.Range", onnx=("Range",), precision="wide")
def range_(m: ElementwiseBuilder, op: OpView) -> Value:
    """(start, limit, delta): as many as the result has, which has to be known."""
    kind = op.results[0]
    start, delta = m.value(op.args[0]), m.value(op.args[2])
    steps = m.cast(m.position(0, kind.static_dims()), kind.dtype)
    return m.expand(m.op("add", start, m.op("mul", steps, delta)), kind.static_dims())


@elementwise("hipdnn.onnx.OneHot", onnx=("OneHot",), known=(1,))
def one_hot(m: ElementwiseBuilder, op: OpView) -> Value:
    """(indices, depth, [off, on]), axis: on where the position along the axis is the index, counted from the end where negative."""
    dims = op.results[0].static_dims()
    axis = int(op.attributes.get("axis", -1)) % len(dims)
    indices = op.args[0]
    if not isinstance(indices, TensorArg) or not isinstance(op.args[2], TensorArg):
        raise Refusal("operand", "indices and values have to be tensors")
    given = indices.type.static_dims()
    index = m.cast(m.load(indices, (*given[:axis], 1, *given[axis:])), I64)
    below = m.op("lt", index, m.scalar(0, I64))
    index = m.op("where", below, m.op("add", index, m.scalar(dims[axis], I64)), index)
    hit = m.op("eq", m.position(axis, dims), index)
    return m.op("where", hit, m.element(op.args[2], 1), m.element(op.args[2], 0))
