// RUN: hipdnn-opt %s --hipdnn-offload=target=gfx942 --canonicalize --split-input-file | filecheck %s

// MIOpen takes a convolution with bias and ReLU, but not with the bias alone: the three ops enter one graph together.

// CHECK-LABEL: func.func @bias_and_relu
// CHECK:         hipdnn.graph ins(%arg0, %arg1, %arg2)
// CHECK:           torch.aten.convolution
// CHECK-NEXT:      torch.aten.add.Tensor
// CHECK-NEXT:      torch.aten.relu
// CHECK-NEXT:      hipdnn.yield
// CHECK:         hipdnn.engine = "MIOPEN_ENGINE"
// CHECK-NOT:     hipdnn.graph
!x = !torch.vtensor<[1,4,8,8],f32>
!w = !torch.vtensor<[4,4,3,3],f32>
!b = !torch.vtensor<[4,1,1],f32>
!l = !torch.list<int>
func.func @bias_and_relu(%x: !x, %w: !w, %b: !b) -> !x {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %c = torch.aten.convolution %x, %w, %none, %ones, %ones, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %a = torch.aten.add.Tensor %c, %b, %1 : !x, !b, !torch.int -> !x
  %y = torch.aten.relu %a : !x -> !x
  return %y : !x
}

// -----

// A residual is no bias: convolution here, bias, residual and ReLU in one generated kernel.

// CHECK-LABEL: func.func @residual
// CHECK:         hipdnn.graph ins(%arg0, %arg1)
// CHECK:           torch.aten.convolution
// CHECK-NEXT:      hipdnn.yield
// CHECK:         hipdnn.engine = "MIOPEN_ENGINE"
// CHECK:         hipdnn.graph
// CHECK:           torch.aten.add.Tensor
// CHECK-NEXT:      torch.aten.add.Tensor
// CHECK-NEXT:      torch.aten.relu
// CHECK:         hipdnn.engine = "GENERATED"
!x = !torch.vtensor<[1,4,8,8],f32>
!w = !torch.vtensor<[4,4,3,3],f32>
!b = !torch.vtensor<[4,1,1],f32>
!l = !torch.list<int>
func.func @residual(%x: !x, %w: !w, %b: !b) -> !x {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %c = torch.aten.convolution %x, %w, %none, %ones, %ones, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %a = torch.aten.add.Tensor %c, %b, %1 : !x, !b, !torch.int -> !x
  %s = torch.aten.add.Tensor %a, %x, %1 : !x, !x, !torch.int -> !x
  %y = torch.aten.relu %s : !x -> !x
  return %y : !x
}

// -----

// The biased value is read elsewhere, so that the ReLU cannot be taken with it.

// CHECK-LABEL: func.func @read_twice
// CHECK:         torch.aten.convolution
// CHECK-NEXT:      hipdnn.yield
// CHECK:         hipdnn.engine = "MIOPEN_ENGINE"
!x = !torch.vtensor<[1,4,8,8],f32>
!w = !torch.vtensor<[4,4,3,3],f32>
!b = !torch.vtensor<[4,1,1],f32>
!l = !torch.list<int>
func.func @read_twice(%x: !x, %w: !w, %b: !b) -> (!x, !x) {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %c = torch.aten.convolution %x, %w, %none, %ones, %ones, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %a = torch.aten.add.Tensor %c, %b, %1 : !x, !b, !torch.int -> !x
  %y = torch.aten.relu %a : !x -> !x
  return %a, %y : !x, !x
}

// -----

// hipBLASLt takes bias and activation in any combination, but not GELU by erf, which is a kernel of its own.

// CHECK-LABEL: func.func @product
// CHECK:           torch.aten.matmul
// CHECK-NEXT:      torch.aten.add.Tensor
// CHECK-NEXT:      hipdnn.yield
// CHECK:         hipdnn.engine = "HIPBLASLT_ENGINE"
// CHECK:           torch.aten.gelu
// CHECK:         hipdnn.engine = "GENERATED"
!m = !torch.vtensor<[6,8],f32>
!k = !torch.vtensor<[8,8],f32>
!r = !torch.vtensor<[8],f32>
func.func @product(%x: !m, %w: !k, %b: !r) -> !m {
  %1 = torch.constant.int 1
  %none = torch.constant.str "none"
  %c = torch.aten.matmul %x, %w : !m, !k -> !m
  %a = torch.aten.add.Tensor %c, %b, %1 : !m, !r, !torch.int -> !m
  %y = torch.aten.gelu %a, %none : !m, !torch.str -> !m
  return %y : !m
}
