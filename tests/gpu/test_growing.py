"""Caches that grow in the model, in programs for GPUs: buffers that are written in place, through the emulator, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from drawing import every
from generation.growing import HEAD, HEADS, decode, growing_model, pieces_of
from gpu.programs import compile_for_emulator, run
from hipdnn_mlir import Program
from hipdnn_mlir.generate.config import DecoderConfig, Search
from hipdnn_mlir.generate.decoder import Decoder
from hipdnn_mlir.generate.sequences import Sequences
from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.session.arrays import Port
from hipdnn_mlir_runtime.session.growing import GrowingCaches, growing_caches
from hipdnn_mlir_runtime.session.source import read
from runtime_programs import Array

ROWS, WINDOWS = 24, [1, 4]
HOST: Any = SimpleNamespace(port="host")


def caches_of(program: Program) -> GrowingCaches:
    """What a session knows of the caches of a program."""
    checked = read(program, allow_code=True)
    inputs, outputs = (
        [Port(name, dtype, tuple(dims)) for name, dtype, dims in some] for some in (checked.inputs, checked.outputs)
    )
    found = growing_caches(checked.text, inputs, outputs, HOST)
    assert found is not None
    return found


class Emulated:
    """What a decoder asks of a session, for a program that is run in the emulator.

    Attributes:
        program: as given.
        sizes: new tokens of each run.

    Args:
        program: with a program for each combination of buckets.
        modules: its kernels.
        wave: threads of a wave.
    """

    device = HOST

    def __init__(self, program: Program, modules: list[Any], wave: int) -> None:
        self.growing = caches_of(program)
        self.inputs, self.outputs = self.growing.inputs, self.growing.outputs
        self.buckets = dict(zip(program.model.symbols, program.model.buckets, strict=True))
        self.program, self._modules, self._wave = program, modules, wave
        self.sizes: list[int] = []

    def check_open(self) -> None:
        """It is always."""

    def get_inputs(self) -> list[Port]:
        return self.inputs

    def get_outputs(self) -> list[Port]:
        return self.outputs

    def run(self, names: Sequence[str] | None, feeds: Mapping[str, Array]) -> list[Array]:
        """As of a session: in the place of the model."""
        wanted = names or [port.name for port in self.outputs]
        return self.growing.run(wanted, feeds, {}, self._run, lambda _: None)

    def _run(self, names: Sequence[str], feeds: Mapping[str, Array], out: Mapping[str, Array]) -> list[Array]:
        made = {port.name: out.get(port.name) for port in self.outputs}
        for name, result in self._made(feeds).items():
            if made[name] is None:
                made[name] = result
            made[name][...] = result
        return [made[name] for name in names]

    def _made(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs of the program for inputs of these sizes."""
        sizes = [feeds["input_ids"].shape[1], feeds["past_key_values.0.key"].shape[2]]
        (made,) = (made.program for made in self.program.model.specializations if made.sizes == sizes)
        program = Program(made, {tensor: self.program.weights[tensor] for tensor in made.stored_tensors})
        self.sizes.append(sizes[0])
        results = run(program, dict(feeds), self._modules, wave=self._wave)
        return {port.name: result for port, result in zip(made.outputs, results, strict=True)}

    def bind(self, feeds: Mapping[str, Array], out: Mapping[str, Array]) -> Callable[[], None]:
        """As of a session."""

        def step() -> None:
            for name, result in self._made(feeds).items():
                out[name][...] = result

        return step


def texts_of(
    model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch, target: str, wave: int, batch: int = 1
) -> tuple[Sequences, Emulated]:
    """Texts of a model in the emulator."""
    dims = {port.name: port.type.tensor_type.shape.dim for port in (*model.graph.input, *model.graph.output)}
    (b, s), p = (dim.dim_param for dim in dims["input_ids"]), dims["past_key_values.0.key"][2].dim_param
    sizes: dict[str, Any] = {"shapes": {b: batch}, "buckets": {s: WINDOWS, p: [ROWS]}}
    last = {"logits": "attention_mask"}
    session = Emulated(*compile_for_emulator(model, monkeypatch, target=target, last_valid=last, **sizes), wave)
    names = [port.name for port in session.inputs]
    config = DecoderConfig(
        Path("model"),
        Path("model.onnx"),
        context_length=64,
        vocab_size=dims["logits"][2].dim_value,
        stop_tokens=frozenset(),
        input_ids="input_ids",
        attention_mask="attention_mask",
        position_ids="position_ids" if "position_ids" in names else None,
        logits="logits",
        caches=tuple((name, name.replace("past_key_values", "present")) for name in names if name.startswith("past")),
        search=Search(),
        grows=True,
    )
    return Sequences(Decoder(session, config, ROWS, []), None, None, batch), session


