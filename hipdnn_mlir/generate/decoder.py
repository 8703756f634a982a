"""A decoder's program on a device, and the arrays that it runs on."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.session.arrays import Port
from hipdnn_mlir_runtime.session.session import Session

from .config import DecoderConfig

CHUNK = 512
"""Most tokens of a text in one run, where the program leaves that open: it bounds the memory for logits and temporaries."""
DEFAULT_LENGTH = 2048
"""Length of caches unless told otherwise, if the model was made for as many tokens."""

_TORCH_DTYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}


class Decoder:
    """A decoder's program, loaded.

    Attributes:
        session: the program.
        config: of its folder.
        max_length: most tokens of a text.

    Args:
        session: the program.
        config: of its folder.
        max_length: length that caches are to have.
        mask_lengths: lengths of the mask beyond which the model computes otherwise.

    Raises:
        ModelError: the program's inputs and outputs are not those that the configuration names, or its sizes do not fit.
    """

    def __init__(self, session: Session, config: DecoderConfig, max_length: int, mask_lengths: Sequence[int]) -> None:
        self.session, self.config = session, config
        self._inputs = {port.name: port for port in session.inputs}
        self._outputs = {port.name: port for port in session.outputs}
        self._check_names()
        self._ids, self._mask = self._inputs[config.input_ids], self._inputs[config.attention_mask]
        caches = [self._inputs[past] for past, _ in config.caches]
        self._cache_lengths = {port.name: self._size(port.shape[2], max_length) for port in caches}
        self._room = min(self._cache_lengths.values())
        self.max_length = min(max_length, self._room)
        self._mask_lengths = self._chosen_masks(max_length, mask_lengths)
        self._window_sizes = self._sizes(self._ids.shape[1])

    def _chosen_masks(self, max_length: int, decisions: Sequence[int]) -> list[int]:
        """The lengths that masks have: that of the caches, and those beyond which the model computes otherwise."""
        room = self._room
        wanted = [*(length for length in decisions if length < room), room]
        found = [self._size(self._mask.shape[1], length) for length in wanted]
        if room < max_length or found != wanted:
            where = str(self.config.folder)
            message = f"the program is for {room} tokens in a cache, and for masks of {', '.join(map(str, found))}"
            expected = f"at least {max_length}, and masks of {', '.join(map(str, wanted))}"
            raise ModelError(message, where=where, expected=expected, hint="ask for fewer tokens, or compile it again")
        return wanted

    def mask_length(self, tokens: int) -> int:
        """The length of the mask for texts of up to so many tokens.

        As long as it stays the same, one specialization serves a step, however long the texts are. Where it changes, what is in the caches
        is of no more use.
        """
        return min(length for length in self._mask_lengths if length >= tokens)

    def _check_names(self) -> None:
        config = self.config
        named = {config.input_ids, config.attention_mask, *(past for past, _ in config.caches)}
        if config.position_ids:
            named.add(config.position_ids)
        made = {config.logits, *(present for _, present in config.caches)}
        for what, wanted, found in (("input", named, self._inputs), ("output", made, self._outputs)):
            for name in sorted(wanted ^ set(found)):
                message = f"the program has no {what}" if name in wanted else f"not an {what} that is known"
                raise ModelError(f"{message} '{name}'", where=str(config.folder), expected=", ".join(sorted(wanted)))

    def _sizes(self, dim: int | str) -> Sequence[int]:
        """The sizes that a dimension can have; none where all."""
        return [dim] if isinstance(dim, int) else self.session.buckets.get(dim, [])

    def _size(self, dim: int | str, wanted: int) -> int:
        """The size to give a dimension: what is wanted if that is open, else the least one that has room for it, or the largest."""
        sizes = self._sizes(dim)
        return min((size for size in sizes if size >= wanted), default=max(sizes, default=wanted))

    def window(self, pending: int) -> int:
        """How many tokens of each text the next run takes, where at most `pending` are new."""
        if not self._window_sizes:
            return min(pending, CHUNK)
        sizes = [size for size in self._window_sizes if size <= self._room]
        if not sizes:
            message = f"the program takes {min(self._window_sizes)} tokens at once, and its caches hold {self._room}"
            raise ModelError(message, where=str(self.config.folder))
        return min((size for size in sizes if size >= pending), default=max(sizes))

    def rows(self, count: int) -> int:
        """How many rows arrays for a number of texts have.

        Raises:
            ModelError: the program is for fewer texts.
        """
        rows = self._size(self._ids.shape[0], count)
        if rows < count:
            message = f"the program generates {rows} texts at once, not {count}"
            raise ModelError(message, where="batch_size", hint="give fewer prompts, or compile it for more")
        return rows

    def caches(self, rows: int) -> dict[str, Any]:
        """Empty caches, by the name of the input.

        On a GPU they are PyTorch's, where that is installed for the device; else arrays of the host, which are copied in each run.
        """
        return {name: self._cache(self._inputs[name], rows, length) for name, length in self._cache_lengths.items()}

    def _cache(self, port: Port, rows: int, length: int) -> Any:
        dims = [rows, port.shape[1], length, *port.shape[3:]]
        sizes = [dim for dim in dims if isinstance(dim, int)]
        if len(sizes) < len(dims):
            raise ModelError("a cache whose sizes are open", where=f"'{port.name}'", got=str(port))
        device = self.session.device
        is_on_gpu = device.port != "host" and importlib.util.find_spec("torch") is not None
        if is_on_gpu:
            import torch

            if torch.cuda.is_available():
                dtype = getattr(torch, _TORCH_DTYPES[port.dtype])
                return torch.zeros(sizes, dtype=dtype, device=f"cuda:{device.ordinal}")
        return np.zeros(sizes, port.numpy_dtype)

    def logits(self, rows: int, window: int) -> npt.NDArray[Any]:
        """Memory for the logits of a run."""
        port = self._outputs[self.config.logits]
        return np.empty((rows, window, self.config.vocab_size), port.numpy_dtype)

    def bind(
        self, tokens: npt.NDArray[np.int64], mask: Any, positions: Any, logits: Any, caches: dict[str, Any]
    ) -> Callable[[], None]:
        """A function that runs on these arrays; caches are updated in place."""
        config = self.config
        feeds = {config.input_ids: tokens, config.attention_mask: mask, **caches}
        if config.position_ids:
            feeds[config.position_ids] = positions
        out = {present: caches[past] for past, present in config.caches}
        return self.session.bind(feeds, {config.logits: logits, **out})


def length_of(config: DecoderConfig, max_length: int | None) -> int:
    """The length that caches are to have.

    Args:
        config: of the model's folder.
        max_length: what the user says, if anything.

    Raises:
        ModelError: it is no length, or is beyond the context.
    """
    limit = config.context_length
    if max_length is None:
        return min(limit, DEFAULT_LENGTH)
    if not 1 <= max_length <= limit:
        expected = f"a number from 1 to the context length, {limit}"
        raise ModelError("bad value", where="max_length", expected=expected, got=str(max_length))
    return max_length
