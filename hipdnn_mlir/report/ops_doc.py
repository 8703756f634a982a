"""docs/ops.md from the op table: `python -m hipdnn_mlir.report.ops_doc [FILE]` writes it, or prints it without a file.

Dtypes and engines are what a dry run of each row's samples finds, limits are the reasons of its rejected samples: nothing is listed twice.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hipdnn_mlir_runtime import dtypes
from hipdnn_mlir_runtime.dtypes import ALL
from hipdnn_mlir_runtime.errors import NO_ROW, Reject

from ..frontend.decompositions.registry import Decomposition
from ..frontend.decompositions.schema_body import write_body
from ..frontend.decompositions.table import DECOMPOSITIONS
from ..ops.emitter import Operand
from ..ops.graph import Graph
from ..ops.kernels import Kernel
from ..ops.regions import emit_region, kernel_region
from ..ops.registry import ONNX
from ..ops.row import OpRow
from ..ops.samples import Sample, samples
from ..ops.spec import Refusal, TensorArg
from ..ops.table import rows
from ..targets.host import HOST

_GENERAL = frozenset({"dtype", "dynamic-shape", "engine", NO_ROW})
Made = TypeVar("Made")
_HEADER = """# Supported operations

Made by `python -m hipdnn_mlir.report.ops_doc docs/ops.md` from the table that the compiler itself uses (`hipdnn_mlir/ops`);
a test compares.

An ONNX operator is converted to torch ops by torch-mlir, or has a row of its own. Each op then becomes one or more hipDNN operations,
data movement, or, where hipDNN has no operation or dtype for it, a kernel of the target's port. Neighbouring operations share a graph where
one engine takes them together; elementwise ones that are left share an elementwise kernel. ONNX operators that torch-mlir writes with the
ops below work too. Dynamic dimensions may stay dynamic. `hipdnn-mlir explain MODEL.onnx` says what takes which node of a model, and why
one is left out.

Operators of the domain `hipdnn` are operations of hipDNN for which ONNX has none; a model may name them like any others (opset 1). ONNX
Runtime by itself does not know them.

Engines are those of target `host`; `kernel` stands for its kernels. A dtype is listed where the sample calls of the row are taken in it;
on a processor for which oneDNN has no f16 or bf16, matmuls and convolutions of that type are computed in f32.

