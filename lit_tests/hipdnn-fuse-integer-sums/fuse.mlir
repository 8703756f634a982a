// RUN: hipdnn-opt %s --hipdnn-fuse-integer-sums=target=sm_90 --split-input-file | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-fuse-integer-sums --split-input-file | filecheck %s --check-prefix=HOST

// A residual: one rounding, scales and zero points in factor and offset: 0.25 / 0.5, and -128 - 8 * 0.5 - 6 * 2.

// CHECK-LABEL: func.func @residual
// CHECK:         %[[ADDED:.+]] = torch.operator "hipdnn.onnx.Dequantize"(%arg2) {torch.onnx.scale = 2.000000e+00 : f32, torch.onnx.zero = 0 : si64}
// CHECK:         torch.constant.float 5.000000e-01
// CHECK:         %[[FACTOR:.+]] = torch.aten.mul.Scalar %arg3
// CHECK:         torch.constant.float -1.440000e+02
// CHECK:         %[[OFFSET:.+]] = torch.aten.add.Scalar
// CHECK:         %[[FLOATS:.+]] = torch.operator "hipdnn.onnx.QuantizedConv"(%arg0, %arg1, %{{.+}}, %[[FACTOR]], %[[OFFSET]]) {torch.onnx.to = "f32"}
// CHECK:         %[[SUM:.+]] = torch.aten.add.Tensor %[[FLOATS]], %[[ADDED]]
// CHECK:         %[[Y:.+]] = torch.operator "hipdnn.onnx.Quantize"(%[[SUM]]) {torch.onnx.scale = 1.000000e+00 : f32, torch.onnx.to = "i8", torch.onnx.zero = 0 : si64}
// CHECK:         return %[[Y]]
// HOST-LABEL: func.func @residual
// HOST:         torch.aten.relu
func.func @residual(%x: !torch.vtensor<[1,16,6,6],si8>, %w: !torch.vtensor<[8,16,1,1],si8>, %r: !torch.vtensor<[1,8,6,6],si8>, %factor: !torch.vtensor<[8],f32>, %offset: !torch.vtensor<[8],f32>) -> !torch.vtensor<[1,8,6,6],si8> {
  %zero = torch.vtensor.literal(dense<0> : tensor<si32>) : !torch.vtensor<[],si32>
  %one = torch.constant.int 1
  %q = torch.operator "hipdnn.onnx.QuantizedConv"(%x, %w, %zero, %factor, %offset) {torch.onnx.to = "i8"} : (!torch.vtensor<[1,16,6,6],si8>, !torch.vtensor<[8,16,1,1],si8>, !torch.vtensor<[],si32>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>) -> !torch.vtensor<[1,8,6,6],si8>
  %f = torch.operator "hipdnn.onnx.Dequantize"(%q) {torch.onnx.scale = 2.500000e-01 : f32, torch.onnx.zero = 8 : si64} : (!torch.vtensor<[1,8,6,6],si8>) -> !torch.vtensor<[1,8,6,6],f32>
  %g = torch.operator "hipdnn.onnx.Dequantize"(%r) {torch.onnx.scale = 1.000000e+00 : f32, torch.onnx.zero = 6 : si64} : (!torch.vtensor<[1,8,6,6],si8>) -> !torch.vtensor<[1,8,6,6],f32>
  %s = torch.aten.add.Tensor %f, %g, %one : !torch.vtensor<[1,8,6,6],f32>, !torch.vtensor<[1,8,6,6],f32>, !torch.int -> !torch.vtensor<[1,8,6,6],f32>
  %t = torch.aten.relu %s : !torch.vtensor<[1,8,6,6],f32> -> !torch.vtensor<[1,8,6,6],f32>
  %y = torch.operator "hipdnn.onnx.Quantize"(%t) {torch.onnx.scale = 5.000000e-01 : f32, torch.onnx.zero = -128 : si64, torch.onnx.to = "i8"} : (!torch.vtensor<[1,8,6,6],f32>) -> !torch.vtensor<[1,8,6,6],si8>
  return %y : !torch.vtensor<[1,8,6,6],si8>
}

