"""The standard operator that no engine and no kernel takes: tests put it where a node has to stay outside of programs.

It belongs to ONNX's classical machine learning, which the compiler leaves to others. Its shape and type are those of its one operand,
and ONNX Runtime's CPU provider runs it. The result jumps at the threshold: it is a value that tests do not hit.
"""

from __future__ import annotations

import onnx
from onnx import helper

OP = "Binarizer"
"""The operator's name in messages."""

OPSET = helper.make_opsetid("ai.onnx.ml", 1)
"""What a model that holds it imports."""

OPSET_TEXT = f'"{OPSET.domain}" : {OPSET.version}'
"""The same in ONNX's text form."""

_THRESHOLD = 0.3717


def in_text(graph: str) -> str:
    """Return a graph in ONNX's text form with the operator for every ``Untaken``."""
    return graph.replace("Untaken(", f"{OPSET.domain}.{OP}<threshold = {_THRESHOLD}>(")


def node(read: str, written: str, name: str) -> onnx.NodeProto:
    """Return a node of the operator."""
    return helper.make_node(OP, [read], [written], name=name, domain=OPSET.domain, threshold=_THRESHOLD)
