// RUN: hipdnn-opt %s --hipdnn-outline-constants | filecheck %s

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
