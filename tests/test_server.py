"""The compiler as a service: framing, descriptors, errors, order, and calls from many threads of one process."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper, parser

import hipdnn_mlir
import models
import untaken
from containers import memory_file, read_file, write_container
from hipdnn_mlir.placement import place
from hipdnn_mlir.service import server
from hipdnn_mlir.service.perform import Compiler

Reply = dict[str, Any]
COMPILER = import_module("hipdnn_mlir.compiler.lower")
PLACE = {"action": "place", "target": "host", "placement": "profitable"}
COMPILE = {"action": "compile", "target": "host", "name": "part"}


class Client:
    """A host's end of the connection to a server in a process of its own."""

    def __init__(self) -> None:
        self.connection, theirs = socket.socketpair()
        command = [sys.executable, "-P", "-m", "hipdnn_mlir.service.server", str(theirs.fileno())]
        self.process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        theirs.close()
        self.connection.settimeout(120)

    def send(self, message: bytes, descriptors: Sequence[int] = ()) -> None:
        data = struct.pack("<I", len(message)) + message
        sent = socket.send_fds(self.connection, [data], list(descriptors))
        self.connection.sendall(data[sent:])

    def receive(self) -> Reply:
        (length,) = struct.unpack("<I", self._read(4))
        reply: Reply = json.loads(self._read(length))
        return reply

    def ask(self, request: Reply, *descriptors: int) -> Reply:
        self.send(json.dumps(request).encode(), descriptors)
        return self.receive()

    def close(self) -> tuple[int, bytes, bytes]:
        """Close the connection and return the server's status and what it printed."""
        self.connection.close()
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.connection.recv(count - len(data))
            assert part, "the server has closed the connection"
            data += part
        return data


@pytest.fixture
def client() -> Iterator[Client]:
    made = Client()
    yield made
    made.process.kill()
    made.connection.close()
    made.process.communicate()


@pytest.fixture
def descriptor() -> Iterator[Callable[[int], int]]:
    """Return a function that has a descriptor closed at the end of the test."""
    opened: list[int] = []

    def keep(number: int) -> int:
        opened.append(number)
        return number

    yield keep
    for number in opened:
        os.close(number)


def mlp(k: int = 64, *, twist: bool = False) -> onnx.ModelProto:
    """Two products with weights outside the model, the last node taken by no engine where asked for."""
    last = "Untaken" if twist else "Tanh"
    text = f"""<ir_version: 8, opset_import: ["" : 21, {untaken.OPSET_TEXT}]>
        g (float[3,{k}] x) => (float[3,{k}] y) {{ a = MatMul(x, w) b = Relu(a) c = MatMul(b, v) y = {last}(c) }}"""
    made = parser.parse_model(untaken.in_text(text))
    rng = np.random.default_rng(k)
    for name in "wv":
        made.graph.initializer.append(numpy_helper.from_array(rng.standard_normal((k, k), np.float32) / 8, name))
    for node in made.graph.node:
        node.name = f"n_{node.output[0]}"
    return onnx.shape_inference.infer_shapes(made)


def answer(request: Reply, *descriptors: int) -> Reply:
    reply: Reply = json.loads(server.answer(json.dumps(request).encode(), list(descriptors)))
    return reply


