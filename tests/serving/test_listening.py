"""Where a server is to listen: what is impossible is refused before anything is started."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hipdnn_mlir.serving.deployment import Listening
from hipdnn_mlir_runtime.errors import ModelError
from serving.running import free_port


@pytest.fixture(scope="module")
def taken() -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        probe.listen()
        yield probe.getsockname()[1]


def refused(reason: str, **given: Any) -> None:
    with pytest.raises(ModelError, match=reason):
        Listening(**{"port": free_port()} | given).check()


def test_a_port_that_is_taken_is_refused_by_its_flag(taken: int) -> None:
    refused("--port: cannot listen.*choose another one", port=taken)
    refused("--grpc-port: cannot listen.*choose another one", grpc_port=taken)


def test_two_ports_are_not_one() -> None:
    port = free_port()
    refused("--port: .* is --grpc-port, too", port=port, grpc_port=port)
    refused("--grpc-port: .* is --metrics-port, too", grpc_port=port, metrics_port=port)
    Listening(port=port).check()


@pytest.mark.parametrize("host", ["192.0.2.77", "::1"])
def test_a_host_of_another_machine_is_refused(host: str) -> None:
    refused("--host: ", host=host)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("certificate") / "cert.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-subj", "/CN=localhost", "-out", file]
    subprocess.run([*made, "-nodes", "-keyout", file.with_name("key.pem")], check=True, capture_output=True)
    locked = ["openssl", "rsa", "-aes128", "-passout", "pass:word", "-in", file.with_name("key.pem")]
    subprocess.run([*locked, "-out", file.with_name("locked.pem")], check=True, capture_output=True)
    return file


def test_a_certificate_has_to_be_there_with_its_key(certificate: Path, tmp_path: Path) -> None:
    key = str(certificate.with_name("key.pem"))
    refused("--tls-key: a certificate needs its key", tls_cert=str(certificate))
    refused("--tls-cert: a certificate needs its key", tls_key=key)
    refused("--tls-cert: .*nothing: No such file", tls_cert=str(tmp_path / "nothing"), tls_key=key)
    refused("--tls-key: .*Is a directory", tls_cert=str(certificate), tls_key=str(tmp_path))
    refused("--tls-cert: not usable.*in PEM", tls_cert=key, tls_key=key)
    refused(
        "--tls-cert: not usable.*without a password",
        tls_cert=str(certificate),
        tls_key=str(certificate.with_name("locked.pem")),
    )
    Listening(port=free_port(), tls_cert=str(certificate), tls_key=key).check()
