"""Generated `elementwise` kernels: the host's cases, and what is special about memory on GPUs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from drawing import every
from gpu import compiled
from gpu.emulated import describe, run_kernel
from gpu.host_cases import cases_of, emulation_of
from hipdnn_mlir.codegen import find_architecture, generate
from hipdnn_mlir.codegen.generate import parts_of
from hipdnn_mlir_runtime.errors import Reject
from host_kernels import kernel_runs as runs
from host_kernels import test_elementwise as cases
from host_kernels.kernel_runs import DTYPES, Array, TensorSpec, numpy_dtype

emulated = emulation_of(cases)
globals().update(cases_of(cases))

ADD = [["load", 0], ["load", 1], ["add", 0, 1], ["store", 2, 2]]


def code_of(description: dict[str, Any], alignments: list[int] | None = None) -> str:
    """The PTX text of a kernel that is one launch."""
    return generate(description, find_architecture("sm_90"), alignments).code


def added(a: Array, b: Array, out: TensorSpec) -> Array:
    """The sum in a layout."""
    return run_kernel("elementwise", [a, b], [out], {"code": ADD})[0]


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
@pytest.mark.parametrize("shape", [(1,), (7,), (1024,), (3, 5, 64), (2, 3, 7), (5, 1, 8)])
def test_sum_when_shapes_are_odd(dtype: str, shape: tuple[int, ...]) -> None:
    a, b = runs.values(dtype, shape, 1), runs.values(dtype, shape[-1:], 2)
    want = (a.astype(np.float64) + b.astype(np.float64)).astype(numpy_dtype(dtype))
    got = added(a, np.broadcast_to(b, shape), TensorSpec(dtype, shape))
    np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))


def test_sum_when_channels_last() -> None:
    shape = (2, 16, 5, 3)
    strides = (240, 1, 48, 16)
    a = np.ascontiguousarray(runs.values("f32", shape, 1).transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    bias = np.broadcast_to(runs.values("f32", (16,), 2)[None, :, None, None], shape)
    np.testing.assert_array_equal(added(a, bias, TensorSpec("f32", shape, strides)), a + bias)


@pytest.mark.parametrize("size", [4_500_003, 4 * 256 * 5000])
def test_sum_when_threads_take_several_groups(size: int) -> None:
    a, b = runs.values("i16", (size,), 1), runs.values("i16", (size,), 2)
    np.testing.assert_array_equal(added(a, b, TensorSpec("i16", (size,))), a + b)


def test_accesses_have_16_bytes_when_memory_allows() -> None:
    a = np.zeros((4096,), np.float16)
    description = describe("elementwise", [a, a], [TensorSpec("f16", (4096,))], {"code": ADD})
    code = code_of(description)
    assert code.count("ld.global.v4.b32") == 2
    assert code.count("st.global.v4.b32") == 1
    narrow = code_of(description, [2, 16, 16])
    assert "v4" not in narrow


def test_access_follows_alignment_of_rows() -> None:
    a = np.zeros((64, 12), np.float32)[:, :8]
    code = code_of(describe("elementwise", [a, a], [TensorSpec("f32", (64, 8))], {"code": ADD}))
    assert code.count("ld.global.v4.b32") == 2


@pytest.mark.parametrize("name", every(2, ["gfx942", "gfx1100", "sm_90"]))
def test_code_is_whole_when_all_instructions_are_used(name: str) -> None:
    unary = [*cases.REAL, "erf", "neg", "abs", "sign"]
    for dtype in ("f64", "bf16"):  # f32 is within bf16
        x = np.zeros((64,), numpy_dtype(dtype))
        code = [["load", 0]]
        for operation in unary:
            code.append([operation, len(code) - 1])
        for operation in ("add", "sub", "mul", "div", "mod", "fmod", "pow", "min", "max", "atan2"):
            code.append([operation, len(code) - 1, 0])
        code.append(["store", 1, len(code) - 1])
        compiled.check(
            generate(describe("elementwise", [x], [TensorSpec(dtype, (64,))], {"code": code}), find_architecture(name))
        )


@pytest.mark.parametrize("name", compiled.ALL)
def test_code_is_whole_when_types_are_converted(name: str) -> None:
    for source in DTYPES:
        x = np.zeros((64,), numpy_dtype(source))
        code = [["load", 0]] + [["cast", target, 0] for target in DTYPES]
        code += [["store", 1 + i, 1 + i] for i in range(len(DTYPES))]
        outs = [TensorSpec(target, (64,)) for target in DTYPES]
        compiled.check(generate(describe("elementwise", [x], outs, {"code": code}), find_architecture(name)))


def test_nothing_is_launched_when_empty() -> None:
    a = np.zeros((0, 3), np.float32)
    made = generate(
        describe("elementwise", [a, a], [TensorSpec("f32", (0, 3))], {"code": ADD}), find_architecture("sm_90")
    )
    assert made.grid == (0, 1, 1)
    compiled.check(made)


def test_an_unknown_function_is_a_value_with_a_reason() -> None:
    made = generate(describe("sort", [], [TensorSpec("f32", (3,))], {}), find_architecture("sm_90"))
    assert isinstance(made, Reject)
    assert "sort" in made.reason


def test_positions_have_64_bits_when_a_tensor_is_large() -> None:
    tensors = [
        {"role": role, "dtype": "i8", "dims": [2**20, 2**12], "strides": [2**12, 1]} for role in ("in", "in", "out")
    ]
    description = {"function": "elementwise", "tensors": tensors, "attributes": {"code": ADD}}
    (part,) = parts_of(description, find_architecture("sm_90"))
    assert part.launch.wide


@pytest.mark.parametrize(("architecture", "size", "what"), [("gfx942", 2**36, "threads"), ("sm_90", 2**41, "blocks")])
def test_a_grid_that_the_driver_cannot_count_is_refused(architecture: str, size: int, what: str) -> None:
    tensors = [{"role": role, "dtype": "i8", "dims": [size], "strides": [2]} for role in ("in", "in", "out")]
    description = {"function": "elementwise", "tensors": tensors, "attributes": {"code": ADD}}
    made = generate(description, find_architecture(architecture))
    assert isinstance(made, Reject)
    assert f" {what}, at most" in made.reason
