"""Outlining: ops of one block join regions of one kind as long as the whole is taken, and each region becomes one op with a body."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torch_mlir import ir
from torch_mlir.dialects import func, torch

from hipdnn_mlir_runtime.errors import Reject

from ..ops.emitter import Operand
from ..ops.row import OpRow
from ..ops.spec import OpView, TensorType
from .blocks import clone_into, operations
from .dialect import MAX_INPUTS, MAX_RESULTS, RegionOp, create_region, create_yield
from .partition import Partition
from .terms import fused_location
from .types import is_tensor, tensor_type
from .view import is_constant, lookup, producer, readers

MAX_OPS = 32
Found = tuple[OpRow, OpView]
Views = Mapping[ir.OpView, Found]
"""What `lookup` finds, of the ops that it does not reject."""


class Taker(Protocol):
    """What decides which ops form a region."""

    @property
    def kind(self) -> type[RegionOp]:
        """The op that a region becomes."""

    @property
    def writes_all(self) -> bool:
        """Whether a region of one call has all results of its op, read or not."""

    @property
    def looks_ahead(self) -> bool:
        """Whether an op that is refused may be taken together with the op that reads it."""

    def joins(self, found: Found) -> bool:
        """Whether an op may be in a region at all."""

    def has_siblings(self, region: "Region", /) -> bool:
        """Whether a region may become one with another that reads the same values."""

    def absorbs(self, found: Found, /) -> bool:
        """Whether an op joins the region of its only reader rather than one of its own."""

    def begins(self, op: ir.OpView, /) -> bool:
        """Whether an op leaves the regions of what it reads alone: its readers take it."""

    def is_second_choice(self, region: "Region", /) -> bool:
        """Whether a region is taken, but better without what it absorbs."""

    def take(
        self,
        pairs: list[tuple[OpView, list[ir.Value]]],
        operands: dict[ir.Value, Operand],
        results: list[tuple[ir.Value, TensorType]],
    ) -> dict[str, ir.Attribute] | Reject:
        """Attributes of the region's op where the region is taken; arguments as for `emit_region`."""


@dataclass
class Region:
    """Ops chosen for one region (in program order), the values they read and yield, and attributes of the op it becomes."""

    ops: list[ir.OpView]
    inputs: list[ir.Value]
    results: list[ir.Value]
    attributes: dict[str, ir.Attribute] = field(default_factory=dict)


def outline(function: func.FuncOp, taker: Taker) -> None:
    """Group a function's ops into regions, each as large as the taker allows, and outline them. Constants are cloned inside."""
    ops = operations(function)
    views = {op: found for op in ops if not isinstance(found := lookup(op), Reject)}
    partition = Partition(ops)
    regions: dict[int, Region] = {}
    for op in ops:
        if op not in views or not taker.joins(views[op]):
            continue
        chosen = _place(op, partition, views, taker)
        if chosen is None:
            continue
        for member in chosen.ops:
            regions.pop(partition.group(member), None)
        regions[partition.merge(chosen.ops)] = chosen
    for group in list(regions):
        if group in regions:
            _take_in(regions[group], partition, views, taker, regions)
    for group in list(regions):  # what is joined has the number of the later one
        if group in regions:
            _join_sibling(regions[group], partition, views, taker, regions)
    if regions:
        _outline(function, partition, regions, taker.kind)


def _place(op: ir.OpView, partition: Partition, views: Views, taker: Taker) -> Region | None:
    """The largest region that an op can join, or one of its own, or None where it is not taken.

    Where the taker looks ahead, an op that no producer's region takes may enter one together with its only reader.
    """
    absorbed = [source for value in op.operands if (source := _absorbable(value, views, taker)) is not None]
    feeding = [] if taker.begins(op) else partition.producers(op)
    choices = [feeding] if len(feeding) > 1 else []
    choices += [[group] for group in feeding] + [[]]
    tries = [(groups, [*absorbed, op]) for groups in choices]
    tries += [(groups, [op]) for groups in choices] if absorbed else []
    reader = _only_reader(op, views, taker) if taker.looks_ahead else None
    if reader is not None:  # behind what joins a producer, before a region of its own
        ahead = [(groups, [op, reader]) for groups in choices]
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


def _take_in(region: Region, partition: Partition, views: Views, taker: Taker, regions: dict[int, Region]) -> None:
    """Join a region with what feeds several of its ops and nothing else: those could not join it one by one."""
    for group in {group for op in region.ops for group in partition.producers(op)} & regions.keys():
        source = regions[group]
        reading = [reader for value in source.results for reader in readers(value)]
        if source is region or len(reading) < 2 or not set(region.ops).issuperset(reading):
            continue
        if _join(group, region, partition, views, taker, regions):
            return


def _join_sibling(region: Region, partition: Partition, views: Views, taker: Taker, regions: dict[int, Region]) -> None:
    """Join a region with a later one that reads half of the same values: they are read once, and one kernel starts instead of two."""
    if not taker.has_siblings(region):
        return
    last = region.ops[-1]
    reading = {partition.group(reader) for value in region.inputs for reader in readers(value)} & regions.keys()
    for group in sorted(reading):
        other = regions[group]
        shared = set(other.inputs).intersection(region.inputs)
        if group <= partition.group(last) or 2 * len(shared) < min(len(other.inputs), len(region.inputs)):
            continue
        if taker.has_siblings(other) and _join(group, region, partition, views, taker, regions):
            return


