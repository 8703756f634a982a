"""hipdnn-graph-to-executable: graphs on buffers become backend descriptors; equal ones share one `hipdnn.executable`."""

from itertools import product
from typing import Any

from torch_mlir import ir

from hipdnn_mlir_runtime.dtypes import I4, U8
from hipdnn_mlir_runtime.errors import PassError, Reject, UnsupportedError

from ..ir.blocks import functions, operations
from ..ir.buffers import storage
from ..ir.claims import ENGINE, LAST_RESORT
from ..ir.constants import constant_name
from ..ir.copies import copied_operands, copied_results, is_loose, is_strided
from ..ir.dialect import ExecutableOp, ExecuteOp, GraphOp, KernelOp, LaunchKernelOp, create_call
from ..ir.kernels import create_kernel
from ..ir.module_pass import module_pass
from ..ir.region import region_graph
from ..ir.split_region import REFUSED, split
from ..ir.view import node_name
from ..ir.views import base
from ..ops.few_rows import is_few_rows
from ..ops.graph import Graph, Tensor, summary
from ..targets.table import find_target
from ..targets.target import Engine, Target


@module_pass("hipdnn-graph-to-executable")
def graph_to_executable(module: ir.Operation, *, target: str = "host", refused: str = "") -> None:
    """Emit every graph with the strides its buffers have and replace it by a call of an executable named after its descriptors' digest.

    A graph that the library has refused is split, then left to the engine of last resort, then an error.
    An operand whose strides or address the graph cannot take is copied to C order first; a result that it cannot write in place is copied
    from there.

    Before: `hipdnn.graph ins(%x, %w) outs(%y) ({...})` on memrefs.
    After: `"hipdnn.executable"() {sym_name = "g_...", descriptors = "[...]"}` once, and
    `hipdnn.execute @g_... ins(%x, %w) outs(%y)`.

    Args:
        module: the module operation.
        target: whose engines to ask.
        refused: names of executables that the library on this machine has refused, separated by commas.
    """
    library = find_target(target)
    names = frozenset(refused.split(",")) - {""}
    made: dict[str, ir.OpView] = {}
    for function in functions(module):
        for op in operations(function):
            if isinstance(op, GraphOp):
                _compile(module, op, library, names, made)


def _compile(
    module: ir.Operation, region: GraphOp, target: Target, refused: frozenset[str], made: dict[str, ir.OpView]
) -> None:
    graph = _emit(region)
    causes = (is_loose, is_strided) if target.alignment > 1 else (is_strided,)
    for cause, copies in product(causes, (copied_operands, copied_results)):
        if isinstance(graph, Reject) or not _is_as_claimed(region, graph, target):
            for copy in copies(region, cause):
                _compile(module, copy, target, refused, made)
            graph = _emit(region)
    if isinstance(graph, Reject):
        raise PassError(f"a region that an engine should take does not compile: {graph}")
    engine = _engine(module, region, graph, target, refused, made)
    if engine is None:
        return
    graph = engine.conform(graph)
    symbol = graph.name
    constants = _constants(region) if engine.is_generated and is_few_rows(graph) else []
    if constants:
        symbol += "_" + "_".join(map(str, constants))  # code is written for what is constant
    architecture = target.architecture if engine.is_generated else None
    if symbol not in made:
        made[symbol] = (
            _executable(module, symbol, graph, engine.name, region)
            if architecture is None
            else _kernel(module, symbol, graph, architecture, region, constants)
        )
    kind = ExecuteOp if architecture is None else LaunchKernelOp
    with ir.InsertionPoint(region):
        call = create_call(kind, symbol, region.ins, region.outs, region.location)
    if REFUSED in region.attributes:
        call.attributes[REFUSED] = region.attributes[REFUSED]
    region.erase()


def _is_as_claimed(region: GraphOp, graph: Graph, target: Target) -> bool:
    """Whether an engine takes the graph with the strides it has, and a library where one claimed the region."""
    engine = target.engine_for(graph)
    if engine is None and LAST_RESORT in region.attributes:
        return target.last_resort(graph) is not None
    return engine is not None and (
        not engine.is_last_resort or LAST_RESORT in region.attributes or ENGINE not in region.attributes
    )


