// RUN: hipdnn-opt %s --hipdnn-order-weights=target=sm_90 --split-input-file | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-order-weights=target=gfx942 --split-input-file | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-order-weights --split-input-file | filecheck %s --check-prefix=HOST

// Images of one pixel are rows; the activation that alone reads the result goes along.

// CHECK-LABEL: func.func @excitation
// CHECK:         %[[X:.+]] = torch.aten.view %arg0, %{{.+}} -> !torch.vtensor<[2,96],f16>
// CHECK:         %[[W:.+]] = torch.aten.view %arg1, %{{.+}} -> !torch.vtensor<[24,96],f16>
// CHECK:         %[[P:.+]] = torch.aten.linear %[[X]], %[[W]], %none
// CHECK:         %[[S:.+]] = torch.aten.add.Tensor %[[P]], %arg2
// CHECK:         %[[A:.+]] = torch.aten.silu %[[S]]
// CHECK:         %[[Y:.+]] = torch.aten.view %[[A]], %{{.+}} -> !torch.vtensor<[2,24,1,1],f16>
// CHECK:         return %[[Y]]
// HOST-LABEL:  func.func @excitation
// HOST:          torch.aten.convolution
!x = !torch.vtensor<[2,96,1,1],f16>
!w = !torch.vtensor<[24,96,1,1],f16>
!b = !torch.vtensor<[24],f16>
!y = !torch.vtensor<[2,24,1,1],f16>
!l = !torch.list<int>
func.func @excitation(%x: !x, %w: !w {hipdnn.constant = "w"}, %b: !b {hipdnn.constant = "b"}) -> !y {
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %c = torch.aten.convolution %x, %w, %b, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w, !b, !l, !l, !l, !torch.bool, !l, !torch.int -> !y
  %y = torch.aten.silu %c : !y -> !y
  return %y : !y
}

// -----

// Groups of channels, a border around the pixel and weights that are an input stay; an activation of two readers is left behind.

// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: torch.aten.convolution
// CHECK:         torch.aten.linear
// CHECK:         %[[V:.+]] = torch.aten.view %{{.+}} -> !torch.vtensor<[2,8,1,1],f16>
// CHECK:         torch.aten.relu %[[V]]
!x = !torch.vtensor<[2,8,1,1],f16>
!w = !torch.vtensor<[8,8,1,1],f16>
!g = !torch.vtensor<[8,4,1,1],f16>
!k = !torch.vtensor<[8,8,3,3],f16>
!l = !torch.list<int>
func.func @others(%x: !x, %w: !w, %g: !g {hipdnn.constant = "g"}, %k: !k {hipdnn.constant = "k"}, %v: !w {hipdnn.constant = "v"}) -> (!x, !x, !x, !x, !x) {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %a = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %b = torch.aten.convolution %x, %g, %none, %ones, %zeros, %ones, %false, %zeros, %2 : !x, !g, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %c = torch.aten.convolution %x, %k, %none, %ones, %ones, %ones, %false, %zeros, %1 : !x, !k, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %d = torch.aten.convolution %x, %v, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %e = torch.aten.relu %d : !x -> !x
  return %a, %b, %c, %d, %e : !x, !x, !x, !x, !x
}
