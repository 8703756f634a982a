"""Random inputs are valid: indices lie within their tables, whatever is between, and a range of the user's is kept to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto

import hipdnn_mlir
from bucket_models import model as parsed
from hipdnn_mlir.compiler.specializations import compile_specializations
from hipdnn_mlir_runtime.cli import main as cli
from hipdnn_mlir_runtime.cli.inputs import Given, Inputs
from hipdnn_mlir_runtime.session.arrays import Port
from hipdnn_mlir_runtime.session.session import Session
from models import GraphBuilder

I64 = TensorProto.INT64


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    """The embeddings of a BERT: words, two types of token, positions from 2 on, a mask; batch and sequence are open."""
    b = GraphBuilder("bert")
    ids, types, positions, mask = (
        b.input(name, ["batch", "seq"], I64)
        for name in ("input_ids", "token_type_ids", "position_ids", "attention_mask")
    )
    words = b.op("Gather", b.normal([100, 8], 1.0), ids)
    kinds = b.op("Gather", b.normal([2, 8], 1.0), b.op("Cast", types, to=TensorProto.INT32))
    places = b.op("Gather", b.normal([16, 8], 1.0), b.op("Add", positions, b.constant(2, np.int64)))
    total = b.op("Add", b.op("Add", words, kinds), places)
    shift = b.op("Mul", b.op("Cast", mask, to=TensorProto.FLOAT), b.constant(100, np.float32))
    masked = b.op("Add", total, b.op("Unsqueeze", shift, b.constant([2], np.int64)))
    path = tmp_path / "bert.onnx"
    onnx.save(b.model({masked: ["batch", "seq", 8]}), path)
    return path


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command here; returns the exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> tuple[int, str, str]:
        status = cli.call(list(map(str, arguments)))
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


@pytest.mark.parametrize("seed", range(3))
def test_commands_compare_a_model_with_embeddings_by_default(bert: Path, run: Run, seed: int) -> None:
    sizes = ["--shape", "batch=3", "--shape", "seq=9", "--in-process", "--seed", seed, "--json"]
    for command, rows in ((["run", bert, "--compare", "ort"], "differences"), (["verify", bert], "outputs")):
        status, out, err = run(*command, *sizes)
        assert status == 0, err
        assert [(row["within"], row["constant"]) for row in json.loads(out)[rows]] == [(True, False)]


def test_a_program_file_knows_the_ranges_of_its_inputs(bert: Path, run: Run) -> None:
    hipdnn_mlir.compile(bert).save("bert.hipdnn")
    expected = {"input_ids": (0, 100), "token_type_ids": (0, 2), "position_ids": (0, 14)}
    assert Session("bert.hipdnn").ranges == expected
    status, _, err = run("run", "bert.hipdnn", "--shape", "batch=8", "--shape", "seq=32")
    assert status == 0, err
    drawn = Inputs(Session("bert.hipdnn"), Given(sizes={"batch": 50, "seq": 50})).draw()
    for name, (low, high) in {**expected, "attention_mask": (0, 2)}.items():
        assert (drawn[name].min(), drawn[name].max()) == (low, high - 1)


def test_a_program_for_each_bucket_knows_the_ranges_of_its_inputs() -> None:
    proto = parsed(
        "g (float[b,8] x, int64[b] i) => (float[b,8] y) <float[5,1] t = {1, 2, 3, 4, 5}> { e = Gather(t, i) y = Add(x, e) }"
    )
    made = compile_specializations(proto, buckets={"b": [2, 4]}, target="host", precision="model")
    assert made.session().ranges == {"i": (0, 5)}


def square(b: GraphBuilder, i: str) -> str:
    """Four values as two of two."""
    flat = b.op("Unsqueeze", b.op("Reshape", i, b.constant([2, 2], np.int64)), b.constant([0], np.int64))
    return b.op("Squeeze", flat, b.constant([0], np.int64))


CASES: dict[str, tuple[Callable[[GraphBuilder, str], str], tuple[int, int]]] = {
    "gather": (lambda b, i: b.op("Gather", b.normal([7, 3], 1.0), i), (0, 7)),
    "another axis": (lambda b, i: b.op("Gather", b.normal([3, 7], 1.0), i, axis=-1), (0, 7)),
    "two tables": (
        lambda b, i: b.op("Add", b.op("Gather", b.normal([9, 3], 1.0), i), b.op("Gather", b.normal([5, 3], 1.0), i)),
        (0, 5),
    ),
    "moved": (
        lambda b, i: b.op("Gather", b.normal([3, 2], 1.0), b.op("Transpose", square(b, i), perm=[1, 0])),
        (0, 3),
    ),
    "sliced and joined": (
        lambda b, i: b.op(
            "Gather",
            b.normal([4, 2], 1.0),
            b.op("Concat", b.op("Slice", i, b.constant([1], np.int64), b.constant([3], np.int64)), i, axis=0),
        ),
        (0, 4),
    ),
    "cast": (lambda b, i: b.op("Gather", b.normal([4, 2], 1.0), b.op("Cast", b.op("Cast", i, to=1), to=TensorProto.INT32)), (0, 4)),
    "shifted": (lambda b, i: b.op("Gather", b.normal([9, 2], 1.0), b.op("Add", b.constant([1, 2, 2, 1], np.int64), i)), (0, 7)),
    "shifted back": (lambda b, i: b.op("Gather", b.normal([9, 2], 1.0), b.op("Sub", i, b.constant(3, np.int64))), (0, 12)),
    "scaled": (lambda b, i: b.op("Gather", b.normal([10, 2], 1.0), b.op("Mul", i, b.constant([3, 1, 2, 4], np.int64))), (0, 3)),
    "wrapped": (
        lambda b, i: b.op(
            "Gather",
            b.normal([6, 2], 1.0),
            b.op("Where", b.op("Less", i, b.constant(0, np.int64)), b.op("Add", i, b.constant(6, np.int64)), i),
        ),
        (0, 6),
    ),
    "elements": (lambda b, i: b.op("GatherElements", b.normal([3], 1.0), i), (0, 3)),
    "tuples": (lambda b, i: b.op("GatherND", b.normal([6, 3], 1.0), square(b, i)), (0, 3)),
    "scattered": (lambda b, i: b.op("ScatterElements", b.normal([5], 1.0), i, b.normal([4], 1.0)), (0, 5)),
    "scattered tuples": (
        lambda b, i: b.op("ScatterND", b.normal([6, 5], 1.0), square(b, i), b.normal([2], 1.0)),
        (0, 5),
    ),
    "a gathered index": (
        lambda b, i: b.op("Gather", b.normal([6, 2], 1.0), b.op("Gather", i, b.constant([3, 1], np.int64))),
        (0, 6),
    ),
}  # fmt: skip
"""Name -> what is made of an input of four integers, and the range in which ONNX Runtime takes them."""


@pytest.mark.parametrize("name", CASES)
def test_the_range_is_what_onnxruntime_takes(name: str) -> None:
    build, (low, high) = CASES[name]
    b = GraphBuilder("m")
    proto = b.model({build(b, b.input("i", [4], I64)): []})
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    proto = onnx.shape_inference.infer_shapes(proto)
    session = hipdnn_mlir.compile(proto).session()
    assert session.ranges == {"i": (low, high)}
    options = ort.SessionOptions()
    options.log_severity_level = 4
    reference = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    ends = [np.full(4, end, np.int64) for end in (low, high - 1)]
    for values in (*ends, Inputs(session).draw()["i"]):
        (want,) = reference.run(None, {"i": values})
        if not name.startswith("scattered"):  # where two are one, either may win
            np.testing.assert_array_equal(session.run(None, {"i": values})[0], want)
    with pytest.raises(Exception, match=r"(?i)out of|invalid ind"):
        reference.run(None, {"i": np.full(4, high, np.int64)})


def test_other_integers_stay_what_they_were() -> None:
    b = GraphBuilder("m")
    i, x = b.input("i", [400], I64), b.input("x", [400])
    session = hipdnn_mlir.compile(b.model({b.op("Add", b.op("Cast", i, to=1), x): [400]})).session()
    assert session.ranges == {}
    drawn = Inputs(session).draw()
    assert (drawn["i"].min(), drawn["i"].max()) == (0, 9)
    assert drawn["x"].min() < -2


def test_an_index_of_a_dynamic_dimension_is_zero() -> None:
    proto = parsed("g (float[n,8] x, int64[3] i) => (float[3,8] y) { y = Gather(x, i) }")
    session = hipdnn_mlir.compile(proto).session()
    assert session.ranges == {"i": (0, 1)}


RANGES = [
    ("f64", np.float64, -1e308, 1e308), ("f32", np.float32, -0.5, 0.25), ("f16", np.float16, -65504, 65504),
    ("bf16", ml_dtypes.bfloat16, 1, 1.0625), ("f32", np.float32, 1, 1.0000002), ("i8", np.int8, -128, 128), ("u8", np.uint8, 250, 256),
    ("i32", np.int32, -7, -5), ("i64", np.int64, -(2**63), 2**63), ("u64", np.uint64, 2**63, 2**64), ("bool", np.bool_, 1, 2),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "numpy", "low", "high"), RANGES)
def test_a_range_is_kept_to_by_every_type(dtype: str, numpy: Any, low: float, high: float) -> None:
    session = SimpleNamespace(inputs=[Port("x", dtype, (4000,))], symbols=[], least_exact={}, ranges={}, sizing={})
    drawn = Inputs(session, Given(ranges={"x": (low, high)})).draw()["x"]
    assert drawn.dtype == np.dtype(numpy)
    values = [value.item() for value in drawn]
    assert low <= min(values) <= max(values) < high
    if high - low > 1:
        assert len(set(values)) > 1


def test_an_index_of_a_narrow_type_stays_within_it() -> None:
    session = SimpleNamespace(
        inputs=[Port("x", "u8", (4000,))], symbols=[], least_exact={}, ranges={"x": (0, 1000)}, sizing={}
    )
    assert set(Inputs(session).draw()["x"]) == set(range(256))


WRONG = [
    (["--range", "words=0:5"], "--range: the model has no input 'words': expected one of 'input_ids', "),
    (["--range", "input_ids"], "--range: bad value: expected NAME=LOW:HIGH, got 'input_ids'"),
    (["--range", "input_ids=3"], "--range: bad value"),
    (["--range", "input_ids=1:2:3"], "--range: bad value"),
    (["--range", "input_ids=a:b"], "--range: bad value"),
    (["--range", "input_ids=5:5"], "expected LOW below HIGH, which is not drawn itself, got 5:5"),
    (["--range", "input_ids=5:4"], "expected LOW below HIGH"),
    (["--range", "input_ids=nan:4"], "expected LOW below HIGH"),
    (["--range", "input_ids=0:1.5"], "input 'input_ids' is of type i64: expected whole numbers from -9223372036854775808"),
    (["--range", "input_ids=0:9223372036854775809"], "input 'input_ids' is of type i64"),
    (["--range", "input_ids=0:inf"], "input 'input_ids' is of type i64"),
    (["--range", "input_ids=0:4", "--range", "input_ids=0:5"], "--range: two values for 'input_ids'"),
    (["--range", "input_ids=0:4", "--input", "input_ids=i.npy"], "input 'input_ids' is not random, --input names its file"),
    (["--input", "words=i.npy"], "--input: the model has no input 'words'"),
]  # fmt: skip
"""Options, and what is said of them."""


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        pytest.param(command, *row, marks=[pytest.mark.nightly] if (number + place) % 2 else [])
        for number, row in enumerate(WRONG)
        for place, command in enumerate(("run", "verify"))
    ],
    ids=lambda value: " ".join(value[1::2]) if isinstance(value, list) else value.partition(" ")[0],
)
def test_a_range_that_an_input_cannot_have_is_one_line(
    bert: Path, run: Run, command: str, options: list[str], message: str
) -> None:
    np.save("i.npy", np.zeros((1, 1), np.int64))
    status, out, err = run(command, bert, "--in-process", *options)
    assert (status, out, err.count("\n")) == (2, "", 1), err
    assert message in err


def test_a_float_has_the_ends_of_its_type() -> None:
    session = SimpleNamespace(inputs=[Port("x", "f16", (4,))], symbols=[], least_exact={}, ranges={}, sizing={})
    for low, high in ((0, 65505), (-1e9, 0), (float("-inf"), 0)):
        with pytest.raises(hipdnn_mlir.HipdnnMlirError, match=r"f16: expected numbers from -65504 to 65504"):
            Inputs(session, Given(ranges={"x": (low, high)}))


def test_verify_takes_inputs_and_ranges(bert: Path, run: Run) -> None:
    """What is out of the table is refused by whoever looks it up, so what was given got there."""
    np.save("good.npy", np.full((2, 3), 99, np.int64))
    np.save("bad.npy", np.full((2, 3), 100, np.int64))
    assert (
        run("verify", bert, "--in-process", "--input", "input_ids=good.npy", "--range", "token_type_ids=-2:0")[0] == 0
    )
    for options in (["--input", "input_ids=bad.npy"], ["--range", "input_ids=100:101"]):
        status, out, err = run("verify", bert, "--in-process", *options)
        assert (status, out) == (2, "")
        assert "idx=100 must be within the inclusive range [-100,99]" in err
