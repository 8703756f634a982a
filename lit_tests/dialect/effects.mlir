// RUN: hipdnn-opt %s --cse --canonicalize | filecheck %s

#one = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#none = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>
#in_out = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0>
#in = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
!v = !torch.vtensor<[2],f32>

// In tensor form a graph has no effects: equal ones are one, unused ones go.

// CHECK-LABEL: func.func @tensors
// CHECK:         %[[Y:.+]] = "hipdnn.graph"
// CHECK-NOT:     hipdnn.graph
// CHECK:         return %[[Y]], %[[Y]]
func.func @tensors(%x: !v) -> (!v, !v) {
  %y = "hipdnn.graph"(%x) ({
  ^bb0(%v: !v):
    %r = torch.aten.relu %v : !v -> !v
    "hipdnn.yield"(%r) {operandSegmentSizes = #one} : (!v) -> ()
  }) {operandSegmentSizes = #in, resultSegmentSizes = #one} : (!v) -> !v
  %z = "hipdnn.graph"(%x) ({
  ^bb0(%v: !v):
    %r = torch.aten.relu %v : !v -> !v
    "hipdnn.yield"(%r) {operandSegmentSizes = #one} : (!v) -> ()
  }) {operandSegmentSizes = #in, resultSegmentSizes = #one} : (!v) -> !v
  %unused = "hipdnn.graph"(%x) ({
  ^bb0(%v: !v):
    %r = torch.aten.exp %v : !v -> !v
    "hipdnn.yield"(%r) {operandSegmentSizes = #one} : (!v) -> ()
  }) {operandSegmentSizes = #in, resultSegmentSizes = #one} : (!v) -> !v
  return %y, %z : !v, !v
}

// In buffer form it writes: both stay, in order; so do calls.

// CHECK-LABEL: func.func @buffers
// CHECK:         "hipdnn.graph"(%arg0, %arg1)
// CHECK:         "hipdnn.execute"(%arg1, %arg0)
// CHECK:         "hipdnn.graph"(%arg0, %arg1)
// CHECK:         "hipdnn.execute"(%arg1, %arg0)
func.func @buffers(%x: memref<2xf32>, %y: memref<2xf32>) {
  "hipdnn.graph"(%x, %y) ({
  ^bb0(%v: !v):
    %r = torch.aten.relu %v : !v -> !v
    "hipdnn.yield"(%r) {operandSegmentSizes = #one} : (!v) -> ()
  }) {operandSegmentSizes = #in_out, resultSegmentSizes = #none} : (memref<2xf32>, memref<2xf32>) -> ()
  "hipdnn.execute"(%y, %x) {executable = @g, operandSegmentSizes = #in_out} : (memref<2xf32>, memref<2xf32>) -> ()
  "hipdnn.graph"(%x, %y) ({
  ^bb0(%v: !v):
    %r = torch.aten.relu %v : !v -> !v
    "hipdnn.yield"(%r) {operandSegmentSizes = #one} : (!v) -> ()
  }) {operandSegmentSizes = #in_out, resultSegmentSizes = #none} : (memref<2xf32>, memref<2xf32>) -> ()
  "hipdnn.execute"(%y, %x) {executable = @g, operandSegmentSizes = #in_out} : (memref<2xf32>, memref<2xf32>) -> ()
  return
}
