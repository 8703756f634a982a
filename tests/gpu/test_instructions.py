"""The instructions that generated code becomes, read as text of each target's assembler: what results cannot show without a GPU."""

from __future__ import annotations

import re
from functools import cache
from math import log2

import numpy as np
import pytest

from gpu.compiled import ALL
from gpu.emulated import describe
from gpu.graphs import graph_of, row
from hipdnn_mlir.codegen import find_architecture
from hipdnn_mlir.codegen.core.assemble import Launch, module_of
from hipdnn_mlir.codegen.core.lower import assembly
from hipdnn_mlir.codegen.generate import launch_of_graph, parts_of
from host_kernels.kernel_runs import TensorSpec

NAME = "k"
GROUPS = 750
"""Of four f32 each that threads of the map add: no multiple of a block's threads."""
ROWS, COLUMNS = 300, 1000
ADD = {"code": [["load", 0], ["load", 1], ["add", 0, 1], ["store", 2, 2]]}
WIDE_LOAD = r"global_load_dwordx4|global_load_b128|ld\.global\.(?:v4\.[bfu]32|v2\.[bfu]64)"
WIDE_STORE = r"global_store_dwordx4|global_store_b128|st\.global\.(?:v4\.[bfu]32|v2\.[bfu]64)"
ACCESS = r"(?:global|flat)_(?:load|store)_\w+|(?:ld|st)\.global\.\S+"
EXCHANGE = r"ds_swizzle_b32|ds_bpermute_b32|v_permlane\w+|\w+_dpp|shfl\.sync\.\S+"
CALL = r"s_swappc_b64|s_setpc_b64|s_call_b64|call(?:\.uni)?"
SPILL = r"scratch_(?:load|store)_\w+|buffer_(?:load|store)_\w+|(?:ld|st)\.local\.\S+"


@cache
def lines_of(kind: str, name: str) -> tuple[str, ...]:
    """The lines of the kernel `kind` for an architecture, without comments."""
    launch, pointers = (
        {"elementwise": elementwise_launch, "rows": row_launch}[kind](name),
        {"elementwise": 3, "rows": 2}[kind],
    )
    text = assembly(module_of(launch, NAME, pointers, find_architecture(name)), find_architecture(name))
    return tuple(stripped for line in text.splitlines() if (stripped := re.split(r";(?!$)|//", line)[0].strip()))


def elementwise_launch(name: str) -> Launch:
    """Add vectors of f32."""
    x = np.zeros((4 * GROUPS,), np.float32)
    (part,) = parts_of(describe("elementwise", [x, x], [TensorSpec("f32", x.shape)], ADD), find_architecture(name))
    return part.launch


def row_launch(name: str) -> Launch:
    """Softmax of rows, two reductions each."""
    x, out = np.zeros((ROWS, COLUMNS), np.float32), TensorSpec("f32", (ROWS, COLUMNS))
    graph = graph_of(row("aten.softmax.int", ..., -1, None, results=[out]), [x], [out])
    return launch_of_graph(graph, find_architecture(name))


def places(lines: tuple[str, ...], mnemonic: str) -> list[int]:
    """Where instructions of these names stand; in PTX with a predicate or without."""
    pattern = re.compile(rf"(?:@!?%p\d+\s+)?(?:{mnemonic})(?:[\s;]|$)")
    return [place for place, line in enumerate(lines) if pattern.match(line)]


@pytest.mark.parametrize("kind", ["elementwise", "rows"])
@pytest.mark.parametrize("name", ALL)
def test_all_accesses_of_memory_are_of_16_bytes(name: str, kind: str) -> None:
    lines = lines_of(kind, name)
    loads, stores = places(lines, WIDE_LOAD), places(lines, WIDE_STORE)
    assert loads
    assert stores
    assert sorted(loads + stores) == places(lines, ACCESS)


@pytest.mark.parametrize("name", ALL)
def test_rows_are_reduced_between_lanes(name: str) -> None:
    # A row is longer than what one wave holds, so each of its two reductions takes all steps of a butterfly over the wave.
    steps = log2(find_architecture(name).wave_size)
    assert len(places(lines_of("rows", name), EXCHANGE)) >= 2 * steps


@pytest.mark.parametrize("kind", ["elementwise", "rows"])
@pytest.mark.parametrize("name", ALL)
def test_nothing_is_called_and_nothing_spilled(name: str, kind: str) -> None:
    lines = lines_of(kind, name)
    assert places(lines, CALL) == []
    assert places(lines, SPILL) == []
    if find_architecture(name).vendor == "nvidia":
        assert not any(line.startswith((".local", ".extern")) for line in lines)
        return
    for field in (".private_segment_fixed_size", ".sgpr_spill_count", ".vgpr_spill_count"):
        assert f"{field}: 0" in {re.sub(r":\s+", ": ", line) for line in lines}, field


@pytest.mark.parametrize("name", ALL)
def test_what_lies_behind_the_end_is_not_stored(name: str) -> None:
    lines = lines_of("elementwise", name)
    (store,) = places(lines, WIDE_STORE)
    if find_architecture(name).vendor == "nvidia":
        compare = r"setp\.\w+\.[us]\d+"
        skip = r"bra"
    else:
        compare = r"v_cmpx?_\w+_[ui]\d+\w*"
        skip = r"s_and_saveexec_b\d+|s_cbranch_execz"
    ends = rf"\b(?:{GROUPS}|{GROUPS - 1}|{GROUPS:#x}|{GROUPS - 1:#x})\b"
    compares = [place for place in places(lines, compare) if place < store]
    # The constant is an operand of the comparison, or lies in a register that is.
    registers = [match[1] for line in lines[:store] if (match := re.match(rf"s_mov\w*\s+(\w+), {ends}", line))]
    bounds = "|".join([ends, *(rf"\b{register}\b" for register in registers)])
    bounded = [place for place in compares if re.search(bounds, lines[place])]
    assert bounded, lines
    skips = [place for place in places(lines, skip) if bounded[0] < place < store]
    assert skips, lines
    labels = [match[1] for place in skips if (match := re.search(r"([.$]L\w+);?$", lines[place]))]
    assert all(store < lines.index(f"{label}:") for label in labels)
