"""ONNX files that are broken, open or unusual: one line each; and what of a model enters the IR."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import hipdnn_mlir
from hipdnn_mlir.compiler.compile import compile as compile_model
from hipdnn_mlir.compiler.convert import convert
from hipdnn_mlir.compiler.lower import lower_to_torch
from hipdnn_mlir.compiler.source import OnnxSource
from hipdnn_mlir.frontend.model_file import read_model
from hipdnn_mlir.frontend.prepare import slim_models
from hipdnn_mlir.frontend.sizes.input_sizes import input_sizes
from hipdnn_mlir.ir.blocks import functions, operations
from hipdnn_mlir.ir.dialect import make_context
from hipdnn_mlir.ir.imported import Imported
from hipdnn_mlir.passes.pipeline import Runner
from hipdnn_mlir_runtime.errors import ModelError, UnsupportedError


def model(text: str, opset: int = 21, **weights: np.ndarray) -> onnx.ModelProto:
    """A model from ONNX's text form, initializers added."""
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return made


RELU = "g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }"
OPEN = "g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }"


def imported(proto: onnx.ModelProto, shapes: dict[str, tuple[int, ...]] | None = None) -> Imported:
    sizes = input_sizes(proto, shapes or {}, "m.onnx")
    return convert(slim_models(proto, [sizes.at(())], "m.onnx")[0], make_context(), Runner())


def names_of_ops(found: Imported) -> list[str]:
    return [str(op.name) for op in operations(functions(found.module.operation)[0])]


def test_missing_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.onnx"
    with pytest.raises(ModelError) as caught:
        read_model(path)
    assert str(caught.value) == f"{path}: cannot read the model: No such file or directory; check the path"


