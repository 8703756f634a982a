"""Walks along chains that are as long as models: a stack in a list, for Python's own ends after a thousand calls."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def operands_first(root: Node, operands: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """A node behind all that it follows from, each once and behind its own operands; the first operand comes first.

    Args:
        root: the last node.
        operands: the nodes that a node follows from directly, without those that need no visit.
    """
    order: list[Node] = []
    seen = {root}
    stack = [(root, iter(operands(root)))]
    while stack:
        node, rest = stack[-1]
        following = next((operand for operand in rest if operand not in seen), None)
        if following is None:
            order.append(node)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(operands(following))))
    return order
