// RUN: hipdnn-opt %s --hipdnn-onnx-pipeline | filecheck %s

// ONNX's Gemm with all its attributes is one graph; the transposed weight is strides, the scaled bias a constant made at compile time.

// CHECK-DAG:   "hipdnn.executable"() {{.+}}[1303,3,[8,4]],[1304,3,[1,8]]{{.+}} summary = "matmul + {{.+}} + relu"
// CHECK-LABEL: func.func @main
// CHECK-SAME:    {hipdnn.constant = "b.folded"}
// CHECK:         memref.transpose %arg1 {{.+}} : memref<4x8xf32> to memref<8x4xf32, strided<[1, 8]>>
// CHECK:         hipdnn.execute
// CHECK-NOT:     hipdnn.execute
!x = !torch.vtensor<[2,8],f32>
!w = !torch.vtensor<[4,8],f32>
!b = !torch.vtensor<[4],f32>
!y = !torch.vtensor<[2,4],f32>
func.func @main(%x: !x, %w: !w {hipdnn.constant = "w"}, %b: !b {hipdnn.constant = "b"}) -> !y attributes {torch.onnx_meta.ir_version = 9 : si64, torch.onnx_meta.opset_version = 21 : si64} {
  %g = torch.operator "onnx.Gemm"(%x, %w, %b) {torch.onnx.alpha = 5.000000e-01 : f32, torch.onnx.beta = 2.000000e+00 : f32, torch.onnx.transB = 1 : si64} : (!x, !w, !b) -> !y
  %y = torch.operator "onnx.Relu"(%g) : (!y) -> !y
  return %y : !y
}
