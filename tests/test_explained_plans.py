"""Whether `explain` has asked the target's library for plans, and why not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import hipdnn_mlir
from hipdnn_mlir.placement import plans
from hipdnn_mlir_runtime.cli import main as cli
from hipdnn_mlir_runtime.errors import DeviceError, PlanRefusedError, RefusedPlan
from ort_ep.small_models import convolution

WORDS = "no engine for it"
REASON = "port 'x': cannot open libx.so"


class Device:
    """Refuses convolutions with an activation."""

    def __init__(self, target: str) -> None:
        self.target = target

    def runs(self, target: str) -> bool:
        """Whether the target is its own."""
        return target == self.target

    def build_plan(self, executable: str) -> dict[str, object]:
        """Refuse a graph, or not."""
        if "conv2d" in (summary := json.loads(executable)["summary"]) and "relu" in summary:
            raise PlanRefusedError([RefusedPlan("", "", "", WORDS)])
        return {}


@pytest.fixture
def afresh() -> Iterator[None]:
    """Forget what devices there are and what they refused, before and after."""
    caches = (plans._opened, plans._refusal)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.usefixtures("afresh")
def test_plans_of_dynamic_dimensions_are_asked_for_at_the_sizes_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "open_device", lambda *_, **__: Device("host"))
    model = convolution()
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    found = hipdnn_mlir.explain(model, plans=True)
    assert list(found.samples) == ["batch"]
    ((refused, became),) = [(plan.reason, plan.became) for plan in found.refused]
    assert refused == WORDS
    assert len(became) == 2
    assert found.plans_not_asked == ""
    assert hipdnn_mlir.explain(model).refused == []


@pytest.mark.usefixtures("afresh")
@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_the_reason_is_told_where_there_is_no_library(
    target: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(*_: object, **__: object) -> None:
        raise DeviceError(REASON)

    monkeypatch.setattr(plans, "open_device", missing)
    path = tmp_path / "m.onnx"
    onnx.save(convolution(), path)

    def shown(*options: str) -> str:
        cli.call(["explain", str(path), "--target", target, "--in-process", *options])
        return " ".join(capsys.readouterr().out.split())

    assert f"Plans were not asked for: {REASON}." in shown("--plans")
    assert "Plans were not asked for" not in shown()
    assert json.loads(shown("--plans", "--json"))["plans_not_asked"] == REASON
    assert json.loads(shown("--json"))["plans_not_asked"] == ""


@pytest.mark.usefixtures("afresh")
def test_a_device_of_another_architecture_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "open_device", lambda *_, **__: Device("gfx90a"))
    found = hipdnn_mlir.explain(convolution(), target="gfx942", plans=True)
    assert found.refused == []
    assert "Plans were not asked for: the device here is for target 'gfx90a'" in str(found)


def test_no_plans_are_asked_for_where_operations_are_rejected() -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (2, 3)) for name in "xy")
    nodes = [helper.make_node("NoSuchOperation", ["x"], ["y"], domain="example")]
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("example", 1)]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=imports)
    found = hipdnn_mlir.explain(model, plans=True)
    assert found.rejects
    assert found.plans_not_asked == "operations are rejected, so there is no program of the whole model"
