"""The page as a file, and in Chromium: complete, without a network, usable by mouse and keyboard, safe against names."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from onnx import helper

import hipdnn_mlir
from hipdnn_mlir.program.schema import Refused
from hipdnn_mlir.report.page.facts import read_facts
from hipdnn_mlir.report.page.torch_ir import region_texts
from hipdnn_mlir.report.page.write_page import page_html, write_page
from hipdnn_mlir_runtime.errors import HipdnnMlirError
from models import GraphBuilder
from report.browser import ask, needs_chromium
from report.parsed import HOSTILE, Parsed, assert_loads_nothing

TALLEST_HEAD_PIXELS = 900


@pytest.fixture(scope="session")
def page(small_program: Path, small_model: Path) -> str:
    """The page of the small ResNet with its IR."""
    digest = read_facts(small_program).digest
    return page_html(read_facts(small_program, torch_ir=region_texts(small_model, digest=digest)))


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a program in which the model, its nodes, input, output and weights have hostile names."""
    b = GraphBuilder(HOSTILE[0])
    x = b.input("x", [2, 4])
    result = b.op("Softmax", b.op("MatMul", b.op("CumSum", x, b.constant(1, "int64")), b.normal([4, 4], 1)), axis=-1)
    model = b.model({result: [2, 4]})
    names = {
        "x": HOSTILE[0],
        "CumSum_0": HOSTILE[1],
        "MatMul_0": HOSTILE[3],
        result: HOSTILE[2],
        "weight_0": HOSTILE[4],
    }
    for made in model.graph.node:
        made.name = names[made.name]
        made.input[:] = [names.get(name, name) for name in made.input]
        made.output[:] = [names.get(name, name) for name in made.output]
    for made in [*model.graph.input, *model.graph.output, *model.graph.initializer]:
        made.name = names.get(made.name, made.name)
    helper.set_model_props(model, {})
    path = tmp_path_factory.mktemp("hostile") / "hostile.hipdnn"
    hipdnn_mlir.compile(model).save(path)
    return page_html(read_facts(path))


def test_the_file_loads_nothing(page: str) -> None:
    assert_loads_nothing(page)


def test_names_stay_data_in_the_file(hostile_page: str) -> None:
    parsed = Parsed(hostile_page)
    assert parsed.elements.count("script") == 2
    assert "img" not in parsed.elements
    data = json.loads(parsed.scripts[0])
    assert data["model"] == HOSTILE[0]
    assert {name for step in data["steps"] for name in [step["nodes"]]} == {HOSTILE[1], HOSTILE[3], HOSTILE[2]}


