"""Which graphs are matmuls of few rows, and why others are none."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from gpu.graphs import Body, graph_of
from gpu.layers import EPSILON, codes_of, linear, norm, of_codes, op
from hipdnn_mlir.ops.emitter import Emitter, Value
from hipdnn_mlir.ops.families.matmul import matmul_node
from hipdnn_mlir.ops.few_rows import MOST_ROWS, MOST_ROWS_OF_CODES, few_rows, takes_rows
from hipdnn_mlir.ops.spec import Refusal
from hipdnn_mlir_runtime.abi import Pointwise
from host_kernels.kernel_runs import TensorSpec
from runtime_programs import Array


def refusal(body: Body, arrays: list[Array], *results: tuple[int, ...]) -> str:
    graph = graph_of(body, arrays, [TensorSpec("f32", dims) for dims in results])
    with pytest.raises(Refusal) as refused:
        few_rows(graph)
    return f"{refused.value.rule}: {refused.value.reason}"


def zeros(*shapes: tuple[int, ...]) -> list[Array]:
    return [np.zeros(shape, np.float32) for shape in shapes]


@pytest.mark.parametrize("shape", [(2, 30), (1, 30)])
def test_other_matmuls_are_none_of_these(shape: tuple[int, ...]) -> None:
    weight = np.zeros((30, 8), np.float32)  # rows along memory
    said = refusal(matmul_node, [np.zeros(shape, np.float32), weight], (shape[0], 8))
    assert said == "strides: has a matrix whose columns do not lie along memory"


def too_many(body: Body, arrays: list[Array], result: tuple[int, ...], *, has_units: bool = False) -> str | None:
    graph = graph_of(body, arrays, [TensorSpec("f32", result)])
    return takes_rows(graph, few_rows(graph), has_units=has_units)


@pytest.mark.parametrize("has_units", [True, False])
@pytest.mark.parametrize("shape", [(MOST_ROWS + 1, 32), (3, 2, 32)])
def test_many_rows_are_refused(shape: tuple[int, ...], *, has_units: bool) -> None:
    said = too_many(linear, zeros(shape, (8, 32)), (*shape[:-1], 8), has_units=has_units)
    assert said == f"has {np.prod(shape[:-1])} rows, at most {MOST_ROWS}"
    assert too_many(linear, zeros((MOST_ROWS, 32), (8, 32)), (MOST_ROWS, 8), has_units=has_units) is None


def test_many_rows_are_refused_when_weights_have_4_bits() -> None:
    codes, scales, _ = codes_of(1, 4, 8, 64, 32)
    most = MOST_ROWS_OF_CODES
    for rows, said in ((most, None), (most + 1, f"has {most + 1} rows, at most {most}")):
        assert too_many(partial(of_codes, block=32), [*zeros((rows, 64)), codes, scales], (rows, 8)) == said


@pytest.mark.parametrize("has_units", [True, False])
def test_more_rows_than_matrix_units_take_behind_a_norm_leave_it_out(*, has_units: bool) -> None:
    codes, scales, _ = codes_of(1, 4, 8, 64, 32)
    most = MOST_ROWS if has_units else MOST_ROWS_OF_CODES

    def behind(e: Emitter, x: Value, scale: Value, codes: Value, scales: Value) -> Value:
        return of_codes(e, norm(e, x, scale), codes, scales, block=32)

    for rows, said in ((most, None), (most + 1, f"has {most + 1} rows, at most {most}")):
        arrays = [*zeros((rows, 64), (64,)), codes, scales]
        assert too_many(behind, arrays, (rows, 8), has_units=has_units) == said
    arrays = [*zeros((MOST_ROWS_OF_CODES, 64)), codes, scales]
    assert too_many(partial(of_codes, block=32), arrays, (MOST_ROWS_OF_CODES, 8), has_units=has_units) is None


def test_a_batch_of_matrices_is_refused() -> None:
    x, weight = zeros((2, 1, 32), (2, 8, 32))
    for has_units in (True, False):
        said = too_many(matmul_node, [x, weight.transpose(0, 2, 1)], (2, 1, 8), has_units=has_units)
        assert said == "has a batch of matrices"
    said = refusal(matmul_node, [x[:1], weight.transpose(0, 2, 1)], (2, 1, 8))
    assert said == "shape: has a batch of matrices that is not one of rows"


def test_matmuls_that_do_not_fit_together_are_refused() -> None:
    def sizes(e: Emitter, x: Value, a: Value, b: Value) -> list[Value]:
        return [linear(e, x, a), linear(e, x, b)]

    def operands(e: Emitter, x: Value, y: Value, a: Value) -> list[Value]:
        return [linear(e, x, a), linear(e, y, a)]

    assert "different sizes" in refusal(sizes, zeros((1, 32), (8, 32), (9, 32)), (1, 8), (1, 9))
    assert "different left operands" in refusal(operands, zeros((1, 32), (1, 32), (8, 32)), (1, 8), (1, 8))


def test_a_norm_that_something_else_reads_is_refused() -> None:
    def shown(e: Emitter, x: Value, scale: Value, weight: Value) -> list[Value]:
        rows = norm(e, x, scale)
        return [rows, linear(e, rows, weight)]

    def added(e: Emitter, x: Value, scale: Value, weight: Value) -> Value:
        rows = norm(e, x, scale)
        return e.pointwise(Pointwise.ADD, rows, linear(e, rows, weight))

    operands = zeros((1, 32), (32,), (32, 32))
    assert refusal(shown, operands, (1, 32), (1, 32)) == "operand: has a norm that something else reads"
    assert refusal(added, operands, (1, 32)) == "operand: has a norm or a dequantization that something else reads"


def test_a_norm_over_other_dims_is_refused() -> None:
    def body(e: Emitter, x: Value, scale: Value, weight: Value) -> Value:
        return linear(e, op(e, "aten.rms_norm", x, [2, 32], scale, EPSILON), weight)

    said = refusal(body, zeros((1, 2, 32), (2, 32), (8, 32)), (1, 2, 8))
    assert said == "operand: has a norm over other dims than the last"


def test_what_is_computed_in_the_graph_is_refused_as_an_operand() -> None:
    def left(e: Emitter, x: Value, weight: Value) -> Value:
        return linear(e, e.pointwise(Pointwise.RELU_FWD, x), weight)

    def of_product(e: Emitter, x: Value, weight: Value) -> Value:
        return linear(e, linear(e, x, weight), weight)

    def right(e: Emitter, x: Value, weight: Value) -> list[Value]:
        seen = e.reinterpret(weight, weight.dtype, (32, 32), (1, 32))
        return [linear(e, x, weight), matmul_node(e, x, e.pointwise(Pointwise.RELU_FWD, seen))]

    operands = zeros((1, 32), (32, 32))
    assert refusal(left, operands, (1, 32)) == "node: starts with something else"
    assert refusal(of_product, operands, (1, 32)) == "operand: has matmuls of different left operands"
    assert refusal(right, operands, (1, 32), (1, 32)).startswith("operand: multiplies ")


def test_an_activation_of_8_bits_is_refused() -> None:
    codes, scales, _ = codes_of(1, 8, 8, 64, 32)
    said = refusal(partial(of_codes, block=32, rounds=1), [*zeros((1, 64)), codes, scales], (1, 8))
    assert said.startswith("node: takes matmuls, ")


def test_blocks_along_columns_are_refused() -> None:
    codes, scales = np.zeros((8, 32), np.int8), np.ones((2, 32), np.float32)

    def body(e: Emitter, x: Value, codes: Value, scales: Value) -> Value:
        weights = op(e, "DequantizeLinear", codes, scales, dtype=x.dtype, axis=1, block_size=4)
        return matmul_node(e, x, weights)

    said = refusal(body, [*zeros((1, 32)), codes.T, scales.T], (1, 8))
    assert said == "operand: has blocks that do not lie along the inner dim"


@pytest.mark.parametrize(("bits", "inner", "block", "count"), [(8, 72, 36, 8), (8, 64, 4, 8), (4, 48, 24, 16)])
def test_blocks_that_a_thread_would_cross_are_refused(bits: int, inner: int, block: int, count: int) -> None:
    codes, scales, _ = codes_of(1, bits, 8, inner, block)
    said = refusal(partial(of_codes, block=block), [*zeros((1, inner)), codes, scales], (1, 8))
    assert said == f"shape: has blocks of {block} of {inner} numbers, expected multiples of {count}"
