"""Descriptions of kernels: what a region of views becomes, with the strides that buffers have."""

from __future__ import annotations

import math

import pytest

from hipdnn_mlir.ops.emitter import Operand, Storage
from hipdnn_mlir.ops.kernels import Kernel
from hipdnn_mlir.ops.regions import kernel_region
from hipdnn_mlir.ops.spec import OpView, TensorArg, TensorType
from hipdnn_mlir_runtime.dtypes import BOOL, F32, I16, I64, DType
from hipdnn_mlir_runtime.errors import Reject


def view(name: str, args: list[object], *results: TensorType, **attributes: object) -> OpView:
    return OpView(name, args, results, attributes=attributes)


def arg(key: str, dtype: DType, *dims: int) -> TensorArg:
    return TensorArg(key, TensorType(dims, dtype))


def described(*ops: tuple[OpView, list[str]], results: list[str], **storage: Storage) -> Kernel | Reject:
    """The kernel of ops on operands named by their keys; `storage` says how a buffer keeps one."""
    made = {key for _, keys in ops for key in keys}
    args = [a for op, _ in ops for a in op.args if isinstance(a, TensorArg) and a.key not in made]
    operands = {a.key: Operand(a.type.static_dims(), a.type.dtype, storage.get(a.key)) for a in args}
    kinds = {key: kind for op, keys in ops for key, kind in zip(keys, op.results, strict=True)}
    stored = [storage.get(key) for key in results]
    return kernel_region(ops, operands, [(key, kinds[key]) for key in results], stored)


def test_operand_that_broadcasts_is_read_with_stride_0() -> None:
    kernel = described(
        (view("torch.aten.maximum", [arg("x", I16, 2, 3), arg("y", I16, 3)], TensorType((2, 3), I16)), ["z"]),
        results=["z"],
    )
    assert isinstance(kernel, Kernel)
    assert [(t.role, t.dims, t.strides) for t in kernel.tensors] == [
        ("in", (2, 3), (3, 1)),
        ("in", (2, 3), (0, 1)),
        ("out", (2, 3), (3, 1)),
    ]
    assert kernel.attributes == {"code": [["load", 0], ["load", 1], ["max", 0, 1], ["store", 2, 2]]}


def test_strides_of_buffers_are_those_of_the_tensors() -> None:
    kernel = described(
        (view("torch.aten.bitwise_not", [arg("x", I16, 2, 3)], TensorType((2, 3), I16)), ["z"]),
        results=["z"], x=Storage((1, 2)), z=Storage((8, 2)),
    )  # fmt: skip
    assert isinstance(kernel, Kernel)
    assert [t.strides for t in kernel.tensors] == [(1, 2), (8, 2)]


def test_what_is_computed_twice_is_one_instruction() -> None:
    x = arg("x", I16, 4)
    kind = TensorType((4,), I16)
    kernel = described(
        (view("torch.aten.bitwise_not", [x], kind), ["a"]),
        (view("torch.aten.bitwise_not", [x], kind), ["b"]),
        (view("torch.aten.maximum", [arg("a", I16, 4), arg("b", I16, 4)], kind), ["z"]),
        results=["z"],
    )
    assert isinstance(kernel, Kernel)
    assert [step[0] for step in kernel.attributes["code"]] == ["load", "bit_not", "max", "store"]


def test_name_is_that_of_the_description() -> None:
    def negated(*dims: int) -> Kernel | Reject:
        return described((view("torch.aten.neg", [arg("x", I16, *dims)], TensorType(dims, I16)), ["z"]), results=["z"])

    first, second, other = negated(4), negated(4), negated(5)
    assert isinstance(first, Kernel)
    assert isinstance(second, Kernel)
    assert isinstance(other, Kernel)
    assert first.digest() == second.digest() != other.digest()


def test_element_of_an_operand_is_read_at_its_offset() -> None:
    kernel = described(
        (
            view(
                "hipdnn.onnx.OneHot", [arg("i", I64, 3), [5], arg("v", F32, 2)], TensorType((3, 5), F32), axis=-1
            ),
            ["z"],
        ),
        results=["z"], v=Storage((4,)),
    )  # fmt: skip
    assert isinstance(kernel, Kernel)
    assert sorted(t.offset for t in kernel.tensors if t.dtype is F32 and t.role == "in") == [0, 4]


def test_kernel_sees_a_dim_that_its_result_has_not() -> None:
    kernel = described(
        (view("hipdnn.onnx.ArgMax", [arg("x", F32, 2, 3)], TensorType((2,), I64), axis=1, keepdims=0), ["z"]),
        results=["z"],
    )
    assert isinstance(kernel, Kernel)
    assert kernel.function == "arg_reduce"
    assert kernel.tensors[1].dims == (2, 1)


def test_numbers_that_json_has_not_are_words() -> None:
    op = view("torch.aten.where.ScalarOther", [arg("c", BOOL, 4), arg("x", F32, 4), -math.inf], TensorType((4,), F32))
    kernel = described((op, ["z"]), results=["z"])
    assert isinstance(kernel, Kernel)
    assert ["const", "f32", "-inf"] in kernel.attributes["code"]


@pytest.mark.parametrize(
    ("op", "rule"),
    [
        (view("torch.aten.mm", [arg("x", F32, 2, 2), arg("y", F32, 2, 2)], TensorType((2, 2), F32)), "kernel"),
        (view("torch.aten.add.Tensor", [arg("x", BOOL, 2), arg("y", BOOL, 2), 1], TensorType((2,), BOOL)), "dtype"),
        (view("torch.aten.view", [arg("x", F32, 2, 2), [4]], TensorType((4,), F32)), "no-row"),
    ],
)
def test_what_no_kernel_expresses_is_refused(op: OpView, rule: str) -> None:
    found = described((op, ["z"]), results=["z"])
    assert isinstance(found, Reject)
    assert found.rule == rule
