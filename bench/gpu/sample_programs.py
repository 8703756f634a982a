"""The op table's accepted samples as small programs, in the types that they are written in and in 16-bit ones, with inputs from a seed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from torch_mlir import ir

import torch_ir
from hipdnn_mlir.compiler.program import Lowered, Program
from hipdnn_mlir.ir.claims import rejects
from hipdnn_mlir.ir.constants import plan_constants
from hipdnn_mlir.ir.dialect import make_context
from hipdnn_mlir.ir.imported import Imported, TensorInfo
from hipdnn_mlir.ops.registry import ONNX
from hipdnn_mlir.ops.samples import Sample, samples
from hipdnn_mlir.ops.spec import TensorType
from hipdnn_mlir.passes.pipeline import OFFLOAD_STEPS, TORCH_STEPS, Runner
from hipdnn_mlir.program.emit import emit
from hipdnn_mlir.targets.table import find_target
from hipdnn_mlir.versions import producers
from hipdnn_mlir_runtime import dtypes
from hipdnn_mlir_runtime.errors import RefusedPlan, UnsupportedError

Array = npt.NDArray[np.generic]

POSITIVE = (
    "log",
    "sqrt",
    "rsqrt",
    "pow.Tensor_Scalar",
    "batch_norm",
    "native_batch_norm",
    f"{ONNX}BatchNormalizationInference",
)
INSIDE_ONE = ("acos", "asin", "atanh")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
INDEXED = ("gather", "index_select", "scatter.src", "scatter_add")
"""Whose integers say where to look."""
GIVEN: dict[str, tuple[float, ...]] = {f"{ONNX}Range": (0, 5, 1)}
"""Values of operands of rank 0 that the results' dims depend on."""
NATURAL_LIMIT = 4
"""Above every index; no sample looks into a shorter dim."""


def named_samples() -> dict[str, Sample]:
    """Every accepted sample, and those of f32 in f16 and bf16, which a target may refuse; by a name that says which."""
    accepted = [sample for sample in samples() if sample.rule is None]
    return {
        f"sample {number:03d} {sample}": sample
        for number, sample in enumerate(s for a in accepted for s in _in_types(a))
    }


def _in_types(sample: Sample) -> Iterator[Sample]:
    yield sample
    for dtype in (dtypes.F16, dtypes.BF16):
        if (other := sample.with_dtype(dtypes.F32, dtype)) != sample:
            yield other


def compile_sample(sample: Sample, target: str, refused: Sequence[RefusedPlan] = ()) -> Program:
    """The program of a module that makes the sample's call, without the refused graphs.

    Raises:
        UnsupportedError: The target does not take it.
        PassError: A defect of the compiler.
    """
    runner = Runner(target=target, refused=[plan.graph for plan in refused])
    context = make_context()
    with context, ir.Location.unknown():
        module = ir.Module.parse(torch_ir.module(sample))
        runner.run(module.operation, TORCH_STEPS[1:])
        constants = plan_constants(module.operation)
        runner.run(module.operation, OFFLOAD_STEPS[:1])
        if left := rejects(module.operation, find_target(target)):
            raise UnsupportedError(left, target=target)
        runner.run(module.operation, OFFLOAD_STEPS[1:])
        used = sample.results if sample.uses_all else sample.results[:1]
        imported = Imported(module, {}, _infos("x", operands(sample)), _infos("r", used), str(sample))
        program = emit(imported, target, producers(), refused)
    return Lowered(program, {}, constants, 0, runner.elapsed_ms, program).with_weights()


def operands(sample: Sample) -> list[TensorType]:
    """The types of the tensors that the caller gives, in order."""
    return [kind for arg in sample.args for kind in (arg if isinstance(arg, list) else [arg]) if _is_tensor(kind)]


def inputs(sample: Sample) -> list[Array]:
    """Arrays inside the operator's domain, from a seed of the sample's own."""
    rng = np.random.default_rng(zlib.crc32(str(sample).encode()))
    if sample.op in GIVEN:
        return [
            np.asarray(value, kind.dtype.numpy) for value, kind in zip(GIVEN[sample.op], operands(sample), strict=True)
        ]
    return [_values(rng, sample.op, kind).astype(kind.dtype.numpy) for kind in operands(sample)]


def _values(rng: np.random.Generator, op: str, kind: TensorType) -> Any:
    dims = kind.static_dims()
    name = op.removeprefix("torch.aten.")
    if kind.dtype is dtypes.BOOL:
        return rng.integers(0, 2, dims)
    if kind.dtype.is_float:
        return _floats(rng, name, dims)
    if (op.startswith(ONNX) or name in INDEXED) and kind.dtype in (dtypes.I32, dtypes.I64):
        return _indices(rng, dims)
    if "shift" in name:
        return rng.integers(0, 8, dims)
    return rng.integers(1, 9, dims) * rng.choice((-1, 1), dims)  # no zero, which integers are not divided by


def _floats(rng: np.random.Generator, name: str, dims: tuple[int, ...]) -> Any:
    if name in POSITIVE:
        return rng.uniform(0.25, 2, dims)
    if name in INSIDE_ONE:
        return rng.uniform(-0.9, 0.9, dims)
    if name == "acosh":
        return rng.uniform(1, 3, dims)
    if name in ("isnan", "isinf"):
        return rng.choice((0, np.nan, np.inf, -np.inf), dims)
    values = rng.standard_normal(dims)
    return np.round(2 * values) / 2 if name.split(".", maxsplit=1)[0] in COMPARISONS else values  # some of them equal


def _indices(rng: np.random.Generator, dims: tuple[int, ...]) -> Any:
    """Different ones along the last dim, for scatters; zero where there is none."""
    if not dims:
        return np.zeros(dims)
    known = np.broadcast_to(np.arange(NATURAL_LIMIT), (*dims[:-1], NATURAL_LIMIT))
    return rng.permuted(known, axis=-1)[..., : dims[-1]]


def _infos(prefix: str, kinds: Any) -> list[TensorInfo]:
    return [TensorInfo(f"{prefix}{number}", kind.dtype, kind.static_dims()) for number, kind in enumerate(kinds)]


def _is_tensor(value: Any) -> bool:
    return isinstance(value, TensorType)
