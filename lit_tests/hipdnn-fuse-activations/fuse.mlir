// RUN: hipdnn-opt %s --hipdnn-fuse-activations --split-input-file | filecheck %s

// x * (1 + erf(x / sqrt 2)) / 2 in the orders that exporters write it in.

// CHECK-LABEL: func.func @gelu_erf
// CHECK-DAG:     %[[NONE:.+]] = torch.constant.str "none"
// CHECK:         torch.aten.gelu %arg0, %[[NONE]]
// CHECK:         torch.aten.gelu %arg0
// CHECK-NOT:     torch.aten.erf
// CHECK-NOT:     torch.aten.mul
// CHECK:         return
!x = !torch.vtensor<[2,4],f32>
!s = !torch.vtensor<[],f32>
func.func @gelu_erf(%x: !x) -> (!x, !x) {
  %1 = torch.constant.int 1
  %root = torch.vtensor.literal(dense<1.41421354> : tensor<f32>) : !s
  %half = torch.vtensor.literal(dense<0.5> : tensor<f32>) : !s
  %one = torch.vtensor.literal(dense<1.0> : tensor<f32>) : !s
  %inverse = torch.constant.float 0.70710678
  %a = torch.aten.div.Tensor %x, %root : !x, !s -> !x
  %b = torch.aten.erf %a : !x -> !x
  %c = torch.aten.add.Tensor %b, %one, %1 : !x, !s, !torch.int -> !x
  %d = torch.aten.mul.Tensor %x, %c : !x, !x -> !x
  %e = torch.aten.mul.Tensor %d, %half : !x, !s -> !x
  %f = torch.aten.mul.Scalar %x, %inverse : !x, !torch.float -> !x
  %g = torch.aten.erf %f : !x -> !x
  %h = torch.aten.add.Scalar %g, %1, %1 : !x, !torch.int, !torch.int -> !x
  %i = torch.aten.mul.Tensor %half, %x : !s, !x -> !x
  %j = torch.aten.mul.Tensor %h, %i : !x, !x -> !x
  return %e, %j : !x, !x
}

// -----

// x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2, with the power as an op, and with x in front of a sum.

// CHECK-LABEL: func.func @gelu_tanh
// CHECK-DAG:     %[[TANH:.+]] = torch.constant.str "tanh"
// CHECK:         torch.aten.gelu %arg0, %[[TANH]]
// CHECK:         torch.aten.gelu %arg0
// CHECK-NOT:     torch.aten.tanh
!x = !torch.vtensor<[2,4],f32>
func.func @gelu_tanh(%x: !x) -> (!x, !x) {
  %1 = torch.constant.int 1
  %3 = torch.constant.int 3
  %k = torch.constant.float 0.044715
  %r = torch.constant.float 0.7978845608
  %half = torch.constant.float 0.5
  %one = torch.constant.float 1.0
  %a = torch.aten.pow.Tensor_Scalar %x, %3 : !x, !torch.int -> !x
  %b = torch.aten.mul.Scalar %a, %k : !x, !torch.float -> !x
  %c = torch.aten.add.Tensor %x, %b, %1 : !x, !x, !torch.int -> !x
  %d = torch.aten.mul.Scalar %c, %r : !x, !torch.float -> !x
  %e = torch.aten.tanh %d : !x -> !x
  %f = torch.aten.add.Scalar %e, %one, %1 : !x, !torch.float, !torch.int -> !x
  %g = torch.aten.mul.Scalar %x, %half : !x, !torch.float -> !x
  %h = torch.aten.mul.Tensor %g, %f : !x, !x -> !x
  %i = torch.aten.mul.Tensor %x, %x : !x, !x -> !x
  %j = torch.aten.mul.Scalar %i, %k : !x, !torch.float -> !x
  %l = torch.aten.add.Scalar %j, %one, %1 : !x, !torch.float, !torch.int -> !x
  %m = torch.aten.mul.Scalar %x, %r : !x, !torch.float -> !x
  %n = torch.aten.mul.Tensor %m, %l : !x, !x -> !x
  %o = torch.aten.tanh %n : !x -> !x
  %p = torch.aten.add.Scalar %o, %one, %1 : !x, !torch.float, !torch.int -> !x
  %q = torch.aten.mul.Tensor %x, %p : !x, !x -> !x
  %s = torch.aten.mul.Scalar %q, %half : !x, !torch.float -> !x
  return %h, %s : !x, !x
}

