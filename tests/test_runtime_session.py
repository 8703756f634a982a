"""Sessions over programs written by hand: values, arrays taken as they are, errors, concurrent runs, profiles."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.helper
import onnxruntime as ort
import pytest

import hipdnn_mlir
from hipdnn_mlir_runtime import _runtime
from hipdnn_mlir_runtime.errors import USER_ERROR, DeviceError, ModelError, ProgramError, WrongTargetError
from hipdnn_mlir_runtime.session.session import Session, load
from runtime_programs import Array, Graph, ProgramText, argument, convolution, document, execute, relu_of_sum

SHAPE = (2, 3, 4, 5)


def random_array(shape: tuple[int, ...], seed: int = 0, dtype: Any = np.float32) -> Array:
    """Return standard normal values."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.fixture(scope="module")
def session() -> Session:
    """Program y = relu(a + b) on f32[2,3,4,5]."""
    return Session(relu_of_sum(SHAPE), threads=1)


@pytest.fixture
def feeds() -> dict[str, Array]:
    """Inputs of ``session``."""
    return {"a": random_array(SHAPE, 1), "b": random_array(SHAPE, 2)}


def expected(feeds: dict[str, Array]) -> Array:
    """Return relu(a + b) by NumPy."""
    return np.maximum(feeds["a"] + feeds["b"], 0)


def ort_convolution(weights: Array, x: Array) -> Array:
    """Return conv(relu(x), w) with padding 1 by ONNX Runtime."""
    helper = onnx.helper
    graph = helper.make_graph(
        [
            helper.make_node("Relu", ["x"], ["r"]),
            helper.make_node("Conv", ["r", "w"], ["y"], pads=[1, 1, 1, 1]),
        ],
        "reference",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(reference.run(None, {"x": x})[0])


def test_values_equal_numpy_when_pointwise(session: Session, feeds: dict[str, Array]) -> None:
    (y,) = session.run(None, feeds)
    np.testing.assert_array_equal(y, expected(feeds))
    assert y.dtype == np.float32


def test_values_equal_ort_when_convolution_has_constant_weights(tmp_path: Path) -> None:
    weights, x = random_array((16, 8, 3, 3), 3), random_array((1, 8, 8, 8), 4)
    program = convolution(weights)
    want = ort_convolution(weights, x)
    for source in (program, program.save(tmp_path / "conv.hipdnn"), str(tmp_path / "conv.hipdnn")):
        (got,) = load(source, threads=2).run(None, {"x": x})
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("dtype", "numpy_dtype"),
    [("f32", np.float32), ("f64", np.float64), ("f16", np.float16), ("bf16", ml_dtypes.bfloat16)],
)
def test_values_equal_numpy_when_dtype_varies(dtype: str, numpy_dtype: Any) -> None:
    # Multiples of 1/8: sums are exact in every type.
    a, b = (np.random.default_rng(s).integers(-16, 16, (4, 6)).astype(np.float64) / 8 for s in (1, 2))
    (y,) = Session(relu_of_sum((4, 6), dtype)).run(None, {"a": a.astype(numpy_dtype), "b": b.astype(numpy_dtype)})
    assert y.dtype == np.dtype(numpy_dtype)
    np.testing.assert_array_equal(y.astype(np.float64), np.maximum(a + b, 0))


def test_bool_output_when_comparing() -> None:
    graph = Graph("less")
    a, b = (graph.tensor("i32", (3, 4), "in") for _ in range(2))
    y = graph.tensor("bool", (3, 4), "out")
    graph.pointwise("CMP_LT", [a, b], y)
    program = ProgramText(
        document(
            [graph.to_json()],
            [argument("a", "i32", (3, 4), 0), argument("b", "i32", (3, 4), 1)],
            [argument("y", "bool", (3, 4), 2)],
            [],
            [("input", 48), ("input", 48), ("output", 12)],
            [execute(0, "less", 0, 1, 2)],
        )
    )
    left, right = (np.random.default_rng(s).integers(-5, 5, (3, 4)).astype(np.int32) for s in (1, 2))
    (got,) = Session(program).run(None, {"a": left, "b": right})
    assert got.dtype == np.bool_
    np.testing.assert_array_equal(got, left < right)


