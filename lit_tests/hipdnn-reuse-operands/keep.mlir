// RUN: hipdnn-opt %s --hipdnn-reuse-operands --split-input-file | filecheck %s

// Buffers stay as they are: of the caller's arrays, where a kernel may not, where the operand is read again (through a view), where it is read
// in a second way (as it is, or through a view), where the result has another type, and where something wrote to the result before.

// CHECK-LABEL: func.func @kept
// CHECK:         "hipdnn.launch_kernel"(%arg0, %[[A:[a-z0-9_]+]])
// CHECK:         "hipdnn.launch_kernel"(%[[A]], %[[B:[a-z0-9_]+]]) {kernel = @other
// CHECK:         "hipdnn.launch_kernel"(%[[A]], %[[C:[a-z0-9_]+]]) {kernel = @k
// CHECK:         "hipdnn.launch_kernel"(%{{.+}}, %[[D:[a-z0-9_]+]]) {kernel = @k
// CHECK:         "hipdnn.launch_kernel"(%[[B]], %[[B]], %[[E:[a-z0-9_]+]]) {kernel = @sum
// CHECK:         "hipdnn.launch_kernel"(%[[C]], %[[F:[a-z0-9_]+]]) {kernel = @k
// CHECK:         "hipdnn.launch_kernel"(%[[D]], %[[G:[a-z0-9_]+]]) {kernel = @k
// CHECK:         "hipdnn.launch_kernel"(%[[E]], %[[G]]) {kernel = @k
// CHECK:         "hipdnn.launch_kernel"(%[[G]], %[[H:[a-z0-9_]+]]) {kernel = @other
// CHECK:         %[[V:.+]] = memref.subview %[[H]]
// CHECK:         "hipdnn.launch_kernel"(%[[H]], %[[V]], %[[I:[a-z0-9_]+]]) {kernel = @sum
// CHECK:         "hipdnn.launch_kernel"(%[[I]], %arg1) {kernel = @k
#in_out = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0>
#two_out = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0>
module {
  "hipdnn.kernel"() {sym_name = "k", summary = "relu", operands_json = "[]", description = "{}", hipdnn.overwrites = array<i64: 0>} : () -> ()
  "hipdnn.kernel"() {sym_name = "sum", summary = "add", operands_json = "[]", description = "{}", hipdnn.overwrites = array<i64: 0, 1>} : () -> ()
  "hipdnn.kernel"() {sym_name = "other", summary = "flip", operands_json = "[]", description = "{}"} : () -> ()
  func.func @kept(%x: memref<4xf32>, %y: memref<4xf32>) {
    %a = memref.alloc() : memref<4xf32>
    "hipdnn.launch_kernel"(%x, %a) {kernel = @k, operandSegmentSizes = #in_out} : (memref<4xf32>, memref<4xf32>) -> ()
    %b = memref.alloc() : memref<4xf32>
    "hipdnn.launch_kernel"(%a, %b) {kernel = @other, operandSegmentSizes = #in_out} : (memref<4xf32>, memref<4xf32>) -> ()
    %c = memref.alloc() : memref<4xf32>
    "hipdnn.launch_kernel"(%a, %c) {kernel = @k, operandSegmentSizes = #in_out} : (memref<4xf32>, memref<4xf32>) -> ()
    %v = memref.expand_shape %a [[0, 1]] output_shape [2, 2] : memref<4xf32> into memref<2x2xf32>
    %d = memref.alloc() : memref<2x2xf32>
    "hipdnn.launch_kernel"(%v, %d) {kernel = @k, operandSegmentSizes = #in_out} : (memref<2x2xf32>, memref<2x2xf32>) -> ()
    %e = memref.alloc() : memref<4xf32>
    "hipdnn.launch_kernel"(%b, %b, %e) {kernel = @sum, operandSegmentSizes = #two_out} : (memref<4xf32>, memref<4xf32>, memref<4xf32>) -> ()
    %f = memref.alloc() : memref<4xf16>
    "hipdnn.launch_kernel"(%c, %f) {kernel = @k, operandSegmentSizes = #in_out} : (memref<4xf32>, memref<4xf16>) -> ()
    %g = memref.alloc() : memref<4xf32>
    "hipdnn.launch_kernel"(%d, %g) {kernel = @k, operandSegmentSizes = #in_out} : (memref<2x2xf32>, memref<4xf32>) -> ()
    "hipdnn.launch_kernel"(%e, %g) {kernel = @k, operandSegmentSizes = #in_out} : (memref<4xf32>, memref<4xf32>) -> ()
    %h = memref.alloc() : memref<4xf32>
    "hipdnn.launch_kernel"(%g, %h) {kernel = @other, operandSegmentSizes = #in_out} : (memref<4xf32>, memref<4xf32>) -> ()
    %w = memref.subview %h[0] [1] [1] : memref<4xf32> to memref<1xf32, strided<[1]>>
    %i = memref.alloc() : memref<4xf32>
    "hipdnn.launch_kernel"(%h, %w, %i) {kernel = @sum, operandSegmentSizes = #two_out} : (memref<4xf32>, memref<1xf32, strided<[1]>>, memref<4xf32>) -> ()
    "hipdnn.launch_kernel"(%i, %y) {kernel = @k, operandSegmentSizes = #in_out} : (memref<4xf32>, memref<4xf32>) -> ()
    return
  }
}
