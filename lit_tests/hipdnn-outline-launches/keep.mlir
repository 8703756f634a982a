// RUN: hipdnn-opt %s --hipdnn-outline-launches | filecheck %s

// Data movement, sizes that are not known, and what no kernel expresses stay outside launches.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     hipdnn.launch
// CHECK:         return
!x = !torch.vtensor<[4,8],f32>
!w = !torch.vtensor<[8,8],f32>
!open = !torch.vtensor<[?,8],si32>
func.func @main(%x: !x, %w: !w, %open: !open, %i: !torch.vtensor<[2],f32>) -> (!torch.vtensor<[8],f32>, !x, !open, !torch.vtensor<[2,8],f32>) {
  %one = torch.vtensor.literal(dense<1> : tensor<si64>) : !torch.vtensor<[],si64>
  %a = torch.operator "hipdnn.onnx.Gather"(%x, %one) {torch.onnx.axis = 0 : si64} : (!x, !torch.vtensor<[],si64>) -> !torch.vtensor<[8],f32>
  %b = torch.aten.mm %x, %w : !x, !w -> !x
  %c = torch.aten.bitwise_not %open : !open -> !open
  %d = torch.operator "hipdnn.onnx.Gather"(%x, %i) {torch.onnx.axis = 0 : si64} : (!x, !torch.vtensor<[2],f32>) -> !torch.vtensor<[2,8],f32>
  return %a, %b, %c, %d : !torch.vtensor<[8],f32>, !x, !open, !torch.vtensor<[2,8],f32>
}
