"""Files with a program for each combination of buckets: what is asked for equals ONNX Runtime's, what must not be padded runs as it is.

Such files are for GPUs; here they are made for the host, whose numbers can be compared.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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
from hipdnn_mlir import Program, Session
from hipdnn_mlir.compiler.specializations import compile_specializations
from hipdnn_mlir.program.schema import FORMAT
from hipdnn_mlir_runtime import _runtime
from hipdnn_mlir_runtime.errors import ModelError, PlanRefusedError, ProgramError, RefusedPlan, UnsupportedError
from hipdnn_mlir_runtime.session.profiling.profile import profile


def stored(proto: onnx.ModelProto, buckets: Mapping[str, Sequence[int]], **options: Any) -> Program:
    return compile_specializations(proto, buckets=buckets, target="host", precision="model", **options)


def all_buckets(proto: onnx.ModelProto, symbol: str) -> dict[str, list[int]]:
    """Several for one size, 3 for each other one."""
    names = [dim.dim_param for port in proto.graph.input for dim in port.type.tensor_type.shape.dim if dim.dim_param]
    return {name: BUCKETS if name == symbol else [3] for name in dict.fromkeys(names)}


def feeds_at(session: Session, symbol: str, size: int) -> dict[str, np.ndarray]:
    return feeds_of(session, {**dict.fromkeys(session.symbols, 3), symbol: size})


@pytest.mark.parametrize("name", SAFE)
def test_results_are_those_of_the_sizes_asked_for(name: str) -> None:
    proto, symbol = SAFE[name]
    session = stored(proto, all_buckets(proto, symbol)).session()
    assert symbol not in session.exact
    want = reference(proto)
    for size in SIZES:
        check(want, session, feeds_at(session, symbol, size))
    assert session.stats.specializations == len(BUCKETS)


@pytest.mark.parametrize("name", UNSAFE)
def test_what_mixes_padding_in_runs_at_its_buckets_alone(name: str) -> None:
    text, symbol, node, reason = UNSAFE[name]
    proto = model(text, opset=23, **({"filter": floats(4, 3, 3)} if "filter" in text else {}))
    session = stored(proto, all_buckets(proto, symbol)).session()
    want = reference(proto)
    for size in BUCKETS:
        check(want, session, feeds_at(session, symbol, size))
    assert f"node '{node}'" in session.exact[symbol]
    with pytest.raises(ModelError, match=r"4 is none of the buckets 2, 5, 8, and is not rounded up to one") as found:
        session.run(None, feeds_at(session, symbol, 4))
    for part in (f"('{symbol}')", node, reason, "compile the model with a bucket of 4"):
        assert part in str(found.value)


def test_sizes_have_buckets_of_their_own() -> None:
    proto = model("g (float[b,s,8] x) => (float[b,s,8] y) { t = MatMul(x, w) y = Relu(t) }", w=floats(8, 8))
    session = stored(proto, {"s": [3, 6], "b": [2, 4]}).session()
    want = reference(proto)
    for b, s in itertools.product((1, 2, 4), (1, 3, 5, 6)):
        check(want, session, feeds_of(session, {"b": b, "s": s}))
    assert session.stats.specializations == 4


def test_of_two_sizes_that_exclude_each_other_the_first_is_rounded_up() -> None:
    proto, _ = SAFE["batch merged into rows"]
    session = stored(proto, {"b": [2, 4], "s": [3, 6]}).session()
    check(reference(proto), session, feeds_of(session, {"b": 3, "s": 6}))
    assert list(session.exact) == ["s"]
    with pytest.raises(ModelError, match=r"padding would lie between results"):
        session.run(None, feeds_of(session, {"b": 2, "s": 4}))


def test_the_batch_of_an_encoder_is_rounded_up_and_its_sequence_is_not() -> None:
    proto = open_encoder()
    shapes = {"hidden": ("b", "s", 16), "mask": ("b", 1, 1, "s")}
    session = stored(proto, {"b": [1, 4], "s": [5, 6]}, shapes=shapes).session()
    want = reference(proto)
    for b in (1, 3, 4):
        check(want, session, feeds_of(session, {"b": b, "s": 6}))
    assert list(session.exact) == ["s"]


def test_a_size_that_another_dim_is_computed_from_takes_its_buckets_alone() -> None:
    proto = model(
        """g (float[b,p,2] c, float[b,s,2] x, float[b,n,2] m) => (float[b,n,2] y) {
        z = Concat<axis=1>(c, x) y = Add(z, m) }"""
    )
    proto.graph.input[2].type.tensor_type.shape.dim[1].dim_param = "p + s"
    session = stored(proto, {"b": [2, 4], "p": [4, 8], "s": [1, 2]}).session()
    for b, p, s in itertools.product((1, 2, 3), (4, 8), (1, 2)):
        check(reference(proto), session, {"c": floats(b, p, 2), "x": floats(b, s, 2), "m": floats(b, p + s, 2)})
    with pytest.raises(ModelError, match=r"5 is none of the buckets 4, 8.*dimension 1 of input 'm' is computed from"):
        session.run(None, {"c": floats(2, 5, 2), "x": floats(2, 1, 2), "m": floats(2, 6, 2)})


def test_a_model_goes_its_own_way_at_each_bucket() -> None:
    text = """g (float[b,3] x) => (float[b,3] y) <int64 i = {0}, int64 limit = {4}> {
    s = Shape(x) d = Gather<axis=0>(s, i) c = Less(d, limit)
    y = If(c) <then_branch = t () => (float[n,3] p) { p = Relu(x) }, else_branch = e () => (float[n,3] q) { q = Neg(x) }> }"""
    proto = model(text)
    session = stored(proto, {"b": [2, 8]}).session()
    want = reference(proto)
    for size in (2, 5, 8):
        check(want, session, {"x": floats(size, 3)})
    with pytest.raises(ModelError, match=r"the program does not hold for b=3: node '.*' needs 4 <= b"):
        session.run(None, {"x": floats(3, 3)})
    with pytest.raises(ModelError, match=r"the program does not hold for b=1"):
        session.run(None, {"x": floats(1, 3)})


def test_a_model_for_a_few_sizes_runs_at_its_buckets() -> None:
    """An exporter has written the batch into a shape."""
    proto = model("g (float[b,12] x) => (float[4,6] y) <int64[2] s = {4, 6}> { r = Relu(x) y = Reshape(r, s) }")
    session = stored(proto, {"b": [2]}).session()
    check(reference(proto), session, {"x": floats(2, 12)})
    with pytest.raises(ModelError, match=r"1 is none of the buckets 2, and is not rounded up to one"):
        session.run(None, {"x": floats(1, 12)})
    with pytest.raises(UnsupportedError, match=r"this was for b=3"):
        stored(proto, {"b": [2, 3]})


def test_a_model_without_one_form_runs_at_its_buckets() -> None:
    """What its sizes are together is no expression that is known: two quotients that are rounded, and their product."""
    proto = model(
        """g (float[b,3] x) => (float[b,3] y) <int64 zero = {0}, int64 nine = {9}, int64 one = {1}> {
        s = Shape(x) d = Gather<axis=0>(s, zero) h = Sub(nine, d) q = Div(h, d) f = Cast<to=1>(q) y = Add(x, f) }"""
    )
    with pytest.raises(ModelError) as refused:
        hipdnn_mlir.compile(proto)
    session = stored(proto, {"b": [2, 3]}).session()
    for size in (2, 3):
        check(reference(proto), session, {"x": floats(size, 3)})
    with pytest.raises(
        ModelError, match=r"1 is none of the buckets 2, 3, .*no single program serves all sizes"
    ) as found:
        session.run(None, {"x": floats(1, 3)})
    assert refused.value.message in str(found.value)


def test_weights_that_are_equal_are_in_the_file_once(tmp_path: Path) -> None:
    proto = model(
        """g (float[b,64] x) => (float[b,64] y) <int64[1] first = {0}, int64[1] row = {64}> {
        d = Shape(x) n = Gather<axis=0>(d, first) t = Concat<axis=0>(n, row) o = ConstantOfShape<value = float[1] {2}>(t)
        h = MatMul(x, w) y = Mul(h, o) }""",
        w=floats(64, 64),
    )
    program = stored(proto, {"b": [2, 4, 8]})
    assert [weight.shape for weight in program.weights.values()].count((64, 64)) == 1
    program.save(tmp_path / "m.hipdnn")
    session = hipdnn_mlir.load(tmp_path / "m.hipdnn")
    for size in (1, 2, 3, 8):
        check(reference(proto), session, {"x": floats(size, 64)})
    assert (tmp_path / "m.hipdnn").stat().st_size < 2 * 64 * 64 * 4


def test_constants_that_differ_with_the_sizes_are_all_there() -> None:
    """A bias per position, folded at compile time: of another length and other numbers at each bucket."""
    proto = model(
        """g (float[s,4] x) => (float[s,4] y) <int64[1] zero = {0}, int64[2] column = {-1, 1}, int64 none = {0}, int64 one = {1}> {
        d = Shape<start=0, end=1>(x) p = Slice(table, zero, d, zero) q = Mul(p, p) y = Add(x, q) }""",
        table=floats(300, 4),
    )
    session = stored(proto, {"s": [2, 3, 7]}).session()
    for size in (1, 2, 3, 5, 7):
        check(reference(proto), session, {"x": floats(size, 4)})


def test_a_program_file_says_what_it_holds(tmp_path: Path) -> None:
    proto = model("g (float[b,8] x) => (float[b,4] y) { h = MatMul(x, w) y = Relu(h) }", w=floats(8, 4))
    program = stored(proto, {"b": [2, 4]})
    data = json.loads(program.text)
    assert data["format"] == FORMAT
    assert [made["sizes"] for made in data["specializations"]] == [[2], [4]]
    assert not data["constants"]
    assert not data["steps"]
    assert repr(program).count("2 combinations of buckets") == 1
    program.save(tmp_path / "m.hipdnn")
    session = hipdnn_mlir.load(tmp_path / "m.hipdnn")
    assert session.buckets == {"b": [2, 4]}
    assert [str(port) for port in session.inputs] == ["f32[b,8]"]
    check(reference(proto), session, {"x": floats(3, 8)})
    assert session.steps[0]["name"] == "MatMul_0+Relu_1"
    assert len(profile(session, {"x": floats(1, 8)}, warmup=0, repeat=1).steps) == len(session.steps)


def test_equal_executables_are_in_the_file_once() -> None:
    """What has no batch is the same at every bucket."""
    proto = model(
        "g (float[b,8] x, float[4,8] z) => (float[b,8] y, float[4,8] v) { y = Relu(x) t = Exp(z) v = Add(t, z) }"
    )
    data = json.loads(stored(proto, {"b": [2, 5]}).text)
    assert len(data["executables"]) == 3
    assert [len(made["executables"]) for made in data["specializations"]] == [2, 2]


def test_a_bucket_is_used_where_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    session = stored(model(RELU), {"b": [2, 4]}).session()
    monkeypatch.setattr("hipdnn_mlir_runtime.session.session.padded", None)
    out = np.empty((4, 3), np.float32)
    (got,) = session.run(None, {"x": floats(4, 3)}, out={"y": out})
    assert got is out
    np.testing.assert_array_equal(out, np.maximum(floats(4, 3), 0))


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (0, r"'x', dimension 0 \('b'\): 0 is below the buckets 2, 4"),
        (5, r"'x', dimension 0 \('b'\): 5 is above the buckets 2, 4; run it in parts"),
    ],
)
def test_a_size_outside_of_the_buckets_is_named(size: int, message: str) -> None:
    session = stored(model(ADD), {"b": [2, 4]}).session()
    with pytest.raises(ModelError, match=message):
        session.run(None, {"x": floats(size, 3), "z": floats(size, 3)})
    with pytest.raises(ModelError, match=message):
        session.prewarm([{"b": size}])


def test_every_dynamic_dimension_needs_buckets() -> None:
    proto = model("g (float[b,s,8] x) => (float[b,s,8] y) { y = Relu(x) }")
    with pytest.raises(
        ModelError, match=r"no buckets for 's': expected buckets for every dynamic dimension.*--shape s=1"
    ):
        stored(proto, {"b": [1, 2]})
    with pytest.raises(ModelError, match=r"no dynamic dimension named 'n'"):
        stored(proto, {"b": [1], "s": [1], "n": [1]})


def test_too_many_combinations_are_refused() -> None:
    proto = model("g (float[b,s,8] x) => (float[b,s,8] y) { y = Relu(x) }")
    with pytest.raises(
        ModelError, match=r"too many combinations of buckets: expected at most 64 .*got 72; list fewer sizes"
    ):
        stored(proto, {"b": list(range(1, 9)), "s": list(range(1, 10))})


def test_a_node_without_a_place_is_named_with_the_sizes_it_was_compiled_for() -> None:
    proto = model("g (float[b,3] x) => (float[b,3] y) { y = Det_2<k=1>(x) }")
    proto.graph.node[0].domain = "of.nobody"
    proto.opset_import.add(domain="of.nobody", version=1)
    with pytest.raises(UnsupportedError, match=r"this was for b=2"):
        stored(proto, {"b": [2]})


def test_all_buckets_are_loaded_ahead() -> None:
    session = stored(model(RELU), {"b": [2, 4, 8]}).session()
    session.prewarm()
    assert session.stats.specializations == 3
    session.run(None, {"x": floats(3, 3)})
    assert session.stats.specializations == 3
    few = stored(model(RELU), {"b": [2, 4, 8]}).session(max_specializations=2)
    with pytest.raises(
        ModelError, match="3 combinations of buckets, the session keeps 2; load it with max_specializations=3"
    ):
        few.prewarm()


def test_threads_with_different_sizes_run_at_once() -> None:
    proto = SAFE["perceptron"][0]
    session = stored(proto, {"b": BUCKETS}).session()
    want = reference(proto)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda size: check(want, session, {"x": floats(size, 8)}), [1 + i % 8 for i in range(40)]))


def test_queued_runs_between_buckets_are_padded_by_the_program() -> None:
    proto = model(
        "g (float[b,s,8] x, float[b,4] z) => (float[b,s,4] y, float[b,4] r) { y = MatMul(x, w) r = Relu(z) }",
        w=floats(8, 4),
    )
    session = stored(proto, {"b": [2, 4], "s": [3, 6]}).session()
    want = reference(proto)
    for b, s in itertools.product((1, 2, 3, 4), (1, 3, 5, 6)):
        feeds = {"x": floats(b, s, 8), "z": floats(b, 4)}
        out = {"y": np.empty((b, s, 4), np.float32), "r": np.empty((b, 4), np.float32)}
        session.enqueue(feeds, out, stream=0)
        for got, expected in zip(out.values(), want.run(None, feeds), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ModelError, match=r"'y': wrong array: expected f32\[1,5,4\], got f32\[2,6,4\]"):
        session.enqueue(
            {"x": floats(1, 5, 8), "z": floats(1, 4)},
            {"y": np.empty((2, 6, 4), np.float32), "r": np.empty((1, 4), np.float32)},
            stream=0,
        )


class OnDevice:
    """An array that says that a device has it, and whose memory the host port can read."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.shape = array.shape

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


