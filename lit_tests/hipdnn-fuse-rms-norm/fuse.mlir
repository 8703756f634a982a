// RUN: hipdnn-opt %s --hipdnn-fuse-rms-norm --canonicalize --split-input-file | filecheck %s

// The root as an op of its own, the inverse of one, and a quotient; the scale in front or behind.

// CHECK-LABEL: func.func @forms
// CHECK-DAG:     %[[EPS:.+]] = torch.constant.float 9.999
// CHECK-DAG:     %[[ONES:.+]] = torch.vtensor.literal(dense<1.000000e+00> : tensor<8xf32>)
// CHECK:         %[[A:.+]] = torch.aten.rms_norm %arg0, %{{.+}}, %arg1, %[[EPS]]
// CHECK:         %[[B:.+]] = torch.aten.rms_norm %arg0, %{{.+}}, %arg1, %[[EPS]]
// CHECK:         %[[C:.+]] = torch.aten.rms_norm %arg0, %{{.+}}, %[[ONES]], %[[EPS]]
// CHECK-NOT:     torch.aten.mean
// CHECK:         return %[[A]], %[[B]], %[[C]]
!x = !torch.vtensor<[2,3,8],f32>
!m = !torch.vtensor<[2,3,1],f32>
!w = !torch.vtensor<[8],f32>
!s = !torch.vtensor<[],f32>
!i = !torch.int
func.func @forms(%x: !x, %w: !w) -> (!x, !x, !x) {
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %-1 = torch.constant.int -1
  %none = torch.constant.none
  %true = torch.constant.bool true
  %eps = torch.vtensor.literal(dense<1.0E-5> : tensor<f32>) : !s
  %last = torch.prim.ListConstruct %-1 : (!i) -> !torch.list<int>
  %a0 = torch.aten.pow.Tensor_Scalar %x, %2 : !x, !i -> !x
  %a1 = torch.aten.mean.dim %a0, %last, %true, %none : !x, !torch.list<int>, !torch.bool, !torch.none -> !m
  %a2 = torch.aten.add.Tensor %a1, %eps, %1 : !m, !s, !i -> !m
  %a3 = torch.aten.rsqrt %a2 : !m -> !m
  %a4 = torch.aten.mul.Tensor %x, %a3 : !x, !m -> !x
  %a = torch.aten.mul.Tensor %a4, %w : !x, !w -> !x
  %b0 = torch.aten.mul.Tensor %x, %x : !x, !x -> !x
  %b1 = torch.aten.mean.dim %b0, %last, %true, %none : !x, !torch.list<int>, !torch.bool, !torch.none -> !m
  %b2 = torch.aten.add.Tensor %b1, %eps, %1 : !m, !s, !i -> !m
  %b3 = torch.aten.sqrt %b2 : !m -> !m
  %b4 = torch.aten.reciprocal %b3 : !m -> !m
  %b5 = torch.aten.mul.Tensor %x, %b4 : !x, !m -> !x
  %b = torch.aten.mul.Tensor %w, %b5 : !w, !x -> !x
  %c0 = torch.aten.square %x : !x -> !x
  %c1 = torch.aten.mean.dim %c0, %last, %true, %none : !x, !torch.list<int>, !torch.bool, !torch.none -> !m
  %c2 = torch.aten.add.Tensor %c1, %eps, %1 : !m, !s, !i -> !m
  %c3 = torch.aten.sqrt %c2 : !m -> !m
  %c = torch.aten.div.Tensor %x, %c3 : !x, !m -> !x
  return %a, %b, %c : !x, !x, !x
}

// -----

// Computed in f32 between casts, which the norm does by itself.

// CHECK-LABEL: func.func @casts
// CHECK-NOT:     torch.aten.to.dtype
// CHECK:         torch.aten.rms_norm %arg0, %{{.+}}, %arg1, %{{.+}} -> !torch.vtensor<[2,8],f16>
// CHECK-NEXT:    return
!x = !torch.vtensor<[2,8],f16>
!wide = !torch.vtensor<[2,8],f32>
!m = !torch.vtensor<[2,1],f32>
!w = !torch.vtensor<[8],f16>
!i = !torch.int
func.func @casts(%x: !x, %w: !w) -> !x {
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %5 = torch.constant.int 5
  %6 = torch.constant.int 6
  %none = torch.constant.none
  %true = torch.constant.bool true
  %false = torch.constant.bool false
  %eps = torch.constant.float 1.0E-6
  %last = torch.prim.ListConstruct %1 : (!i) -> !torch.list<int>
  %a = torch.aten.to.dtype %x, %6, %false, %false, %none : !x, !i, !torch.bool, !torch.bool, !torch.none -> !wide
  %b = torch.aten.pow.Tensor_Scalar %a, %2 : !wide, !i -> !wide
  %c = torch.aten.mean.dim %b, %last, %true, %none : !wide, !torch.list<int>, !torch.bool, !torch.none -> !m
  %d = torch.aten.add.Scalar %c, %eps, %1 : !m, !torch.float, !i -> !m
  %e = torch.aten.rsqrt %d : !m -> !m
  %f = torch.aten.mul.Tensor %a, %e : !wide, !m -> !wide
  %g = torch.aten.to.dtype %f, %5, %false, %false, %none : !wide, !i, !torch.bool, !torch.bool, !torch.none -> !x
  %h = torch.aten.mul.Tensor %w, %g : !w, !x -> !x
  return %h : !x
}

