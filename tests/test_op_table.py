"""Every row of the op table: what it says it takes becomes one graph, what it refuses is a Reject with its rule."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from torch_mlir import ir
from torch_mlir.dialects import func, memref

import torch_ir
from hipdnn_mlir.ir.blocks import functions, operations
from hipdnn_mlir.ir.claims import ENGINE, rejects
from hipdnn_mlir.ir.dialect import ExecuteOp, LaunchKernelOp, make_context
from hipdnn_mlir.ir.view import row_name
from hipdnn_mlir.ir.views import VIEWS
from hipdnn_mlir.ops.registry import ONNX
from hipdnn_mlir.ops.samples import KERNEL, MOVEMENT, Sample, samples
from hipdnn_mlir.ops.table import rows
from hipdnn_mlir.passes.pipeline import OFFLOAD_STEPS, Runner
from hipdnn_mlir.targets.host import HOST

SAMPLES = samples()
ACCEPTED = [sample for sample in SAMPLES if sample.rule is None]
REJECTED = [sample for sample in SAMPLES if sample.rule is not None]


@pytest.fixture(scope="module")
def context() -> Iterator[ir.Context]:
    context = make_context()
    with context, ir.Location.unknown():
        yield context


def offloaded(sample: Sample) -> ir.Module:
    """The sample's module after hipdnn-offload."""
    module = ir.Module.parse(torch_ir.module(sample))
    Runner().run(module.operation, OFFLOAD_STEPS[:1])
    return module


@pytest.mark.parametrize("name", rows())
def test_row_has_samples_of_both_kinds(name: str) -> None:
    kinds = {sample.rule is None for sample in SAMPLES if sample.op == name}
    assert kinds == {True, False}, f"hipdnn_mlir/ops/samples: {name} needs an accepted and a rejected sample"


def test_every_sample_is_of_a_row() -> None:
    assert {sample.op for sample in SAMPLES} == set(rows())


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize("sample", ACCEPTED, ids=str)
def test_accepted_sample_is_placed_whole(sample: Sample) -> None:
    module = offloaded(sample)
    (main,) = functions(module.operation)
    graphs = [op for op in operations(main) if op.name == "hipdnn.graph"]
    launches = [op for op in operations(main) if op.name == "hipdnn.launch"]
    left = [op for op in operations(main) if row_name(op) == sample.op]
    assert rejects(module.operation, HOST) == []
    if sample.engine == MOVEMENT:
        assert (len(graphs), len(launches), len(left)) == (0, 0, 1)
    elif sample.engine == KERNEL:
        assert (len(graphs), len(launches), len(left)) == (0, 1, 0)
    else:
        assert (len(graphs), len(launches), len(left)) == (1, 0, 0)
        assert str(ir.StringAttr(graphs[0].attributes[ENGINE]).value) == sample.engine


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize("sample", ACCEPTED, ids=str)
def test_accepted_sample_lowers_to_calls_and_copies(sample: Sample) -> None:
    module = offloaded(sample)
    Runner().run(module.operation, OFFLOAD_STEPS[1:])
    (main,) = functions(module.operation)
    left = {type(op) for op in operations(main)}
    assert left <= {ExecuteOp, LaunchKernelOp, func.ReturnOp, memref.AllocOp, memref.CopyOp, *VIEWS}


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize("sample", REJECTED, ids=str)
def test_rejected_sample_names_its_rule(sample: Sample) -> None:
    found = rejects(offloaded(sample).operation, HOST)
    assert [(reject.op, reject.rule) for reject in found] == [(sample.op.removeprefix(ONNX), sample.rule)]
    assert found[0].reason
