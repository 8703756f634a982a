// RUN: hipdnn-opt %s --hipdnn-graph-to-executable=target=gfx942 | filecheck %s

// AMD's providers take tensors on 16 bytes only: the operand in the middle of a buffer is copied, the transposed one beside it is not, and
// the result is copied to its place.

// CHECK-NOT:   [1309,
// CHECK-LABEL: func.func @product
// CHECK:         %[[A:.+]] = memref.alloc() : memref<8x4xf32>
// CHECK:         hipdnn.launch_kernel @{{.+}} ins(%arg0) outs(%[[A]])
// CHECK:         %[[Y:.+]] = memref.alloc() : memref<8x4xf32>
// CHECK:         hipdnn.execute @{{.+}} ins(%[[A]], %arg1) outs(%[[Y]])
// CHECK:         hipdnn.launch_kernel @{{.+}} ins(%[[Y]]) outs(%arg2)
!m = !torch.vtensor<[8,4],f32>
!w = !torch.vtensor<[4,4],f32>
!part = memref<8x4xf32, strided<[4, 1], offset: 3>>
!transposed = memref<4x4xf32, strided<[1, 4]>>
func.func @product(%a: !part, %b: !transposed, %y: !part) {
  hipdnn.graph ins(%a, %b) outs(%y) ({
  ^bb0(%v: !m, %w: !w):
    %p = torch.aten.mm %v, %w : !m, !w -> !m
    hipdnn.yield %p : !m
  }) {hipdnn.engine = "HIPBLASLT_ENGINE"} : (!part, !transposed, !part) -> ()
  return
}
