"""Performs requests, one at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hipdnn_mlir_runtime.errors import RefusedPlan

from .request import Request

if TYPE_CHECKING:
    import onnx

    from ..compiler.program import Lowered, Program
    from ..ir.imported import Weights
    from .remembered import Remembered


class Compiler:
    """Performs requests one at a time, and remembers between a placement and its compilations what it compiled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._remembered: Remembered | None = None

    def perform(self, request: Request, descriptors: Sequence[int] = ()) -> dict[str, Any]:
        """The result of a request, as `server` describes it; raises what the compiler raises."""
        if request.action == "hello":
            return _hello()
        with self._lock:
            if request.action == "place":
                return self._place(request, *descriptors)
            if request.model is None:
                return self._compile(request, *descriptors)
            return _OF_FILES[request.action](request)

    @property
    def _memory(self) -> Remembered:
        from .remembered import Remembered

        self._remembered = self._remembered or Remembered()
        return self._remembered

    def _place(self, request: Request, model: int) -> dict[str, Any]:
        from ..frontend import container
        from ..placement import place

        proto = container.read_model(model)
        placement = place(
            proto,
            target=request.target,
            precision=request.precision,
            mode=request.placement,
            dynamic_fallback=request.dynamic_fallback,
            buckets=request.buckets,
        )
        if request.explain_file:
            from ..report.explain_placement import explain_placement, is_placed, write_explanation

            if not is_placed(proto):
                title = proto.graph.name or "model"
                write_explanation(request.explain_file, title, explain_placement(proto, placement, request.target))
        for partition in placement.partitions:
            if partition.is_whole:
                self._memory.add(partition.model, _options(request), partition.lowered)
        return {
            "partitions": [{"nodes": part.nodes, "dynamic": part.is_dynamic} for part in placement.partitions],
            "rejects": [asdict(reject) for reject in placement.rejects],
            "dropped": [{"nodes": nodes, "reason": reason} for nodes, reason in placement.dropped],
            "contradicted": placement.contradicted,
            "graphs": placement.graphs,
            "nodes": placement.nodes,
        }

    def _compile(self, request: Request, model: int, output: int) -> dict[str, Any]:
        from ..frontend import container
        from ..program.file import write_to

        proto = container.read_model(model)
        weights = container.map_weights(model, proto)
        program = self._specializations(request, proto, weights)
        if program is None:
            program = _named(request, proto, self._lowered(request, proto)).with_weights(weights)
        with os.fdopen(output, "wb", closefd=False) as file:
            file.seek(0)
            file.truncate()
            write_to(file, program.model, program.weights, request.cache_key)
            written = file.tell()
        models = [made.program for made in program.model.specializations] or [program.model]
        return {
            "bytes": written,
            "steps": sum(len(model.steps) for model in models),
            "copies": sum(model.copies for model in models),
        }

    def _specializations(self, request: Request, proto: onnx.ModelProto, weights: Weights) -> Program | None:
        """The program for all combinations of buckets, where those are asked for and the model and the target need them."""
        from ..compiler.compile import has_code
        from ..compiler.specializations import compile_specializations
        from ..frontend.sizes.input_sizes import input_sizes
        from ..placement.plans import compiled_here

        if not request.buckets or request.shapes or not has_code(request.target):
            return None
        symbols = input_sizes(proto, {}, request.name).table.symbols
        if not symbols:
            return None
        program = compiled_here(
            lambda refused, previous: compile_specializations(
                proto,
                target=request.target,
                precision=request.precision,
                buckets={name: sizes for name, sizes in request.buckets.items() if name in symbols},
                previous=previous,
                refused=refused,
                dump_ir=request.dump_ir,
                where=request.name,
                external=weights,
            )
        )
        program.model.model["name"] = request.name
        return program

    def _lowered(self, request: Request, proto: onnx.ModelProto) -> Lowered:
        """The model compiled up to its weights, from memory where its placement left it there."""
        from ..compiler.lower import lower
        from ..frontend.container import stand_ins
        from ..frontend.prepare import with_shapes
        from ..frontend.shape_inference import static_dims
        from ..placement.plans import lowered_here

        declared = {value.name: static_dims(value) for value in proto.graph.input}
        given = cast("dict[str, list[int]]", request.shapes)  # a host sends those of a run
        shapes = {n: tuple(dims) for n, dims in given.items() if declared.get(n) != tuple(dims)}
        if shapes:  # of one run: whatever the model calls them, each dim has its own
            proto = with_shapes(proto, shapes)
        found = None if shapes or request.dump_ir else self._memory.find(proto, _options(request))
        return found or lowered_here(
            lambda refused: lower(
                proto,
                target=request.target,
                precision=request.precision,
                refused=refused,
                dump_ir=request.dump_ir,
                where=request.name,
                external=stand_ins(proto),
            )
        )


def _options(request: Request) -> str:
    """What a placement and its compilations have to agree in."""
    return f"{request.target} {request.precision}"


def _explain_file(request: Request) -> dict[str, Any]:
    import hipdnn_mlir

    if request.targets:
        from ..report.compare import compare_targets

        return compare_targets(
            _model_of(request),
            request.targets,
            precision=request.precision,
            shapes=request.shapes,
            buckets=request.buckets,
        ).to_dict()
    return hipdnn_mlir.explain(
        _model_of(request),
        target=request.target,
        precision=request.precision,
        shapes=request.shapes,
        buckets=request.buckets,
        plans=request.plans,
    ).to_dict()


def _compile_file(request: Request) -> dict[str, Any]:
    import hipdnn_mlir

    assert request.output is not None
    program = hipdnn_mlir.compile(
        _model_of(request),
        target=request.target,
        precision=request.precision,
        shapes=request.shapes,
        buckets=request.buckets,
        page_rows=request.page_rows,
        last_valid=request.last_valid,
        refused=[RefusedPlan(*fields) for fields in request.refused],
        dump_ir=None if request.dump_ir is None else Path(request.dump_ir),
    )
    program.save(Path(request.output))
    return {}


def _region_texts(request: Request) -> dict[str, Any]:
    from ..report.page.torch_ir import region_texts

    return region_texts(
        _model_of(request),
        digest=request.digest,
        target=request.target,
        precision=request.precision,
        shapes=request.shapes,
    )


_OF_FILES = {"explain": _explain_file, "compile": _compile_file, "regions": _region_texts}


def _model_of(request: Request) -> Path:
    assert request.model is not None
    return Path(request.model)


def _hello() -> dict[str, Any]:
    from ..targets.table import TARGETS
    from ..versions import producers

    versions = producers()
    return {"version": versions["hipdnn_mlir"], "producers": versions, "targets": list(TARGETS)}


def _named(request: Request, proto: onnx.ModelProto, lowered: Lowered) -> Lowered:
    """The compiled model under the request's name, its inputs and outputs in the model's order."""
    names = ([value.name for value in values] for values in (proto.graph.input, proto.graph.output))
    program = lowered.model.in_order(*names)
    return replace(lowered, model=replace(program, model={**program.model, "name": request.name}))
