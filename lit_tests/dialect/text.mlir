// RUN: hipdnn-opt %s > %t && hipdnn-opt %t > %t.again && diff %t %t.again && filecheck %s < %t
// RUN: hipdnn-opt %s --mlir-print-debuginfo > %t && hipdnn-opt %t | filecheck %s

// What hipdnn-opt prints has no number for each slot of operands, and reads as the same module: all operations of the dialect, in both forms.

// CHECK-NOT:   SegmentSizes
// CHECK:       func.func @tensors
// CHECK-NEXT:    %0 = hipdnn.graph ins(%arg0) ({
// CHECK:           hipdnn.yield %{{.+}} : !torch.vtensor<[2],f32>
// CHECK-NEXT:    }) {hipdnn.engine = "E"} : (!torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32>
// CHECK-NEXT:    %1:2 = hipdnn.launch ins(%0, %arg1) ({
// CHECK:           hipdnn.yield %{{.+}}, %{{.+}} : !torch.vtensor<[2],f32>, !torch.vtensor<[2],f32>
// CHECK-NEXT:    }) : (!torch.vtensor<[2],f32>, !torch.vtensor<[2],f32>) -> (!torch.vtensor<[2],f32>, !torch.vtensor<[2],f32>)
// CHECK-NEXT:    return %1#0, %1#1
// CHECK:       func.func @buffers
// CHECK-NEXT:    hipdnn.launch ins() outs(%arg0) ({
// CHECK:         }) : (memref<2xf32>) -> ()
// CHECK-NEXT:    hipdnn.graph ins(%arg0) outs(%arg1) ({
// CHECK:         hipdnn.execute @g ins(%arg0, %arg1) outs(%arg0) {note = "ins(%x) ({"} : (memref<2xf32>, memref<2xf32>, memref<2xf32>) -> ()
// CHECK-NEXT:    hipdnn.launch_kernel @k.1 ins(%arg0) outs(%arg1) : (memref<2xf32>, memref<2xf32>) -> ()
// CHECK:       "hipdnn.executable"()
// CHECK-SAME:    sym_name = "g"
// CHECK:       "hipdnn.kernel"()
// CHECK-SAME:    sym_name = "k.1"
!v = !torch.vtensor<[2],f32>
func.func @tensors(%x: !v, %y: !v) -> (!v, !v) {
  %r = hipdnn.graph ins(%x) ({
  ^bb0(%v: !v):
    %a = torch.aten.relu %v : !v -> !v
    hipdnn.yield %a : !v
  }) {hipdnn.engine = "E"} : (!v) -> !v
  %s:2 = hipdnn.launch ins(%r, %y) ({
  ^bb0(%v: !v, %w: !v):
    %a = torch.aten.mul.Tensor %v, %w : !v, !v -> !v
    hipdnn.yield %a, %v : !v, !v
  }) : (!v, !v) -> (!v, !v)
  return %s#0, %s#1 : !v, !v
}
// The generic form is read, too.
#in_out = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0>
#one = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#none = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>
func.func @buffers(%x: memref<2xf32>, %y: memref<2xf32>) {
  hipdnn.launch ins() outs(%x) ({
    %f = torch.vtensor.literal(dense<1.0> : tensor<2xf32>) : !v
    hipdnn.yield %f : !v
  }) : (memref<2xf32>) -> ()
  "hipdnn.graph"(%x, %y) ({
  ^bb0(%v: !v):
    "hipdnn.yield"(%v) {operandSegmentSizes = #one} : (!v) -> ()
  }) {operandSegmentSizes = #in_out, resultSegmentSizes = #none} : (memref<2xf32>, memref<2xf32>) -> ()
  hipdnn.execute @g ins(%x, %y) outs(%x) {note = "ins(%x) ({"} : (memref<2xf32>, memref<2xf32>, memref<2xf32>) -> ()
  "hipdnn.launch_kernel"(%x, %y) {kernel = @"k.1", operandSegmentSizes = #in_out} : (memref<2xf32>, memref<2xf32>) -> ()
  return
}
"hipdnn.executable"() {sym_name = "g", summary = "relu", engine = "E", operands_json = "[]", descriptors = "[]"} : () -> ()
"hipdnn.kernel"() {sym_name = "k.1", summary = "copy", operands_json = "[]", description = "{}"} : () -> ()
