"""`quantized_recurrence` against ONNX Runtime's DynamicQuantizeLSTM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decompositions.node_models import node_model, run
from drawing import draws
from hipdnn_mlir_runtime.errors import ProgramError
from host_kernels.kernel_runs import Array, TensorSpec, numpy_dtype, run_kernel
from host_kernels.test_recurrence import DEPTH, PANEL, up
from int8_sums import random_weights

INNER = 3
FLIP = 4e-3
"""A state halfway between two bytes may become either: what that changes in the states that follow."""


@dataclass
class Case:
    """Operands of ONNX Runtime's operator, and the kernel's results where they are as that wants them."""

    got: list[Array]
    wanted: list[Array]

    def distance(self) -> float:
        """The greatest difference."""
        return max(float(np.abs(own - want).max()) for own, want in zip(self.got, self.wanted, strict=False))


def panels(weights: Array) -> Array:
    """[directions, hidden, 4 * hidden] as the kernel reads it."""
    directions, hidden, _ = weights.shape
    made = np.zeros((directions, 4, up(hidden, PANEL), up(hidden, DEPTH)), np.int8)
    made[:, :, :hidden, :hidden] = weights.transpose(0, 2, 1).reshape(directions, 4, hidden, hidden)
    made = made.reshape(directions, 4, -1, PANEL, made.shape[3] // 2, 2)
    return made.transpose(0, 2, 1, 4, 3, 5).reshape(-1)


def lines(scales: Array, hidden: int) -> Array:
    """[directions, 4 * hidden] as the kernel reads it."""
    made = np.zeros((len(scales), 4, up(hidden, PANEL)), np.float32)
    made[:, :, :hidden] = scales.reshape(-1, 4, hidden)
    return made.reshape(len(scales), 4, -1, PANEL).transpose(0, 2, 1, 3).reshape(-1)


def run_both(
    rng: Any,
    direction: str,
    sizes: tuple[int, int, int],
    *,
    is_signed: bool = True,
    has_lengths: bool = False,
    is_broadcast: bool = False,
    threads: int = 2,
) -> Case:
    """Run the kernel and ONNX Runtime.

    Args:
        rng: makes the operands.
        direction: ONNX's.
        sizes: steps, batch, units.
        is_signed: whether weights are, have a scale for each column and no zero point; else those are of directions.
        has_lengths: whether sequences have lengths.
        is_broadcast: whether all rows begin with one state.
        threads: of the kernel.
    """
    steps, batch, hidden = sizes
    directions = 2 if direction == "bidirectional" else 1
    # Bytes of a range of 255 steps of 1: rounding does not change them.
    x = rng.integers(-127, 128, (steps, batch, INNER), endpoint=True)
    x[0, 0, :2] = -127, 128

    def bytes_of(*dims: int) -> Array:
        return random_weights(rng, dims) if is_signed else rng.integers(0, 255, dims, endpoint=True).astype(np.uint8)

    weights, recurrence = bytes_of(directions, INNER, 4 * hidden), bytes_of(directions, hidden, 4 * hidden)
    zero = np.zeros(directions, np.int8) if is_signed else rng.integers(100, 150, directions).astype(np.uint8)
    scales = rng.uniform(0.5, 1, (directions, 4 * hidden)).astype(np.float32) / 64 / np.float32(np.sqrt(hidden))
    if not is_signed:  # ONNX Runtime has one zero point where scales differ by column
        scales = np.repeat(scales[:, :1], 4 * hidden, 1)
    of_inputs = np.full((directions, 4 * hidden), 1 / 8192, np.float32)
    states = [
        rng.uniform(-1, 1, (directions, 1 if is_broadcast else batch, hidden)).astype(np.float32) for _ in range(2)
    ]
    whole = [np.broadcast_to(state, (directions, batch, hidden)).copy() for state in states]
    lengths = rng.integers(1, steps + 1, batch).astype(np.int32)
    inputs = {"x": x.astype(np.float32), "w": weights, "r": recurrence}
    inputs |= ({"lengths": lengths} if has_lengths else {}) | {"h": whole[0], "c": whole[1]}
    stated = {"w_scale": of_inputs, "w_zero": np.repeat(zero[:, None], 4 * hidden, 1), "r_scale": scales}
    stated["r_zero"] = stated["w_zero"]
    inputs |= stated if is_signed else {name: array[:, 0].copy() for name, array in stated.items()}
    names = [
        "x",
        "w",
        "r",
        "",
        "lengths" if has_lengths else "",
        "h",
        "c",
        "",
        "w_scale",
        "w_zero",
        "r_scale",
        "r_zero",
    ]
    outs = ["y", "y_h", "y_c"]
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    model = node_model("DynamicQuantizeLSTM", inputs, outs, operands=names, **attributes)

    rows = [x @ (w.astype(np.int64) - z) / np.float32(8192) for w, z in zip(weights, zero, strict=True)]
    shift = -zero.astype(np.int32) + (0 if is_signed else 128)
    signed = recurrence if is_signed else (recurrence.astype(np.int16) - 128).astype(np.int8)
    operands = [np.concatenate(rows, 2).astype(np.float32), panels(signed), *states, lines(scales, hidden), shift]
    dims = [(steps, directions, batch, hidden), *[(directions, batch, hidden)] * 2]
    specs = [*(TensorSpec("f32", each) for each in dims), TensorSpec("i32", (4, directions, batch, up(hidden, PANEL)))]
    more = [lengths] if has_lengths else []
    got = run_kernel(
        "quantized_recurrence", [*operands, *more], specs, {"reverse": direction == "reverse"}, threads=threads
    )
    return Case(got, run(model, inputs))


@draws(40)
@given(
    data=st.data(),
    direction=st.sampled_from(["forward", "reverse", "bidirectional"]),
    is_signed=st.booleans(),
    has_lengths=st.booleans(),
    is_broadcast=st.booleans(),
)
def test_steps_equal_onnx_runtime(
    data: st.DataObject, direction: str, *, is_signed: bool, has_lengths: bool, is_broadcast: bool
) -> None:
    batch, hidden = data.draw(st.sampled_from([1, 2, 7, 13])), data.draw(st.sampled_from([1, 5, 8, 16, 20, 40]))
    sizes, rng = (data.draw(st.integers(1, 5)), batch, hidden), np.random.default_rng(data.draw(st.integers(0, 1000)))
    case = run_both(rng, direction, sizes, is_signed=is_signed, has_lengths=has_lengths, is_broadcast=is_broadcast)
    assert case.distance() < FLIP


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_states_are_rounded_as_in_onnx_runtime(direction: str) -> None:
    """States that were not rounded, or each row in a range of its own, would be 1e-4 apart at least in every case."""
    distances = [
        run_both(
            np.random.default_rng(seed), direction, (6, 3, 24), is_signed=seed % 2 == 0, has_lengths=True
        ).distance()
        for seed in range(8)
    ]
    assert sorted(distances)[4] < 1e-5


def test_many_units_equal_onnx_runtime() -> None:
    """Threads share the units of a step."""
    assert run_both(np.random.default_rng(0), "forward", (3, 14, 520), threads=3).distance() < FLIP


@pytest.mark.parametrize(("steps", "batch"), [(0, 2), (3, 0)])
def test_nothing_is_read_when_there_are_no_steps_or_rows(steps: int, batch: int) -> None:
    rows, weights = np.zeros((steps, batch, 4 * 6), np.float32), np.ones(4 * 8 * 16, np.int8)
    states = [np.full((1, 1, 6), number, np.float32) for number in (2, 3)]
    operands = [rows, weights, *states, np.ones(4 * 16, np.float32), np.zeros(1, np.int32)]
    outs = [TensorSpec("f32", (steps, 1, batch, 6)), *[TensorSpec("f32", (1, batch, 6))] * 2]
    outs.append(TensorSpec("i32", (4, 1, batch, 16)))
    got = run_kernel("quantized_recurrence", operands, outs, {"reverse": True})
    for own, number in zip(got[1:3], (2, 3), strict=True):
        np.testing.assert_array_equal(own, np.full((1, batch, 6), number))


@pytest.mark.parametrize(
    ("index", "spec", "message"),
    [
        (0, ("f16", (5, 2, 80)), "tensors[0].dtype: expected f32, got f16"),
        (1, ("f32", (4 * 2 * 24 * 16,)), "tensors[1].dtype: expected i8"),
        (1, ("i8", (4 * 2 * 20 * 16,)), "tensors[1].dims"),
        (4, ("f32", (4 * 20,)), "tensors[4].dims"),
        (5, ("f32", (1,)), "tensors[5].dtype: expected i32"),
        (5, ("i32", (2,)), "tensors[5].dims"),
        (9, ("i32", (3, 1, 2, 32)), "tensors[9].dims"),
    ],
)
def test_refused_when_operands_do_not_fit(index: int, spec: tuple[str, tuple[int, ...]], message: str) -> None:
    specs = [("f32", (5, 2, 80)), ("i8", (4 * 2 * 24 * 16,)), ("f32", (1, 2, 20)), ("f32", (1, 1, 20))]
    specs += [("f32", (4 * 2 * 16,)), ("i32", (1,))]
    specs += [("f32", (5, 1, 2, 20)), ("f32", (1, 2, 20)), ("f32", (1, 2, 20)), ("i32", (4, 1, 2, 32))]
    specs[index] = spec
    arrays = [np.zeros(dims, numpy_dtype(kind)) for kind, dims in specs[:6]]
    outs = [TensorSpec(kind, dims) for kind, dims in specs[6:]]
    with pytest.raises(ProgramError) as caught:
        run_kernel("quantized_recurrence", arrays, outs, {"reverse": False})
    assert message in str(caught.value)
