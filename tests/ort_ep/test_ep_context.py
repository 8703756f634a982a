"""Compiled models: written in both modes, loaded without a compiler, refused where they do not fit."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto

import hipdnn_mlir

from .processes import children
from .sessions import make_session, placed_nodes, reference, session_options
from .small_models import alternating, convolution, inputs_for, without_one_form

NO_COMPILER = {"compiler": "none"}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def compile_to(
    path: Path, model: onnx.ModelProto | Path, cache: Path, *, embed: bool, options: dict[str, str] | None = None
) -> None:
    settings = session_options(cache, options={"placement": "maximal", **(options or {})})
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    ort.ModelCompiler(settings, source, embed_compiled_data_into_model=embed).compile_to_file(str(path))


def contexts(path: Path) -> list[onnx.NodeProto]:
    return [node for node in onnx.load(path).graph.node if node.op_type == "EPContext"]


def attribute(node: onnx.NodeProto, name: str) -> object:
    return next(onnx.helper.get_attribute_value(found) for found in node.attribute if found.name == name)


def change_attribute(path: Path, name: str, value: object) -> None:
    """Set an attribute of the first EPContext node of a model file."""
    model = onnx.load(path)
    node = next(node for node in model.graph.node if node.op_type == "EPContext")
    kept = [found for found in node.attribute if found.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, onnx.helper.make_attribute(name, value)])
    onnx.save(model, path)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("embed", [True, False])
@pytest.mark.parametrize("make", [convolution, alternating])
def test_compiled_model_runs_without_compiler(make, embed, kind, cache, tmp_path) -> None:
    model = make()
    compile_to(tmp_path / "ctx.onnx", model, cache, embed=embed)
    nodes = contexts(tmp_path / "ctx.onnx")
    assert len(nodes) == (1 if make is convolution else 4)
    assert all(attribute(node, "source") == b"HipDNNExecutionProvider" for node in nodes)
    files = sorted(tmp_path.glob("*.hipdnn"))
    assert len(files) == (0 if embed else len(nodes))

    session = make_session(tmp_path / "ctx.onnx", tmp_path, kind=kind, options=NO_COMPILER)
    assert len(placed_nodes(session)[0]) == len(nodes)
    x = inputs_for(model)
    np.testing.assert_allclose(session.run(None, x)[0], reference(model, x)[0], rtol=1e-5, atol=1e-5)


def test_blob_is_a_program_file_when_not_embedded(cache, tmp_path) -> None:
    model = convolution()
    compile_to(tmp_path / "ctx.onnx", model, cache, embed=False)
    (file,) = tmp_path.glob("*.hipdnn")
    x = inputs_for(model)
    np.testing.assert_allclose(hipdnn_mlir.load(file).run(None, x)[0], reference(model, x)[0], rtol=1e-5, atol=1e-5)


def test_models_in_one_folder_keep_their_own_programs(cache, tmp_path) -> None:
    model = convolution()
    other = onnx.ModelProto()
    other.CopyFrom(model)
    weights = other.graph.initializer[0]
    weights.CopyFrom(onnx.numpy_helper.from_array(-onnx.numpy_helper.to_array(weights), weights.name))
    compile_to(tmp_path / "模型甲.onnx", model, cache, embed=False)
    compile_to(tmp_path / "模型乙.onnx", other, cache, embed=False)
    session = make_session(tmp_path / "模型甲.onnx", tmp_path, options=NO_COMPILER)
    x = inputs_for(model)
    np.testing.assert_allclose(session.run(None, x)[0], reference(model, x)[0], rtol=1e-5, atol=1e-5)


def test_session_entries_write_a_compiled_model(cache, tmp_path) -> None:
    model = convolution()
    entries = {
        "ep.context_enable": "1",
        "ep.context_file_path": str(tmp_path / "out.onnx"),
        "ep.context_embed_mode": "1",
    }
    make_session(model, cache, entries=entries)
    session = make_session(tmp_path / "out.onnx", tmp_path, options=NO_COMPILER)
    x = inputs_for(model)
    np.testing.assert_allclose(session.run(None, x)[0], reference(model, x)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("embed", [True, False])
def test_recompiled_model_has_the_same_program(embed, cache, tmp_path) -> None:
    model = convolution()
    compile_to(tmp_path / "first.onnx", model, cache, embed=True)
    compile_to(tmp_path / "second.onnx", tmp_path / "first.onnx", cache, embed=embed, options=NO_COMPILER)
    session = make_session(tmp_path / "second.onnx", tmp_path, options=NO_COMPILER)
    assert len(contexts(tmp_path / "second.onnx")) == 1
    x = inputs_for(model)
    np.testing.assert_allclose(session.run(None, x)[0], reference(model, x)[0], rtol=1e-5, atol=1e-5)


def test_compiled_model_states_its_compatibility(cache, tmp_path) -> None:
    compile_to(tmp_path / "ctx.onnx", convolution(), cache, embed=True)
    metadata = {entry.key: entry.value for entry in onnx.load(tmp_path / "ctx.onnx").metadata_props}
    text = metadata["ep_compatibility_info.HipDNNExecutionProvider"]
    assert "format=1" in text  # as old as the program allows
    assert "target=host" in text
    judge = getattr(ort, "get_model_compatibility_for_ep_devices", None)
    if judge is not None:
        devices = [d for d in ort.get_ep_devices() if d.ep_name == "HipDNNExecutionProvider"][:1]
        kinds = ort.OrtCompiledModelCompatibility
        assert judge(devices, text) == kinds.EP_SUPPORTED_OPTIMAL
        assert judge(devices, text.replace("hipdnn_mlir=", "hipdnn_mlir=9.")) == kinds.EP_SUPPORTED_PREFER_RECOMPILATION
        assert judge(devices, text.replace("format=1", "format=99")) == kinds.EP_UNSUPPORTED
        assert judge(devices, text.replace("target=host", "target=gfx942")) == kinds.EP_UNSUPPORTED


def edit_program(blob: bytes, key: str, value: object) -> bytes:
    """Change a field of the program in a container and leave out the checksum, as a writer of another version might."""
    length = struct.unpack("<Q", blob[:8])[0]
    header = json.loads(blob[8 : 8 + length])
    program = json.loads(header["__metadata__"]["hipdnn_program"])
    header["__metadata__"] = {"hipdnn_program": json.dumps({**program, key: value})}
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % 64)
    return struct.pack("<Q", len(text)) + text + blob[8 + length :]


BROKEN = {
    "truncated": (lambda blob: blob[: len(blob) // 2], "truncated"),
    "altered": (lambda blob: blob[:-9] + bytes([blob[-9] ^ 1]) + blob[-8:], "checksum"),
    "empty": (lambda _: b"", "compile the model again"),
    "text": (lambda _: b"not a program at all", "not a .hipdnn file"),
    "another format": (lambda blob: edit_program(blob, "format", 9), "format"),
    "other target": (lambda blob: edit_program(blob, "target", "gfx942"), "gfx942"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_blob_is_refused_and_a_retry_works(kind, cache, tmp_path) -> None:
    change, words = BROKEN[kind]
    path = tmp_path / "ctx.onnx"
    compile_to(path, convolution(), cache, embed=True)
    good = path.read_bytes()
    (node,) = contexts(path)
    blob = attribute(node, "ep_cache_context")
    assert change(blob) != blob
    change_attribute(path, "ep_cache_context", change(blob))
    with pytest.raises(Exception, match=f"EPContext node.*{words}"):
        make_session(path, tmp_path, options=NO_COMPILER)
    path.write_bytes(good)
    make_session(path, tmp_path, options=NO_COMPILER)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hipdnn_mlir=9.0.0;format=99;target=host;hipdnn=1", "program format 99 is not 1.*compile the model again"),
        ("hipdnn_mlir=0.1.0;format=1;target=gfx942;hipdnn=1", "gfx942.*compile the model again"),
        ("nonsense", "states no program format"),
    ],
)
def test_foreign_compatibility_text_is_refused(text, words, cache, tmp_path) -> None:
    path = tmp_path / "ctx.onnx"
    compile_to(path, convolution(), cache, embed=True)
    change_attribute(path, "ep_sdk_version", text)
    with pytest.raises(Exception, match=words):
        make_session(path, tmp_path, options=NO_COMPILER)


def rewrite(path: Path, change) -> None:
    model = onnx.load(path)
    change(model.graph)
    onnx.save(model, path)


LIES = {
    "smaller output": lambda graph: setattr(graph.output[0].type.tensor_type, "elem_type", TensorProto.INT8),
    "larger output": lambda graph: setattr(graph.output[0].type.tensor_type, "elem_type", TensorProto.DOUBLE),
    "other input type": lambda graph: setattr(graph.input[0].type.tensor_type, "elem_type", TensorProto.INT32),
    "other input size": lambda graph: setattr(graph.input[0].type.tensor_type.shape.dim[1], "dim_value", 1),
    "transposed input": lambda graph: graph.input[0].type.tensor_type.shape.dim.reverse(),
    "input twice": lambda graph: graph.node[0].input.append(graph.input[0].name),
    "no input": lambda graph: graph.node[0].input.pop(),
}


@pytest.mark.parametrize("kind", LIES)
def test_program_that_is_not_its_nodes_is_refused(kind, cache, tmp_path) -> None:
    """Everything about the program is right, but the model says something else of the node's values."""
    path = tmp_path / "ctx.onnx"
    compile_to(path, convolution(), cache, embed=True)
    rewrite(path, LIES[kind])
    # ONNX Runtime 1.24 itself takes offence at a node without inputs.
    with pytest.raises(Exception, match=r"EPContext node.*compile the model again|invalid model"):
        make_session(path, tmp_path, options=NO_COMPILER)


