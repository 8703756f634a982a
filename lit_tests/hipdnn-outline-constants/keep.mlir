// RUN: hipdnn-opt %s --hipdnn-outline-constants --split-input-file | filecheck %s

!x = !torch.vtensor<[3],f32>

// Nothing to do on values of the caller, nor on operations that the compiler does not evaluate itself.

// CHECK-NOT: @hipdnn_constants
// CHECK-LABEL: func.func @main(%arg0: !torch.vtensor<[3],f32>, %arg1: !torch.vtensor<[3],f32>, %arg2: !torch.vtensor<[3],f32> {hipdnn.constant = "w"})
// CHECK:         torch.aten.mul.Tensor %arg0, %arg1
// CHECK:         torch.aten.mul.Tensor %{{.+}}, %arg2
// CHECK:         torch.aten.erf %arg2
func.func @main(%x: !x, %y: !x, %w: !x {hipdnn.constant = "w"}) -> !x {
  %p = torch.aten.mul.Tensor %x, %y : !x, !x -> !x
  %q = torch.aten.mul.Tensor %p, %w : !x, !x -> !x
  %e = torch.aten.erf %w : !x -> !x
  %r = torch.aten.mul.Tensor %q, %e : !x, !x -> !x
  return %r : !x
}

// -----

// A constant of 16 MB made of two of 8 KB would make a large program of a small one: each run computes it.

// CHECK-NOT: @hipdnn_constants
// CHECK-LABEL: func.func @main
// CHECK:         torch.aten.mul.Tensor %arg1, %arg2
!x = !torch.vtensor<[2048,2048],f32>
!a = !torch.vtensor<[2048,1],f32>
!b = !torch.vtensor<[1,2048],f32>
func.func @main(%x: !x, %a: !a {hipdnn.constant = "a"}, %b: !b {hipdnn.constant = "b"}) -> !x {
  %w = torch.aten.mul.Tensor %a, %b : !a, !b -> !x
  %y = torch.aten.mm %x, %w : !x, !x -> !x
  return %y : !x
}
