// RUN: hipdnn-opt %s --hipdnn-offload --canonicalize --split-input-file | filecheck %s

// Convolution, bias, residual and activation are one graph; the engine is named on it, constants are cloned inside.

// CHECK-LABEL: func.func @residual
// CHECK-NOT:     torch.aten
// CHECK:         %[[Y:.+]] = hipdnn.graph ins(%arg0, %arg1, %arg2, %arg3) ({
// CHECK-NEXT:    ^bb0(%[[X:[^:]+]]: !torch.vtensor<[1,4,8,8],f32>, %[[W:[^:]+]]: !torch.vtensor<[4,4,3,3],f32>, %[[B:[^:]+]]: !torch.vtensor<[4],f32>, %[[R:[^:]+]]: !torch.vtensor<[1,4,8,8],f32>):
// CHECK:           torch.constant.int 1
// CHECK:           %[[C:.+]] = torch.aten.convolution %[[X]], %[[W]], %[[B]]
// CHECK-NEXT:      %[[A:.+]] = torch.aten.add.Tensor %[[C]], %[[R]]
// CHECK-NEXT:      %[[L:.+]] = torch.aten.relu %[[A]]
// CHECK-NEXT:      hipdnn.yield %[[L]] :
// CHECK:         hipdnn.engine = "HOST_ONEDNN_ENGINE"
// CHECK-NOT:     hipdnn.graph
// CHECK:         return %[[Y]]
!x = !torch.vtensor<[1,4,8,8],f32>
!w = !torch.vtensor<[4,4,3,3],f32>
!b = !torch.vtensor<[4],f32>
!l = !torch.list<int>
func.func @residual(%x: !x, %w: !w, %b: !b, %r: !x) -> !x {
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %c = torch.aten.convolution %x, %w, %b, %ones, %ones, %ones, %false, %zeros, %1 : !x, !w, !b, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %a = torch.aten.add.Tensor %c, %r, %1 : !x, !x, !torch.int -> !x
  %y = torch.aten.relu %a : !x -> !x
  return %y : !x
}

// -----

// The convolution is read outside its epilogue: two graphs, the value leaves the first.

// CHECK-LABEL: func.func @read_twice
// CHECK:         %[[C:.+]] = hipdnn.graph ins(%arg0, %arg1)
// CHECK:           torch.aten.convolution
// CHECK-NEXT:      hipdnn.yield
// CHECK:         %[[R:.+]] = hipdnn.graph ins(%[[C]])
// CHECK:           torch.aten.relu
// CHECK:         return %[[C]], %[[R]]
!x = !torch.vtensor<[1,4,8,8],f32>
!w = !torch.vtensor<[4,4,3,3],f32>
!l = !torch.list<int>
func.func @read_twice(%x: !x, %w: !w) -> (!x, !x) {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %c = torch.aten.convolution %x, %w, %none, %ones, %ones, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %y = torch.aten.relu %c : !x -> !x
  return %c, %y : !x, !x
}

// -----

// Both operands of the addition are convolutions: it joins one of them, the other is an operand.

// CHECK-LABEL: func.func @two_convolutions
// CHECK:         %[[A:.+]] = hipdnn.graph ins(%arg0, %arg1)
// CHECK:           torch.aten.convolution
// CHECK-NEXT:      hipdnn.yield
// CHECK:         hipdnn.graph ins(%arg0, %arg1, %[[A]])
// CHECK:           torch.aten.convolution
// CHECK-NEXT:      torch.aten.add.Tensor
// CHECK-NEXT:      torch.aten.relu
// CHECK-NOT:     hipdnn.graph
!x = !torch.vtensor<[1,4,8,8],f32>
!w = !torch.vtensor<[4,4,3,3],f32>
!l = !torch.list<int>
func.func @two_convolutions(%x: !x, %w: !w) -> !x {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %twos = torch.prim.ListConstruct %2, %2 : (!torch.int, !torch.int) -> !l
  %a = torch.aten.convolution %x, %w, %none, %ones, %ones, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %b = torch.aten.convolution %x, %w, %none, %ones, %twos, %twos, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %c = torch.aten.add.Tensor %a, %b, %1 : !x, !x, !torch.int -> !x
  %y = torch.aten.relu %c : !x -> !x
  return %y : !x
}