def assert_runs_as(model: onnx.ModelProto, program: int, feeds: dict[str, np.ndarray]) -> None:
    session = hipdnn_mlir.load(f"/proc/self/fd/{program}")
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for got, want in zip(session.run(None, feeds), reference.run(None, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def x_for(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    dims = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    return {"x": np.random.default_rng(1).standard_normal(dims, np.float32)}


def fail(*_: object, **__: object) -> None:
    raise ZeroDivisionError("by accident")


def test_hello_names_versions_and_targets_before_the_compiler_is_loaded(client: Client) -> None:
    result = client.ask({"action": "hello"})["result"]
    assert result["targets"] == [
        "host",
        "sm_80",
        "sm_90",
        "gfx90a",
        "gfx942",
        "gfx950",
        "gfx1100",
        "gfx1151",
        "gfx1201",
        "gfx1250",
    ]
    assert set(result["producers"]) == {"hipdnn_mlir", "torch_mlir", "onnx"}
    assert result["version"] == result["producers"]["hipdnn_mlir"]
    maps = Path(f"/proc/{client.process.pid}/maps").read_text()
    assert "torch_mlir" not in maps


def test_placement_and_program_come_over_the_socket(client: Client, descriptor: Callable[[int], int]) -> None:
    model = mlp(twist=True)
    placed = client.ask(PLACE, descriptor(write_container(model, weights=False)))["result"]
    assert placed["partitions"] == [{"nodes": ["n_a", "n_b", "n_c"], "dynamic": False}]
    assert [(reject["node"], reject["rule"]) for reject in placed["rejects"]] == [("n_y", "no-row")]
    assert (placed["dropped"], placed["graphs"], placed["nodes"]) == ([], 2, 4)
    part = onnx.ModelProto()
    part.CopyFrom(model)
    del part.graph.node[3:], part.graph.output[:]
    part.graph.output.append(next(value for value in part.graph.value_info if value.name == "c"))
    output = descriptor(memory_file(b"old content " * 100_000))
    compiled = client.ask(COMPILE, descriptor(write_container(part)), output)["result"]
    assert compiled == {"bytes": os.fstat(output).st_size, "steps": 2, "copies": 0}
    assert_runs_as(part, output, x_for(part))
    assert client.close() == (0, b"", b"")


def test_requests_are_answered_in_order_when_sent_at_once(client: Client, descriptor: Callable[[int], int]) -> None:
    for k in (64, 48, 32):
        client.send(json.dumps(PLACE).encode(), [descriptor(write_container(mlp(k), weights=False))])
        client.send(b'{"action": "hello"}')
    for _ in range(3):
        assert client.receive()["result"]["nodes"] == 4
        assert "targets" in client.receive()["result"]


def test_message_is_read_whole_when_it_comes_in_pieces(client: Client, descriptor: Callable[[int], int]) -> None:
    message = json.dumps(PLACE).encode()
    data = struct.pack("<I", len(message)) + message
    model = descriptor(write_container(mlp(), weights=False))
    socket.send_fds(client.connection, [data[:2]], [model])
    for piece in (data[2:5], data[5:9], data[9:]):
        time.sleep(0.05)
        client.connection.sendall(piece)
    assert client.receive()["result"]["nodes"] == 4


def test_server_keeps_no_descriptor_after_a_request(client: Client, descriptor: Callable[[int], int]) -> None:
    folder = Path(f"/proc/{client.process.pid}/fd")
    model, output = descriptor(write_container(mlp())), descriptor(memory_file())
    broken = descriptor(memory_file(b"broken"))
    client.ask(PLACE, model)
    client.ask(COMPILE, model, output)
    before = len(list(folder.iterdir()))
    for _ in range(3):
        client.ask(COMPILE, model, output)
        client.ask(PLACE, broken)
        client.ask(COMPILE, broken, broken, broken)
    assert len(list(folder.iterdir())) == before


def test_server_ends_quietly_when_the_host_is_gone(client: Client) -> None:
    assert client.close() == (0, b"", b"")


def test_server_ends_quietly_when_the_host_goes_in_the_middle_of_a_message(client: Client) -> None:
    client.connection.sendall(struct.pack("<I", 1000) + b'{"action"')
    assert client.close() == (0, b"", b"")


def test_server_survives_an_interrupt_meant_for_the_host(client: Client) -> None:
    client.ask({"action": "hello"})
    client.process.send_signal(signal.SIGINT)
    assert "result" in client.ask({"action": "hello"})
    assert client.close() == (0, b"", b"")


@pytest.mark.parametrize(
    "message",
    [
        b"not JSON",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b'{"action": "fly"}',
        b'{"action": "hello", "colour": 1}',
        b'{"action": "place", "target": "host"}',
        b"",
    ],
)
def test_broken_request_is_a_defect_of_the_host_and_the_server_lives_on(client: Client, message: bytes) -> None:
    client.send(message)
    error = client.receive()["error"]
    assert error["kind"] == "defect"
    assert "\n" not in error["message"]
    assert "result" in client.ask({"action": "hello"})


def proto_of(model: onnx.ModelProto) -> bytes:
    return model.SerializeToString()


def with_external(**entries: str) -> bytes:
    """A container whose one weight has the given external data entries, with 1,024 bytes of weights."""
    model = mlp(16)
    del model.graph.initializer[1:]
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    proto = proto_of(model)
    head = struct.pack("<Q", len(proto)) + proto
    return head + b"\0" * (-len(head) % 64) + b"\0" * 1024


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "truncated"),
        (b"1234567", "truncated"),
        (struct.pack("<Q", 0), "truncated"),
        (struct.pack("<Q", 100) + b"x" * 99, "truncated: 107 bytes for a model of 100"),
        (struct.pack("<Q", 2**63) + b"x" * 99, "truncated"),
        (struct.pack("<Q", 9) + b"not onnx!", "not a complete ONNX model"),
        (with_external(location="weights", offset="0", length="1020"), "1020 bytes for dims"),
        (with_external(location="weights", offset="64", length="1024"), "outside the weights"),
        (with_external(location="weights", offset="8", length="1024"), "outside the weights or not aligned"),
        (with_external(location="/etc/passwd", offset="0", length="1024"), "expected location 'weights'"),
        (with_external(location="weights", offset="-64", length="1024"), "expected location 'weights'"),
        (with_external(location="weights"), "expected location 'weights'"),
    ],
)
def test_broken_model_is_a_model_error(content: bytes, message: str, descriptor: Callable[[int], int]) -> None:
    error = answer(COMPILE, descriptor(memory_file(content)), descriptor(memory_file()))["error"]
    assert error["kind"] == "ModelError"
    assert message in error["message"]
    assert "\n" not in error["message"]


