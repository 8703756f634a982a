// RUN: env PYTHONPATH=%S/../../examples/extension hipdnn-opt %s --extension acme --acme-reciprocal | filecheck %s
// The pattern of docs/extending.md, tested as a package outside would test its own.

// CHECK-LABEL: func.func @quotient
// CHECK: torch.vtensor.literal(dense<2.500000e-01>
// CHECK: torch.aten.mul.Tensor
// CHECK-NOT: torch.aten.div
func.func @quotient(%x: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %four = torch.vtensor.literal(dense<4.0> : tensor<f32>) : !torch.vtensor<[],f32>
  %y = torch.aten.div.Tensor %x, %four : !torch.vtensor<[4],f32>, !torch.vtensor<[],f32> -> !torch.vtensor<[4],f32>
  return %y : !torch.vtensor<[4],f32>
}

// CHECK-LABEL: func.func @quotient_of_tensors
// CHECK: torch.aten.div.Tensor
func.func @quotient_of_tensors(%x: !torch.vtensor<[4],f32>, %z: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %y = torch.aten.div.Tensor %x, %z : !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32> -> !torch.vtensor<[4],f32>
  return %y : !torch.vtensor<[4],f32>
}
