"""The op table's samples as graphs for the plugin: bit by bit the host port's results, and PyTorch's in float64."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from engine_plugin.conftest import OnBackend
from engine_plugin.graph_bytes import TABLES
from engine_plugin.loader import Array, Plugin
from engine_plugin.on_backend import EQUAL, UNTAKEN
from engine_plugin.plugin_samples import SAMPLES, feeds_of
from engine_plugin.steps import OnPlugin, OnPort, RunGraph, run_steps
from gpu.sample_programs import compile_sample, inputs
from hipdnn_mlir.ops.samples import Number, Sample
from hipdnn_mlir.ops.spec import TensorType
from hipdnn_mlir_runtime import dtypes
from hipdnn_mlir_runtime.abi import Descriptor
from hipdnn_mlir_runtime.errors import UnsupportedError

RTOL = {dtypes.F64: 1e-9, dtypes.F32: 2e-5, dtypes.F16: 4e-3, dtypes.BF16: 3e-2}
"""By the widest error that one of the sample's types brings."""
TORCH = "torch.aten."
INTEGERS: dict[int, Callable[[Any], Any]] = {
    0: lambda torch: torch.uint8,
    1: lambda torch: torch.int8,
    2: lambda torch: torch.int16,
    3: lambda torch: torch.int32,
    4: lambda torch: torch.int64,
    11: lambda torch: torch.bool,
}
"""PyTorch's numbers of its types; the others are floats, all of which become float64."""
OF_TRAINING = {
    "OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR",
    "OPERATION_BATCHNORM_BACKWARD_DESCRIPTOR_EXT",
    "OPERATION_LAYERNORM_BACKWARD_DESCRIPTOR_EXT",
    "OPERATION_RMSNORM_BACKWARD_DESCRIPTOR_EXT",
    "OPERATION_SDPA_BWD_DESCRIPTOR_EXT",
}
"""No engine takes them, so no sample has them."""


@pytest.fixture(scope="module")
def on_plugin(plugin: Plugin) -> Iterator[RunGraph]:
    with ExitStack() as stack:
        yield OnPlugin(plugin, stack)


@pytest.fixture(scope="module")
def program_of() -> Callable[[str], Any]:
    def compiled(name: str) -> Any:
        try:
            return compile_sample(SAMPLES[name], "host")
        except UnsupportedError:
            pytest.skip(UNTAKEN)

    return compiled


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_is_what_it_is_on_the_host_port_and_in_pytorch(
    name: str, on_plugin: RunGraph, program_of: Callable[[str], Any]
) -> None:
    sample, program = SAMPLES[name], program_of(name)
    feeds = feeds_of(sample)
    got = run_steps(program, feeds, on_plugin)
    for ours, hosts in zip(got, run_steps(program, feeds, OnPort(port="host")), strict=True):
        assert ours.tobytes() == hosts.tobytes()
    if sample.op.startswith(TORCH):
        kinds = {kind.dtype for kind in (*sample.results, *sample.args) if isinstance(kind, TensorType)}
        rtol = max(RTOL.get(kind, 0.0) for kind in kinds)
        for ours, theirs in zip(got, reference(sample), strict=True):
            assert ours.shape == theirs.shape
            np.testing.assert_allclose(ours.astype(np.float64), theirs, rtol=rtol, atol=rtol)


def test_samples_are_what_they_are_on_the_host_port_through_amds_backend(on_backend: OnBackend) -> None:
    answers = on_backend("samples")
    wrong = {name: answers[name] for name in SAMPLES if answers[name] not in (EQUAL, UNTAKEN)}
    assert wrong == {}


def test_samples_have_every_operation_that_engines_take(program_of: Callable[[str], Any]) -> None:
    types: set[str] = set()
    for name in SAMPLES:
        if "f16" in name:
            continue  # the same graphs in other types
        for executable in json.loads(program_of(name).text)["executables"]:
            types |= {Descriptor(kind).name for kind, _ in executable["descriptors"]}
    custom = "OPERATION_CUSTOM_OP_DESCRIPTOR_EXT"  # test_plugin_operations.py
    assert {node["descriptor"] for node in TABLES["nodes"]} - types == {custom, *OF_TRAINING}


def reference(sample: Sample) -> list[Array]:
    """The op's results in float64, by PyTorch."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install '.[export]'")
    arrays = iter(inputs(sample))

    def given(argument: Any, kind: str) -> Any:
        if isinstance(argument, list):
            return [given(item, kind) for item in argument]
        if isinstance(argument, TensorType):
            array = np.asarray(next(arrays))
            return torch.from_numpy(np.array(array, np.float64) if argument.dtype.is_float else np.array(array))
        if isinstance(argument, Number):
            value = torch.tensor(argument.value, dtype=torch.float64 if argument.dtype.is_float else None)
            return value if "Tensor" in kind else argument.value
        if argument is not None and "ScalarType" in kind:
            return INTEGERS[argument](torch) if argument in INTEGERS else torch.float64
        return argument

    packet, _, overload = sample.op.removeprefix(TORCH).partition(".")
    operator = getattr(getattr(torch.ops.aten, packet), overload or "default")
    positional, named = [], {}
    for argument, row in zip(sample.args, operator._schema.arguments, strict=False):
        value = given(argument, str(row.real_type))
        if not row.kwarg_only:
            positional.append(value)
        elif not any(kind in str(row.real_type) for kind in ("MemoryFormat", "Layout", "Device")):
            named[row.name] = value
    results = operator(*positional, **named)
    results = [results] if isinstance(results, torch.Tensor) else list(results)
    used = len(sample.results) if sample.uses_all else 1
    return [result.numpy() for result in results[:used]]
