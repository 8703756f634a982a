"""Outlining: ops of one block join regions of one kind as long as the whole is taken, and each region becomes one op with a body."""

from dataclasses import dataclass, field
from typing import Any, Protocol

from torch_mlir import ir

from ..errors import Reject
from ..ops.emitter import Operand
from ..ops.row import OpRow
from ..ops.spec import OpView, TensorType
from .blocks import body, clone_into
from .dialect import MAX_INPUTS, MAX_RESULTS, create_graph, create_yield
from .partition import Partition
from .types import is_tensor, tensor_type
from .view import defining, is_constant, lookup

MAX_OPS = 32
Found = tuple[OpRow, OpView]


class Taker(Protocol):
    """What decides which ops form a region."""

    @property
    def operation(self) -> str:
        """Name of the op that a region becomes."""

    @property
    def writes_all(self) -> bool:
        """Whether a region of one call has all results of its op, read or not."""

    @property
    def looks_ahead(self) -> bool:
        """Whether an op that is refused may be taken together with the op that reads it."""

    def joins(self, found: Found) -> bool:
        """Whether an op may be in a region at all."""

    def absorbs(self, found: Found, /) -> bool:
        """Whether an op joins the region of its only reader rather than one of its own."""

    def is_second_choice(self, region: "Region", /) -> bool:
        """Whether a region is taken, but better without what it absorbs."""

    def take(
        self,
        pairs: list[tuple[OpView, list[Any]]],
        operands: dict[Any, Operand],
        results: list[tuple[Any, TensorType]],
    ) -> dict[str, Any] | Reject:
        """Attributes of the region's op where the region is taken; arguments as for `emit_region`."""


@dataclass
class Region:
    """Ops chosen for one region (in program order), the values they read and yield, and attributes of the op it becomes."""

    ops: list[Any]
    inputs: list[Any]
    results: list[Any]
    attributes: dict[str, Any] = field(default_factory=dict)


def outline(function: Any, taker: Taker) -> None:
    """Group a function's ops into regions, each as large as the taker allows, and outline them. Constants are cloned inside."""
    operations = body(function)
    views = {op: lookup(op) for op in operations}
    partition = Partition(operations)
    regions: dict[int, Region] = {}
    for operation in operations:
        found = views[operation]
        if isinstance(found, Reject) or not taker.joins(found):
            continue
        chosen = _place(operation, partition, views, taker)
        if chosen is None:
            continue
        for member in chosen.ops:
            regions.pop(partition.group(member), None)
        regions[partition.merge(chosen.ops)] = chosen
    if regions:
        _outline(function, partition, regions, taker.operation)


def _place(operation: Any, partition: Partition, views: dict[Any, Any], taker: Taker) -> Region | None:
    """The largest region that `operation` can join, or one of its own, or None where it is not taken.

    Where the taker looks ahead, an op that no producer's region takes may enter one together with its only reader.
    """
    absorbed = [source for value in operation.operands if (source := _absorbable(value, views, taker)) is not None]
    producers = partition.producers(operation)
    choices = [producers] if len(producers) > 1 else []
    choices += [[producer] for producer in producers] + [[]]
    tries = [(groups, [*absorbed, operation]) for groups in choices]
    tries += [(groups, [operation]) for groups in choices] if absorbed else []
    reader = _only_reader(operation, views, taker) if taker.looks_ahead else None
    if reader is not None:  # behind what joins a producer, before a region of its own
        ahead = [(groups, [operation, reader]) for groups in choices]
        tries = [t for t in tries if t[0]] + ahead + [t for t in tries if not t[0]]
    second: Region | None = None
    for groups, more in tries:
        members = partition.members(groups, more)
        if len(members) > MAX_OPS or not partition.is_convex(members):
            continue
        region = try_members(members, views, taker)
        if isinstance(region, Reject):
            continue
        if not taker.is_second_choice(region):
            return region
        second = second or region
        if not absorbed:
            break
    return second


