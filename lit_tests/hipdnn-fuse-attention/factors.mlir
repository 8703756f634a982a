// RUN: hipdnn-opt %s --hipdnn-fuse-attention --canonicalize --split-input-file | filecheck %s

// A factor for each head, as scores of cosines have, goes into q. A bias that is added behind it stays.

// CHECK-LABEL: func.func @heads
// CHECK:         %[[Q:.+]] = torch.aten.mul.Tensor %arg0, %arg1 : !torch.vtensor<[2,5,3,16],f32>, !torch.vtensor<[5,1,1],f32>
// CHECK:         torch.aten.scaled_dot_product_attention %[[Q]], %arg0, %arg0, %{{.+}}
// CHECK-NOT:     torch.aten.softmax
!x = !torch.vtensor<[2,5,3,16],f32>
!keys = !torch.vtensor<[2,5,16,3],f32>
!scores = !torch.vtensor<[2,5,3,3],f32>
!factors = !torch.vtensor<[5,1,1],f32>
!i = !torch.int
func.func @heads(%x: !x, %factors: !factors, %bias: !torch.vtensor<[5,3,3],f32>) -> !x {
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %none = torch.constant.none
  %xt = torch.aten.transpose.int %x, %2, %3 : !x, !i, !i -> !keys
  %a = torch.aten.matmul %x, %xt : !x, !keys -> !scores
  %s = torch.aten.mul.Tensor %a, %factors : !scores, !factors -> !scores
  %b = torch.aten.add.Tensor %s, %bias, %1 : !scores, !torch.vtensor<[5,3,3],f32>, !i -> !scores
  %f = torch.aten.softmax.int %b, %3, %none : !scores, !i, !torch.none -> !scores
  %g = torch.aten.matmul %f, %x : !scores, !x -> !x
  return %g : !x
}

// -----

// One that scales the mask too, or has a number for each key, stays.

// CHECK-LABEL: func.func @kept
// CHECK-COUNT-2: torch.aten.softmax.int
// CHECK-NOT:     scaled_dot_product_attention
!x = !torch.vtensor<[2,5,3,16],f32>
!keys = !torch.vtensor<[2,5,16,3],f32>
!scores = !torch.vtensor<[2,5,3,3],f32>
!factors = !torch.vtensor<[5,1,1],f32>
!i = !torch.int
func.func @kept(%x: !x, %factors: !factors, %of_keys: !torch.vtensor<[3],f32>, %bias: !torch.vtensor<[5,3,3],f32>) -> (!x, !x) {
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %none = torch.constant.none
  %xt = torch.aten.transpose.int %x, %2, %3 : !x, !i, !i -> !keys
  %a = torch.aten.matmul %x, %xt : !x, !keys -> !scores
  %b = torch.aten.add.Tensor %a, %bias, %1 : !scores, !torch.vtensor<[5,3,3],f32>, !i -> !scores
  %s = torch.aten.mul.Tensor %b, %factors : !scores, !factors -> !scores
  %f = torch.aten.softmax.int %s, %3, %none : !scores, !i, !torch.none -> !scores
  %g = torch.aten.matmul %f, %x : !scores, !x -> !x
  %c = torch.aten.matmul %x, %xt : !x, !keys -> !scores
  %t = torch.aten.mul.Tensor %c, %of_keys : !scores, !torch.vtensor<[3],f32> -> !scores
  %h = torch.aten.softmax.int %t, %3, %none : !scores, !i, !torch.none -> !scores
  %k = torch.aten.matmul %h, %x : !scores, !x -> !x
  return %g, %k : !x, !x
}
