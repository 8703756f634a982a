// RUN: not hipdnn-opt %s --hipdnn-launch-to-kernel 2>&1 | filecheck %s

// A launch of something that is no kernel is a defect of whoever made it.

// CHECK: a region that a kernel should compute does not compile: torch.aten.mm (-): no kernel computes operation_matmul [kernel]
#one = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#none = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>
#in_out = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0>
!x = !torch.vtensor<[4,4],f32>
func.func @main(%a: memref<4x4xf32>, %b: memref<4x4xf32>) {
  "hipdnn.launch"(%a, %b) ({
  ^bb0(%v: !x):
    %r = torch.aten.mm %v, %v : !x, !x -> !x
    "hipdnn.yield"(%r) {operandSegmentSizes = #one} : (!x) -> ()
  }) {operandSegmentSizes = #in_out, resultSegmentSizes = #none} : (memref<4x4xf32>, memref<4x4xf32>) -> ()
  return
}
