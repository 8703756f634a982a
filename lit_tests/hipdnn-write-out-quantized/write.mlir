// RUN: hipdnn-opt %s --hipdnn-write-out-quantized=target=sm_90 --split-input-file | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-write-out-quantized --split-input-file | filecheck %s --check-prefix=HOST

// A target without an engine for it multiplies floats; the host's engine takes the integers.

// CHECK-LABEL: func.func @matmul
// CHECK-NOT:     QuantizedMatMul
// CHECK:         %[[LEFT:.+]] = torch.aten.sub.Tensor %{{.+}} -> !torch.vtensor<[3,16],f32>
// CHECK:         %[[RIGHT:.+]] = torch.aten.to.dtype %arg1
// CHECK:         %[[SUMS:.+]] = torch.aten.matmul %[[LEFT]], %[[RIGHT]]
// CHECK:         %[[SCALED:.+]] = torch.aten.mul.Tensor %[[SUMS]], %arg3
// CHECK:         %[[SHIFTED:.+]] = torch.aten.add.Tensor %[[SCALED]], %arg4
// CHECK:         torch.operator "hipdnn.onnx.Quantize"(%[[SHIFTED]]) {torch.onnx.scale = 1.000000e+00 : f32, torch.onnx.to = "u8", torch.onnx.zero = 0 : si64}
// HOST-LABEL: func.func @matmul
// HOST:         QuantizedMatMul
func.func @matmul(%a: !torch.vtensor<[3,16],ui8>, %b: !torch.vtensor<[16,8],si8>, %zero: !torch.vtensor<[1],si32>, %factor: !torch.vtensor<[8],f32>, %offset: !torch.vtensor<[8],f32>) -> !torch.vtensor<[3,8],ui8> {
  %y = torch.operator "hipdnn.onnx.QuantizedMatMul"(%a, %b, %zero, %factor, %offset) {torch.onnx.to = "u8"} : (!torch.vtensor<[3,16],ui8>, !torch.vtensor<[16,8],si8>, !torch.vtensor<[1],si32>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>) -> !torch.vtensor<[3,8],ui8>
  return %y : !torch.vtensor<[3,8],ui8>
}

// -----

// A border that differs between its sides is written by itself; a result of floats is not rounded. Operands are f16 where sums of those are
// exact.

// CHECK-LABEL: func.func @convolution
// CHECK-NOT:     QuantizedConv
// CHECK:         %[[PADDED:.+]] = torch.aten.constant_pad_nd
// CHECK:         %[[SUMS:.+]] = torch.aten.convolution %[[PADDED]], {{.+}} !torch.vtensor<[8,4,3,3],f16>, {{.+}} -> !torch.vtensor<[1,8,5,5],f32>
// CHECK:         torch.aten.view %arg3, %{{.+}} -> !torch.vtensor<[1,8,1,1],f32>
// CHECK:         torch.aten.add.Tensor
// CHECK-NOT:     "hipdnn.onnx.Quantize"
// HOST-LABEL: func.func @convolution
// HOST:         QuantizedConv
func.func @convolution(%x: !torch.vtensor<[1,4,6,6],ui8>, %w: !torch.vtensor<[8,4,3,3],si8>, %zero: !torch.vtensor<[1],si32>, %factor: !torch.vtensor<[8],f32>, %offset: !torch.vtensor<[8],f32>) -> !torch.vtensor<[1,8,5,5],f32> {
  %y = torch.operator "hipdnn.onnx.QuantizedConv"(%x, %w, %zero, %factor, %offset) {torch.onnx.pads = [1 : si64, 1 : si64, 0 : si64, 0 : si64], torch.onnx.to = "f32"} : (!torch.vtensor<[1,4,6,6],ui8>, !torch.vtensor<[8,4,3,3],si8>, !torch.vtensor<[1],si32>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>) -> !torch.vtensor<[1,8,5,5],f32>
  return %y : !torch.vtensor<[1,8,5,5],f32>
}

// -----

// What its row refuses stays, so that the reason is told.

// CHECK-LABEL: func.func @refused
// CHECK:         QuantizedMatMul
func.func @refused(%a: !torch.vtensor<[3,16],f32>, %b: !torch.vtensor<[16,8],si8>, %zero: !torch.vtensor<[1],si32>, %factor: !torch.vtensor<[8],f32>, %offset: !torch.vtensor<[8],f32>) -> !torch.vtensor<[3,8],ui8> {
  %y = torch.operator "hipdnn.onnx.QuantizedMatMul"(%a, %b, %zero, %factor, %offset) {torch.onnx.to = "u8"} : (!torch.vtensor<[3,16],f32>, !torch.vtensor<[16,8],si8>, !torch.vtensor<[1],si32>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>) -> !torch.vtensor<[3,8],ui8>
  return %y : !torch.vtensor<[3,8],ui8>
}

// -----

// Floats of 8 bits: the factor, 2^-10, is in both operands. Sizes that are multiples of 16 are the library's.

// CHECK-LABEL: func.func @float8
// CHECK-NOT:     Float8MatMul
// CHECK-DAG:     %[[X:.+]] = torch.operator "hipdnn.onnx.ConvertFloat8"(%arg0)
// CHECK-DAG:     %[[W:.+]] = torch.operator "hipdnn.onnx.ConvertFloat8"(%arg1)
// CHECK-DAG:     torch.aten.mul.Tensor %[[X]], %{{.+}} -> !torch.vtensor<[32,24],f32>
// CHECK-DAG:     torch.aten.mul.Tensor %[[W]], %{{.+}} -> !torch.vtensor<[8,24],f32>
// CHECK:         torch.aten.linear %{{.+}} -> !torch.vtensor<[32,8],f16>
// HOST-LABEL: func.func @float8
// HOST:         Float8MatMul
func.func @float8(%x: !torch.vtensor<[32,24],f8E4M3FN>, %w: !torch.vtensor<[8,24],f8E5M2>) -> !torch.vtensor<[32,8],f16> {
  %y = torch.operator "hipdnn.onnx.Float8MatMul"(%x, %w) {torch.onnx.scale = 9.765625e-04 : f32, torch.onnx.to = "f16"} : (!torch.vtensor<[32,24],f8E4M3FN>, !torch.vtensor<[8,24],f8E5M2>) -> !torch.vtensor<[32,8],f16>
  return %y : !torch.vtensor<[32,8],f16>
}

// -----

// CHECK-LABEL: func.func @float8_for_the_library
// CHECK:         Float8MatMul
func.func @float8_for_the_library(%x: !torch.vtensor<[32,16],f8E4M3FN>, %w: !torch.vtensor<[48,16],f8E5M2>) -> !torch.vtensor<[32,48],f16> {
  %y = torch.operator "hipdnn.onnx.Float8MatMul"(%x, %w) {torch.onnx.scale = 9.765625e-04 : f32, torch.onnx.to = "f16"} : (!torch.vtensor<[32,16],f8E4M3FN>, !torch.vtensor<[48,16],f8E5M2>) -> !torch.vtensor<[32,48],f16>
  return %y : !torch.vtensor<[32,48],f16>
}
