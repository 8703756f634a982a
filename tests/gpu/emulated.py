"""Runs a generated kernel on the CPU, as `host_kernels.kernel_runs.run_kernel` runs the host's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpu.emulator import Emulator
from hipdnn_mlir.gpu.arch import find_architecture
from hipdnn_mlir.gpu.assemble import Launch, module_of
from hipdnn_mlir.gpu.generate import launch_of
from hipdnn_mlir.ops.strides import extent
from host_kernels.kernel_runs import memory_of, numpy_dtype, spec_of
from runtime_programs import Array, TensorSpec


def tensor(role: str, spec: TensorSpec) -> dict[str, Any]:
    """A tensor of a description."""
    return {"role": role, "dtype": spec.dtype, "dims": list(spec.dims), "strides": list(spec.steps)}


def describe(
    function: str, arrays: Sequence[Array], outs: Sequence[TensorSpec], attributes: Mapping[str, Any]
) -> dict[str, Any]:
    """A kernel's description."""
    tensors = [tensor("in", spec_of(array)) for array in arrays] + [tensor("out", out) for out in outs]
    return {"function": function, "tensors": tensors, "attributes": dict(attributes)}


def run_launch(
    launch: Launch,
    arrays: Sequence[Array],
    outs: Sequence[TensorSpec],
    wave: int,
    *,
    order: Sequence[int] | None = None,
    writes_once: bool = True,
) -> list[Array]:
    """Run a launch in the emulator; every element of the outs is written, and once.

    Args:
        launch: what to run.
        arrays: its ins.
        outs: its outs.
        wave: threads of a wave.
        order: of the arguments, as numbers of ins and outs; ins before outs where nothing is said.
        writes_once: whether a second write of an element is an error.
    """
    memory = [memory_of(array, spec_of(array)).view(np.uint8).copy() for array in arrays]
    sizes = [extent(out.dims, out.steps) * numpy_dtype(out.dtype).itemsize for out in outs]
    memory += [np.full(size, 0xCD, np.uint8) for size in sizes]
    order = range(len(memory)) if order is None else order
    emulator = Emulator([memory[place] for place in order], launch.blocks, launch.threads, wave)
    if launch.blocks:
        emulator.run(module_of(launch, "k", len(memory)))
    results = []
    for number, out in enumerate(outs, len(arrays)):
        dtype = numpy_dtype(out.dtype)
        strides = [step * dtype.itemsize for step in out.steps]
        results.append(np.lib.stride_tricks.as_strided(memory[number].view(dtype), out.dims, strides))
        counts = np.lib.stride_tricks.as_strided(
            emulator.written[list(order).index(number)][:: dtype.itemsize].copy(), out.dims, out.steps
        )
        assert counts.size == 0 or counts.min() >= 1, "an element is not written"
        assert not writes_once or counts.size == 0 or counts.max() == 1, "an element is written twice"
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
    launch = launch_of(describe(function, arrays, outs, attributes), arch)
    return run_launch(launch, arrays, outs, arch.wave_size)