@pytest.mark.parametrize("mode", [2, -1])
def test_unknown_embed_mode_is_refused(mode, cache, tmp_path) -> None:
    path = tmp_path / "ctx.onnx"
    compile_to(path, convolution(), cache, embed=True)
    change_attribute(path, "embed_mode", mode)
    with pytest.raises(Exception, match=rf"EPContext node.*embed_mode is {mode}: expected 0 or 1"):
        make_session(path, tmp_path, options=NO_COMPILER)


def test_blob_as_a_path_is_refused_in_a_short_message(cache, tmp_path) -> None:
    path = tmp_path / "ctx.onnx"
    compile_to(path, convolution(), cache, embed=True)
    change_attribute(path, "embed_mode", 0)
    change_attribute(path, "ep_cache_context", b"\xff\xfe\x00" * 2000)
    with pytest.raises(Exception, match="EPContext node") as caught:
        make_session(path, tmp_path, options=NO_COMPILER)
    assert len(str(caught.value)) < 4100


def test_compiled_model_fits_into_another(cache, tmp_path) -> None:
    """Values renamed, nodes before and after it: a program's arguments go by position."""
    model = convolution()
    path = tmp_path / "ctx.onnx"
    compile_to(path, model, cache, embed=True)
    larger = onnx.compose.add_prefix(onnx.load(path), "inner_")
    graph = larger.graph
    graph.node.insert(0, onnx.helper.make_node("Hardmax", ["x"], [graph.input[0].name], name="before"))
    graph.node.append(onnx.helper.make_node("Hardmax", [graph.output[0].name], ["y"], name="after"))
    graph.value_info.extend([graph.input[0], graph.output[0]])
    graph.input[0].name, graph.output[0].name = "x", "y"
    session = make_session(larger, tmp_path, options=NO_COMPILER)
    assert len(placed_nodes(session)[0]) == 1
    x = inputs_for(model)
    inner = reference(model, {"x": reference(hardmax([1, 3, 8, 8]), x)[0]})[0]
    np.testing.assert_array_equal(session.run(None, x)[0], reference(hardmax([1, 8, 8, 8]), {"x": inner})[0])


