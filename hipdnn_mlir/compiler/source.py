"""A model as the compiler reads it, whatever it is written in."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import onnx
from torch_mlir import ir

from hipdnn_mlir_runtime.errors import ModelError, UnsupportedError

from ..dynamic.facts import Computed
from ..dynamic.input_sizes import InputSizes, Shapes
from ..dynamic.solver import Solver
from ..frontend.dim_names import separated
from ..frontend.index_ranges import Range, index_ranges
from ..frontend.last_valid import keep_last_valid
from ..frontend.model_file import ModelFile, is_compiled_ahead, read_model
from ..frontend.paged_caches import paged
from ..frontend.prepare import Slim, name_nodes, slim_models
from ..frontend.related_dims import related
from ..frontend.sizes.input_sizes import input_sizes
from ..frontend.sizes.known_sizes import check_sizes, tell_sizes, top_k_facts, window_facts
from ..frontend.sizes.samples import Samples, samples_for
from ..frontend.sizing_rules import Numbers
from ..ir.imported import Imported
from ..ops.evaluate import Array
from ..ops.strides import Dims
from ..passes.pipeline import Runner
from .convert import convert

if TYPE_CHECKING:
    from hipdnn_mlir_runtime.torch import Calling

Prepared = TypeVar("Prepared")
"""A model with fixed sizes, ready to be imported."""


class Source(Protocol[Prepared]):
    """A model."""

    @property
    def sha256(self) -> str:
        """Digest of the model: of an ONNX file its bytes; of a module its ops and weights; empty for an ONNX model in memory."""

    @property
    def calling(self) -> "Calling | None":
        """Of a module: how its arguments and results are nested."""

    def located(self, error: UnsupportedError) -> UnsupportedError:
        """The error with what is known of where its nodes come from."""

    def sizes(self, shapes: Shapes) -> InputSizes:
        """The dims of its inputs, with what the user says of them."""

    def separated(self, sizes: InputSizes, promised: set[str]) -> InputSizes:
        """The same with sizes of their own for dims that share a name and may differ; `promised` names mean one size."""

    def related(self, sizes: InputSizes, promised: set[str]) -> InputSizes:
        """The same without the sizes that its operators fix or relate to others; `promised` names stay."""

    def samples(self, sizes: InputSizes, beyond: int = 0) -> Iterator[Samples]:
        """Sets of sample points for its dynamic dimensions, to be tried in order; with `beyond` one of sizes that are larger."""

    def at(self, points: Sequence[Mapping[str, Dims]]) -> list[Prepared]:
        """The model where its inputs have the given dims, prepared alike at each point."""

    def tell(self, models: Sequence[Prepared], solver: Solver) -> None:
        """Tell a solver what the model says of its sizes, given it at the solver's points."""

    def check(self, models: Sequence[Prepared], held_out: Prepared, point: Sequence[int], solver: Solver) -> None:
        """Whether sizes at one more point are what the solver expects; raises DynamicDimensionError."""

    def convert(self, model: Prepared, context: ir.Context, runner: Runner) -> Imported:
        """The model in the torch dialect."""

    def ranges(self, models: Sequence[Prepared], imported: Imported) -> dict[str, Range]:
        """Valid values of the inputs that reach indices."""

    def sizing(self, model: Prepared) -> dict[str, Numbers]:
        """Inputs that sizes follow from: per element the numbers that it may be."""


