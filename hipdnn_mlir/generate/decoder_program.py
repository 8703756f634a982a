"""What programs of decoders have in common, whatever their caches are: names, sizes, memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.session.options import SessionOptions
from hipdnn_mlir_runtime.session.session import Session
from hipdnn_mlir_runtime.session.source import Source
from hipdnn_mlir_runtime.session.tensors import host_zeros, zeros

from .config import DecoderConfig

CHUNK = 512
"""Most tokens of a text in one run, where the program leaves that open: it bounds the memory for temporaries."""
_ALIGNMENT = 16
"""Bytes of arrays that a session takes."""

Logits = npt.NDArray[np.float32]


def open_session(program: Source, options: SessionOptions) -> Session:
    """Load a decoder. A step runs on the same arrays again and again, so a GPU replays it as a graph unless the options say otherwise.

    Raises:
        HipdnnMlirError: as for `hipdnn_mlir.load`.
    """
    return Session(program, **cast("SessionOptions", {"graph_capture": True, **options}))


def last_logits(logits: npt.NDArray[Any], taken: npt.NDArray[np.int64]) -> Logits:
    """The logits behind the last token of each text, [texts, vocabulary].

    Args:
        logits: of a run, [rows, tokens, vocabulary]; of one token where the program takes the last valid one itself.
        taken: how many tokens of each text were in it, [texts].
    """
    last = logits[: len(taken), 0] if logits.shape[1] == 1 else logits[np.arange(len(taken)), taken - 1]
    return last.astype(np.float32)


class DecoderProgram:
    """A decoder's program, loaded.

    Attributes:
        session: the program.
        config: of its folder.

    Args:
        session: the program.
        config: of its folder.
        more: names of inputs beside those that the configuration names.

    Raises:
        ModelError: the program's inputs and outputs are not those.
    """

    def __init__(self, session: Session, config: DecoderConfig, more: Sequence[str] = ()) -> None:
        self.session, self.config = session, config
        self._inputs = {port.name: port for port in session.inputs}
        self._outputs = {port.name: port for port in session.outputs}
        self._check_names(more)
        self._ids, self._mask = self._inputs[config.input_ids], self._inputs[config.attention_mask]
        self._window_sizes = self._sizes(self._ids.shape[1])

    def _check_names(self, more: Sequence[str]) -> None:
        config = self.config
        named = {config.input_ids, config.attention_mask, *(past for past, _ in config.caches), *more}
        if config.position_ids:
            named.add(config.position_ids)
        made = {config.logits, *(present for _, present in config.caches)}
        for what, wanted, found in (("input", named, self._inputs), ("output", made, self._outputs)):
            for name in sorted(wanted ^ set(found)):
                message = f"the program has no {what}" if name in wanted else f"not an {what} that is known"
                raise ModelError(f"{message} '{name}'", where=str(config.folder), expected=", ".join(sorted(wanted)))
        size = self._outputs[config.logits].shape[-1]
        if isinstance(size, int) and size != config.vocab_size:
            message, got = "the configuration has another vocab_size than the model", str(config.vocab_size)
            raise ModelError(message, where=str(config.folder), expected=str(size), got=got)

    def _sizes(self, dim: int | str) -> Sequence[int]:
        """The sizes that a dimension can have; none where all."""
        return [dim] if isinstance(dim, int) else self.session.buckets.get(dim, [])

    def _size(self, dim: int | str, wanted: int) -> int:
        """The size to give a dimension: what is wanted if that is open, else the least one that has room for it, or the largest."""
        sizes = self._sizes(dim)
        return min((size for size in sizes if size >= wanted), default=max(sizes, default=wanted))

    def _window(self, pending: int, room: int) -> int:
        """How many tokens of each text the next run takes, where at most `pending` are new and caches have room for `room`."""
        if not self._window_sizes:
            return min(pending, CHUNK)
        sizes = [size for size in self._window_sizes if size <= room]
        if not sizes:
            message = f"the program takes {min(self._window_sizes)} tokens at once, and its caches hold {room}"
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

    def _empty_caches(self, rows: int, lengths: Mapping[str, int]) -> dict[str, Any]:
        """Caches by the name of the input, those of one shape side by side, so that a GPU makes them at once.

        On a GPU they are PyTorch's, where that is installed for it; else the host's, which are copied in each run.

        Args:
            rows: of each.
            lengths: by the name of the input.

        Raises:
            ModelError: there is no memory for them, or their sizes are open.
        """
        alike: dict[tuple[str, tuple[int, ...]], list[str]] = {}
        for name, length in lengths.items():
            port = self._inputs[name]
            dims = [rows, port.shape[1], length, *port.shape[3:]]
            sizes = tuple(dim for dim in dims if isinstance(dim, int))
            if len(sizes) < len(dims):
                raise ModelError("a cache whose sizes are open", where=f"'{port.name}'", got=str(port))
            alike.setdefault((port.dtype, sizes), []).append(name)
        made: dict[str, Any] = {}
        for (_, sizes), names in alike.items():
            port = self._inputs[names[0]]
            count = len(names) if prod(sizes) * port.numpy_dtype.itemsize % _ALIGNMENT == 0 else 1
            for first in range(0, len(names), count):
                try:
                    block = zeros((count, *sizes), port, self.session.device)
                except MemoryError as error:
                    size = len(lengths) * prod(sizes) * port.numpy_dtype.itemsize
                    hint = "ask for fewer tokens, texts or pages"
                    raise ModelError(
                        f"no memory for caches of {size} bytes", where=str(self.config.folder), hint=hint
                    ) from error
                made.update(zip(names[first : first + count], block, strict=True))
        return made

    def logits(self, rows: int, window: int) -> npt.NDArray[Any]:
        """Memory for the logits of a run: of the last valid token of each text if the program computes these alone, else of all tokens."""
        port = self._outputs[self.config.logits]
        positions = 1 if port.shape[1] == 1 else window
        return self.host_zeros((rows, positions, self.config.vocab_size), port.numpy_dtype)

    def host_zeros(self, dims: Sequence[int], dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
        """An array of the host for what goes into runs and comes out of them."""
        return host_zeros(dims, dtype, self.session.device)

    def bind(
        self,
        tokens: npt.NDArray[np.int64],
        mask: Any,
        positions: Any,
        logits: Any,
        caches: dict[str, Any],
        more: dict[str, Any] | None = None,
    ) -> Callable[[], None]:
        """A function that runs on these arrays; caches are updated in place. `more` are other inputs by name."""
        config = self.config
        feeds = {config.input_ids: tokens, config.attention_mask: mask, **caches, **(more or {})}
        if config.position_ids:
            feeds[config.position_ids] = positions
        out = {present: caches[past] for past, present in config.caches}
        return self.session.bind(feeds, {config.logits: logits, **out})
