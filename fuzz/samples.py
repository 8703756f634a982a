"""``samples.py FOLDER``, with tests/ on the path: seeds and a dictionary for libFuzzer.

Seeds are the graphs and kernels that the op table's samples become on the CPU; ``FOLDER/words`` has the names in these and in a program's
schema.
"""

import json
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from torch_mlir import ir

import torch_ir
from hipdnn_mlir.ir.blocks import operations
from hipdnn_mlir.ir.dialect import ExecutableOp, KernelOp, make_context
from hipdnn_mlir.ops.samples import samples
from hipdnn_mlir.passes.pipeline import OFFLOAD_STEPS, Runner


def main(folder: Path) -> None:
    """Write a file for each graph and each kernel that is not there yet."""
    runner = Runner()
    with make_context(), ir.Location.unknown():
        for sample in samples():
            if sample.rule is not None:
                continue
            module = ir.Module.parse(torch_ir.module(sample))
            runner.run(module.operation, OFFLOAD_STEPS)
            for op in operations(module.operation):
                if isinstance(op, ExecutableOp):
                    roles = [{"uid": each["uid"], "role": each["role"]} for each in json.loads(op.operands_json.value)]
                    _write(folder / "graph", op, {"operands": roles, "descriptors": json.loads(op.descriptors.value)})
                elif isinstance(op, KernelOp):
                    _write(folder / "kernel", op, json.loads(op.description.value))
    seeds = [json.loads(path.read_text()) for kind in ("graph", "kernel") for path in (folder / kind).iterdir()]
    schema = json.loads(files("hipdnn_mlir.program").joinpath("schema.json").read_text())
    words = sorted({word for word in _names([schema, *seeds]) if word.isidentifier()})
    (folder / "words").write_text("".join(f'"\\"{word}\\""\n' for word in words))


def _names(value: Any) -> Iterator[str]:
    """Keys and texts in JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        yield from _names(list(value.values()))
    elif isinstance(value, list):
        for each in value:
            yield from _names(each)


def _write(folder: Path, op: ExecutableOp | KernelOp, rest: dict[str, object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = op.sym_name.value
    (folder / name).write_text(json.dumps({"name": name, "summary": op.summary.value, **rest}, separators=(",", ":")))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
