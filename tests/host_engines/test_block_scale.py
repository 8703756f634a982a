"""Block scale quantize and dequantize against numpy with ml_dtypes' 8-bit types."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from host_engines.block_graph import BlockGraph, packed_int4
from host_engines.host_graph import HostError, strided_like

ENGINE = "HOST_BLOCK_SCALE_ENGINE"
E4M3, E5M2, E8M0 = (np.dtype(t) for t in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu))
GREATEST = {E4M3: 448.0, E5M2: 57344.0, np.dtype(np.int8): 127.0}


def run(kind: str, tensors: dict[str, np.ndarray], sizes: list[int], axis: int | None = None, **flags: bool) -> None:
    """One node; tensors by the end of the attribute's name."""
    graph = BlockGraph()
    graph.block_scale(kind, {name: graph.tensor(array) for name, array in tensors.items()}, sizes, axis, **flags)
    graph.run(ENGINE)


def spread(scale: np.ndarray, size: int, axis: int, length: int) -> np.ndarray:
    """The scale of every element."""
    return np.repeat(scale.astype(np.float32), size, axis).take(range(length), axis)


@pytest.mark.parametrize("narrow", list(GREATEST), ids=str)
@pytest.mark.parametrize("scale_type", [E8M0, E4M3, np.dtype(np.float32)], ids=str)
@pytest.mark.parametrize("wide", [np.float32, ml_dtypes.bfloat16])
def test_quantized_is_the_nearest_under_a_scale_that_fits(narrow: Any, scale_type: Any, wide: Any) -> None:
    rng = np.random.default_rng(0)
    for axis, size in ((2, 32), (1, 3)):
        x = strided_like((2, 7, 70), wide, (0, 2, 1))
        x[...] = rng.standard_normal(x.shape) * np.exp(rng.uniform(-3, 3, x.shape))
        x[0, :, :32] = 0
        dims = tuple(-(-d // size) if i == axis else d for i, d in enumerate(x.shape))
        y, scale = np.zeros(x.shape, narrow), np.zeros(dims, scale_type)
        run("QUANTIZE", {"XDESC": x, "YDESC": y, "SCALE_DESC": scale}, [size], axis, TRANSPOSE_EXT=False)
        full = x.astype(np.float32)
        padded = np.pad(np.abs(full), [(0, dims[i] * size - d if i == axis else 0) for i, d in enumerate(x.shape)])
        split = padded.reshape(*x.shape[:axis], dims[axis], size, *x.shape[axis + 1 :])
        exact = split.max(axis + 1) / np.float32(GREATEST[narrow])
        stored = scale.astype(np.float32)
        assert (stored >= exact).all()  # rounded up, and to the next value of the type
        if scale_type == E8M0:
            assert ((stored < 2 * exact) | (exact <= 2.0**-127)).all()
        elif scale_type == E4M3:
            assert (stored <= exact * 1.125 + 2.0**-9).all()
        each = spread(scale, size, axis, x.shape[axis])
        quotient = np.divide(full, each, out=np.zeros_like(full), where=each != 0)
        expected = np.rint(quotient).astype(np.int8) if narrow == np.int8 else quotient.astype(narrow)
        np.testing.assert_array_equal(y.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("narrow", list(GREATEST), ids=str)
@pytest.mark.parametrize("scale_type", [E8M0, E4M3, np.dtype(np.float32)], ids=str)
@pytest.mark.parametrize("sizes", [[32], [1, 1, 32], [2, 3, 32]])
def test_every_code_dequantizes_to_its_value(narrow: Any, scale_type: Any, sizes: list[int]) -> None:
    x = np.tile(np.arange(256, dtype=np.uint8), (2, 3, 1)).view(narrow)
    per_dim = sizes if len(sizes) == 3 else [1, 1, *sizes]
    dims = tuple(d // s for d, s in zip(x.shape, per_dim, strict=True))
    scale = np.exp2(np.random.default_rng(1).integers(-3, 4, dims)).astype(scale_type)
    y = strided_like(x.shape, np.float32, (1, 2, 0))
    run("DEQUANTIZE", {"XDESC": x, "SCALE_DESC": scale, "YDESC": y}, sizes, NEG_SCALE=False)
    each = scale.astype(np.float32)
    for axis, size in enumerate(per_dim):
        each = np.repeat(each, size, axis)
    np.testing.assert_array_equal(y, x.astype(np.float32) * each)


@pytest.mark.parametrize(("shape", "axis"), [((6, 32), 1), ((32, 6), 0), ((3, 38), 1)])
@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("wide", [np.float32, np.float16])
def test_int4_dequantize_to_their_values(shape: tuple[int, int], axis: int, is_transposed: bool, wide: Any) -> None:
    numbers = np.random.default_rng(2).integers(-8, 8, shape)
    dims = tuple(-(-d // 8) if i == axis else d for i, d in enumerate(shape))
    scale = np.exp2(np.random.default_rng(3).integers(-3, 4, dims)).astype(np.float32)
    strides = (1, shape[0]) if is_transposed else (shape[1], 1)
    stored = packed_int4((numbers.T if is_transposed else numbers).reshape(1, -1))
    graph, y = BlockGraph(), np.zeros(shape, wide)
    graph.dequantize(
        graph.int4(stored, shape, strides),
        graph.tensor(scale),
        graph.tensor(y),
        [8 if i == axis else 1 for i in range(2)],
        NEG_SCALE=False,
    )
    graph.run(ENGINE)
    np.testing.assert_array_equal(y, numbers * spread(scale, 8, axis, shape[axis]))


def test_misfits_are_refused_with_a_reason() -> None:
    x, y = np.zeros((4, 64), np.float32), np.zeros((4, 64), E4M3)
    with pytest.raises(HostError, match="do not divide"):
        run("QUANTIZE", {"XDESC": x, "YDESC": y, "SCALE_DESC": np.zeros((4, 3), E8M0)}, [32], TRANSPOSE_EXT=False)
    with pytest.raises(HostError, match="transposed"):
        run("QUANTIZE", {"XDESC": x, "YDESC": y, "SCALE_DESC": np.zeros((4, 2), E8M0)}, [32], TRANSPOSE_EXT=True)
    with pytest.raises(HostError, match="negative scales"):
        run("DEQUANTIZE", {"XDESC": y, "SCALE_DESC": np.zeros((4, 2), E8M0), "YDESC": x}, [32], NEG_SCALE=True)
    graph = BlockGraph()
    narrow = graph.int4(np.zeros((4, 32), np.uint8), (4, 64), (64, 1))
    graph.quantize(graph.tensor(x), narrow, graph.tensor(np.zeros((4, 2), np.float32)), 32, 1, TRANSPOSE_EXT=False)
    with pytest.raises(HostError, match="the quantized tensor is"):
        graph.run(ENGINE)
