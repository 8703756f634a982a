"""Regions that copy a tensor or a buffer."""

from collections.abc import Callable

from torch_mlir import ir
from torch_mlir.dialects import torch

from hipdnn_mlir_runtime.dtypes import ALL, DType

from ..ops.emitter import alignment_bytes
from ..ops.graph import DEFAULT_ALIGNMENT
from .buffers import new_buffer, storage
from .dialect import GraphOp, LaunchOp, RegionOp, create_region, create_yield
from .types import tensor_type, torch_tensor
from .views import is_contiguous

_STORED = {d.builtin: d for d in reversed(ALL)} | {d.builtin: d for d in reversed(ALL) if d.hipdnn is not None}
"""The dtype to copy elements as: signedness does not matter to a copy, so one that hipDNN has, if any."""


def moving_region(dtype: DType) -> type[RegionOp]:
    """The kind of region that copies and fills tensors of a dtype: a graph where hipDNN has the dtype."""
    return LaunchOp if dtype.hipdnn is None else GraphOp


def copy_region(kind: ir.Type, source: ir.Value, destination: ir.Value | None, location: ir.Location) -> RegionOp:
    """A region that copies a tensor of a torch type, at the current insertion point: in tensor form where there is no destination."""
    outs, results = ([], [kind]) if destination is None else ([destination], [])
    region = create_region(moving_region(tensor_type(kind).dtype), [source], outs, results, location)
    with ir.InsertionPoint(region.add_body([kind])), location:
        copy = torch.aten_clone(kind, region.body.arguments[0], torch.constant_none())
        create_yield([copy], location)
    return region


def copy_buffer(source: ir.Value, destination: ir.Value, location: ir.Location) -> RegionOp:
    """A region that copies one buffer to another, at the current insertion point."""
    kind = torch_tensor(tuple(source.type.shape), _STORED[str(source.type.element_type)])
    return copy_region(kind, source, destination, location)


Needs = Callable[[ir.Value], bool]
"""Whether a buffer has to be copied."""


def is_strided(value: ir.Value) -> bool:
    """Whether a buffer does not lie in C order without gaps."""
    return not is_contiguous(value.type)


def is_loose(value: ir.Value) -> bool:
    """Whether a buffer's address need not be a multiple of what hipDNN assumes of a tensor."""
    return alignment_bytes(storage(value), _STORED[str(value.type.element_type)]) < DEFAULT_ALIGNMENT


def copied_operands(region: RegionOp, needs_copy: Needs) -> list[RegionOp]:
    """Let a region read copies in C order, at aligned addresses, of some operands; returns the regions that copy."""
    copies = []
    for place, value in enumerate(region.ins):
        if needs_copy(value):
            packed = _packed_in_place(region, place)
            with ir.InsertionPoint(region):
                copies.append(copy_buffer(value, packed, region.location))
    return copies


def copied_results(region: RegionOp, needs_copy: Needs) -> list[RegionOp]:
    """Let a region write some results in C order, at aligned addresses, and copy from there; returns the regions that copy."""
    copies = []
    for place, value in enumerate(region.outs, region.ins_count):
        if needs_copy(value):
            packed = _packed_in_place(region, place)
            with ir.InsertionPoint(region):
                copies.append(copy_buffer(packed, value, region.location))
    for copy in copies:
        copy.move_after(region)
    return copies


def _packed_in_place(region: RegionOp, place: int) -> ir.Value:
    """Give a region a new buffer in C order in the place of an operand."""
    kind = region.operands[place].type
    with ir.InsertionPoint(region), region.location:
        packed = new_buffer(tuple(kind.shape), kind.element_type)
    region.operands[place] = packed
    return packed
