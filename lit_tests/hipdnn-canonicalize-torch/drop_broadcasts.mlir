// RUN: hipdnn-opt %s --hipdnn-canonicalize-torch | filecheck %s

!x = !torch.vtensor<[2,3],f32>
!row = !torch.vtensor<[1,3],f32>
!l = !torch.list<int>

// Readers that broadcast by themselves read the small tensor.

// CHECK-LABEL: func.func @absorbed
// CHECK-NOT:     torch.aten.expand
// CHECK:         torch.aten.mul.Tensor %arg0, %arg1 : !torch.vtensor<[2,3],f32>, !torch.vtensor<[1,3],f32>
func.func @absorbed(%x: !x, %row: !row) -> !x {
  %false = torch.constant.bool false
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %dims = torch.prim.ListConstruct %2, %3 : (!torch.int, !torch.int) -> !l
  %wide = torch.aten.expand %row, %dims, %false : !row, !l, !torch.bool -> !x
  %y = torch.aten.mul.Tensor %x, %wide : !x, !x -> !x
  return %y : !x
}

// The reader's shape comes from the broadcast, or the reader does not broadcast: it stays.

// CHECK-LABEL: func.func @kept
// CHECK:         %[[E:.+]] = torch.aten.expand %arg0
// CHECK:         torch.aten.mul.Tensor %[[E]], %arg0
// CHECK:         %[[F:.+]] = torch.aten.expand %arg0
// CHECK:         torch.aten.softmax.int %[[F]]
func.func @kept(%row: !row) -> (!x, !x) {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %dims = torch.prim.ListConstruct %2, %3 : (!torch.int, !torch.int) -> !l
  %wide = torch.aten.expand %row, %dims, %false : !row, !l, !torch.bool -> !x
  %y = torch.aten.mul.Tensor %wide, %row : !x, !row -> !x
  %again = torch.aten.expand %row, %dims, %false : !row, !l, !torch.bool -> !x
  %z = torch.aten.softmax.int %again, %1, %none : !x, !torch.int, !torch.none -> !x
  return %y, %z : !x, !x
}
