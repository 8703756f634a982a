"""Matmuls: mm, bmm, matmul with NumPy's broadcasting, addmm."""

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import AttributeType as T
from hipdnn_mlir_runtime.abi import DataType, Descriptor, Pointwise, Reduce
from hipdnn_mlir_runtime.dtypes import F64, I32, I64

from ..emitter import Emitter, Value
from ..registry import compute
from ..spec import OpView, Refusal
from ..strides import broadcast


def matmul_node(e: Emitter, a: Value, b: Value) -> Value:
    """A (..., m, k) times b (..., k, n); batch dims broadcast, ranks are made equal."""
    if not a.dtype.is_float or a.dtype is F64:
        raise Refusal("dtype", f"matmul of {a.dtype}")
    batch = broadcast(a.dims[:-2], b.dims[:-2]) if a.rank > 2 or b.rank > 2 else ()
    if batch is None or a.dims[-1] != b.dims[-2]:
        raise Refusal("shape", f"{a.dims} and {b.dims} do not multiply")
    rank = len(batch) + 2
    a = e.view(a, (1,) * (rank - a.rank) + a.dims)
    b = e.view(b, (1,) * (rank - b.rank) + b.dims)
    return e.node(
        Descriptor.OPERATION_MATMUL_DESCRIPTOR,
        {A.OPERATION_MATMUL_ADESC: a, A.OPERATION_MATMUL_BDESC: b},
        {A.OPERATION_MATMUL_CDESC: ((*batch, a.dims[-2], b.dims[-1]), a.dtype)},
        [(A.MATMUL_COMP_TYPE, T.DATA_TYPE, [int(DataType.FLOAT)])],
    )[0]


def product(e: Emitter, a: Value, b: Value) -> Value:
    """As `matmul_node`; of types that no library multiplies matrices of, the sum of products, as (..., m, 1, n)."""
    if a.dtype not in (F64, I32, I64):
        return matmul_node(e, a, b)
    if a.dims[-1] != b.dims[-2]:
        raise Refusal("shape", f"{a.dims} and {b.dims} do not multiply")
    terms = e.pointwise(
        Pointwise.MUL, e.view(a, (*a.dims, 1)), e.view(b, (*b.dims[:-2], 1, *b.dims[-2:])), dtype=a.dtype
    )
    return e.reduction(Reduce.ADD, terms, (terms.rank - 2,))


@compute(
    "aten.mm", "aten.bmm", "aten.matmul",
    becomes="matmul; in f64 and of integers pointwise mul and reduction ADD", onnx=("MatMul", "Gemm"),
    source="PyTorch: torch.matmul", precision="narrow",
)  # fmt: skip
def matmul(e: Emitter, op: OpView) -> Value:
    """(a, b); vectors become matrices of one row or column."""
    a, b = e.value(op.args[0]), e.value(op.args[1])
    if a.rank == 1:
        a = e.view(a, (1, *a.dims))
    if b.rank == 1:
        b = e.view(b, (*b.dims, 1))
    return product(e, a, b)


@compute(
    "aten.linear",
    becomes="matmul, pointwise add",
    onnx=("MatMul",),
    source="PyTorch: torch.nn.functional.linear",
    precision="narrow",
)
def linear(e: Emitter, op: OpView) -> Value:
    """(x, weight, bias): x times the transpose of the weight (columns, inner), whose columns so lie along memory."""
    x, weight = e.value(op.args[0]), e.value(op.args[1])
    if x.rank < 2 or weight.rank != 2:
        raise Refusal("rank", f"linear of {list(x.dims)} and {list(weight.dims)}")
    columns, inner = weight.dims
    outer = (1,) * (x.rank - 2)
    seen = e.reinterpret(weight, weight.dtype, (*outer, inner, columns), (*(columns * inner,) * len(outer), 1, inner))
    y = product(e, x, seen)
    return y if op.args[2] is None else e.pointwise(Pointwise.ADD, y, e.value(op.args[2]))


@compute(
    "aten.addmm",
    becomes="matmul, or in f64 pointwise mul and reduction ADD; pointwise mul and add",
    onnx=("Gemm",),
    source="PyTorch: torch.addmm",
    precision="narrow",
)
def addmm(e: Emitter, op: OpView) -> Value:
    """Beta * c + alpha * (a @ b)."""
    c, a, b, beta, alpha = op.args
    y = product(e, e.value(a), e.value(b))
    if alpha != 1:
        y = e.pointwise(Pointwise.MUL, y, e.scalar(alpha, y.dtype))
    bias = e.value(c) if c.scalar is None else e.scalar(c.scalar, y.dtype)
    if y.rank > 2:  # a sum of products
        rows, columns = ((1,) * (2 - bias.rank) + bias.dims)[-2:]
        bias = e.view(bias, (rows, 1, columns))
    if beta != 1:
        bias = e.pointwise(Pointwise.MUL, bias, e.scalar(beta, bias.dtype))
    return e.pointwise(Pointwise.ADD, y, bias)
