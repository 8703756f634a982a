// RUN: hipdnn-opt %s --hipdnn-finalize-memrefs --split-input-file | filecheck %s

// Strided copies and transposes that are left become graphs that copy; the bits of unsigned data copy as signed.

// CHECK-LABEL: func.func @copies
// CHECK:         hipdnn.graph ins(%arg0) outs(%arg1) ({
// CHECK-NEXT:    ^bb0(%[[A:.+]]: !torch.vtensor<[2,3],f32>):
// CHECK:           %[[C:.+]] = torch.aten.clone %[[A]]
// CHECK-NEXT:      hipdnn.yield %[[C]] :
// CHECK:         : (memref<2x3xf32, strided<[1, 2]>>, memref<2x3xf32>) -> ()
// CHECK:         %[[V:.+]] = memref.transpose %arg2 (d0, d1) -> (d1, d0) : memref<3x2xi8> to memref<2x3xi8, strided<[1, 2]>>
// CHECK:         hipdnn.graph ins(%[[V]]) outs(%arg3) ({
// CHECK-NEXT:    ^bb0(%{{.+}}: !torch.vtensor<[2,3],si8>):
// CHECK-NOT:     memref.copy
// CHECK-NOT:     linalg.transpose
// CHECK:         return
func.func @copies(%a: memref<2x3xf32, strided<[1, 2]>>, %b: memref<2x3xf32>, %c: memref<3x2xi8>, %d: memref<2x3xi8>) {
  memref.copy %a, %b : memref<2x3xf32, strided<[1, 2]>> to memref<2x3xf32>
  linalg.transpose ins(%c : memref<3x2xi8>) outs(%d : memref<2x3xi8>) permutation = [1, 0]
  return
}

// -----

// Contiguous copies stay steps of their own; views and buffers that nothing uses go.

// CHECK-LABEL: func.func @contiguous
// CHECK-NEXT:    %[[ROWS:.+]] = memref.subview %arg0[1, 0] [2, 3] [1, 1]
// CHECK-NEXT:    memref.copy %[[ROWS]], %arg1
// CHECK-NEXT:    return
func.func @contiguous(%a: memref<4x3xf32>, %b: memref<2x3xf32>) {
  %unused = memref.alloc() : memref<5x5xf32>
  %view = memref.collapse_shape %unused [[0, 1]] : memref<5x5xf32> into memref<25xf32>
  %rows = memref.subview %a[1, 0] [2, 3] [1, 1] : memref<4x3xf32> to memref<2x3xf32, strided<[3, 1], offset: 3>>
  memref.copy %rows, %b : memref<2x3xf32, strided<[3, 1], offset: 3>> to memref<2x3xf32>
  return
}
