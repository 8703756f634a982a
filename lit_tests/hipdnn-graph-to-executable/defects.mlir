// RUN: not hipdnn-opt %s --hipdnn-graph-to-executable --split-input-file 2>&1 | filecheck %s

// A region that the table cannot emit was never claimed by hipdnn-offload: a defect, named as one.

// CHECK: a region that an engine should take does not compile: torch.aten.cumsum
!v = !torch.vtensor<[2],f32>
func.func @no_row(%a: memref<2xf32>, %b: memref<2xf32>) {
  hipdnn.graph ins(%a) outs(%b) ({
  ^bb0(%v: !v):
    %0 = torch.constant.int 0
    %no = torch.constant.none
    %r = torch.aten.cumsum %v, %0, %no : !v, !torch.int, !torch.none -> !v
    hipdnn.yield %r : !v
  }) : (memref<2xf32>, memref<2xf32>) -> ()
  return
}
