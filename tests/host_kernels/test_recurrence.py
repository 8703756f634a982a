"""`recurrence` against ONNX Runtime's LSTM, GRU and RNN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from drawing import draws
from hipdnn_mlir_runtime.errors import ProgramError
from host_kernels import kernel_runs as runs
from host_kernels.kernel_runs import Array, TensorSpec, numpy_dtype, run_kernel

GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}
PANEL, DEPTH = 16, 8


def up(size: int, step: int) -> int:
    return -(-size // step) * step


def onnx_runtime(
    cell: str,
    x: Array,
    weights: Array,
    recurrence: Array,
    bias: Array,
    lengths: Array | None,
    states: list[Array],
    direction: str,
) -> list[Array]:
    """All steps' states [steps, directions, batch, hidden], then the last ones."""
    operator = {"lstm": "LSTM", "gru": "GRU"}.get(cell, "RNN")
    given = [x, weights, recurrence, bias, lengths, *states]
    names = ["" if array is None else f"x{index}" for index, array in enumerate(given)]
    outs = ["y", "h", "c"][: len(states) + 1]
    directions = recurrence.shape[0]
    attributes: dict[str, Any] = {"hidden_size": recurrence.shape[2], "direction": direction}
    if cell == "gru":
        attributes["linear_before_reset"] = 1
    if operator == "RNN":
        attributes["activations"] = [cell.capitalize()] * directions
    node = helper.make_node(operator, names, outs, **attributes)
    kind = helper.np_dtype_to_tensor_dtype
    inputs = [
        helper.make_tensor_value_info(name, kind(array.dtype), array.shape)
        for name, array in zip(names, given, strict=True)
        if array is not None
    ]
    results = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outs]
    graph = helper.make_graph([node], "recurrence", inputs, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {name: array for name, array in zip(names, given, strict=True) if array is not None}
    return [np.asarray(array) for array in session.run(None, feeds)]


def panels(recurrence: Array, gates: int) -> Array:
    """ONNX's [directions, gates * hidden, hidden] as the kernel reads it."""
    directions, _, hidden = recurrence.shape
    made = np.zeros((directions, gates, up(hidden, PANEL), up(hidden, DEPTH)), recurrence.dtype)
    made[:, :, :hidden, :hidden] = recurrence.reshape(directions, gates, hidden, hidden)
    made = made.reshape(directions, gates, -1, PANEL, made.shape[3])
    return made.transpose(0, 2, 1, 4, 3).reshape(-1)


@draws(40)
@given(
    data=st.data(),
    cell=st.sampled_from(list(GATES)),
    dtype=st.sampled_from(["f32", "f32", "f16", "bf16"]),
    direction=st.sampled_from(["forward", "reverse", "bidirectional"]),
)
def test_steps_equal_onnx_runtime(data: st.DataObject, cell: str, dtype: str, direction: str) -> None:
    steps, batch = data.draw(st.integers(1, 5)), data.draw(st.sampled_from([1, 2, 7, 13]))
    hidden, inner = data.draw(st.sampled_from([1, 5, 8, 16, 20, 40])), 3
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    lengths = data.draw(st.sampled_from([None, np.int32, np.int64]))
    check(
        rng,
        cell,
        dtype,
        direction,
        (steps, batch, hidden, inner),
        lengths,
        is_broadcast=data.draw(st.booleans()),
        spec=lambda dims: data.draw(runs.out_spec(dtype, dims)),
    )


def check(
    rng: Any,
    cell: str,
    dtype: str,
    direction: str,
    sizes: tuple[int, int, int, int],
    of_lengths: Any,
    *,
    is_broadcast: bool,
    spec: Callable[[tuple[int, ...]], TensorSpec],
) -> None:
    """Compare with ONNX Runtime.

    Args:
        rng: makes the operands.
        cell: the kernel's.
        dtype: of the floats.
        direction: ONNX's.
        sizes: steps, batch, units, features.
        of_lengths: the NumPy type of lengths, None without.
        is_broadcast: whether all rows begin with one state.
        spec: how a result of given dims is stored.
    """
    steps, batch, hidden, inner = sizes
    directions, gates = 2 if direction == "bidirectional" else 1, GATES[cell]
    narrow = numpy_dtype(dtype)

    def drawn(*dims: int) -> Array:
        return np.asarray(rng.uniform(-1, 1, dims).astype(np.float32).astype(narrow).astype(np.float32))

    x, weights = drawn(steps, batch, inner), drawn(directions, gates * hidden, inner)
    recurrence, bias = drawn(directions, gates * hidden, hidden) / 4, drawn(directions, 2 * gates * hidden)
    recurrence = recurrence.astype(narrow).astype(np.float32)
    lengths = None if of_lengths is None else rng.integers(1, steps + 1, batch).astype(np.int32)
    states = [drawn(directions, 1 if is_broadcast else batch, hidden) for _ in range(2 if cell == "lstm" else 1)]
    of_inputs, of_state = np.split(bias, 2, axis=1)
    last = of_state.reshape(directions, gates, hidden)[:, -1]
    if cell == "gru":
        of_state = of_state * np.repeat([1, 1, 0], hidden).astype(np.float32)
    rows = np.concatenate([x @ w.T + b for w, b in zip(weights, of_inputs + of_state, strict=True)], axis=2)
    held = [np.ascontiguousarray(last)] if cell == "gru" else []
    operands = [array.astype(narrow) for array in (rows, panels(recurrence, gates), *states, *held)]
    if lengths is not None:
        operands.append(lengths.astype(of_lengths))
    dims = [(steps, directions, batch, hidden), *[(directions, batch, hidden)] * len(states)]
    outs = [spec(each) for each in dims]
    outs.append(TensorSpec("i32", (3, directions, batch, up(hidden, PANEL))))
    got = run_kernel("recurrence", operands, outs, {"cell": cell, "reverse": direction == "reverse"})
    whole = [np.broadcast_to(state, (directions, batch, hidden)).copy() for state in states]
    wanted = onnx_runtime(cell, x, weights, recurrence, bias, lengths, whole, direction)
    near = {"f32": 2e-5, "f16": 1e-2, "bf16": 6e-2}[dtype]
    for own, want in zip(got, wanted, strict=False):
        np.testing.assert_allclose(own.astype(np.float32), want, rtol=near, atol=near)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize(("batch", "hidden"), [(1, 520), (30, 260)])
def test_many_units_equal_onnx_runtime(cell: str, batch: int, hidden: int) -> None:
    """Threads share the units of one row; groups of rows go through a step together."""
    rng, sizes = np.random.default_rng(hidden), (3, batch, hidden, 3)

    def packed(dims: tuple[int, ...]) -> TensorSpec:
        return TensorSpec("f32", dims)

    check(rng, cell, "f32", "forward", sizes, np.int32, is_broadcast=False, spec=packed)


@pytest.mark.parametrize(("steps", "batch"), [(0, 2), (3, 0)])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_nothing_is_read_when_there_are_no_steps_or_rows(steps: int, batch: int, dtype: str) -> None:
    kind = numpy_dtype(dtype)
    rows, weights = np.zeros((steps, batch, 4 * 6), kind), np.ones(4 * 8 * 16, kind)
    states = [np.full((1, 1, 6), number, kind) for number in (2, 3)]
    outs = [TensorSpec(dtype, (steps, 1, batch, 6)), *[TensorSpec(dtype, (1, batch, 6))] * 2]
    outs.append(TensorSpec("i32", (3, 1, batch, 16)))
    got = run_kernel("recurrence", [rows, weights, *states], outs, {"cell": "lstm", "reverse": True})
    for own, number in zip(got[1:3], (2, 3), strict=True):
        np.testing.assert_array_equal(own.astype(np.float32), np.full((1, batch, 6), number))


@pytest.mark.parametrize(
    ("index", "dims", "message"),
    [
        (0, (5, 2, 79), "tensors[0].dims"),
        (1, (2 * 4 * 20 * 16,), "tensors[1].dims"),
        (2, (1, 3, 20), "tensors[2].dims"),
        (3, (1, 2, 19), "tensors[3].dims"),
        (4, (3,), "tensors[4].dims"),
        (6, (1, 1, 20), "tensors[6].dims"),
        (8, (2, 1, 2, 32), "tensors[8].dims"),
    ],
)
def test_refused_when_dims_do_not_fit(index: int, dims: tuple[int, ...], message: str) -> None:
    specs = [("f32", (5, 2, 80)), ("f32", (2 * 4 * 24 * 16,)), ("f32", (1, 2, 20)), ("f32", (1, 1, 20)), ("i32", (2,))]
    specs += [("f32", (5, 1, 2, 20)), ("f32", (1, 2, 20)), ("f32", (1, 2, 20)), ("i32", (3, 1, 2, 32))]
    specs[index] = (specs[index][0], dims)
    arrays = [np.zeros(each, numpy_dtype(kind)) for kind, each in specs[:5]]
    outs = [TensorSpec(kind, each) for kind, each in specs[5:]]
    with pytest.raises(ProgramError) as caught:
        run_kernel("recurrence", arrays, outs, {"cell": "lstm", "reverse": False})
    assert message in str(caught.value)
