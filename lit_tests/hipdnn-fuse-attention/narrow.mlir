// RUN: hipdnn-opt %s --hipdnn-fuse-attention --canonicalize | filecheck %s

// Beside a query of 16 bits, a choice between zero and a number that hides is a mask of 16 bits, once for both layers; what hides stays finite.

// CHECK-LABEL: func.func @narrow
// CHECK-DAG:     %[[SHOWN:.+]] = torch.vtensor.literal(dense<0.000000e+00> : tensor<f16>)
// CHECK-DAG:     %[[HIDDEN:.+]] = torch.vtensor.literal(dense<-6.550400e+04> : tensor<f16>)
// CHECK:         %[[MASK:.+]] = torch.aten.where.self %arg1, %[[SHOWN]], %[[HIDDEN]]
// CHECK-NOT:     torch.aten.where.self
// CHECK:         torch.aten.scaled_dot_product_attention %arg0, %arg0, %arg0, %[[MASK]]
// CHECK:         torch.aten.scaled_dot_product_attention %arg0, %arg0, %arg0, %[[MASK]]
!x = !torch.vtensor<[2,3,8],f16>
!keys = !torch.vtensor<[2,8,3],f16>
!scores = !torch.vtensor<[2,3,3],f16>
!wide = !torch.vtensor<[2,3,3],f32>
!seen = !torch.vtensor<[1,3,3],i1>
!mask = !torch.vtensor<[1,3,3],f32>
!z = !torch.vtensor<[],f32>
!i = !torch.int
func.func @narrow(%x: !x, %seen: !seen) -> (!x, !x) {
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %5 = torch.constant.int 5
  %6 = torch.constant.int 6
  %false = torch.constant.bool false
  %none = torch.constant.none
  %zero = torch.vtensor.literal(dense<0.0> : tensor<f32>) : !z
  %lowest = torch.vtensor.literal(dense<-3.40282347E+38> : tensor<f32>) : !z
  %mask = torch.aten.where.self %seen, %zero, %lowest : !seen, !z, !z -> !mask
  %xt = torch.aten.transpose.int %x, %1, %2 : !x, !i, !i -> !keys
  %a = torch.aten.matmul %x, %xt : !x, !keys -> !scores
  %b = torch.aten.to.dtype %a, %6, %false, %false, %none : !scores, !i, !torch.bool, !torch.bool, !torch.none -> !wide
  %c = torch.aten.add.Tensor %b, %mask, %1 : !wide, !mask, !i -> !wide
  %d = torch.aten.softmax.int %c, %2, %none : !wide, !i, !torch.none -> !wide
  %e = torch.aten.to.dtype %d, %5, %false, %false, %none : !wide, !i, !torch.bool, !torch.bool, !torch.none -> !scores
  %f = torch.aten.matmul %e, %x : !scores, !x -> !x
  %g = torch.aten.matmul %x, %xt : !x, !keys -> !scores
  %h = torch.aten.to.dtype %g, %6, %false, %false, %none : !scores, !i, !torch.bool, !torch.bool, !torch.none -> !wide
  %j = torch.aten.add.Tensor %h, %mask, %1 : !wide, !mask, !i -> !wide
  %k = torch.aten.softmax.int %j, %2, %none : !wide, !i, !torch.none -> !wide
  %l = torch.aten.to.dtype %k, %5, %false, %false, %none : !wide, !i, !torch.bool, !torch.bool, !torch.none -> !scores
  %m = torch.aten.matmul %l, %x : !scores, !x -> !x
  return %f, %m : !x, !x
}
