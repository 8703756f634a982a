"""Where the arena has what during each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hipdnn_mlir_runtime import _runtime
from hipdnn_mlir_runtime.session.session import Session

from .sizes import Json
from .steps import Step, users_of

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
    buffers = body["buffers"]
    if session is None:
        users = users_of(steps, "in", "out")
        requests = [
            (made["bytes"], users[index][0], users[index][-1])
            if made["kind"] == "temp" and index in users
            else (0, 0, 0)
            for index, made in enumerate(buffers)
        ]
        offsets, total, largest = _runtime.plan_arena(requests, _ALIGNMENT)
        rows = [(offset, *request) for offset, request in zip(offsets, requests, strict=True)]
    else:
        rows, stats = session.arena, session.stats
        total, largest = stats.arena_bytes, stats.largest_live_bytes
    names = {port["buffer"]: f"{kind} {port['name']}" for kind in ("input", "output") for port in body[f"{kind}s"]}
    writers = {buffer: found[0] for buffer, found in users_of(steps, "out").items()}
    blocks = [
        _workspace(index - len(buffers), steps, row)
        if index >= len(buffers)
        else _buffer(names.get(index), writers.get(index), steps, row)
        for index, row in enumerate(rows)
        if row[1]
    ]
    live = _live_bytes(blocks, len(steps))
    peak = live.index(max(live)) if live else 0
    blocks.sort(key=lambda block: (block.offset, block.first))
    return Arena(total, largest, peak, live, blocks, session is not None)


def _buffer(name: str | None, writer: int | None, steps: Sequence[Step], row: tuple[int, int, int, int]) -> Block:
    offset, size, first, last = row
    made = "" if writer is None else f"{steps[writer].operations} ({steps[writer].nodes})"
    return Block(name or made, writer, False, offset, size, first, last)


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
