// RUN: hipdnn-opt %s --hipdnn-pad-channels=target=sm_90 | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-pad-channels | filecheck %s --check-prefix=HOST

!x = !torch.vtensor<[1,3,8,8],f16>
!y = !torch.vtensor<[1,4,6,6],f16>
!w = !torch.vtensor<[4,3,3,3],f16>
!x2 = !torch.vtensor<[1,4,8,8],f16>
!w2 = !torch.vtensor<[4,2,3,3],f16>
!l = !torch.list<int>

// HOST-NOT: torch.aten.constant_pad_nd

// CHECK-LABEL: func.func @image
// CHECK:         %[[X:.+]] = torch.aten.constant_pad_nd %arg0, %{{.+}}, %{{.+}} -> !torch.vtensor<[1,8,8,8],f16>
// CHECK:         %[[W:.+]] = torch.aten.constant_pad_nd %arg1, %{{.+}}, %{{.+}} -> !torch.vtensor<[4,8,3,3],f16>
// CHECK:         torch.aten.convolution %[[X]], %[[W]]
func.func @image(%x: !x, %w: !w {hipdnn.constant = "w"}) -> !y {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !y
  return %y : !y
}

// Groups divide the channels, and weights that are computed at run time would be filled up in each run.

// CHECK-LABEL: func.func @groups
// CHECK-NOT:     torch.aten.constant_pad_nd
func.func @groups(%x: !x2, %w: !w2 {hipdnn.constant = "w"}) -> !y {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %false, %zeros, %2 : !x2, !w2, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !y
  return %y : !y
}

// CHECK-LABEL: func.func @computed
// CHECK-NOT:     torch.aten.constant_pad_nd
func.func @computed(%x: !x, %w: !w) -> !y {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !y
  return %y : !y
}