With `--precision f16` or `bf16` an f32 model runs in that type where the last column says `narrow`, in f32 where it says `wide`, and
elsewhere (data movement too) in the 16-bit type if all operands but constants have it. Layer norm and batch norm read and write either
type and compute in f32. Matmuls and sums are carried in f32 in any case, and the numbers of formulas are f32: HardSwish's 1/6, a `Mul`
by a number of rank 0. So are those of operators in models that are f16 or bf16 themselves; a constant that such a model has is of its type.
"""


@dataclass(frozen=True)
class _Line:
    """One line of a table; ops that agree in everything share it."""

    onnx: tuple[str, ...]
    becomes: str
    engines: tuple[str, ...]
    dtypes: tuple[str, ...]
    precision: str


_SOURCE = "Source:"


def markdown() -> str:
    """The whole page."""
    computed = [row for row in rows().values() if row.move is None]
    moved = [row for row in rows().values() if row.move is not None]
    cases: dict[str, list[Sample]] = {}
    for sample in samples():
        cases.setdefault(sample.op, []).append(sample)
    return "\n".join([
        _HEADER,
        "## ONNX operators\n",
        _table([row for row in computed if row.onnx], cases),
        "## Torch ops without an ONNX operator of their own\n",
        _table([row for row in computed if not row.onnx], cases),
        "## Data movement\n",
        "Views are strides of what reads them; where no view can show a value, it is copied. Any dtype can be viewed and copied.\n",
        _movements(moved),
        "## Operators written out before import\n",
        "These are compositions of the operators above; a node is written out for its types, operands and attributes; its parts then run",
        "as they do in a model that has them. A node that a decomposition does not cover is rejected with the reason.\n",
        _markdown_table(["operator", "decomposed into", "source"], list(decomposition_rows())),
    ])  # fmt: skip


def _table(found: list[OpRow], cases: dict[str, list[Sample]]) -> str:
    lines: dict[_Line, list[str]] = {}
    for row in found:
        lines.setdefault(_line(row, cases[row.name]), []).append(row.name)
    head = ["ONNX", "torch", "hipDNN", "engine", "dtypes", "not taken", "precision"]
    body = []
    for line, names in sorted(lines.items(), key=lambda item: (item[0].onnx, item[1])):
        limits = _limits(case for name in names for case in cases[name])
        cells = [_joined(line.onnx), _joined(_short(names)), line.becomes, _joined(line.engines), _joined(line.dtypes)]
        body.append([*cells, "; ".join(limits), line.precision])
    return _markdown_table(head, body)


def _movements(found: list[OpRow]) -> str:
    lines: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for row in found:
        lines.setdefault((row.onnx, row.becomes), []).append(row.name)
    body = [[_joined(onnx), _joined(_short(names)), becomes] for (onnx, becomes), names in sorted(lines.items())]
    return _markdown_table(["ONNX", "torch", "becomes"], body)


def _line(row: OpRow, cases: list[Sample]) -> _Line:
    accepted = [sample for sample in cases if sample.rule is None]
    engines = {sample.engine.removeprefix("HOST_").removesuffix("_ENGINE").lower() for sample in accepted}
    precision = "" if row.precision == "follow" else row.precision
    return _Line(row.onnx, row.becomes, tuple(sorted(engines)), _dtypes(accepted), precision)


def _limits(cases: Iterable[Sample]) -> list[str]:
    """One reason per rule that is not about dtypes or open shapes."""
    reasons: dict[str, str] = {}
    for sample in cases:
        if sample.rule is not None and sample.rule not in _GENERAL:
            reasons.setdefault(sample.rule, _reason(sample))
    return list(reasons.values())


def _dtypes(accepted: list[Sample]) -> tuple[str, ...]:
    """Dtypes of the first operand in which some accepted call is taken."""
    bases = [(sample, _first(sample)) for sample in accepted]
    return tuple(d.name for d in ALL if any(base and _is_taken(sample.with_dtype(base, d)) for sample, base in bases))


def _first(sample: Sample) -> dtypes.DType | None:
    return next((arg.type.dtype for arg in sample.view().args if isinstance(arg, TensorArg)), None)


def _made(sample: Sample, make: Callable[..., Made | Reject]) -> Made | Reject:
    op = sample.view()
    tensors = [arg for arg in op.args if isinstance(arg, TensorArg) and arg.scalar is None]
    keys = [("result", index) for index in range(len(op.results))]
    used = list(zip(keys, op.results, strict=True))[: None if sample.uses_all else 1]
    try:
        operands = {arg.key: Operand(arg.type.static_dims(), arg.type.dtype) for arg in tensors}
    except Refusal as refusal:
        return Reject(op.name, refusal.rule, refusal.reason)
    return make([(op, keys)], operands, used)


def _is_taken(sample: Sample) -> bool:
    graph = _made(sample, emit_region)
    if isinstance(graph, Graph) and HOST.engine_for(graph) is not None:
        return True
    return isinstance(_made(sample, kernel_region), Kernel)


def _reason(sample: Sample) -> str:
    row = rows()[sample.op]
    if row.emit is None:
        kernel = _made(sample, kernel_region)
        return kernel.reason if isinstance(kernel, Reject) else ""
    graph = _made(sample, emit_region)
    return graph.reason if isinstance(graph, Reject) else HOST.why_not(graph)


def _short(names: Iterable[str]) -> list[str]:
    return [f"`{name.removeprefix('torch.').removeprefix(ONNX)}`" for name in names]


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(parts)


def _markdown_table(head: list[str], body: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + "\n"


def decomposition_rows() -> Iterator[list[str]]:
    """Operators with what they are written out as, and the document that says so."""
    operators: dict[Decomposition, list[str]] = {}
    for (domain, op), write in sorted(DECOMPOSITIONS.items()):
        operators.setdefault(write, []).append(f"{domain}.{op}" if domain else op)
    for write, names in sorted(operators.items(), key=lambda item: item[1]):
        yield [", ".join(f"`{name}`" for name in names), *_documented(write)]


def _documented(write: Decomposition) -> tuple[str, str]:
    """The first sentence of a decomposition's docstring, and its source."""
    paragraphs = [" ".join(part.split()) for part in (inspect.getdoc(write) or "").split("\n\n")]
    source = next(part.removeprefix(_SOURCE).strip() for part in paragraphs if part.startswith(_SOURCE))
    what = "its function body" if write is write_body else paragraphs[0]
    return what.rstrip("."), source.rstrip(".")


def main() -> int:
    """Write the page to the file given, or to standard output."""
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(markdown())
    else:
        sys.stdout.write(markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
