"""What is explained of a PyTorch module is what compiling it does; its nodes are the ops that it is compiled as."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install '.[export]'")

from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402

import hipdnn_mlir  # noqa: E402
from hipdnn_mlir.report.compare import compare_targets  # noqa: E402
from hipdnn_mlir_runtime.errors import UnsupportedError  # noqa: E402
from pytorch import modules  # noqa: E402


class _Mixed(nn.Module):
    """A product that engines take, a convolution of a type that they do not, and an op without a row, twice."""

    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Conv1d(8, 16, 1, bias=False, dtype=torch.float64)

    def forward(self, x: Any) -> Any:
        y = x @ x
        values = torch.linalg.svdvals(y) + torch.linalg.svdvals(x)
        return values, self.wide(x.double()[None])


def test_every_op_has_one_place_when_the_module_compiles() -> None:
    module, x = modules.ConvNet().eval(), torch.randn(2, 3, 16, 20)
    found = hipdnn_mlir.explain(module, (x,), plans=True)
    operators = {node.name: (node.op, node.place) for node in found.nodes}
    assert operators["stem/convolution"] == ("aten.convolution", "graph")
    assert operators["depthwise/convolution_1"] == ("aten.convolution", "graph")
    normed = [place for op, place in operators.values() if "batch_norm" in op]
    assert normed == ["folded", "folded"]  # into the filters
    assert found.graphs[0].summary == "conv2d + add + relu"
    assert (found.rejects, found.no_program, found.plans_not_asked) == ([], "", "")
    assert found.coverage is not None
    assert (found.coverage.flops_percent, found.coverage.left_out) == (100.0, 0)


def test_dimensions_stay_dynamic_when_an_exported_program_says_so() -> None:
    shapes = ({0: Dim("batch")},)
    program = torch.export.export(modules.Perceptron().eval(), (torch.randn(3, 8),), dynamic_shapes=shapes)
    found = hipdnn_mlir.explain(program)
    assert list(found.samples) == ["x.0"]
    assert [graph.summary for graph in found.graphs] == ["matmul + add + gelu", "matmul + add"]


def test_ops_are_left_out_by_reason_when_they_have_no_place() -> None:
    module, arguments = _Mixed().eval(), (torch.randn(8, 8),)
    with pytest.raises(UnsupportedError) as raised:
        hipdnn_mlir.compile(module, arguments)
    found = hipdnn_mlir.explain(module, arguments)
    refused = {reject.node.partition(" (")[0] for reject in raised.value.rejects}  # behind it is the line
    assert {reject.node for reject in found.rejects} == refused
    assert {name for group in found.reject_groups for name in group.nodes} == refused
    svd, wide = found.reject_groups
    assert (svd.op, len(svd.nodes)) == ("torch.aten._linalg_svd", 2)
    assert all("test_explain.py:" in line for line in svd.lines)
    assert "torch.compile" in svd.advice
    assert "f64" in wide.reason
    places = {node.name: node.place for node in found.nodes}
    assert places["matmul"] == "graph"
    assert [name for name, place in places.items() if place == "left out"] == [*svd.nodes, *wide.nodes]
    assert found.coverage is not None
    assert found.coverage.flops_percent == pytest.approx(100 / 3)  # of 8 x 8 x 8 beside 8 x 8 x 16
    shown = str(found)
    assert shown.index("Left out:") < shown.index("test_explain.py:") < shown.index("graph_0")


def test_targets_are_compared_op_by_op() -> None:
    program = torch.export.export(modules.Encoder().eval(), modules.Encoder.arguments(2, 5))
    found = compare_targets(program, ["host", "sm_90"])
    attention = next(row for row in found.rows if row.op == "aten.scaled_dot_product_attention")
    assert set(attention.places) == {"host", "sm_90"}
    assert attention.places["host"] == "HOST_SDPA_ENGINE"


def test_error_is_that_of_compiling_when_a_module_cannot_be_imported() -> None:
    with pytest.raises(UnsupportedError, match=r"calls.*writes to it"):
        hipdnn_mlir.explain(modules.Counting(), (torch.randn(2),))