def test_copied_when_input_is_not_dense(session: Session, feeds: dict[str, Array]) -> None:
    strided = np.zeros((*SHAPE[:-1], 2 * SHAPE[-1]), np.float32)[..., ::2]
    strided[...] = feeds["a"]
    offset = np.zeros(feeds["b"].size + 1, np.float32)[1:].reshape(SHAPE)
    offset[...] = feeds["b"]
    (y,) = session.run(None, {"a": strided, "b": offset})
    np.testing.assert_array_equal(y, expected(feeds))


class Exported:
    """An array known only through DLPack."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def test_values_equal_numpy_when_input_is_dlpack(session: Session, feeds: dict[str, Array]) -> None:
    (y,) = session.run(None, {name: Exported(array) for name, array in feeds.items()})
    np.testing.assert_array_equal(y, expected(feeds))


def test_read_in_place_when_input_is_read_only(session: Session, feeds: dict[str, Array]) -> None:
    for array in feeds.values():
        array.flags.writeable = False
    (y,) = session.run(None, feeds)
    np.testing.assert_array_equal(y, expected(feeds))


def test_earlier_outputs_keep_their_values_when_run_again(session: Session, feeds: dict[str, Array]) -> None:
    results = []
    for i in range(10):
        feeds["a"] = random_array(SHAPE, 100 + i)
        results.append((session.run(None, feeds)[0], expected(feeds)))
    for got, want in results:
        np.testing.assert_array_equal(got, want)


def test_output_outlives_session_when_session_is_dropped(feeds: dict[str, Array]) -> None:
    session = Session(relu_of_sum(SHAPE))
    (y,) = session.run(None, feeds)
    del session
    np.testing.assert_array_equal(y, expected(feeds))


def test_constants_outlive_their_dict_when_program_is_in_memory() -> None:
    weights, x = random_array((16, 8, 3, 3), 3), random_array((1, 8, 8, 8), 4)
    want = ort_convolution(weights, x)
    program = convolution(weights)
    session = Session(program)
    del program, weights
    np.testing.assert_allclose(session.run(None, {"x": x})[0], want, rtol=1e-4, atol=1e-4)


def test_constants_are_read_anew_when_others_lay_at_their_address_before() -> None:
    kept = Session(convolution(random_array((16, 8, 3, 3), 1)))  # its packed weights lie beside the others'
    weights, x = random_array((16, 8, 3, 3), 3), random_array((1, 8, 8, 8), 4)
    program = convolution(weights)
    Session(program).run(None, {"x": x})
    weights *= -2
    np.testing.assert_allclose(
        Session(program).run(None, {"x": x})[0], ort_convolution(weights, x), rtol=1e-4, atol=1e-4
    )
    del kept


def test_written_in_place_when_out_is_given(session: Session, feeds: dict[str, Array]) -> None:
    out = np.full(SHAPE, np.nan, np.float32)
    (y,) = session.run(["y"], feeds, out={"y": out})
    assert y is out
    np.testing.assert_array_equal(out, expected(feeds))


@pytest.mark.parametrize(
    "out",
    [
        np.zeros(SHAPE, np.float64),
        np.zeros(SHAPE[1:], np.float32),
        np.zeros((*SHAPE[:-1], 10), np.float32)[..., ::2],
        np.broadcast_to(np.float32(0), SHAPE),
    ],
    ids=["dtype", "shape", "strided", "read-only"],
)
def test_refused_when_out_does_not_fit(session: Session, feeds: dict[str, Array], out: Array) -> None:
    with pytest.raises(ModelError, match="'y'"):
        session.run(None, feeds, out={"y": out})


@pytest.mark.parametrize("stream", [None, 0])
def test_bound_run_reads_and_writes_the_arrays_it_was_given(
    session: Session, feeds: dict[str, Array], stream: int | None
) -> None:
    held = {name: array.copy() for name, array in feeds.items()}
    out = np.full(SHAPE, np.nan, np.float32)
    run = session.bind(held, {"y": out}, stream=stream)
    for scale in (1.0, -2.0):
        for name, array in held.items():
            array[...] = scale * feeds[name]
        run()
        np.testing.assert_array_equal(out, expected(held))


@pytest.mark.parametrize("stream", [None, 0])
def test_bound_run_does_not_look_at_arrays_again(session: Session, feeds: dict[str, Array], stream: int | None) -> None:
    class Asked:
        def __init__(self, array: Array) -> None:
            self.array, self.times = array, 0

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

        def __dlpack__(self, **how: Any) -> Any:
            self.times += 1
            return self.array.__dlpack__(**how)

    held = {name: Asked(array) for name, array in feeds.items()}
    out = np.full(SHAPE, np.nan, np.float32)
    run = session.bind(held, {"y": out}, stream=stream)
    known = [one.times for one in held.values()]
    run()
    run()
    np.testing.assert_array_equal(out, expected(feeds))
    assert [one.times for one in held.values()] == known
    assert all(known)


@pytest.mark.parametrize("stream", [None, 0])
def test_bound_run_keeps_its_session_and_arrays(feeds: dict[str, Array], stream: int | None) -> None:
    def bound() -> tuple[Callable[[], None], Array]:
        out = np.full(SHAPE, np.nan, np.float32)
        copies = {name: array.copy() for name, array in feeds.items()}
        return Session(relu_of_sum(SHAPE)).bind(copies, {"y": out}, stream=stream), out

    runs = [bound() for _ in range(20)]
    gc.collect()
    for run, out in runs:
        run()
        np.testing.assert_array_equal(out, expected(feeds))


def test_refused_when_an_array_to_bind_is_missing_or_does_not_fit(session: Session, feeds: dict[str, Array]) -> None:
    with pytest.raises(ModelError, match="no array for the outputs"):
        session.bind(feeds, {}, stream=0)
    with pytest.raises(ModelError, match="'y': wrong array"):
        session.bind(feeds, {"y": np.empty((1, 1), np.float32)}, stream=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": None}, "missing input 'a': expected 'a', 'b'"),
        ({"z": 1}, "no input 'z': expected 'a', 'b'"),
        ({"a": np.zeros(SHAPE)}, r"'a': wrong array: expected f32\[2,3,4,5\], got f64\[2,3,4,5\]"),
        ({"a": np.zeros((2, 3), np.float32)}, r"'a': wrong array: expected f32\[2,3,4,5\], got f32\[2,3\]"),
        ({"a": np.zeros(SHAPE, ">f4")}, "'a': wrong array"),
        ({"a": "text"}, "'a': not an array: .* got str"),
        ({"a": Exported(np.zeros(SHAPE))}, r"'a': expected f32\[2,3,4,5\], got f64"),
    ],
)
def test_refused_when_input_does_not_fit(
    session: Session, feeds: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    given = {name: value for name, value in {**feeds, **change}.items() if value is not None}
    with pytest.raises(ModelError, match=message) as caught:
        session.run(None, given)
    assert "\n" not in str(caught.value)


def test_refused_when_output_name_is_unknown(session: Session, feeds: dict[str, Array]) -> None:
    with pytest.raises(ModelError, match="no output 'z': expected 'y'"):
        session.run(["z"], feeds)


def test_ports_described_when_loaded(session: Session) -> None:
    assert [(p.name, p.dtype, p.shape) for p in session.inputs] == [("a", "f32", SHAPE), ("b", "f32", SHAPE)]
    assert [str(p) for p in session.outputs] == ["f32[2,3,4,5]"]


def test_stats_count_what_the_program_holds() -> None:
    weights = random_array((16, 8, 3, 3))
    stats = Session(convolution(weights)).stats
    assert (stats.steps, stats.copy_steps, stats.executables, stats.plans) == (2, 0, 2, 2)
    assert stats.constant_bytes == weights.nbytes
    assert stats.arena_bytes >= stats.largest_live_bytes >= 8 * 8 * 8 * 4


def test_same_results_when_threads_share_a_session() -> None:
    weights = random_array((16, 8, 3, 3), 3)
    session = Session(convolution(weights), threads=1)
    inputs = [random_array((1, 8, 8, 8), seed) for seed in range(4)]
    want = [session.run(None, {"x": x})[0] for x in inputs]
    wrong: list[int] = []

    def work(index: int) -> None:
        for _ in range(50):
            (got,) = session.run(None, {"x": inputs[index]})
            wrong.extend([] if np.array_equal(got, want[index]) else [index])

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert 1 <= session.stats.contexts <= 4


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (None, "cannot open: No such file"),
        (b"", "the file is empty"),
        (b"PK\x03\x04 some other format entirely", "not a .hipdnn file"),
        (b"\x02\0\0\0\0\0\0\0{}", "hipdnn_program: missing"),
    ],
)
def test_refused_when_file_is_no_program(tmp_path: Path, contents: bytes | None, message: str) -> None:
    path = tmp_path / "broken.hipdnn"
    if contents is not None:
        path.write_bytes(contents)
    with pytest.raises(ProgramError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_never_other_results_when_file_is_altered(tmp_path: Path, small_model: Path) -> None:
    path = tmp_path / "small.hipdnn"
    hipdnn_mlir.compile(small_model).save(path)
    good = path.read_bytes()
    session = load(path)
    feeds = {port.name: random_array(port.shape) for port in session.inputs}
    want = session.run(None, feeds)
    header_bytes = 8 + int.from_bytes(good[:8], "little")
    refused = harmless = 0
    # Every part of the file: header length, header, program, weights.
    for place in [*range(0, header_bytes, 211), *range(header_bytes, len(good), len(good) // 20)]:
        path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        try:
            got = load(path).run(None, feeds)
        except ProgramError:
            refused += 1
        else:
            # Names of fillers and of the checksum's own entry say nothing about the program.
            harmless += 1
            np.testing.assert_array_equal(got, want)
    assert refused > 20 * harmless


def test_refused_when_format_is_newer() -> None:
    program = relu_of_sum(SHAPE)
    program.document["format"] = _runtime.PROGRAM_FORMAT + 1
    with pytest.raises(
        ProgramError, match=f"format: expected {_runtime.PROGRAM_FORMAT}, .*got {_runtime.PROGRAM_FORMAT + 1}"
    ):
        Session(program)


def test_refused_when_program_is_for_another_target() -> None:
    program = relu_of_sum(SHAPE)
    program.document["target"] = "elsewhere"
    with pytest.raises(WrongTargetError, match="compiled for 'elsewhere', port 'host' runs 'host'") as raised:
        Session(program, port="host")
    # Whoever looks for what is wrong with the program, or with the device, finds it.
    assert isinstance(raised.value, ProgramError)
    assert isinstance(raised.value, DeviceError)
    assert raised.value.exit_code == USER_ERROR
    with pytest.raises(ProgramError, match=r"no port runs target 'elsewhere': known are 'host', 'gfx\*', 'sm_\*'"):
        Session(program)


def test_refused_when_port_is_unknown() -> None:
    with pytest.raises(DeviceError, match="port 'vulkan' is unknown: expected one of 'host', 'hip'"):
        Session(relu_of_sum(SHAPE), port="vulkan")


def test_weights_that_are_packed_stay_in_memory_once(tmp_path: Path) -> None:
    """Pages of the file that were copied count as the process's no longer. Loading has read them all: for the checksum, and to pack."""
    weights = [onnx.numpy_helper.from_array(random_array((512, 512), seed), f"w{seed}") for seed in range(8)]
    names = ["x", *(f"y{i}" for i in range(8))]
    nodes = [onnx.helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(8)]
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4, 512]) for name in ("x", "y7")]
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], weights))
    path = tmp_path / "m.hipdnn"
    hipdnn_mlir.compile(model).save(path)
    x = random_array((4, 512), 9)
    with load(path) as session:
        for _ in range(2):  # they are read from the file where they are needed
            (got,) = session.run(None, {"x": x})
        blocks = Path("/proc/self/smaps").read_text().split("VmFlags:")
        resident_kb = [
            int(line.split()[1]) for b in blocks if str(path) in b for line in b.splitlines() if line[:4] == "Rss:"
        ]
    (want,) = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())
    assert resident_kb
    assert sum(resident_kb) << 10 < path.stat().st_size / 4
