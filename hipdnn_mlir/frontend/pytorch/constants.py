"""Parameters and buffers as they were when a program was made of them."""

import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import Tensor, nn


class Constants:
    """What a program's constants were.

    The tensors are known weakly, so that a program of a module that is gone goes too. Their memory is held: no other tensor can come to
    lie there and be taken for them.

    Args:
        tensors: the constants.
        uncounted: which of them, by index, PyTorch writes without counting, unless they are parameters; these have one dim, and are
            compared by content.
        on_end: called once one of the tensors is gone.
    """

    def __init__(self, tensors: Sequence[Tensor], uncounted: Collection[int], on_end: Callable[[], object]) -> None:
        self._known = [weakref.ref(tensor, lambda _: on_end()) for tensor in tensors]
        self._memory = [tensor.detach() for tensor in tensors]
        self._state = _state(tensors)
        self._uncounted = [index for index in sorted(uncounted) if not isinstance(tensors[index], nn.Parameter)]
        self._content = self._contents(tensors)

    def are(self, tensors: Sequence[Tensor]) -> bool:
        """Whether tensors are these, with the values that they had."""
        return (
            all(known() is tensor for known, tensor in zip(self._known, tensors, strict=True))
            and _state(tensors) == self._state
            and self._contents(tensors) == self._content
        )

    def _contents(self, tensors: Sequence[Tensor]) -> list[bytes]:
        """What is not counted: together, so that a GPU is waited for once."""
        parts: dict[Any, list[Tensor]] = {}
        for index in self._uncounted:
            parts.setdefault((tensors[index].device, tensors[index].dtype), []).append(tensors[index])
        return [torch.cat(found).detach().view(torch.uint8).cpu().numpy().tobytes() for found in parts.values()]


def _state(tensors: Sequence[Tensor]) -> list[Any]:
    """What changes with most writes: where each tensor lies, and how often it was written to."""
    return [(tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version) for tensor in tensors]
