// RUN: hipdnn-opt %s --hipdnn-offload --hipdnn-backend-legalize --split-input-file | filecheck %s

// A graph gets a buffer per result; tensors around it are builtin ones.

// CHECK-LABEL: func.func @graph(%arg0: tensor<4xf32>, %arg1: tensor<2xi8>) -> (tensor<4xf32>, tensor<2xi8>) {
// CHECK:         %[[IN:.+]] = bufferization.to_buffer %arg0 read_only : tensor<4xf32> to memref<4xf32, strided<[?], offset: ?>>
// CHECK:         %[[OUT:.+]] = memref.alloc() : memref<4xf32>
// CHECK:         hipdnn.graph ins(%[[IN]]) outs(%[[OUT]]) ({
// CHECK-NEXT:    ^bb0(%[[A:.+]]: !torch.vtensor<[4],f32>):
// CHECK-NEXT:      torch.aten.relu %[[A]]
// CHECK:         hipdnn.engine = "HOST_ROWWISE_ENGINE"
// CHECK-SAME:    : (memref<4xf32, strided<[?], offset: ?>>, memref<4xf32>) -> ()
// CHECK:         %[[Y:.+]] = bufferization.to_tensor %[[OUT]] restrict : memref<4xf32> to tensor<4xf32>
// CHECK:         return %[[Y]], %{{.+}} : tensor<4xf32>, tensor<2xi8>
func.func @graph(%x: !torch.vtensor<[4],f32>, %b: !torch.vtensor<[2],ui8>) -> (!torch.vtensor<[4],f32>, !torch.vtensor<[2],ui8>) {
  %y = torch.aten.relu %x : !torch.vtensor<[4],f32> -> !torch.vtensor<[4],f32>
  return %y, %b : !torch.vtensor<[4],f32>, !torch.vtensor<[2],ui8>
}

// -----

// A result marked channels-last is a permuted view of a packed buffer.

// CHECK-LABEL: func.func @channels_last
// CHECK:         %[[BUFFER:.+]] = memref.alloc() : memref<1x8x8x4xf32>
// CHECK:         memref.transpose %[[BUFFER]] (d0, d1, d2, d3) -> (d0, d3, d1, d2) : memref<1x8x8x4xf32> to memref<1x4x8x8xf32, strided<[256, 1, 32, 4]>>
!x = !torch.vtensor<[1,4,8,8],f32>
func.func @channels_last(%x: !x) -> !x {
  %y = hipdnn.graph ins(%x) ({
  ^bb0(%a: !x):
    %r = torch.aten.relu %a : !x -> !x
    hipdnn.yield %r : !x
  }) {hipdnn.layouts = ["channels_last"]} : (!x) -> !x
  return %y : !x
}

// -----

// One value returned twice: the second is a copy, bufferization has one buffer per result.

// CHECK-LABEL: func.func @returned_twice
// CHECK:           torch.aten.relu
// CHECK:         %[[Y:.+]] = bufferization.to_tensor
// CHECK:           torch.aten.clone
// CHECK:         %[[Z:.+]] = bufferization.to_tensor
// CHECK:         return %[[Y]], %[[Z]]
!v = !torch.vtensor<[4],f32>
func.func @returned_twice(%x: !v) -> (!v, !v) {
  %y = torch.aten.relu %x : !v -> !v
  return %y, %y : !v, !v
}

// -----

// Of a value without elements there is nothing to copy.

// CHECK-LABEL: func.func @nothing_returned_twice
// CHECK-NOT:     hipdnn.graph
// CHECK:         %[[E:.+]] = memref.alloc() : memref<0xf32>
// CHECK:         %[[Z:.+]] = bufferization.to_tensor %[[E]]
// CHECK:         return %arg0, %[[Z]]
!v = !torch.vtensor<[0],f32>
func.func @nothing_returned_twice(%x: !v) -> (!v, !v) {
  return %x, %x : !v, !v
}

// -----

// Folded constants were evaluated before: their function goes.

// CHECK-NOT:   @hipdnn_constants
// CHECK-LABEL: func.func @main(%arg0: tensor<4xf32> {hipdnn.constant = "w.folded"}) -> tensor<4xf32>
!v = !torch.vtensor<[4],f32>
func.func private @hipdnn_constants(%w: !v {hipdnn.constant = "w"}) -> (!v {hipdnn.constant = "w.folded"}) {
  %n = torch.aten.neg %w : !v -> !v
  return %n : !v
}
func.func @main(%w: !v {hipdnn.constant = "w.folded"}) -> !v {
  return %w : !v
}