def hardmax(dims: list[int]) -> onnx.ModelProto:
    shape = ", ".join(map(str, dims))
    return onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 17]> g (float[{shape}] x) => (float[{shape}] y) {{ y = Hardmax(x) }}'
    )


def test_rest_of_a_compiled_model_needs_no_compiler(cache, tmp_path, capfd) -> None:
    path = tmp_path / "ctx.onnx"
    compile_to(path, alternating(), cache, embed=True)
    before = children()
    settings = session_options(tmp_path / "fresh")
    settings.log_severity_level = 2
    ort.InferenceSession(str(path), sess_options=settings)
    assert children() == before
    assert "4 of 8 nodes hold programs compiled ahead; the others run on the CPU" in capfd.readouterr().err
    with pytest.raises(Exception, match=r"option strict: 4 of 8 nodes"):
        make_session(path, tmp_path, options={"strict": "1"})


@pytest.mark.parametrize("name", ["/etc/passwd", "../escape.hipdnn", "a/../../escape.hipdnn", ".."])
def test_path_that_leaves_the_folder_is_refused(name, cache, tmp_path) -> None:
    path = tmp_path / "model" / "ctx.onnx"
    path.parent.mkdir()
    compile_to(path, convolution(), cache, embed=False)
    (file,) = path.parent.glob("*.hipdnn")
    (tmp_path / "escape.hipdnn").write_bytes(file.read_bytes())
    change_attribute(path, "ep_cache_context", name)
    with pytest.raises(Exception, match="expected a relative path without"):
        make_session(path, tmp_path, options=NO_COMPILER)


def test_missing_program_file_is_named(cache, tmp_path) -> None:
    compile_to(tmp_path / "ctx.onnx", convolution(), cache, embed=False)
    (file,) = tmp_path.glob("*.hipdnn")
    moved = file.rename(tmp_path / "elsewhere")
    with pytest.raises(Exception, match=f"{file.name}.*copy it beside the model"):
        make_session(tmp_path / "ctx.onnx", tmp_path, options=NO_COMPILER)
    moved.rename(file)
    make_session(tmp_path / "ctx.onnx", tmp_path, options=NO_COMPILER)