def _engine(
    module: ir.Operation,
    region: GraphOp,
    graph: Graph,
    target: Target,
    refused: frozenset[str],
    made: dict[str, ir.OpView],
) -> Engine | None:
    """The engine of a region; None where the library refused it and its halves are compiled in its place."""
    claimed = target.engine_for(graph)
    if claimed is None and LAST_RESORT in region.attributes:
        claimed = target.last_resort(graph)
        if claimed is not None:
            return claimed
    if claimed is None:
        raise PassError(f"no engine takes a claimed region: {target.why_not(graph)}")
    engine = target.engine_for(graph, refused)
    if engine is not claimed:
        _mark_refused(region, claimed.conform(graph).name)
    if engine is not None:
        return engine
    halves = split(region, lambda head, tail: _are_taken(region, head, tail, target, refused))
    if halves is not None:
        for half in halves:
            _compile(module, half, target, refused, made)
        return None
    engine = target.last_resort(graph)
    if engine is None:
        reason = "the library refuses it with and without its epilogue, and there is no fallback kernel"
        raise UnsupportedError([Reject(summary(graph), "plan", reason, node_name(region))], target=target.name)
    return engine


def _mark_refused(region: GraphOp, name: str) -> None:
    """Remember that the library refused a region."""
    known = region.attributes.get(REFUSED, ())
    region.attributes[REFUSED] = ir.ArrayAttr.get([*known, ir.StringAttr.get(name)])


def _are_taken(region: GraphOp, head: GraphOp, tail: GraphOp, target: Target, refused: frozenset[str]) -> bool:
    """Whether a library still takes the first half of a region, and anything the second."""
    first, second = _emit(head), _emit(tail)
    if isinstance(first, Reject) or isinstance(second, Reject):
        return False
    claimed, engine = target.engine_for(first), target.engine_for(first, refused)
    if engine is not claimed and claimed is not None:
        _mark_refused(region, claimed.conform(first).name)
    return engine is not None and not engine.is_generated and target.engine_for(second, refused) is not None


def _emit(region: GraphOp) -> Graph | Reject:
    return region_graph(region, list(map(storage, region.ins)), list(map(storage, region.outs)))


def _executable(module: ir.Operation, symbol: str, graph: Graph, engine: str, region: GraphOp) -> ExecutableOp:
    texts = map(ir.StringAttr.get, (symbol, summary(graph), engine, graph.operands_json, graph.descriptors_json))
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]), region.location:
        return ExecutableOp(*texts)


def _constants(region: GraphOp) -> list[int]:
    """Numbers of the operands that are constant."""
    return [number for number, value in enumerate(region.ins) if constant_name(base(value)) is not None]


def _kernel(
    module: ir.Operation, symbol: str, graph: Graph, architecture: str, region: GraphOp, constants: list[int]
) -> KernelOp:
    """A graph that no library runs, as a generated kernel; its tensors with a pointer are the kernel's, ins first as in every kernel."""
    from ..codegen import generate_graph
    from ..codegen.program_kernels import generated_code

    operands = sorted(graph.operands(), key=lambda operand: operand["role"] == "out")
    order = [operands.index(operand) for operand in graph.operands()]
    tensors = dict(graph.by_uid())
    made = generated_code(lambda found: generate_graph(graph, found, constants), architecture, order, region)
    (code,) = made.launches
    description = {
        "function": "graph",
        "tensors": [{"role": operand["role"], **_stored(tensors[operand["uid"]])} for operand in operands],
        "attributes": {},
        "code": code,
    }
    places = [{"role": operand["role"], "index": operand["index"]} for operand in operands]
    return create_kernel(module, symbol, summary(graph), places, description, region, made.overwrites)


def _stored(tensor: Tensor) -> dict[str, Any]:
    """A tensor as a kernel's description has it; two elements of 4 bits are a byte."""
    if tensor.dtype is not I4:
        return {"dtype": tensor.dtype.name, "dims": tensor.dims, "strides": tensor.strides}
    dims = tuple(size // 2 if step == 1 else size for size, step in zip(tensor.dims, tensor.strides, strict=True))
    return {"dtype": U8.name, "dims": dims, "strides": tuple(max(step // 2, 1) for step in tensor.strides)}
