// RUN: hipdnn-opt %s --hipdnn-reuse-operands --split-input-file | filecheck %s

// Buffers stay as they are: of the caller's arrays, where a kernel may not, where the operand is read again (through a view), where it is read
// in a second way (as it is, or through a view), where the result has another type, and where something wrote to the result before.

// CHECK-LABEL: func.func @kept
// CHECK:         hipdnn.launch_kernel @{{.+}} ins(%arg0) outs(%[[A:[a-z0-9_]+]])
// CHECK:         hipdnn.launch_kernel @other ins(%[[A]]) outs(%[[B:[a-z0-9_]+]])
// CHECK:         hipdnn.launch_kernel @k ins(%[[A]]) outs(%[[C:[a-z0-9_]+]])
// CHECK:         hipdnn.launch_kernel @k ins(%{{.+}}) outs(%[[D:[a-z0-9_]+]])
// CHECK:         hipdnn.launch_kernel @sum ins(%[[B]], %[[B]]) outs(%[[E:[a-z0-9_]+]])
// CHECK:         hipdnn.launch_kernel @k ins(%[[C]]) outs(%[[F:[a-z0-9_]+]])
// CHECK:         hipdnn.launch_kernel @k ins(%[[D]]) outs(%[[G:[a-z0-9_]+]])
// CHECK:         hipdnn.launch_kernel @k ins(%[[E]]) outs(%[[G]])
// CHECK:         hipdnn.launch_kernel @other ins(%[[G]]) outs(%[[H:[a-z0-9_]+]])
// CHECK:         %[[V:.+]] = memref.subview %[[H]]
// CHECK:         hipdnn.launch_kernel @sum ins(%[[H]], %[[V]]) outs(%[[I:[a-z0-9_]+]])
// CHECK:         hipdnn.launch_kernel @k ins(%[[I]]) outs(%arg1)
module {
  "hipdnn.kernel"() {sym_name = "k", summary = "relu", operands_json = "[]", description = "{}", hipdnn.overwrites = array<i64: 0>} : () -> ()
  "hipdnn.kernel"() {sym_name = "sum", summary = "add", operands_json = "[]", description = "{}", hipdnn.overwrites = array<i64: 0, 1>} : () -> ()
  "hipdnn.kernel"() {sym_name = "other", summary = "flip", operands_json = "[]", description = "{}"} : () -> ()
  func.func @kept(%x: memref<4xf32>, %y: memref<4xf32>) {
    %a = memref.alloc() : memref<4xf32>
    hipdnn.launch_kernel @k ins(%x) outs(%a) : (memref<4xf32>, memref<4xf32>) -> ()
    %b = memref.alloc() : memref<4xf32>
    hipdnn.launch_kernel @other ins(%a) outs(%b) : (memref<4xf32>, memref<4xf32>) -> ()
    %c = memref.alloc() : memref<4xf32>
    hipdnn.launch_kernel @k ins(%a) outs(%c) : (memref<4xf32>, memref<4xf32>) -> ()
    %v = memref.expand_shape %a [[0, 1]] output_shape [2, 2] : memref<4xf32> into memref<2x2xf32>
    %d = memref.alloc() : memref<2x2xf32>
    hipdnn.launch_kernel @k ins(%v) outs(%d) : (memref<2x2xf32>, memref<2x2xf32>) -> ()
    %e = memref.alloc() : memref<4xf32>
    hipdnn.launch_kernel @sum ins(%b, %b) outs(%e) : (memref<4xf32>, memref<4xf32>, memref<4xf32>) -> ()
    %f = memref.alloc() : memref<4xf16>
    hipdnn.launch_kernel @k ins(%c) outs(%f) : (memref<4xf32>, memref<4xf16>) -> ()
    %g = memref.alloc() : memref<4xf32>
    hipdnn.launch_kernel @k ins(%d) outs(%g) : (memref<2x2xf32>, memref<4xf32>) -> ()
    hipdnn.launch_kernel @k ins(%e) outs(%g) : (memref<4xf32>, memref<4xf32>) -> ()
    %h = memref.alloc() : memref<4xf32>
    hipdnn.launch_kernel @other ins(%g) outs(%h) : (memref<4xf32>, memref<4xf32>) -> ()
    %w = memref.subview %h[0] [1] [1] : memref<4xf32> to memref<1xf32, strided<[1]>>
    %i = memref.alloc() : memref<4xf32>
    hipdnn.launch_kernel @sum ins(%h, %w) outs(%i) : (memref<4xf32>, memref<1xf32, strided<[1]>>, memref<4xf32>) -> ()
    hipdnn.launch_kernel @k ins(%i) outs(%y) : (memref<4xf32>, memref<4xf32>) -> ()
    return
  }
}
