// RUN: hipdnn-opt %s --hipdnn-offload-pipeline | filecheck %s

// Flattening wants C order: the convolution writes it, no step moves data in between.

// CHECK-LABEL: func.func @main
// CHECK:         %[[FLAT:.+]] = memref.alloc(){{.*}} : memref<1x4x8x8xf32>
// CHECK:         hipdnn.execute @{{.+}} ins(%{{.+}}, %arg1) outs(%[[FLAT]])
// CHECK:         %[[ROWS:.+]] = memref.collapse_shape %[[FLAT]] {{\[\[}}0], [1, 2, 3]] : memref<1x4x8x8xf32> into memref<1x256xf32>
// CHECK-NEXT:    hipdnn.execute @{{.+}} ins(%[[ROWS]], %arg2) outs(%arg3)
// CHECK-NEXT:    return
!x = !torch.vtensor<[1,4,8,8],f32>
!f = !torch.vtensor<[1,256],f32>
!w = !torch.vtensor<[4,4,1,1],f32>
!v = !torch.vtensor<[256,10],f32>
!y = !torch.vtensor<[1,10],f32>
!l = !torch.list<int>
func.func @main(%x: !x, %w: !w {hipdnn.constant = "w"}, %v: !v {hipdnn.constant = "v"}) -> !y {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %3 = torch.constant.int 3
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %c = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %f = torch.aten.flatten.using_ints %c, %1, %3 : !x, !torch.int, !torch.int -> !f
  %y = torch.aten.mm %f, %v : !f, !v -> !y
  return %y : !y
}
