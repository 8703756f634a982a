// RUN: hipdnn-opt %s --hipdnn-write-in-place --split-input-file | filecheck %s

// Two producers write into the slots of a concatenation; the reader of one reads its slot.

// CHECK-LABEL: func.func @concat
// CHECK:         %[[WHOLE:.+]] = memref.alloc() : memref<4xf32>
// CHECK-NOT:     memref.alloc
// CHECK:         %[[A:.+]] = memref.subview %[[WHOLE]][0] [2] [1]
// CHECK:         hipdnn.graph ins(%arg0) outs(%[[A]])
// CHECK:         %[[B:.+]] = memref.subview %[[WHOLE]][2] [2] [1]
// CHECK:         hipdnn.graph ins(%[[A]]) outs(%[[B]])
// CHECK-NOT:     memref.copy
// CHECK:         hipdnn.graph ins(%[[WHOLE]]) outs(%arg1)
!v = !torch.vtensor<[2],f32>
!w = !torch.vtensor<[4],f32>
func.func @concat(%x: memref<2xf32>, %y: memref<4xf32>) {
  %a = memref.alloc() : memref<2xf32>
  hipdnn.graph ins(%x) outs(%a) ({
  ^bb0(%v: !v):
    %r = torch.aten.relu %v : !v -> !v
    hipdnn.yield %r : !v
  }) : (memref<2xf32>, memref<2xf32>) -> ()
  %b = memref.alloc() : memref<2xf32>
  hipdnn.graph ins(%a) outs(%b) ({
  ^bb0(%v: !v):
    %r = torch.aten.exp %v : !v -> !v
    hipdnn.yield %r : !v
  }) : (memref<2xf32>, memref<2xf32>) -> ()
  %whole = memref.alloc() : memref<4xf32>
  %first = memref.subview %whole[0] [2] [1] : memref<4xf32> to memref<2xf32, strided<[1]>>
  memref.copy %a, %first : memref<2xf32> to memref<2xf32, strided<[1]>>
  %second = memref.subview %whole[2] [2] [1] : memref<4xf32> to memref<2xf32, strided<[1], offset: 2>>
  memref.copy %b, %second : memref<2xf32> to memref<2xf32, strided<[1], offset: 2>>
  hipdnn.graph ins(%whole) outs(%y) ({
  ^bb0(%v: !w):
    %r = torch.aten.relu %v : !w -> !w
    hipdnn.yield %r : !w
  }) : (memref<4xf32>, memref<4xf32>) -> ()
  return
}

// -----

// A border: its fill, here through a channels-last view, stays in front of what is written inside.

// CHECK-LABEL: func.func @border
// CHECK:         %[[BUFFER:.+]] = memref.alloc() : memref<1x4x4x2xf32>
// CHECK:         %[[WHOLE:.+]] = memref.transpose %[[BUFFER]]
// CHECK:         %[[INSIDE:.+]] = memref.subview %[[WHOLE]][0, 0, 1, 1] [1, 2, 2, 2] [1, 1, 1, 1]
// CHECK:         hipdnn.graph ins() outs(%[[WHOLE]])
// CHECK:           torch.vtensor.literal
// CHECK:         hipdnn.graph ins(%arg0) outs(%[[INSIDE]])
// CHECK:           torch.aten.relu
// CHECK-NOT:     hipdnn.graph
// CHECK-NOT:     memref.copy
!v = !torch.vtensor<[1,2,2,2],f32>
!w = !torch.vtensor<[1,2,4,4],f32>
!last = memref<1x2x4x4xf32, strided<[32, 1, 8, 2]>>
!slot = memref<1x2x2x2xf32, strided<[32, 1, 8, 2], offset: 10>>
func.func @border(%x: memref<1x2x2x2xf32>) {
  %a = memref.alloc() : memref<1x2x2x2xf32>
  hipdnn.graph ins(%x) outs(%a) ({
  ^bb0(%v: !v):
    %r = torch.aten.relu %v : !v -> !v
    hipdnn.yield %r : !v
  }) : (memref<1x2x2x2xf32>, memref<1x2x2x2xf32>) -> ()
  %buffer = memref.alloc() : memref<1x4x4x2xf32>
  %whole = memref.transpose %buffer (d0, d1, d2, d3) -> (d0, d3, d1, d2) : memref<1x4x4x2xf32> to !last
  hipdnn.graph ins() outs(%whole) ({
    %r = torch.vtensor.literal(dense<1.0> : tensor<1x2x4x4xf32>) : !w
    hipdnn.yield %r : !w
  }) : (!last) -> ()
  %inside = memref.subview %whole[0, 0, 1, 1] [1, 2, 2, 2] [1, 1, 1, 1] : !last to !slot
  memref.copy %a, %inside : memref<1x2x2x2xf32> to !slot
  return
}

