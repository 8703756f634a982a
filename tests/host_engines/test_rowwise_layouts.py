"""Broadcasting, strides, layout conversion, casts and fills on the rowwise engine, against numpy."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from hipdnn_mlir_runtime.abi import DataType, Pointwise
from host_engines.host_graph import ROWWISE, HostGraph, strided_like

DTYPES = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int32, np.int64, np.bool_)


def copied(source: np.ndarray, target: np.ndarray, threads: int = 2) -> np.ndarray:
    """IDENTITY from one array's layout and type into another's."""
    graph = HostGraph()
    graph.pointwise(Pointwise.IDENTITY, [graph.tensor(source)], graph.tensor(target))
    graph.run(ROWWISE, threads)
    return target


@pytest.mark.parametrize(
    "shapes",
    list(itertools.product([(4, 5, 6, 70), (1, 5, 1, 70), (4, 1, 6, 1), (1, 1, 1, 1), (1, 1, 1, 70)], repeat=2)),
)
def test_broadcast_equals_numpy(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, dtype=np.float32) for shape in shapes)
    out = np.empty(np.broadcast_shapes(*shapes), np.float32)
    graph = HostGraph()
    graph.pointwise(Pointwise.SUB, [graph.tensor(a), graph.tensor(b)], graph.tensor(out))
    graph.run(ROWWISE)
    np.testing.assert_array_equal(out, a - b)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
@pytest.mark.parametrize("shape", [(2, 3, 9, 17), (3, 16, 24, 8)])
def test_copy_into_any_order_of_axes(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    np.testing.assert_array_equal(copied(x, strided_like(shape, np.float32, order)), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 3, 30, 31), (1, 64, 14, 14), (2, 4, 33, 9), (1, 2, 40, 40)])
def test_channels_last_and_back_for_every_type(shape: tuple[int, ...], dtype: type) -> None:
    x = np.random.default_rng(2).integers(0, 100, shape).astype(dtype)
    stored = copied(x, strided_like(shape, dtype, (0, 2, 3, 1)))
    np.testing.assert_array_equal(stored, x)
    np.testing.assert_array_equal(copied(stored, np.empty(shape, dtype)), x)


def test_nan_payloads_and_negative_zero_survive_a_copy() -> None:
    bits = np.array([0x7FC00001, 0xFFC12345, 0x80000000, 0x00000001, 0x7F800001], np.uint32)
    x = np.tile(bits, (4, 1)).view(np.float32)
    out = copied(x, strided_like(x.shape, np.float32, (1, 0)))
    np.testing.assert_array_equal(np.ascontiguousarray(out).view(np.uint32), x.view(np.uint32))


def test_slices_and_steps_are_read_and_written_in_place() -> None:
    base = np.random.default_rng(3).standard_normal((6, 20, 50), dtype=np.float32)
    target = np.full((6, 20, 50), 7, np.float32)
    copied(base[1:5, ::3, 8:40:2], target[1:5, ::3, 8:40:2])
    np.testing.assert_array_equal(target[1:5, ::3, 8:40:2], base[1:5, ::3, 8:40:2])
    untouched = np.ones(target.shape, bool)
    untouched[1:5, ::3, 8:40:2] = False
    assert (target[untouched] == 7).all()


def test_gap_after_rows_is_not_written() -> None:
    x = np.random.default_rng(4).standard_normal((40, 33), dtype=np.float32)
    out = strided_like(x.shape, np.float32, (0, 1), gap=5)
    copied(x, out)
    np.testing.assert_array_equal(out, x)
    assert (np.lib.stride_tricks.as_strided(out, (40, 38), out.strides)[:39, 33:] == 77).all()


def test_zero_stride_operand_repeats() -> None:
    row = np.arange(37, dtype=np.float32)
    expanded = np.broadcast_to(row, (5, 8, 37))
    np.testing.assert_array_equal(copied(expanded, np.empty((5, 8, 37), np.float32)), expanded)


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_cast_of_representable_values_equals_numpy(source: type, target: type) -> None:
    x = np.array([[0, 1, 2, 100, 7, 0, 1, 127]] * 3).astype(source)
    np.testing.assert_array_equal(copied(x, np.empty(x.shape, target)), x.astype(target))


@pytest.mark.parametrize("target", [np.int8, np.uint8, np.int32, np.int64])
@pytest.mark.parametrize("source", [np.float32, np.float64, np.float16])
def test_float_to_integer_truncates_and_saturates(source: type, target: type) -> None:
    x = np.array([1.9, -1.9, 0.5, -0.5, np.inf, -np.inf, np.nan, 6e4, -6e4], source)
    info = np.iinfo(target)
    wide = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=2.0**70, neginf=-(2.0**70))
    expected = [max(info.min, min(info.max, int(v))) for v in wide]
    np.testing.assert_array_equal(copied(x, np.empty(x.shape, target)), np.array(expected, target))


def test_integer_narrowing_wraps() -> None:
    x = np.array([300, -129, 255, 128, 2**31 + 5], np.int64)
    for target in (np.int8, np.uint8, np.int32):
        np.testing.assert_array_equal(copied(x, np.empty(x.shape, target)), x.astype(target))


def test_anything_but_zero_is_true() -> None:
    x = np.array([0.0, -0.0, 0.25, -3, np.nan], np.float32)
    np.testing.assert_array_equal(copied(x, np.empty(x.shape, np.bool_)), x.astype(np.bool_))


@pytest.mark.parametrize("target", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_round_to_nearest_even(target: type) -> None:
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2**32, 200_000, dtype=np.uint64).astype(np.uint32)
    x = bits.view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = x.astype(target)
    got = copied(x, np.empty(x.shape, target))
    same = (got.view(np.uint16) == expected.view(np.uint16)) | (
        np.isnan(got.astype(np.float32)) & np.isnan(expected.astype(np.float32))
    )
    assert same.all()


@pytest.mark.parametrize("source", [np.float16, ml_dtypes.bfloat16])
def test_every_narrow_float_widens_exactly(source: type) -> None:
    x = np.arange(2**16, dtype=np.uint16).view(source)
    np.testing.assert_array_equal(copied(x, np.empty(x.shape, np.float32)), x.astype(np.float32))


def test_cast_chain_truncates_between_virtual_tensors() -> None:
    x = np.array([1.75, -2.5, 300.25, -0.1], np.float32)
    out = np.empty_like(x)
    graph = HostGraph()
    whole = graph.pointwise(Pointwise.IDENTITY, [graph.tensor(x)], graph.virtual(x.shape, np.int32))
    byte = graph.pointwise(Pointwise.IDENTITY, [whole], graph.virtual(x.shape, np.int8))
    graph.pointwise(Pointwise.IDENTITY, [byte], graph.tensor(out))
    graph.run(ROWWISE)
    np.testing.assert_array_equal(out, x.astype(np.int32).astype(np.int8).astype(np.float32))


@pytest.mark.parametrize("dtype", DTYPES)
def test_identity_from_a_scalar_fills(dtype: type) -> None:
    out = strided_like((3, 5, 7), dtype, (1, 0, 2))
    graph = HostGraph()
    graph.pointwise(Pointwise.IDENTITY, [graph.scalar(1, dtype)], graph.tensor(out))
    graph.run(ROWWISE)
    np.testing.assert_array_equal(out, np.ones((3, 5, 7), dtype))


def test_int64_scalar_is_exact() -> None:
    out = np.empty(3, np.int64)
    graph = HostGraph()
    graph.pointwise(Pointwise.IDENTITY, [graph.scalar(2**53 + 1, np.int64)], graph.tensor(out))
    graph.run(ROWWISE)
    assert (out == 2**53 + 1).all()


def test_lower_rank_operand_aligns_at_the_last_axis() -> None:
    rng = np.random.default_rng(6)
    a, b = rng.standard_normal((3, 4, 5), dtype=np.float32), rng.standard_normal(5, dtype=np.float32)
    out = np.empty_like(a)
    graph = HostGraph()
    graph.pointwise(Pointwise.MUL, [graph.tensor(a), graph.tensor(b)], graph.tensor(out))
    graph.run(ROWWISE)
    np.testing.assert_array_equal(out, a * b)


@pytest.mark.parametrize("seed", range(40))
def test_random_graph_in_random_layouts_equals_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 6))
    shape = tuple(int(d) for d in rng.integers(1, 12, rank))

    def operand() -> np.ndarray:
        kept = tuple(d if rng.random() < 0.7 else 1 for d in shape)
        array = strided_like(kept, np.float32, tuple(rng.permutation(rank)), gap=int(rng.integers(0, 3)))
        array[...] = rng.uniform(-2, 2, kept)
        return array

    a, b, c, d = (operand() for _ in range(4))
    first, second = (strided_like(shape, t, tuple(rng.permutation(rank))) for t in (np.float32, np.float16))
    graph = HostGraph()
    ta, tb, tc, td = (graph.tensor(v) for v in (a, b, c, d))
    total = graph.pointwise(Pointwise.ADD, [ta, tb], graph.virtual(shape))
    product = graph.pointwise(Pointwise.MUL, [total, tc], graph.virtual(shape))
    shifted = graph.pointwise(Pointwise.ADD, [product, td], graph.virtual(shape))
    less = graph.pointwise(Pointwise.CMP_LT, [shifted, total], graph.virtual(shape, np.bool_))
    graph.pointwise(Pointwise.BINARY_SELECT, [shifted, total, less], graph.tensor(first))
    graph.pointwise(Pointwise.TANH_FWD, [shifted], graph.tensor(second))
    graph.run(ROWWISE, threads=1 + seed % 3)
    wide = [v.astype(np.float64) for v in (a, b, c, d)]
    expected = (wide[0] + wide[1]) * wide[2] + wide[3]
    np.testing.assert_allclose(
        first, np.broadcast_to(np.minimum(expected, wide[0] + wide[1]), shape), rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(second, np.broadcast_to(np.tanh(expected), shape), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_result_does_not_depend_on_threads(threads: int) -> None:
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((64, 300, 41), dtype=np.float32), rng.standard_normal((64, 1, 41), dtype=np.float32)
    out = np.empty_like(a)
    graph = HostGraph()
    graph.pointwise(Pointwise.MUL, [graph.tensor(a), graph.tensor(b)], graph.tensor(out), math=DataType.FLOAT)
    graph.run(ROWWISE, threads)
    np.testing.assert_array_equal(out, a * b)


def test_chain_writes_over_its_input() -> None:
    x = np.random.default_rng(8).standard_normal((3, 50, 70), dtype=np.float32)
    expected = np.maximum(x, 0) * x
    graph = HostGraph()
    tx = graph.tensor(x)
    positive = graph.pointwise(Pointwise.RELU_FWD, [tx], graph.virtual(x.shape))
    graph.pointwise(Pointwise.MUL, [positive, tx], graph.tensor(x))
    graph.run(ROWWISE)
    np.testing.assert_array_equal(x, expected)
