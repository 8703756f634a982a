"""Matmuls of several dims of batches on NVIDIA's GPUs: which library is asked for them, and in which form.

What cuDNN and cuBLASLt take was tried on an H200, with cuDNN 9.19 and cuBLASLt 13.1: cuDNN one dim of batches of any stride, none where
another dim before is larger than 1; cuBLASLt several, where their matrices lie one stride apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import hipdnn_mlir
from gpu.graphs import graph_of
from hipdnn_mlir.ops.emitter import Emitter, Value
from hipdnn_mlir.ops.families.matmul import matmul_node
from hipdnn_mlir.ops.graph import Graph
from hipdnn_mlir.targets.table import find_target
from hipdnn_mlir_runtime.abi import Attribute, Descriptor, Pointwise
from host_kernels.kernel_runs import TensorSpec, spec_of
from models import GraphBuilder
from runtime_programs import Array

LIBRARIES = ("CUDNN_ENGINE", "CUBLASLT_ENGINE")


def half(*dims: int) -> Array:
    return np.zeros(dims, np.float16)


def with_heads(batch: int, heads: int, rows: int, width: int) -> Array:
    """(batch, heads, rows, width) of rows that have all heads side by side, as a layer gives them."""
    return half(batch, rows, heads, width).transpose(0, 2, 1, 3)


def product(arrays: Sequence[Array], out: Array, *modes: Pointwise) -> Graph:
    """The first array times the second, then functions, the first of them with the third array where there is one."""

    def body(e: Emitter, x: Value, w: Value, *added: Value) -> Value:
        value = matmul_node(e, x, w)
        for number, mode in enumerate(modes):
            value = e.pointwise(mode, value, *(added if number == 0 else ()))
        return value

    spec = spec_of(out)
    return graph_of(body, arrays, [TensorSpec("f16", spec.dims, spec.steps)])


def asked(graph: Graph) -> Graph | None:
    """The graph as a library is asked for it; None where none is."""
    engine = find_target("sm_90").engine_for(graph)
    return engine.conform(graph) if engine is not None and engine.name in LIBRARIES else None


def dims_of(graph: Graph) -> list[tuple[int, ...]]:
    return [tensor.dims for _, tensor in graph.by_uid() if tensor.has_pointer]


@pytest.mark.parametrize(
    ("weights", "values", "out"),
    [
        (half(16, 6, 49, 49), with_heads(16, 6, 49, 32), half(16, 6, 49, 32)),
        (half(16, 6, 49, 49), half(16, 6, 49, 32), with_heads(16, 6, 49, 32)),
        (half(16, 6, 64, 64), with_heads(16, 6, 64, 32), with_heads(16, 6, 64, 32)),
        (half(16, 6, 49, 49), half(16, 1, 49, 32), half(16, 6, 49, 32)),
    ],
    ids=["values", "result", "both", "shared by heads"],
)
def test_no_library_is_asked_where_matrices_of_two_dims_are_not_one_stride_apart(
    weights: Array, values: Array, out: Array
) -> None:
    assert asked(product([weights, values], out)) is None


def test_what_is_added_to_the_heads_of_windows_is_no_librarys() -> None:
    arrays = [half(16, 6, 49, 32), half(16, 6, 32, 49), half(1, 6, 49, 49)]
    assert asked(product(arrays, half(16, 6, 49, 49), Pointwise.ADD)) is None
    assert asked(product(arrays[:2], half(16, 6, 49, 49))) is not None


def test_batches_are_one_dim_where_strides_allow() -> None:
    arrays = [half(4, 6, 49, 32), half(4, 6, 32, 49), half(1, 1, 49, 49)]
    graph = asked(product(arrays, half(4, 6, 49, 49), Pointwise.ADD, Pointwise.SIGMOID_FWD))
    assert graph is not None
    assert dims_of(graph) == [(24, 49, 32), (24, 32, 49), (1, 49, 49), (24, 49, 49)]


def test_a_batch_of_one_leaves_heads_where_they_are() -> None:
    arrays = [half(1, 6, 49, 49), with_heads(1, 6, 49, 32)]
    graph = asked(product(arrays, with_heads(1, 6, 49, 32), Pointwise.SIGMOID_FWD))
    assert graph is not None
    assert [(t.dims, t.strides) for _, t in graph.by_uid() if t.has_pointer] == [
        ((6, 49, 49), (2401, 49, 1)),
        ((6, 49, 32), (32, 192, 1)),
        ((6, 49, 32), (32, 192, 1)),
    ]


def test_batches_are_rows_of_a_product_with_one_matrix() -> None:
    arrays = [half(8, 14, 14, 64), half(1, 1, 64, 32), half(1, 1, 1, 32)]
    graph = asked(product(arrays, half(8, 14, 14, 32), Pointwise.ADD, Pointwise.GELU_FWD))
    assert graph is not None
    assert dims_of(graph) == [(1, 1568, 64), (1, 64, 32), (1, 1, 32), (1, 1568, 32)]


def test_what_is_added_to_each_image_keeps_batches_apart() -> None:
    arrays = [half(8, 196, 64), half(1, 64, 32), half(1, 196, 32)]
    graph = asked(product(arrays, half(8, 196, 32), Pointwise.ADD))
    assert graph is not None
    assert dims_of(graph) == [(8, 196, 64), (1, 64, 32), (1, 196, 32), (8, 196, 32)]


def test_no_library_is_asked_for_a_matrix_whose_elements_are_nowhere_adjacent() -> None:
    mixed = half(1, 196, 196, 4).transpose(0, 3, 1, 2)  # heads that a layer mixes are the last dim of its result
    values = with_heads(1, 4, 196, 48)
    assert asked(product([mixed, values], half(1, 4, 196, 48))) is None
    assert asked(product([half(1, 4, 196, 196), values], half(1, 4, 196, 48))) is not None


def test_no_library_is_asked_where_a_sum_or_a_result_is_nowhere_adjacent() -> None:
    x, w, gaps = half(1, 196, 32), half(1, 32, 64), half(1, 196, 64, 2)[..., 0]
    assert asked(product([x, w, gaps], half(1, 196, 64), Pointwise.ADD)) is None
    assert asked(product([x, w, half(1, 196, 64)], gaps, Pointwise.ADD)) is None
    assert asked(product([x, w, half(1, 1, 64)], half(1, 64, 196).transpose(0, 2, 1), Pointwise.ADD)) is not None


def test_products_of_windows_that_are_slices_of_one_matrix_have_one_dim_of_batches() -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install '.[gpu]'")
    b = GraphBuilder("windows")
    split = b.op("Transpose", b.input("x", [4, 50, 3, 6, 32]), perm=[2, 0, 3, 1, 4])
    q, k, v = (b.op("Gather", split, b.constant(np.array(i), "int64", "i"), axis=0) for i in range(3))
    bias = b.constant(b.rng.standard_normal([1, 6, 50, 50]), "float32", "bias")
    multiplied = b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = b.op("Add", b.op("Mul", multiplied, b.constant(np.array(0.25), "float32", "scale")), bias)
    y = b.op("Transpose", b.op("MatMul", b.op("Sigmoid", scores), v), perm=[0, 2, 1, 3])
    program = hipdnn_mlir.compile(b.model({y: [4, 50, 6, 32]}), target="sm_90", precision="f16")
    tensors = [
        {name: value for name, _, value in attributes}
        for executable in program.model.executables
        for kind, attributes in executable.descriptors
        if kind == Descriptor.TENSOR_DESCRIPTOR
    ]
    assert [executable.engine for executable in program.model.executables] == ["CUDNN_ENGINE"] * 2
    assert {len(tensor[Attribute.TENSOR_DIMENSIONS]) for tensor in tensors} == {3}


@pytest.mark.parametrize("by_columns", [True, False])
def test_what_is_added_lies_in_the_order_of_the_result(by_columns: bool) -> None:
    out = half(4, 128, 64).transpose(0, 2, 1)
    added = out if by_columns else half(4, 64, 128)
    graph = asked(product([half(4, 64, 16), half(1, 16, 128), added], out, Pointwise.ADD, Pointwise.TANH_FWD))
    assert (graph is not None) == by_columns
