// RUN: hipdnn-opt %s --hipdnn-order-weights=target=sm_90 --hipdnn-outline-constants | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-order-weights | filecheck %s --check-prefix=HOST

!x = !torch.vtensor<[1,8,8,8],f16>
!y = !torch.vtensor<[1,4,6,6],f16>
!w = !torch.vtensor<[4,8,3,3],f16>
!y1 = !torch.vtensor<[1,4,8,8],f16>
!w1 = !torch.vtensor<[4,8,1,1],f16>
!l = !torch.list<int>

// HOST-NOT: torch.aten.permute

// The stored constant has channels innermost; the convolution reads it through a view with the dims of a filter.

// CHECK-LABEL: func.func private @hipdnn_constants
// CHECK:         %[[P:.+]] = torch.aten.permute %arg0, %{{.+}} -> !torch.vtensor<[4,3,3,8],f16>
// CHECK:         %[[C:.+]] = torch.aten.clone %[[P]]
// CHECK:         return %[[C]] : !torch.vtensor<[4,3,3,8],f16>
// CHECK-LABEL: func.func @image
// CHECK-SAME:    %[[W:[a-z0-9]+]]: !torch.vtensor<[4,3,3,8],f16> {hipdnn.constant = "w.folded"}
// CHECK:         %[[V:.+]] = torch.aten.permute %[[W]], %{{.+}} -> !torch.vtensor<[4,8,3,3],f16>
// CHECK:         torch.aten.convolution %arg0, %[[V]]
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

// A filter of one pixel is the same in both orders, and one that is computed would be copied in each run.

// CHECK-LABEL: func.func @pixel
// CHECK-NOT:     torch.aten.permute
func.func @pixel(%x: !x, %w: !w1 {hipdnn.constant = "w"}) -> !y1 {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w1, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !y1
  return %y : !y1
}

// CHECK-LABEL: func.func @computed
// CHECK-NOT:     torch.aten.permute
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
