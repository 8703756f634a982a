// RUN: hipdnn-opt %s --hipdnn-write-in-place --split-input-file | filecheck %s

// The second copy of a value stays: it can be in one place only. So does one of the caller's input.

// CHECK-LABEL: func.func @copied
// CHECK:         %[[A:.+]] = memref.subview %arg1[0] [2] [1]
// CHECK:         hipdnn.graph ins(%arg0) outs(%[[A]])
// CHECK:         %[[B:.+]] = memref.subview %arg1[2] [2] [1]
// CHECK-NEXT:    memref.copy %[[A]], %[[B]]
// CHECK:         %[[C:.+]] = memref.subview %arg1[4] [2] [1]
// CHECK-NEXT:    memref.copy %arg0, %[[C]]
!v = !torch.vtensor<[2],f32>
func.func @copied(%x: memref<2xf32>, %y: memref<6xf32>) {
  %a = memref.alloc() : memref<2xf32>
  hipdnn.graph ins(%x) outs(%a) ({
  ^bb0(%v: !v):
    %r = torch.aten.relu %v : !v -> !v
    hipdnn.yield %r : !v
  }) : (memref<2xf32>, memref<2xf32>) -> ()
  %first = memref.subview %y[0] [2] [1] : memref<6xf32> to memref<2xf32, strided<[1]>>
  memref.copy %a, %first : memref<2xf32> to memref<2xf32, strided<[1]>>
  %second = memref.subview %y[2] [2] [1] : memref<6xf32> to memref<2xf32, strided<[1], offset: 2>>
  memref.copy %a, %second : memref<2xf32> to memref<2xf32, strided<[1], offset: 2>>
  %third = memref.subview %y[4] [2] [1] : memref<6xf32> to memref<2xf32, strided<[1], offset: 4>>
  memref.copy %x, %third : memref<2xf32> to memref<2xf32, strided<[1], offset: 4>>
  return
}

// -----

// A graph computes what is around the slot: writing the slot before it would be undone.

// CHECK-LABEL: func.func @overwritten
// CHECK:         %[[A:.+]] = memref.alloc() : memref<2xf32>
// CHECK:         hipdnn.graph ins(%arg0) outs(%[[A]])
// CHECK:         hipdnn.graph ins(%arg1) outs(%[[WHOLE:.+]])
// CHECK:         %[[SLOT:.+]] = memref.subview %[[WHOLE]][1] [2] [1]
// CHECK:         memref.copy %[[A]], %[[SLOT]]
!v = !torch.vtensor<[2],f32>
!w = !torch.vtensor<[4],f32>
func.func @overwritten(%x: memref<2xf32>, %y: memref<4xf32>) {
  %a = memref.alloc() : memref<2xf32>
  hipdnn.graph ins(%x) outs(%a) ({
  ^bb0(%v: !v):
    %r = torch.aten.relu %v : !v -> !v
    hipdnn.yield %r : !v
  }) : (memref<2xf32>, memref<2xf32>) -> ()
  %whole = memref.alloc() : memref<4xf32>
  hipdnn.graph ins(%y) outs(%whole) ({
  ^bb0(%v: !w):
    %r = torch.aten.relu %v : !w -> !w
    hipdnn.yield %r : !w
  }) : (memref<4xf32>, memref<4xf32>) -> ()
  %slot = memref.subview %whole[1] [2] [1] : memref<4xf32> to memref<2xf32, strided<[1], offset: 1>>
  memref.copy %a, %slot : memref<2xf32> to memref<2xf32, strided<[1], offset: 1>>
  return
}

// -----

// A reader merges the dims of the source: in the strided slot no view could show that.

// CHECK-LABEL: func.func @reshaped
// CHECK:         %[[A:.+]] = memref.alloc() : memref<2x2xf32>
// CHECK:         hipdnn.graph ins(%arg0) outs(%[[A]])
// CHECK:         memref.collapse_shape %[[A]]
// CHECK:         memref.copy %[[A]]
!v = !torch.vtensor<[2,2],f32>
!f = !torch.vtensor<[4],f32>
func.func @reshaped(%x: memref<2x2xf32>, %y: memref<2x4xf32>, %z: memref<4xf32>) {
  %a = memref.alloc() : memref<2x2xf32>
  hipdnn.graph ins(%x) outs(%a) ({
  ^bb0(%v: !v):
    %r = torch.aten.relu %v : !v -> !v
    hipdnn.yield %r : !v
  }) : (memref<2x2xf32>, memref<2x2xf32>) -> ()
  %flat = memref.collapse_shape %a [[0, 1]] : memref<2x2xf32> into memref<4xf32>
  hipdnn.graph ins(%flat) outs(%z) ({
  ^bb0(%v: !f):
    %r = torch.aten.exp %v : !f -> !f
    hipdnn.yield %r : !f
  }) : (memref<4xf32>, memref<4xf32>) -> ()
  %slot = memref.subview %y[0, 1] [2, 2] [1, 1] : memref<2x4xf32> to memref<2x2xf32, strided<[4, 1], offset: 1>>
  memref.copy %a, %slot : memref<2x2xf32> to memref<2x2xf32, strided<[4, 1], offset: 1>>
  return
}
