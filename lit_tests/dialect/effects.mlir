// RUN: hipdnn-opt %s --cse --canonicalize | filecheck %s

!v = !torch.vtensor<[2],f32>

// In tensor form a graph has no effects: equal ones are one, unused ones go.

// CHECK-LABEL: func.func @tensors
// CHECK:         %[[Y:.+]] = hipdnn.graph
// CHECK-NOT:     hipdnn.graph
// CHECK:         return %[[Y]], %[[Y]]
func.func @tensors(%x: !v) -> (!v, !v) {
  %y = hipdnn.graph ins(%x) ({
  ^bb0(%v: !v):
    %r = torch.aten.relu %v : !v -> !v
    hipdnn.yield %r : !v
  }) : (!v) -> !v
  %z = hipdnn.graph ins(%x) ({
  ^bb0(%v: !v):
    %r = torch.aten.relu %v : !v -> !v
    hipdnn.yield %r : !v
  }) : (!v) -> !v
  %unused = hipdnn.graph ins(%x) ({
  ^bb0(%v: !v):
    %r = torch.aten.exp %v : !v -> !v
    hipdnn.yield %r : !v
  }) : (!v) -> !v
  return %y, %z : !v, !v
}

// In buffer form it writes: both stay, in order; so do calls.

// CHECK-LABEL: func.func @buffers
// CHECK:         hipdnn.graph ins(%arg0) outs(%arg1)
// CHECK:         hipdnn.execute @{{.+}} ins(%arg1) outs(%arg0)
// CHECK:         hipdnn.graph ins(%arg0) outs(%arg1)
// CHECK:         hipdnn.execute @{{.+}} ins(%arg1) outs(%arg0)
func.func @buffers(%x: memref<2xf32>, %y: memref<2xf32>) {
  hipdnn.graph ins(%x) outs(%y) ({
  ^bb0(%v: !v):
    %r = torch.aten.relu %v : !v -> !v
    hipdnn.yield %r : !v
  }) : (memref<2xf32>, memref<2xf32>) -> ()
  hipdnn.execute @g ins(%y) outs(%x) : (memref<2xf32>, memref<2xf32>) -> ()
  hipdnn.graph ins(%x) outs(%y) ({
  ^bb0(%v: !v):
    %r = torch.aten.relu %v : !v -> !v
    hipdnn.yield %r : !v
  }) : (memref<2xf32>, memref<2xf32>) -> ()
  hipdnn.execute @g ins(%y) outs(%x) : (memref<2xf32>, memref<2xf32>) -> ()
  return
}
