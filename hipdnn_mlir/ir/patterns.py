"""Local rewrites: a pattern is a function whose first parameter's type says which ops it is for."""

import inspect
from collections.abc import Callable
from typing import Any, get_args

from torch_mlir import ir, rewrite
from torch_mlir.rewrite import PatternRewriter

from ..ops.spec import Refusal

Pattern = Callable[[Any, PatternRewriter], bool]
"""Replaces or changes an op, or leaves it as it is; returns whether it did. A Refusal leaves it too."""


def rewrite_ops(module: ir.Operation, *patterns: Pattern) -> None:
    """Visit every op once, in order, with the patterns for its class; ops that a pattern makes are not visited.

    What a pattern makes lies in front of its op and has its location. A pattern erases no op that is still to be visited.

    Args:
        module: the module operation.
        patterns: the first parameter of each is annotated with a class of ops, or a union of such.
    """
    chosen = rewrite.RewritePatternSet()
    for pattern in patterns:
        for kind in op_classes(pattern):
            chosen.add(kind, _as_driven(pattern))
    rewrite.walk_and_apply_patterns(module, chosen.freeze())


def op_classes(function: Callable[..., object]) -> tuple[Any, ...]:
    """What a function's first parameter is annotated with: a class of ops, or each of a union; None where it has no annotation."""
    first = next(iter(inspect.signature(function).parameters), "")
    kind = inspect.get_annotations(function, eval_str=True).get(first)
    return get_args(kind) or (kind,)


def _as_driven(pattern: Pattern) -> Callable[[ir.OpView, PatternRewriter], bool]:
    """The pattern as MLIR's driver calls it: what is true says that it does not match."""

    def run(op: ir.OpView, rewriter: PatternRewriter) -> bool:
        try:
            with rewriter.ip, op.location:
                return not pattern(op, rewriter)
        except Refusal:
            return True

    return run
