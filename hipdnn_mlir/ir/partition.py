"""Groups of ops in one block and what merging them would do: producers, convexity, a dependency order."""

import heapq
from collections.abc import Iterable, Sequence

from torch_mlir import ir

from .view import producer


class Partition:
    """Every op starts as a group of its own; groups merge. Not thread-safe, lives for one rewrite of one block."""

    def __init__(self, operations: Sequence[ir.OpView]) -> None:
        self._operations = operations
        self._index = {op: i for i, op in enumerate(operations)}
        self._group = list(range(len(operations)))
        self._members: dict[int, list[int]] = {i: [i] for i in range(len(operations))}
        self._sources = [self._direct_sources(op) for op in operations]
        self._regions: set[int] = set()
        # Per op the first op of the overlapping groups around it: nothing before that op reads anything behind it.
        self._start = list(range(len(operations)))

    def _direct_sources(self, op: ir.OpView) -> list[int]:
        """Indices of the ops whose results an op reads."""
        found = (self._index.get(producer(value)) for value in op.operands)
        return sorted({index for index in found if index is not None})

    def group(self, op: ir.OpView) -> int:
        """The group an op belongs to."""
        return self._group[self._index[op]]

    def producers(self, op: ir.OpView) -> list[int]:
        """Merged groups that feed the op, the one computed last first."""
        groups = {self._group[source] for source in self._sources[self._index[op]]}
        return sorted((g for g in groups if g in self._regions), key=lambda g: -self._members[g][-1])

    def members(self, groups: Iterable[int], more: Iterable[ir.OpView]) -> list[ir.OpView]:
        """The ops of some groups and some further ops, in program order."""
        chosen = {index for group in groups for index in self._members[group]} | {self._index[op] for op in more}
        return [self._operations[index] for index in sorted(chosen)]

    def merge(self, operations: Iterable[ir.OpView]) -> int:
        """Make one group of the ops; returns its number."""
        indices = sorted(self._index[op] for op in operations)
        for index in indices:
            old = self._group[index]
            if old in self._members:
                self._members[old] = [i for i in self._members[old] if i not in indices]
                if not self._members[old]:
                    del self._members[old]
                    self._regions.discard(old)
        number = indices[-1]
        self._members[number] = indices
        for index in indices:
            self._group[index] = number
        self._regions.add(number)
        start, end = self._start[indices[0]], number
        while end + 1 < len(self._start) and self._start[end + 1] <= number:
            end += 1
        self._start[indices[0] : end + 1] = [start] * (end + 1 - indices[0])
        return number

    def is_convex(self, operations: Iterable[ir.OpView]) -> bool:
        """Whether no path leaves the ops and comes back, other groups taken as wholes."""
        inside = {self._index[op] for op in operations}
        start = self._start[min(inside)]
        merged = {self._group[index] for index in inside}
        seen: set[int] = set()
        stack = [self._group[s] for index in inside for s in self._sources[index] if s not in inside]
        while stack:
            group = stack.pop()
            if group in seen or self._members[group][-1] < start:
                continue
            seen.add(group)
            if group in merged:
                return False
            for member in self._members[group]:
                for source in self._sources[member]:
                    if source in inside:
                        return False
                    stack.append(self._group[source])
        return True

    def ordered_groups(self) -> list[int]:
        """Groups in dependency order; among the ready ones the one whose last op came first."""
        waiting: dict[int, set[int]] = {}
        readers: dict[int, set[int]] = {}
        for group, members in self._members.items():
            waiting[group] = {self._group[s] for m in members for s in self._sources[m]} - {group}
            for source in waiting[group]:
                readers.setdefault(source, set()).add(group)
        ready = [(self._members[group][-1], group) for group, sources in waiting.items() if not sources]
        heapq.heapify(ready)
        order = []
        while ready:
            _, group = heapq.heappop(ready)
            order.append(group)
            for reader in readers.get(group, ()):
                waiting[reader].discard(group)
                if not waiting[reader]:
                    heapq.heappush(ready, (self._members[reader][-1], reader))
        return order
