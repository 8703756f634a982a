"""hipdnn-graph-to-executable: graphs on buffers become backend descriptors; equal ones share one `hipdnn.executable`."""

import json
from typing import Any

from torch_mlir import ir

from ..codegen import generate_graph
from ..codegen.program_kernels import create_kernel, generated_code
from ..errors import PassError, Reject, UnsupportedError
from ..ir.blocks import body, functions
from ..ir.buffers import storage
from ..ir.claims import ENGINE, LAST_RESORT
from ..ir.copies import packed_operands, packed_results
from ..ir.dialect import create_execute, create_launch_kernel, input_count
from ..ir.module_pass import module_pass
from ..ir.region import region_graph
from ..ir.split_region import REFUSED, split
from ..ir.view import node_name
from ..ops.graph import Graph, summary
from ..targets.target import Engine, Target, find_target


@module_pass("hipdnn-graph-to-executable")
def graph_to_executable(module: Any, *, target: str = "host", refused: str = "") -> None:
    """Emit every graph with the strides its buffers have and replace it by a call of an executable named after its descriptors' digest.

    A graph that the library has refused is split, then left to the engine of last resort, then an error.
    An operand whose strides the graph cannot take is copied to C order first; a result whose strides it cannot write is copied from there.

    Before: `"hipdnn.graph"(%x, %w, %y) ({...})` on memrefs.
    After: `"hipdnn.executable"() {sym_name = "g_...", descriptors = "[...]"}` once, and
    `"hipdnn.execute"(%x, %w, %y) {executable = @g_...}`.

    Args:
        module: the module operation.
        target: whose engines to ask.
        refused: names of executables that the library on this machine has refused, separated by commas.
    """
    library = find_target(target)
    names = frozenset(refused.split(",")) - {""}
    made: dict[str, Any] = {}
    for function in functions(module):
        for operation in body(function):
            if operation.name == "hipdnn.graph":
                _compile(module, operation, library, names, made)


def _compile(module: Any, operation: Any, target: Target, refused: frozenset[str], made: dict[str, Any]) -> None:
    graph = _emit(operation)
    for repack in (packed_operands, packed_results):
        if isinstance(graph, Reject) or not _is_as_claimed(operation, graph, target):
            for copy in repack(operation):
                _compile(module, copy, target, refused, made)
            graph = _emit(operation)
    if isinstance(graph, Reject):
        raise PassError(f"a claimed region does not compile: {graph}")
    engine = _engine(module, operation, graph, target, refused, made)
    if engine is None:
        return
    graph = engine.conform(graph)
    symbol = graph.name
    architecture = target.architecture if engine.is_generated else None
    if symbol not in made:
        made[symbol] = (
            _executable(module, symbol, graph, engine.name, operation)
            if architecture is None
            else _kernel(module, symbol, graph, architecture, operation)
        )
    create_call = create_execute if architecture is None else create_launch_kernel
    ins = input_count(operation)
    with ir.InsertionPoint(operation):
        call = create_call(symbol, list(operation.operands)[:ins], list(operation.operands)[ins:], operation.location)
    if REFUSED in operation.attributes:
        call.attributes[REFUSED] = operation.attributes[REFUSED]
    operation.erase()


def _is_as_claimed(operation: Any, graph: Graph, target: Target) -> bool:
    """Whether an engine takes the graph with the strides it has, and a library where one claimed the region."""
    engine = target.engine_for(graph)
    if engine is None and LAST_RESORT in operation.attributes:
        return target.last_resort(graph) is not None
    return engine is not None and (
        not engine.is_last_resort or LAST_RESORT in operation.attributes or ENGINE not in operation.attributes
    )


def _engine(
    module: Any, operation: Any, graph: Graph, target: Target, refused: frozenset[str], made: dict[str, Any]
) -> Engine | None:
    """The engine of a region; None where the library refused it and its halves are compiled in its place."""
    claimed = target.engine_for(graph)
    if claimed is None and LAST_RESORT in operation.attributes:
        claimed = target.last_resort(graph)
        if claimed is not None:
            return claimed
    if claimed is None:
        raise PassError(f"no engine takes a claimed region: {target.why_not(graph)}")
    engine = target.engine_for(graph, refused)
    if engine is not claimed:
        _mark_refused(operation, claimed.conform(graph).name)
    if engine is not None:
        return engine
    halves = split(operation, lambda head, tail: _are_taken(operation, head, tail, target, refused))
    if halves is not None:
        for half in halves:
            _compile(module, half, target, refused, made)
        return None
    engine = target.last_resort(graph)
    if engine is None:
        reason = "the library refuses it, alone and with what follows, and there is no kernel for it"
        raise UnsupportedError([Reject(summary(graph), "plan", reason, node_name(operation))], target=target.name)
    return engine


def _mark_refused(operation: Any, name: str) -> None:
    """Remember that the library refused a region."""
    known = list(ir.ArrayAttr(operation.attributes[REFUSED])) if REFUSED in operation.attributes else []
    operation.attributes[REFUSED] = ir.ArrayAttr.get([*known, ir.StringAttr.get(name)])


def _are_taken(operation: Any, head: Any, tail: Any, target: Target, refused: frozenset[str]) -> bool:
    """Whether a library still takes the first half of a region, and anything the second."""
    first, second = _emit(head), _emit(tail)
    if isinstance(first, Reject) or isinstance(second, Reject):
        return False
    claimed, engine = target.engine_for(first), target.engine_for(first, refused)
    if engine is not claimed and claimed is not None:
        _mark_refused(operation, claimed.conform(first).name)
    return engine is not None and not engine.is_generated and target.engine_for(second, refused) is not None


def _emit(operation: Any) -> Graph | Reject:
    stored = [storage(value) for value in operation.operands]
    ins = input_count(operation)
    return region_graph(operation, stored[:ins], stored[ins:])


def _executable(module: Any, symbol: str, graph: Graph, engine: str, operation: Any) -> Any:
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]), operation.location:
        return ir.Operation.create(
            "hipdnn.executable",
            attributes={
                "sym_name": ir.StringAttr.get(symbol),
                "summary": ir.StringAttr.get(summary(graph)),
                "engine": ir.StringAttr.get(engine),
                "operands_json": ir.StringAttr.get(_compact(graph.operands())),
                "descriptors": ir.StringAttr.get(_compact(graph.descriptors())),
            },
        )


def _kernel(module: Any, symbol: str, graph: Graph, architecture: str, operation: Any) -> Any:
    """A graph that no library runs, as a generated kernel; its tensors with a pointer are the kernel's, ins first as in every kernel."""
    operands = sorted(graph.operands(), key=lambda operand: operand["role"] == "out")
    order = [operands.index(operand) for operand in graph.operands()]
    tensors = dict(graph.by_uid())
    made = generated_code(lambda found: generate_graph(graph, found), architecture, order, operation)
    (code,) = made.launches
    description = {
        "function": "graph",
        "tensors": [
            {
                "role": operand["role"],
                "dtype": tensors[operand["uid"]].dtype.name,
                "dims": tensors[operand["uid"]].dims,
                "strides": tensors[operand["uid"]].strides,
            }
            for operand in operands
        ],
        "attributes": {},
        "code": code,
    }
    places = [{"role": operand["role"], "index": operand["index"]} for operand in operands]
    return create_kernel(module, symbol, summary(graph), places, description, operation, made.overwrites)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
