"""Along dims that may be padded, what lies behind reaches nothing before it: each row's calls are run with other numbers at the end."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from torch_mlir import ir

import torch_ir
from hipdnn_mlir.codegen.generate import FUNCTIONS as GENERATED
from hipdnn_mlir.compiler.program import Program
from hipdnn_mlir.dynamic.padding.dependence import FUNCTIONS, OPERATIONS
from hipdnn_mlir.dynamic.padding.dims import Factor, plain
from hipdnn_mlir.dynamic.padding.follow import follow
from hipdnn_mlir.dynamic.padding.regions import tensors_of
from hipdnn_mlir.dynamic.padding.rules import Dims, Mixes
from hipdnn_mlir.ir.dialect import make_context
from hipdnn_mlir.ir.imported import Imported, TensorInfo
from hipdnn_mlir.ops.emitter import Operand
from hipdnn_mlir.ops.graph import Graph
from hipdnn_mlir.ops.kernels import Kernel
from hipdnn_mlir.ops.regions import emit_region
from hipdnn_mlir.ops.registry import ONNX
from hipdnn_mlir.ops.samples import Sample, samples
from hipdnn_mlir.ops.spec import TensorType
from hipdnn_mlir.passes.pipeline import OFFLOAD_STEPS, Runner
from hipdnn_mlir.program.emit import emit
from hipdnn_mlir.targets import host
from hipdnn_mlir_runtime.abi import Descriptor
from hipdnn_mlir_runtime.dtypes import BF16, BOOL, DType

PADDED = "n"
WINDOWED = (
    "torch.aten.convolution",
    "torch.aten.max_pool",
    "torch.aten.avg_pool",
    "hipdnn.onnx.Resize",
    "hipdnn.onnx.GridSample",
)


def batched(sample: Sample) -> Sample:
    """The same call on three images, where it is on one."""

    def change(arg: Any) -> Any:
        is_one = isinstance(arg, TensorType) and len(arg.dims) > 2 and arg.dims[0] == 1
        return TensorType((3, *arg.dims[1:]), arg.dtype) if is_one else arg

    changed = sample if not sample.op.startswith(WINDOWED) else replace(sample, args=tuple(map(change, sample.args)))
    return changed if changed == sample else replace(changed, results=tuple(map(change, sample.results)))


ACCEPTED = [batched(sample) for sample in samples() if sample.rule is None]
INDICES = {"Gather": 1, "GatherElements": 1, "GatherND": 1, "ScatterElements": 1, "Scatter": 1, "ScatterND": 1, "OneHot": 0,
           "ReverseSequence": 1, "CacheUpdate": 2, "ExpertMatMul": 1, "torch.aten.index_select": 1, "torch.aten.gather": 1}  # fmt: skip
"""Operands that hold positions, all of them below the least dim of the first operand."""
OF_HOST_ALONE = {"expert_matmul", "quantized_recurrence"}
"""Functions that are written out before code for GPUs is made."""


class Constant:
    """No number depends on a size: there is one sample point."""

    def symbol_in(self, column: Sequence[Any]) -> str | None:
        return None

    def symbol_of(self, column: tuple[int, ...]) -> str | None:
        return None


@pytest.fixture(scope="module")
def context() -> Iterator[ir.Context]:
    with make_context() as context, ir.Location.unknown():
        yield context


def session(sample: Sample) -> Any:
    """The sample's call as a program of its own."""
    module = ir.Module.parse(torch_ir.module(sample))
    Runner().run(module.operation, OFFLOAD_STEPS)
    kinds = [arg for arg in flat(sample.args) if isinstance(arg, TensorType)]
    results = sample.results if sample.uses_all else sample.results[:1]
    inputs = [TensorInfo(f"x{i}", kind.dtype, kind.static_dims()) for i, kind in enumerate(kinds)]
    outputs = [TensorInfo(f"y{i}", kind.dtype, kind.static_dims()) for i, kind in enumerate(results)]
    return Program(emit(Imported(module, {}, inputs, outputs, "sample"), "host", {}), {}).session()


def flat(args: Sequence[Any]) -> list[Any]:
    return [item for arg in args for item in (arg if isinstance(arg, list) else [arg])]


def numbers(rng: np.random.Generator, dtype: DType, dims: tuple[int, ...], limit: int | None) -> np.ndarray:
    """Random elements; positions below a limit."""
    if limit is not None:
        return rng.integers(0, limit, dims).astype(dtype.numpy)
    if dtype is BOOL:
        return rng.integers(0, 2, dims).astype(np.bool_)
    if not dtype.is_float:
        return rng.integers(1, 5, dims).astype(dtype.numpy)
    return rng.uniform(0.5, 2.0, dims).astype(dtype.numpy)


