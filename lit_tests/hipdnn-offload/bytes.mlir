// RUN: hipdnn-opt %s --hipdnn-offload --canonicalize --split-input-file | filecheck %s

// Bytes that two graphs read are dequantized in each: no graph gives floats to another.

// CHECK-LABEL: func.func @read_twice
// CHECK:         %[[Q:.+]] = hipdnn.graph ins(%arg0)
// CHECK:         } : (!torch.vtensor<[2,8],f32>) -> !torch.vtensor<[2,8],ui8>
// CHECK:         %[[S:.+]] = hipdnn.graph ins(%[[Q]], %arg1, %arg2, %arg3)
// CHECK:           QuantizedMatMul
// CHECK:         %[[Y:.+]] = hipdnn.graph ins(%[[Q]], %[[S]])
// CHECK-COUNT-2:   Dequantize
// CHECK-NOT:     hipdnn.graph
func.func @read_twice(%x: !torch.vtensor<[2,8],f32>, %w: !torch.vtensor<[8,8],si8>, %factor: !torch.vtensor<[8],f32>, %offset: !torch.vtensor<[8],f32>) -> !torch.vtensor<[2,8],ui8> {
  %one = torch.constant.int 1
  %zero = torch.vtensor.literal(dense<3> : tensor<si32>) : !torch.vtensor<[],si32>
  %q = torch.operator "hipdnn.onnx.Quantize"(%x) {torch.onnx.scale = 5.000000e-01 : f32, torch.onnx.zero = 3 : si64, torch.onnx.to = "u8"} : (!torch.vtensor<[2,8],f32>) -> !torch.vtensor<[2,8],ui8>
  %f = torch.operator "hipdnn.onnx.Dequantize"(%q) {torch.onnx.scale = 5.000000e-01 : f32, torch.onnx.zero = 3 : si64} : (!torch.vtensor<[2,8],ui8>) -> !torch.vtensor<[2,8],f32>
  %s = torch.operator "hipdnn.onnx.QuantizedMatMul"(%q, %w, %zero, %factor, %offset) {torch.onnx.to = "u8"} : (!torch.vtensor<[2,8],ui8>, !torch.vtensor<[8,8],si8>, !torch.vtensor<[],si32>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>) -> !torch.vtensor<[2,8],ui8>
  %g = torch.operator "hipdnn.onnx.Dequantize"(%s) {torch.onnx.scale = 2.500000e-01 : f32, torch.onnx.zero = 7 : si64} : (!torch.vtensor<[2,8],ui8>) -> !torch.vtensor<[2,8],f32>
  %sum = torch.aten.add.Tensor %g, %f, %one : !torch.vtensor<[2,8],f32>, !torch.vtensor<[2,8],f32>, !torch.int -> !torch.vtensor<[2,8],f32>
  %y = torch.operator "hipdnn.onnx.Quantize"(%sum) {torch.onnx.scale = 5.000000e-01 : f32, torch.onnx.zero = 0 : si64, torch.onnx.to = "u8"} : (!torch.vtensor<[2,8],f32>) -> !torch.vtensor<[2,8],ui8>
  return %y : !torch.vtensor<[2,8],ui8>
}

// -----

// What nobody else reads joins the graph that makes it.

// CHECK-LABEL: func.func @read_once
// CHECK:         hipdnn.graph ins(%arg0)
// CHECK:           Quantize
// CHECK:           Dequantize
// CHECK-NOT:     hipdnn.graph
func.func @read_once(%x: !torch.vtensor<[2,8],f32>) -> !torch.vtensor<[2,8],f32> {
  %q = torch.operator "hipdnn.onnx.Quantize"(%x) {torch.onnx.scale = 5.000000e-01 : f32, torch.onnx.zero = 3 : si64, torch.onnx.to = "u8"} : (!torch.vtensor<[2,8],f32>) -> !torch.vtensor<[2,8],ui8>
  %f = torch.operator "hipdnn.onnx.Dequantize"(%q) {torch.onnx.scale = 5.000000e-01 : f32, torch.onnx.zero = 3 : si64} : (!torch.vtensor<[2,8],ui8>) -> !torch.vtensor<[2,8],f32>
  return %f : !torch.vtensor<[2,8],f32>
}