@pytest.mark.parametrize(
    "damage", [lambda d: d[: len(d) // 2], lambda _: b"not a model at all", lambda _: b"", lambda d: d[1:]]
)
def test_broken_file_is_a_model_error(damage: object, tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(damage(model(RELU).SerializeToString()))
    with pytest.raises(
        ModelError, match=r"not (a complete|an) ONNX model: expected .*; export the model again"
    ) as caught:
        read_model(path)
    assert "\n" not in str(caught.value)


def test_missing_external_weights_are_named(tmp_path: Path) -> None:
    proto = model("g (float[64] x) => (float[64] y) { y = Add(x, w) }", w=np.ones(64, np.float32))
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    read_model(tmp_path / "m.onnx")
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(ModelError, match="cannot read external weights"):
        read_model(tmp_path / "m.onnx")


def outside_by_folder(folder: Path, secret: Path) -> str:
    (folder / "linked").symlink_to(secret.parent)
    return f"linked/{secret.name}"


def outside_by_link(folder: Path, secret: Path) -> str:
    (folder / "linked").symlink_to(secret)
    return "linked"


def outside_by_hard_link(folder: Path, secret: Path) -> str:
    (folder / "linked").hardlink_to(secret)
    return "linked"


def outside_by_path(_: Path, secret: Path) -> str:
    return f"../{secret.parent.name}/{secret.name}"


@pytest.mark.parametrize("outside", [outside_by_folder, outside_by_link, outside_by_hard_link, outside_by_path])
@pytest.mark.parametrize("count", [8, 1 << 16])
def test_weights_outside_the_folder_of_the_model_are_not_read(
    outside: Callable[[Path, Path], str], count: int, tmp_path: Path
) -> None:
    folder, secret = tmp_path / "model", tmp_path / "private" / "secret"
    folder.mkdir()
    secret.parent.mkdir()
    secret.write_bytes(bytes(count))
    proto = model(f"g (uint8[{count}] x) => (uint8[{count}] y) {{ y = BitwiseXor(x, w) }}")
    weight = proto.graph.initializer.add(name="w", data_type=TensorProto.UINT8, dims=[count])
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value=outside(folder, secret))
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(ModelError, match=r"cannot read external weights: .*; keep the data files beside the model"):
        read_model(folder / "m.onnx")


def test_constants_of_a_model_in_memory_read_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("near").write_bytes(bytes(12))
    proto = model("g (float[3] x) => (float[3] y) { y = Add(x, w) }")
    value = TensorProto(data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
    value.external_data.add(key="location", value="near")
    proto.graph.node.insert(0, helper.make_node("Constant", [], ["w"], value=value))
    with pytest.raises(ModelError, match="is not loaded"):
        compile_model(proto)


def test_digest_is_of_the_bytes(tmp_path: Path) -> None:
    data = model(RELU).SerializeToString()
    (tmp_path / "m.onnx").write_bytes(data)
    assert read_model(data).sha256 == read_model(tmp_path / "m.onnx").sha256 != ""


def test_dynamic_input_is_static_when_a_shape_is_given() -> None:
    found = imported(model(OPEN), {"x": (5, 3)})
    assert [info.dims for info in (*found.inputs, *found.outputs)] == [(5, 3), (5, 3)]


def test_shape_of_an_unknown_input_lists_the_inputs() -> None:
    with pytest.raises(ModelError, match=r"no input or dynamic dimension named 'z': expected an input \(x\)"):
        imported(model(OPEN), {"z": (5, 3)})


def test_shape_of_another_rank_is_refused() -> None:
    with pytest.raises(ModelError, match=r"wrong number of sizes for input 'x': expected 2, got 3 \(5x3x1\)"):
        imported(model(OPEN), {"x": (5, 3, 1)})


def test_shape_that_the_graph_contradicts_is_named_with_the_node() -> None:
    proto = model("g (float[N,3] x) => (float[N,4] y) { z = MatMul(x, w) y = Relu(z) }", w=np.ones((3, 4), np.float32))
    message = r"MatMul 'MatMul_0' cannot take 'x' 2x5, 'w' 3x4: Incompatible dimensions .*; give inputs other sizes with --shape"
    with pytest.raises(ModelError, match=message):
        imported(proto, {"x": (2, 5)})


def test_input_that_is_no_tensor_is_refused() -> None:
    x = helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    zero = numpy_helper.from_array(np.array(0), "zero")
    graph = helper.make_graph([helper.make_node("SequenceAt", ["x", "zero"], ["y"])], "g", [x], [y], [zero])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    with pytest.raises(ModelError, match=r"'x' is not a tensor: expected tensors as inputs and outputs"):
        imported(proto)


def test_input_of_strings_is_refused() -> None:
    with pytest.raises(ModelError, match=r"'x' has element type STRING: expected one of f32, "):
        imported(model("g (string[2] x) => (string[2] y) { y = Identity(x) }"))


def test_tensor_that_no_program_may_have_is_refused_before_it_is_compiled() -> None:
    outer = (
        "g (float[2097152,1] x, float[1,1048576] y) => (float z) { sums = Add(x, y) z = ReduceSum<keepdims=0>(sums) }"
    )
    with pytest.raises(
        ModelError, match="'sums' of shape 2097152x1048576 is too large: expected at most 2\\^40 elements"
    ):
        compile_model(model(outer))


def test_weights_become_marked_arguments_and_numbers_stay() -> None:
    w = np.arange(3, dtype=np.float32)
    text = "g (float[2,3] x) => (float[2,3] y) { a = Add(x, w) y = Mul(a, two) }"
    found = imported(model(text, w=w, two=np.array(2, np.float32)))
    main = functions(found.module.operation)[0]
    assert str(main.attributes["arg_attrs"]) == '[{}, {hipdnn.constant = "w"}]'
    assert list(found.weights) == ["w"]
    np.testing.assert_array_equal(found.weights["w"], w)
    assert [info.name for info in found.inputs] == ["x"]


def test_model_is_not_changed() -> None:
    proto = model("g (float[N,3] x) => (float[N,3] y) { y = Add(x, w) }", w=np.ones(3, np.float32))
    before = proto.SerializeToString()
    imported(proto, {"x": (2, 3)})
    assert proto.SerializeToString() == before


def test_old_opset_is_upgraded() -> None:
    found = imported(model("g (float[2,3] x) => (float[2,1] y) { y = ReduceSum<axes=[1]>(x) }", opset=9))
    assert "torch.aten.sum.dim_IntList" in names_of_ops(found)


def test_domain_of_onnx_may_have_its_long_name() -> None:
    named = parser.parse_model(
        f'<ir_version: 8, opset_import: ["ai.onnx" : 21]>\n{RELU.replace("Relu", "ai.onnx.Relu")}'
    )
    assert names_of_ops(imported(named)) == names_of_ops(imported(model(RELU)))


def test_upgrade_that_changes_an_input_is_refused() -> None:
    body = "b (float[2] i, float[2] n) => (float[2] o, float[2] c) { o = Add(i, n) c = Identity(o) }"
    scan = f'y, all = Scan <num_scan_inputs=1, body={body}> ("", s, x)'
    proto = model(f"g (float[1,2] s, float[1,3,2] x) => (float[1,2] y) {{ {scan} }}", opset=8)
    with pytest.raises(ModelError, match="cannot be upgraded from opset 8 to 21: the dims of 's' change"):
        imported(proto)


def test_operator_that_is_not_converted_is_rejected_by_name() -> None:
    proto = model("g (float[4] x) => (float[4] y) { z = Relu(x) y = Twist(z) }")
    proto.graph.node[1].name = "last"
    with pytest.raises(UnsupportedError) as caught:
        compile_model(proto)
    assert [(reject.op, reject.rule, reject.node) for reject in caught.value.rejects] == [("Twist", "no-row", "last")]


def test_node_names_reach_the_ops() -> None:
    proto = model(RELU)
    proto.graph.node[0].name = "first/Relu"
    (found,) = lower_to_torch(OnnxSource(proto, "model", None), slim_models(proto, [{}]), Runner())
    assert 'loc("first/Relu")' in found.module.operation.get_asm(enable_debug_info=True)


MISDECLARED = {
    "an output": "g (float[2,3] x) => (int64[2,3] y) { y = Relu(x) }",
    "the output of a cast": "g (float[2,3] x) => (float[2,3] y) { y = Cast<to = 7>(x) }",
    "a result that others compute from": "g (float[2,3] x) => (float[2,3] y) <int64[2,3] h> { h = Relu(x) y = Neg(h) }",
    "indices": "g (float[2,3] x) => (float[2,2] y, int32[2,2] z) <int64[1] k = {2}> { y, z = TopK(x, k) }",
    "a wider float": "g (float[2,3] x) => (double[2,3] y) { y = Pow(x, x) }",
    "an output of open size": "g (float[n,3] x) => (int64[n,3] y) { y = Relu(x) }",
}


@pytest.mark.parametrize("kind", MISDECLARED)
def test_model_that_declares_another_element_type_is_refused_as_onnxruntime_does(kind: str) -> None:
    proto = model(MISDECLARED[kind])
    with pytest.raises(Exception, match=r"Type Error: Type .* does not match expected type"):
        onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    with pytest.raises(ModelError, match="is declared with another element type: expected "):
        compile_model(proto)


def test_model_that_declares_no_element_type_compiles() -> None:
    proto = model("g (float[2,3] x) => (float[2,3] y) { h = Relu(x) y = Cast<to = 7>(h) }")
    proto.graph.output[0].ClearField("type")
    x = np.float32([[-1, 0, 1], [2, 2.5, 3]])
    (want,) = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run(
        None, {"x": x}
    )
    (got,) = hipdnn_mlir.load(compile_model(proto)).run(None, {"x": x})
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_unknown_operator_is_rejected_and_not_what_reads_its_results() -> None:
    proto = model(
        "g (float[4] x) => (uint8[4] y, float s, uint8 z) { t = com.microsoft.Twist(x) y, s, z = DynamicQuantizeLinear(t) }"
    )
    proto.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(UnsupportedError) as caught:
        compile_model(proto)
    assert [(reject.op, reject.rule) for reject in caught.value.rejects] == [("Twist", "no-row")]
