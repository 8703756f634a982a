// RUN: hipdnn-opt %s --hipdnn-space-to-depth=target=sm_90 | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-space-to-depth | filecheck %s --check-prefix=HOST

!x = !torch.vtensor<[1,3,224,224],f16>
!y = !torch.vtensor<[1,60,112,112],f16>
!w = !torch.vtensor<[60,3,7,7],f16>
!many = !torch.vtensor<[1,64,112,112],f16>
!wmany = !torch.vtensor<[64,3,7,7],f16>
!wide = !torch.vtensor<[1,8,224,224],f16>
!ww = !torch.vtensor<[60,8,7,7],f16>
!l = !torch.list<int>

// HOST-NOT: torch.aten.view

// The image: pairs of rows and columns beside the channels, a border of two pairs in front and one behind, a fourth channel; then one view.
// The weights: one row and column of zeros in front, as the border is one pixel wider than the padding, and the fourth channel.

// CHECK-LABEL: func.func @stem
// CHECK:         %[[PAIRS:.+]] = torch.aten.view %arg0, %{{.+}} -> !torch.vtensor<[1,3,112,2,112,2],f16>
// CHECK:         %[[INNER:.+]] = torch.aten.permute %[[PAIRS]], %{{.+}} -> !torch.vtensor<[1,112,112,2,2,3],f16>
// CHECK:         %[[FILLED:.+]] = torch.aten.constant_pad_nd %[[INNER]], %{{.+}}, %{{.+}} -> !torch.vtensor<[1,115,115,2,2,4],f16>
// CHECK:         %[[DEEP:.+]] = torch.aten.view %[[FILLED]], %{{.+}} -> !torch.vtensor<[1,115,115,16],f16>
// CHECK:         %[[X:.+]] = torch.aten.permute %[[DEEP]], %{{.+}} -> !torch.vtensor<[1,16,115,115],f16>
// CHECK:         torch.aten.constant_pad_nd %arg1, %{{.+}}, %{{.+}} -> !torch.vtensor<[60,4,8,8],f16>
// CHECK:         %[[W:.+]] = torch.aten.view %{{.+}}, %{{.+}} -> !torch.vtensor<[60,16,4,4],f16>
// CHECK:         torch.aten.convolution %[[X]], %[[W]]
func.func @stem(%x: !x, %w: !w {hipdnn.constant = "w"}) -> !y {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %twos = torch.prim.ListConstruct %2, %2 : (!torch.int, !torch.int) -> !l
  %threes = torch.prim.ListConstruct %3, %3 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %twos, %threes, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !y
  return %y : !y
}

// As many channels as the multiple are enough.

// CHECK-LABEL: func.func @enough
// CHECK-NOT:     torch.aten.view
func.func @enough(%x: !wide, %w: !ww {hipdnn.constant = "w"}) -> !y {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %twos = torch.prim.ListConstruct %2, %2 : (!torch.int, !torch.int) -> !l
  %threes = torch.prim.ListConstruct %3, %3 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %twos, %threes, %ones, %false, %zeros, %1 : !wide, !ww, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !y
  return %y : !y
}

// What has generated code for its few channels is left alone: channels of the result by eights.

// CHECK-LABEL: func.func @code
// CHECK-NOT:     torch.aten.view
func.func @code(%x: !x, %w: !wmany {hipdnn.constant = "w"}) -> !many {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %twos = torch.prim.ListConstruct %2, %2 : (!torch.int, !torch.int) -> !l
  %threes = torch.prim.ListConstruct %3, %3 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %twos, %threes, %ones, %false, %zeros, %1 : !x, !wmany, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !many
  return %y : !many
}

// Windows side by side are channels; the cast of the image reads in the new order, and nothing is copied.

!image = !torch.vtensor<[2,3,32,48],f32>
!narrow = !torch.vtensor<[2,3,32,48],f16>
!taps = !torch.vtensor<[64,3,16,16],f16>
!tokens = !torch.vtensor<[2,64,2,3],f16>

// CHECK-LABEL: func.func @patches
// CHECK:         %[[SPLIT:.+]] = torch.aten.view %arg0, %{{.+}} -> !torch.vtensor<[2,3,2,16,3,16],f32>
// CHECK:         %[[INNER:.+]] = torch.aten.permute %[[SPLIT]], %{{.+}} -> !torch.vtensor<[2,2,3,3,16,16],f32>
// CHECK:         %[[CAST:.+]] = torch.aten.to.dtype %[[INNER]], %{{.+}} -> !torch.vtensor<[2,2,3,3,16,16],f16>
// CHECK:         %[[ROWS:.+]] = torch.aten.view %[[CAST]], %{{.+}} -> !torch.vtensor<[2,2,3,768],f16>
// CHECK:         %[[X:.+]] = torch.aten.permute %[[ROWS]], %{{.+}} -> !torch.vtensor<[2,768,2,3],f16>
// CHECK:         %[[W:.+]] = torch.aten.view %arg1, %{{.+}} -> !torch.vtensor<[64,768,1,1],f16>
// CHECK:         torch.aten.convolution %[[X]], %[[W]]
func.func @patches(%x: !image, %w: !taps {hipdnn.constant = "w"}) -> !tokens {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %5 = torch.constant.int 5
  %16 = torch.constant.int 16
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %steps = torch.prim.ListConstruct %16, %16 : (!torch.int, !torch.int) -> !l
  %n = torch.aten.to.dtype %x, %5, %false, %false, %none : !image, !torch.int, !torch.bool, !torch.bool, !torch.none -> !narrow
  %y = torch.aten.convolution %n, %w, %none, %steps, %zeros, %ones, %false, %zeros, %1 : !narrow, !taps, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !tokens
  return %y : !tokens
}