def ways_to_pad(sample: Sample) -> Iterator[tuple[tuple[int | None, ...], list[Dims | None]]]:
    """Per operand the axis that is padded, all of one size, and the results' dims, for each way that is said to be safe."""
    view = sample.view()
    shapes = [arg.type.static_dims() for arg in tensors_of(view)]
    axes = [[None, *(axis for axis, size in enumerate(dims) if size > 1)] for dims in shapes]
    if len(axes) > 4:
        axes = [axis if position < 3 else [None] for position, axis in enumerate(axes)]
    for chosen in itertools.product(*axes):
        sizes = {dims[axis] for dims, axis in zip(shapes, chosen, strict=True) if axis is not None}
        if len(sizes) == 1:
            try:
                made = follow(
                    [view], [dims_of(dims, axis) for dims, axis in zip(shapes, chosen, strict=True)], Constant()
                )
            except Mixes:
                continue
            yield chosen, made.results


def dims_of(shape: tuple[int, ...], padded: int | None) -> Dims:
    return [(Factor((size,), PADDED),) if axis == padded else plain((size,)) for axis, size in enumerate(shape)]


def without_last(array: np.ndarray, dims: Dims) -> np.ndarray:
    """A result without the last elements along each padded factor of its dims."""
    factors: list[Factor] = [factor for dim in dims for factor in dim]
    split = array.reshape([factor.sizes[0] for factor in factors])
    return split[tuple(slice(None) if factor.symbol is None else slice(-1) for factor in factors)]


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize("sample", ACCEPTED, ids=str)
def test_what_lies_behind_reaches_nothing_before_it(sample: Sample) -> None:
    ways = list(ways_to_pad(sample))
    if not ways:
        return  # every dim is mixed: nothing is claimed
    rng = np.random.default_rng(zlib.crc32(str(sample).encode()))
    args = tensors_of(sample.view())
    index = INDICES.get(sample.op.removeprefix(ONNX), -1)
    positions = [i for i, arg in enumerate(args) if arg.scalar is None]

    def fresh(i: int) -> np.ndarray:
        kind = args[i].type
        limit = min(args[0].type.static_dims()) if i == index else None
        return numbers(rng, kind.dtype, kind.static_dims(), limit)

    given = [fresh(i) for i in positions]
    loaded = session(sample)
    names = [port.name for port in loaded.inputs]
    before = loaded.run(None, dict(zip(names, given, strict=True)))
    for chosen, results in ways:
        changed = []
        for place, i in enumerate(positions):
            array = given[place].copy()
            if chosen[i] is not None:
                last = (slice(None),) * chosen[i] + (-1,)
                array[last] = fresh(i)[last]
            changed.append(array)
        after = loaded.run(None, dict(zip(names, changed, strict=True)))
        for a, b, dims in zip(before, after, results, strict=False):
            if dims is not None:
                wide = np.float32 if a.dtype == BF16.numpy else a.dtype
                np.testing.assert_array_equal(
                    without_last(a, dims).astype(wide), without_last(b, dims).astype(wide), err_msg=f"padded: {chosen}"
                )


def test_every_kernel_of_the_host_and_of_gpus_says_what_it_mixes() -> None:
    known = (host.refuses_kernel(Kernel("no_such_function")) or "").partition("known are ")[2]
    assert set(FUNCTIONS) == set(known.split(", ")) == GENERATED | OF_HOST_ALONE


def test_every_operation_that_rows_become_says_what_it_mixes() -> None:
    made = set()
    for sample in ACCEPTED:
        view = sample.view()
        operands = {
            arg.key: Operand(arg.type.static_dims(), arg.type.dtype) for arg in tensors_of(view) if arg.scalar is None
        }
        graph = emit_region([(view, ["result"])], operands, [("result", view.results[0])])
        made |= {node.type for node in graph.nodes} if isinstance(graph, Graph) else set()
    assert made == set(OPERATIONS) - {Descriptor.OPERATION_CUSTOM_OP_DESCRIPTOR_EXT}


SAFE = {
    "torch.aten.convolution": {(0, None, None), (0, None)},
    "torch.aten.mm": {(0, None), (None, 1)},
    "torch.aten.softmax.int": {(0,)},
    "torch.aten.native_batch_norm": {(1, 0, 0, None, None), (1, 0, 0, 0, 0)},
    "torch.aten.scaled_dot_product_attention": {(2, 2, 2)},
    "torch.aten.batch_norm": {(0, None, None, None, None)},
}
"""Some of the ways: a table that calls everything mixed would be safe as well, and of no use."""


@pytest.mark.parametrize("op", SAFE)
def test_rows_are_independent_along_dims_that_models_pad(op: str) -> None:
    found = {way for sample in ACCEPTED if sample.op == op for way, _ in ways_to_pad(sample)}
    assert found & SAFE[op]