def test_arrays_of_a_device_are_not_padded_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    session = stored(model(RELU), {"b": [4]}).session()
    monkeypatch.setattr("hipdnn_mlir_runtime.session.session.padded", None)
    (got,) = session.run(None, {"x": OnDevice(floats(3, 3))})
    np.testing.assert_array_equal(got, np.maximum(floats(3, 3), 0))
    assert [step["kind"] for step in session.steps] == ["copy", "copy", "execute", "copy"]


Change = Callable[[dict[str, Any]], Any]
BROKEN: dict[str, tuple[Change, str]] = {
    "a specialization is missing": (
        lambda d: d["specializations"].pop(),
        r"program.specializations: expected one for each of the 2",
    ),
    "one is there twice": (
        lambda d: d["specializations"].append(d["specializations"][0]),
        r"specializations\[2\].sizes: .*once",
    ),
    "one is for no bucket": (
        lambda d: d["specializations"][0].update(sizes=[3]),
        r"specializations\[0\].sizes: .*a bucket of each",
    ),
    "sizes of no symbol": (
        lambda d: d["specializations"][0].update(sizes=[2, 2]),
        r"specializations\[0\].sizes: .*a bucket of each",
    ),
    "no sizes": (lambda d: d["specializations"][0].pop("sizes"), r"specializations\[0\]"),
    "no buckets": (lambda d: d.pop("buckets"), r"program.specializations: expected buckets for every symbol"),
    "no executables": (
        lambda d: d["specializations"][0].pop("executables"),
        r"specializations\[0\].executables: missing",
    ),
    "no list": (lambda d: d.update(specializations=7), r"program.specializations"),
    "reasons for other sizes": (lambda d: d.update(exact=["", ""]), r"program.exact: expected a text for each symbol"),
    "a reason that is no text": (lambda d: d.update(exact=[1]), r"program.exact\[0\]"),
}
BROKEN_INSIDE: dict[str, tuple[Change, str]] = {
    "an executable that there is not": (lambda d: d["specializations"][0].update(executables=[9]), r"executables\[0\]"),
    "no steps": (lambda d: d["specializations"][0].update(steps=[]), r"no step writes it"),
    "a buffer that is too small": (lambda d: d["specializations"][0]["buffers"][0].update(bytes=4), r"specialization for b=2: "),
    "dims of another bucket": (
        lambda d: d["specializations"][0].update(inputs=d["specializations"][1]["inputs"]),
        r"specialization for b=2: ",
    ),
    "a tensor that there is not": (lambda d: d["specializations"][0]["constants"][0].update(tensor="v"), r"a stored tensor"),
}  # fmt: skip


