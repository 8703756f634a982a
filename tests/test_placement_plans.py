"""What a library refuses to plan is not placed, whatever the engine tables say."""

from __future__ import annotations

import json

import pytest

import hipdnn_mlir
from hipdnn_mlir.placement import place, plans
from hipdnn_mlir_runtime.errors import DeviceError, PlanRefusedError, RefusedPlan
from ort_ep.small_models import convolution


class PickyDevice:
    """Refuses graphs with an operation, by the name of their summary."""

    def __init__(self, word: str) -> None:
        self._word = word

    def build_plan(self, executable: str) -> dict[str, object]:
        if self._word in json.loads(executable)["summary"]:
            raise PlanRefusedError([RefusedPlan("", "", "", f"no engine takes {self._word}")])
        return {}


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch):
    def use(found: object) -> None:
        monkeypatch.setattr(plans, "_device", lambda *_: found)
        plans._refusal.cache_clear()

    yield use
    plans._refusal.cache_clear()


def test_refused_node_leaves_its_region(device) -> None:
    device(PickyDevice("relu"))
    placement = place(convolution(), mode="maximal")
    assert [partition.nodes for partition in placement.partitions] == [["conv"]]
    assert {(reject.node, reject.rule) for reject in placement.rejects} == {("relu", plans.RULE)}
    assert "no engine takes relu" in placement.rejects[0].reason


def test_everything_refused_is_nothing_placed(device) -> None:
    device(PickyDevice(""))
    placement = place(convolution(), mode="maximal")
    assert placement.partitions == []
    assert {reject.node for reject in placement.rejects} == {"conv", "relu"}


class FullDevice:
    """Has no memory to build a plan with."""

    def build_plan(self, executable: str) -> dict[str, object]:
        raise DeviceError("no memory")


def test_a_device_without_memory_is_no_refusal(device) -> None:
    device(FullDevice())
    with pytest.raises(DeviceError, match="no memory") as raised:
        hipdnn_mlir.explain(convolution(), plans=True)
    assert not isinstance(raised.value, PlanRefusedError)
    placement = place(convolution(), mode="maximal")
    assert {(reject.rule, reject.reason) for reject in placement.rejects} == {("device", "no memory")}


def test_missing_library_refuses_nothing(device) -> None:
    device(None)
    assert [partition.nodes for partition in place(convolution()).partitions] == [["conv", "relu"]]


def test_library_of_this_machine_takes_what_the_tables_claim() -> None:
    (partition,) = place(convolution()).partitions
    assert plans.refused_plans(partition.lowered.model) == []