// -----

// Where the first zero point is the least byte, clipping may be a Relu that the model had; where its bytes are read by others, they are needed.

// CHECK-LABEL: func.func @stays
// CHECK-NOT:     to = "f32"
func.func @stays(%x: !torch.vtensor<[1,16,6,6],si8>, %w: !torch.vtensor<[8,16,1,1],si8>, %r: !torch.vtensor<[1,8,6,6],si8>, %factor: !torch.vtensor<[8],f32>, %offset: !torch.vtensor<[8],f32>) -> (!torch.vtensor<[1,8,6,6],si8>, !torch.vtensor<[1,8,6,6],si8>, !torch.vtensor<[1,8,6,6],si8>) {
  %zero = torch.vtensor.literal(dense<0> : tensor<si32>) : !torch.vtensor<[],si32>
  %one = torch.constant.int 1
  %g = torch.operator "hipdnn.onnx.Dequantize"(%r) {torch.onnx.scale = 1.000000e+00 : f32, torch.onnx.zero = 6 : si64} : (!torch.vtensor<[1,8,6,6],si8>) -> !torch.vtensor<[1,8,6,6],f32>
  %q = torch.operator "hipdnn.onnx.QuantizedConv"(%x, %w, %zero, %factor, %offset) {torch.onnx.to = "i8"} : (!torch.vtensor<[1,16,6,6],si8>, !torch.vtensor<[8,16,1,1],si8>, !torch.vtensor<[],si32>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>) -> !torch.vtensor<[1,8,6,6],si8>
  %f = torch.operator "hipdnn.onnx.Dequantize"(%q) {torch.onnx.scale = 2.500000e-01 : f32, torch.onnx.zero = -128 : si64} : (!torch.vtensor<[1,8,6,6],si8>) -> !torch.vtensor<[1,8,6,6],f32>
  %s = torch.aten.add.Tensor %f, %g, %one : !torch.vtensor<[1,8,6,6],f32>, !torch.vtensor<[1,8,6,6],f32>, !torch.int -> !torch.vtensor<[1,8,6,6],f32>
  %y = torch.operator "hipdnn.onnx.Quantize"(%s) {torch.onnx.scale = 5.000000e-01 : f32, torch.onnx.zero = 3 : si64, torch.onnx.to = "i8"} : (!torch.vtensor<[1,8,6,6],f32>) -> !torch.vtensor<[1,8,6,6],si8>
  %p = torch.operator "hipdnn.onnx.QuantizedConv"(%x, %w, %zero, %factor, %offset) {torch.onnx.to = "i8"} : (!torch.vtensor<[1,16,6,6],si8>, !torch.vtensor<[8,16,1,1],si8>, !torch.vtensor<[],si32>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>) -> !torch.vtensor<[1,8,6,6],si8>
  %h = torch.operator "hipdnn.onnx.Dequantize"(%p) {torch.onnx.scale = 2.500000e-01 : f32, torch.onnx.zero = 4 : si64} : (!torch.vtensor<[1,8,6,6],si8>) -> !torch.vtensor<[1,8,6,6],f32>
  %t = torch.aten.relu %h : !torch.vtensor<[1,8,6,6],f32> -> !torch.vtensor<[1,8,6,6],f32>
  %z = torch.operator "hipdnn.onnx.Quantize"(%t) {torch.onnx.scale = 5.000000e-01 : f32, torch.onnx.zero = 0 : si64, torch.onnx.to = "i8"} : (!torch.vtensor<[1,8,6,6],f32>) -> !torch.vtensor<[1,8,6,6],si8>
  return %y, %z, %p : !torch.vtensor<[1,8,6,6],si8>, !torch.vtensor<[1,8,6,6],si8>, !torch.vtensor<[1,8,6,6],si8>
}