// -----

// SiLU, also of a value that is a product itself; quick GELU is SiLU between two factors; two spellings of hard swish.

// CHECK-LABEL: func.func @gates
// CHECK:         %[[XY:.+]] = torch.aten.mul.Tensor %arg0, %arg1
// CHECK-NEXT:    %[[S:.+]] = torch.aten.silu %[[XY]]
// CHECK:         %[[BETA:.+]] = torch.constant.float 1.702
// CHECK:         %[[SCALED:.+]] = torch.aten.mul.Scalar %arg0, %[[BETA]]
// CHECK-NEXT:    %[[GATED:.+]] = torch.aten.silu %[[SCALED]]
// CHECK:         %[[INVERSE:.+]] = torch.constant.float 0.587
// CHECK:         torch.aten.mul.Scalar %[[GATED]], %[[INVERSE]]
// CHECK:         torch.aten.hardswish %arg0
// CHECK:         torch.aten.hardswish %arg1
!x = !torch.vtensor<[2,4],f32>
func.func @gates(%x: !x, %y: !x) -> (!x, !x, !x, !x) {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %3 = torch.constant.int 3
  %6 = torch.constant.int 6
  %beta = torch.constant.float 1.702
  %a = torch.aten.mul.Tensor %x, %y : !x, !x -> !x
  %b = torch.aten.sigmoid %a : !x -> !x
  %c = torch.aten.mul.Tensor %a, %b : !x, !x -> !x
  %d = torch.aten.mul.Scalar %x, %beta : !x, !torch.float -> !x
  %e = torch.aten.sigmoid %d : !x -> !x
  %f = torch.aten.mul.Tensor %x, %e : !x, !x -> !x
  %g = torch.aten.add.Scalar %x, %3, %1 : !x, !torch.int, !torch.int -> !x
  %h = torch.aten.clamp %g, %0, %6 : !x, !torch.int, !torch.int -> !x
  %i = torch.aten.mul.Tensor %x, %h : !x, !x -> !x
  %j = torch.aten.div.Scalar %i, %6 : !x, !torch.int -> !x
  %k = torch.aten.hardsigmoid %y : !x -> !x
  %l = torch.aten.mul.Tensor %k, %y : !x, !x -> !x
  return %c, %f, %j, %l : !x, !x, !x, !x
}

// -----

// A gated linear unit multiplies by the sigmoid of another value; a sigmoid that is read twice is computed anyway; other coefficients
// are other functions.

// CHECK-LABEL: func.func @kept
// CHECK-NOT:     torch.aten.silu
// CHECK-NOT:     torch.aten.gelu
// CHECK-NOT:     torch.aten.hardswish
// CHECK:         return
!x = !torch.vtensor<[2,4],f32>
func.func @kept(%x: !x, %y: !x) -> (!x, !x, !x, !x, !x) {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %3 = torch.constant.int 3
  %6 = torch.constant.int 6
  %half = torch.constant.float 0.5
  %root = torch.constant.float 1.5
  %a = torch.aten.sigmoid %y : !x -> !x
  %b = torch.aten.mul.Tensor %x, %a : !x, !x -> !x
  %c = torch.aten.sigmoid %x : !x -> !x
  %d = torch.aten.mul.Tensor %x, %c : !x, !x -> !x
  %e = torch.aten.div.Scalar %x, %root : !x, !torch.float -> !x
  %f = torch.aten.erf %e : !x -> !x
  %g = torch.aten.add.Scalar %f, %1, %1 : !x, !torch.int, !torch.int -> !x
  %h = torch.aten.mul.Tensor %x, %g : !x, !x -> !x
  %i = torch.aten.mul.Scalar %h, %half : !x, !torch.float -> !x
  %j = torch.aten.add.Scalar %x, %3, %1 : !x, !torch.int, !torch.int -> !x
  %k = torch.aten.clamp %j, %0, %6 : !x, !torch.int, !torch.int -> !x
  %l = torch.aten.mul.Tensor %x, %k : !x, !x -> !x
  return %b, %c, %d, %i, %l : !x, !x, !x, !x, !x
}
