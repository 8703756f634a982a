"""Models compiled up to their weights, kept from the placement that proved them until their weights arrive."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING

import onnx

if TYPE_CHECKING:
    from ..compiler.program import Lowered

CAPACITY = 64
"""Models kept; the ones asked for longest ago go first."""


class Remembered:
    """A bounded store of compiled models by content. Not thread-safe.

    The content is that of the model without the values of external initializers, the order of names, and the graph's own name. Nodes in
    another order that depend on each other the same way compute the same.
    """

    def __init__(self) -> None:
        self._found: OrderedDict[bytes, Lowered] = OrderedDict()

    def add(self, model: onnx.ModelProto, options: str, lowered: Lowered) -> None:
        """Keep what a model compiled to with some options."""
        self._found[_key(model, options)] = lowered
        while len(self._found) > CAPACITY:
            self._found.popitem(last=False)

    def find(self, model: onnx.ModelProto, options: str) -> Lowered | None:
        """What an equal model compiled to with the same options, or None."""
        key = _key(model, options)
        if key in self._found:
            self._found.move_to_end(key)
        return self._found.get(key)


def _key(model: onnx.ModelProto, options: str) -> bytes:
    graph = model.graph
    digest = hashlib.sha256(f"{options} {model.ir_version}".encode())
    for messages in (
        model.opset_import,
        model.functions,
        graph.node,
        graph.input,
        graph.output,
        graph.value_info,
        map(_without_place, graph.initializer),
    ):
        parts = sorted(message.SerializeToString(deterministic=True) for message in messages)
        digest.update(b"".join([len(parts).to_bytes(8, "little"), *_framed(parts)]))
    return digest.digest()


def _framed(parts: Iterable[bytes]) -> Iterable[bytes]:
    for part in parts:
        yield len(part).to_bytes(8, "little")
        yield part


def _without_place(tensor: onnx.TensorProto) -> onnx.TensorProto:
    """The initializer; an external one without the place of its data."""
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return tensor
    return onnx.TensorProto(
        name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, data_location=onnx.TensorProto.EXTERNAL
    )