class OnnxSource:
    """An ONNX model.

    Args:
        proto: the model; not modified.
        where: its file, for messages.
        external: as for `slim_models`.
        file: what the model was read from; None for one in memory.

    Attributes:
        proto: as given.
        where: as given.
        external: as given.
    """

    def __init__(
        self,
        proto: onnx.ModelProto,
        where: str,
        external: Mapping[str, Array] | None,
        file: ModelFile | None = None,
    ) -> None:
        self.proto = proto
        self.where = where
        self.external = external
        self._file = file

    @classmethod
    def read(cls, model: str | Path | bytes | onnx.ModelProto, page_rows: int | None = None) -> "OnnxSource":
        """Read a model, as `read_model`.

        Args:
            model: the model.
            page_rows: lay its caches in pages of so many rows, as `paged` does.

        Raises:
            ModelError: as for `read_model` and `paged`; a model that was compiled ahead for ONNX Runtime.
        """
        file = read_model(model)
        where = str(model) if isinstance(model, (str, Path)) else "model"
        if any(is_compiled_ahead(node) for node in file.proto.graph.node):
            hint = "run it in ONNX Runtime, or give the model that it was made from"
            raise ModelError(
                "compiled ahead: its EPContext nodes hold programs for ONNX Runtime", where=where, hint=hint
            )
        proto = file.proto if page_rows is None else paged(file.proto, page_rows, where)
        return cls(proto, where, file.external, file)

    @property
    def sha256(self) -> str:
        """The digest of the file."""
        return self._file.sha256 if self._file else ""

    @property
    def calling(self) -> None:
        """Nothing: inputs and outputs are tensors."""

    def located(self, error: UnsupportedError) -> UnsupportedError:
        """The error with the file, and with operators as the model writes them."""
        graph = onnx.GraphProto(node=self.proto.graph.node)
        name_nodes(graph)
        operators = {node.name: node.op_type for node in graph.node}
        rejects = [
            replace(reject, op=as_written(reject.op, reject.node.split("+"), operators)) for reject in error.rejects
        ]
        return UnsupportedError(rejects, target=error.target, where=self.where, hint=error.hint)

    def keep_last_valid(self, masks: Mapping[str, str]) -> "OnnxSource":
        """As the function of that name."""
        return OnnxSource(keep_last_valid(self.proto, masks, self.where), self.where, self.external, self._file)

    def sizes(self, shapes: Shapes) -> InputSizes:
        """As `input_sizes`."""
        return input_sizes(self.proto, shapes, self.where)

    def separated(self, sizes: InputSizes, promised: set[str]) -> InputSizes:
        """As the function of that name."""
        return separated(self.proto, sizes, promised, self.where, self.external)

    def related(self, sizes: InputSizes, promised: set[str]) -> InputSizes:
        """As the function of that name."""
        return related(self.proto, sizes, promised, self.where, self.external)

    def samples(self, sizes: InputSizes, beyond: int = 0) -> Iterator[Samples]:
        """As `samples_for`."""
        return samples_for(self.proto, sizes, beyond)

    def at(self, points: Sequence[Mapping[str, Dims]]) -> list[Slim]:
        """As `slim_models`."""
        return slim_models(self.proto, points, self.where, self.external)

    def tell(self, models: Sequence[Slim], solver: Solver) -> None:
        """What was assumed in folding, and what the nodes say of their sizes."""
        protos = [slim.model for slim in models]
        solver.learn(fact for fact in models[0].facts if isinstance(fact, Computed))
        tell_sizes(protos, solver)
        solver.learn(models[0].facts)
        solver.learn(window_facts(protos))
        solver.learn(top_k_facts(protos))

    def check(self, models: Sequence[Slim], held_out: Slim, point: Sequence[int], solver: Solver) -> None:
        """As `check_sizes`."""
        check_sizes([slim.model for slim in models], held_out.model, point, solver)

    def convert(self, model: Slim, context: ir.Context, runner: Runner) -> Imported:
        """As the function of that name."""
        return convert(model, context, runner)

    def ranges(self, models: Sequence[Slim], imported: Imported) -> dict[str, Range]:
        """As `index_ranges`."""
        return index_ranges([slim.model for slim in models], [info.name for info in imported.inputs])

    def sizing(self, model: Slim) -> dict[str, Numbers]:
        """As the model's."""
        return model.sizing


def as_source(
    model: onnx.ModelProto | Source[Any], where: str = "model", external: Mapping[str, Array] | None = None
) -> Source[Any]:
    """An ONNX model as a source; a source as it is.

    Args:
        model: the model.
        where: of an ONNX model: its file, for messages.
        external: of an ONNX model: as for `slim_models`.
    """
    return OnnxSource(model, where, external) if isinstance(model, onnx.ModelProto) else model


def as_written(op: str, nodes: Iterable[str], operators: Mapping[str, str]) -> str:
    """The operators of a model's nodes, followed by the op that they became where that has another name."""
    written = dict.fromkeys(operators[node] for node in nodes if node in operators)
    return op if not written or op.removeprefix("torch.") in written else f"{', '.join(written)} ({op})"
