// RUN: hipdnn-opt %s --hipdnn-split-bias=target=gfx942 | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-split-bias=target=sm_90 | filecheck %s --check-prefix=WHOLE
// RUN: hipdnn-opt %s --hipdnn-split-bias | filecheck %s --check-prefix=WHOLE

!x = !torch.vtensor<[1,4,8,8],f32>
!w = !torch.vtensor<[4,4,3,3],f32>
!b = !torch.vtensor<[4],f32>
!d = !torch.vtensor<[1,4,8,8],f64>
!v = !torch.vtensor<[4,4,3,3],f64>
!c = !torch.vtensor<[4],f64>
!l = !torch.list<int>

// WHOLE-NOT: torch.aten.add

// CHECK-LABEL: func.func @biased
// CHECK:         %[[Y:.+]] = torch.aten.convolution %arg0, %arg1, %none
// CHECK:         %[[B:.+]] = torch.aten.view %arg2, %{{.+}} -> !torch.vtensor<[4,1,1],f32>
// CHECK:         %[[R:.+]] = torch.aten.add.Tensor %[[Y]], %[[B]]
// CHECK:         return %[[R]]
func.func @biased(%x: !x, %w: !w, %b: !b) -> !x {
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %b, %ones, %ones, %ones, %false, %zeros, %1 : !x, !w, !b, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  return %y : !x
}

// Without a bias there is nothing to split; without the bias no library takes f64 either.

// CHECK-LABEL: func.func @plain
// CHECK-NOT:     torch.aten.add
func.func @plain(%x: !x, %w: !w) -> !x {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %ones, %ones, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  return %y : !x
}

// CHECK-LABEL: func.func @refused
// CHECK-NOT:     torch.aten.add
func.func @refused(%x: !d, %w: !v, %b: !c) -> !d {
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %b, %ones, %ones, %ones, %false, %zeros, %1 : !d, !v, !c, !l, !l, !l, !torch.bool, !l, !torch.int -> !d
  return %y : !d
}
