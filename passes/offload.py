"""hipdnn-offload: outline every maximal region that one engine of the target takes as a `hipdnn.graph`."""

from dataclasses import dataclass
from typing import Any

from torch_mlir import ir

from hipdnn_mlir.dialect import MAX_INPUTS, MAX_RESULTS, create_graph, create_yield
from hipdnn_mlir.errors import Reject
from hipdnn_mlir.ir_types import is_tensor, tensor_type
from hipdnn_mlir.ir_view import defining, is_constant, lookup
from hipdnn_mlir.ops.emitter import Operand, emit_region
from hipdnn_mlir.ops.spec import OpRow, OpView, Refusal
from hipdnn_mlir.target import Target, find_target

from .partition import Partition
from .registration import body, clone_into, functions, module_pass

ENGINE = "hipdnn.engine"
MAX_OPS = 32


@dataclass
class Region:
    """Ops chosen for one graph (in program order), the values they read and yield, and the engine that takes it."""

    ops: list[Any]
    inputs: list[Any]
    results: list[Any]
    engine: str


@module_pass("hipdnn-offload")
def offload(module: Any, *, target: str = "host") -> None:
    """Group torch ops into `hipdnn.graph` regions: an op joins its producers' regions as long as an engine takes the whole.

    The test is a dry run of the emission that later compiles the region, checked against the target's engine tables. Constants are cloned
    inside. What no engine takes stays where it is.

    Before: `%y = torch.aten.convolution %x, %w, ...`; `%z = torch.aten.relu %y`.
    After: `%z = "hipdnn.graph"(%x, %w) ({ ^bb0(%a, %b): ...convolution...; ...relu...; "hipdnn.yield"(%r) })`.

    Args:
        module: the module operation.
        target: whose engines to ask.
    """
    library = find_target(target)
    for function in functions(module):
        if "sym_visibility" not in function.attributes:
            _offload(function, library)


def rejects(module: Any, target: Target) -> list[Reject]:
    """Every op left outside regions that is not a data movement either, with the reason."""
    found = []
    for function in functions(module):
        if "sym_visibility" in function.attributes:
            continue
        for operation in body(function):
            if operation.name.startswith("hipdnn.") or operation.name == "func.return" or is_constant(operation):
                continue
            entry = lookup(operation)
            reject = entry if isinstance(entry, Reject) else _why_outside(operation, *entry, target)
            if reject is not None:
                found.append(reject)
    return found


def _why_outside(operation: Any, row: OpRow, op: OpView, target: Target) -> Reject | None:
    """None for a data movement that legalization takes; else the reason."""
    if row.move is None:
        region = try_region([operation], {operation: (row, op)}, target)
        return region if isinstance(region, Reject) else None
    try:
        row.move(op)
    except Refusal as refusal:
        return Reject(op.name, refusal.rule, refusal.reason, op.node)
    return None


def _offload(function: Any, target: Target) -> None:
    operations = body(function)
    views = {op: lookup(op) for op in operations}
    partition = Partition(operations)
    regions: dict[int, Region] = {}
    for operation in operations:
        entry = views[operation]
        if isinstance(entry, Reject) or entry[0].emit is None or entry[0].move is not None:
            continue
        chosen = _place(operation, partition, views, target)
        if chosen is None:
            continue
        for member in chosen.ops:
            regions.pop(partition.group(member), None)
        regions[partition.merge(chosen.ops)] = chosen
    _outline(function, partition, regions)


def _place(operation: Any, partition: Partition, views: dict[Any, Any], target: Target) -> Region | None:
    """The largest region that `operation` can join, or one of its own, or None where no engine takes it."""
    absorbed = [source for value in operation.operands if (source := _absorbable(value, views)) is not None]
    producers = partition.producers(operation)
    choices = [producers] if len(producers) > 1 else []
    choices += [[producer] for producer in producers] + [[]]
    tries = [(groups, absorbed) for groups in choices] + ([(groups, []) for groups in choices] if absorbed else [])
    for groups, borders in tries:
        members = partition.members(groups, [*borders, operation])
        if len(members) > MAX_OPS or not partition.is_convex(members):
            continue
        region = try_region(members, views, target)
        if isinstance(region, Region):
            return region
    return None


