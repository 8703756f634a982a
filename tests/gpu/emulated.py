"""Runs a generated kernel on the CPU, as `host_kernels.kernel_runs.run_kernel` runs the host's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpu.emulator import Emulator, Kernel
from hipdnn_mlir.codegen.core.arch import Architecture, find_architecture
from hipdnn_mlir.codegen.core.assemble import Launch, module_of
from hipdnn_mlir.codegen.generate import parts_of
from hipdnn_mlir.ops.strides import extent
from host_kernels.kernel_runs import memory_of, numpy_dtype, spec_of
from runtime_programs import Array, TensorSpec

OVERLAPPING = {"suppress_boxes": 3, "recurrence": 1}
"""Functions of which so many of the last outs have elements that one launch writes more than once, or not at all."""


def tensor(role: str, spec: TensorSpec) -> dict[str, Any]:
    """A tensor of a description."""
    return {"role": role, "dtype": spec.dtype, "dims": list(spec.dims), "strides": list(spec.steps)}


def describe(
    function: str, arrays: Sequence[Array], outs: Sequence[TensorSpec], attributes: Mapping[str, Any]
) -> dict[str, Any]:
    """A kernel's description."""
    tensors = [tensor("in", spec_of(array)) for array in arrays] + [tensor("out", out) for out in outs]
    return {"function": function, "tensors": tensors, "attributes": dict(attributes)}


def memory_for(arrays: Sequence[Array], outs: Sequence[TensorSpec]) -> list[Array]:
    """Bytes of the arrays and of the outs, the latter not zero."""
    memory = [memory_of(array, spec_of(array)).view(np.uint8).copy() for array in arrays]
    sizes = [extent(out.dims, out.steps) * numpy_dtype(out.dtype).itemsize for out in outs]
    return memory + [np.full(size, 0xCD, np.uint8) for size in sizes]


def run_launch(launch: Launch, memory: Sequence[Array], architecture: Architecture) -> list[Array]:
    """Run a launch; returns how often each byte was written."""
    emulator = Emulator(memory, launch.blocks, launch.threads, architecture.wave_size, launch.shared_bytes)
    emulator.run(Kernel(module_of(launch, "k", len(memory), architecture)))
    return emulator.written


def check_writes(written: Sequence[Array], outs: Sequence[TensorSpec]) -> None:
    """Every element of the outs was written once."""
    for counts, out in zip(written, outs, strict=True):
        first = counts[:: numpy_dtype(out.dtype).itemsize].copy()
        each = np.lib.stride_tricks.as_strided(first, out.dims, out.steps)
        assert each.size == 0 or each.min() == each.max() == 1, "elements are not written once"


def results_in(memory: Sequence[Array], outs: Sequence[TensorSpec]) -> list[Array]:
    """The outs as arrays."""
    results = []
    for raw, out in zip(memory, outs, strict=True):
        dtype = numpy_dtype(out.dtype)
        strides = [step * dtype.itemsize for step in out.steps]
        results.append(np.lib.stride_tricks.as_strided(raw.view(dtype), out.dims, strides))
    return results


def run_kernel(
    function: str,
    arrays: Sequence[Array],
    outs: Sequence[TensorSpec],
    attributes: Mapping[str, Any],
    architecture: str = "sm_90",
) -> list[Array]:
    """Run a kernel on NumPy arrays of any strides and return its outputs."""
    arch = find_architecture(architecture)
    parts = parts_of(describe(function, arrays, outs, attributes), arch)
    memory = memory_for(arrays, outs)
    for number, part in enumerate(part for part in parts if part.launch.blocks):
        written = run_launch(part.launch, [memory[place] for place in part.arguments], arch)
        if number == 0:
            checked = len(outs) - OVERLAPPING.get(function, 0)
            check_writes(written[len(written) - len(outs) :][:checked], outs[:checked])
    return results_in(memory[len(arrays) :], outs)
