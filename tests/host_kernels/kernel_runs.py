"""Runs one kernel of the host library on NumPy arrays of any strides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hipdnn_mlir_runtime.dtypes import BY_NAME, of_numpy
from hipdnn_mlir_runtime.session.session import Session
from runtime_programs import Array, TensorSpec, kernel_program

FLOATS = ("f32", "f64", "f16", "bf16")
INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
NUMBERS = FLOATS + INTEGERS
DTYPES = (*NUMBERS, "bool")


def spec_of(array: Array) -> TensorSpec:
    """Return an array as a kernel's tensor. Strides of dims of size 1 are free in NumPy; of empty arrays all are."""
    steps = tuple(
        abs(step) // array.itemsize if dim > 1 else 0 for step, dim in zip(array.strides, array.shape, strict=True)
    )
    return TensorSpec(of_numpy(array.dtype).name, array.shape, steps)


def memory_of(array: Array, spec: TensorSpec) -> Array:
    """Return the elements from an array's first to its last, as they lie in memory."""
    return np.lib.stride_tricks.as_strided(array, (spec.extent,), (array.itemsize,)).copy()


def run_kernel(
    function: str,
    arrays: Sequence[Array],
    outs: Sequence[TensorSpec],
    attributes: Mapping[str, Any],
    threads: int = 2,
) -> list[Array]:
    """Run a kernel and return its outputs.

    Args:
        function: Name of the function.
        arrays: Its ins; strides are kept, those of broadcast arrays too.
        outs: Its outs.
        attributes: Its attributes.
        threads: Threads of the run.
    """
    specs = [spec_of(array) for array in arrays]
    session = Session(kernel_program(function, specs, outs, attributes), threads=threads)
    feeds = {f"x{i}": memory_of(a, s) for i, (a, s) in enumerate(zip(arrays, specs, strict=True))}
    results = session.run(None, feeds)
    return [
        np.lib.stride_tricks.as_strided(flat, spec.dims, [step * flat.itemsize for step in spec.steps])
        for flat, spec in zip(results, outs, strict=True)
    ]


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the NumPy type of a dtype's name."""
    return BY_NAME[name].numpy


def values(dtype: str, shape: Sequence[int], seed: int) -> Array:
    """Return values that a dtype of any kind holds exactly, negative ones where it has them."""
    generator = np.random.default_rng(seed)
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(np.bool_)
    least = 0 if dtype.startswith("u") else -9
    numbers = generator.integers(least, 10, shape)
    return (numbers / 4 if dtype in FLOATS else numbers).astype(numpy_dtype(dtype))


shapes = st.lists(st.integers(0, 5), max_size=4).map(tuple)
full_shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)
seeds = st.integers(0, 2**16)


@st.composite
def strided(draw: st.DrawFn, dtype: str, shape: tuple[int, ...]) -> Array:
    """Return an array of a shape with its dims in any order of memory, gaps between elements, or broadcast dims."""
    order = draw(st.permutations(range(len(shape))))
    gap = draw(st.integers(1, 2))
    is_broadcast = [draw(st.integers(0, 4)) == 0 and dim > 0 for dim in shape]
    stored = [1 if is_broadcast[d] else shape[d] for d in order]
    if stored:
        stored[-1] *= gap
    array = values(dtype, stored, draw(seeds))
    if stored:
        array = array[..., ::gap]
    return np.broadcast_to(array.transpose(np.argsort(order)), shape)


@st.composite
def out_spec(draw: st.DrawFn, dtype: str, shape: tuple[int, ...]) -> TensorSpec:
    """Return an output of a shape: dense, or with its dims in another order."""
    order = draw(st.permutations(range(len(shape))))
    strides = [0] * len(shape)
    step = 1
    for d in reversed(order):
        strides[d] = step
        step *= max(shape[d], 1)
    return TensorSpec(dtype, shape, tuple(strides))
