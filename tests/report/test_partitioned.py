"""The ONNX file of a program for viewers: valid, complete, with the program's weights."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from safetensors.numpy import load_file

from hipdnn_mlir.report.page.facts import read_facts
from hipdnn_mlir.report.partitioned import DOMAIN, write_partitioned
from hipdnn_mlir_runtime.errors import HipdnnMlirError

Named = tuple[Path, dict[str, int]]


@pytest.fixture
def exported(named: Named, tmp_path: Path) -> Path:
    """The file, beside a copy of its program."""
    program = shutil.copy(named[0], tmp_path / named[0].name)
    write_partitioned(program, tmp_path / "partitioned.onnx", sizes=named[1])
    return tmp_path / "partitioned.onnx"


def test_the_file_is_valid(exported: Path) -> None:
    onnx.checker.check_model(exported, full_check=True)


def test_each_step_is_a_node_with_its_engine_and_source_nodes(named: Named, exported: Path) -> None:
    model = onnx.load(exported, load_external_data=False)
    facts = read_facts(named[0], sizes=named[1])
    nodes = model.graph.node[: len(facts.steps)]
    assert {node.op_type for node in model.graph.node[len(facts.steps) :]} <= {"parts"}
    for node, step in zip(nodes, facts.steps, strict=True):
        attributes = {made.name: onnx.helper.get_attribute_value(made) for made in node.attribute}
        assert node.domain == DOMAIN
        assert b"+".join(attributes["source_nodes"]).decode() == step.nodes
        assert b" + ".join(attributes["operations"]).decode() == step.operations
        assert (attributes["engine"].decode(), attributes["kind"].decode()) == (step.engine, step.kind)
        assert attributes.get("flops") == step.flops
    assert [(port.name, port.dims) for port in facts.inputs] == [
        (info.name, [dim.dim_value for dim in info.type.tensor_type.shape.dim]) for info in model.graph.input
    ]
    assert [port.name for port in facts.outputs] == [info.name for info in model.graph.output]


def test_weights_are_read_from_the_program(named: Named, exported: Path) -> None:
    model = onnx.load(exported)
    stored = load_file(named[0])
    for tensor in model.graph.initializer:
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), stored[tensor.name], strict=True)
    assert exported.stat().st_size < 100_000 + named[0].stat().st_size / 2


def test_a_folder_that_is_not_there_is_one_clear_error(programs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(HipdnnMlirError, match="cannot write: No such file or directory; choose another folder"):
        write_partitioned(programs["digits"], tmp_path / "none" / "out.onnx")
