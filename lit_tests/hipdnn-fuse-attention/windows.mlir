// RUN: hipdnn-opt %s --hipdnn-fuse-attention --canonicalize --split-input-file | filecheck %s

// Shifted windows of two images: a bias for each head, and, where images are a dim of their own, a mask for each window.

// CHECK-LABEL: func.func @windows
// CHECK:         %[[SPREAD:.+]] = torch.aten.expand {{.+}} -> !torch.vtensor<[2,4,1,3,3],f32>
// CHECK:         %[[MASK:.+]] = torch.aten.view %[[SPREAD]], {{.+}} -> !torch.vtensor<[8,1,3,3],f32>
// CHECK:         %[[BOTH:.+]] = torch.aten.add.Tensor %[[MASK]], %arg1, {{.+}} -> !torch.vtensor<[8,5,3,3],f32>
// CHECK:         torch.aten.scaled_dot_product_attention %arg0, %arg0, %arg0, %[[BOTH]]
!x = !torch.vtensor<[8,5,3,16],f32>
!keys = !torch.vtensor<[8,5,16,3],f32>
!scores = !torch.vtensor<[8,5,3,3],f32>
!images = !torch.vtensor<[2,4,5,3,3],f32>
!i = !torch.int
!list = !torch.list<int>
func.func @windows(%x: !x, %bias: !torch.vtensor<[5,3,3],f32>, %mask: !torch.vtensor<[4,1,3,3],f32>) -> !x {
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %4 = torch.constant.int 4
  %5 = torch.constant.int 5
  %8 = torch.constant.int 8
  %none = torch.constant.none
  %apart = torch.prim.ListConstruct %2, %4, %5, %3, %3 : (!i, !i, !i, !i, !i) -> !list
  %together = torch.prim.ListConstruct %8, %5, %3, %3 : (!i, !i, !i, !i) -> !list
  %xt = torch.aten.transpose.int %x, %2, %3 : !x, !i, !i -> !keys
  %a = torch.aten.matmul %x, %xt : !x, !keys -> !scores
  %b = torch.aten.add.Tensor %a, %bias, %1 : !scores, !torch.vtensor<[5,3,3],f32>, !i -> !scores
  %c = torch.aten.reshape %b, %apart : !scores, !list -> !images
  %d = torch.aten.add.Tensor %c, %mask, %1 : !images, !torch.vtensor<[4,1,3,3],f32>, !i -> !images
  %e = torch.aten.reshape %d, %together : !images, !list -> !scores
  %f = torch.aten.softmax.int %e, %3, %none : !scores, !i, !torch.none -> !scores
  %g = torch.aten.matmul %f, %x : !scores, !x -> !x
  return %g : !x
}

// -----

// Heads that a mask tells apart are no dim of the scores that another mask is added to.

// CHECK-LABEL: func.func @other
// CHECK-NOT:     torch.aten.scaled_dot_product_attention
!x = !torch.vtensor<[6,3,16],f32>
!keys = !torch.vtensor<[6,16,3],f32>
!scores = !torch.vtensor<[6,3,3],f32>
!images = !torch.vtensor<[2,3,3,3],f32>
!others = !torch.vtensor<[3,2,3,3],f32>
!i = !torch.int
!list = !torch.list<int>
func.func @other(%x: !x, %bias: !torch.vtensor<[3,3,3],f32>, %mask: !torch.vtensor<[2,3,3],f32>) -> !x {
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %6 = torch.constant.int 6
  %none = torch.constant.none
  %apart = torch.prim.ListConstruct %2, %3, %3, %3 : (!i, !i, !i, !i) -> !list
  %else = torch.prim.ListConstruct %3, %2, %3, %3 : (!i, !i, !i, !i) -> !list
  %together = torch.prim.ListConstruct %6, %3, %3 : (!i, !i, !i) -> !list
  %xt = torch.aten.transpose.int %x, %1, %2 : !x, !i, !i -> !keys
  %a = torch.aten.matmul %x, %xt : !x, !keys -> !scores
  %b = torch.aten.reshape %a, %apart : !scores, !list -> !images
  %c = torch.aten.add.Tensor %b, %bias, %1 : !images, !torch.vtensor<[3,3,3],f32>, !i -> !images
  %d = torch.aten.reshape %c, %else : !images, !list -> !others
  %e = torch.aten.add.Tensor %d, %mask, %1 : !others, !torch.vtensor<[2,3,3],f32>, !i -> !others
  %f = torch.aten.reshape %e, %together : !others, !list -> !scores
  %g = torch.aten.softmax.int %f, %2, %none : !scores, !i, !torch.none -> !scores
  %h = torch.aten.matmul %g, %x : !scores, !x -> !x
  return %h : !x
}
