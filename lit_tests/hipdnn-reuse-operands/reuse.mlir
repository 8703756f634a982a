// RUN: hipdnn-opt %s --hipdnn-reuse-operands --split-input-file | filecheck %s

// A kernel that may writes where it reads, also where an earlier one did so.

// CHECK-LABEL: func.func @chain
// CHECK:         %[[A:.+]] = memref.alloc()
// CHECK-NOT:     memref.alloc
// CHECK:         hipdnn.launch_kernel @{{.+}} ins(%arg0) outs(%[[A]])
// CHECK:         hipdnn.launch_kernel @{{.+}} ins(%[[A]]) outs(%[[A]])
// CHECK:         hipdnn.launch_kernel @{{.+}} ins(%[[A]]) outs(%[[A]])
// CHECK:         hipdnn.launch_kernel @{{.+}} ins(%[[A]]) outs(%arg1)
module {
  "hipdnn.kernel"() {sym_name = "k", summary = "relu", operands_json = "[]", description = "{}", hipdnn.overwrites = array<i64: 0>} : () -> ()
  func.func @chain(%x: memref<4xf32>, %y: memref<4xf32>) {
    %a = memref.alloc() : memref<4xf32>
    hipdnn.launch_kernel @k ins(%x) outs(%a) : (memref<4xf32>, memref<4xf32>) -> ()
    %b = memref.alloc() : memref<4xf32>
    hipdnn.launch_kernel @k ins(%a) outs(%b) : (memref<4xf32>, memref<4xf32>) -> ()
    %c = memref.alloc() : memref<4xf32>
    hipdnn.launch_kernel @k ins(%b) outs(%c) : (memref<4xf32>, memref<4xf32>) -> ()
    hipdnn.launch_kernel @k ins(%c) outs(%y) : (memref<4xf32>, memref<4xf32>) -> ()
    return
  }
}

// -----

// The second operand, where the first one is read again.

// CHECK-LABEL: func.func @second
// CHECK:         %[[A:.+]] = memref.alloc()
// CHECK:         %[[B:.+]] = memref.alloc()
// CHECK:         hipdnn.launch_kernel @{{.+}} ins(%[[A]], %[[B]]) outs(%[[B]])
// CHECK:         hipdnn.launch_kernel @{{.+}} ins(%[[A]], %[[B]]) outs(%arg1)
module {
  "hipdnn.kernel"() {sym_name = "k", summary = "relu", operands_json = "[]", description = "{}"} : () -> ()
  "hipdnn.kernel"() {sym_name = "sum", summary = "add", operands_json = "[]", description = "{}", hipdnn.overwrites = array<i64: 0, 1>} : () -> ()
  func.func @second(%x: memref<4xf32>, %y: memref<4xf32>) {
    %a = memref.alloc() : memref<4xf32>
    hipdnn.launch_kernel @k ins(%x) outs(%a) : (memref<4xf32>, memref<4xf32>) -> ()
    %b = memref.alloc() : memref<4xf32>
    hipdnn.launch_kernel @k ins(%x) outs(%b) : (memref<4xf32>, memref<4xf32>) -> ()
    %c = memref.alloc() : memref<4xf32>
    hipdnn.launch_kernel @sum ins(%a, %b) outs(%c) : (memref<4xf32>, memref<4xf32>, memref<4xf32>) -> ()
    hipdnn.launch_kernel @sum ins(%a, %c) outs(%y) : (memref<4xf32>, memref<4xf32>, memref<4xf32>) -> ()
    return
  }
}

// -----

// A view of the result that stands before the operand's buffer.

// CHECK-LABEL: func.func @early_view
// CHECK:         %[[A:.+]] = memref.alloc() : memref<4xf32>
// CHECK:         %[[V:.+]] = memref.expand_shape %[[A]]
// CHECK:         hipdnn.launch_kernel @{{.+}} ins(%arg0) outs(%[[A]])
// CHECK:         hipdnn.launch_kernel @{{.+}} ins(%[[A]]) outs(%[[A]])
// CHECK:         hipdnn.launch_kernel @{{.+}} ins(%[[V]]) outs(%arg1)
module {
  "hipdnn.kernel"() {sym_name = "k", summary = "relu", operands_json = "[]", description = "{}", hipdnn.overwrites = array<i64: 0>} : () -> ()
  func.func @early_view(%x: memref<4xf32>, %y: memref<2x2xf32>) {
    %b = memref.alloc() : memref<4xf32>
    %v = memref.expand_shape %b [[0, 1]] output_shape [2, 2] : memref<4xf32> into memref<2x2xf32>
    %a = memref.alloc() : memref<4xf32>
    hipdnn.launch_kernel @k ins(%x) outs(%a) : (memref<4xf32>, memref<4xf32>) -> ()
    hipdnn.launch_kernel @k ins(%a) outs(%b) : (memref<4xf32>, memref<4xf32>) -> ()
    hipdnn.launch_kernel @k ins(%v) outs(%y) : (memref<2x2xf32>, memref<2x2xf32>) -> ()
    return
  }
}
