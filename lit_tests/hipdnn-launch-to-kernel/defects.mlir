// RUN: not hipdnn-opt %s --hipdnn-launch-to-kernel 2>&1 | filecheck %s

// A launch of something that is no kernel is a defect of whoever made it.

// CHECK: a region that a kernel should compute does not compile: torch.aten.mm (-): no kernel computes operation_matmul [kernel]
!x = !torch.vtensor<[4,4],f32>
func.func @main(%a: memref<4x4xf32>, %b: memref<4x4xf32>) {
  hipdnn.launch ins(%a) outs(%b) ({
  ^bb0(%v: !x):
    %r = torch.aten.mm %v, %v : !x, !x -> !x
    hipdnn.yield %r : !x
  }) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
  return
}
