"""Runs a program's steps one by one: graphs on an engine plugin, the rest on the host port."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from engine_plugin.graph_bytes import configuration, graph_bytes
from engine_plugin.loader import Array, Context, Plugin, engine_id
from hipdnn_mlir import Program
from hipdnn_mlir_runtime.abi import Attribute
from hipdnn_mlir_runtime.dtypes import BY_NAME
from runtime_programs import execute, launch
from stepwise import run_alone, run_stepwise

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
    """Runs executables as programs of one graph, on the engine that the compiler expects: each library orders its engines its own way.

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
        options = self._options | {"engine": executable.get("engine")}
        run_alone(whole, [o["role"] for o in operands], step, executables=[executable], target=self._target, **options)
        for operand, place, result in zip(operands, places, whole, strict=True):
            if operand["role"] == "out":  # the rest of the memory may be another step's
                _elements(executable, operand["uid"], place)[...] = _elements(executable, operand["uid"], result)


def run_steps(program: Program, feeds: Mapping[str, Array], run_graph: RunGraph) -> list[Array]:
    """Run a program compiled for `host` and return its outputs."""

    def run_step(code: dict[str, Any], step: dict[str, Any], places: list[Array]) -> None:
        if step["kind"] == "execute":
            run_graph(code["executables"][step["executable"]], places)
            return
        kernel = code["kernels"][step["kernel"]]
        roles = [tensor["role"] for tensor in kernel["tensors"]]
        run_alone(places, roles, launch(0, "kernel", *range(len(places))), kernels=[kernel], port="host")

    return run_stepwise(program, feeds, run_step)


def _elements(executable: dict[str, Any], uid: int, place: Array) -> Array:
    """The bytes of a graph's tensor in its memory; the last axis is an element."""
    for _, attributes in executable["descriptors"]:
        found = {name: value for name, _, value in attributes}
        if found.get(Attribute.TENSOR_UNIQUE_ID) == [uid]:
            size = ELEMENT_BYTES[found[Attribute.TENSOR_DATA_TYPE][0]]
            steps = [size * stride for stride in found[Attribute.TENSOR_STRIDES]]
            return np.lib.stride_tricks.as_strided(place, (*found[Attribute.TENSOR_DIMENSIONS], size), (*steps, 1))
    raise KeyError(uid)