def test_unsupported_node_is_an_error_that_names_it(descriptor: Callable[[int], int]) -> None:
    error = answer(COMPILE, descriptor(write_container(mlp(twist=True))), descriptor(memory_file()))["error"]
    assert error["kind"] == "UnsupportedError"
    assert f"{untaken.OP} at 'n_y'" in error["message"]


def test_unknown_target_and_placement_list_the_known_ones(descriptor: Callable[[int], int]) -> None:
    model = descriptor(write_container(mlp(), weights=False))
    assert "expected one of host" in answer({**PLACE, "target": "moon"}, model)["error"]["message"]
    assert "expected one of profitable, maximal" in answer({**PLACE, "placement": "all"}, model)["error"]["message"]


def test_output_that_cannot_be_written_is_an_error_and_the_next_one_works(descriptor: Callable[[int], int]) -> None:
    model = descriptor(write_container(mlp()))
    unwritable = descriptor(os.open("/dev/full", os.O_WRONLY))
    error = answer(COMPILE, model, unwritable)["error"]
    assert "\n" not in error["message"]
    output = descriptor(memory_file())
    assert "result" in answer(COMPILE, model, output)
    assert_runs_as(mlp(), output, x_for(mlp()))


def test_stray_exception_leaves_a_reproducer_with_model_and_weights(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, descriptor: Callable[[int], int]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    model = mlp()
    with monkeypatch.context() as patch:
        patch.setattr(COMPILER, "lower", fail)
        request = {**COMPILE, "shapes": {"x": [2, 64]}}
        error = answer(request, descriptor(write_container(model)), descriptor(memory_file()))["error"]
    assert error["kind"] == "defect"
    assert "ZeroDivisionError: by accident" in error["message"]
    assert "Traceback" in error["detail"]
    folder = Path(error["fields"]["reproducer"])
    command = (folder / "command.txt").read_text()
    assert command == "hipdnn-mlir compile model.onnx --in-process --target host --shape x=2x64 -o out.hipdnn\n"
    saved = onnx.load(folder / "model.onnx")
    for got, want in zip(saved.graph.initializer, model.graph.initializer, strict=True):
        np.testing.assert_array_equal(numpy_helper.to_array(got), numpy_helper.to_array(want))


def test_defect_is_told_when_its_reproducer_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, descriptor: Callable[[int], int]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    monkeypatch.setattr(COMPILER, "lower", fail)
    error = answer(COMPILE, descriptor(write_container(mlp(72))), descriptor(memory_file()))["error"]
    assert error["kind"] == "defect"
    assert "ZeroDivisionError: by accident" in error["message"]
    assert error["fields"]["reproducer"] is None


def test_descriptors_stay_open_when_answered_in_process(descriptor: Callable[[int], int]) -> None:
    model, output = descriptor(write_container(mlp())), descriptor(memory_file())
    answer(PLACE, model)
    answer(COMPILE, model, output)
    os.fstat(model)
    os.fstat(output)


def test_shapes_and_name_reach_the_program(descriptor: Callable[[int], int]) -> None:
    text = '<ir_version: 8, opset_import: ["" : 21]> g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }'
    model = parser.parse_model(text)
    output = descriptor(memory_file())
    request = {**COMPILE, "name": "net", "shapes": {"x": [7, 3]}}
    answer(request, descriptor(write_container(model)), output)
    assert hipdnn_mlir.load(f"/proc/self/fd/{output}").inputs[0].shape == (7, 3)
    header = read_file(output)
    program = json.loads(
        json.loads(header[8 : 8 + struct.unpack("<Q", header[:8])[0]])["__metadata__"]["hipdnn_program"]
    )
    assert program["model"]["name"] == "net"


def test_buckets_make_a_program_for_each_on_a_gpu_and_none_on_the_host(descriptor: Callable[[int], int]) -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install '.[gpu]'")
    model = mlp()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "n"
    del model.graph.value_info[:]
    buckets = {"n": [2, 8], "of nothing here": [3]}
    for target, count in (("sm_90", 2), ("host", 0)):
        program = descriptor(memory_file())
        request = {**COMPILE, "target": target, "name": "net", "buckets": buckets}
        reply = answer(request, descriptor(write_container(model)), program)
        assert reply["result"]["steps"] > 0
        content = read_file(program)
        (length,) = struct.unpack("<Q", content[:8])
        made = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["hipdnn_program"])
        assert made["model"]["name"] == "net"
        assert len(made.get("specializations", [])) == count


