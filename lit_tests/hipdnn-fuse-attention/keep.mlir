// RUN: hipdnn-opt %s --hipdnn-fuse-attention --canonicalize --split-input-file | filecheck %s

// Weights that are returned have to be computed; softmax over queries, a mask that is scaled with the scores, and a number that hides
// nothing are something else.

// CHECK-LABEL: func.func @other
// CHECK-NOT:     torch.aten.scaled_dot_product_attention
!x = !torch.vtensor<[2,3,8],f32>
!keys = !torch.vtensor<[2,8,3],f32>
!scores = !torch.vtensor<[2,3,3],f32>
!seen = !torch.vtensor<[3,3],i1>
!z = !torch.vtensor<[],f32>
!i = !torch.int
func.func @other(%x: !x, %mask: !scores, %seen: !seen) -> (!x, !scores, !x, !x, !x) {
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %half = torch.constant.float 0.5
  %none = torch.constant.none
  %small = torch.vtensor.literal(dense<-1.0> : tensor<f32>) : !z
  %xt = torch.aten.transpose.int %x, %1, %2 : !x, !i, !i -> !keys
  %a = torch.aten.matmul %x, %xt : !x, !keys -> !scores
  %b = torch.aten.softmax.int %a, %2, %none : !scores, !i, !torch.none -> !scores
  %c = torch.aten.matmul %b, %x : !scores, !x -> !x
  %d = torch.aten.matmul %x, %xt : !x, !keys -> !scores
  %e = torch.aten.softmax.int %d, %1, %none : !scores, !i, !torch.none -> !scores
  %f = torch.aten.matmul %e, %x : !scores, !x -> !x
  %g = torch.aten.matmul %x, %xt : !x, !keys -> !scores
  %h = torch.aten.add.Tensor %g, %mask, %1 : !scores, !scores, !i -> !scores
  %j = torch.aten.mul.Scalar %h, %half : !scores, !torch.float -> !scores
  %k = torch.aten.softmax.int %j, %2, %none : !scores, !i, !torch.none -> !scores
  %l = torch.aten.matmul %k, %x : !scores, !x -> !x
  %m = torch.aten.matmul %x, %xt : !x, !keys -> !scores
  %n = torch.aten.where.self %seen, %m, %small : !seen, !scores, !z -> !scores
  %o = torch.aten.softmax.int %n, %2, %none : !scores, !i, !torch.none -> !scores
  %p = torch.aten.matmul %o, %x : !scores, !x -> !x
  return %c, %b, %f, %l, %p : !x, !scores, !x, !x, !x
}

// -----

// No engine takes attention in f64.

// CHECK-LABEL: func.func @refused
// CHECK-NOT:     torch.aten.scaled_dot_product_attention
// CHECK:         torch.aten.softmax.int
!x = !torch.vtensor<[2,3,8],f64>
!keys = !torch.vtensor<[2,8,3],f64>
!scores = !torch.vtensor<[2,3,3],f64>
!i = !torch.int
func.func @refused(%x: !x) -> !x {
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %none = torch.constant.none
  %xt = torch.aten.transpose.int %x, %1, %2 : !x, !i, !i -> !keys
  %a = torch.aten.matmul %x, %xt : !x, !keys -> !scores
  %b = torch.aten.softmax.int %a, %2, %none : !scores, !i, !torch.none -> !scores
  %c = torch.aten.matmul %b, %x : !scores, !x -> !x
  return %c : !x
}
