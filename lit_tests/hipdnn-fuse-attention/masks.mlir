// RUN: hipdnn-opt %s --hipdnn-fuse-attention --canonicalize --split-input-file | filecheck %s

// A constant mask that hides what is above the diagonal is no operand: added, here a slice of a marked argument, or chosen by a where.

// CHECK-LABEL: func.func @causal
// CHECK-DAG:     %[[NONE:.+]] = torch.constant.none
// CHECK:         torch.aten.scaled_dot_product_attention %arg0, %arg0, %arg0, %[[NONE]], %{{.+}}, %true
// CHECK:         torch.aten.scaled_dot_product_attention %arg0, %arg0, %arg0, %[[NONE]], %{{.+}}, %true
!x = !torch.vtensor<[2,3,8],f32>
!keys = !torch.vtensor<[2,8,3],f32>
!scores = !torch.vtensor<[2,3,3],f32>
!rows = !torch.vtensor<[3,6],f32>
!mask = !torch.vtensor<[3,3],f32>
!seen = !torch.vtensor<[3,3],i1>
!z = !torch.vtensor<[],f32>
!i = !torch.int
func.func @causal(%x: !x, %mask: !torch.vtensor<[6,6],f32> {hipdnn.constant = "mask", hipdnn.causal_mask}) -> (!x, !x) {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %none = torch.constant.none
  %lowest = torch.vtensor.literal(dense<-3.40282347E+38> : tensor<f32>) : !z
  %triangle = torch.vtensor.literal(dense<[[true, false, false], [true, true, false], [true, true, true]]> : tensor<3x3xi1>) : !seen
  %xt = torch.aten.transpose.int %x, %1, %2 : !x, !i, !i -> !keys
  %a = torch.aten.matmul %x, %xt : !x, !keys -> !scores
  %b = torch.aten.slice.Tensor %mask, %0, %0, %3, %1 : !torch.vtensor<[6,6],f32>, !i, !i, !i, !i -> !rows
  %c = torch.aten.slice.Tensor %b, %1, %0, %3, %1 : !rows, !i, !i, !i, !i -> !mask
  %d = torch.aten.add.Tensor %a, %c, %1 : !scores, !mask, !i -> !scores
  %e = torch.aten.softmax.int %d, %2, %none : !scores, !i, !torch.none -> !scores
  %f = torch.aten.matmul %e, %x : !scores, !x -> !x
  %g = torch.aten.matmul %x, %xt : !x, !keys -> !scores
  %h = torch.aten.where.self %triangle, %g, %lowest : !seen, !scores, !z -> !scores
  %j = torch.aten.softmax.int %h, %2, %none : !scores, !i, !torch.none -> !scores
  %k = torch.aten.matmul %j, %x : !scores, !x -> !x
  return %f, %k : !x, !x
}

// -----

// A finite number in the place of hidden scores gives a row without any others equal weights, so it is added; so is what is added anyway.

// CHECK-LABEL: func.func @finite
// CHECK:         %[[PENALTY:.+]] = torch.aten.where.self %arg1, %{{.+}}, %{{.+}} -> !torch.vtensor<[1,3],f32>
// CHECK:         %[[MASK:.+]] = torch.aten.add.Tensor %arg2, %[[PENALTY]]
// CHECK:         torch.aten.scaled_dot_product_attention %arg0, %arg0, %arg0, %[[MASK]], %{{.+}}, %false
!x = !torch.vtensor<[2,3,8],f32>
!keys = !torch.vtensor<[2,8,3],f32>
!scores = !torch.vtensor<[2,3,3],f32>
!seen = !torch.vtensor<[1,3],i1>
!z = !torch.vtensor<[],f32>
!i = !torch.int
func.func @finite(%x: !x, %seen: !seen, %bias: !torch.vtensor<[1,3,3],f32>) -> !x {
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %none = torch.constant.none
  %lowest = torch.vtensor.literal(dense<-1.0E+9> : tensor<f32>) : !z
  %xt = torch.aten.transpose.int %x, %1, %2 : !x, !i, !i -> !keys
  %a = torch.aten.matmul %x, %xt : !x, !keys -> !scores
  %b = torch.aten.where.self %seen, %a, %lowest : !seen, !scores, !z -> !scores
  %c = torch.aten.add.Tensor %b, %bias, %1 : !scores, !torch.vtensor<[1,3,3],f32>, !i -> !scores
  %d = torch.aten.softmax.int %c, %2, %none : !scores, !i, !torch.none -> !scores
  %e = torch.aten.matmul %d, %x : !scores, !x -> !x
  return %e : !x
}