def _only_reader(operation: Any, views: dict[Any, Any], taker: Taker) -> Any | None:
    """The op that alone reads an op's only result, where it may join a region."""
    if len(operation.results) != 1:
        return None
    readers = [use.owner.operation for use in operation.results[0].uses]
    if len(readers) != 1:
        return None
    found = views.get(readers[0])
    return readers[0] if found is not None and not isinstance(found, Reject) and taker.joins(found) else None


def _absorbable(value: Any, views: dict[Any, Any], taker: Taker) -> Any | None:
    """The op behind an operand where it can be absorbed (a border) and nothing else reads it."""
    source = defining(value)
    if source is None or len(list(value.uses)) != 1:
        return None
    found = views.get(source)
    if found is None or isinstance(found, Reject):
        return None
    return source if taker.absorbs(found) else None


def try_members(members: list[Any], views: dict[Any, Any], taker: Taker) -> Region | Reject:
    """Ask the taker about `members` as one region."""
    inside = set(members)
    inputs: dict[Any, Operand] = {}
    for member in members:
        for value in member.operands:
            if is_tensor(value.type) and value not in inputs and not _is_inside(value, inside):
                kind = tensor_type(value.type)
                if not kind.is_static:
                    return Reject(views[member][1].label, "dynamic-shape", f"operand {kind}", views[member][1].node)
                inputs[value] = Operand(kind.static_dims(), kind.dtype)
    results = [result for op in members for result in op.results if _leaves(result, inside, views, taker)]
    if len(inputs) > MAX_INPUTS or len(results) > MAX_RESULTS or not results:
        return Reject(views[members[-1]][1].label, "size", f"{len(inputs)} operands and {len(results)} results")
    pairs = [(views[op][1], list(op.results)) for op in members]
    taken = taker.take(pairs, inputs, [(value, tensor_type(value.type)) for value in results])
    return taken if isinstance(taken, Reject) else Region(members, list(inputs), results, taken)


def _leaves(result: Any, inside: set[Any], views: dict[Any, Any], taker: Taker) -> bool:
    """Whether a region has a result: something outside reads it, or the kernel writes it all the same."""
    is_written = taker.writes_all and views[result.owner.operation][0].call is not None
    return is_written or any(use.owner.operation not in inside for use in result.uses)


def _is_inside(value: Any, inside: set[Any]) -> bool:
    source = defining(value)
    return source is not None and (source in inside or _is_cloned(source))


def _is_cloned(source: Any) -> bool:
    """Constants that live inside regions: lists, numbers, literals of one element of rank 0."""
    if source.name == "torch.vtensor.literal":
        return not tensor_type(source.results[0].type).dims
    return is_constant(source)


def _outline(function: Any, partition: Partition, regions: dict[int, Region], name: str) -> None:
    """Rewrite the block: groups in dependency order, each region as one op."""
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
        _build(region, terminator, replaced, name)
        erased += region.ops
    for operation in reversed(erased):
        operation.erase()


def _build(region: Region, terminator: Any, replaced: dict[Any, Any], name: str) -> None:
    """One region in front of the terminator; `replaced` maps results of earlier regions to what took their place."""
    inputs = [replaced.get(value, value) for value in region.inputs]
    location = ir.Location.fused([op.location for op in region.ops]) if len(region.ops) > 1 else region.ops[0].location
    with ir.InsertionPoint(terminator):
        made = create_graph(inputs, [], [value.type for value in region.results], location, name=name)
    for key, attribute in region.attributes.items():
        made.attributes[key] = attribute
    block = made.regions[0].blocks.append(*[v.type for v in inputs], arg_locs=[location] * len(inputs))
    mapping = dict(zip(inputs, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for operation in region.ops:
            clone_into(operation, mapping)
        create_yield([mapping[value] for value in region.results], location)
    for value, result in zip(region.results, made.results, strict=True):
        value.replace_all_uses_with(result)
        replaced[value] = result
