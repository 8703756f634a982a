"""A PyTorch module as the compiler reads it. Needs torch."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch_mlir import ir

from hipdnn_mlir_runtime.errors import UnsupportedError
from hipdnn_mlir_runtime.pytorch import load_exported, to_numpy
from hipdnn_mlir_runtime.torch import Calling

from ..dynamic.each_sample import each_sample
from ..dynamic.input_sizes import InputSizes, Shapes
from ..dynamic.solver import Solver
from ..frontend.index_ranges import Range
from ..frontend.pytorch.exported import Examples, Exported, label, read_module, sized_by_values, source_line
from ..frontend.pytorch.importer import import_graph
from ..frontend.pytorch.sizes import check_sizes, has_windows, symbols_at, tell_sizes
from ..frontend.pytorch.specialize import StaticGraph, fold_constants, specialized
from ..frontend.sizes.input_sizes import resolved
from ..frontend.sizes.samples import MAX_BEYOND, Samples, samples
from ..frontend.sizing_rules import Numbers
from ..ir.imported import Imported
from ..ops.strides import Dims
from ..passes.pipeline import FX_STEPS, Runner

_HINT = "replace or remove them, or use torch.compile(module, backend='hipdnn'), which leaves to PyTorch what cannot be compiled"


_SMALL = 10
"""Sizes up to this are smaller than all samples."""


@dataclass(frozen=True)
class Sized:
    """A module at given dims of its inputs."""

    dims: Mapping[str, Dims]
    graph: StaticGraph


class TorchSource:
    """A PyTorch module, exported.

    Args:
        exported: from `read_module`.
        where: its name, for messages.

    Raises:
        UnsupportedError: ops whose results have sizes that depend on values.
    """

    def __init__(self, exported: Exported, where: str) -> None:
        self._exported = exported
        self._where = where
        of_values = sized_by_values(exported)
        if of_values:
            raise self.located(UnsupportedError(of_values))
        self._folded = fold_constants(exported)

    @classmethod
    def read(
        cls, model: torch.nn.Module | ExportedProgram, examples: Examples | None, dynamic_shapes: Any
    ) -> "TorchSource":
        """Export a module, as `read_module`."""
        where = type(model).__name__
        return cls(read_module(model, examples, dynamic_shapes, where), where)

    @classmethod
    def load(cls, path: Path) -> "TorchSource":
        """Load a `.pt2` file, as `load_exported`."""
        exported = read_module(load_exported(path), None, None, str(path))
        return cls(replace(exported, name=path.stem), str(path))

    @property
    def exported(self) -> Exported:
        """The module."""
        return self._exported

    @property
    def calling(self) -> Calling:
        """How arguments and results are nested."""
        return self._exported.calling

    @property
    def sha256(self) -> str:
        """Digest of the module's ops and weights."""
        digest = hashlib.sha256(self._exported.graph.code.encode())
        for tensor in self._exported.constants.values():
            digest.update(np.ascontiguousarray(to_numpy(tensor)).reshape(-1).view(np.uint8).data)
        return digest.hexdigest()

    def located(self, error: UnsupportedError) -> UnsupportedError:
        """The error with the lines of the user's code that its nodes come from."""

        def place(node: str) -> str:
            known = dict.fromkeys(line for name in node.split("+") if (line := self.lines.get(name)))
            return f"{node} ({', '.join(known)})" if known else node

        rejects = [replace(reject, node=place(reject.node)) for reject in error.rejects]
        hint = "; ".join(filter(None, (error.hint if "explain" not in (error.hint or "") else "", _HINT)))
        return UnsupportedError(rejects, target=error.target, where=self._where, hint=hint)

    @cached_property
    def lines(self) -> dict[str, str]:
        """Where in the user's code a node comes from; empty where that is not known."""
        return {label(node): source_line(node) for node in self._exported.graph.graph.nodes}

    def sizes(self, shapes: Shapes) -> InputSizes:
        """The dims of its inputs, with what the user says of them."""
        return resolved(self._exported.dims, shapes, self._where)

    def separated(self, sizes: InputSizes, promised: set[str]) -> InputSizes:
        """As they are: `torch.export` has found out which sizes are equal."""
        del promised
        return sizes

    def related(self, sizes: InputSizes, promised: set[str]) -> InputSizes:
        """As they are, likewise."""
        del promised
        return sizes

    def samples(self, sizes: InputSizes, beyond: int = 0) -> Iterator[Samples]:
        """Sets of sample points; those first that the ranges of its dimensions take."""
        count, windows = len(sizes.table.symbols), has_windows(self._exported)
        sets = [*samples(count, has_windows=windows, beyond=beyond)]
        least = max((low for low, _ in self._exported.ranges.values() if low > _SMALL), default=0)
        if beyond < least <= MAX_BEYOND and not any(self._takes(sizes, chosen) for chosen in sets):
            sets += samples(count, has_windows=windows, beyond=least)
        return iter(sorted(sets, key=lambda chosen: not self._takes(sizes, chosen)))

    def _takes(self, sizes: InputSizes, chosen: Samples) -> bool:
        """Whether all points are within the ranges of the dimensions."""
        exported = self._exported
        symbols = (symbols_at(exported, sizes.at(point)) for point in (*chosen.points, chosen.held_out))
        return all(
            low <= known[symbol] <= (known[symbol] if high is None else high)
            for known in symbols
            for symbol, (low, high) in exported.ranges.items()
            if symbol in known
        )

    def at(self, points: Sequence[Mapping[str, Dims]]) -> list[Sized]:
        """The module at each point."""
        return each_sample(lambda dims: Sized(dims, specialized(self._exported, dims, self._folded)), points)

    def tell(self, models: Sequence[Sized], solver: Solver) -> None:
        """As `tell_sizes`."""
        tell_sizes(self._exported, [model.dims for model in models], solver)

    def check(self, models: Sequence[Sized], held_out: Sized, point: Sequence[int], solver: Solver) -> None:
        """As `check_sizes`."""
        check_sizes([model.graph for model in models], held_out.graph, point, solver)

    def convert(self, model: Sized, context: ir.Context, runner: Runner) -> Imported:
        """Import the graph and simplify it."""
        imported = import_graph(model.graph, self._exported, context)
        with context, ir.Location.unknown():
            runner.run(imported.module.operation, FX_STEPS)
        return imported

    def ranges(self, models: Sequence[Sized], imported: Imported) -> dict[str, Range]:
        """None are known."""
        del models, imported
        return {}

    def sizing(self, model: Sized) -> dict[str, Numbers]:
        """There are none: PyTorch knows sizes where it exports."""
        del model
        return {}
