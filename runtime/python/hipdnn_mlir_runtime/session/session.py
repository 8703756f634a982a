"""Runs a program: a session loads it on a device once and serves any number of runs, concurrent ones included."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Self, Unpack, cast

from .. import _runtime
from ..errors import ModelError
from ..options import Settings, checked
from .arrays import (
    Array,
    Port,
    check_names,
    check_sizing,
    from_native,
    is_on_device,
    names_of,
    stream_address,
    to_input,
    to_output,
)
from .counted import counted_outputs
from .devices import open_device
from .growing import growing_caches
from .options import SessionOptions, device_options
from .padding import cut_into, padded
from .source import Source, read
from .specializations import Specializations
from .stats import Stats


class Session:
    """A program, loaded and ready to run.

    Thread-safe: concurrent runs each get a context (arena and stream) of their own.

    Attributes:
        inputs: Inputs of the model, in order.
        outputs: Outputs of the model, in order.
        symbols: Names of the dynamic dimensions: their sizes are read from the inputs of a run.
        buckets: Dynamic dimension -> rising sizes that it is rounded up to; missing where it is taken as it is.
        program_inputs: Inputs of the program: those of the model, and one more where caches grow.
        sizing: Inputs that sizes of results follow from -> per element spans of the numbers that it may be, first and last.
        growing: What the program says of caches that grow in the model; None where none do.
        exact: Dynamic dimension -> why it is taken at its buckets alone and not rounded up; of programs with a program for each.

    Args:
        source: Path of a ``.hipdnn`` file, or a program in memory, whose tensors are used where they lie if dense and
            aligned to 16 bytes. A program that ``compile`` returned is compiled again without graphs that the device's
            library refuses.
        options: The keywords of ``SessionOptions``; docs/plans.md has them in a table.

    Raises:
        ProgramError: The file is not a program, is broken, too new, holds code with ``allow_code=False``, or is not signed for
            ``trusted_key``.
        WrongTargetError: The program is for another target; a ``ProgramError`` and a ``DeviceError``.
        PlanRefusedError: The library refuses graphs of the program, all of them listed, and the model is not at hand.
        DeviceError: The port's libraries are missing.
        ModelError: The source is no program; an option is out of range, the engine or a policy is unknown, or the plugins cannot be used.
    """

    def __init__(
        self,
        source: Source | Session,
        **options: Unpack[SessionOptions],
    ) -> None:
        self._is_closed = False
        self._options = options
        self._source: Source
        self._loaded: Specializations
        self._workers: ThreadPoolExecutor | None = None
        given = checked("session", options)
        allow_code: bool = given["allow_code"]
        if isinstance(source, Session):
            program, self._source = source._loaded.program, source._source  # noqa: SLF001 - of its own class
        else:
            program, self._source = read(source, allow_code=allow_code, trusted_key=given["trusted_key"]), source
        settings = device_options(
            options, options.get("port") or _runtime.port_for_target(program.target), is_tf32=program.allows_tf32
        )
        self._settings = settings
        self._device = open_device(settings)

        self._loaded = Specializations(
            self._device,
            self._source,
            program,
            capacity=given["max_specializations"],
            plan_cache=settings["plan_cache"],
            allow_code=allow_code,
        )
        program = self._loaded.program
        self.symbols = list(program.symbols)
        self.buckets = self._loaded.buckets
        self._has_specializations = program.has_specializations
        self.exact = {name: why for name, why in zip(program.symbols, program.exact, strict=False) if why}
        coded: dict[str, str] = json.loads(program.text).get("coded", {}) if '"coded"' in program.text else {}
        self.inputs, self.outputs = (
            [Port(name, dtype, tuple(dims), coded.get(name, "")) for name, dtype, dims in ports]
            for ports in (program.inputs, program.outputs)
        )
        self.program_inputs, self._outputs = self.inputs, self.outputs
        self.sizing: dict[str, list[list[tuple[int, int]]]] = (
            json.loads(program.text).get("sizing", {}) if '"sizing"' in program.text else {}
        )
        self.growing = growing_caches(program.text, self.program_inputs, self._outputs, self._device)
        if self.growing is not None:
            self.inputs, self.outputs = self.growing.inputs, self.growing.outputs
        self._counted = counted_outputs(program.text, self._outputs)
        if self._counted is not None:
            self.outputs = self._counted.shown

    def __repr__(self) -> str:
        """One line: target, inputs and outputs."""
        ports = (", ".join(f"{port.name}: {port}" for port in some) for some in (self.inputs, self.outputs))
        return f"Session(target {self._loaded.program.target!r}, {' -> '.join(ports)}{', closed' if self._is_closed else ''})"

    def __enter__(self) -> Self:
        """Return the session; the end of the block closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for runs of ``run_async``, and give the program's memory back; the session cannot run any more."""
        if self._workers is not None:
            self._workers.shutdown()
        self._is_closed = True
        self._workers = None
        self._loaded.close()

    def again(self, **options: Unpack[SessionOptions]) -> Session:
        """Open another session of the program, which shares the weights where it is on the CPU.

        Args:
            options: What differs from this session's.

        Raises:
            ModelError: The session is closed, or as for a session.
            DeviceError: As for a session.
        """
        self.check_open()
        return Session(self, **cast("SessionOptions", {**self._options, **options}))

    def get_inputs(self) -> list[Port]:
        """Return the inputs, as ONNX Runtime's sessions do: ``name``, ``type`` and ``shape`` of each."""
        return self.inputs

    def get_outputs(self) -> list[Port]:
        """Return the outputs, as ONNX Runtime's sessions do."""
        return self.outputs

    @property
    def least_exact(self) -> dict[str, int]:
        """The least bucket of each size that is not rounded up."""
        return {name: self.buckets[name][0] for name in self.exact}

    @property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """The valid values of inputs whose elements are indices: from the first number to the second one, that one excluded."""
        return {
            name: (low, high) for name, (low, high) in json.loads(self._loaded.program.text).get("ranges", {}).items()
        }

    @property
    def stats(self) -> Stats:
        """Memory, steps, plans and load times; of the sizes used last where dimensions are dynamic."""
        return Stats(**self._latest.stats(), specializations=self._loaded.count)

    @property
    def arena_bytes(self) -> int:
        """Bytes of the block for temporaries and workspaces."""
        return self.stats.arena_bytes

    @property
    def steps(self) -> list[dict[str, Any]]:
        """Per step: name and kind; an execution has executable, summary, engine and more of its plan, a launch kernel, function."""
        return self._latest.steps()

    def check_open(self) -> None:
        """Refuse a session that is closed: what it has bound may still run.

        Raises:
            ModelError: It is closed.
        """
        if self._is_closed:
            raise ModelError("the session is closed", hint="load the program again")

    @property
    def arena(self) -> list[tuple[int, int, int, int]]:
        """Offset, bytes, first and last step of each buffer in the arena, then of each step's workspace; 0 bytes where there is none."""
        return self._latest.arena()

    @property
    def _latest(self) -> _runtime.Session:
        self.check_open()
        return self._loaded.latest

    def prewarm(self, sizes: Iterable[Mapping[str, int]] | None = None) -> None:
        """Load the program for combinations of sizes of its dynamic dimensions, ahead of the runs that need them.

        Args:
            sizes: A value per symbol each, rounded up to buckets; the last ones stay where there are more than the session keeps. Without
                them every combination of buckets, the largest first.

        Raises:
            ModelError: A symbol is missing or unknown, or the program does not hold for the sizes; without sizes, a symbol has no buckets,
                or there are more combinations than the session keeps.
            DeviceError: As for the session.
        """
        self.check_open()
        self._loaded.prewarm(sizes)

    def _session_for(
        self, inputs: list[Any], *, on_device: bool = False
    ) -> tuple[_runtime.Session, list[list[int]] | None]:
        """Return the session for inputs of these shapes, which are padded in place where that is for larger sizes.

        Args:
            inputs: The inputs.
            on_device: Have a program that holds one for each combination of buckets pad and cut by steps of its own, on the device.

        Returns:
            The session, and the dims that the outputs are cut back to, if they are.
        """
        if not self.symbols:
            return self._latest, None
        dims = [list(array.shape) for array in inputs]
        if not self.buckets:
            return self._loaded.at(dims), None
        sizes, rounded = self._loaded.sizes_of(dims)
        if sizes == rounded or (on_device and self._has_specializations):
            return self._loaded.at_sizes(sizes), None
        session = self._loaded.at_sizes(rounded)
        larger = dict(zip(self.symbols, rounded, strict=True))
        for index, port in enumerate(self.program_inputs):
            wanted = [larger.get(str(dim), size) for dim, size in zip(port.shape, dims[index], strict=True)]
            if wanted != dims[index]:
                inputs[index] = padded(inputs[index], wanted, port.name)
        return session, self._loaded.output_dims(sizes)

    def output_shapes(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
        """Return the shape of every output by name, for callers that allocate them; nothing is loaded for it.

        Args:
            shapes: The shape of every input by name.

        Raises:
            ModelError: A name is missing or unknown, or a shape does not fit.
        """
        given = shapes
        if self.growing is not None and self.growing.are_of_model(shapes):
            given = self.growing.filled(shapes)
        self._check_names(given)
        dims = [list(given[port.name]) for port in self.program_inputs]
        sizes, _ = self._loaded.sizes_of(dims)
        found = self._loaded.output_dims(sizes)
        return {port.name: tuple(dims) for port, dims in zip(self._outputs, found, strict=True)}

    def run(
        self,
        output_names: Sequence[str] | None,
        feeds: Mapping[str, Any],
        *,
        out: Mapping[str, Array] | None = None,
    ) -> list[Array]:
        """Run once and return the outputs.

        Args:
            output_names: Outputs to return, in this order; all of them where None.
            feeds: Every input by name: NumPy arrays, objects with ``__dlpack__``, on a GPU also with ``__cuda_array_interface__``, and
                memory of hip-python. Dense ones are read in place.
            out: Arrays to write some or all outputs into: dense, writable, of the output's dtype and shape; of the same kinds.

        Returns:
            One array per name; those of ``out`` are the caller's own. Caches that grow are views of buffers, known when handed back; on a
            GPU they are tensors of PyTorch in its memory, where that is installed for it.

        Raises:
            ModelError: A name, dtype, shape or layout does not fit.
            DeviceError: A call into the device library failed.
        """
        if self.growing is not None and self.growing.are_of_model(feeds):
            names = [self._outputs[index].name for index in self._select(output_names)]
            self.check_open()
            return self.growing.run(names, feeds, out or {}, self.run, self._load_step)
        wanted = self._select([port.name for port in self.outputs] if output_names is None else output_names)
        if self._counted is not None:
            self._counted.check(out or {})
        inputs = self._import_inputs(feeds)
        session, asked = self._session_for(inputs, on_device=any(map(is_on_device, [*inputs, *(out or {}).values()])))
        given = self._import_outputs(out or {}, asked if asked is not None else self._dims_of(session))
        if asked is not None:
            results = cut_into(given, session.run(inputs, [None] * len(self._outputs)), asked, self._outputs)
        else:
            results = session.run(inputs, [given.get(port.name) for port in self._outputs])
        if self._counted is not None:
            results = self._counted.cut(results, self._outputs)
        return [
            (out or {})[port.name] if port.name in given else from_native(results[index], port)
            for index, port in ((index, self._outputs[index]) for index in wanted)
        ]

    def _load_step(self, feeds: Mapping[str, Any]) -> None:
        """Load the program for one new row in the caches, which comes behind a prompt."""
        if self.growing is not None and self.growing.new in self.symbols and not self.buckets:
            sizes, _ = self._loaded.sizes_of([list(feeds[port.name].shape) for port in self.program_inputs])
            self.prewarm([{**dict(zip(self.symbols, sizes, strict=True)), str(self.growing.new): 1}])

    def run_async(
        self,
        output_names: Sequence[str] | None,
        feeds: Mapping[str, Any],
        *,
        out: Mapping[str, Array] | None = None,
    ) -> Future[list[Array]]:
        """Run once in a thread of the session's own and return at once.

        Args:
            output_names: As for ``run``.
            feeds: As for ``run``; arrays that stay as they are until the result is there.
            out: As for ``run``.

        Returns:
            What ``run`` returns or raises, when it is there; ``await asyncio.wrap_future(...)`` waits for it in a coroutine.

        Raises:
            ModelError: The session is closed.
        """
        self.check_open()
        if self._workers is None:
            self._workers = ThreadPoolExecutor(thread_name_prefix="hipdnn-mlir")
        return self._workers.submit(self.run, output_names, feeds, out=out)

    def enqueue(self, feeds: Mapping[str, Any], out: Mapping[str, Any], *, stream: Any) -> None:
        """Queue one run on a stream of the device and return at once; outputs are there when the stream gets past it.

        Args:
            feeds: Every input by name, as for ``run``: device arrays that stay as they are until then.
            out: Every output by name, of the output's dtype and shape: device arrays.
            stream: The stream (``hipStream_t``, ``CUstream``): its address as an int, one of hip-python's, or an object with
                ``__cuda_stream__``.

        Raises:
            ModelError: A name, dtype, shape or layout does not fit, or an output is missing.
            DeviceError: A call into the device library failed.
        """
        self.bind(feeds, out, stream=stream)()

    def bind(self, feeds: Mapping[str, Any], out: Mapping[str, Any], *, stream: Any = None) -> Callable[[], None]:
        """Return a function that runs on these very arrays, without looking at them again: for where microseconds count.

        The arrays are kept. What is in them when a run gets to them counts: whoever writes them does so on the same stream, or waits.

        Args:
            feeds: As for ``run``; with a stream as for ``enqueue``.
            out: Every output by name, of the output's dtype and shape.
            stream: As for ``enqueue``: the function queues a run there and returns at once. Without one it returns when the outputs are
                there.

        Raises:
            ModelError: A name, dtype, shape or layout does not fit, or an output is missing.
            DeviceError: A call into the device library failed. The function raises it, too.
        """
        missing = [port.name for port in self._outputs if port.name not in out]
        if missing:
            raise ModelError(f"no array for the outputs {', '.join(missing)}", expected=names_of(self._outputs))
        address = None if stream is None else stream_address(stream)
        inputs = self._import_inputs(feeds, address)
        session, asked = self._session_for(inputs, on_device=stream is not None)
        if asked is not None:
            raise ModelError("sizes between buckets are run by run() alone", hint="give arrays of a bucket's sizes")
        given = self._import_outputs(out, self._dims_of(session), address)
        return session.bind(inputs, [given[port.name] for port in self._outputs], address)

    def _dims_of(self, session: _runtime.Session) -> Sequence[Sequence[int | str]]:
        """Return the dims of each output; those of fixed sizes without asking the runtime, which would allocate them anew."""
        return session.outputs if self.symbols else [port.shape for port in self._outputs]

    @property
    def device(self) -> _runtime.Device:
        """The device that it runs on."""
        return self._device

    @property
    def device_settings(self) -> Settings:
        """What the device was opened with."""
        return Settings(self._settings)

    def loaded_for(self, feeds: Mapping[str, Any]) -> tuple[_runtime.Session, list[Any]]:
        """Return the program as it is loaded for the sizes of these inputs, and the inputs as it takes them; for tools that measure.

        Args:
            feeds: As for ``run``. Those of sizes between buckets are padded.

        Raises:
            ModelError: As for ``run``.
            DeviceError: As for ``run``.
        """
        if self.growing is not None and self.growing.are_of_model(feeds):
            feeds = self.growing.call(feeds).feeds
        inputs = self._import_inputs(feeds)
        session, _ = self._session_for(inputs)
        return session, inputs

    def _select(self, names: Sequence[str] | None) -> list[int]:
        """Return the indices of the outputs asked for."""
        if names is None:
            return list(range(len(self._outputs)))
        index = {port.name: i for i, port in enumerate(self._outputs)}
        for name in names:
            if name not in index:
                raise ModelError(f"no output '{name}'", expected=names_of(self._outputs))
        return [index[name] for name in names]

    def _import_inputs(self, feeds: Mapping[str, Any], stream: int | None = None) -> list[Any]:
        """Return the inputs in order, in the form the runtime takes."""
        self._check_names(feeds)
        arrays = [to_input(feeds[port.name], port, self._device, stream) for port in self.program_inputs]
        for name, numbers in self.sizing.items():
            check_sizing(name, feeds[name], numbers)
        return arrays

    def _check_names(self, feeds: object) -> None:
        """Refuse names that are not those of the program's inputs, and a session that is closed."""
        self.check_open()
        check_names(feeds, self.program_inputs)

    def _import_outputs(
        self, out: Mapping[str, Any], shapes: Sequence[Sequence[int | str]], stream: int | None = None
    ) -> dict[str, Any]:
        """Return the caller's output arrays by name, in the form the runtime takes."""
        if not out:
            return {}
        self._select(list(out))
        given = {}
        for port, dims in zip(self._outputs, shapes, strict=True):
            if port.name in out:
                sized = port if port.shape == tuple(dims) else replace(port, shape=tuple(dims))
                given[port.name] = to_output(out[port.name], sized, self._device, stream)
        return given


def load(program: Source, **options: Unpack[SessionOptions]) -> Session:
    """Load a program file; options and errors as for ``Session``."""
    return Session(program, **options)