def test_ir_is_dumped_where_asked(tmp_path: Path, descriptor: Callable[[int], int]) -> None:
    model, output = descriptor(write_container(mlp())), descriptor(memory_file())
    answer(PLACE, model)
    answer({**COMPILE, "dump_ir": str(tmp_path / "ir")}, model, output)
    assert any(path.name.endswith("-offload.mlir") for path in (tmp_path / "ir").iterdir())


def test_program_is_the_same_when_its_placement_is_remembered(
    monkeypatch: pytest.MonkeyPatch, descriptor: Callable[[int], int]
) -> None:
    model = mlp(80)
    fresh, remembered = descriptor(memory_file()), descriptor(memory_file())
    monkeypatch.setattr(server, "_COMPILER", Compiler())
    answer(COMPILE, descriptor(write_container(model)), fresh)
    answer(PLACE, descriptor(write_container(model, weights=False)))
    with monkeypatch.context() as patch:
        patch.setattr(COMPILER, "lower", fail)
        reply = answer(COMPILE, descriptor(write_container(model)), remembered)
    assert "result" in reply
    assert read_file(fresh) == read_file(remembered)
    assert_runs_as(model, remembered, x_for(model))


def test_remembered_program_takes_the_weights_and_the_order_of_names_that_come_later(
    monkeypatch: pytest.MonkeyPatch, descriptor: Callable[[int], int]
) -> None:
    text = """<ir_version: 8, opset_import: ["" : 21]>
        g (float[3,32] x, float[3,32] z) => (float[3,32] y, float[3,32] u) { a = MatMul(x, w) y = Add(a, z) u = Tanh(a) }"""
    model = onnx.shape_inference.infer_shapes(parser.parse_model(text))
    for node in model.graph.node:
        node.name = f"n_{node.output[0]}"
    weight = np.random.default_rng(2).standard_normal((32, 32), np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    monkeypatch.setattr(server, "_COMPILER", Compiler())
    answer(PLACE, descriptor(write_container(model, weights=False)))
    later = onnx.ModelProto()
    later.CopyFrom(model)
    for values in (later.graph.input, later.graph.output):
        ordered = list(reversed(values))
        del values[:]
        values.extend(ordered)
    later.graph.initializer[0].CopyFrom(numpy_helper.from_array(weight[::-1].copy(), "w"))
    output = descriptor(memory_file())
    with monkeypatch.context() as patch:
        patch.setattr(COMPILER, "lower", fail)
        answer(COMPILE, descriptor(write_container(later)), output)
    session = hipdnn_mlir.load(f"/proc/self/fd/{output}")
    assert [port.name for port in session.inputs] == ["z", "x"]
    assert [port.name for port in session.outputs] == ["u", "y"]
    rng = np.random.default_rng(3)
    assert_runs_as(later, output, {name: rng.standard_normal((3, 32), np.float32) for name in "xz"})


def test_calls_from_many_threads_are_answered_each_with_its_own_result() -> None:
    def work(k: int) -> None:
        model = mlp(k)
        descriptors = [write_container(model), memory_file()]
        try:
            placed = answer(PLACE, descriptors[0])["result"]
            assert placed["partitions"][0]["nodes"] == ["n_a", "n_b", "n_c", "n_y"]
            assert answer(COMPILE, *descriptors)["result"]["steps"] == 2
            assert_runs_as(model, descriptors[1], x_for(model))
        finally:
            for number in descriptors:
                os.close(number)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, 16 + 8 * (index % 5)) for index in range(12)]:
            done.result()


