"""`hipdnn-mlir cache`: what it lists, shows and deletes, and that a key names the entry that a session uses."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import hipdnn_mlir
from conftest import Command
from hipdnn_mlir_runtime.cli import main

from .sessions import make_session, reference, session_options
from .small_models import alternating, convolution, inputs_for

Cache = Callable[..., dict]
OTHER_KEY = "0123456789abcdef" * 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def cache(command: Command, folder: Path) -> Cache:
    """Run a command on the folder and return its JSON."""

    def run(*arguments: object) -> dict:
        done = command("cache", *arguments, "--cache-dir", folder, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    return run


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(convolution(), path)
    return path


def of_kind(data: dict, kind: str) -> list[dict]:
    return [entry for entry in data["entries"] if entry["kind"] == kind]


def fill_plans(folder: Path, small_program: Path) -> None:
    hipdnn_mlir.load(small_program, plan_cache=folder / "plans", autotune=2)


@pytest.mark.parametrize("is_there", [False, True])
def test_an_empty_cache_has_no_entries(is_there: bool, folder: Path, cache: Cache, command: Command) -> None:
    if is_there:
        folder.mkdir()
    data = cache("list")
    assert (data["directory"], data["entries"], data["total_bytes"]) == (str(folder), [], 0)
    assert f"{folder}: 0 entries, 0 B of 4.0 GiB" in command("cache", "list", "--cache-dir", folder).stdout
    assert cache("prune", "--all")["deleted"] == []
    assert folder.exists() == is_there


def test_list_tells_kinds_sizes_and_what_programs_are(
    model: Path, folder: Path, cache: Cache, command: Command, small_program: Path
) -> None:
    make_session(model, folder)
    fill_plans(folder, small_program)
    data = cache("list")
    (program,), (placement,), plans = (of_kind(data, kind) for kind in ("program", "placement", "plan"))
    assert data["total_bytes"] == sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert program["bytes"] == Path(program["path"]).stat().st_size
    shape = "x".join(map(str, inputs_for(convolution())["x"].shape))
    assert program["content"]["target"] == "host"
    assert program["content"]["inputs"] == f"x f32 {shape}"
    assert program["content"]["compiler"]["hipdnn_mlir"] == importlib.metadata.version("hipdnn-mlir")
    assert placement["content"]["nodes"] == 2
    engines = {"HOST_ONEDNN_ENGINE", "HOST_GEMV_ENGINE", "HOST_ROWWISE_ENGINE"}
    assert {plan["content"]["engine"] for plan in plans} <= engines
    assert plans
    lines = command("cache", "list", "--cache-dir", folder).stdout.splitlines()
    assert f"{len(data['entries'])} entries" in lines[0]
    (line,) = (line for line in lines if line.startswith(program["key"][:12]))
    assert "program" in line
    assert f"{program['content']['model']} for host: x f32 {shape} -> " in line
    assert re.search(r"\d\d:\d\d [A-Z+-]", line), "a time with its zone"


def test_show_tells_all_of_an_entry_and_how_to_inspect_it(
    model: Path, folder: Path, cache: Cache, command: Command
) -> None:
    make_session(model, folder)
    (program,) = of_kind(cache("list"), "program")
    shown = cache("show", program["key"][:6])
    assert shown.items() >= program.items()
    assert shown["inspect"] == f"hipdnn-mlir inspect {program['path']}"
    assert command(*shown["inspect"].split()[1:]).returncode == 0
    assert "constants" in shown["summary"]
    text = command("cache", "show", program["key"].upper(), "--cache-dir", folder).stdout
    assert program["path"] in text
    assert shown["summary"] in text


@pytest.mark.parametrize(
    ("prefix", "texts"),
    [
        ("ffff", ["ffff: no entry has this key", "cache list"]),
        ("01", ["01: 2 entries have keys that start so", "0123456789ab (plan)", "0100000000"]),
    ],
)
def test_a_prefix_of_no_or_several_keys_is_refused(
    prefix: str, texts: list[str], folder: Path, command: Command
) -> None:
    folder.mkdir()
    (folder / f"{OTHER_KEY}.plan").write_bytes(b"x")
    (folder / f"01{62 * '0'}.hipdnn").write_bytes(b"x")
    done = command("cache", "show", prefix, "--cache-dir", folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert all(text in done.stderr for text in texts), done.stderr


def test_files_of_others_are_neither_listed_nor_deleted(folder: Path, cache: Cache) -> None:
    folder.mkdir()
    (folder / f"{OTHER_KEY}.json").write_text("{}")
    foreign = ["README", OTHER_KEY, f"{OTHER_KEY.upper()}.plan", f"{OTHER_KEY}.with.dots", f"{OTHER_KEY[1:]}.plan"]
    for name in foreign:
        (folder / name).write_text("mine")
    (folder / f"{OTHER_KEY[::-1]}.plan").symlink_to(folder / "README")
    (folder / f"{OTHER_KEY[::-1]}.json").mkdir()
    assert [entry["path"] for entry in cache("list")["entries"]] == [str(folder / f"{OTHER_KEY}.json")]
    assert cache("prune", "--all")["bytes"] == 2
    left = {path.name for path in folder.iterdir()}
    assert left == {*foreign, f"{OTHER_KEY[::-1]}.plan", f"{OTHER_KEY[::-1]}.json"}


def test_damaged_entries_are_called_so(
    model: Path, folder: Path, cache: Cache, command: Command, small_program: Path
) -> None:
    make_session(model, folder)
    fill_plans(folder, small_program)
    paths = [Path(entry["path"]) for entry in cache("list")["entries"]]
    for path in paths:
        whole = bytearray(path.read_bytes())
        whole[-1] ^= 0xFF
        path.write_bytes(whole)
    data = cache("list")
    assert [Path(entry["path"]) for entry in data["entries"] if "damaged" in entry["content"]] != []
    assert {Path(entry["path"]) for entry in data["entries"] if "damaged" in entry["content"]} == set(paths)
    (program,) = of_kind(data, "program")
    done = command("cache", "show", program["key"], "--cache-dir", folder)
    assert done.returncode == 0
    assert "damaged: it is made again when it is needed" in done.stdout
    assert "inspect" not in cache("show", program["key"])


def test_folders_that_cannot_be_used_are_refused_with_the_reason(folder: Path, command: Command) -> None:
    folder.write_text("")
    assert f"{folder}: not a directory" in command("cache", "list", "--cache-dir", folder).stderr
    folder.unlink()
    folder.mkdir()
    (folder / f"{OTHER_KEY}.plan").write_bytes(b"x")
    folder.chmod(0o777)
    for arguments in (["list"], ["show", "01"], ["prune", "--all"]):
        done = command("cache", *arguments, "--cache-dir", folder)
        assert done.returncode == 2
        assert f"{folder}: everyone may write to it" in done.stderr
    assert (folder / f"{OTHER_KEY}.plan").exists()
    if os.geteuid() != 0:  # root may read everything
        folder.chmod(0o300)
        assert "Permission denied" in command("cache", "list", "--cache-dir", folder).stderr
        folder.chmod(0o700)


def test_no_folder_at_all_is_an_error(command: Command) -> None:
    done = command("cache", "list", env={"HOME": "", "XDG_CACHE_HOME": ""})
    assert done.returncode == 2
    assert "there is no cache folder; set HOME or XDG_CACHE_HOME, or give --cache-dir DIR" in done.stderr


def test_prune_deletes_what_is_chosen(model: Path, folder: Path, cache: Cache, command: Command) -> None:
    make_session(model, folder)
    old = folder / f"{OTHER_KEY}.json"
    old.write_bytes(b"{}")
    os.utime(old, (time.time() - 40 * 86400,) * 2)
    done = command("cache", "prune", "--older-than", "30d", "--kind", "program", "--cache-dir", folder)
    assert done.stdout == f"{folder}: 0 B freed, deleted nothing\n"
    done = command("cache", "prune", "--older-than", "30d", "--cache-dir", folder)
    assert done.stdout == f"{folder}: 2 B freed, deleted 1 placement\n"
    (program,) = of_kind(cache("list"), "program")
    pruned = cache("prune", "--kind", "program")
    assert (pruned["deleted"], pruned["bytes"]) == ([program["path"]], program["bytes"])
    assert [entry["kind"] for entry in cache("list")["entries"]] == ["placement"]
    assert cache("prune", "--all")["kinds"] == {"placement": 1}
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "nothing is chosen: expected --older-than 30d, --kind KIND or --all"),
        (["--older-than", "3"], "--older-than: bad value: expected a number with d, h or m"),
        (["--older-than", "-3d"], "--older-than"),
        (["--kind", "programs"], "--kind: bad value: expected one of 'program'"),
        (["--all", "--kind", "program"], "--all beside what chooses some"),
    ],
)
def test_prune_refuses_what_is_not_clear(arguments: list[str], text: str, command: Command) -> None:
    done = command("cache", "prune", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "cache: no command: expected cache list, show, prune, key"),
        (["lst"], "lst: no such command; did you mean list? see 'hipdnn-mlir cache --help'"),
    ],
)
def test_what_is_no_command_of_the_cache_is_answered_with_advice(
    arguments: list[str], text: str, command: Command
) -> None:
    done = command("cache", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"hipdnn-mlir: error: {text}\n")


def key_of(cache: Cache, model: Path, *arguments: object) -> dict:
    (program,) = cache("key", model, *arguments)["programs"]
    return program


def test_a_key_is_the_digest_of_what_it_is_said_to_be_made_from(model: Path, cache: Cache) -> None:
    data = cache("key", model, "--precision", "f16")
    made_from, (program,) = data["made_from"], data["programs"]
    assert (made_from["target"], made_from["precision"], program["sizes"]) == ("host", "f16", "")
    parts = [*(made_from[name] for name in ("provider", "library", "cpu", "target", "precision"))]
    texts = ["compile", *parts, program["model"], program["sizes"]]
    assert program["key"] == hashlib.sha256("".join(f"{text}\0" for text in texts).encode()).hexdigest()


def test_a_session_uses_the_entry_that_the_key_names(model: Path, folder: Path, cache: Cache, tmp_path: Path) -> None:
    other = convolution()
    other.graph.initializer[1].raw_data = np.full(8, 7, np.float32).tobytes()
    other_model = tmp_path / "other.onnx"
    onnx.save(other, other_model)
    first, second = key_of(cache, model), key_of(cache, other_model)
    assert (first["is_kept"], second["is_kept"]) == (False, False)
    assert not Path(first["path"]).exists()
    for path in (model, other_model):
        make_session(path, folder)
    assert key_of(cache, model) == {**first, "is_kept": True}
    keys = [each["key"].encode() for each in (second, first)]
    Path(first["path"]).write_bytes(Path(second["path"]).read_bytes().replace(*keys))
    x = inputs_for(other)
    (got,) = make_session(model, folder).run(None, x)
    np.testing.assert_allclose(got, reference(other, x)[0], rtol=1e-5, atol=1e-5)


def test_a_key_does_not_depend_on_folders_and_names(model: Path, folder: Path, command: Command, cache: Cache) -> None:
    expected = key_of(cache, model)["key"]
    moved = folder.parent / "elsewhere.onnx"
    shutil.copy(model, moved)
    done = command("cache", "key", moved, "--cache-dir", folder.parent / "image")
    assert done.returncode == 0
    assert re.search(rf"^{expected} +\d+  no$", done.stdout, re.MULTILINE)


def test_sizes_of_a_key_are_a_sessions_overrides(tmp_path: Path, folder: Path, cache: Cache, command: Command) -> None:
    path = tmp_path / "dynamic.onnx"
    onnx.save(convolution(["batch", 3, 8, 8]), path)
    fixed, dynamic = key_of(cache, path, "--shape", "batch=3"), key_of(cache, path)
    assert fixed["key"] != dynamic["key"]
    import onnxruntime as ort

    options = session_options(folder)
    options.add_free_dimension_override_by_name("batch", 3)
    ort.InferenceSession(str(path), options)
    assert [entry["key"] for entry in of_kind(cache("list"), "program")] == [fixed["key"]]
    for text in ("btch=3", "batch=0", "batch=n", "x=1x2x3x4"):
        done = command("cache", "key", path, "--shape", text)
        assert done.returncode == 2
        assert "expected NAME=SIZE for one of the model's dynamic dimensions (batch), got" in done.stderr


def test_programs_for_a_gpu_have_keys_of_their_own_without_the_cpu(model: Path, cache: Cache) -> None:
    data = cache("key", model, "--target", "sm_90")
    assert (data["made_from"]["target"], data["made_from"]["cpu"]) == ("sm_90", "")
    assert data["programs"][0]["key"] != key_of(cache, model)["key"]


def test_placement_and_buckets_are_those_of_the_session(tmp_path: Path, folder: Path, cache: Cache) -> None:
    path = tmp_path / "alternating.onnx"
    onnx.save(alternating(), path)
    counts = {rule: len(cache("key", path, "--placement", rule)["programs"]) for rule in ("profitable", "maximal")}
    assert counts == {"profitable": 0, "maximal": 4}
    dynamic = tmp_path / "dynamic.onnx"
    onnx.save(convolution(["batch", 3, 8, 8]), dynamic)
    plain, bucketed = (key_of(cache, dynamic, "--target", "sm_90", *more) for more in ([], ["--bucket", "batch=1,8"]))
    assert (plain["sizes"], bucketed["sizes"]) == ("", 'buckets {"batch":[1,8]}')
    assert (plain["model"] == bucketed["model"], plain["key"] == bucketed["key"]) == (True, False)


def test_keys_of_a_model_that_stays_on_the_cpu_are_none(tmp_path: Path, command: Command) -> None:
    node = onnx.helper.make_node("StringNormalizer", ["x"], ["y"])
    ports = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.STRING, [1]) for name in "xy"]
    graph = onnx.helper.make_graph([node], "g", ports[:1], ports[1:])
    path = tmp_path / "strings.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8), path)
    done = command("cache", "key", path)
    assert (done.returncode, done.stdout.startswith("no program: ")) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "env", "text"),
    [
        (["no.onnx"], {}, "no.onnx: no such file"),
        (["{model}", "--target", "sm_1"], {}, "unknown target 'sm_1': expected one of host,"),
        (["{model}"], {"HIPDNN_MLIR_EXTENSIONS": "some_module"}, "HIPDNN_MLIR_EXTENSIONS is set"),
    ],
)
def test_keys_that_cannot_be_made_are_an_error(
    arguments: list[str], env: dict[str, str], text: str, model: Path, command: Command
) -> None:
    done = command("cache", "key", *(argument.format(model=model) for argument in arguments), env=env)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert text in done.stderr


def test_keys_need_onnxruntime(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    assert main.call(["cache", "key", str(model)]) == 2
    assert "pip install onnxruntime" in capsys.readouterr().err


def test_a_session_for_keys_does_not_run(model: Path, folder: Path, tmp_path: Path) -> None:
    session = make_session(model, folder, options={"cache_keys": str(tmp_path / "keys.json")})
    with pytest.raises(Exception, match="'cache_keys' asks for keys alone"):
        session.run(None, inputs_for(convolution()))
