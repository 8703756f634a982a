"""ONNX Runtime's own profile has an event for each step, where it is new enough to take events of a provider."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import parser

from .sessions import KINDS, session_options
from .small_models import alternating, convolution, inputs_for, without_one_form

HAS_EVENTS = tuple(int(part) for part in ort.__version__.split(".")[:2]) >= (1, 25)
"""Whether this ONNX Runtime takes events of a provider."""

Event = Mapping[str, Any]

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def profiled(
    model: onnx.ModelProto, cache: Path, folder: Path, *, kind: str = "cpu", **options: str
) -> ort.InferenceSession:
    settings = session_options(cache, kind=kind, options={"placement": "maximal", **options})
    settings.enable_profiling = True
    settings.profile_file_prefix = str(folder / "profile")
    session = ort.InferenceSession(model.SerializeToString(), sess_options=settings)
    session.disable_fallback()
    return session


def events_of(session: ort.InferenceSession) -> list[Event]:
    return json.loads(Path(session.end_profiling()).read_text())


def steps_in(events: list[Event]) -> list[Event]:
    """The steps' events, in the order of time."""
    return sorted((event for event in events if event["cat"] == "Kernel"), key=lambda event: event["ts"])


def nodes_in(events: list[Event]) -> Iterator[Event]:
    """ONNX Runtime's own events of the fused nodes."""
    return (event for event in events if event["cat"] == "Node" and "HipDNN" in event["args"]["provider"])


needs_events = pytest.mark.skipif(not HAS_EVENTS, reason=f"ONNX Runtime {ort.__version__} takes no events of providers")


@needs_events
@pytest.mark.parametrize("kind", KINDS)
def test_every_step_has_an_event_within_its_node(kind, cache, tmp_path) -> None:
    model = alternating(3)
    session = profiled(model, cache, tmp_path, kind=kind)
    runs = 4
    for _ in range(runs):
        session.run(None, inputs_for(model))
    events = events_of(session)
    steps, nodes = steps_in(events), sorted(nodes_in(events), key=lambda event: event["ts"])
    assert [step["name"] for step in steps] == ["relu0", "relu1", "relu2"] * runs
    for step, node in zip(steps, nodes, strict=True):
        assert step["ph"] == "X"
        assert (step["pid"], step["tid"]) == (node["pid"], node["tid"])
        assert node["name"].startswith(step["args"]["node"])
        # Both clocks are read by either side, and times are cut to microseconds.
        assert node["ts"] - 20 <= step["ts"]
        assert step["ts"] + step["dur"] <= node["ts"] + node["dur"] + 20
        assert step["args"]["operations"] == "relu"
        assert step["args"]["kind"] == "execute"
        assert step["args"]["engine"]
        assert abs(float(step["args"]["duration_us"]) - step["dur"]) <= 1


@needs_events
def test_steps_of_one_run_follow_each_other(cache, tmp_path) -> None:
    body = "c = Conv<pads=[1,1,1,1]>(x, w) p = MaxPool<kernel_shape=[2,2]>(c) y = Sigmoid(p)"
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 17]> g (float[1,3,8,8] x, float[4,3,3,3] w) => (float[1,4,7,7] y) {{ {body} }}'
    )
    session = profiled(model, cache, tmp_path)
    session.run(None, inputs_for(model))
    steps = steps_in(events_of(session))
    assert len(steps) > 1
    for before, after in pairwise(steps):
        assert before["ts"] + before["dur"] == after["ts"]


@needs_events
def test_names_that_json_cannot_hold_do_not_break_the_file(cache, tmp_path) -> None:
    model = convolution()
    for node in model.graph.node:
        node.name = '{"' + node.name + "\\"
    session = profiled(model, cache, tmp_path)
    session.run(None, inputs_for(model))
    assert any("conv" in step["name"] and "relu" in step["name"] for step in steps_in(events_of(session)))


@needs_events
def test_programs_of_all_sizes_have_events(cache, tmp_path) -> None:
    model = without_one_form()
    session = profiled(model, cache, tmp_path)
    session.run(None, inputs_for(model, batch=2))
    assert steps_in(events_of(session))


@needs_events
def test_runs_of_several_threads_are_told_apart(cache, tmp_path) -> None:
    model = alternating(1)
    session = profiled(model, cache, tmp_path)
    feeds = inputs_for(model)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: session.run(None, feeds), range(40)))
    events = events_of(session)
    steps, nodes = steps_in(events), list(nodes_in(events))
    assert len(steps) == len(nodes) == 40
    assert sorted(step["tid"] for step in steps) == sorted(node["tid"] for node in nodes)


def test_profile_is_written_whatever_the_version(cache, tmp_path) -> None:
    model = convolution()
    feeds = inputs_for(model)
    session = profiled(model, cache, tmp_path)
    want = session.run(None, feeds)[0]
    events = events_of(session)
    assert list(nodes_in(events))
    assert bool(steps_in(events)) == HAS_EVENTS
    np.testing.assert_array_equal(session.run(None, feeds)[0], want)


def test_own_file_and_profile_of_onnx_runtime_go_together(cache, tmp_path) -> None:
    model = alternating(1)
    session = profiled(model, cache, tmp_path, profile=str(tmp_path / "own.json"))
    session.run(None, inputs_for(model))
    assert len(steps_in(events_of(session))) == HAS_EVENTS
    del session
    (node,) = json.loads((tmp_path / "own.json").read_text())["nodes"]
    assert node["runs"] == 1
