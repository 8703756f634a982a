// RUN: not hipdnn-opt %s --hipdnn-graph-to-executable 2>&1 | filecheck %s

// No engine has two products in one graph: every engine's reason is given.

// CHECK: no engine takes a claimed region: HOST_ONEDNN_ENGINE: node 1 reads the result of node 0 and is not pointwise;
// CHECK-SAME: HOST_ROWWISE_ENGINE: node 0: {{.+}} is neither pointwise, reduction,
!v = !torch.vtensor<[2,2],f32>
func.func @two_products(%a: memref<2x2xf32>, %b: memref<2x2xf32>) {
  hipdnn.graph ins(%a) outs(%b) ({
  ^bb0(%v: !v):
    %p = torch.aten.mm %v, %v : !v, !v -> !v
    %r = torch.aten.mm %p, %v : !v, !v -> !v
    hipdnn.yield %r : !v
  }) : (memref<2x2xf32>, memref<2x2xf32>) -> ()
  return
}
