"""Programs for a machine that has the runtime but not the compiler: packed without their weights, which are made again there from the seed.

``python bench/carried.py DIRECTORY [--target TARGET]`` writes one file for each of ``PROGRAMS``; ``unpack`` loads one.
"""

from __future__ import annotations

import argparse
import hashlib
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx

# The models live with the tests, which this directory is not a part of.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from onnx import numpy_helper

import models
from hipdnn_mlir.ops.constant_plan import ConstantPlan
from hipdnn_mlir_runtime.errors import RefusedPlan

Array = npt.NDArray[np.generic]


def retyped(model: onnx.ModelProto, source: int, destination: int) -> onnx.ModelProto:
    """A model whose inputs, outputs and weights of one float type have another."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for value in (*made.graph.input, *made.graph.output):
        if value.type.tensor_type.elem_type == source:
            value.type.tensor_type.elem_type = destination
    dtype = onnx.helper.tensor_dtype_to_np_dtype(destination)
    for tensor in made.graph.initializer:
        if tensor.data_type == source:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(dtype), tensor.name))
    del made.graph.value_info[:]
    return made


def _half(model: onnx.ModelProto) -> onnx.ModelProto:
    return retyped(model, onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "bert12": models.encoder,
    "resnet50": models.resnet50,
    "mobilenet_v2": models.mobilenet_v2,
    "resnet50-b32": lambda: models.resnet50(32),
    "resnet50-f16": lambda: _half(models.resnet50()),
    "resnet50-f16-b32": lambda: _half(models.resnet50(32)),
    "encoder-f16": lambda: _half(models.encoder()),
    "encoder-f16-b32": lambda: _half(models.encoder(batch=32)),
    "mlp-f16": lambda: _half(models.mlp(1, (1024, 4096, 1024))),
}
"""Models whose weights come from a seed."""


@dataclass(frozen=True)
class Carried:
    """What travels.

    Attributes:
        model: Key of ``MODELS``.
        precision: As it was compiled.
        text: The program.
        plan: The arithmetic on weights.
        weights: Names of the initializers that the program and the plan use.
        digest: SHA-256 over those initializers, so that another generator of random numbers does not go unnoticed.
    """

    model: str
    precision: str
    text: str
    plan: ConstantPlan
    weights: tuple[str, ...]
    digest: str


@dataclass(frozen=True)
class InMemory:
    """A program as ``hipdnn_mlir.load`` takes it, and the model that it was compiled from."""

    text: str
    tensors: Mapping[str, Array]
    model: onnx.ModelProto


def pack(name: str, precision: str, target: str, refused: Sequence[RefusedPlan] = ()) -> Carried:
    """Compile one of ``MODELS``, without the refused graphs.

    Raises:
        ValueError: A weight of the program is no initializer of the model.
    """
    from hipdnn_mlir.compiler.lower import lower

    model = MODELS[name]()
    lowered = lower(model, target=target, precision=precision, refused=refused)
    initializers = _initializers(model)
    needed = {*lowered.constants.arguments, *(c.tensor for c in lowered.model.constants if c.values is None)} - set(
        lowered.constants.results
    )
    if unknown := sorted(needed - set(initializers)):
        raise ValueError(f"{name}: {', '.join(unknown)} cannot be made again: no initializer has that name")
    weights = tuple(sorted(needed))
    text = lowered.with_weights().text
    return Carried(name, precision, text, lowered.constants, weights, _digest(initializers, weights))


def unpack(carried: Carried) -> InMemory:
    """Make the weights again.

    Raises:
        ValueError: They are not those that the program was compiled from.
    """
    model = MODELS[carried.model]()
    initializers = _initializers(model)
    if _digest(initializers, carried.weights) != carried.digest:
        raise ValueError(f"{carried.model}: the seed gives other weights here; use the version of NumPy that packed it")
    tensors = carried.plan.evaluate({name: initializers[name] for name in carried.weights})
    return InMemory(carried.text, tensors, model)


def load(path: Path) -> Carried:
    """Read a file that ``main`` wrote on one's own machine: a pickle, which is code."""
    carried = pickle.loads(path.read_bytes())  # noqa: S301
    assert isinstance(carried, Carried)
    return carried


def _initializers(model: onnx.ModelProto) -> dict[str, Array]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def _digest(initializers: Mapping[str, Array], names: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for name in names:
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(initializers[name]).tobytes())
    return digest.hexdigest()


def main() -> None:
    """Pack what the command line names."""
    parser = argparse.ArgumentParser(description="Pack programs without their weights.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--target", default="host")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--precisions", nargs="+", default=["model", "bf16"])
    asked = parser.parse_args()
    asked.directory.mkdir(parents=True, exist_ok=True)
    for name in asked.models:
        for precision in asked.precisions:
            path = asked.directory / f"{name}-{precision}.pkl"
            path.write_bytes(pickle.dumps(pack(name, precision, asked.target)))
            print(f"{path}: {path.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    # Pickles name their classes by module: the one that other scripts import, not __main__.
    import carried

    carried.main()
