"""What a decoder's ONNX file says of sizes: their names, and where the length of the mask decides what is computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx

from hipdnn_mlir_runtime.errors import ModelError

from ..dynamic.input_sizes import Buckets, Shapes
from ..frontend.paged_caches import PAGES, SEQUENCE_PAGES
from ..targets.table import TargetName, find_target
from .config import SUPPORTED, DecoderConfig

WINDOWS = (1, 16, 64, 256)
"""Tokens in one run of programs with code for fixed sizes: a step, and parts of prompts."""
BATCHES = (1, 8, 32)
"""Texts in one run of such programs, where texts join and leave: kernels of few rows take up to 32 in about the time of one."""

_BUFFERED = "GroupQueryAttention"
"""The operator whose past and present may be one buffer."""
_TOTAL = 6
"""The operand of GroupQueryAttention that is the number of keys in all; it only says how long a cache has to be."""
_ANGLES = {"GroupQueryAttention": 7, "RotaryEmbedding": 2}
"""com.microsoft's operators that rotate -> the operand that is the table of cosines, [positions, angles]."""
_SAME_VALUE = frozenset({"Cast", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Unsqueeze"})
_LAST_OF_FIRST = {"Greater": 0, "LessOrEqual": 0, "GreaterOrEqual": -1, "Less": -1}
"""Comparison of a length with a constant -> the last length for which it comes out as for the least, counted from the constant."""


class ModelFile:
    """A decoder's ONNX file without its weights.

    Args:
        config: of its folder.

    Raises:
        ModelError: the file cannot be read, has caches of another kind than its folder says, or angles for fewer tokens.
    """

    def __init__(self, config: DecoderConfig) -> None:
        self._config = config
        try:
            self._graph = onnx.load(config.model, load_external_data=False).graph
        except Exception as error:  # protobuf's errors have no other base class
            raise ModelError(f"cannot be read: {error}", where=str(config.model)) from error
        if config.grows and any(node.op_type == _BUFFERED for node in self._graph.node):
            message, hint = "caches that are said to grow", "set search.past_present_share_buffer to true"
            raise ModelError(message, where=str(config.folder), expected=f"buffers, with {_BUFFERED}", hint=hint)
        positions = min(self._positions(), default=config.context_length)
        if positions < config.context_length:
            message, got = "a context_length beyond the model's table of rotary angles", str(config.context_length)
            raise ModelError(message, where=str(config.folder), expected=f"at most {positions}", got=got)

    def _positions(self) -> Iterator[int]:
        """Rows of tables of rotary angles, where these are known: models may choose between several."""
        rows = {tensor.name: tensor.dims[0] for tensor in self._graph.initializer if len(tensor.dims) == 2}
        for node in self._graph.node:
            index = _ANGLES.get(node.op_type) if node.domain == "com.microsoft" else None
            if index is not None and index < len(node.input) and node.input[index] in rows:
                yield rows[node.input[index]]

    def mask_lengths(self) -> list[int]:
        """Lengths of the mask up to which the model computes one thing, and beyond which it computes another.

        Models with two tables of rotary angles have one: the mask's length decides which table is read.

        Raises:
            ModelError: the mask's length is used in a way that is not known.
        """
        return [] if self._config.grows else sorted(set(self._decisions()))

    def _decisions(self) -> Iterator[int]:
        constants = dict(self._constants())
        lengths: set[str] = set()
        for node in self._graph.node:
            if node.op_type == "Shape":
                lengths.update(node.output if self._config.attention_mask in node.input else ())
                continue
            used = [index for index, name in enumerate(node.input) if name in lengths]
            if not used or (node.op_type == _BUFFERED and used == [_TOTAL]):
                continue
            other = [constants.get(name) for name in node.input if name not in lengths]
            if node.op_type in _SAME_VALUE and used == [0]:
                lengths.update(node.output)
            elif node.op_type in _LAST_OF_FIRST and used == [0] and other != [None]:
                yield int(other[0] or 0) + _LAST_OF_FIRST[node.op_type]
            else:
                message = f"{node.op_type} uses the length of the mask"
                raise ModelError(message, where=f"{self._config.model}: {node.name}", expected=SUPPORTED)

    def _constants(self) -> Iterator[tuple[str, int]]:
        """Whole numbers of one element by name."""
        for node in self._graph.node:
            if node.op_type == "Constant" and len(node.attribute) == 1 and node.attribute[0].name == "value":
                yield from _number(node.output[0], node.attribute[0].t)
        for tensor in self._graph.initializer:
            yield from _number(tensor.name, tensor)

    def sizes(self, target: TargetName, batch_size: int, max_length: int) -> tuple[Shapes, Buckets]:
        """The sizes to compile for, as for `hipdnn_mlir.compile`: none on the CPU, where one program serves all.

        Args:
            target: what is compiled for.
            batch_size: number of texts side by side.
            max_length: length of caches.

        Raises:
            ModelError: the target is unknown.
        """
        if find_target(target).architecture is None:
            return {}, {}
        config = self._config
        batch = self._named(config.input_ids, 0, [batch_size])
        buckets = self._named(config.input_ids, 1, [size for size in WINDOWS if size <= max_length])
        if config.grows:  # the length of the mask follows from the others
            buckets |= self._named(config.caches[0][0], 2, [max_length])
            return {name: sizes[0] for name, sizes in batch.items()}, buckets
        masks = [length for length in self.mask_lengths() if length < max_length]
        shapes = dict(batch)
        (buckets if masks else shapes).update(self._named(config.attention_mask, 1, [*masks, max_length]))
        for past, _ in config.caches:
            shapes |= self._named(past, 2, [max_length])
        return {name: sizes[0] for name, sizes in shapes.items()}, buckets

    def paged_sizes(
        self, target: TargetName, most: int, max_length: int, pages: int, page_rows: int
    ) -> tuple[Shapes, Buckets]:
        """The sizes to compile for where caches are pages.

        Args:
            target: what is compiled for.
            most: number of texts at once.
            max_length: most tokens of a text.
            pages: number of pages, without the spare one.
            page_rows: tokens of a page.

        Raises:
            ModelError: the target is unknown.
        """
        shapes, buckets = self.sizes(target, most, max_length)
        if not shapes:
            return shapes, buckets
        config = self._config
        batches = self._named(config.input_ids, 0, sorted({1, *(size for size in BATCHES if size < most), most}))
        gone = {*batches, *(name for past, _ in config.caches for name in self._named(past, 2, []))}
        own = {PAGES: 1 + pages, SEQUENCE_PAGES: -(-max_length // page_rows)}
        return {name: size for name, size in shapes.items() if name not in gone} | own, {**buckets, **batches}

    def _named(self, name: str, axis: int, sizes: Sequence[int]) -> dict[str, Sequence[int]]:
        """Sizes by the name of an input's dimension, where it has one."""
        for port in self._graph.input:
            dims = port.type.tensor_type.shape.dim
            if port.name == name and axis < len(dims) and dims[axis].dim_param:
                return {dims[axis].dim_param: sizes}
        return {}


def _number(name: str, tensor: onnx.TensorProto) -> Iterator[tuple[str, int]]:
    if tensor.data_location != onnx.TensorProto.EXTERNAL and list(tensor.dims) in ([], [1]):
        value = onnx.numpy_helper.to_array(tensor)
        if value.dtype.kind in "iu":
            yield name, int(value.reshape(()))
