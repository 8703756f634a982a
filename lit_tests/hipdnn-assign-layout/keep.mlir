// RUN: hipdnn-opt %s --hipdnn-offload --hipdnn-assign-layout | filecheck %s

// Pointwise regions of values in C order, matmuls, and shapes for which both orders are one: nothing is marked, nothing is copied.

!x = !torch.vtensor<[1,4,8,8],f32>
!m = !torch.vtensor<[2,4,8,8],f32>
!one = !torch.vtensor<[1,4,1,1],f32>
!w = !torch.vtensor<[4,4,1,1],f32>
!l = !torch.list<int>

// CHECK-LABEL: func.func @main
// CHECK-NOT:     torch.aten.clone
// CHECK-NOT:     hipdnn.layouts
func.func @main(%x: !x, %m: !m, %one: !one, %w: !w) -> (!x, !m, !one) {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %a = torch.aten.relu %x : !x -> !x
  %b = torch.aten.matmul %m, %m : !m, !m -> !m
  %c = torch.aten.convolution %one, %w, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !one, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !one
  return %a, %b, %c : !x, !m, !one
}
