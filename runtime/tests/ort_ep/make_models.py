"""Write the models of the C++ tests of the execution provider: ``make_models.py FOLDER``."""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# What the Python tests share is not on the path of this script.
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests"))

import untaken

PARTS = 8
WIDTH = 16


def save(
    folder: Path, name: str, nodes: list[onnx.NodeProto], dims: list[int | str], weights: dict[str, np.ndarray]
) -> None:
    """Save a model of one float input ``x`` of ``dims`` and one output ``y``, whose nodes are named by their operator and place."""
    for index, node in enumerate(nodes):
        node.name = f"{node.op_type}_{index}"
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, key) for key, value in weights.items()],
    )
    # ONNX Runtime wants the rank of an output; shape inference finds it.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), untaken.OPSET], ir_version=10)
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, folder / f"{name}.onnx")


def main(folder: Path) -> None:
    """Write every model into ``folder``."""
    random = np.random.default_rng(7)

    def weight(*dims: int) -> np.ndarray:
        return (random.standard_normal(dims) / np.sqrt(np.prod(dims[1:]))).astype(np.float32)

    make = helper.make_node
    convolution = [make("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), make("Relu", ["c"], ["y"])]
    save(folder, "convolution", convolution, [1, 3, WIDTH, WIDTH], {"w": weight(8, 3, 3, 3)})

    pointwise = [make("Add", ["x", "b"], ["s"]), make("Sigmoid", ["s"], ["t"]), make("Mul", ["s", "t"], ["y"])]
    save(folder, "pointwise", pointwise, [4, WIDTH], {"b": weight(WIDTH)})
    save(folder, "dynamic_pointwise", pointwise, ["n", WIDTH], {"b": weight(WIDTH)})

    # Nodes that no engine takes stand between the parts.
    parts: list[onnx.NodeProto] = []
    value = "x"
    for part in range(PARTS):
        following = "y" if part == PARTS - 1 else f"tanh{part}"
        parts += [make("MatMul", [value, "w"], [f"product{part}"]), make("Tanh", [f"product{part}"], [following])]
        if part < PARTS - 1:
            value = f"sum{part}"
            parts.append(untaken.node(following, value, ""))
    save(folder, "parts", parts, [4, WIDTH], {"w": weight(WIDTH, WIDTH)})

    dynamic = [make("MatMul", ["x", "w"], ["p"]), make("Tanh", ["p"], ["y"])]
    save(folder, "dynamic", dynamic, ["n", WIDTH], {"w": weight(WIDTH, WIDTH)})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
