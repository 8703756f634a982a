"""Caches that grow in the model and are buffers in the program: whose outputs are handed back as inputs are written in place."""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _runtime
from ..errors import ModelError
from .arrays import Array, Port, check_names, is_on_device
from .tensors import base_of, begins_as, dtype_of, fill, is_tensor, zeros

_ROWS_AXIS = 2
_FLAGS = ("i32", "i64", "bool")
_LEAST_ROWS = 1024
"""Buffers have so many rows, or room for twice as many as are valid at first, if that is more, where a program is for any."""


class _Set:
    """The buffers of one text, or of several side by side. `length` rows are valid; a run claims those behind them."""

    def __init__(self, length: int) -> None:
        self._lock = threading.Lock()
        self._length = length

    def claim(self, before: int, after: int) -> bool:
        """Take the rows from `before` to `after`, unless rows from `before` on have been handed out already."""
        with self._lock:
            if self._length != before:
                return False
            self._length = after
            return True

    def give_back(self, before: int) -> None:
        """Take a claim back."""
        with self._lock:
            self._length = before


@dataclass(frozen=True)
class _Place:
    """Which buffer of which set an array is. Known as long as the array lives, which views of it are based on."""

    array: weakref.ref[Any]
    of: _Set
    number: int


@dataclass
class Call:
    """A run of the program in the place of one of the model.

    Attributes:
        feeds: the program's inputs.
        out: buffers by the name of the output.
        total: how many of their rows are valid afterwards.
        cut: other outputs with a dim that is longer in the program, its axis and its size in the model.
        is_new: whether the caller's arrays were copied into new buffers.
        claimed: what was claimed, and from which row on; nothing where buffers are new.
    """

    feeds: dict[str, Any]
    out: dict[str, Any]
    total: int
    cut: dict[str, tuple[int, int]]
    is_new: bool
    claimed: tuple[_Set, int] | None

    def failed(self) -> None:
        """Give back what was claimed: the rows that were valid before still are."""
        if self.claimed is not None:
            self.claimed[0].give_back(self.claimed[1])

    def results(self, names: Sequence[str], made: Sequence[Array], given: Mapping[str, Array]) -> list[Array]:
        """What the model's run gives: of a cache a view of what is valid, copied where the caller has an array for it.

        Args:
            names: the outputs asked for.
            made: what the program's run gave for them.
            given: arrays of the caller's.
        """
        found = []
        for name, array in zip(names, made, strict=True):
            axis, size = (_ROWS_AXIS, self.total) if name in self.out else self.cut.get(name, (0, None))
            valid = array[(slice(None),) * axis + (slice(size),)]
            if name in given and (name in self.out or name in self.cut):
                fill(given[name], valid)
            found.append(given.get(name, valid))
        return found


