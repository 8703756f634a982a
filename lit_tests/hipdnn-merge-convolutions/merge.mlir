// RUN: hipdnn-opt %s --hipdnn-merge-convolutions --split-input-file | filecheck %s

// Filters are added, the smaller one in the middle; so are biases.

// CHECK-LABEL: func.func @branches
// CHECK:         %[[WIDE:.+]] = torch.aten.constant_pad_nd %arg3, %{{.+}} -> !torch.vtensor<[4,4,3,3],f32>
// CHECK:         %[[W:.+]] = torch.aten.add.Tensor %arg1, %[[WIDE]]
// CHECK:         %[[B:.+]] = torch.aten.add.Tensor %arg2, %arg4
// CHECK:         %[[Y:.+]] = torch.aten.convolution %arg0, %[[W]], %[[B]]
// CHECK-NOT:     torch.aten.convolution
// CHECK:         return %[[Y]]
!x = !torch.vtensor<[1,4,8,8],f32>
!w3 = !torch.vtensor<[4,4,3,3],f32>
!w1 = !torch.vtensor<[4,4,1,1],f32>
!c = !torch.vtensor<[4],f32>
!l = !torch.list<int>
func.func @branches(%x: !x, %w: !w3 {hipdnn.constant = "w"}, %b: !c {hipdnn.constant = "b"}, %v: !w1 {hipdnn.constant = "v"}, %d: !c {hipdnn.constant = "d"}) -> !x {
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %small = torch.aten.convolution %x, %v, %d, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w1, !c, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %large = torch.aten.convolution %x, %w, %b, %ones, %ones, %ones, %false, %zeros, %1 : !x, !w3, !c, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %y = torch.aten.add.Tensor %small, %large, %1 : !x, !x, !torch.int -> !x
  return %y : !x
}

// -----

// A depthwise convolution of a value, and that value times numbers for its channels: one tap in the middle. What follows goes in as well.

// CHECK-LABEL: func.func @identity
// CHECK:         %[[SHIFT:.+]] = torch.aten.view %arg3, %{{.+}} -> !torch.vtensor<[4],f32>
// CHECK:         %[[ONES:.+]] = torch.vtensor.literal(dense<1.0{{.*}}> : tensor<4x1x1x1xf32>)
// CHECK:         %[[TAP:.+]] = torch.aten.mul.Tensor %[[ONES]], %{{.+}}
// CHECK:         %[[WIDE:.+]] = torch.aten.constant_pad_nd %[[TAP]], %{{.+}} -> !torch.vtensor<[4,1,3,3],f32>
// CHECK:         %[[W:.+]] = torch.aten.add.Tensor %arg1, %[[WIDE]]
// CHECK:         %[[SCALE:.+]] = torch.aten.view %arg4, %{{.+}} -> !torch.vtensor<[4],f32>
// CHECK:         %[[SCALED:.+]] = torch.aten.mul.Tensor %[[W]]
// CHECK:         %[[B:.+]] = torch.aten.mul.Tensor %[[SHIFT]], %[[SCALE]]
// CHECK:         %[[Y:.+]] = torch.aten.convolution %arg0, %[[SCALED]], %[[B]]
// CHECK-NEXT:    return %[[Y]]
!x = !torch.vtensor<[1,4,8,8],f32>
!w3 = !torch.vtensor<[4,1,3,3],f32>
!c = !torch.vtensor<[4,1,1],f32>
!l = !torch.list<int>
func.func @identity(%x: !x, %w: !w3 {hipdnn.constant = "w"}, %f: !c {hipdnn.constant = "f"}, %s: !c {hipdnn.constant = "s"}, %t: !c {hipdnn.constant = "t"}) -> !x {
  %false = torch.constant.bool false
  %none = torch.constant.none
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %4 = torch.constant.int 4
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %scaled = torch.aten.mul.Tensor %x, %f : !x, !c -> !x
  %moved = torch.aten.add.Tensor %scaled, %s, %1 : !x, !c, !torch.int -> !x
  %large = torch.aten.convolution %x, %w, %none, %ones, %ones, %ones, %false, %zeros, %4 : !x, !w3, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %sum = torch.aten.add.Tensor %moved, %large, %1 : !x, !x, !torch.int -> !x
  %y = torch.aten.mul.Tensor %sum, %t : !x, !c -> !x
  return %y : !x
}

// -----

// All channels together, and the value as it is.

// CHECK-LABEL: func.func @residual
// CHECK:         %[[EYE:.+]] = torch.vtensor.literal(dense<{{\[\[\[\[1\.0.*\]\]\], \[\[\[0\.0.*\]\], \[\[1\.0.*\]\]\]\]}}> : tensor<2x2x1x1xf32>)
// CHECK:         %[[W:.+]] = torch.aten.add.Tensor %arg1, %[[EYE]]
// CHECK:         %[[Y:.+]] = torch.aten.convolution %arg0, %[[W]], %none
// CHECK-NEXT:    return %[[Y]]
!x = !torch.vtensor<[1,2,8,8],f32>
!w1 = !torch.vtensor<[2,2,1,1],f32>
!l = !torch.list<int>
func.func @residual(%x: !x, %w: !w1 {hipdnn.constant = "w"}) -> !x {
  %false = torch.constant.bool false
  %none = torch.constant.none
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %c = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w1, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %y = torch.aten.add.Tensor %x, %c, %1 : !x, !x, !torch.int -> !x
  return %y : !x
}
