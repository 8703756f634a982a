"""What the page says of a program, compared with the file, the runtime and PyTorch's count of operations."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open

import hipdnn_mlir
from hipdnn_mlir.program.file import FILLER, read_metadata
from hipdnn_mlir.report.page.facts import read_facts
from hipdnn_mlir.report.page.layout import NODE_HEIGHT, NODE_WIDTH, lay_out
from hipdnn_mlir.report.page.torch_ir import region_texts
from hipdnn_mlir_runtime.errors import ModelError
from models import GraphBuilder, resnet

Named = tuple[Path, dict[str, int]]


def test_the_map_has_the_size_of_the_runtimes_arena_when_the_program_is_loaded(programs: dict[str, Path]) -> None:
    for name, path in programs.items():
        if name == "elsewhere":
            continue
        sizes = {"batch": 6} if name == "mixed" else {}
        session = hipdnn_mlir.load(path)
        if sizes:
            session.prewarm([sizes])
        arena = read_facts(path, sizes=sizes).arena
        assert arena.is_loaded
        assert max((block.offset + block.bytes for block in arena.blocks), default=0) == session.arena_bytes
        assert max(arena.live_bytes) == session.stats.largest_live_bytes
        assert arena.live_bytes[arena.peak_step] == max(arena.live_bytes)


def test_no_two_blocks_share_bytes_at_one_step(named: Named) -> None:
    blocks = read_facts(named[0], sizes=named[1]).arena.blocks
    for a, b in itertools.combinations(blocks, 2):
        is_together = a.first <= b.last and b.first <= a.last
        assert not (is_together and a.offset < b.offset + b.bytes and b.offset < a.offset + a.bytes), (a, b)


def test_the_arena_has_its_buffers_when_the_device_is_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "small.hipdnn"
    hipdnn_mlir.compile(resnet(), target="gfx942").save(path)
    facts = read_facts(path)
    assert "libamdhip64" in facts.not_loaded
    assert not facts.arena.is_loaded
    used = {operand.buffer for step in facts.steps for operand in step.operands}
    temps = [
        b for i, b in enumerate(read_metadata(path)["buffers"]) if b["kind"] == "temp" and i in used and b["bytes"]
    ]
    assert sorted(block.bytes for block in facts.arena.blocks) == sorted(buffer["bytes"] for buffer in temps)
    assert max(facts.arena.live_bytes) == facts.arena.largest_live_bytes <= facts.arena.bytes


def test_every_step_and_weight_of_the_file_is_there(named: Named) -> None:
    facts = read_facts(named[0], sizes=named[1])
    program = read_metadata(named[0])
    body = program["specializations"][-1] if program.get("specializations") else program
    assert [(step.kind, step.nodes) for step in facts.steps] == [(step["kind"], step["name"]) for step in body["steps"]]
    with safe_open(named[0], "np") as file:
        stored = {name for name in file.keys() if not name.startswith(FILLER)}  # noqa: SIM118 - no dict
        for weight in facts.weights:
            assert weight.dims == file.get_slice(weight.name).get_shape()
    assert {weight.name for weight in facts.weights} == stored
    assert all(facts.modules[step.module] for step in facts.steps if step.kind != "copy")
    json.dumps(facts.to_dict())


def test_flops_equal_those_that_pytorch_counts(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from torch.utils.flop_counter import FlopCounterMode

    b = GraphBuilder("products")
    image = b.input("image", [2, 16, 15, 15])
    y = b.op("Conv", image, b.normal([12, 8, 3, 3], 1), group=2, strides=[2, 2], pads=[1, 1, 1, 1])
    y = b.op("ConvTranspose", y, b.normal([12, 6, 2, 2], 1), strides=[2, 2])
    left, right = b.input("left", [3, 5, 7]), b.input("right", [3, 7, 11])
    product = b.op("MatMul", left, right)
    path = tmp_path / "products.hipdnn"
    hipdnn_mlir.compile(b.model({y: [2, 6, 16, 16], product: [3, 5, 11]})).save(path)
    with FlopCounterMode(display=False) as counter:
        found = torch.nn.functional.conv2d(torch.zeros(2, 16, 15, 15), torch.zeros(12, 8, 3, 3), None, 2, 1, groups=2)
        torch.nn.functional.conv_transpose2d(found, torch.zeros(12, 6, 2, 2), None, 2)
        torch.zeros(3, 5, 7) @ torch.zeros(3, 7, 11)
    assert sum(step.flops or 0 for step in read_facts(path).steps) == counter.get_total_flops()


def test_flops_of_attention_equal_those_of_its_two_matmuls(programs: dict[str, Path]) -> None:
    steps = [step for step in read_facts(programs["encoder"]).steps if step.operations == "sdpa_fwd"]
    s, heads, d_head = 16, 4, 8
    assert [step.flops for step in steps] == 2 * [2 * heads * (s * s * d_head + s * s * d_head)]


def test_edges_are_the_dependences_of_the_model(tmp_path: Path) -> None:
    b = GraphBuilder("diamond")
    a = b.op("Softmax", b.input("x", [4, 8]), axis=-1)
    left = b.op("CumSum", a, b.constant(1, "int64"))
    right = b.op("CumSum", b.op("CumSum", a, b.constant(0, "int64")), b.constant(1, "int64"))
    path = tmp_path / "diamond.hipdnn"
    hipdnn_mlir.compile(b.model({b.op("Max", left, right): [4, 8]})).save(path)
    facts = read_facts(path)
    names = ["x", *(step.nodes for step in facts.steps), "out"]
    assert {(names[source], names[target]) for source, target in facts.edges} == {
        ("x", "Softmax_0"),
        ("Softmax_0", "CumSum_0"),
        ("Softmax_0", "CumSum_1"),
        ("CumSum_1", "CumSum_2"),
        ("CumSum_0", "Max_0"),
        ("CumSum_2", "Max_0"),
        ("Max_0", "out"),
    }


def test_parts_of_a_concatenation_lead_to_all_that_read_it(programs: dict[str, Path]) -> None:
    facts = read_facts(programs["mixed"], sizes={"batch": 6})
    nodes = {step.nodes: index for index, step in enumerate(facts.steps)}
    (matmul,) = (step for step in facts.steps if "MatMul" in step.nodes)
    (joined,) = (operand for operand in matmul.operands if operand.dims == [6, 14])
    assert joined.writers == sorted(nodes[name] for name in ("Gather_0", "CumSum_0", "Concat_0"))
    (output,) = (port for port in facts.outputs if port.dims == [6, 14])
    assert output.steps == joined.writers


def test_a_gather_reads_what_it_picks(programs: dict[str, Path]) -> None:
    facts = read_facts(programs["mixed"], sizes={"batch": 6})
    (gather,) = (step for step in facts.steps if step.nodes == "Gather_0")
    assert (gather.engine, gather.written_bytes) == ("gather", 6 * 3 * 4)
    assert gather.read_bytes == 6 * 3 * 4 + sum(o.bytes for o in gather.operands if o.dtype in ("i32", "i64"))


@st.composite
def _graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    count = draw(st.integers(1, 40))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] < pair[1])
    return count, sorted(set(draw(st.lists(pairs, max_size=80)))) if count > 1 else []


@given(_graphs())
def test_nodes_do_not_overlap_and_edges_lead_down(graph: tuple[int, list[tuple[int, int]]]) -> None:
    count, edges = graph
    layout = lay_out(count, edges)
    for (x, y), (u, v) in itertools.combinations(layout.nodes, 2):
        assert abs(x - u) >= NODE_WIDTH or abs(y - v) >= NODE_HEIGHT
    for x, y in layout.nodes:
        assert NODE_WIDTH / 2 <= x <= layout.width - NODE_WIDTH / 2
        assert NODE_HEIGHT / 2 <= y <= layout.height - NODE_HEIGHT / 2
    for (source, target), points in zip(edges, layout.edges, strict=True):
        (x, y), (u, v) = layout.nodes[source], layout.nodes[target]
        assert (points[0], points[-1]) == ((x, y + NODE_HEIGHT // 2), (u, v - NODE_HEIGHT // 2))
        assert all(upper[1] <= lower[1] for upper, lower in itertools.pairwise(points))


def test_each_region_of_the_model_has_its_ir(small_model: Path, small_program: Path) -> None:
    digest = read_facts(small_program).digest
    facts = read_facts(small_program, torch_ir=region_texts(small_model, digest=digest))
    for step, text in zip(facts.steps, facts.torch_ir, strict=True):
        assert bool(text) == (step.operations != "copy")
        assert ("torch.aten.convolution" in text) == ("conv2d" in step.operations)


def test_the_ir_of_another_model_is_refused(tmp_path: Path, small_program: Path) -> None:
    onnx.save(resnet(seed=3), tmp_path / "other.onnx")
    with pytest.raises(ModelError, match="not the model that the program was made from"):
        region_texts(tmp_path / "other.onnx", digest=read_facts(small_program).digest)


def test_sizes_are_asked_for_where_they_are_open(programs: dict[str, Path]) -> None:
    with pytest.raises(ModelError, match="sizes of batch are open"):
        read_facts(programs["mixed"])
    with pytest.raises(ModelError, match="no dynamic dimension 'width'"):
        read_facts(programs["mixed"], sizes={"width": 1})
    assert read_facts(programs["elsewhere"]).sizes == {"batch": 4}
    with pytest.raises(ModelError, match=r"no program for these sizes.*batch=1; batch=4"):
        read_facts(programs["elsewhere"], sizes={"batch": 3})


def test_times_are_refused_unless_there_is_one_per_step(programs: dict[str, Path]) -> None:
    with pytest.raises(ModelError, match="one per step"):
        read_facts(programs["digits"], times_us=[1.0])