// -----

// The caller's result.

// CHECK-LABEL: func.func @result
// CHECK-NOT:     memref.alloc
// CHECK:         hipdnn.graph ins(%arg0) outs(%arg1)
// CHECK-NOT:     memref.copy
!v = !torch.vtensor<[2],f32>
func.func @result(%x: memref<2xf32>, %y: memref<2xf32>) {
  %a = memref.alloc() : memref<2xf32>
  hipdnn.graph ins(%x) outs(%a) ({
  ^bb0(%v: !v):
    %r = torch.aten.relu %v : !v -> !v
    hipdnn.yield %r : !v
  }) : (memref<2xf32>, memref<2xf32>) -> ()
  memref.copy %a, %y : memref<2xf32> to memref<2xf32>
  return
}

// -----

// A border of no elements fills the whole result, which the copy writes over: the fill stays the first.

// CHECK-LABEL: func.func @empty_border
// CHECK:         hipdnn.graph ins() outs(%arg1)
// CHECK:         hipdnn.graph ins(%arg0) outs(%arg1)
// CHECK-NOT:     memref.copy
!v = !torch.vtensor<[2],f32>
func.func @empty_border(%x: memref<2xf32>, %y: memref<2xf32>) {
  %a = memref.alloc() : memref<2xf32>
  hipdnn.graph ins(%x) outs(%a) ({
  ^bb0(%v: !v):
    %r = torch.aten.relu %v : !v -> !v
    hipdnn.yield %r : !v
  }) : (memref<2xf32>, memref<2xf32>) -> ()
  hipdnn.graph ins() outs(%y) ({
    %r = torch.vtensor.literal(dense<0.0> : tensor<2xf32>) : !v
    hipdnn.yield %r : !v
  }) : (memref<2xf32>) -> ()
  memref.copy %a, %y : memref<2xf32> to memref<2xf32>
  return
}

// -----

// The first slot of a stack is a vector of stride 1 at the start, which MLIR takes for a packed one; its reader sees it as a matrix.

// CHECK-LABEL: func.func @stack
// CHECK:         %[[SLOT:.+]] = memref.collapse_shape
// CHECK:         hipdnn.graph ins(%arg0) outs(%[[SLOT]])
// CHECK-NOT:     memref.copy
// CHECK:         memref.expand_shape %[[SLOT]]
// CHECK-SAME:      into memref<1x2xf32>
!v = !torch.vtensor<[2],f32>
!m = !torch.vtensor<[1,2],f32>
func.func @stack(%x: memref<2xf32>, %whole: memref<3x2xf32>, %y: memref<1x2xf32>) {
  %a = memref.alloc() : memref<2xf32>
  hipdnn.graph ins(%x) outs(%a) ({
  ^bb0(%v: !v):
    %r = torch.aten.relu %v : !v -> !v
    hipdnn.yield %r : !v
  }) : (memref<2xf32>, memref<2xf32>) -> ()
  %shown = memref.expand_shape %a [[0, 1]] output_shape [1, 2] : memref<2xf32> into memref<1x2xf32>
  %slot = memref.subview %whole[0, 0] [1, 2] [1, 1] : memref<3x2xf32> to memref<1x2xf32, strided<[2, 1]>>
  memref.copy %shown, %slot : memref<1x2xf32> to memref<1x2xf32, strided<[2, 1]>>
  hipdnn.graph ins(%shown) outs(%y) ({
  ^bb0(%v: !m):
    %r = torch.aten.exp %v : !m -> !m
    hipdnn.yield %r : !m
  }) : (memref<1x2xf32>, memref<1x2xf32>) -> ()
  return
}