class GrowingCaches:
    """What a program says of its buffers, and the inputs and outputs that the model has in their place.

    Attributes:
        inputs: of the model.
        outputs: of the model.
        length: name of the input that the program alone has.
        new: how many rows a run adds: a number, or the name of a dynamic dimension.

    Args:
        data: the program's JSON object.
        inputs: of the program.
        outputs: of the program.
        device: where buffers lie.
    """

    def __init__(
        self, data: Mapping[str, Any], inputs: Sequence[Port], outputs: Sequence[Port], device: _runtime.Device
    ) -> None:
        self._device = device
        record = data["growing"]
        rows, new = data["symbols"][record["rows"]], record["added"]
        buckets: dict[str, list[int]] = dict(zip(data["symbols"], data.get("buckets", []), strict=False))
        self._rows = buckets.get(rows, [])
        self.new: int | str = new if isinstance(new, int) else data["symbols"][data["expressions"][new["expr"]][1]]
        self.length = inputs[record["length"]].name
        self._pasts = [inputs[cache["input"]] for cache in record["caches"]]
        self._presents = [outputs[cache["output"]].name for cache in record["caches"]]
        self._sized = [(inputs[entry["input"]].name, entry["axis"]) for entry in record["sized"]]
        are_flags = all(inputs[entry["input"]].dtype in _FLAGS for entry in record["sized"])
        self._windows = buckets.get(str(self.new), []) if self._sized and are_flags else []
        """Numbers of new rows that a program is for, if rows behind those of the caller's can be hidden by 0 in a mask."""
        after = f"{rows} + {self.new}"
        sized = dict(self._sized)
        self._places: dict[int, _Place] = {}
        self.inputs = [
            _with(port, sized[port.name], after) if port.name in sized else port
            for port in inputs
            if port.name != self.length
        ]
        self.outputs = [_with(port, _ROWS_AXIS, after) if port.name in self._presents else port for port in outputs]

    def are_of_model(self, feeds: object) -> bool:
        """Whether inputs are the model's, without the one that the program has more."""
        return not isinstance(feeds, (dict, Mapping)) or self.length not in feeds

    def run(
        self,
        names: Sequence[str],
        feeds: Mapping[str, Any],
        given: Mapping[str, Array],
        run: Callable[..., list[Array]],
        load_step: Callable[[Mapping[str, Any]], None],
    ) -> list[Array]:
        """Run the program once in the place of the model.

        Args:
            names: Outputs to return.
            feeds: The model's inputs.
            given: The caller's arrays for outputs.
            run: Runs the program: names, feeds, out.
            load_step: Loads the program for one new row; gets what the program ran on when its buffers were new.

        Returns:
            One array per name; caches are views of buffers, known when they are handed back.

        Raises:
            ModelError: as for `call`, and as `run` does.
            DeviceError: as `run` does.
        """
        call = self.call(feeds)
        others = {name: array for name, array in given.items() if name not in call.out and name not in call.cut}
        try:
            made = run(names, call.feeds, out=call.out | others)
        except BaseException:
            call.failed()
            raise
        if call.is_new:
            load_step(call.feeds)
        return call.results(names, made, given)

    def filled(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, Sequence[int]]:
        """The shapes of a program's inputs where a run of the model's fills the buffers; names as for `call`."""
        check_names(shapes, self.inputs)
        found: dict[str, Sequence[int]] = {name: list(dims) for name, dims in shapes.items()}
        total = shapes[self._pasts[0].name][_ROWS_AXIS] + self._new_rows(shapes)
        for port in self._pasts:
            found[port.name] = [*shapes[port.name][:_ROWS_AXIS], total, *shapes[port.name][_ROWS_AXIS + 1 :]]
        return {**found, self.length: [1]}

    def call(self, feeds: Mapping[str, Any]) -> Call:
        """The run of the program for a run of the model.

        Args:
            feeds: the model's inputs: NumPy arrays, or what lies in the host's memory and speaks DLPack.

        Raises:
            ModelError: a name is missing or unknown; a cache or a mask has not the type, rank or length that it has to have.
        """
        check_names(feeds, self.inputs)
        pasts = [self._checked(self._past(feeds[port.name], port), port) for port in self._pasts]
        arrays = {port.name: past for port, past in zip(self._pasts, pasts, strict=True)}
        arrays |= {name: _on_host(value, name) for name, value in feeds.items() if name not in arrays}
        before = pasts[0].shape[_ROWS_AXIS]
        for port, past in zip(self._pasts, pasts, strict=True):
            if past.shape[_ROWS_AXIS] != before or past.shape[0] != pasts[0].shape[0]:
                expected = f"{pasts[0].shape[0]} x {before}, as '{self._pasts[0].name}'"
                got = f"{past.shape[0]} x {past.shape[_ROWS_AXIS]}"
                raise ModelError(
                    "caches of different batch or length", where=f"'{port.name}'", expected=expected, got=got
                )
        new = self._new_rows({name: array.shape for name, array in arrays.items()})
        total = before + new
        self._check_masks(arrays, before, total)
        buffers, of, is_new = self._buffers(pasts, before, total)
        rows = buffers[0].shape[_ROWS_AXIS]
        window = next((size for size in self._windows if new <= size <= rows - before), new)
        cut = {}
        if window != new:
            cut = {name: (axis, new) for name, axis in self._axes_of_new(self.outputs)}
            arrays |= {name: _padded(arrays[name], axis, window) for name, axis in self._axes_of_new(self.inputs)}
        for name, axis in self._sized:
            arrays[name] = _padded(arrays[name], axis, rows)
        arrays |= {port.name: buffer for port, buffer in zip(self._pasts, buffers, strict=True)}
        arrays[self.length] = np.array([before], np.int64)
        out = dict(zip(self._presents, buffers, strict=True))
        return Call(arrays, out, total, cut, is_new, None if is_new else (of, before))

    def _axes_of_new(self, ports: Sequence[Port]) -> list[tuple[str, int]]:
        """The dims that are the number of new rows."""
        return [(port.name, axis) for port in ports for axis, dim in enumerate(port.shape) if dim == self.new]

    def _new_rows(self, shapes: Mapping[str, Sequence[int]]) -> int:
        if isinstance(self.new, int):
            return self.new
        name, axis = self._axes_of_new(self.inputs)[0]
        port = next(port for port in self.inputs if port.name == name)
        if len(shapes[port.name]) != len(port.shape):
            got = "x".join(map(str, shapes[port.name])) or "no dims"
            raise ModelError("wrong array", where=f"'{port.name}'", expected=str(port), got=got)
        return shapes[port.name][axis]

    def _past(self, value: Any, port: Port) -> Any:
        """A past as it is where it is a view of a buffer, else as an array that can be copied into one."""
        if is_tensor(value) and (is_on_device(value) or self._buffer(value)[1] is not None):
            return value
        return _on_host(value, port.name)

    def _checked(self, past: Any, port: Port) -> Any:
        fits = past.ndim == len(port.shape) and all(
            isinstance(dim, str) or dim == size for dim, size in zip(port.shape, past.shape, strict=True)
        )
        if dtype_of(past) != port.dtype or not fits:
            hint = f"hand back what '{self._presents[self._pasts.index(port)]}' gave, or begin with no rows"
            got = f"{past.dtype}[{','.join(map(str, past.shape))}]"
            raise ModelError("wrong array for a cache", where=f"'{port.name}'", expected=str(port), got=got, hint=hint)
        return past

    def _check_masks(self, arrays: Mapping[str, Array], before: int, total: int) -> None:
        for name, axis in self._sized:
            dims = arrays[name].shape
            if len(dims) <= axis or dims[axis] != total:
                expected = f"{total} in dim {axis}: {before} rows in the caches, and {total - before} new"
                got = "x".join(map(str, dims)) or "no dims"
                raise ModelError("the length does not fit the caches", where=f"'{name}'", expected=expected, got=got)

    def _buffers(self, pasts: Sequence[Any], before: int, total: int) -> tuple[list[Any], _Set, bool]:
        """The buffers that the caller's arrays are views of, if rows behind these are free; else new ones with copies."""
        found = [self._buffer(past) for past in pasts]
        buffers = [array for array, _ in found]
        of = found[0][1].of if found[0][1] is not None else None
        is_handed_back = of is not None and all(
            place is not None and place.of is of and place.number == number and _is_start(past, array, total)
            for number, (past, (array, place)) in enumerate(zip(pasts, found, strict=True))
        )
        if of is not None and is_handed_back and of.claim(before, total):
            return buffers, of, False
        of, rows = _Set(total), self._room(before, total)
        return [self._copied(past, rows, of, number) for number, past in enumerate(pasts)], of, True

    def _room(self, before: int, total: int) -> int:
        """The rows of new buffers: room for twice as many as are valid, or the least of those that the program is for."""
        if not self._rows:
            return max(_LEAST_ROWS, 1 << (2 * total - 1).bit_length())
        window = next((size for size in self._windows if size >= total - before), total - before)
        found = next((rows for rows in self._rows if rows >= before + window), self._rows[-1])
        if found < total:
            name, most = self._pasts[0].name, self._rows[-1]
            hint = "begin a new text, or compile for longer caches"
            raise ModelError(
                "no room in the caches", where=f"'{name}'", expected=f"at most {most} rows", got=str(total), hint=hint
            )
        return found

    def _buffer(self, array: Any) -> tuple[Any, _Place | None]:
        """The buffer that an array is a view of, and which it is; else the array."""
        found = array
        while found is not None:
            place = self._places.get(id(found))
            if place is not None and place.array() is found:
                return found, place
            found = base_of(found)
        return array, None

    def _copied(self, past: Any, rows: int, of: _Set, number: int) -> Any:
        dims = (*past.shape[:_ROWS_AXIS], rows, *past.shape[_ROWS_AXIS + 1 :])
        buffer = zeros(dims, self._pasts[number], self._device)
        fill(buffer[:, :, : past.shape[_ROWS_AXIS]], past)
        key = id(buffer)
        self._places[key] = _Place(weakref.ref(buffer, lambda _: self._places.pop(key, None)), of, number)
        return buffer


