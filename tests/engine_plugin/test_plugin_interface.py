"""The functions of the plugin interface: what they answer, what they refuse, and in which words."""

from __future__ import annotations

import ctypes
import random
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flatbuffers import encode, number_types, table

import runtime_programs
from engine_plugin.graph_bytes import configuration, graph_bytes
from engine_plugin.loader import (
    BAD_PARAM,
    INVALID_VALUE,
    LOG_CALLBACK,
    NOT_APPLICABLE,
    SUCCESS,
    Data,
    Plugin,
    PluginError,
    engine_id,
)

ROWWISE = "HOST_ROWWISE_ENGINE"
ROWWISE_ID = engine_id(ROWWISE)
THREADS = "hipdnn_cpu.threads"
QUIET = LOG_CALLBACK(lambda *_: None)


def sum_graph(dims: tuple[int, ...] = (2, 3, 4, 5)) -> list[Any]:
    """C = a + b; uids 1, 2, 3."""
    graph = runtime_programs.Graph("add")
    a, b, c = (graph.tensor("f32", dims, role) for role in ("in", "in", "out"))
    graph.pointwise("ADD", [a, b], c)
    return list(graph.to_json()["descriptors"])


def convolution_graph() -> list[Any]:
    """Y = conv(x, w), padding 1; uids 1, 2, 3."""
    program = runtime_programs.convolution(np.zeros((4, 3, 3, 3), np.float32))
    return list(program.document["executables"][1]["descriptors"])


