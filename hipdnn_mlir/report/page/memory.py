"""Where the arena has what during each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ... import _runtime
from ...session.session import Session
from .sizes import Json
from .steps import Step

_ALIGNMENT = 256
"""Bytes; of an arena that is laid out here, because the program's device is elsewhere."""


@dataclass(frozen=True)
class Block:
    """Bytes of the arena that serve one purpose for some steps.

    Attributes:
        label: What lies there: `conv2d + relu (Conv_0)`, `workspace of ...`, `input x`.
        step: The step that writes it first, or uses the workspace; None for an input.
        is_workspace: Whether it is scratch memory of one step.
        offset: Bytes from the arena's start.
        bytes: How many.
        first: First step during which they are taken.
        last: Last step.
    """

    label: str
    step: int | None
    is_workspace: bool
    offset: int
    bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class Arena:
    """The one block of memory for all temporaries and workspaces.

    Attributes:
        bytes: Of the whole.
        largest_live_bytes: The most bytes that are taken at one step: no layout is smaller.
        peak_step: The first step at which they are.
        live_bytes: Bytes taken at each step.
        blocks: Its parts, the lowest first.
        is_loaded: Whether the runtime has laid it out; else it was done without workspaces, which only the device's library knows.
    """

    bytes: int
    largest_live_bytes: int
    peak_step: int
    live_bytes: list[int]
    blocks: list[Block]
    is_loaded: bool


def arena_of(body: Json, steps: Sequence[Step], session: Session | None) -> Arena:
    """The arena as the runtime has laid it out, or as it would without workspaces.

    Args:
        body: The program at the sizes that are shown.
        steps: Its steps.
        session: The program on its device at these sizes, if that is here.
    """
    if session is None:
        requests = [
            (0, 0, 0) if made["kind"] != "temp" else _use(made["bytes"], i, steps)
            for i, made in enumerate(body["buffers"])
        ]
        offsets, total, largest = _runtime.plan_arena(requests, _ALIGNMENT)
        rows = [(offset, *request) for offset, request in zip(offsets, requests, strict=True)]
    else:
        rows, stats = session.arena, session.stats
        total, largest = stats.arena_bytes, stats.largest_live_bytes
    names = {port["buffer"]: port["name"] for port in [*body["inputs"], *body["outputs"]]}
    count = len(body["buffers"])
    blocks = [
        _workspace(i - count, steps, row) if i >= count else _buffer(i, body["buffers"][i]["kind"], names, steps, row)
        for i, row in enumerate(rows)
        if row[1]
    ]
    live = _live_bytes(blocks, len(steps))
    peak = live.index(max(live)) if live else 0
    return Arena(
        total, largest, peak, live, sorted(blocks, key=lambda block: (block.offset, block.first)), session is not None
    )


def _use(size: int, buffer: int, steps: Sequence[Step]) -> tuple[int, int, int]:
    """Bytes of a temporary with the first and last step that touch it."""
    users = [index for index, step in enumerate(steps) if any(operand.buffer == buffer for operand in step.operands)]
    return (size, users[0], users[-1]) if users else (0, 0, 0)


def _buffer(
    index: int, kind: str, names: dict[int, str], steps: Sequence[Step], row: tuple[int, int, int, int]
) -> Block:
    offset, size, first, last = row
    writers = [i for i, step in enumerate(steps) if any(o.buffer == index and o.role == "out" for o in step.operands)]
    writer = writers[0] if writers else None
    label = (
        f"{kind} {names[index]}"
        if index in names
        else f"{steps[writer].operations} ({steps[writer].nodes})"
        if writer is not None
        else ""
    )
    return Block(label, writer, False, offset, size, first, last)


def _workspace(step: int, steps: Sequence[Step], row: tuple[int, int, int, int]) -> Block:
    offset, size, first, last = row
    label = f"workspace of {steps[step].operations} ({steps[step].nodes})"
    return Block(label, step, True, offset, size, first, last)


def _live_bytes(blocks: Sequence[Block], steps: int) -> list[int]:
    changes = [0] * (steps + 1)
    for block in blocks:
        changes[block.first] += block.bytes
        changes[block.last + 1] -= block.bytes
    live, found = 0, []
    for change in changes[:-1]:
        live += change
        found.append(live)
    return found
