// RUN: hipdnn-opt %s --hipdnn-merge-convolutions --split-input-file | filecheck %s

// Of different values; the result of one is read twice; filters that lie over other elements; weights that are an input.

// CHECK-LABEL: func.func @others
// CHECK-COUNT-2: torch.aten.convolution %{{.+}}, %{{arg2|arg3}}
// CHECK:         torch.aten.add.Tensor
// CHECK-COUNT-2: torch.aten.convolution %{{.+}}, %{{arg2|arg3}}
// CHECK:         torch.aten.add.Tensor
// CHECK:         torch.aten.convolution %{{.+}}, %arg4
// CHECK:         torch.aten.convolution %{{.+}}, %arg3
// CHECK:         torch.aten.add.Tensor
// CHECK:         torch.aten.convolution %{{.+}}, %arg5
// CHECK:         torch.aten.convolution %{{.+}}, %arg3
// CHECK:         torch.aten.add.Tensor
!x = !torch.vtensor<[1,4,8,8],f32>
!w3 = !torch.vtensor<[4,4,3,3],f32>
!w2 = !torch.vtensor<[4,4,5,5],f32>
!w1 = !torch.vtensor<[4,4,1,1],f32>
!l = !torch.list<int>
func.func @others(%x: !x, %z: !x, %w: !w3 {hipdnn.constant = "w"}, %v: !w1 {hipdnn.constant = "v"}, %u: !w2 {hipdnn.constant = "u"}, %t: !w3) -> (!x, !x, !x, !x, !x) {
  %false = torch.constant.bool false
  %none = torch.constant.none
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %uneven = torch.prim.ListConstruct %2, %2 : (!torch.int, !torch.int) -> !l
  %a = torch.aten.convolution %x, %w, %none, %ones, %ones, %ones, %false, %zeros, %1 : !x, !w3, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %b = torch.aten.convolution %z, %v, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w1, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %c = torch.aten.add.Tensor %a, %b, %1 : !x, !x, !torch.int -> !x
  %d = torch.aten.convolution %z, %w, %none, %ones, %ones, %ones, %false, %zeros, %1 : !x, !w3, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %e = torch.aten.convolution %z, %v, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w1, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %f = torch.aten.add.Tensor %d, %e, %1 : !x, !x, !torch.int -> !x
  %g = torch.aten.convolution %x, %u, %none, %ones, %uneven, %ones, %false, %zeros, %1 : !x, !w2, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %h = torch.aten.convolution %z, %v, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w1, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %i = torch.aten.add.Tensor %g, %h, %1 : !x, !x, !torch.int -> !x
  %j = torch.aten.convolution %x, %t, %none, %ones, %ones, %ones, %false, %zeros, %1 : !x, !w3, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %k = torch.aten.convolution %x, %v, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w1, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %m = torch.aten.add.Tensor %j, %k, %1 : !x, !x, !torch.int -> !x
  return %c, %f, %d, %i, %m : !x, !x, !x, !x, !x
}

// -----

// The value moves on by two, and the numbers are for rows, not channels.

// CHECK-LABEL: func.func @strides
// CHECK:         torch.aten.convolution %arg0, %arg1, %none
// CHECK:         torch.aten.add.Tensor
// CHECK:         torch.aten.mul.Tensor
!x = !torch.vtensor<[1,4,8,8],f32>
!w1 = !torch.vtensor<[4,4,3,3],f32>
!rows = !torch.vtensor<[8,1],f32>
!l = !torch.list<int>
func.func @strides(%x: !x, %w: !w1 {hipdnn.constant = "w"}, %r: !rows {hipdnn.constant = "r"}) -> !x {
  %false = torch.constant.bool false
  %none = torch.constant.none
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %twos = torch.prim.ListConstruct %2, %2 : (!torch.int, !torch.int) -> !l
  %c = torch.aten.convolution %x, %w, %none, %ones, %twos, %twos, %false, %zeros, %1 : !x, !w1, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %s = torch.aten.convolution %x, %w, %none, %ones, %ones, %ones, %false, %zeros, %1 : !x, !w1, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %y = torch.aten.add.Tensor %c, %s, %1 : !x, !x, !torch.int -> !x
  %n = torch.aten.mul.Tensor %y, %r : !x, !rows -> !x
  return %n : !x
}
