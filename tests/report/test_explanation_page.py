"""The page about where a model runs: complete, without a network, the same numbers as the report, safe against names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest

from hipdnn_mlir.report.compare import compare_targets
from hipdnn_mlir.report.explain import explain
from hipdnn_mlir.report.page.explanation_page import explanation_html
from hipdnn_mlir_runtime.cli import main as cli
from models import GraphBuilder
from report.browser import ask, needs_chromium
from report.parsed import HOSTILE, Parsed, assert_loads_nothing


def _partly() -> onnx.ModelProto:
    """A model of which the targets take different parts, and none takes Bernoulli and Unique."""
    b = GraphBuilder("partly")
    flat = b.op("Relu", b.op("MatMul", b.input("x", [4, 8]), b.normal([8, 9], 1)))
    left = b.op("Unique", b.op("Bernoulli", b.op("Reshape", flat, b.constant([4, 3, 3], "int64"))), axis=0)
    return b.model({left: ["k"], b.op("CumSum", flat, b.constant(1, "int64")): [4, 9]})


@pytest.fixture(scope="module")
def compared() -> dict[str, Any]:
    """The model on three targets."""
    return compare_targets(_partly(), ["host", "gfx942", "sm_90"]).to_dict()


@pytest.fixture(scope="module")
def page(compared: dict[str, Any]) -> str:
    """Its page."""
    return explanation_html("partly", compared)


def test_the_file_loads_nothing(page: str) -> None:
    assert_loads_nothing(page)


def test_the_graph_is_that_of_the_model(page: str) -> None:
    data = json.loads(Parsed(page).scripts[0])
    names = [node["name"] for node in data["reports"][0]["nodes"]]
    edges = {(names[source], names[target]) for source, target in data["edges"]}
    assert edges == {
        ("MatMul_0", "Relu_0"),
        ("Relu_0", "Reshape_0"),
        ("Reshape_0", "Bernoulli_0"),
        ("Bernoulli_0", "Unique_0"),
        ("Relu_0", "CumSum_0"),
    }


@needs_chromium
def test_a_target_that_is_selected_changes_numbers_colours_and_tables(
    page: str, compared: dict[str, Any], tmp_path: Path
) -> None:
    script = """
        const seen = () => ({
            made: text("#made"), numbers: text("#numbers dd"), regions: document.querySelectorAll("#region-table tbody tr").length,
            relu: node("node-1").style.getPropertyValue("--hue")});
        const before = seen();
        [...document.querySelectorAll("#coverage-table button")].find((button) => button.textContent === "sm_90").click();
        return [before, seen()];"""
    for target, seen in zip(("host", "sm_90"), ask(page, script, tmp_path), strict=True):
        found = compared["explanations"][target]
        place = next(node["place"] for node in found["nodes"] if node["name"] == "Relu_0")
        assert seen["made"] == f"explained for {target}"
        assert seen["numbers"].startswith(f"{found['coverage']['percent']:.0f} %")
        assert seen["regions"] == len(found["graphs"]) + len(found["launches"])
        assert seen["relu"] == {"graph": "var(--c0)", "kernel": "var(--c1)"}[place]


@needs_chromium
def test_a_node_that_is_left_out_says_why_and_what_would_help(
    page: str, compared: dict[str, Any], tmp_path: Path
) -> None:
    script = """
        const link = [...document.querySelectorAll("#reject-table .linkish")].find((found) => found.textContent === "Bernoulli_0");
        link.click(); await pause();
        return {panel: text("#detail"), chosen: document.querySelector(".node.on").textContent, row: link.closest("tr").textContent};"""
    seen = ask(page, script, tmp_path)
    group = next(
        group for group in compared["explanations"]["host"]["reject_groups"] if "Bernoulli_0" in group["nodes"]
    )
    assert group["advice"]
    for shown in (seen["panel"], seen["row"]):
        assert group["reason"] in shown
        assert group["advice"] in shown
    assert "left out" in seen["panel"]
    assert "Bernoulli_0" in seen["chosen"]


@needs_chromium
def test_search_finds_nodes_by_place(page: str, tmp_path: Path) -> None:
    script = """return [...document.querySelectorAll(".node.match b")].map((found) => found.textContent);"""
    assert sorted(ask(page, script, tmp_path, fragment="#find=left%20out")) == ["Bernoulli", "Unique"]


@needs_chromium
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_never_scrolls_sideways(page: str, tmp_path: Path, width: int) -> None:
    script = "node('node-3').click(); await pause(); return [innerWidth, document.documentElement.scrollWidth];"
    assert ask(page, script, tmp_path, width=width) == [width, width]


@needs_chromium
def test_hostile_names_are_shown_as_text(tmp_path: Path) -> None:
    model = _partly()
    for made, name in zip(model.graph.node, HOSTILE, strict=False):
        made.name = name
    page = explanation_html(HOSTILE[0], explain(model).to_dict())
    assert Parsed(page).elements.count("script") == 2
    script = """
        const panels = [];
        for (const element of document.querySelectorAll(".node")) { element.click(); panels.push(text("#detail")); }
        return {panels, bad: window.bad ?? null, images: document.images.length, tab: document.title};"""
    seen = ask(page, script, tmp_path)
    assert (seen["bad"], seen["images"], seen["tab"]) == (None, 0, HOSTILE[0])
    assert all(name in "\n".join(seen["panels"]) for name in HOSTILE)


@needs_chromium
def test_the_command_writes_the_page_beside_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 22]> g (float[n,1,m] x) => (float[n,1,k] y)'
        "{ r = Relu(x) y = AveragePool<kernel_shape=[2], strides=[3], pads=[1,1], ceil_mode=1>(r) }"
    )
    onnx.save(model, tmp_path / "m.onnx")
    assert cli.call(["explain", str(tmp_path / "m.onnx"), "--html", str(tmp_path / "m.html")]) == 0
    assert "Target host" in capsys.readouterr().out
    seen = ask((tmp_path / "m.html").read_text(), "return [text('#model'), text('#left-out-text')];", tmp_path)
    assert seen[0] == "m"
    assert "Every node has a place on host, and there is no program" in seen[1]
    missing = tmp_path / "none" / "m.html"
    assert cli.call(["explain", str(tmp_path / "m.onnx"), "--html", str(missing)]) == 2
    assert "none: no such directory; create it, or choose another --html" in capsys.readouterr().err
