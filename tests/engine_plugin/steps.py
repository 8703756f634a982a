"""Runs a program's steps one by one: graphs on an engine plugin, the rest on the host port."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from engine_plugin.graph_bytes import configuration, graph_bytes
from engine_plugin.loader import Array, Context, Plugin, engine_id
from hipdnn_mlir import Program, Session
from hipdnn_mlir_runtime.abi import Attribute
from hipdnn_mlir_runtime.dtypes import BY_NAME
from runtime_programs import ProgramText, argument, document, execute, launch

ELEMENT_BYTES = {int(kind.hipdnn): kind.bytes for kind in BY_NAME.values() if kind.hipdnn is not None}
RunGraph = Callable[[dict[str, Any], Sequence[Array]], None]
"""Runs an executable on the bytes of its operands, where it also writes results."""


class OnPlugin:
    """Runs executables on a plugin: on the engine that the compiler expects, else on the first that takes the graph."""

    def __init__(self, plugin: Plugin, stack: ExitStack) -> None:
        self._plugin, self._stack = plugin, stack
        self._contexts: dict[str, Context] = {}

    def __call__(self, executable: dict[str, Any], places: Sequence[Array]) -> None:
        context = self._contexts.get(executable["name"])
        if context is None:
            graph = graph_bytes(executable["descriptors"])
            engines = self._plugin.applicable(graph)
            assert executable.get("engine", engines[0]) in engines
            chosen = configuration(engine_id(executable.get("engine", engines[0])))
            assert self._plugin.workspace_bytes(chosen, graph) >= 0
            context = self._stack.enter_context(self._plugin.context(chosen, graph))
            self._contexts[executable["name"]] = context
        context.execute({o["uid"]: place for o, place in zip(executable["operands"], places, strict=True)})


class OnPort:
    """Runs executables as programs of one graph.

    Args:
        target: that the programs say.
        options: of the sessions.
    """

    def __init__(self, target: str = "host", **options: Any) -> None:
        self._target, self._options = target, options

    def __call__(self, executable: dict[str, Any], places: Sequence[Array]) -> None:
        operands = executable["operands"]
        whole = [place.copy() for place in places]
        step = execute(0, "graph", *range(len(places)))
        _alone(whole, [o["role"] for o in operands], [executable], [], step, self._target, self._options)
        for operand, place, result in zip(operands, places, whole, strict=True):
            if operand["role"] == "out":  # the rest of the memory may be another step's
                _elements(executable, operand["uid"], place)[...] = _elements(executable, operand["uid"], result)


def run_steps(program: Program, feeds: Mapping[str, Array], run_graph: RunGraph) -> list[Array]:
    """Run a program compiled for `host` and return its outputs."""
    code = json.loads(program.text)
    memory = [np.full(buffer["bytes"], 0xCD, np.uint8) for buffer in code["buffers"]]
    for port in code["inputs"]:
        memory[port["buffer"]] = _bytes(feeds[port["name"]])
    for constant in code["constants"]:
        memory[constant["buffer"]] = _bytes(program.tensors[constant["tensor"]])
    for step in code["steps"]:
        if step["kind"] == "copy":
            source, target, size = step["src"], step["dst"], step["bytes"]
            taken = memory[source["buffer"]][source["offset"] : source["offset"] + size]
            memory[target["buffer"]][target["offset"] : target["offset"] + size] = taken
            continue
        places = [memory[place["buffer"]][place["offset"] :] for place in step["operands"]]
        if step["kind"] == "execute":
            run_graph(code["executables"][step["executable"]], places)
        else:
            kernel = code["kernels"][step["kernel"]]
            roles = [tensor["role"] for tensor in kernel["tensors"]]
            _alone(places, roles, [], [kernel], launch(0, "kernel", *range(len(places))), "host", {"port": "host"})
    return [memory[o["buffer"]].view(BY_NAME[o["dtype"]].numpy).reshape(o["dims"]) for o in code["outputs"]]


def _elements(executable: dict[str, Any], uid: int, place: Array) -> Array:
    """The bytes of a graph's tensor in its memory; the last axis is an element."""
    for _, attributes in executable["descriptors"]:
        found = {name: value for name, _, value in attributes}
        if found.get(Attribute.TENSOR_UNIQUE_ID) == [uid]:
            size = ELEMENT_BYTES[found[Attribute.TENSOR_DATA_TYPE][0]]
            steps = [size * stride for stride in found[Attribute.TENSOR_STRIDES]]
            return np.lib.stride_tricks.as_strided(place, (*found[Attribute.TENSOR_DIMENSIONS], size), (*steps, 1))
    raise KeyError(uid)


def _bytes(array: Any) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).copy()


def _alone(
    places: Sequence[Array],
    roles: Sequence[str],
    executables: list[Any],
    kernels: list[Any],
    step: dict[str, Any],
    target: str,
    options: Mapping[str, Any],
) -> None:
    """One step as a program; its operands are bytes, which results are written to."""
    ports = [argument(f"p{i}", "u8", [place.size], i) for i, place in enumerate(places)]
    buffers = [("input" if role == "in" else "output", place.size) for role, place in zip(roles, places, strict=True)]
    ins = [port for port, role in zip(ports, roles, strict=True) if role == "in"]
    outs = [port for port, role in zip(ports, roles, strict=True) if role == "out"]
    text = document(executables, ins, outs, [], buffers, [step], kernels) | {"target": target}
    feeds = {port["name"]: places[port["buffer"]] for port in ins}
    results = Session(ProgramText(text), **options).run(None, feeds)
    for port, result in zip(outs, results, strict=True):
        places[port["buffer"]][:] = result
