"""Dynamic dimensions padded to buckets: what is asked for equals ONNX Runtime, and models that mix padding in are refused by name."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import onnx
import pytest

import hipdnn_mlir
from bucket_models import (
    ADD,
    BUCKETS,
    RELU,
    SAFE,
    SIZES,
    UNSAFE,
    check,
    feeds_of,
    floats,
    model,
    open_encoder,
    reference,
)
from conftest import Command
from drawing import draws
from hipdnn_mlir_runtime.errors import ModelError, PaddingError, ProgramError
from hipdnn_mlir_runtime.session import padding as padded_arrays


@pytest.mark.parametrize("name", SAFE)
def test_results_are_those_of_the_sizes_asked_for(name: str) -> None:
    proto, symbol = SAFE[name]
    session = hipdnn_mlir.compile(proto, buckets={symbol: BUCKETS}).session()
    want = reference(proto)
    others = {other: 3 for other in session.symbols if other != symbol}
    for size in SIZES:
        check(want, session, feeds_of(session, {symbol: size, **others}))
    assert session.stats.specializations == len(BUCKETS)


def test_two_sizes_have_buckets_of_their_own() -> None:
    proto = model("g (float[b,s,8] x) => (float[b,s,8] y) { t = MatMul(x, w) y = Relu(t) }", w=floats(8, 8))
    session = hipdnn_mlir.compile(proto, buckets={"b": [2, 4], "s": [3, 6]}).session()
    want = reference(proto)
    for b, s in itertools.product((1, 2, 4), (1, 3, 5, 6)):
        check(want, session, feeds_of(session, {"b": b, "s": s}))
    assert session.stats.specializations == 4


@pytest.mark.parametrize("name", UNSAFE)
def test_a_model_that_mixes_padding_in_is_refused(name: str) -> None:
    text, symbol, node, reason = UNSAFE[name]
    proto = model(text, opset=23, **({"filter": floats(4, 3, 3)} if "filter" in text else {}))
    with pytest.raises(PaddingError) as found:
        hipdnn_mlir.compile(proto, buckets={symbol: BUCKETS})
    for part in (node, f"'{symbol}' cannot be padded to a bucket", reason, f"compile without buckets for '{symbol}'"):
        assert part in str(found.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("g (float[b,8] x) => (int64[2] y) { y = Shape(x) }", "output 'y': its values depend on 'b' itself"),
        ("g (float[s,b,8] x) => (float[n,8] y) <int64[2] rows = {-1, 8}> { y = Reshape(x, rows) }",
         "output 'y': padding would lie between results along dimension 0"),
    ],
)  # fmt: skip
def test_an_output_that_cannot_be_cut_is_named(text: str, reason: str) -> None:
    with pytest.raises(PaddingError, match=reason):
        hipdnn_mlir.compile(model(text), buckets={"b": BUCKETS})


def test_an_encoder_is_not_padded_along_its_sequence() -> None:
    proto = open_encoder()
    shapes = {"hidden": ("b", "s", 16), "mask": ("b", 1, 1, "s")}
    hipdnn_mlir.compile(proto, shapes=shapes, buckets={"b": BUCKETS})
    with pytest.raises(PaddingError, match="'s' cannot be padded to a bucket"):
        hipdnn_mlir.compile(proto, shapes=shapes, buckets={"s": BUCKETS})


def test_a_size_above_the_buckets_is_named() -> None:
    session = hipdnn_mlir.compile(model(ADD), buckets={"b": [2, 4]}).session()
    message = r"'x', dimension 0 \('b'\): 5 is above the buckets 2, 4; run it in parts"
    with pytest.raises(ModelError, match=message):
        session.run(None, {"x": floats(5, 3), "z": floats(5, 3)})
    with pytest.raises(ModelError, match=message):
        session.prewarm([{"b": 5}])


def test_contradicting_sizes_are_named_before_they_are_padded() -> None:
    session = hipdnn_mlir.compile(model(ADD), buckets={"b": [4]}).session()
    with pytest.raises(ModelError, match=r"'z', dimension 0 \('b'\): expected 2 as in 'x', dimension 0, got 3"):
        session.run(None, {"x": floats(2, 3), "z": floats(3, 3)})


def test_what_a_model_decides_by_a_size_is_decided_by_the_one_asked_for() -> None:
    """At 3 the model goes the other way, and at 8, where the program would run, it does not."""
    text = """g (float[b,3] x) => (float[b,3] y) <int64 i = {0}, int64 limit = {4}> {
    s = Shape(x) d = Gather<axis=0>(s, i) c = Less(d, limit)
    y = If(c) <then_branch = t () => (float[n,3] p) { p = Relu(x) }, else_branch = e () => (float[n,3] q) { q = Neg(x) }> }"""
    proto = model(text)
    session = hipdnn_mlir.compile(proto, buckets={"b": [8]}).session()
    check(reference(proto), session, {"x": floats(5, 3)})
    with pytest.raises(ModelError, match=r"the program does not hold for b=3: node '.*' needs 4 <= b"):
        session.run(None, {"x": floats(3, 3)})


@pytest.mark.parametrize("sizes", [[], [4, 2], [2, 2], [0, 2], [-1], [1 << 50], [True], [1.5], list(range(1, 2000))])
def test_bad_buckets_are_refused(sizes: Sequence[int]) -> None:
    with pytest.raises(
        ModelError,
        match="invalid buckets for 'b': expected 1 to 1024 numbers from 1 to 281474976710655, in ascending order",
    ):
        hipdnn_mlir.compile(model(RELU), buckets={"b": sizes})


def test_a_bucket_that_is_no_list_is_refused() -> None:
    with pytest.raises(ModelError, match="invalid buckets for 'b': expected a list of numbers, got 4"):
        hipdnn_mlir.compile(model(RELU), buckets={"b": 4})  # type: ignore[dict-item]


def test_buckets_of_a_size_that_is_not_open_are_refused() -> None:
    with pytest.raises(ModelError, match=r"no dynamic dimension named 'seq': expected a dynamic dimension \(b\)"):
        hipdnn_mlir.compile(model(RELU), buckets={"seq": [2]})
    with pytest.raises(
        ModelError, match=r"no dynamic dimension named 'b': expected a dynamic dimension \(there is none\)"
    ):
        hipdnn_mlir.compile(model(RELU), shapes={"b": 2}, buckets={"b": [2]})


def test_an_input_of_a_computed_size_is_not_padded() -> None:
    proto = model(
        "g (float[p,2] c, float[s,2] x, float[n,2] m) => (float[n,2] y) { z = Concat<axis=0>(c, x) y = Add(z, m) }"
    )
    proto.graph.input[2].type.tensor_type.shape.dim[0].dim_param = "p + s"
    with pytest.raises(ModelError, match="dimension 0 of input 'm' is computed from 's'"):
        hipdnn_mlir.compile(proto, buckets={"s": [2]})


def test_an_empty_input_is_not_padded() -> None:
    session = hipdnn_mlir.compile(model(RELU), buckets={"b": [2]}).session()
    (got,) = session.run(None, {"x": floats(0, 3)})
    assert got.shape == (0, 3)


def test_a_program_file_keeps_its_buckets(tmp_path: Path) -> None:
    proto = model(RELU)
    hipdnn_mlir.compile(proto, buckets={"b": [2, 4]}).save(tmp_path / "m.hipdnn")
    session = hipdnn_mlir.load(tmp_path / "m.hipdnn")
    assert session.buckets == {"b": [2, 4]}
    check(reference(proto), session, {"x": floats(3, 3)})
    assert "buckets" not in json.loads(hipdnn_mlir.compile(proto).text)


@pytest.mark.parametrize(
    ("buckets", "message"),
    [
        ([[], []], r"program.buckets: .*a list for each symbol"),
        ([[2], [3]], r"program.buckets: .*a list for each symbol"),
        ([[4, 2]], r"program.buckets\[0\]: .*sizes that rise"),
        ([[2, 2]], r"program.buckets\[0\]: .*sizes that rise"),
        ([[0]], r"program.buckets\[0\]"),
        ([["2"]], r"program.buckets\[0\]"),
        (2, r"program.buckets"),
    ],
)
def test_broken_buckets_of_a_program_are_refused(buckets: object, message: str) -> None:
    program = hipdnn_mlir.compile(model(RELU))
    text = json.dumps({**json.loads(program.text), "buckets": buckets})
    with pytest.raises(ProgramError, match=message):
        hipdnn_mlir.load(SimpleNamespace(text=text, tensors=program.tensors))


def test_a_size_that_is_a_bucket_is_used_where_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    session = hipdnn_mlir.compile(model(RELU), buckets={"b": [4]}).session()
    monkeypatch.setattr("hipdnn_mlir_runtime.session.session.padded", None)
    out = np.empty((4, 3), np.float32)
    (got,) = session.run(None, {"x": floats(4, 3)}, out={"y": out})
    assert got is out
    np.testing.assert_array_equal(out, np.maximum(floats(4, 3), 0))


def test_results_go_into_the_callers_arrays() -> None:
    session = hipdnn_mlir.compile(model(RELU), buckets={"b": [4]}).session()
    out = np.empty((3, 3), np.float32)
    (got,) = session.run(None, {"x": floats(3, 3)}, out={"y": out})
    assert got is out
    np.testing.assert_array_equal(out, np.maximum(floats(3, 3), 0))
    with pytest.raises(ModelError, match=r"'y': wrong array: expected f32\[3,3\], got f32\[4,3\]"):
        session.run(None, {"x": floats(3, 3)}, out={"y": np.empty((4, 3), np.float32)})


class Exported:
    """An array that is no NumPy array."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.shape = array.shape

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


