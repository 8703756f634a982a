"""Passes on buffers follow views however many of them stand one behind the other."""

from __future__ import annotations

import pytest
from torch_mlir import ir

from hipdnn_mlir.ir.dialect import make_context
from hipdnn_mlir.passes.pipeline import build

VIEWS = 2000
"""An even number: every second one is as the first buffer again."""
KINDS = ("memref<8x4xf32>", "memref<8x4xf32, strided<[4, 1]>>", "memref<4x8xf32, strided<[1, 4]>>")


def _chain(first: str, *, moves: bool) -> str:
    """Views `%v1` to `%v<VIEWS>` of `%<first>`, which turn the dims round or show the whole."""
    lines = []
    kind = KINDS[0]
    for number in range(1, VIEWS + 1):
        source = f"%v{number - 1}" if number > 1 else f"%{first}"
        if moves:
            shown = KINDS[2] if number % 2 else KINDS[1]
            lines.append(f"%v{number} = memref.transpose {source} (d0, d1) -> (d1, d0) : {kind} to {shown}")
        else:
            shown = KINDS[1]
            lines.append(f"%v{number} = memref.subview {source}[0, 0] [8, 4] [1, 1] : {kind} to {shown}")
        kind = shown
    return "\n".join(lines)


_CALL = "operandSegmentSizes = array<i32: 1" + ", 0" * 23 + ", 1" + ", 0" * 7 + ">"
_GRAPH = f"""
  "hipdnn.graph"(%x, %a) ({{
  ^bb0(%v: !torch.vtensor<[8,4],f32>):
    %r = torch.aten.relu %v : !torch.vtensor<[8,4],f32> -> !torch.vtensor<[8,4],f32>
    "hipdnn.yield"(%r) {{operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>}} : (!torch.vtensor<[8,4],f32>) -> ()
  }}) {{{_CALL}, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>}} : ({KINDS[0]}, {KINDS[0]}) -> ()
"""


def _function(text: str, x: str = KINDS[0]) -> str:
    return f"func.func @main(%x: {x}, %y: {KINDS[0]}) {{\n{text}\n  return\n}}"


def _run(text: str, passes: str) -> str:
    with make_context():
        module = ir.Module.parse(text)
        build(passes).run(module.operation)
        assert module.operation.verify()
        return str(module)


@pytest.mark.parametrize("moves", [False, True])
def test_transpose_becomes_a_view_when_its_result_is_seen_through_many(moves: bool) -> None:
    text = f"""
  %a = memref.alloc() : {KINDS[0]}
  linalg.transpose ins(%x : memref<4x8xf32>) outs(%a : {KINDS[0]}) permutation = [1, 0]
  {_chain("a", moves=moves)}
  memref.copy %v{VIEWS}, %y : {KINDS[1]} to {KINDS[0]}"""
    made = _run(_function(text, "memref<4x8xf32>"), "hipdnn-absorb-transposes")
    assert "linalg.transpose" not in made
    assert "memref.alloc" not in made


@pytest.mark.parametrize("moves", [False, True])
def test_region_writes_in_place_when_the_place_is_seen_through_many_views(moves: bool) -> None:
    text = f"""
  %a = memref.alloc() : {KINDS[0]}
  {_GRAPH}
  %w = memref.alloc() : {KINDS[0]}
  {_chain("w", moves=moves)}
  memref.copy %a, %v{VIEWS} : {KINDS[0]} to {KINDS[1]}
  memref.copy %w, %y : {KINDS[0]} to {KINDS[0]}"""
    made = _run(_function(text), "hipdnn-write-in-place")
    assert made.count("memref.alloc") == 0, "the region writes for the caller"
    assert "memref.copy" not in made


def test_kernel_overwrites_its_operand_when_that_was_read_through_many_views() -> None:
    kinds = f"({KINDS[0]}, {KINDS[0]}) -> ()"
    text = f"""
  %a = memref.alloc() : {KINDS[0]}
  "hipdnn.launch_kernel"(%x, %a) {{kernel = @k, {_CALL}}} : {kinds}
  {_chain("a", moves=False)}
  memref.copy %v{VIEWS}, %x : {KINDS[1]} to {KINDS[0]}
  %b = memref.alloc() : {KINDS[0]}
  "hipdnn.launch_kernel"(%a, %b) {{kernel = @k, {_CALL}}} : {kinds}
  "hipdnn.launch_kernel"(%b, %y) {{kernel = @k, {_CALL}}} : {kinds}"""
    kernel = 'sym_name = "k", summary = "", operands_json = "[]", description = "{}", hipdnn.overwrites = array<i64: 0>'
    made = _run(f'"hipdnn.kernel"() {{{kernel}}} : () -> ()\n{_function(text)}', "hipdnn-reuse-operands")
    assert made.count("memref.alloc") == 1
