"""Kernels whose result lies in the memory of an operand: which may, no thread reads what another one writes, programs that use it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gpu.emulated import describe
from gpu.emulator import Kernel, run_in_any_order
from gpu.graphs import graph_of, row
from gpu.programs import compile_for_emulator, run
from hipdnn_mlir.codegen import find_architecture, generate
from hipdnn_mlir.codegen.core.assemble import Launch, module_of
from hipdnn_mlir.codegen.generate import launch_of_graph, parts_of
from host_kernels.kernel_runs import Array, TensorSpec
from models import GraphBuilder

SM_90 = find_architecture("sm_90")
SUM = {"code": [["load", 0], ["load", 1], ["add", 0, 1], ["store", 2, 2]]}
ROW = (4, 96)


def normal(shape: tuple[int, ...], dtype: type = np.float32) -> Array:
    return np.random.default_rng(3).standard_normal(shape).astype(dtype)


def softmax(x: Array) -> Array:
    raised = np.exp(x - x.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def launch_of(function: str, arrays: list[Array], out: TensorSpec, attributes: dict[str, Any]) -> Launch:
    (part,) = parts_of(describe(function, arrays, [out], attributes), SM_90)
    return part.launch


def in_place(launch: Launch, arrays: list[Array], place: int) -> Array:
    """The result in the memory of an operand, whatever the order of threads."""
    memory = [np.ascontiguousarray(array).reshape(-1).view(np.uint8).copy() for array in arrays]
    kernel = Kernel(module_of(launch, "k", len(arrays) + 1, SM_90))
    run_in_any_order([*memory, memory[place]], launch.blocks, launch.threads, SM_90.wave_size, kernel)
    return memory[place].view(arrays[place].dtype).reshape(arrays[place].shape)


@pytest.mark.parametrize("shape", [(7,), (64,), (4099,), (3, 5, 64), (1_500_001,), (2, 1_081_344)])
def test_elementwise_kernel_writes_where_it_reads(shape: tuple[int, ...]) -> None:
    a, b = normal(shape), normal(shape[-1:])
    whole = np.broadcast_to(b, shape)
    launch = launch_of("elementwise", [a, whole], TensorSpec("f32", shape), SUM)
    assert 0 in launch.overwrites
    spread = [a, np.ascontiguousarray(whole)] if len(shape) == 1 else [a, b]
    np.testing.assert_array_equal(in_place(launch, spread, 0), a + b)


@pytest.mark.parametrize("shape", [ROW, (3, 1030), (2, 4100), (2, 4096), (3, 40_000)])
def test_softmax_writes_rows_where_it_reads_them(shape: tuple[int, ...]) -> None:
    x, out = normal(shape), TensorSpec("f32", shape)
    launch = launch_of_graph(graph_of(row("aten.softmax.int", ..., -1, None, results=[out]), [x], [out]), SM_90)
    assert launch.overwrites == (0,)
    np.testing.assert_allclose(in_place(launch, [x], 0), softmax(x.astype(np.float64)), rtol=2e-5, atol=1e-9)


@pytest.mark.parametrize("shape", [ROW, (3, 1030), (2, 4100), (2, 4096), (3, 40_000)])
def test_layer_norm_writes_rows_where_it_reads_them(shape: tuple[int, ...]) -> None:
    x, scale, bias, out = normal(shape), normal(shape[-1:]) + 2, normal(shape[-1:]), TensorSpec("f32", shape)
    body = row("aten.layer_norm", ..., [shape[-1]], ..., ..., 1e-5, True, results=[out])
    launch = launch_of_graph(graph_of(body, [x, scale, bias], [out]), SM_90)
    assert launch.overwrites == (0,)
    centred = x.astype(np.float64) - x.mean(-1, keepdims=True, dtype=np.float64)
    want = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + bias
    np.testing.assert_allclose(in_place(launch, [x, scale, bias], 0), want, rtol=2e-5, atol=2e-5)


def overwrites(arrays: list[Array], out: TensorSpec, code: list[list[Any]]) -> tuple[int, ...]:
    return launch_of("elementwise", arrays, out, {"code": code}).overwrites


def test_what_may_not_be_overwritten() -> None:
    a, b = normal(ROW), normal(ROW)
    assert overwrites([a, b], TensorSpec("f32", ROW), SUM["code"]) == (0, 1)
    assert (
        overwrites([normal((96, 96)), normal((96, 96)).T], TensorSpec("f32", (96, 96)), SUM["code"]) == ()
    )  # in tiles
    assert overwrites([np.broadcast_to(a[:1], ROW), b], TensorSpec("f32", ROW), SUM["code"]) == (1,)
    to_half = [["load", 0], ["cast", "f16", 0], ["store", 1, 1]]
    assert overwrites([a], TensorSpec("f16", ROW), to_half) == ()
    two = [["load", 0], ["store", 1, 0], ["store", 2, 0]]
    (part,) = parts_of(describe("elementwise", [a], [TensorSpec("f32", ROW)] * 2, {"code": two}), SM_90)
    assert part.launch.overwrites == ()


def test_other_kernels_overwrite_nothing() -> None:
    x = normal(ROW)
    described = describe(
        "reverse_sequence", [x, np.full(4, 96)], [TensorSpec("f32", ROW)], {"batch_axis": 0, "time_axis": 1}
    )
    assert generate(described, SM_90).overwrites == ()


def test_what_another_thread_writes_is_garbage_in_the_emulator() -> None:
    x = normal((3, 3))
    launch = launch_of("elementwise", [x.T], TensorSpec("f32", (3, 3)), {"code": [["load", 0], ["store", 1, 0]]})
    assert launch.overwrites == ()
    assert not np.array_equal(in_place(launch, [x], 0), x.T)


def steps_in_place(program: Any) -> int:
    """Kernels whose result lies where they read."""
    code = json.loads(program.text)
    found = 0
    for step in code["steps"]:
        if step["kind"] == "launch":
            places = [(place["buffer"], place["offset"]) for place in step["operands"]]
            found += places[-1] in places[:-1]
    return found


def test_a_program_keeps_what_is_read_later(monkeypatch: pytest.MonkeyPatch) -> None:
    g = GraphBuilder("in_place")
    axis = g.constant(1, np.int64)
    raised = g.op("Softmax", g.input("x", ROW))  # of the input, which stays as it is
    first = g.op("CumSum", raised, axis)
    second = g.op("Softmax", first)  # `first` is read again
    third = g.op("CumSum", second, axis)
    last = g.op("Softmax", third)  # nothing reads `third` any more
    model = g.model({g.op("CumSum", g.op("Mul", first, last), axis): ROW})
    program, modules = compile_for_emulator(model, monkeypatch, target="sm_90")
    assert steps_in_place(program) >= 1
    feed = normal(ROW)
    (got,) = run(program, {"x": feed}, modules)
    one = softmax(feed.astype(np.float64)).cumsum(1)
    want = (one * softmax(softmax(one).cumsum(1))).cumsum(1)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_a_program_keeps_what_a_kernel_reads_in_a_second_way(monkeypatch: pytest.MonkeyPatch) -> None:
    g = GraphBuilder("second_way")
    axis, zero, one = (g.constant(value, np.int64) for value in (1, [0], [1]))
    sums = g.op("CumSum", g.input("x", ROW), axis)
    first = g.op("Slice", sums, zero, one, one)
    model = g.model({g.op("CumSum", g.op("Sub", sums, first), axis): ROW})
    program, modules = compile_for_emulator(model, monkeypatch, target="sm_90")
    assert steps_in_place(program) == 0
    feed = normal(ROW)
    (got,) = run(program, {"x": feed}, modules)
    wide = feed.astype(np.float64).cumsum(1)
    np.testing.assert_allclose(got, (wide - wide[:, :1]).cumsum(1), rtol=1e-4, atol=1e-4)