def broken(change: Change) -> SimpleNamespace:
    proto = model("g (float[b,8] x) => (float[b,4] y) { y = MatMul(x, w) }", w=floats(8, 4))
    program = stored(proto, {"b": [2, 4]})
    data = json.loads(program.text)
    change(data)
    return SimpleNamespace(text=json.dumps(data), tensors=program.tensors)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused(name: str) -> None:
    change, message = BROKEN[name]
    with pytest.raises(ProgramError, match=message):
        hipdnn_mlir.load(broken(change))


@pytest.mark.parametrize("name", BROKEN_INSIDE)
def test_a_broken_specialization_is_refused_when_it_is_used(name: str) -> None:
    change, message = BROKEN_INSIDE[name]
    session = hipdnn_mlir.load(broken(change))
    with pytest.raises(ProgramError, match=message):
        session.run(None, {"x": floats(1, 8)})
    session.run(None, {"x": floats(3, 8)})


class Refusing:
    """Programs as `compile` makes them, on a library that refuses graphs with an epilogue."""

    def __init__(self, proto: onnx.ModelProto, buckets: Mapping[str, Sequence[int]]) -> None:
        self._proto, self._buckets = proto, buckets
        self.compiled: list[list[str]] = []

    def program(self, previous: Program | None = None, refused: Sequence[RefusedPlan] = ()) -> Program:
        self.compiled.append(sorted(plan.graph for plan in refused))
        made = stored(self._proto, self._buckets, previous=previous, refused=refused)
        made.compile_without = lambda more: self.program(made, [*refused, *more])
        return made