class OnDevice(Exported):
    """One whose memory NumPy cannot read."""

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("the array is in the memory of a device")


def test_arrays_of_other_libraries_are_padded_in_host_memory() -> None:
    session = hipdnn_mlir.compile(model(RELU), buckets={"b": [4]}).session()
    (got,) = session.run(None, {"x": Exported(floats(3, 3))})
    np.testing.assert_array_equal(got, np.maximum(floats(3, 3), 0))
    with pytest.raises(ModelError, match=r"'x': cannot be padded: .*expected an array in host memory"):
        session.run(None, {"x": OnDevice(floats(3, 3))})


def test_the_last_elements_are_repeated() -> None:
    got = padded_arrays.padded(np.array([[1, 2], [3, 4]]), (3, 4), "x")
    np.testing.assert_array_equal(got, [[1, 2, 2, 2], [3, 4, 4, 4], [3, 4, 4, 4]])


def test_all_buckets_are_loaded_ahead() -> None:
    proto = model("g (float[b,s,8] x) => (float[b,s,8] y) { y = Relu(x) }")
    session = hipdnn_mlir.compile(proto, buckets={"b": [2, 4], "s": [3, 6, 9]}).session()
    session.prewarm()
    assert session.stats.specializations == 6
    check(reference(proto), session, feeds_of(session, {"b": 3, "s": 7}))
    assert session.stats.specializations == 6
    few = hipdnn_mlir.compile(proto, buckets={"b": [2, 4], "s": [3, 6, 9]}).session(max_specializations=5)
    with pytest.raises(
        ModelError, match="6 combinations of buckets, the session keeps 5; load it with max_specializations=6"
    ):
        few.prewarm()
    half = hipdnn_mlir.compile(proto, buckets={"b": [2, 4]}).session()
    with pytest.raises(ModelError, match="no buckets for s; give the sizes to load for"):
        half.prewarm()
    half.prewarm([{"b": 1, "s": 5}, {"b": 2, "s": 5}])
    assert half.stats.specializations == 1


