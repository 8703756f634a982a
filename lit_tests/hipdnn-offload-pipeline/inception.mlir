// RUN: hipdnn-opt %s --hipdnn-offload-pipeline | filecheck %s

// Branches write side by side into one channels-last buffer, which the next convolution reads: two convolutions, one after them, and the
// conversion of the caller's image; equal branches share an executable only where their places in the buffer are alike.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.copy
// CHECK:         %[[X:.+]] = memref.transpose %{{.+}} to memref<1x4x8x8xf32, strided<[256, 1, 32, 4]>>
// CHECK:         hipdnn.execute @{{.+}} ins(%arg0) outs(%[[X]])
// CHECK:         %[[WHOLE:.+]] = memref.transpose %{{.+}} to memref<1x8x8x8xf32, strided<[512, 1, 64, 8]>>
// CHECK:         %[[A:.+]] = memref.subview %[[WHOLE]][0, 0, 0, 0] [1, 4, 8, 8] {{.+}} to memref<1x4x8x8xf32, strided<[512, 1, 64, 8]>>
// CHECK:         hipdnn.execute @{{.+}} ins(%[[X]], %arg1) outs(%[[A]])
// CHECK:         %[[B:.+]] = memref.subview %[[WHOLE]][0, 4, 0, 0] [1, 4, 8, 8] {{.+}} to memref<1x4x8x8xf32, strided<[512, 1, 64, 8], offset: 4>>
// CHECK:         hipdnn.execute @{{.+}} ins(%[[X]], %arg2) outs(%[[B]])
// CHECK:         hipdnn.execute @{{.+}} ins(%[[WHOLE]], %arg3) outs(%{{.+}})
// CHECK-NOT:     hipdnn.execute
!x = !torch.vtensor<[1,4,8,8],f32>
!c = !torch.vtensor<[1,8,8,8],f32>
!w = !torch.vtensor<[4,4,1,1],f32>
!v = !torch.vtensor<[4,8,1,1],f32>
!l = !torch.list<int>
func.func @main(%x: !x, %w: !w {hipdnn.constant = "w"}, %u: !w {hipdnn.constant = "u"}, %v: !v {hipdnn.constant = "v"}) -> !x {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %a = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %b = torch.aten.convolution %x, %u, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %parts = torch.prim.ListConstruct %a, %b : (!x, !x) -> !torch.list<vtensor>
  %c = torch.aten.cat %parts, %1 : !torch.list<vtensor>, !torch.int -> !c
  %y = torch.aten.convolution %c, %v, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !c, !v, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  return %y : !x
}
