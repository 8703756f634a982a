// RUN: hipdnn-opt %s --hipdnn-fold-batch-norm | filecheck %s

!x = !torch.vtensor<[1,4,8,8],f32>
!y = !torch.vtensor<[1,6,8,8],f32>
!w = !torch.vtensor<[6,4,3,3],f32>
!wt = !torch.vtensor<[4,6,3,3],f32>
!c = !torch.vtensor<[6],f32>
!l = !torch.list<int>

// CHECK-LABEL: func.func @without_bias
// CHECK:         %[[V:.+]] = torch.aten.add.Scalar %arg5, %float1.000000e-05
// CHECK:         %[[D:.+]] = torch.aten.rsqrt %[[V]]
// CHECK:         %[[F:.+]] = torch.aten.mul.Tensor %arg2, %[[D]]
// CHECK:         %[[COLUMN:.+]] = torch.aten.view %[[F]], %{{.+}} -> !torch.vtensor<[6,1,1,1],f32>
// CHECK:         %[[W:.+]] = torch.aten.mul.Tensor %arg1, %[[COLUMN]]
// CHECK:         %[[M:.+]] = torch.aten.neg %arg4
// CHECK:         %[[P:.+]] = torch.aten.mul.Tensor %[[M]], %[[F]]
// CHECK:         %[[B:.+]] = torch.aten.add.Tensor %[[P]], %arg3
// CHECK:         %[[Y:.+]] = torch.aten.convolution %arg0, %[[W]], %[[B]]
// CHECK-NOT:     torch.aten.batch_norm
// CHECK:         return %[[Y]]
func.func @without_bias(%x: !x, %w: !w {hipdnn.constant = "w"}, %scale: !c {hipdnn.constant = "scale"}, %shift: !c {hipdnn.constant = "shift"},
                        %mean: !c {hipdnn.constant = "mean"}, %variance: !c {hipdnn.constant = "variance"}) -> !y {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %momentum = torch.constant.float 1.0e-1
  %eps = torch.constant.float 1.0e-5
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %ones, %ones, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !y
  %n = torch.aten.batch_norm %y, %scale, %shift, %mean, %variance, %false, %momentum, %eps, %false : !y, !c, !c, !c, !c, !torch.bool, !torch.float, !torch.float, !torch.bool -> !y
  return %n : !y
}

// A bias of the convolution passes through the norm; constants may be computed after the convolution.

// CHECK-LABEL: func.func @with_bias
// CHECK:         %[[VARIANCE:.+]] = torch.aten.mul.Tensor %arg3, %arg3
// CHECK:         torch.aten.add.Scalar %[[VARIANCE]]
// CHECK:         %[[M:.+]] = torch.aten.sub.Tensor %arg2, %arg3
// CHECK:         torch.aten.mul.Tensor %[[M]]
// CHECK:         torch.aten.convolution %arg0
// CHECK-NOT:     torch.aten.batch_norm
func.func @with_bias(%x: !x, %w: !w {hipdnn.constant = "w"}, %b: !c {hipdnn.constant = "b"}, %s: !c {hipdnn.constant = "s"}) -> !y {
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %momentum = torch.constant.float 1.0e-1
  %eps = torch.constant.float 1.0e-5
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %b, %ones, %ones, %ones, %false, %zeros, %1 : !x, !w, !c, !l, !l, !l, !torch.bool, !l, !torch.int -> !y
  %variance = torch.aten.mul.Tensor %s, %s : !c, !c -> !c
  %n = torch.aten.batch_norm %y, %s, %s, %s, %variance, %false, %momentum, %eps, %false : !y, !c, !c, !c, !c, !torch.bool, !torch.float, !torch.float, !torch.bool -> !y
  return %n : !y
}

// Output channels are the second dim of a transposed convolution's weights.

// CHECK-LABEL: func.func @transposed
// CHECK:         torch.aten.view %{{.+}} -> !torch.vtensor<[1,6,1,1],f32>
// CHECK:         torch.aten.convolution
// CHECK-NOT:     torch.aten.batch_norm
func.func @transposed(%x: !x, %w: !wt {hipdnn.constant = "w"}, %s: !c {hipdnn.constant = "s"}) -> !y {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %true = torch.constant.bool true
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %momentum = torch.constant.float 1.0e-1
  %eps = torch.constant.float 1.0e-5
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %ones, %ones, %ones, %true, %zeros, %1 : !x, !wt, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !y
  %n = torch.aten.batch_norm %y, %s, %s, %s, %s, %false, %momentum, %eps, %false : !y, !c, !c, !c, !c, !torch.bool, !torch.float, !torch.float, !torch.bool -> !y
  return %n : !y
}
