"""Provider options: one table, strict values, effects that can be seen."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_opsetid, make_tensor_value_info

import untaken
from hipdnn_mlir_runtime import ort_ep

from .sessions import devices, make_session, partitions, placed_nodes, reference
from .small_models import alternating, convolution, inputs_for


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def test_unknown_option_lists_the_known_ones(cache) -> None:
    with pytest.raises(Exception, match=r"unknown option 'treads'.*'threads'"):
        make_session(convolution(), cache, options={"treads": "1"})


def test_unknown_option_is_refused_where_no_node_is_left_to_place(cache) -> None:
    value = make_tensor_value_info("x", TensorProto.FLOAT, [4])
    model = make_model(make_graph([], "empty", [value], [value]), opset_imports=[make_opsetid("", 21)], ir_version=10)
    session = make_session(model, cache, options={"treads": "1"})
    with pytest.raises(Exception, match=r"unknown option 'treads'.*'threads'"):
        session.run(None, {"x": np.zeros(4, np.float32)})


def test_plugins_are_refused_where_the_port_has_none(cache, tmp_path) -> None:
    with pytest.raises(Exception, match="plugin_dirs: port 'host' does not take them"):
        make_session(convolution(), cache, options={"plugin_dirs": f"{tmp_path}:{tmp_path}"})


def test_plugins_in_place_of_the_librarys_own_need_a_path(cache) -> None:
    with pytest.raises(Exception, match="plugin_mode = 'absolute': expected folders or files of engine plugins"):
        make_session(convolution(), cache, options={"plugin_mode": "absolute"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"buckets": "n=1,8"}, "'buckets' has no effect: programs for the target 'host' take sizes as they are"),
        ({"user_compute_stream": "4096"}, "'user_compute_stream' has no effect: the session's device is the CPU"),
        ({"compiler": "none", "python": "/bin/python"}, "'python' has no effect: with 'compiler' = 'none' there is no child process"),
        ({"compiler": "inprocess", "python": "/bin/python"}, "'python' has no effect: with 'compiler' = 'inprocess'"),
        ({"compiler": "inprocess", "compile_timeout_s": "9"}, "'compile_timeout_s' has no effect: with 'compiler' = 'inprocess'"),
        ({"knobs": "TILE"}, "option 'knobs' = 'TILE': expected NAME=VALUE with commas between"),
        ({"knobs": "=64", "engine": "HOST_ROWWISE_ENGINE"}, "option 'knobs' = '=64': expected NAME=VALUE"),
    ],
    ids=str,
)  # fmt: skip
def test_option_without_effect_is_refused(options, message, cache) -> None:
    with pytest.raises(Exception, match=message):
        make_session(convolution(), cache, options=options)


LIMITED = [row for row in ort_ep.get_options() if row.type in ("flag", "integer", "choice")]


@pytest.mark.parametrize("row", LIMITED, ids=lambda row: row.key)
def test_value_outside_the_table_is_refused(row, cache) -> None:
    for value in ("surely not", "-1", "1.5", ""):
        with pytest.raises(Exception, match=f"option '{row.key}' = '{value}': expected"):
            make_session(convolution(), cache, options={row.key: value})


@pytest.mark.parametrize("row", ort_ep.get_options(), ids=lambda row: row.key)
def test_default_and_listed_values_are_accepted(row, cache) -> None:
    needs_plugins = {"absolute"} if row.key == "plugin_mode" else set()
    for value in {row.default, *row.values} - needs_plugins:
        options = {row.key: value} if row.key != "cache_dir" else {}
        session = make_session(convolution(), cache, options=options)
        assert len(placed_nodes(session)[0]) == (0 if value == "none" else 2)


def test_unknown_target_lists_the_known_ones(cache) -> None:
    with pytest.raises(Exception, match=r"gfx000.*host"):
        make_session(convolution(), cache, options={"target": "gfx000"})


def test_precision_has_programs_of_its_own_with_a_small_error(cache) -> None:
    model = convolution([2, 3, 32, 32])
    x = inputs_for(model)
    (want,) = reference(model, x)
    errors = {}
    for precision in ("model", "bf16", "f16"):
        (got,) = make_session(model, cache, options={"precision": precision}).run(None, x)
        assert got.dtype == np.float32
        errors[precision] = np.abs(got - want).max() / np.abs(want).max()
    assert errors["model"] < 1e-5 < errors["f16"] < 2e-3 < errors["bf16"] < 2e-2


@pytest.mark.parametrize("threads", ["1", "2"])
def test_threads_do_not_change_results(threads, cache) -> None:
    model = convolution([2, 3, 32, 32])
    x = inputs_for(model)
    session = make_session(model, cache, options={"threads": threads})
    np.testing.assert_allclose(session.run(None, x)[0], reference(model, x)[0], rtol=1e-5, atol=1e-5)


def test_strict_session_fails_with_all_reasons(cache) -> None:
    with pytest.raises(Exception, match=f"4 of 8 nodes are not taken: 4 x {untaken.OP}"):
        make_session(alternating(), cache, options={"strict": "1", "placement": "maximal"})
    make_session(convolution(), cache, options={"strict": "1"})


def test_placement_maximal_takes_what_profitable_leaves(cache) -> None:
    assert partitions(make_session(alternating(), cache, options={"placement": "profitable"})) == []
    assert partitions(make_session(alternating(), cache, options={"placement": "maximal"})) == [
        [f"relu{i}"] for i in range(4)
    ]


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_profile_file_has_every_step(kind, cache, tmp_path) -> None:
    path = tmp_path / "profile.json"
    session = make_session(convolution(), cache, kind=kind, options={"profile": str(path)})
    for _ in range(3):
        session.run(None, inputs_for(convolution()))
    assert not path.exists()
    del session
    (node,) = json.loads(path.read_text())["nodes"]
    assert node["runs"] == 3
    assert node["inputs"] == "x: 1x3x8x8"
    assert {step["name"] for step in node["steps"]} == {"conv+relu"}
    assert all(0 < step["min_us"] <= step["mean_us"] for step in node["steps"])


def test_dump_ir_writes_every_step(cache, tmp_path) -> None:
    for folder in ("first", "second"):  # a cached program is no reason not to dump
        make_session(convolution(), cache, options={"dump_ir": str(tmp_path / folder)})
        names = {path.name.partition("-")[2] for path in (tmp_path / folder).rglob("*.mlir")}
        assert {"onnx-to-torch.mlir", "offload.mlir", "graph-to-executable.mlir"} <= names


def test_placement_is_logged_in_one_line(cache, capfd) -> None:
    settings = ort.SessionOptions()
    settings.log_severity_level = 2
    settings.add_provider_for_devices(devices("cpu"), {"cache_dir": str(cache), "placement": "maximal"})
    ort.InferenceSession(alternating().SerializeToString(), sess_options=settings)
    lines = [line for line in capfd.readouterr().err.splitlines() if "HipDNNExecutionProvider" in line]
    assert len(lines) == 1
    assert f"4 of 8 nodes placed in 4 programs of 4 graphs (target host); on the CPU: 4 x {untaken.OP}: " in lines[0]


def test_explain_file_has_what_was_taken_and_why_not_the_rest(cache, tmp_path) -> None:
    path = tmp_path / "explained.json"
    for _ in range(2):  # a cached placement is no reason not to explain
        path.unlink(missing_ok=True)
        make_session(alternating(), cache, options={"placement": "maximal", "explain_file": str(path)})
        found = json.loads(path.read_text())
        assert found["partitions"] == [[f"relu{i}"] for i in range(4)]
        assert {name for graph in found["graphs"] for name in graph["nodes"]} == {f"relu{i}" for i in range(4)}
        assert [(group["op"], len(group["nodes"])) for group in found["reject_groups"]] == [(untaken.OP, 4)]
        shares = found["coverage"]
        assert (shares["nodes"], shares["graph"], shares["left_out"], shares["percent"]) == (8, 4, 4, 50.0)


def test_explain_file_tells_the_cost_when_a_partition_is_dropped(cache, tmp_path) -> None:
    path = tmp_path / "explained.json"
    make_session(alternating(), cache, options={"placement": "profitable", "explain_file": str(path)})
    found = json.loads(path.read_text())
    assert found["partitions"] == []
    costs = [group for group in found["reject_groups"] if group["rule"] == "cost"]
    assert {name for group in costs for name in group["nodes"]} == {f"relu{i}" for i in range(4)}
    assert {group["advice"] for group in costs} == {"run it with placement=maximal"}


def test_explain_file_tells_of_all_nodes_when_operators_that_are_functions_stay(cache, tmp_path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 20]> g (float[4,8] x, float[8,8] w) => (float[4,8] y)'
        "{ [mm] m = MatMul(x, w) [relu] r = Relu(m) [bern] y = Bernoulli(r) }"
    )
    path = tmp_path / "explained.json"
    make_session(model, cache, options={"placement": "maximal", "explain_file": str(path)})
    found = json.loads(path.read_text())
    assert {node["op"]: node["place"] for node in found["nodes"]} == {
        "MatMul": "graph", "Relu": "graph", "Bernoulli": "left out"
    }  # fmt: skip
    assert [len(nodes) for nodes in found["partitions"]] == [2]


def test_explain_file_is_a_page_when_it_is_called_html(cache, tmp_path) -> None:
    path = tmp_path / "explained.html"
    make_session(alternating(), cache, options={"placement": "maximal", "explain_file": str(path)})
    page = path.read_text()
    assert page.startswith("<!doctype html>")
    assert page.count('"place":"left out"') == 4


def test_session_fails_with_the_path_when_the_explanation_cannot_be_written(cache, tmp_path) -> None:
    path = tmp_path / "none" / "explained.json"
    with pytest.raises(Exception, match="cannot write: No such file or directory"):
        make_session(convolution(), cache, options={"explain_file": str(path)})
