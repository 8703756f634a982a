"""The table of options: what is made from it is current, and its rows are whole."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType

import pytest

import hipdnn_mlir_runtime.options
from hipdnn_mlir.report import options_doc, records_doc, sources_doc
from hipdnn_mlir_runtime.cli.main import all_commands
from hipdnn_mlir_runtime.cli.needs import NEEDS
from hipdnn_mlir_runtime.options import options_of

TABLE = json.loads(Path(hipdnn_mlir_runtime.options.__file__).with_name("options.json").read_text())
COMMANDS = {command.name for command in all_commands()}
PLACES = {"session", "runtime", "provider"} | COMMANDS
KEYS = {"in", "type", "default", "range", "choices", "form", "flag", "needs", "help"}


@pytest.mark.parametrize(
    ("module", "file"), [(made, file) for made in (options_doc, records_doc, sources_doc) for file in made.MADE]
)
def test_what_is_made_from_a_table_is_current(module: ModuleType, file: str, pytestconfig: pytest.Config) -> None:
    page = (pytestconfig.rootpath / file).read_text()
    assert page == options_doc.between(page, *module.MADE[file]), f"run: python -m {module.__name__}"


@pytest.mark.parametrize("name", TABLE)
def test_row_is_whole(name: str) -> None:
    row = TABLE[name]
    assert set(row) <= KEYS | set(row["in"])
    assert set(row["in"]) <= PLACES
    for place in row["in"]:
        option = options_of(place)[name]
        assert re.fullmatch(r"[`A-Z].*\.", option.help), option.help
        assert len(re.findall(r"\. [A-Z`]", option.help)) <= 2, "a few sentences at most"
        if option.type == "choice" and option.default is not None:
            assert option.default in option.choices
        if option.type == "integer" and option.default is not None:
            assert option.read(option.default) == option.default


def test_every_need_is_known_to_a_place(pytestconfig: pytest.Config) -> None:
    needs = {
        need for row in TABLE.values() for place in row["in"] for need in (row | row.get(place, {})).get("needs", ())
    }
    provider = (pytestconfig.rootpath / "runtime" / "src" / "ort_ep" / "options.cc").read_text()
    of_the_provider = set(re.findall(r'need [!=]= "(\w+)"', provider))
    assert needs == set(NEEDS) | of_the_provider
