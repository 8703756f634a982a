"""``hipdnn-mlir serve`` and the clients of another implementation of the protocol; what they get against ONNX Runtime."""

from __future__ import annotations

import gzip
import json
import os
import signal
import ssl
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.grpc import service_pb2
from tritonclient.utils import InferenceServerException

from conftest import Command
from hipdnn_mlir.serving.messages import METHODS, message
from serving.digits import TOLERANCE, Images, compiled, digits_of
from serving.running import Running, free_port, serving

pytestmark = pytest.mark.slow
LIMIT_MB = 1
INFER = "/v2/models/digits/infer"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    (folder / "digits/1").mkdir(parents=True)
    compiled([1, 8, 32]).save(folder / "digits/1/model.hipdnn")
    return folder


@pytest.fixture(scope="module")
def server(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    options = ("--replicas", 2, "--threads", 1, "--max-body-mb", LIMIT_MB, "--request-timeout", 30)
    with serving(tmp_path_factory.mktemp("server"), repository, *options) as running:
        yield running


@pytest.fixture(scope="module")
def images() -> Images:
    return np.random.default_rng(0).uniform(0, 1, (7, 1, 8, 8)).astype(np.float32)


def over_http(server: Running, images: Images, *, binary: bool = True) -> Any:
    with tritonclient.http.InferenceServerClient(server.http) as client:
        given = tritonclient.http.InferInput("image", images.shape, "FP32")
        given.set_data_from_numpy(images, binary_data=binary)
        wanted = tritonclient.http.InferRequestedOutput("probabilities", binary_data=binary)
        return client.infer("digits", [given], outputs=[wanted], request_id="own").as_numpy("probabilities")


def over_grpc(server: Running, images: Images) -> Any:
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        given = tritonclient.grpc.InferInput("image", images.shape, "FP32")
        given.set_data_from_numpy(images)
        return client.infer("digits", [given], request_id="own").as_numpy("probabilities")


def over_json(server: Running, images: Images) -> Any:
    return over_http(server, images, binary=False)


def posted(server: Running, path: str, body: bytes, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    connection = HTTPConnection(server.http, timeout=60)
    connection.request("POST", path, body, headers or {})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


@pytest.mark.parametrize("infer", [over_http, over_json, over_grpc])
def test_outputs_equal_those_of_onnx_runtime(infer: Callable[..., Any], server: Running, images: Images) -> None:
    np.testing.assert_allclose(infer(server, images), digits_of(images), **TOLERANCE)


def test_both_protocols_tell_of_server_and_model(server: Running) -> None:
    with (
        tritonclient.http.InferenceServerClient(server.http) as http,
        tritonclient.grpc.InferenceServerClient(server.grpc) as grpc,
    ):
        for client in (http, grpc):
            assert client.is_server_live()
            assert client.is_server_ready()
            assert client.is_model_ready("digits")
            assert not client.is_model_ready("letters")
        expected = {
            "name": "digits",
            "versions": ["1"],
            "platform": "hipdnn",
            "inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, 1, 8, 8]}],
            "outputs": [{"name": "probabilities", "datatype": "FP32", "shape": [-1, 10]}],
        }
        assert http.get_model_metadata("digits") == expected
        found = grpc.get_model_metadata("digits", as_json=True)
        numbers = [int(dim) for dim in found["inputs"][0]["shape"]]
        assert (found["name"], found["inputs"][0]["name"], numbers) == ("digits", "image", [-1, 1, 8, 8])
        assert http.get_server_metadata()["name"] == grpc.get_server_metadata().name == "hipdnn-mlir"
        assert http.get_model_repository_index() == [{"name": "digits", "version": "1", "state": "READY"}]
        (statistics,) = http.get_inference_statistics("digits")["model_stats"]
        assert statistics["inference_stats"]["fail"]["count"] == 0


def text(**changes: Any) -> bytes:
    given = {"name": "image", "datatype": "FP32", "shape": [1, 1, 8, 8], "data": [0.5] * 64} | changes
    return json.dumps({"inputs": [given]}).encode()


BAD = {
    "no JSON": (INFER, b"{", {}, 400, "no JSON"),
    "no object": (INFER, b"[]", {}, 400, "no JSON object"),
    "no inputs": (INFER, b"{}", {}, 400, "inputs: bad request"),
    "another name": (INFER, text(name="picture"), {}, 400, "no input 'picture'"),
    "another datatype": (INFER, text(datatype="INT64", data=[1] * 64), {}, 400, "expected f32"),
    "an unknown datatype": (INFER, text(datatype="FP8"), {}, 400, "unknown datatype"),
    "another shape": (INFER, text(shape=[1, 1, 4, 16]), {}, 400, "f32[1,1,4,16]"),
    "a negative size": (INFER, text(shape=[-1, 1, 8, 8]), {}, 400, "bad shape"),
    "too few numbers": (INFER, text(data=[1.0]), {}, 400, "wrong number of elements"),
    "no rows": (INFER, text(shape=[0, 1, 8, 8], data=[]), {}, 400, "no rows"),
    "no such path": ("/v2/model/digits", b"", {}, 404, "Not Found"),
    "texts for numbers": (INFER, text(data=["a"] * 64), {}, 400, "no FP32 numbers"),
    "a length beyond the body": (INFER, text(), {"Inference-Header-Content-Length": "9999"}, 400, "bad header"),
    "bytes left over": (INFER, text() + b"xx", {"Inference-Header-Content-Length": str(len(text()))}, 400, "2 bytes"),
    "bytes that are missing": (INFER, text(parameters={"binary_data_size": 256}), {}, 400, "bad binary_data_size"),
    "compressed": (
        INFER,
        gzip.compress(text()),
        {"Content-Encoding": "gzip"},
        400,
        "compressed bodies are not supported",
    ),
    "a model that is not there": ("/v2/models/letters/infer", text(), {}, 404, "no model 'letters'"),
    "another version": ("/v2/models/digits/versions/3/infer", text(), {}, 404, "no version 3"),
    "too many bytes": (INFER, b" " * (LIMIT_MB * 10**6 + 1), {}, 413, "too large"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_request_gets_its_error_and_harms_no_other(name: str, server: Running, images: Images) -> None:
    path, body, headers, status, reason = BAD[name]
    with ThreadPoolExecutor() as pool:
        others = [pool.submit(over_http, server, images) for _ in range(2)]
        found, answer = posted(server, path, body, headers)
        assert (found, list(answer)) == (status, ["error"])
        assert reason in answer["error"]
        for other in others:
            np.testing.assert_allclose(other.result(), digits_of(images), **TOLERANCE)


def test_an_answer_has_the_id_of_its_request(server: Running) -> None:
    connection = HTTPConnection(server.http, timeout=60)
    connection.request("POST", INFER, text(), {"X-Request-ID": "own"})
    assert connection.getresponse().headers["x-request-id"] == "own"


def test_errors_over_grpc_have_codes(server: Running, images: Images) -> None:
    with pytest.raises(InferenceServerException, match=r"INVALID_ARGUMENT.*wrong array"):
        over_grpc(server, images[:, :, :7])
    with (
        tritonclient.grpc.InferenceServerClient(server.grpc) as client,
        pytest.raises(InferenceServerException, match=r"NOT_FOUND.*no model 'letters'"),
    ):
        client.get_model_metadata("letters")
    with pytest.raises(InferenceServerException, match="RESOURCE_EXHAUSTED"):
        over_grpc(server, np.zeros((8000, 1, 8, 8), np.float32))


class Load:
    """Requests from two threads, one after the other, until the end of the block; all have to be answered rightly."""

    def __init__(self, server: Running, images: Images) -> None:
        self._server, self._images = server, images
        self._expected = digits_of(images)
        self._ended = threading.Event()
        self._pool = ThreadPoolExecutor(2)
        self.answers = 0

    def __enter__(self) -> Load:
        self._tasks = [self._pool.submit(self._work, infer) for infer in (over_http, over_grpc)]
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for task in self._tasks:
            task.result()

    def _work(self, infer: Callable[[Running, Images], Any]) -> None:
        while not self._ended.is_set():
            np.testing.assert_allclose(infer(self._server, self._images), self._expected, **TOLERANCE)
            self.answers += 1

    def wait(self, more: int) -> None:
        """Wait for some more answers."""
        wanted = self.answers + more
        while self.answers < wanted and not any(task.done() for task in self._tasks):
            time.sleep(0.01)


def test_a_new_version_is_loaded_without_a_lost_request(server: Running, repository: Path, images: Images) -> None:
    with tritonclient.http.InferenceServerClient(server.http) as client, Load(server, images) as load:
        load.wait(10)
        (repository / "digits/2").mkdir()
        compiled([1, 8]).save(repository / "digits/2/model.hipdnn")
        client.load_model("digits")
        load.wait(10)
        for _ in range(8):  # of both replicas
            assert client.get_model_metadata("digits")["versions"] == ["2"]


def test_a_broken_version_is_refused_and_the_one_before_stays(
    server: Running, repository: Path, images: Images
) -> None:
    broken = repository / "digits/4"
    broken.mkdir()
    (broken / "model.hipdnn").write_bytes(b"no program")
    try:
        with tritonclient.http.InferenceServerClient(server.http) as client:
            with pytest.raises(InferenceServerException, match=r"\[400\].*digits/4/model.hipdnn"):
                client.load_model("digits")
            np.testing.assert_allclose(over_http(server, images), digits_of(images), **TOLERANCE)
    finally:
        (broken / "model.hipdnn").unlink()
        broken.rmdir()


def test_no_request_is_lost_when_a_replica_is_killed(server: Running, images: Images) -> None:
    before = server.replicas()
    assert len(before) == 2
    with Load(server, images) as load:
        load.wait(10)
        os.kill(before[0], signal.SIGKILL)
        load.wait(100)
        end = time.monotonic() + 60
        while len(set(server.replicas()) - {before[0]}) < 2:
            assert time.monotonic() < end, "no new replica"
            time.sleep(0.1)


def test_metrics_are_shown_to_prometheus(server: Running, images: Images) -> None:
    end = time.monotonic() + 60
    wanted = "ray_hipdnn_requests_total{"
    for _ in range(4):  # of both replicas
        posted(server, INFER, b"{")
        over_http(server, images)
    while True:
        with urllib.request.urlopen(f"http://{server.metrics}/metrics") as page:
            lines = [line for line in page.read().decode().splitlines() if line.startswith("ray_hipdnn_")]
        if any(line.startswith(wanted) and 'code="400"' in line for line in lines):
            break
        assert time.monotonic() < end, lines
        time.sleep(0.5)
    names = {line.partition("{")[0] for line in lines}
    assert {"ray_hipdnn_request_ms_bucket", "ray_hipdnn_batch_rows_bucket", "ray_hipdnn_queued_requests"} <= names


def fields(descriptor: Any) -> dict[str, tuple[Any, ...]]:
    """Fields of a message by name, with those of the messages in them."""
    return {
        field.name: (
            field.number,
            field.type,
            field.is_repeated,
            field.containing_oneof.name if field.containing_oneof else "",
            fields(field.message_type) if field.message_type else None,
        )
        for field in descriptor.fields
    }


@pytest.mark.parametrize("name", [f"{method}{end}" for method in METHODS for end in ("Request", "Response")])
def test_messages_are_those_of_another_implementation(name: str) -> None:
    assert fields(message(name).DESCRIPTOR) == fields(getattr(service_pb2, name).DESCRIPTOR)


def test_with_a_certificate_http_is_https_and_proxies_in_python_answer(
    repository: Path, images: Images, tmp_path: Path
) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["openssl", "req", "-x509", "-nodes", "-newkey", "rsa:2048", *names, "-keyout", key, "-out", certificate]
    subprocess.run(made, check=True, capture_output=True)
    with serving(tmp_path, repository, "--tls-cert", certificate, "--tls-key", key, "--threads", 1) as running:
        context = ssl.create_default_context(cafile=certificate)
        connection = HTTPSConnection(running.http, timeout=60, context=context)
        connection.request("POST", INFER, text())
        assert json.loads(connection.getresponse().read())["outputs"][0]["shape"] == [1, 10]
        np.testing.assert_allclose(over_grpc(running, images), digits_of(images), **TOLERANCE)


def test_what_cannot_be_served_is_an_error_of_one_line(command: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    port = free_port()
    for arguments, reason in (
        ((tmp_path / "nothing",), "no such file"),
        ((tmp_path / "empty",), "no model: expected a .hipdnn, .onnx, .pt2 file"),
        ((tmp_path / "empty", "--tls-cert", "x.pem"), "--tls-key: a certificate needs its key"),
        ((tmp_path / "empty", "--port", 70000), "--port: bad value"),
        ((tmp_path / "empty", "--host", "192.0.2.77", "--port", port), "--host: cannot listen on 192.0.2.77"),
    ):
        done = command("serve", *arguments, env={})
        assert done.returncode == 2, done.stderr
        assert reason in done.stderr
        assert len(done.stderr.splitlines()) == 1
