"""Profiles of a session: what is counted, how times add up, the trace and the table."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import parser
from torch.utils.flop_counter import FlopCounterMode

import hipdnn_mlir
import runtime_programs
from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import Descriptor as D
from hipdnn_mlir_runtime.dtypes import BY_NAME
from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.session.profiling.ceilings import Ceilings
from hipdnn_mlir_runtime.session.profiling.profile import Profile, _roofline, profile
from hipdnn_mlir_runtime.session.profiling.text import ORDERS
from hipdnn_mlir_runtime.session.profiling.work import Work, work_of
from hipdnn_mlir_runtime.session.session import Session

REPEAT = 4


def model(text: str, opset: int = 23) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 11, opset_import: ["" : {opset}]>\n{text}')


def arrays(proto: onnx.ModelProto, **symbols: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    made = {}
    for value in proto.graph.input:
        kind = value.type.tensor_type
        dims = [dim.dim_value or symbols[dim.dim_param] for dim in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        made[value.name] = rng.random(dims).astype(dtype) if dtype.kind == "f" else rng.integers(0, 2, dims, dtype)
    return made


def works(proto: onnx.ModelProto, **symbols: int) -> list[Work]:
    loaded, _ = hipdnn_mlir.compile(proto).session(threads=1).loaded_for(arrays(proto, **symbols))
    return [work_of(row) for row in loaded.work()]


def counted_by_torch(compute: Callable[..., Any], *dims: tuple[int, ...]) -> int:
    with FlopCounterMode(display=False) as counter:
        compute(*(torch.zeros(each) for each in dims))
    return counter.get_total_flops()


def tensors_of(*shapes: tuple[int, ...], dtype: str = "f16") -> list[tuple[int, Any]]:
    number = int(BY_NAME[dtype].hipdnn_value)
    return [(D.TENSOR_DESCRIPTOR, {A.TENSOR_DATA_TYPE: [number], A.TENSOR_DIMENSIONS: dims}) for dims in shapes]


def operation(kind: D, **tensors: int) -> tuple[int, Any]:
    return kind, {A[name]: [place] for name, place in tensors.items()}


F = torch.nn.functional
PRODUCTS: dict[str, tuple[str, Callable[..., Any], list[tuple[int, ...]]]] = {
    "matmul": (
        "(float[3,4,5,6] a, float[3,4,6,7] b) => (float[3,4,5,7] y) { y = MatMul(a, b) }",
        torch.matmul,
        [(3, 4, 5, 6), (3, 4, 6, 7)],
    ),
    "matmul-broadcasts-a-batch": (
        "(float[3,4,5,6] a, float[1,4,6,7] b) => (float[3,4,5,7] y) { y = MatMul(a, b) }",
        torch.matmul,
        [(3, 4, 5, 6), (1, 4, 6, 7)],
    ),
    "convolution-in-groups": (
        "(float[2,6,9,11] x, float[4,3,3,2] w) => (y) { y = Conv<group=2, strides=[2,1], dilations=[1,2], pads=[1,0,1,0]>(x, w) }",
        lambda x, w: F.conv2d(x, w, groups=2, stride=(2, 1), dilation=(1, 2), padding=(1, 0)),
        [(2, 6, 9, 11), (4, 3, 3, 2)],
    ),
    "convolution-of-one-dimension": (
        "(float[2,3,20] x, float[5,3,4] w) => (y) { y = Conv(x, w) }",
        F.conv1d,
        [(2, 3, 20), (5, 3, 4)],
    ),
    "transposed-convolution": (
        "(float[2,6,5,7] x, float[6,4,3,3] w) => (y) { y = ConvTranspose<strides=[2,2]>(x, w) }",
        lambda x, w: F.conv_transpose2d(x, w, stride=2),
        [(2, 6, 5, 7), (6, 4, 3, 3)],
    ),
    "attention": (
        "(float[2,4,16,8] q, float[2,4,24,8] k, float[2,4,24,8] v) => (float[2,4,16,8] y) { y = Attention(q, k, v) }",
        lambda q, k, v: torch.softmax(q @ k.mT, -1) @ v,
        [(2, 4, 16, 8), (2, 4, 24, 8), (2, 4, 24, 8)],
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_counted_as_pytorch_counts_them(name) -> None:
    graph, compute, dims = PRODUCTS[name]
    found = works(model(f"g {graph}"))
    assert sum(work.product_flops for work in found) == counted_by_torch(compute, *dims)
    assert {work.product_dtype for work in found if work.product_flops} == {"f32"}


def test_gradient_of_filters_is_counted_as_pytorch_counts_it() -> None:
    # Without groups: PyTorch counts those of a gradient of filters as if there were none.
    x, w, dy = (2, 6, 9, 11), (4, 6, 3, 2), (2, 4, 9, 10)
    places = {f"OPERATION_CONVOLUTION_BWD_FILTER_{name}": place for place, name in enumerate(("X", "DY", "DW"))}
    gradient = operation(D.OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, **places)
    row = {"operands": [], "descriptors": [*tensors_of(x, dy, w), gradient, (D.OPERATIONGRAPH_DESCRIPTOR, {})]}
    want = counted_by_torch(lambda x, dy: torch.nn.grad.conv2d_weight(x, w, dy, padding=(1, 0)), x, dy)
    assert work_of(row).flops == want > 0


MATMUL = operation(
    D.OPERATION_MATMUL_DESCRIPTOR, OPERATION_MATMUL_ADESC=2, OPERATION_MATMUL_BDESC=3, OPERATION_MATMUL_CDESC=4
)
DEQUANTIZE = operation(D.OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR, OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC=0)
CUSTOM = operation(D.OPERATION_CUSTOM_OP_DESCRIPTOR_EXT)


@pytest.mark.parametrize(
    ("operations", "flops"),
    [([MATMUL], 3840), ([DEQUANTIZE, MATMUL], 3840 + 256), ([MATMUL, CUSTOM], None)],
    ids=["a product", "a block-scaled one", "with an operation of somebody's own"],
)
def test_operations_of_a_graph_add_up_where_all_are_known(operations, flops) -> None:
    # 8x16 by 16x15.
    tensors = tensors_of((8, 32), (8, 2), (8, 16), (16, 15), (8, 15))
    row = {"operands": [], "descriptors": [*tensors, *operations, (D.OPERATIONGRAPH_DESCRIPTOR, {})]}
    found = work_of(row)
    assert (found.flops, found.product_flops, found.product_dtype) == (flops, 3840, "f16")


KERNELS = {
    "elements-of-a-map": ("(int16[3,4] x, int16[4] y) => (z) { s = Add(x, y) z = Mul(s, x) }", 2 * 12, 2 * 16, 2 * 12),
    "a-gather-reads-what-it-picks": (
        "(float[100,4] x, int64[3] i) => (y) { y = Gather(x, i) }",
        0,
        4 * 12 + 8 * 3,
        4 * 12,
    ),
    "a-scan": ("(float[5,7] x) => (y) <int64 a = {1}> { y = CumSum(x, a) }", 35, 140, 140),
    "unknown": (
        "(float[1,2,3,3] x) => (y) <float[4] s = {1, 1, 2, 2}> { y = Resize<mode=\"cubic\">(x, , s) }",
        None,
        4 * 18,
        4 * 72,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_counted_where_they_can_be(name) -> None:
    graph, flops, read, written = KERNELS[name]
    (found,) = works(model(f"g {graph}"))
    assert found == Work(read, written, flops)


def test_bytes_are_those_of_the_arrays_when_a_graph_runs() -> None:
    proto = model(
        "g (float[8,16] x, float[16,4] w, float[4] b) => (float[8,4] y) { m = MatMul(x, w) a = Add(m, b) y = Relu(a) }"
    )
    (found,) = works(proto)
    assert found.bytes_read == sum(array.nbytes for array in arrays(proto).values())
    assert found.bytes_written == 8 * 4 * 4
    assert found.flops == found.product_flops + 2 * 8 * 4


def test_a_copy_moves_its_bytes_and_computes_nothing() -> None:
    proto = model("g (int16[2,3] x) => (int16[2,3] y) { y = Identity(x) }")
    (found,) = works(proto)
    assert found == Work(12, 12, 0)


@pytest.fixture(scope="module")
def measured(small_program: Path) -> Profile:
    session = Session(small_program, threads=1)
    return profile(session, {"image": np.zeros((1, 3, 32, 32), np.float32)}, warmup=1, repeat=REPEAT)


def test_steps_are_those_of_the_session(measured: Profile, small_program: Path) -> None:
    rows = Session(small_program).steps
    assert [(step.name, step.kind, step.operations) for step in measured.steps] == [
        (row["name"], row["kind"], row.get("summary", "")) for row in rows
    ]
    assert {node for step in measured.steps for node in step.nodes} >= {
        node for row in rows for node in row["name"].split("+")
    }


def test_times_add_up(measured: Profile) -> None:
    assert len(measured.runs) == REPEAT
    for step, times in zip(measured.steps, zip(*(run.steps_us for run in measured.runs), strict=True), strict=True):
        assert min(times) <= step.time.p10_us <= step.time.median_us <= step.time.p90_us <= max(times)
    assert math.isclose(sum(step.share for step in measured.steps), 1)
    for run in measured.runs:
        assert run.began_us <= run.steps_began_us + 1
        assert run.steps_began_us + sum(run.steps_us) <= run.began_us + run.wall_us + 1
    assert math.isclose(measured.overhead_us, measured.run.median_us - measured.steps_sum_us)


def test_ceilings_are_measured_on_the_device(measured: Profile) -> None:
    assert set(measured.ceilings.gflops) == {"f32", "f16", "bf16"}
    assert all(rate > 0 for rate in measured.ceilings.gflops.values())
    assert measured.ceilings.gbytes_s is not None
    assert measured.ceilings.gbytes_s > 0


CEILINGS = Ceilings(gbytes_s=10.0, gflops={"f32": 100.0})
ROOFLINES = [
    (Work(500_000, 500_000, 1_000_000, 1_000_000, "f32"), ("memory", 100.0)),  # 1e6 bytes at 1e10 a second
    (Work(50_000, 50_000, 10**8, 10**8, "f32"), ("compute", 1000.0)),  # 1e8 operations at 1e11 a second
    (Work(500_000, 500_000, 10**9), ("memory", 100.0)),  # no products: the peak says nothing
    (Work(500_000, 500_000, None), None),
    (Work(500_000, 500_000, 10**8, 10**8, "f64"), None),  # no such peak
]


@pytest.mark.parametrize(("work", "want"), ROOFLINES)
def test_the_larger_of_two_least_times_bounds_a_step(work, want) -> None:
    found = _roofline(work, 2000.0, CEILINGS)
    assert (found and (found.bound, pytest.approx(found.least_us))) == want
    assert found is None or found.reached == pytest.approx(want[1] / 2000)


def test_dynamic_programs_are_profiled_at_the_given_sizes() -> None:
    proto = model("g (float[n,16] x) => (float[n,16] y) { y = Relu(x) }")
    session = hipdnn_mlir.compile(proto).session(threads=1)
    found = {n: profile(session, arrays(proto, n=n), warmup=0, repeat=1) for n in (3, 50)}
    assert {n: each.inputs for n, each in found.items()} == {3: {"x": "f32[3,16]"}, 50: {"x": "f32[50,16]"}}
    assert {n: each.steps[0].work.flops for n, each in found.items()} == {3: 48, 50: 800}


def test_numbers_of_runs_out_of_range_are_refused(small_program: Path) -> None:
    session = Session(small_program)
    with pytest.raises(ModelError, match="repeat must be at least 1"):
        profile(session, {"image": np.zeros((1, 3, 32, 32), np.float32)}, repeat=0)
    with pytest.raises(ModelError, match="warmup must be at least 0"):
        profile(session, {"image": np.zeros((1, 3, 32, 32), np.float32)}, warmup=-1)


def test_trace_has_the_fields_that_the_format_asks_for(measured: Profile, tmp_path) -> None:
    measured.write_trace(tmp_path / "t.json")
    document = json.loads((tmp_path / "t.json").read_text())
    events = document["traceEvents"]
    for event in events:
        assert event["ph"] in ("X", "M")
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert isinstance(event["args"], dict)
        if event["ph"] == "X":
            assert isinstance(event["ts"], float)
            assert event["dur"] >= 0
    names = {event["args"]["name"] for event in events if event["name"] in ("process_name", "thread_name")}
    assert {"runs", "steps"} < names
    assert document["otherData"]["repeat"] == REPEAT


def test_trace_has_an_event_for_each_step_of_each_run_inside_it(measured: Profile) -> None:
    spans = [event for event in measured.trace()["traceEvents"] if event["ph"] == "X"]
    runs = [event for event in spans if event["cat"] == "run"]
    steps = [event for event in spans if event["cat"] != "run"]
    assert len(runs) == REPEAT
    assert [event["name"] for event in steps] == [step.name for step in measured.steps] * REPEAT
    ends = 0.0
    for number, run in enumerate(runs):
        assert run["ts"] >= ends
        ends = run["ts"] + run["dur"]
        own = steps[number * len(measured.steps) :][: len(measured.steps)]
        # A microsecond for the events' times, which are floats of milliseconds.
        assert own[0]["ts"] >= run["ts"] - 1
        assert own[-1]["ts"] + own[-1]["dur"] <= ends + 1
        for before, event in pairwise(own):
            assert event["ts"] == pytest.approx(before["ts"] + before["dur"])
    (first, *_) = steps
    assert first["args"]["flops"] == measured.steps[0].work.flops
    assert first["args"]["engine"] == measured.steps[0].engine


def rows_of(measured: Profile, **how: Any) -> list[str]:
    lines = measured.lines(**how)
    begin = next(place for place, line in enumerate(lines) if "roofline" in line)
    return lines[begin : lines.index("", begin)]


def test_table_lists_the_slowest_step_first_in_aligned_columns(measured: Profile) -> None:
    header, *rows = rows_of(measured)
    assert len(rows) == len(measured.steps)
    slowest = max(measured.steps, key=lambda step: step.time.median_us)
    assert slowest.name in rows[0]
    assert [float(row.split()[0]) for row in rows] == sorted((float(row.split()[0]) for row in rows), reverse=True)
    kind, name = header.index("kind"), header.index("step")
    assert {row[kind : kind + 7] for row in rows} <= {"execute", "launch ", "copy   "}
    assert all(row[name - 1] == " " != row[name] for row in rows)


@pytest.mark.parametrize("sort", ORDERS)
def test_table_is_sorted_as_asked(measured: Profile, sort) -> None:
    _, *rows = rows_of(measured, sort=sort)
    assert len(rows) == len(measured.steps)
    if sort == "order":
        assert all(step.name in row for step, row in zip(measured.steps, rows, strict=True))


def test_table_says_how_many_steps_are_left_out(measured: Profile) -> None:
    assert rows_of(measured, limit=2)[-1] == f"and {len(measured.steps) - 2} more steps"


def test_unknown_order_lists_the_known_ones(measured: Profile) -> None:
    with pytest.raises(ModelError, match="unknown order 'speed': expected time, order"):
        measured.lines(sort="speed")  # type: ignore[arg-type]


def test_unknown_numbers_are_shown_as_unknown(measured: Profile) -> None:
    step = replace(measured.steps[0], work=Work(10, 10, None), roofline=None)
    _, row = rows_of(replace(measured, steps=(step,)))
    assert row.split()[4] == "-"
    assert row.split()[6:8] == ["-", "-"]


def test_profile_is_json(measured: Profile) -> None:
    document = json.loads(json.dumps(measured.to_dict()))
    assert document["steps"][0]["nodes"] == list(measured.steps[0].nodes)
    assert document["overhead_us"] == measured.overhead_us


def test_a_step_without_a_plan_has_no_engine() -> None:
    feeds = {name: np.zeros((2, 3, 4, 5), np.float32) for name in "ab"}
    rows = profile(Session(runtime_programs.relu_of_sum()), feeds, warmup=0, repeat=1).steps
    assert all(step.engine for step in rows)
    proto = model("g (float[100,4] x, int64[3] i) => (y) { y = Gather(x, i) }")
    (step,) = profile(hipdnn_mlir.compile(proto).session(), arrays(proto), warmup=0, repeat=1).steps
    assert (step.kind, step.engine) == ("launch", "")
