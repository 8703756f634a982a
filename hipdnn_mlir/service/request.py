"""What a compiler in another process is asked to do: one type for every caller."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from hipdnn_mlir_runtime.errors import RefusedPlan
from hipdnn_mlir_runtime.precision import UNCHANGED, Precision

from ..dynamic.input_sizes import Buckets, Given, Shapes

if TYPE_CHECKING:
    from ..targets.table import TargetName

Action = Literal["hello", "place", "compile", "explain", "regions"]
_DESCRIPTORS = {"place": 1, "compile": 2}
"""File descriptors that come with a request without a path: the model, then the program file."""


@dataclass(frozen=True)
class Request:
    """One request. `hipdnn_mlir.service.server` says what comes back.

    Attributes:
        action: `hello` asks for versions and targets, `place` for partitions, `compile` for a program file, `explain` for an explanation,
            `regions` for the torch dialect of each region.
        model: absolute path of the ONNX or `.pt2` file; None where the model comes as a file descriptor (`hipdnn_mlir.frontend.container`).
        output: absolute path of the program file (`compile` of a path).
        name: of the program, for a model that has no path.
        target, precision, shapes, buckets, page_rows, last_valid, dump_ir: as for `hipdnn_mlir.compile`, JSON types only.
        refused: the fields of each refused plan, as for `hipdnn_mlir.compile` (`compile` of a path).
        plans: as for `hipdnn_mlir.explain`.
        digest: of the model that a program was made from, as the program has it (`regions`).
        targets: for more than one, `explain` compares these (`hipdnn_mlir.report.compare`) instead of explaining `target`.
        placement, dynamic_fallback: as for `hipdnn_mlir.placement.place` (`place`).
        progress: messages `{"progress": text}` come before the reply.
        explain_file: absolute path for what was placed and why not the rest, JSON or `*.html` (`place`); none where empty.
        cache_key: what the program is kept under, which its file then says (`compile` of a descriptor); none where empty.
    """

    action: Action
    model: str | None = None
    output: str | None = None
    name: str = "model"
    target: TargetName = "host"
    precision: Precision = UNCHANGED
    shapes: dict[str, list[Given] | Given] = field(default_factory=dict)
    buckets: dict[str, list[int]] = field(default_factory=dict)
    page_rows: int | None = None
    last_valid: dict[str, str] = field(default_factory=dict)
    dump_ir: str | None = None
    refused: list[list[str]] = field(default_factory=list)
    plans: bool = False
    digest: str = ""
    targets: list[str] = field(default_factory=list)
    placement: str = "profitable"
    dynamic_fallback: str = "compile"
    progress: bool = False
    explain_file: str = ""
    cache_key: str = ""

    @classmethod
    def to_compile(
        cls,
        model: Path,
        output: Path,
        *,
        target: TargetName = "host",
        precision: Precision = UNCHANGED,
        shapes: Shapes | None = None,
        buckets: Buckets | None = None,
        page_rows: int | None = None,
        last_valid: Mapping[str, str] | None = None,
        refused: Sequence[RefusedPlan] = (),
        dump_ir: Path | None = None,
    ) -> Request:
        """The request to compile a model file to a program file; arguments as for `hipdnn_mlir.compile`."""
        made = cls._of_file("compile", model, target, precision, shapes, buckets)
        return replace(
            made,
            output=str(output.absolute()),
            page_rows=page_rows,
            last_valid=dict(last_valid or {}),
            refused=[list(asdict(plan).values()) for plan in refused],
            dump_ir=None if dump_ir is None else str(dump_ir.absolute()),
        )

    @classmethod
    def to_explain(
        cls,
        model: Path,
        *,
        targets: Sequence[TargetName] = ("host",),
        precision: Precision = UNCHANGED,
        shapes: Shapes | None = None,
        buckets: Buckets | None = None,
        plans: bool = False,
    ) -> Request:
        """The request to explain a model file.

        The result is `Explanation.to_dict()` for one target, `TargetComparison.to_dict()` for several; other arguments as for
        `hipdnn_mlir.explain`.
        """
        made = cls._of_file("explain", model, targets[0], precision, shapes, buckets)
        return replace(made, plans=plans, targets=list(targets[1:] and targets))

    @classmethod
    def to_read_regions(
        cls, model: Path, *, digest: str, target: TargetName, precision: Precision, shapes: Shapes
    ) -> Request:
        """The request for the torch dialect of each region of a program's model; arguments as for `report.page.torch_ir.region_texts`."""
        return replace(cls._of_file("regions", model, target, precision, shapes, None), digest=digest)

    @classmethod
    def _of_file(
        cls,
        action: Action,
        model: Path,
        target: TargetName,
        precision: Precision,
        shapes: Shapes | None,
        buckets: Buckets | None,
    ) -> Request:
        return cls(
            action,
            str(model.absolute()),
            target=target,
            precision=precision,
            shapes={
                name: sizes if isinstance(sizes, (int, str)) or sizes is None else list(sizes)
                for name, sizes in (shapes or {}).items()
            },
            buckets={name: list(sizes) for name, sizes in (buckets or {}).items()},
        )

    @classmethod
    def parse(cls, message: bytes, descriptors: int) -> Request:
        """The request in a message.

        Raises:
            ValueError: the message is no request, or brings another number of descriptors than it needs.
        """
        data = json.loads(message)
        if not isinstance(data, dict) or data.get("action") not in get_args(Action):
            raise ValueError(f"a request has an action out of {', '.join(get_args(Action))}")
        unknown = sorted(set(data) - set(cls.__dataclass_fields__))
        if unknown:
            raise ValueError(f"a request has no field {unknown[0]!r}")
        request = cls(**data)
        needed = 0 if request.model else _DESCRIPTORS.get(request.action, 0)
        if descriptors != needed:
            raise ValueError(f"{request.action} takes {needed} file descriptors, {descriptors} came along")
        if request.action in ("explain", "regions") and not request.model:
            raise ValueError(f"{request.action} takes the path of a model")
        return request

    def to_json(self) -> dict[str, Any]:
        """The fields, JSON types only."""
        return asdict(self)

    @property
    def where(self) -> str:
        """What messages call the model."""
        return self.model or self.name

    def command(self, model: str) -> list[str]:
        """The command line that does the same, or the most of it, in one process to a model in a file."""
        command = ["hipdnn-mlir", "compile" if self.action == "compile" else "explain", model, "--in-process"]
        command += ["--target", self.target]
        command += [] if self.precision == UNCHANGED else ["--precision", self.precision]
        for name, sizes in self.shapes.items():
            dims = sizes if isinstance(sizes, list) else [sizes]
            separator = "x" if all(isinstance(size, int) for size in dims) else ","
            command += ["--shape", f"{name}={separator.join('?' if size is None else str(size) for size in dims)}"]
        command += [f"--bucket={name}={','.join(map(str, sizes))}" for name, sizes in self.buckets.items()]
        command += [f"--last-valid={output}={mask}" for output, mask in self.last_valid.items()]
        return [*command, "-o", "out.hipdnn"] if self.action == "compile" else command