def test_model_from_memory_needs_a_path_for_its_program_file(cache, tmp_path) -> None:
    compile_to(tmp_path / "ctx.onnx", convolution(), cache, embed=False)
    data = (tmp_path / "ctx.onnx").read_bytes()
    with pytest.raises(Exception, match=r"ep\.context_file_path"):
        make_session(data, tmp_path, options=NO_COMPILER)
    session = make_session(
        data, tmp_path, options=NO_COMPILER, entries={"ep.context_file_path": str(tmp_path / "ctx.onnx")}
    )
    assert session.run(None, inputs_for(convolution()))


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("embed", [True, False])
def test_dynamic_dimensions_stay_dynamic_without_compiler(embed, kind, cache, tmp_path) -> None:
    model = convolution(["batch", 3, 8, 8])
    path = tmp_path / "ctx.onnx"
    compile_to(path, model, cache, embed=embed)
    (node,) = contexts(path)
    assert b"format=1" in attribute(node, "ep_sdk_version")
    metadata = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    assert "format=1" in metadata["ep_compatibility_info.HipDNNExecutionProvider"]
    before = children()
    session = make_session(path, tmp_path, kind=kind, options=NO_COMPILER)
    for batch in (2, 5, 1):
        x = inputs_for(model, batch=batch)
        np.testing.assert_allclose(session.run(None, x)[0], reference(model, x)[0], rtol=1e-5, atol=1e-5)
    assert children() == before
    compile_to(tmp_path / "again.onnx", path, cache, embed=True, options=NO_COMPILER)
    again = make_session(tmp_path / "again.onnx", tmp_path, options=NO_COMPILER)
    np.testing.assert_allclose(again.run(None, x)[0], reference(model, x)[0], rtol=1e-5, atol=1e-5)


def test_open_program_that_is_not_its_nodes_is_refused(cache, tmp_path) -> None:
    path = tmp_path / "ctx.onnx"
    compile_to(path, convolution(["batch", 3, 8, 8]), cache, embed=True)
    rewrite(path, LIES["other input size"])
    with pytest.raises(Exception, match=r"EPContext node.*compile the model again"):
        make_session(path, tmp_path, options=NO_COMPILER)


def test_model_without_one_form_cannot_be_compiled_ahead(cache, tmp_path) -> None:
    with pytest.raises(Exception, match=r"has no dynamic program.*free dimension overrides"):
        compile_to(tmp_path / "ctx.onnx", without_one_form(), cache, embed=True)
    assert list(tmp_path.iterdir()) == []


def test_context_of_another_provider_is_not_claimed(cache, tmp_path) -> None:
    path = tmp_path / "ctx.onnx"
    compile_to(path, convolution(), cache, embed=True)
    change_attribute(path, "source", "SomeOtherExecutionProvider")
    with pytest.raises(Exception, match="EPContext"):  # ONNX Runtime finds nobody for it
        make_session(path, tmp_path, options=NO_COMPILER)


def test_unwritable_folder_leaves_nothing_behind(cache, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Exception, match=r"cannot write|Failed|No such|Not a directory"):
        compile_to(tmp_path / "file" / "ctx.onnx", convolution(), cache, embed=False)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_several_inputs_and_outputs_keep_their_places(order, cache, tmp_path) -> None:
    """All values have one type and size, so that only their places tell them apart; the graph lists them in another order."""
    text = """<ir_version: 10, opset_import: ["": 17]> g (float[4, 8] a, float[4, 8] b, float[4, 8] c)
        => (float[4, 8] p, float[4, 8] q, float[4, 8] r) { s = Sub(a, b) p = Sub(s, c) q = Relu(s) r = Neg(p) }"""
    model = onnx.parser.parse_model(text)
    for values in (model.graph.input, model.graph.output):
        copies = [onnx.ValueInfoProto.FromString(values[i].SerializeToString()) for i in order]
        del values[:]
        values.extend(copies)
    compile_to(tmp_path / "ctx.onnx", model, cache, embed=True)
    compile_to(tmp_path / "again.onnx", tmp_path / "ctx.onnx", cache, embed=True)
    x = inputs_for(model)
    for name in ("ctx.onnx", "again.onnx"):
        session = make_session(tmp_path / name, tmp_path, options=NO_COMPILER)
        names = [value.name for value in model.graph.output]
        for got, want in zip(session.run(names, x), reference(model, x), strict=True):
            np.testing.assert_array_equal(got, want)