def test_threads_with_different_sizes_run_at_once() -> None:
    proto = SAFE["perceptron"][0]
    session = hipdnn_mlir.compile(proto, buckets={"b": BUCKETS}).session()
    want = reference(proto)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda size: check(want, session, {"x": floats(size, 8)}), [1 + i % 8 for i in range(40)]))


STEPS = {
    "relu": "Relu({x})",
    "weights": "MatMul({x}, w)",
    "bias": "Add({x}, c)",
    "softmax": "Softmax<axis={axis}>({x})",
    "mean": "Sub({x}, m{n})",
    "swap": "Transpose<perm={perm}>({x})",
    "sum": "CumSum({x}, i{axis})",
    "reverse": "Slice({x}, last, far, a{axis}, last)",
}
AXES = "int64 i0 = {0}, int64 i1 = {1}, int64 i2 = {2}, int64[1] a0 = {0}, int64[1] a1 = {1}, int64[1] a2 = {2}"


@st.composite
def graphs(draw: st.DrawFn) -> str:
    """A chain of operations on b x 4 x 4, some of which mix the batch."""
    lines, name, order = [], "x", [0, 1, 2]
    for number in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from([*STEPS, "twice"]))
        axis = draw(st.integers(0, 2))
        perm = draw(st.permutations(range(3)))
        if kind in ("weights", "bias") and order[2] == 0:
            continue  # they are 4 wide
        if kind == "swap":
            order = [order[i] for i in perm]
        if kind == "mean":
            lines.append(f"m{number} = ReduceMean({name}, a{axis})")
        if kind == "twice":
            lines.append(f"d{number} = Concat<axis={axis}>({name}, {name})")
            line = f"Slice(d{number}, two, six, a{axis})" if order[axis] != 0 else f"Relu(d{number})"
        else:
            line = STEPS[kind].format(x=name, n=number, axis=axis, perm=list(perm))
        lines.append(f"v{number} = {line}")
        name = f"v{number}"
    bounds = "int64[1] last = {-1}, int64[1] far = {-9223372036854775807}, int64[1] two = {2}, int64[1] six = {6}"
    return f"g (float[b,4,4] x) => (float[p,q,r] y) <{AXES}, {bounds}> {{ {' '.join(lines)} y = Identity({name}) }}"