def _absorbable(value: Any, views: dict[Any, Any]) -> Any | None:
    """The op behind an operand where it can be absorbed (a border) and nothing else reads it."""
    source = defining(value)
    if source is None or len(list(value.uses)) != 1:
        return None
    entry = views.get(source)
    if entry is None or isinstance(entry, Reject):
        return None
    return source if entry[0].emit is not None and entry[0].move is not None else None


def try_region(members: list[Any], views: dict[Any, Any], target: Target) -> Region | Reject:
    """Dry-run the emission of `members` as one graph and ask the target's engines."""
    inside = set(members)
    inputs: dict[Any, Operand] = {}
    for member in members:
        for value in member.operands:
            if is_tensor(value.type) and value not in inputs and not _is_inside(value, inside):
                kind = tensor_type(value.type)
                if not kind.is_static:
                    return Reject(member.name, "dynamic-shape", f"operand {kind}")
                inputs[value] = Operand(kind.static_dims(), kind.dtype)
    results = [r for op in members for r in op.results if any(use.owner.operation not in inside for use in r.uses)]
    if len(inputs) > MAX_INPUTS or len(results) > MAX_RESULTS or not results:
        return Reject(members[-1].name, "size", f"{len(inputs)} operands and {len(results)} results")
    pairs = [(views[op][1], list(op.results)) for op in members]
    try_results = [(value, tensor_type(value.type)) for value in results]
    graph = emit_region(pairs, inputs, try_results)
    if isinstance(graph, Reject):
        return graph
    engine = target.engine_for(graph)
    if engine is None:
        return Reject(members[-1].name, "engine", target.why_not(graph), views[members[-1]][1].node)
    return Region(members, list(inputs), results, engine.name)


def _is_inside(value: Any, inside: set[Any]) -> bool:
    source = defining(value)
    return source is not None and (source in inside or _is_cloned(source))


def _is_cloned(source: Any) -> bool:
    """Constants that live inside regions: lists, numbers, literals of one element of rank 0."""
    if source.name == "torch.vtensor.literal":
        return not tensor_type(source.results[0].type).dims
    return is_constant(source)


def _outline(function: Any, partition: Partition, regions: dict[int, Region]) -> None:
    """Rewrite the block: groups in dependency order, each region as one graph."""
    block = function.regions[0].blocks[0]
    terminator = block.operations[len(block.operations) - 1].operation
    erased: list[Any] = []
    replaced: dict[Any, Any] = {}
    for group in partition.ordered_groups():
        region = regions.get(group)
        if region is None:
            for operation in partition.members([group], []):
                if operation != terminator:
                    operation.move_before(terminator)
            continue
        _build(region, terminator, replaced)
        erased += region.ops
    for operation in reversed(erased):
        operation.erase()


def _build(region: Region, terminator: Any, replaced: dict[Any, Any]) -> None:
    """One graph in front of the terminator; `replaced` maps results of earlier regions to what took their place."""
    inputs = [replaced.get(value, value) for value in region.inputs]
    location = ir.Location.fused([op.location for op in region.ops]) if len(region.ops) > 1 else region.ops[0].location
    with ir.InsertionPoint(terminator):
        graph = create_graph(inputs, [], [value.type for value in region.results], location)
    graph.attributes[ENGINE] = ir.StringAttr.get(region.engine)
    block = graph.regions[0].blocks.append(*[v.type for v in inputs], arg_locs=[location] * len(inputs))
    mapping = dict(zip(inputs, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for operation in region.ops:
            clone_into(operation, mapping)
        create_yield([mapping[value] for value in region.results], location)
    for value, result in zip(region.results, graph.results, strict=True):
        value.replace_all_uses_with(result)
        replaced[value] = result
