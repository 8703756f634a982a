// RUN: hipdnn-opt %s --hipdnn-absorb-transposes --canonicalize --split-input-file | filecheck %s

// Forward: readers of the transposed buffer read the source through a view; a cast that hides strides goes.

// CHECK-LABEL: func.func @forward
// CHECK-NOT:     memref.alloc
// CHECK-NOT:     linalg.transpose
// CHECK:         %[[V:.+]] = memref.transpose %arg0 (d0, d1) -> (d1, d0) : memref<2x3xf32> to memref<3x2xf32, strided<[1, 3]>>
// CHECK:         hipdnn.graph ins(%[[V]]) outs(%arg1)
func.func @forward(%x: memref<2x3xf32>, %y: memref<3x2xf32>) {
  %t = memref.alloc() : memref<3x2xf32>
  linalg.transpose ins(%x : memref<2x3xf32>) outs(%t : memref<3x2xf32>) permutation = [1, 0]
  %c = memref.cast %t : memref<3x2xf32> to memref<3x2xf32, strided<[?, ?], offset: ?>>
  hipdnn.graph ins(%c) outs(%y) ({
  ^bb0(%a: !torch.vtensor<[3,2],f32>):
    %r = torch.aten.relu %a : !torch.vtensor<[3,2],f32> -> !torch.vtensor<[3,2],f32>
    hipdnn.yield %r : !torch.vtensor<[3,2],f32>
  }) : (memref<3x2xf32, strided<[?, ?], offset: ?>>, memref<3x2xf32>) -> ()
  return
}

// -----

// A chain of transposes, then a slice: views of views.

// CHECK-LABEL: func.func @chain
// CHECK-NOT:     linalg.transpose
// CHECK:         memref.transpose %arg0 (d0, d1, d2) -> (d1, d2, d0) : memref<2x3x4xf32> to memref<3x4x2xf32, strided<[4, 1, 12]>>
// CHECK:         %[[S:.+]] = memref.subview %{{.+}}[1, 0, 0] [1, 4, 2] [1, 1, 1] : {{.+}} to memref<1x4x2xf32, strided<[4, 1, 12], offset: 4>>
// CHECK:         hipdnn.graph ins(%[[S]]) outs(%arg1)
func.func @chain(%x: memref<2x3x4xf32>, %y: memref<1x4x2xf32>) {
  %t = memref.alloc() : memref<3x2x4xf32>
  linalg.transpose ins(%x : memref<2x3x4xf32>) outs(%t : memref<3x2x4xf32>) permutation = [1, 0, 2]
  %u = memref.alloc() : memref<3x4x2xf32>
  linalg.transpose ins(%t : memref<3x2x4xf32>) outs(%u : memref<3x4x2xf32>) permutation = [0, 2, 1]
  %s = memref.subview %u[1, 0, 0] [1, 4, 2] [1, 1, 1] : memref<3x4x2xf32> to memref<1x4x2xf32, strided<[8, 2, 1], offset: 8>>
  hipdnn.graph ins(%s) outs(%y) ({
  ^bb0(%a: !torch.vtensor<[1,4,2],f32>):
    %r = torch.aten.relu %a : !torch.vtensor<[1,4,2],f32> -> !torch.vtensor<[1,4,2],f32>
    hipdnn.yield %r : !torch.vtensor<[1,4,2],f32>
  }) : (memref<1x4x2xf32, strided<[8, 2, 1], offset: 8>>, memref<1x4x2xf32>) -> ()
  return
}

// -----

// Backward: the reader merges dims, which a view of the source cannot show; the writer of the source writes transposed.

// CHECK-LABEL: func.func @backward
// CHECK-NOT:     linalg.transpose
// CHECK:         %[[BUFFER:.+]] = memref.alloc() : memref<3x2xf32>
// CHECK:         %[[V:.+]] = memref.transpose %[[BUFFER]] (d0, d1) -> (d1, d0) : memref<3x2xf32> to memref<2x3xf32, strided<[1, 2]>>
// CHECK:         hipdnn.graph ins(%arg0) outs(%[[V]])
// CHECK:         memref.collapse_shape %[[BUFFER]] {{\[\[}}0, 1]] : memref<3x2xf32> into memref<6xf32>
func.func @backward(%x: memref<2x3xf32>, %y: memref<6xf32>) {
  %m = memref.alloc() : memref<2x3xf32>
  hipdnn.graph ins(%x) outs(%m) ({
  ^bb0(%a: !torch.vtensor<[2,3],f32>):
    %r = torch.aten.relu %a : !torch.vtensor<[2,3],f32> -> !torch.vtensor<[2,3],f32>
    hipdnn.yield %r : !torch.vtensor<[2,3],f32>
  }) : (memref<2x3xf32>, memref<2x3xf32>) -> ()
  %t = memref.alloc() : memref<3x2xf32>
  linalg.transpose ins(%m : memref<2x3xf32>) outs(%t : memref<3x2xf32>) permutation = [1, 0]
  %flat = memref.collapse_shape %t [[0, 1]] : memref<3x2xf32> into memref<6xf32>
  memref.copy %flat, %y : memref<6xf32> to memref<6xf32>
  return
}

// -----

// From the caller's buffer to the caller's buffer: nothing can change its layout, the transpose stays.

// CHECK-LABEL: func.func @kept
// CHECK:         linalg.transpose ins(%arg0 : memref<2x3xf32>) outs(%arg1 : memref<3x2xf32>)
// CHECK:         linalg.transpose ins(%arg0 : memref<2x3xf32>) outs(%[[T:.+]] : memref<3x2xf32>)
// CHECK:         memref.collapse_shape %[[T]]
func.func @kept(%x: memref<2x3xf32>, %y: memref<3x2xf32>, %z: memref<6xf32>) {
  linalg.transpose ins(%x : memref<2x3xf32>) outs(%y : memref<3x2xf32>) permutation = [1, 0]
  %t = memref.alloc() : memref<3x2xf32>
  linalg.transpose ins(%x : memref<2x3xf32>) outs(%t : memref<3x2xf32>) permutation = [1, 0]
  %flat = memref.collapse_shape %t [[0, 1]] : memref<3x2xf32> into memref<6xf32>
  memref.copy %flat, %z : memref<6xf32> to memref<6xf32>
  return
}