def test_placement_over_the_socket_equals_the_one_in_python(descriptor: Callable[[int], int]) -> None:
    model = models.encoder(1, 1, 7, 24, 3, 40)
    here = place(model)
    there = answer(PLACE, descriptor(write_container(model, weights=False)))["result"]
    assert [part["nodes"] for part in there["partitions"]] == [part.nodes for part in here.partitions]
    assert (there["graphs"], there["nodes"]) == (here.graphs, here.nodes)


def test_bfloat16_weights_travel_outside_the_model(descriptor: Callable[[int], int]) -> None:
    x = helper.make_tensor_value_info("x", onnx.TensorProto.BFLOAT16, [4, 64])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.BFLOAT16, [4, 64])
    weight = helper.make_tensor("w", onnx.TensorProto.BFLOAT16, [16, 64], np.linspace(-1, 1, 1024))
    ends = [numpy_helper.from_array(np.array([number]), name) for name, number in (("begin", 0), ("end", 4))]
    nodes = [helper.make_node("Slice", ["w", "begin", "end"], ["v"]), helper.make_node("Add", ["x", "v"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], [weight, *ends])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    output = descriptor(memory_file())
    assert "result" in answer(COMPILE, descriptor(write_container(model)), output)
    (got,) = hipdnn_mlir.load(f"/proc/self/fd/{output}").run(
        None, {"x": np.zeros((4, 64), numpy_helper.to_array(weight).dtype)}
    )
    np.testing.assert_array_equal(got, numpy_helper.to_array(weight)[:4])