// -----

// The mean over other dims, the deviation read elsewhere, and the root mean square of another value are something else; a scale over more
// than the normalized dim stays outside the norm.

// CHECK-LABEL: func.func @kept
// CHECK:         torch.aten.mean.dim
// CHECK:         torch.aten.mean.dim
// CHECK:         torch.aten.mean.dim
// CHECK:         %[[N:.+]] = torch.aten.rms_norm %arg0
// CHECK:         torch.aten.mul.Tensor %[[N]], %arg1
!x = !torch.vtensor<[4,8],f32>
!row = !torch.vtensor<[1,8],f32>
!m = !torch.vtensor<[4,1],f32>
!i = !torch.int
func.func @kept(%x: !x, %y: !x) -> (!x, !x, !m, !x, !x) {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %none = torch.constant.none
  %true = torch.constant.bool true
  %eps = torch.constant.float 1.0E-6
  %first = torch.prim.ListConstruct %0 : (!i) -> !torch.list<int>
  %last = torch.prim.ListConstruct %1 : (!i) -> !torch.list<int>
  %a0 = torch.aten.pow.Tensor_Scalar %x, %2 : !x, !i -> !x
  %a1 = torch.aten.mean.dim %a0, %first, %true, %none : !x, !torch.list<int>, !torch.bool, !torch.none -> !row
  %a2 = torch.aten.add.Scalar %a1, %eps, %1 : !row, !torch.float, !i -> !row
  %a3 = torch.aten.rsqrt %a2 : !row -> !row
  %a = torch.aten.mul.Tensor %x, %a3 : !x, !row -> !x
  %b0 = torch.aten.mul.Tensor %x, %x : !x, !x -> !x
  %b1 = torch.aten.mean.dim %b0, %last, %true, %none : !x, !torch.list<int>, !torch.bool, !torch.none -> !m
  %b2 = torch.aten.add.Scalar %b1, %eps, %1 : !m, !torch.float, !i -> !m
  %b3 = torch.aten.rsqrt %b2 : !m -> !m
  %b = torch.aten.mul.Tensor %x, %b3 : !x, !m -> !x
  %c0 = torch.aten.mul.Tensor %y, %y : !x, !x -> !x
  %c1 = torch.aten.mean.dim %c0, %last, %true, %none : !x, !torch.list<int>, !torch.bool, !torch.none -> !m
  %c2 = torch.aten.add.Scalar %c1, %eps, %1 : !m, !torch.float, !i -> !m
  %c3 = torch.aten.rsqrt %c2 : !m -> !m
  %c = torch.aten.mul.Tensor %x, %c3 : !x, !m -> !x
  %d0 = torch.aten.square %x : !x -> !x
  %d1 = torch.aten.mean.dim %d0, %last, %true, %none : !x, !torch.list<int>, !torch.bool, !torch.none -> !m
  %d2 = torch.aten.add.Scalar %d1, %eps, %1 : !m, !torch.float, !i -> !m
  %d3 = torch.aten.rsqrt %d2 : !m -> !m
  %d4 = torch.aten.mul.Tensor %x, %d3 : !x, !m -> !x
  %d = torch.aten.mul.Tensor %d4, %y : !x, !x -> !x
  return %a, %b, %b3, %c, %d : !x, !x, !m, !x, !x
}

// -----

// Of a constant it is arithmetic for the compiler.

// CHECK-LABEL: func.func @constant
// CHECK:         torch.aten.mean.dim
// CHECK-NOT:     torch.aten.rms_norm
!x = !torch.vtensor<[4,8],f32>
!m = !torch.vtensor<[4,1],f32>
!i = !torch.int
func.func @constant(%w: !x {hipdnn.constant = "w"}) -> !x {
  %1 = torch.constant.int 1
  %none = torch.constant.none
  %true = torch.constant.bool true
  %eps = torch.constant.float 1.0E-6
  %last = torch.prim.ListConstruct %1 : (!i) -> !torch.list<int>
  %a0 = torch.aten.square %w : !x -> !x
  %a1 = torch.aten.mean.dim %a0, %last, %true, %none : !x, !torch.list<int>, !torch.bool, !torch.none -> !m
  %a2 = torch.aten.add.Scalar %a1, %eps, %1 : !m, !torch.float, !i -> !m
  %a3 = torch.aten.rsqrt %a2 : !m -> !m
  %a = torch.aten.mul.Tensor %w, %a3 : !x, !m -> !x
  return %a : !x
}