class RefusingSessions:
    """The runtime's sessions, of which some are refused."""

    make = _runtime.Sessions

    def __init__(self, device: Any, program: Any, capacity: int) -> None:
        self._made, self._rows = self.make(device, program, capacity), json.loads(program.text)

    def at_sizes(self, sizes: list[int]) -> Any:
        row = next(row for row in self._rows["specializations"] if row["sizes"] == sizes)
        graphs = [self._rows["executables"][index] for index in row["executables"]]
        refused = [(graph["name"], graph["summary"], "n", "no") for graph in graphs if "+" in graph["summary"]]
        if refused:
            raise PlanRefusedError(refused)
        return self._made.at_sizes(sizes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)


def test_what_the_library_refuses_at_one_bucket_is_compiled_again_for_that_bucket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proto = model("g (float[b,8] x) => (float[b,4] y) { h = MatMul(x, w) y = Relu(h) }", w=floats(8, 4))
    maker = Refusing(proto, {"b": [2, 4, 8]})
    monkeypatch.setattr(_runtime, "Sessions", RefusingSessions)
    program = maker.program()
    session = program.session()
    assert len(maker.compiled) == 1
    want = reference(proto)
    check(want, session, {"x": floats(3, 8)})
    assert [step["summary"] for step in session.steps] == ["matmul", "relu"]
    check(want, session, {"x": floats(4, 8)})
    assert [len(names) for names in maker.compiled] == [0, 1]
    check(want, session, {"x": floats(8, 8)})
    check(want, session, {"x": floats(3, 8)})
    assert [len(names) for names in maker.compiled] == [0, 1, 2]


def test_a_file_whose_graphs_are_refused_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    proto = model("g (float[b,8] x) => (float[b,4] y) { h = MatMul(x, w) y = Relu(h) }", w=floats(8, 4))
    stored(proto, {"b": [2, 4]}).save(tmp_path / "m.hipdnn")
    monkeypatch.setattr(_runtime, "Sessions", RefusingSessions)
    session = hipdnn_mlir.load(tmp_path / "m.hipdnn")
    with pytest.raises(PlanRefusedError, match=r"matmul \+ relu.*compile it on this machine"):
        session.run(None, {"x": floats(2, 8)})
