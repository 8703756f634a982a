"""``samples.py FOLDER``, with tests/ on the path: writes the graphs and kernels that the op table's samples become on the CPU, as seeds."""

import json
import sys
from pathlib import Path

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


def _write(folder: Path, op: ExecutableOp | KernelOp, rest: dict[str, object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = op.sym_name.value
    (folder / name).write_text(json.dumps({"name": name, "summary": op.summary.value, **rest}, separators=(",", ":")))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
