"""Which models are found on the disk, and which ports a server's replicas get."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from hipdnn_mlir.serving import deployment
from hipdnn_mlir.serving.repository import find_models
from hipdnn_mlir_runtime.errors import ModelError


def touched(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def found(*paths: Path) -> list[tuple[str, str, str]]:
    return [(model.name, model.version, Path(model.path).name) for model in find_models(paths)]


def test_the_largest_number_is_the_version_that_is_served(tmp_path: Path) -> None:
    folder = touched(
        tmp_path, "a/9/m.hipdnn", "a/10/m.hipdnn", "a/11/readme.txt", "a/old/m.hipdnn", "b/b.onnx", "c/x.txt"
    )
    assert found(folder) == [("a", "10", "m.hipdnn"), ("b", "1", "b.onnx")]
    assert found(folder / "a") == [("a", "10", "m.hipdnn")]


def test_a_program_is_served_in_the_place_of_its_model(tmp_path: Path) -> None:
    folder = touched(tmp_path, "m/m.onnx", "m/m.hipdnn")
    assert found(folder / "m") == [("m", "1", "m.hipdnn")]
    assert found(folder / "m" / "m.onnx") == [("m", "1", "m.onnx")]


def test_a_folder_of_a_decoder_is_one_model(tmp_path: Path) -> None:
    (model,) = find_models([touched(tmp_path, "llama/genai_config.json", "llama/model.onnx") / "llama"])
    assert (model.name, model.folder) == ("llama", str(tmp_path / "llama"))


def test_a_path_that_is_given_twice_is_one_model(tmp_path: Path) -> None:
    folder = touched(tmp_path, "a/m.hipdnn")
    assert found(folder / "a", folder / "a", folder) == [("a", "1", "m.hipdnn")]


def test_what_is_not_clear_is_an_error(tmp_path: Path) -> None:
    folder = touched(tmp_path, "a/m.hipdnn", "b/a.hipdnn", "b/c.hipdnn", "d/readme.txt", "e/a.hipdnn")
    for paths, reason in (
        ([folder / "d"], "no model"),
        ([folder / "b"], r"several \.hipdnn files"),
        ([folder / "nowhere"], "no such file"),
        ([folder / "a", folder / "e/a.hipdnn"], "two models are called 'a'"),
    ):
        with pytest.raises(ModelError, match=reason):
            find_models(paths)


def test_replicas_of_two_servers_never_share_a_port() -> None:
    first = deployment._own_ports()
    low, high = (first[f"RAY_SERVE_DIRECT_INGRESS_{end}_GRPC_PORT"] for end in ("MIN", "MAX"))
    with socket.socket(socket.AF_INET6) as taken:
        taken.bind(("", low))
        second = deployment._own_ports()
    assert not set(second.values()) & set(range(low, high + 1))
