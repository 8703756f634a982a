"""Operators of extensions for which functions in MLIR stand: their values, sizes and precision, and what is refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

import hipdnn_mlir
from hipdnn_mlir import extension
from hipdnn_mlir.errors import HipdnnMlirError, UnsupportedError
from hipdnn_mlir.frontend.shape_inference import RESULTS
from hipdnn_mlir.mlir_functions.function import FUNCTIONS
from hipdnn_mlir.placement import place

QUICK_GELU = Path(__file__).resolve().parent.parent / "examples" / "extension" / "acme.mlir"
GROUP_SOFTMAX = """
func.func @group_softmax(%x: !torch.vtensor<[?,?],f32>, %groups: !torch.int {hipdnn.attribute = "groups"}) -> !torch.vtensor<[?,?],f32> {
  %zero = torch.constant.int 0
  %one = torch.constant.int 1
  %none = torch.constant.none
  %rows = torch.aten.size.int %x, %zero : !torch.vtensor<[?,?],f32>, !torch.int -> !torch.int
  %columns = torch.aten.size.int %x, %one : !torch.vtensor<[?,?],f32>, !torch.int -> !torch.int
  %each = torch.aten.floordiv.int %columns, %groups : !torch.int, !torch.int -> !torch.int
  %lines = torch.aten.mul.int %rows, %groups : !torch.int, !torch.int -> !torch.int
  %split = torch.prim.ListConstruct %lines, %each : (!torch.int, !torch.int) -> !torch.list<int>
  %joined = torch.prim.ListConstruct %rows, %columns : (!torch.int, !torch.int) -> !torch.list<int>
  %last = torch.constant.int -1
  %a = torch.aten.view %x, %split : !torch.vtensor<[?,?],f32>, !torch.list<int> -> !torch.vtensor<[?,?],f32>
  %b = torch.aten.softmax.int %a, %last, %none : !torch.vtensor<[?,?],f32>, !torch.int, !torch.none -> !torch.vtensor<[?,?],f32>
  %c = torch.aten.view %b, %joined : !torch.vtensor<[?,?],f32>, !torch.list<int> -> !torch.vtensor<[?,?],f32>
  return %c : !torch.vtensor<[?,?],f32>
}
"""
IDENTITY = "func.func @f(%x: !torch.vtensor) -> !torch.vtensor { return %x : !torch.vtensor }"


@pytest.fixture(autouse=True)
def _functions() -> Iterator[None]:
    """Operators of the domain `own`; what a test registers is gone afterwards."""
    tables: list[tuple[dict[Any, Any], dict[Any, Any]]] = [(table, dict(table)) for table in (FUNCTIONS, RESULTS)]
    extension.mlir_function("own", "QuickGelu", QUICK_GELU, symbol="bias_quick_gelu")
    extension.mlir_function("own", "GroupSoftmax", GROUP_SOFTMAX, symbol="group_softmax")
    yield
    for table, entries in tables:
        table.clear()
        table.update(entries)


def model(text: str) -> onnx.ModelProto:
    made = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21, "own" : 1]>\n{text}')
    for node in made.graph.node:
        node.name = f"n_{node.output[0]}"
    return made


def floats(*dims: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(dims).astype(np.float32)


def quick_gelu(z: np.ndarray, alpha: float = 1.702) -> np.ndarray:
    return z / (1 + np.exp(-alpha * z))


def test_body_joins_the_graphs_of_its_neighbours() -> None:
    signature = "g (float[4,16] x, float[16,8] w, float[8] b) => (float[4,8] y)"
    proto = model(f"{signature} {{ m = MatMul(x, w) q = own.QuickGelu<alpha=1.5>(m, b) y = Neg(q) }}")
    written_out = model(
        f"{signature} <float a = {{1.5}}>"
        "{ m = MatMul(x, w) z = Add(m, b) t = Mul(z, a) s = Sigmoid(t) q = Mul(z, s) y = Neg(q) }"
    )
    session = hipdnn_mlir.compile(proto).session()
    x, w, b = floats(4, 16), floats(16, 8), floats(8)
    want = -quick_gelu(x.astype(np.float64) @ w.astype(np.float64) + b, 1.5)
    np.testing.assert_allclose(session.run(None, {"x": x, "w": w, "b": b})[0], want, rtol=1e-5, atol=1e-5)
    alike = hipdnn_mlir.compile(written_out).session()
    assert [step["summary"] for step in session.steps] == [step["summary"] for step in alike.steps]
    assert any({"n_m", "n_q"} <= set(graph.nodes) for graph in hipdnn_mlir.explain(proto).graphs)


def test_input_and_attribute_that_a_node_leaves_out() -> None:
    session = hipdnn_mlir.compile(model("g (float[3,5] x) => (float[3,5] y) { y = own.QuickGelu(x) }")).session()
    x = floats(3, 5)
    np.testing.assert_allclose(session.run(None, {"x": x})[0], quick_gelu(x.astype(np.float64)), rtol=1e-5, atol=1e-6)


def test_open_sizes_stay_open() -> None:
    proto = model("g (float[n,c] x, float[c] b) => (float[n,c] y) { y = own.QuickGelu(x, b) }")
    session = hipdnn_mlir.compile(proto).session()
    for n, c in ((2, 6), (7, 33)):
        x, b = floats(n, c), floats(c)
        want = quick_gelu(x.astype(np.float64) + b)
        np.testing.assert_allclose(session.run(None, {"x": x, "b": b})[0], want, rtol=1e-5, atol=1e-6)


def test_sizes_are_computed_from_open_sizes() -> None:
    proto = model("g (float[n,12] x) => (y) { r = Relu(x) s = own.GroupSoftmax<groups=3>(r) y = Transpose(s) }")
    program = hipdnn_mlir.compile(proto)
    assert list(program.model.symbols) == ["n"]
    session = program.session()
    for n in (1, 7, 30):
        x = floats(n, 12)
        exponents = np.exp(np.maximum(x.astype(np.float64), 0).reshape(n, 3, 4))
        want = (exponents / exponents.sum(axis=-1, keepdims=True)).reshape(n, 12).T
        np.testing.assert_allclose(session.run(None, {"x": x})[0], want, rtol=1e-5, atol=1e-6)


def test_f32_model_runs_narrow(tmp_path: Path) -> None:
    proto = model("g (float[4,16] x) => (float[4,16] y) { y = own.QuickGelu(x) }")
    w = floats(16, 16)
    proto.graph.node.insert(0, onnx.helper.make_node("MatMul", ["x", "w"], ["m"], name="n_m"))
    proto.graph.node[1].input[0] = "m"
    proto.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    session = hipdnn_mlir.compile(proto, precision="f16", dump_ir=tmp_path).session()
    x = floats(4, 16)
    want = quick_gelu(x.astype(np.float64) @ w.astype(np.float64))
    np.testing.assert_allclose(session.run(None, {"x": x})[0], want, rtol=2e-2, atol=2e-2)
    (converted,) = tmp_path.glob("*-convert-precision.mlir")
    lines = [line for line in converted.read_text().splitlines() if "torch.aten.silu" in line or "sigmoid" in line]
    assert lines
    assert all("f16" in line for line in lines)


def test_open_element_types_are_the_node_s() -> None:
    proto = model("g (float16[4,6] x) => (float16[4,6] y) { y = own.QuickGelu(x) }")
    x = floats(4, 6).astype(np.float16)
    got = hipdnn_mlir.compile(proto).session().run(None, {"x": x})[0]
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, quick_gelu(x.astype(np.float64)), rtol=5e-3, atol=2e-3)


FALLBACK = """
<domain: "own", opset_import: ["" : 21]>
QuickGelu <alpha: float = 1.702> (x, bias) => (y)
{ z = Add(x, bias) a = Constant<value_float: float = @alpha>() s = Mul(z, a) g = Sigmoid(s) y = Mul(z, g) }
"""


def test_function_comes_before_the_model_s_own(tmp_path: Path) -> None:
    text = "g (float[n,6] x, float[6] b) => (float[n,6] y) { r = Relu(x) y = own.QuickGelu<alpha=0.7>(r, b) }"
    proto = model(text + FALLBACK)
    session = hipdnn_mlir.compile(proto, dump_ir=tmp_path).session()
    feeds = {"x": floats(5, 6), "b": floats(6)}
    (want,) = ReferenceEvaluator(proto).run(None, feeds)
    np.testing.assert_allclose(session.run(None, feeds)[0], want, rtol=1e-5, atol=1e-6)
    assert '"hipdnn.onnx.own.QuickGelu"' in next(tmp_path.glob("*-onnx-to-torch.mlir")).read_text()


def test_same_operator_of_two_domains() -> None:
    extension.mlir_function("other", "QuickGelu", IDENTITY, symbol="f")
    proto = model("g (float[2,3] x) => (float[2,3] y) { q = own.QuickGelu(x) y = other.QuickGelu(q) }")
    proto.opset_import.append(onnx.helper.make_opsetid("other", 1))
    x = floats(2, 3)
    got = hipdnn_mlir.compile(proto).session().run(None, {"x": x})[0]
    np.testing.assert_allclose(got, quick_gelu(x.astype(np.float64)), rtol=1e-5, atol=1e-6)


def test_placement_knows_the_types_around_nodes_that_it_leaves_out() -> None:
    text = """g (float[n,6] x, float[6] b) => (y, z) <float[n,6] s> {
        q = own.QuickGelu(x, b) s = own.NobodyKnows(q) t = own.QuickGelu(s, b) y = Relu(t) bad = own.QuickGelu<beta=1.0>(t, b) z = Neg(bad)
    }"""
    found = place(model(text), mode="maximal")
    assert [partition.nodes for partition in found.partitions] == [["n_q"], ["n_t", "n_y"]]
    reasons = {reject.node: reject for reject in found.rejects}
    assert "no argument for attribute 'beta'" in reasons["n_bad"].reason


REGISTRATIONS: dict[str, tuple[str, str]] = {
    "no MLIR": ("\nhello", r"own::New:2: the MLIR text does not parse: custom op 'hello' is unknown"),
    "an unknown op": (
        "func.func @f(%x: !torch.vtensor) -> !torch.vtensor {\n%y = torch.aten.nothing %x\nreturn %y : !torch.vtensor }",
        r"own::New:2: the MLIR text does not parse: ",
    ),
    "another name": (IDENTITY.replace("@f", "@g"), r"own::New: there is no function @f: expected @g"),
    "nothing": ("", r"own::New: there is no function @f: expected a func.func"),
    "a declaration": ("func.func private @f(!torch.vtensor) -> !torch.vtensor", r"own::New:1: @f has no body"),
    "itself in its body": (
        "func.func @f(%x: !torch.vtensor) -> !torch.vtensor {\n"
        "%y = func.call @g(%x) : (!torch.vtensor) -> !torch.vtensor\nreturn %y : !torch.vtensor }\n"
        "func.func @g(%x: !torch.vtensor) -> !torch.vtensor {\n"
        "%y = func.call @f(%x) : (!torch.vtensor) -> !torch.vtensor\nreturn %y : !torch.vtensor }",
        r"own::New:1: @f calls itself: @f -> @g -> @f; write recursion out",
    ),
    "another dialect": (
        "func.func @f(%x: !torch.vtensor) -> !torch.vtensor {\n%c = arith.constant 1 : i32\nreturn %x : !torch.vtensor }",
        r"own::New:2: @f has the op arith.constant: expected ops of the torch dialect",
    ),
    "tensors that may be written to": (
        "func.func @f(%x: !torch.vtensor) -> !torch.vtensor {\n"
        "%t = torch.copy.to_tensor %x : !torch.tensor\nreturn %x : !torch.vtensor }",
        r"own::New:2: torch.copy.to_tensor in @f has a tensor that may be written to",
    ),
    "an attribute without a name": (
        "func.func @f(%x: !torch.vtensor, %a: !torch.int) -> !torch.vtensor { return %x : !torch.vtensor }",
        r"argument 1 of @f, a !torch.int, names no attribute of the operator",
    ),
    "an attribute of no ONNX type": (
        "func.func @f(%x: !torch.vtensor, %a: !torch.Device) -> !torch.vtensor { return %x : !torch.vtensor }",
        r"argument 1 of @f, a !torch.Device, has no counterpart in ONNX",
    ),
    "a result that is no tensor": (
        "func.func @f(%x: !torch.vtensor, %a: !torch.int {hipdnn.attribute = \"a\"}) -> !torch.int { return %a : !torch.int }",
        r"result 0 of @f has the type !torch.int: expected a !torch.vtensor",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REGISTRATIONS)
def test_registration_refuses(what: str) -> None:
    text, message = REGISTRATIONS[what]
    with pytest.raises(HipdnnMlirError, match=message):
        extension.mlir_function("own", "New", text, symbol="f")
    assert ("own", "New") not in RESULTS


def test_registration_refuses_names_that_are_taken_and_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(HipdnnMlirError, match="'Relu' is an operator of ONNX"):
        extension.mlir_function("own", "Relu", IDENTITY, symbol="f")
    with pytest.raises(HipdnnMlirError, match="own::QuickGelu is registered already"):
        extension.mlir_function("own", "QuickGelu", IDENTITY, symbol="f")
    with pytest.raises(HipdnnMlirError, match=r"none\.mlir: cannot read: No such file"):
        extension.mlir_function("own", "New", tmp_path / "none.mlir", symbol="f")


NODES = {
    "own.GroupSoftmax(x)": "needs the attribute 'groups', which the node lacks",
    "own.GroupSoftmax<groups=2.5>(x)": "attribute 'groups' has the value 2.5, @group_softmax .* takes a !torch.int",
    "own.GroupSoftmax<groups=[2]>(x)": r"attribute 'groups' is \[2\], @group_softmax .* takes a !torch.int",
    "own.GroupSoftmax<groups=4>(x)": r"torch.aten.view at .n_y.: \(4, 6\) cannot become \(16, 1\)",
    "own.QuickGelu<gamma=1.0>(x)": "has no argument for attribute 'gamma'",
    "own.QuickGelu()": "takes 1 to 2 tensors, the node has 0",
    "own.QuickGelu(x, x, x)": "takes 1 to 2 tensors, the node has 3",
    "own.GroupSoftmax<groups=2>(h)": "input 0 is f16.4x6., @group_softmax .* takes f32",
    "own.GroupSoftmax<groups=2>(r)": "input 0 is f32.4x6x1., @group_softmax .* takes",
}


@pytest.mark.parametrize("node", NODES)
def test_node_that_does_not_fit_is_named(node: str) -> None:
    text = f"g (float[4,6] x, float16[4,6] h, float[4,6,1] r) => (float[4,6] y) {{ a = Relu(x) y = {node} }}"
    with pytest.raises(UnsupportedError, match=NODES[node]) as caught:
        hipdnn_mlir.compile(model(text))
    assert {reject.node for reject in caught.value.rejects} == {"n_y"}


def test_more_outputs_than_results() -> None:
    with pytest.raises(UnsupportedError, match="gives 1 results, the node has 2"):
        hipdnn_mlir.compile(model("g (float[4,6] x) => (float[4,6] y, z) { y, z = own.QuickGelu(x) }"))


def test_declared_output_that_the_function_does_not_give() -> None:
    with pytest.raises(UnsupportedError, match=r"gives f32\[4x6\] as output 0, the model declares f32\[4x5\]"):
        hipdnn_mlir.compile(model("g (float[4,6] x) => (float[4,5] y) { y = own.QuickGelu(x) }"))


def test_op_that_the_compiler_lacks_is_named_with_its_line() -> None:
    text = "func.func @f(%x: !torch.vtensor) -> !torch.vtensor {\n%y = torch.aten.nonzero %x : !torch.vtensor -> !torch.vtensor\n"
    extension.mlir_function("own", "Places", f"{text}return %y : !torch.vtensor }}", symbol="f")
    message = r"own.Places at 'n_y': torch.aten.nonzero in line 2 of the MLIR of own::Places"
    with pytest.raises(UnsupportedError, match=message):
        hipdnn_mlir.compile(model("g (float[4,6] x) => (y) { y = own.Places(x) }"))


Command = Callable[..., Any]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("hello", "broken.mlir:2: the MLIR text does not parse"),
        (IDENTITY, "takes 1 tensors, the node has 2"),
    ],
)
def test_command_line_says_what_is_wrong_in_one_line(
    command: Command, tmp_path: Path, body: str, expected: str
) -> None:
    (tmp_path / "broken.mlir").write_text(f"\n{body}")
    (tmp_path / "broken.py").write_text(
        "from pathlib import Path\nfrom hipdnn_mlir import extension\n"
        'extension.mlir_function("own", "Broken", Path(__file__).with_name("broken.mlir"), symbol="f")\n'
    )
    onnx.save(model("g (float[2,3] x) => (float[2,3] y) { y = own.Broken(x, x) }"), tmp_path / "m.onnx")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = command("--extension", "broken", "compile", tmp_path / "m.onnx", env={"PYTHONPATH": path})
    assert done.returncode == 2, done.stderr
    assert expected in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def of_sizes(body: str) -> str:
    """A function of `%x`, a matrix with `%rows` rows, whose result is `%y`."""
    return f"""
    func.func @f(%x: !torch.vtensor) -> !torch.vtensor {{
      %zero = torch.constant.int 0
      %one = torch.constant.int 1
      %three = torch.constant.int 3
      %rows = torch.aten.size.int %x, %zero : !torch.vtensor, !torch.int -> !torch.int
      {body}
      return %y : !torch.vtensor
    }}"""


def cut(start: str, end: str) -> str:
    kinds = "!torch.vtensor, !torch.int, !torch.int, !torch.int, !torch.int"
    return f"%y = torch.aten.slice.Tensor %x, %zero, {start}, {end}, %one : {kinds} -> !torch.vtensor"


def test_slice_holds_for_sizes_on_one_side_of_its_end() -> None:
    extension.mlir_function("own", "Three", of_sizes(cut("%zero", "%three")), symbol="f")
    session = hipdnn_mlir.compile(model("g (float[n,2] x) => (y) { y = own.Three(x) }")).session()
    x = floats(40, 2)
    for n in (3, 40):
        np.testing.assert_array_equal(session.run(None, {"x": x[:n]})[0], x[:3])
    with pytest.raises(HipdnnMlirError, match="node 'n_y' needs 3 <= n"):
        session.run(None, {"x": x[:2]})


def test_slice_behind_an_open_size_is_refused() -> None:
    """It takes all of the sample sizes, which is no reason to take all of others."""
    far = "%far = torch.constant.int 1000"
    extension.mlir_function("own", "Thousand", of_sizes(f"{far}\n{cut('%zero', '%far')}"), symbol="f")
    with pytest.raises(HipdnnMlirError, match="n_y: a slice in its function in line 8 ends behind a size"):
        hipdnn_mlir.compile(model("g (float[n,2] x) => (y) { y = own.Thousand(x) }"))
    session = hipdnn_mlir.compile(model("g (float[7,2] x) => (y) { y = own.Thousand(x) }")).session()
    x = floats(7, 2)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], x)


def test_quotient_that_the_sample_sizes_do_not_tell_apart_is_refused() -> None:
    """59, 58 and 57 thirds are all 19; one more size, which is no sample, shows that it is no number."""
    third = "%third = torch.aten.floordiv.int %rows, %three : !torch.int, !torch.int -> !torch.int"
    extension.mlir_function("own", "Third", of_sizes(f"{third}\n{cut('%zero', '%third')}"), symbol="f")
    proto = model("g (float[n,2] x) => (y) { y = own.Third(x) }")
    with pytest.raises(HipdnnMlirError, match="not what it seems at the sample sizes"):
        hipdnn_mlir.compile(proto)
    assert hipdnn_mlir.compile(proto, shapes={"n": 9}).model.outputs[0].dims == (3, 2)


def test_function_that_pytorch_s_exporter_wrote() -> None:
    torch = pytest.importorskip("torch", reason="the extra `export` is not installed")
    fx = pytest.importorskip("torch_mlir.fx", reason="the extra `export` is not installed")

    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, a: Any) -> Any:
            parts = torch.stack(torch.split(a, 4, dim=1), dim=1)
            return torch.nn.functional.layer_norm(parts.softmax(-1).reshape(-1, 4), (4,))

    example = torch.zeros(5, 8)
    sizes = {"a": {0: torch.export.Dim("n")}}
    text = fx.export_and_import(Module(), example, dynamic_shapes=sizes, func_name="f", output_type="raw")
    extension.mlir_function("own", "Exported", str(text), symbol="f")
    session = hipdnn_mlir.compile(model("g (float[n,8] x) => (y) { y = own.Exported(x) }")).session()
    for n in (3, 11):
        x = floats(n, 8)
        want = Module()(torch.from_numpy(x.astype(np.float64))).numpy()
        np.testing.assert_allclose(session.run(None, {"x": x})[0], want, rtol=1e-4, atol=1e-5)