def growing_caches(
    text: str, inputs: Sequence[Port], outputs: Sequence[Port], device: _runtime.Device
) -> GrowingCaches | None:
    """What a program says of caches that grow in its model; None where none do.

    Args:
        text: the program's JSON.
        inputs: of the program.
        outputs: of the program.
        device: where buffers lie.
    """
    data = json.loads(text) if '"growing"' in text else {}
    return GrowingCaches(data, inputs, outputs, device) if "growing" in data else None


def _with(port: Port, axis: int, size: str) -> Port:
    return replace(port, shape=(*port.shape[:axis], size, *port.shape[axis + 1 :]))


def _on_host(value: Any, name: str) -> Array:
    if is_on_device(value):
        hint = "bind buffers as past and present"
        raise ModelError("memory of a GPU", where=f"'{name}'", expected="arrays of the host, as caches grow", hint=hint)
    if isinstance(value, np.ndarray):
        return value
    return np.from_dlpack(value) if hasattr(value, "__dlpack__") else np.asarray(value)


def _is_start(past: Any, owner: Any, total: int) -> bool:
    """Whether an array is the first rows of a buffer that has room."""
    dims, room = tuple(past.shape), tuple(owner.shape)
    same = (*dims[:_ROWS_AXIS], *dims[_ROWS_AXIS + 1 :]) == (*room[:_ROWS_AXIS], *room[_ROWS_AXIS + 1 :])
    return same and total <= room[_ROWS_AXIS] and (dims[_ROWS_AXIS] == 0 or begins_as(past, owner))


def _padded(array: Array, axis: int, size: int) -> Array:
    made = np.zeros((*array.shape[:axis], size, *array.shape[axis + 1 :]), array.dtype)
    made[(slice(None),) * axis + (slice(array.shape[axis]),)] = array
    return made