def _join(
    group: int, region: Region, partition: Partition, views: Views, taker: Taker, regions: dict[int, Region]
) -> bool:
    """Make one region of a group and a region where that is taken."""
    members = partition.members([group], region.ops)
    if len(members) > MAX_OPS or not partition.is_convex(members):
        return False
    joined = try_members(members, views, taker)
    if isinstance(joined, Reject) or taker.is_second_choice(joined):
        return False
    for member in members:
        regions.pop(partition.group(member), None)
    regions[partition.merge(members)] = joined
    return True


def _only_reader(op: ir.OpView, views: Views, taker: Taker) -> ir.OpView | None:
    """The op that alone reads an op's only result, where it may join a region."""
    reading = readers(op.result) if len(op.results) == 1 else []
    if len(reading) != 1 or reading[0] not in views:
        return None
    return reading[0] if taker.joins(views[reading[0]]) else None


def _absorbable(value: ir.Value, views: Views, taker: Taker) -> ir.OpView | None:
    """The op behind an operand where it can be absorbed (a border) and nothing else reads it."""
    source = producer(value)
    if source not in views or len(readers(value)) != 1:
        return None
    return source if taker.absorbs(views[source]) else None


def try_members(members: list[ir.OpView], views: Views, taker: Taker) -> Region | Reject:
    """Ask the taker about `members` as one region."""
    inside = set(members)
    inputs: dict[ir.Value, Operand] = {}
    for member in members:
        for value in member.operands:
            if is_tensor(value.type) and value not in inputs and not _is_inside(value, inside):
                kind = tensor_type(value.type)
                if not kind.is_static:
                    return Reject(views[member][1].label, "dynamic-shape", f"operand {kind}", views[member][1].node)
                inputs[value] = Operand(kind.static_dims(), kind.dtype)
    results = [result for op in members for result in op.results if _leaves(result, inside, views, taker)]
    if len(inputs) > MAX_INPUTS or len(results) > MAX_RESULTS or not results:
        return Reject(
            views[members[-1]][1].label,
            "size",
            f"{len(inputs)} operands and {len(results)} results, expected at most {MAX_INPUTS} and 1 to {MAX_RESULTS}",
        )
    pairs = [(views[op][1], list(op.results)) for op in members]
    taken = taker.take(pairs, inputs, [(value, tensor_type(value.type)) for value in results])
    return taken if isinstance(taken, Reject) else Region(members, list(inputs), results, taken)


def _leaves(result: ir.Value, inside: set[ir.OpView], views: Views, taker: Taker) -> bool:
    """Whether a region has a result: something outside reads it, or the kernel writes it all the same."""
    is_written = taker.writes_all and views[result.owner][0].call is not None
    return is_written or not inside.issuperset(readers(result))


def _is_inside(value: ir.Value, inside: set[ir.OpView]) -> bool:
    source = producer(value)
    return source is not None and (source in inside or _is_cloned(source))


def _is_cloned(source: ir.OpView) -> bool:
    """Constants that live inside regions: lists, numbers, literals of one element of rank 0."""
    if isinstance(source, torch.ValueTensorLiteralOp):
        return not tensor_type(source.result.type).dims
    return is_constant(source)


def _outline(function: func.FuncOp, partition: Partition, regions: dict[int, Region], kind: type[RegionOp]) -> None:
    """Rewrite the block: groups in dependency order, each region as one op."""
    terminator = operations(function)[-1]
    erased: list[ir.OpView] = []
    replaced: dict[ir.Value, ir.Value] = {}
    for group in partition.ordered_groups():
        region = regions.get(group)
        if region is None:
            for op in partition.members([group], []):
                if op != terminator:
                    op.move_before(terminator)
            continue
        _build(region, terminator, replaced, kind)
        erased += region.ops
    for op in reversed(erased):
        op.erase()


def _build(region: Region, terminator: ir.OpView, replaced: dict[ir.Value, ir.Value], kind: type[RegionOp]) -> None:
    """One region in front of the terminator; `replaced` maps results of earlier regions to what took their place."""
    inputs = [replaced.get(value, value) for value in region.inputs]
    with ir.InsertionPoint(terminator):
        made = create_region(kind, inputs, [], [value.type for value in region.results], fused_location(region.ops))
    for key, attribute in region.attributes.items():
        made.attributes[key] = attribute
    fill_body(made, region.ops, inputs, region.results)
    for value, result in zip(region.results, made.results, strict=True):
        value.replace_all_uses_with(result)
        replaced[value] = result


def fill_body(
    region: RegionOp, members: Sequence[ir.OpView], inputs: Sequence[ir.Value], yielded: Sequence[ir.Value]
) -> None:
    """Clone ops into a region without a body.

    Args:
        region: gets the body.
        members: the ops, in order.
        inputs: the values that they read from outside: they become arguments.
        yielded: which of the values that they make are yielded.
    """
    block = region.add_body([value.type for value in inputs])
    mapping = dict(zip(inputs, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for member in members:
            clone_into(member, mapping)
        create_yield([mapping[value] for value in yielded], region.location)
