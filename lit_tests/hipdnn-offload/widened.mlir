// RUN: hipdnn-opt %s --hipdnn-offload="target=sm_90" | filecheck %s

!n = !torch.vtensor<[4,256],f16>
!w = !torch.vtensor<[4,256],f32>

// What is read in 16 bits by others is stored so alone: the sum makes f32 of it.

// CHECK-LABEL: func.func @one_sum_in_f32
// CHECK:         %[[N:.+]] = hipdnn.graph ins(%arg0, %arg1
// CHECK:         %[[P:.+]] = hipdnn.graph ins(%[[N]]
// CHECK:         hipdnn.graph ins(%[[N]], %[[P]]
// CHECK-NOT:     hipdnn.graph
func.func @one_sum_in_f32(%a: !w, %b: !w, %m: !torch.vtensor<[256,256],f16>) -> !w {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %5 = torch.constant.int 5
  %6 = torch.constant.int 6
  %none = torch.constant.none
  %false = torch.constant.bool false
  %s = torch.aten.mul.Tensor %a, %b : !w, !w -> !w
  %n = torch.aten.to.dtype %s, %5, %false, %false, %none : !w, !torch.int, !torch.bool, !torch.bool, !torch.none -> !n
  %u = torch.aten.to.dtype %n, %6, %false, %false, %none : !n, !torch.int, !torch.bool, !torch.bool, !torch.none -> !w
  %p = torch.aten.mm %n, %m : !n, !torch.vtensor<[256,256],f16> -> !n
  %v = torch.aten.to.dtype %p, %6, %false, %false, %none : !n, !torch.int, !torch.bool, !torch.bool, !torch.none -> !w
  %y = torch.aten.add.Tensor %v, %u, %1 : !w, !w, !torch.int -> !w
  return %y : !w
}
