"""An ONNX model, compiled for the CPU and loaded: both may end in errors of the package that are no defects."""

from __future__ import annotations

import sys
from pathlib import Path

import hipdnn_mlir
import models as small_models
from forked import Arguments, run
from hipdnn_mlir.service.request import Request
from hipdnn_mlir.service.server import perform_here
from hipdnn_mlir_runtime.errors import HipdnnMlirError, PassError
from model_mutations import mutated
from onnx_backend.node_cases import node_cases

MOST_SEED_BYTES = 1 << 16
LOADED_BYTES = 1 << 22


def compile_and_load(data: bytes) -> None:
    """Compile bytes as a file's as the child does, and load the program where it is small."""
    model, program = Path("model.onnx").absolute(), Path("model.hipdnn").absolute()
    model.write_bytes(data)
    try:
        perform_here(Request.to_compile(model, program))
        if program.stat().st_size < LOADED_BYTES:
            hipdnn_mlir.load(program)
    except PassError:
        raise
    except HipdnnMlirError:
        return


def seeds() -> list[bytes]:
    """The node cases of onnx, and small models."""
    found = [case.model.SerializeToString() for case in node_cases().values()]
    found += [small_models.mlp(4, (8, 16, 4)).SerializeToString(), small_models.resnet().SerializeToString()]
    return [each for each in found if len(each) <= MOST_SEED_BYTES]


def main() -> int:
    """Run the target; the exit status is 1 where an input ended as none may."""
    compile_and_load(
        small_models.mlp(4, (8, 16, 4)).SerializeToString()
    )  # loads the compiler once, for all that are forked
    return run(compile_and_load, mutated, seeds(), Arguments.parse(sys.argv[1:])) > 0


if __name__ == "__main__":
    sys.exit(main())