def operands(dims: tuple[int, ...] = (2, 3, 4, 5)) -> dict[int, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return {uid: rng.standard_normal(dims).astype(np.float32) for uid in (1, 2, 3)}


def test_engines_have_the_ids_that_their_names_give(plugin: Plugin) -> None:
    engines = plugin.engines()
    assert {ROWWISE, "HOST_ONEDNN_ENGINE", "HOST_SDPA_ENGINE"} <= set(engines.values())
    assert engines == {engine_id(name): name for name in engines.values()}


def test_plugin_without_the_host_library_says_what_is_missing(plugin_path: Path, tmp_path: Path) -> None:
    library = ctypes.CDLL(str(shutil.copy(plugin_path, tmp_path)))
    count, words = ctypes.c_uint32(), ctypes.c_char_p()
    assert library.hipdnnEnginePluginGetAllEngineIds(None, 0, ctypes.byref(count)) != SUCCESS
    library.hipdnnPluginGetLastErrorString(ctypes.byref(words))
    assert b"cannot open libhipdnn_host.so" in (words.value or b"")


def test_plugin_says_what_it_is(plugin: Plugin) -> None:
    assert plugin.text("hipdnnPluginGetName") == "hipdnn_cpu_plugin"
    assert plugin.text("hipdnnPluginGetVersion").count(".") == 2
    assert plugin.text("hipdnnPluginGetApiVersion") == "1.4.0"


def test_sum_runs(plugin: Plugin) -> None:
    graph = graph_bytes(sum_graph())
    assert plugin.applicable(graph) == [ROWWISE]
    arrays = operands()
    with plugin.context(configuration(ROWWISE_ID), graph) as context:
        context.execute(arrays)
    np.testing.assert_array_equal(arrays[3], arrays[1] + arrays[2])


def test_serialized_context_runs_again(plugin: Plugin) -> None:
    arrays = operands()
    with plugin.context(configuration(ROWWISE_ID, {THREADS: 1}), graph_bytes(sum_graph())) as context:
        serialized = context.serialize()
    with plugin.restored(serialized) as context:
        assert context.serialize() == serialized
        context.execute(arrays)
    np.testing.assert_array_equal(arrays[3], arrays[1] + arrays[2])


@pytest.mark.parametrize("broken", [b"", b"HDNNCPU", b"HDNNCPU2" + bytes(64), b"HDNNCPU1" + bytes(7)])
def test_other_bytes_are_no_context(plugin: Plugin, broken: bytes) -> None:
    with pytest.raises(PluginError) as error, plugin.restored(broken):
        pass
    assert error.value.status in (BAD_PARAM, INVALID_VALUE)


def test_other_shapes_run_with_the_same_context(plugin: Plugin) -> None:
    graph = graph_bytes(sum_graph(), takes_overrides=True)
    assert plugin.applicable(graph) == [ROWWISE]
    with plugin.context(configuration(ROWWISE_ID), graph) as context:
        for dims in ((1, 3, 4, 5), (7, 2), (1, 3, 4, 5)):
            arrays = operands(dims)
            context.execute(arrays, {uid: (dims, [s // 4 for s in array.strides]) for uid, array in arrays.items()})
            np.testing.assert_array_equal(arrays[3], arrays[1] + arrays[2])
        with pytest.raises(PluginError, match="tensor 9") as error:
            context.execute(operands(), {9: ((1,), (1,))})
    assert error.value.status == INVALID_VALUE


def test_details_are_a_flatbuffer_that_names_the_knob(plugin: Plugin) -> None:
    raw = plugin.details(ROWWISE_ID, graph_bytes(sum_graph()))
    root = table.Table(raw, encode.Get(number_types.UOffsetTFlags.packer_type, raw, 0))
    assert root.Get(number_types.Int64Flags, root.Pos + root.Offset(4)) == ROWWISE_ID
    knobs = root.Offset(6)
    assert root.VectorLen(knobs) == 1
    knob = table.Table(raw, root.Indirect(root.Vector(knobs)))
    assert knob.String(knob.Pos + knob.Offset(4)).decode() == THREADS
    assert [knob.Get(number_types.Uint8Flags, knob.Pos + knob.Offset(4 + 2 * slot)) for slot in (2, 4)] == [1, 1]
    constraint = table.Table(raw, knob.Indirect(knob.Pos + knob.Offset(4 + 2 * 5)))
    limits = [constraint.Get(number_types.Int64Flags, constraint.Pos + constraint.Offset(4 + 2 * s)) for s in range(3)]
    assert limits == [0, 1024, 1]
    notes = root.Offset(8)
    assert root.Get(number_types.Int32Flags, root.Vector(notes)) == 4  # plans can be serialized


@pytest.mark.parametrize(
    ("engine", "knobs", "words"),
    [
        (ROWWISE_ID, {THREADS: -1}, "expected 0 to 1024"),
        (ROWWISE_ID, {"global.fast": 1}, "no knob 'global.fast'"),
        (ROWWISE_ID, {"a\x7fb\N{GREEK SMALL LETTER ALPHA}": 1}, r"no knob 'a\?b\?\?'"),
        (7, {}, "no engine 7"),
    ],
)
def test_wrong_configuration_is_refused(plugin: Plugin, engine: int, knobs: dict[str, int], words: str) -> None:
    with pytest.raises(PluginError, match=words) as error:
        plugin.workspace_bytes(configuration(engine, knobs), graph_bytes(sum_graph()))
    assert error.value.status == INVALID_VALUE


def test_engine_that_does_not_take_the_graph_says_why(plugin: Plugin) -> None:
    with pytest.raises(PluginError, match="HOST_SDPA_ENGINE does not take the graph") as error:
        plugin.workspace_bytes(configuration(engine_id("HOST_SDPA_ENGINE")), graph_bytes(sum_graph()))
    assert error.value.status == NOT_APPLICABLE


def test_missing_memory_is_named(plugin: Plugin) -> None:
    arrays = operands()
    del arrays[2]
    with (
        plugin.context(configuration(ROWWISE_ID), graph_bytes(sum_graph())) as context,
        pytest.raises(PluginError, match="no pointer for uid 2") as error,
    ):
        context.execute(arrays)
    assert error.value.status == BAD_PARAM


def test_graphs_that_cannot_be_said_have_no_engines(plugin: Plugin) -> None:
    """An error would end the search among other plugins, so there is none; the log has the reason."""
    said: list[str] = []
    callback = LOG_CALLBACK(lambda _, line: said.append(line.decode()))
    plugin.call("hipdnnPluginSetLoggingCallback", callback)
    try:
        wrong = sum_graph()
        wrong[0] = [wrong[0][0], list(wrong[0][1])]
        wrong[0][1][3] = [*wrong[0][1][3][:2], [1, 2]]  # two strides for four dims
        assert plugin.applicable(graph_bytes(wrong)) == []
        twice = sum_graph()
        twice[1] = twice[0]
        assert plugin.applicable(graph_bytes(twice)) == []
    finally:
        plugin.call("hipdnnPluginSetLoggingCallback", QUIET)
    assert any("strides" in line for line in said)
    assert any("two tensors have the uid 1" in line for line in said)


def test_null_arguments_are_refused(plugin: Plugin) -> None:
    library, none = plugin.library, ctypes.c_void_p()
    graph, empty = ctypes.byref(Data.of(graph_bytes(sum_graph()))), ctypes.byref(Data())
    count, size = ctypes.byref(ctypes.c_uint32()), ctypes.byref(ctypes.c_size_t())
    for name, arguments in (
        ("hipdnnPluginGetName", [none]),
        ("hipdnnPluginGetType", [none]),
        ("hipdnnPluginSetLoggingCallback", [none]),
        ("hipdnnEnginePluginGetAllEngineIds", [none, 0, none]),
        ("hipdnnEnginePluginGetAllEngineIds", [none, 3, count]),
        ("hipdnnEnginePluginGetEngineName", [ctypes.c_int64(ROWWISE_ID), none]),
        ("hipdnnEnginePluginCreate", [none]),
        ("hipdnnEnginePluginDestroy", [none]),
        ("hipdnnEnginePluginSetStream", [none, none]),
        ("hipdnnEnginePluginGetApplicableEngineIds", [none, graph, none, 0, count]),
        ("hipdnnEnginePluginGetApplicableEngineIds", [plugin.handle, none, none, 0, count]),
        ("hipdnnEnginePluginGetApplicableEngineIds", [plugin.handle, empty, none, 0, count]),
        ("hipdnnEnginePluginGetEngineDetails", [plugin.handle, ctypes.c_int64(ROWWISE_ID), graph, none]),
        ("hipdnnEnginePluginDestroyEngineDetails", [plugin.handle, empty]),
        ("hipdnnEnginePluginGetWorkspaceSize", [plugin.handle, none, graph, size]),
        ("hipdnnEnginePluginCreateExecutionContext", [plugin.handle, empty, graph, none]),
        ("hipdnnEnginePluginDestroyExecutionContext", [plugin.handle, none]),
        ("hipdnnEnginePluginExecuteOpGraph", [plugin.handle, none, none, none, 0]),
    ):
        assert getattr(library, name)(*arguments) == BAD_PARAM, name
        assert "is null" in plugin.last_error(), name


def test_counting_needs_no_room(plugin: Plugin) -> None:
    count = ctypes.c_uint32()
    data = Data.of(graph_bytes(sum_graph()))
    status = plugin.library.hipdnnEnginePluginGetApplicableEngineIds(
        plugin.handle, ctypes.byref(data), None, 0, ctypes.byref(count)
    )
    assert (status, count.value) == (SUCCESS, 1)


@pytest.mark.parametrize("graph", [sum_graph(), convolution_graph()], ids=["sum", "convolution"])
def test_broken_graphs_are_errors(plugin: Plugin, graph: list[Any]) -> None:
    """Cut, or with bytes changed: an answer or an error, never a crash; what is cut is never taken."""
    whole = graph_bytes(graph)
    for length in range(0, len(whole), 3):
        _asked(plugin, whole[:length])
    rng = random.Random(0)
    refused = 0
    for _ in range(1500):
        changed = bytearray(whole)
        for _ in range(rng.choice((1, 1, 4))):
            changed[rng.randrange(len(changed))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        refused += _asked(plugin, bytes(changed)) != SUCCESS
    assert refused > 100


def _asked(plugin: Plugin, raw: bytes) -> int:
    data, count = Data.of(raw), ctypes.c_uint32()
    status = plugin.library.hipdnnEnginePluginGetApplicableEngineIds(
        plugin.handle, ctypes.byref(data), None, 0, ctypes.byref(count)
    )
    assert status in (SUCCESS, BAD_PARAM, INVALID_VALUE), plugin.last_error()
    return int(status)


def test_threads_share_a_context_and_have_errors_of_their_own(plugin: Plugin) -> None:
    wanted: list[str] = []
    wrong: list[str] = []

    def run(number: int) -> None:
        handle = plugin.create()
        for _ in range(20):
            arrays = operands((number + 1, 3, 4, 5)) if number % 2 == 0 else operands()
            if number % 2 == 0:
                shapes = {uid: (a.shape, [s // 4 for s in a.strides]) for uid, a in arrays.items()}
                context.execute(arrays, shapes, handle=handle)
            else:
                context.execute(arrays, handle=handle)
            if not np.array_equal(arrays[3], arrays[1] + arrays[2]):
                wrong.append("values")
            try:
                plugin.workspace_bytes(configuration(1000 + number), graph_bytes(sum_graph()))
            except PluginError as error:
                wanted.append(str(error))
                if f"no engine {1000 + number}" not in str(error):
                    wrong.append(str(error))
        plugin.call("hipdnnEnginePluginDestroy", handle)

    with plugin.context(configuration(ROWWISE_ID), graph_bytes(sum_graph(), takes_overrides=True)) as context:
        threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (len(wanted), wrong) == (120, [])