def generate(
    model: onnx.ModelProto, texts: Sequences, prompts: Sequence[Sequence[int]], count: int, error: float = 2e-5
) -> None:
    """Generate greedy tokens, with the logits of each against those of ONNX Runtime's CPU provider on the model as it is."""
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for _ in range(count):
        texts.append(prompts)
        found = texts.logits()
        for tokens, logits in zip(texts.tokens, found, strict=True):
            ((want,), _) = decode(reference, [np.array([tokens])])
            np.testing.assert_allclose(logits, want[0], rtol=error, atol=error)
        prompts = [[int(logits.argmax())] for logits in found]


@pytest.mark.parametrize(("masks", "on"), every(3, ["flags", "by index"], [("sm_90", 32), ("gfx942", 64)]))
def test_tokens_are_those_of_onnx_runtime(masks: str, on: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    model = growing_model(masks, heads=2)
    texts, session = texts_of(model, monkeypatch, *on)
    generate(model, texts, pieces_of(1, (6,))[0].tolist(), 4)
    assert session.sizes == [4, 4, *[1] * 3], "part of a window is no token, and the next one is written over that"


@pytest.mark.parametrize("masks", ["flags", "by index"])
def test_a_session_runs_the_models_own_inputs_in_windows(masks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = growing_model(masks)
    _, session = texts_of(model, monkeypatch, "sm_90", 32, batch=2)
    pieces = pieces_of(2, (3, 1, 1, 2, 4, 1))
    got = decode(session, pieces, padded=1)
    want = decode(ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]), pieces, padded=1)
    for mine, theirs in zip(got[0], want[0], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-5)
    for name, cache in want[1].items():  # padding sees nothing, and what it makes of that nobody reads
        np.testing.assert_allclose(got[1][name][:, :, 1:], cache[:, :, 1:], rtol=2e-5, atol=2e-5)
    assert session.sizes == [4, 1, 1, 4, 4, 1]
    assert {cache.base.shape[2] for cache in got[1].values()} == {ROWS}


def test_prompts_of_different_lengths_and_a_cache_filled_to_its_last_row(monkeypatch: pytest.MonkeyPatch) -> None:
    model = growing_model(is_placed=True)
    texts, session = texts_of(model, monkeypatch, "sm_90", 32, batch=2)
    prompts = pieces_of(1, (ROWS - 3,))[0].tolist() + pieces_of(1, (7,))[0].tolist()
    generate(model, texts, prompts, 1)
    generate(model, texts, [[5, 6, 7], [8, 9, 10]], 1)
    assert session.sizes[-3:] == [1, 1, 1], "no window is longer than the rest of the caches"
    texts.rewind_to([ROWS - 4, 5])
    generate(model, texts, [[7], [3]], 2)


@pytest.mark.parametrize("target", every(3, ["sm_80", "sm_90", "gfx942", "gfx1100"]))
def test_a_length_with_buckets_is_that_of_buffers(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"target": target, "shapes": {"b": 1}, "buckets": {"s": [2], "p": [16, ROWS]}}
    program, _ = compile_for_emulator(growing_model(), monkeypatch, **options)
    made = program.model
    assert [one.sizes for one in made.specializations] == [[2, 16], [2, ROWS]]
    assert made.growing is not None
    for one in made.specializations:
        dims = {port.name: port.dims for port in (*one.program.inputs, *one.program.outputs)}
        assert dims["past_key_values.1.value"] == dims["present.1.value"] == (1, HEADS, one.sizes[1], HEAD)
        assert dims["attention_mask"] == (1, one.sizes[1])
        assert one.program.copies == 0
    caches = caches_of(program)
    for before, rows in ((0, 16), (14, 16), (15, ROWS), (ROWS - 2, ROWS)):
        call = caches.call(_feeds(caches, before))
        assert {buffer.shape[2] for buffer in call.out.values()} == {rows}
    with pytest.raises(ModelError, match=rf"no room in the caches: expected at most {ROWS} rows, got {ROWS + 1}"):
        caches.call(_feeds(caches, ROWS - 1))


def _feeds(caches: GrowingCaches, before: int) -> dict[str, Array]:
    """Two tokens behind so many."""
    feeds: dict[str, Array] = {
        "input_ids": np.ones((1, 2), np.int64),
        "attention_mask": np.ones((1, before + 2), np.int64),
    }
    past = np.zeros((1, HEADS, before, HEAD), np.float32)
    return feeds | {port.name: past for port in caches.inputs if port.name.startswith("past")}


def test_a_length_that_the_user_fixes_stays_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"target": "sm_90", "shapes": {"b": 1, "p": 8}, "buckets": {"s": [1], "t": [9]}}
    made = compile_for_emulator(growing_model(), monkeypatch, **options)[0].model
    assert made.growing is None
    assert made.specializations[0].program.outputs[1].dims == (1, HEADS, 9, HEAD)