@draws(20)
@hypothesis.given(graphs(), st.integers(1, 7))
def test_a_model_is_refused_or_computes_what_was_asked(text: str, size: int) -> None:
    proto = model(text, w=floats(4, 4), c=floats(4))
    try:
        session = hipdnn_mlir.compile(proto, buckets={"b": [8]}).session()
    except PaddingError:
        hypothesis.event("refused")
        return
    hypothesis.event("taken")
    check(reference(proto), session, {"x": floats(size, 4, 4)})


def test_command_runs_sizes_between_buckets(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(SAFE["perceptron"][0], path)
    made = command("compile", path, "--bucket", "b=2,4", "-o", tmp_path / "m.hipdnn")
    assert made.returncode == 0, made.stderr
    shown = command("inspect", tmp_path / "m.hipdnn")
    assert "dynamic dimensions: b (rounded up to 2, 4)" in shown.stdout
    ran = command("run", tmp_path / "m.hipdnn", "--shape", "b=3", "--compare", "ort", "--reference", path, "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["outputs"][0]["dims"] == [3, 4]
    above = command("run", tmp_path / "m.hipdnn", "--shape", "b=5")
    assert (above.returncode, above.stderr.count("\n")) == (2, 1)
    assert "'x', dimension 0 ('b'): 5 is above the buckets 2, 4" in above.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bucket", "b"], "--bucket: bad value: expected SIZE=1,2,4,8, got 'b'"),
        (["--bucket", "b=1,x"], "--bucket: bad value: expected SIZE=1,2,4,8, got 'b=1,x'"),
        (["--bucket", "b="], "--bucket: bad value"),
        (["--bucket", "b=4,2"], "invalid buckets for 'b'"),
        (["--bucket", "b=2,2"], "invalid buckets for 'b'"),
        (["--bucket", "b=0,2"], "invalid buckets for 'b'"),
        (["--bucket", "b=-1"], "invalid buckets for 'b'"),
        (["--bucket", "b=1", "--bucket", "b=2"], "--bucket: two values for 'b'"),
        (["--bucket", "n=1"], "no dynamic dimension named 'n'"),
    ],
)
def test_command_names_what_is_wrong_with_buckets(
    command: Command, tmp_path: Path, options: list[str], message: str
) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model(RELU), path)
    result = command("compile", path, "--in-process", *options)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1), result.stderr
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_command_keeps_the_buckets_of_a_program_file(command: Command, tmp_path: Path) -> None:
    hipdnn_mlir.compile(model(RELU)).save(tmp_path / "m.hipdnn")
    result = command("run", tmp_path / "m.hipdnn", "--bucket", "b=2")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert (
        "--bucket: an option of compiling, and m.hipdnn is compiled already; compile the model with it" in result.stderr
    )
