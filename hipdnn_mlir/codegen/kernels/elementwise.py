"""`elementwise`: every thread computes a few groups of adjacent positions."""

from math import ceil

from ..core.arch import Architecture
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.space import Space, arranged, is_wide, vector_size
from .body import Body
from .byte_table import TABLE_BYTES, looked_up, write_table
from .evaluate import Evaluator, Lanes, functions_of, leaders_of
from .transpose import tiled_launch, tiles_of

THREADS = 256
_BLOCKS_PER_UNIT = 8
"""Blocks that a multiprocessor works on at a time: with fewer in all, threads take one group each."""
_MAX_GROUPS = 4
_STRIDED_LANES = 2
"""Of a thread where a tensor's elements lie apart: each is an access of its own, and threads beside each other share lines of memory."""
_MAX_INSTRUCTIONS = 4096
"""Of one thread, so that long kernels compile in time."""


def elementwise_launch(body: Body, architecture: Architecture) -> Launch:
    """The launch of a body without reductions."""
    space = arranged(body.dims, functions_of(body), leaders_of(body.operands))
    tiles = tiles_of(body, space, architecture)
    if tiles is not None:
        return tiled_launch(body, tiles)
    function = body if (short := looked_up(body)) is not None else None
    body = short or body
    lanes = vector_size(space, body.operands)
    if any(strides and strides[-1] > 1 for _, strides in zip(body.operands, space.strides, strict=False)):
        lanes = min(lanes, _STRIDED_LANES)
    while lanes > 1 and lanes * len(body.code) > _MAX_INSTRUCTIONS:
        lanes //= 2
    groups = space.size // lanes
    most = min(_MAX_GROUPS, _MAX_INSTRUCTIONS // (lanes * len(body.code)))
    each = max(1, min(most, groups // (THREADS * architecture.units * _BLOCKS_PER_UNIT)))
    blocks = ceil(groups / (THREADS * each)) or 1
    writer = _Writer(body, space, lanes, groups, each, blocks, function)
    wide = is_wide(body.operands, (blocks + 1) * THREADS * each * lanes)
    return Launch(writer.write, blocks, THREADS, TABLE_BYTES if function else 0, wide, body.overwrites())


class _Writer:
    """Writes the kernel.

    Args:
        body, space, lanes: as for an Evaluator.
        groups: of lanes, in all; positions behind the last are computed one by one.
        each: groups of one thread.
        blocks: of the grid.
        function: what the body looks up.
    """

    def __init__(
        self, body: Body, space: Space, lanes: int, groups: int, each: int, blocks: int, function: Body | None
    ) -> None:
        self.body, self.space, self.lanes = body, space, lanes
        self.groups, self.each, self.blocks, self.function = groups, each, blocks, function

    def write(self, b: KernelBuilder) -> None:
        """Write it."""
        if self.function is not None:
            write_table(b, self.function, self.space)
        first = b.add(b.mul(b.block(), THREADS * self.each), b.thread())
        dims = (*self.space.dims[:-1], self.space.dims[-1] // self.lanes) if self.space.dims else ()
        is_guarded = self.blocks * THREADS * self.each != self.groups
        evaluator = Evaluator(b, self.body, self.space, self.lanes)
        points = []
        if self.groups:
            for part in range(self.each):
                group = b.add(first, part * THREADS)
                inside = b.less(group, self.groups) if is_guarded else None
                # Past the end the last group is computed once more and not stored: loads need no branch.
                coordinates = b.coordinates(b.least(group, self.groups - 1) if is_guarded else group, dims)
                points.append((inside, [*coordinates[:-1], b.mul(coordinates[-1], self.lanes)] if dims else []))
        _compute(evaluator, points)
        rest = self.space.size - self.groups * self.lanes
        if rest:
            last = self.groups * self.lanes
            with b.when(b.less(first, rest)):
                _compute(Evaluator(b, self.body, self.space, 1), [(None, [b.add(first, last)])])


def _compute(evaluator: Evaluator, points: list[tuple[Value, list[Value]]]) -> None:
    """All loads come before all stores, so that an out may lie in the memory of an in of the same strides."""
    code, b = evaluator.body.code, evaluator.b
    made: list[list[Lanes]] = []
    for step in code:
        operands = [made[o] for o in step.operands]
        if step.name == "store":
            made.append([])
            continue
        made.append(
            [evaluator.value(step, [lanes[place] for lanes in operands], at) for place, (_, at) in enumerate(points)]
        )
    for place, (inside, at) in enumerate(points):
        for step in code:
            if step.name != "store":
                continue
            if inside is None:
                evaluator.store(step.data, made[step.operands[0]][place], at)
            else:
                with b.when(inside):
                    evaluator.store(step.data, made[step.operands[0]][place], at)