def test_a_page_that_cannot_be_written_is_one_clear_error(programs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(HipdnnMlirError, match="cannot write: No such file or directory; choose another folder"):
        write_page(programs["digits"], tmp_path / "none" / "page.html")


@pytest.mark.parametrize("theme", [":root {", ':root[data-theme="dark"] {'], ids=["light", "dark"])
def test_text_has_the_contrast_of_wcag_aa(page: str, theme: str) -> None:
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", page.split(theme, 1)[1].split("}", 1)[0]))

    def luminance(colour: str) -> float:
        parts = [int(colours[colour][i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(a: str, b: str) -> float:
        low, high = sorted((luminance(a), luminance(b)))
        return (high + 0.05) / (low + 0.05)

    for ground in ("page", "surface", "sunken"):
        assert min(contrast(ink, ground) for ink in ("ink", "muted", "accent")) >= 4.5
        assert min(contrast(f"c{index}", ground) for index in range(8)) >= 3
    assert contrast("mark-ink", "mark") >= 4.5


@needs_chromium
def test_a_click_on_a_node_shows_its_ir_descriptors_and_source_nodes(page: str, tmp_path: Path) -> None:
    script = """node("step-1").click(); await pause();
        return {panel: text("#detail"), hash: location.hash, row: document.querySelector("#step-table tr.on").dataset.row};"""
    seen = ask(page, script, tmp_path)
    for part in (
        "conv2d",
        "Conv_0",
        "Relu_0",
        "torch.aten.convolution",
        "CONVOLUTION_FORWARD",
        "HOST_ONEDNN_ENGINE",
        "weight_0",
    ):
        assert part in seen["panel"]
    assert (seen["hash"], seen["row"]) == ("#step-1", "1")


@needs_chromium
def test_search_marks_what_it_finds_and_the_keyboard_walks_along_edges(page: str, tmp_path: Path) -> None:
    script = """
        const marked = () => [...document.querySelectorAll(".node.match")].map((found) => found.dataset.node);
        const chosen = () => document.querySelector(".node.on")?.dataset.node ?? null;
        key(document.body, "/");
        const field = document.activeElement;
        field.value = "MaxPool"; field.dispatchEvent(new Event("input"));
        const found = marked();
        key(field, "Enter"); await pause();
        const entered = chosen();
        node(entered).focus();
        key(document.activeElement, "ArrowDown"); await pause();
        const below = chosen();
        key(document.activeElement, "ArrowUp"); await pause();
        const above = chosen();
        key(document.body, "Escape");
        const closed = chosen();
        key(field, "Escape");
        return {field: field.id, found, entered, below, above, closed, cleared: marked()};"""
    seen = ask(page, script, tmp_path)
    facts = json.loads(Parsed(page).scripts[0])
    pools = [f"step-{index}" for index, step in enumerate(facts["steps"]) if "MaxPool" in step["nodes"]]
    assert (seen["field"], seen["found"], seen["entered"]) == ("search", pools, pools[0])
    first = len(facts["inputs"]) + int(pools[0].removeprefix("step-"))
    readers = [f"step-{target - len(facts['inputs'])}" for source, target in facts["edges"] if source == first]
    assert seen["below"] in readers
    assert (seen["above"], seen["closed"], seen["cleared"]) == (pools[0], None, [])


@needs_chromium
def test_all_steps_and_weights_are_in_tables_that_sort(page: str, tmp_path: Path) -> None:
    script = """
        const first = (table) => text(`#${table} tbody tr td`);
        const bytes = [...document.querySelectorAll("#weight-table th button")].find((button) => button.textContent === "Bytes");
        bytes.click();
        const count = (selector) => document.querySelectorAll(selector).length;
        const texts = (selector) => [...document.querySelectorAll(selector)].map((element) => element.textContent);
        return {
            steps: count("#step-table tbody tr"), nodes: count(".node"), first: first("weight-table"),
            weights: texts("#weight-table tbody tr td:first-child"), headings: texts("#step-table th"),
            sorted: bytes.closest("th").getAttribute("aria-sort")};"""
    seen = ask(page, script, tmp_path)
    data = json.loads(Parsed(page).scripts[0])
    assert seen["steps"] == len(data["steps"])
    assert seen["nodes"] == len(data["steps"]) + len(data["inputs"]) + len(data["outputs"])
    assert sorted(seen["weights"]) == sorted(weight["name"] for weight in data["weights"])
    assert seen["first"] == max(data["weights"], key=lambda weight: weight["bytes"])["name"]
    assert seen["sorted"] == "descending"
    assert "Time" not in seen["headings"]


@needs_chromium
def test_times_have_a_column_where_a_profile_is_given(programs: dict[str, Path], tmp_path: Path) -> None:
    count = len(read_facts(programs["digits"]).steps)
    page = page_html(read_facts(programs["digits"], times_us=[1000.0 * (index + 1) for index in range(count)]))
    script = """return {headings: [...document.querySelectorAll("#step-table th")].map((head) => head.textContent),
        first: text("#step-table tbody tr"), total: text("#numbers")};"""
    seen = ask(page, script, tmp_path)
    assert "Time" in seen["headings"]
    assert "1.00 ms" in seen["first"]
    assert f"{count * (count + 1) / 2:.1f} ms" in seen["total"]


@needs_chromium
def test_numbers_of_any_size_are_written_without_powers_of_ten(programs: dict[str, Path], tmp_path: Path) -> None:
    facts = read_facts(programs["digits"])
    times = [999.7, 2.5e6, *[1e6] * (len(facts.steps) - 2)]
    flops = [999_999, 3 * 10**15, *[7] * (len(facts.steps) - 2)]
    steps = [replace(step, flops=count) for step, count in zip(facts.steps, flops, strict=True)]
    page = page_html(replace(facts, steps=steps, times_us=times))
    script = """const rows = [...document.querySelectorAll("#step-table tbody tr")].map((row) => row.textContent);
        node("step-1").click(); return {rows, panel: text("#detail")};"""
    seen = ask(page, script, tmp_path)
    assert "1 M1.00 ms" in seen["rows"][0]
    assert "3,000 T2.50 s" in seen["rows"][1]
    assert "1,200,000 GFLOP/s" in seen["panel"]
    assert not re.search(r"\de\+\d", seen["panel"] + "".join(seen["rows"]))


@needs_chromium
def test_the_memory_map_shows_the_owners_of_the_peak(programs: dict[str, Path], tmp_path: Path) -> None:
    arena = read_facts(programs["encoder"]).arena
    script = """
        document.querySelector("#moment").value = 0; document.querySelector("#moment").dispatchEvent(new Event("input"));
        const start = text("#moment-text");
        document.querySelector("#to-peak").click();
        document.querySelector('[data-block="0"]').dispatchEvent(new PointerEvent("click", {bubbles: true})); await pause();
        return {start, peak: text("#moment-text"), owners: document.querySelectorAll("#owners tbody tr").length,
            blocks: document.querySelectorAll(".block").length, chosen: document.querySelector(".node.on").dataset.node};"""
    seen = ask(page_html(read_facts(programs["encoder"])), script, tmp_path)
    alive = [block for block in arena.blocks if block.first <= arena.peak_step <= block.last]
    assert seen["start"].startswith("Step 0")
    assert seen["peak"].startswith(f"Step {arena.peak_step}, the peak: ")
    assert (seen["owners"], seen["blocks"]) == (len(alive), len(arena.blocks))
    assert seen["chosen"] == f"step-{arena.blocks[0].step}"


@needs_chromium
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["page", "hostile_page"])
def test_the_page_never_scrolls_sideways(request: pytest.FixtureRequest, tmp_path: Path, name: str, width: int) -> None:
    script = """node("step-1").click(); await pause();
        const head = document.querySelector("#graph").getBoundingClientRect().top + scrollY;
        return {inner: innerWidth, whole: document.documentElement.scrollWidth, head};"""
    seen = ask(request.getfixturevalue(name), script, tmp_path, width=width)
    assert (seen["inner"], seen["whole"]) == (width, width)
    assert seen["head"] < TALLEST_HEAD_PIXELS


@needs_chromium
def test_hostile_names_are_shown_as_text(hostile_page: str, tmp_path: Path) -> None:
    script = """
        const panels = [];
        for (const element of document.querySelectorAll(".node")) { element.click(); panels.push(text("#detail")); }
        return {title: text("#model"), panels, bad: window.bad ?? null, images: document.images.length, tab: document.title};"""
    seen = ask(hostile_page, script, tmp_path)
    assert (seen["bad"], seen["images"]) == (None, 0)
    assert seen["title"] == seen["tab"] == HOSTILE[0]
    panels = "\n".join(seen["panels"])
    assert all(name in panels for name in HOSTILE)


@needs_chromium
def test_a_step_says_what_the_library_refused_in_its_place(small_model: Path, tmp_path: Path) -> None:
    program = hipdnn_mlir.compile(small_model)
    program.model.refused.append(Refused("g_0", "conv2d + tanh", "Conv_0+Tanh_0", "no engine <took> it", [1]))
    program.save(tmp_path / "small.hipdnn")
    script = """node("step-1").click(); const first = text("#detail"); node("step-2").click(); return [first, text("#detail")];"""
    first, second = ask(page_html(read_facts(tmp_path / "small.hipdnn")), script, tmp_path)
    assert "conv2d + tanh, which the library refused: no engine <took> it" in first
    assert "refused" not in second


@needs_chromium
def test_a_program_without_work_has_a_page(tmp_path: Path) -> None:
    b = GraphBuilder("nothing")
    model = b.model({b.op("Relu", b.input("x", ["rows", 4])): ["rows", 4]})
    hipdnn_mlir.compile(model).save(tmp_path / "nothing.hipdnn")
    facts = read_facts(tmp_path / "nothing.hipdnn", sizes={"rows": 0})
    assert (facts.steps, facts.weights, facts.arena.blocks) == ([], [], [])
    script = """node("output-0").click(); return [text("#detail"), text("#memory-text"), text("#made")];"""
    detail, memory, made = ask(page_html(facts), script, tmp_path)
    assert "0\u00d74" in detail
    assert "needs no memory" in memory
    assert "rows = 0" in made
    page = page_html(read_facts(tmp_path / "nothing.hipdnn", sizes={"rows": 2}))
    script = """return [text("#measure"), text("#detail h3:last-of-type"), text("#step-table th:last-child")];"""
    assert ask(page, script, tmp_path) == ["bytes moved", "Steps with the most bytes moved", "Relative bytes moved"]


@needs_chromium
@pytest.mark.parametrize("dark", [False, True])
def test_the_theme_is_the_systems_until_it_is_changed(page: str, tmp_path: Path, dark: bool) -> None:
    script = """const theme = () => getComputedStyle(document.body).backgroundColor;
        const before = theme(); document.querySelector("#theme").click(); return [before, theme()];"""
    light_and_dark = ["rgb(247, 247, 245)", "rgb(16, 18, 23)"]
    assert ask(page, script, tmp_path, dark=dark) == (light_and_dark[::-1] if dark else light_and_dark)


@needs_chromium
def test_an_address_opens_a_node_or_a_search(page: str, tmp_path: Path) -> None:
    script: Any = """return [document.querySelector(".node.on")?.dataset.node ?? null, document.querySelectorAll(".node.match").length];"""
    assert ask(page, script, tmp_path, fragment="#step-2") == ["step-2", 0]
    assert ask(page, script, tmp_path, fragment="#find=maxpool%20pool")[1] > 0
    assert ask(page, script, tmp_path, fragment="#step-99999") == [None, 0]
    assert ask(page, script, tmp_path, fragment="#find=100%") == [None, 0]
