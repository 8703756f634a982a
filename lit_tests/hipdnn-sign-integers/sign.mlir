// RUN: hipdnn-opt %s --hipdnn-sign-integers=target=sm_90 --split-input-file | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-sign-integers --split-input-file | filecheck %s --check-prefix=HOST

// cuDNN multiplies signed bytes whose zero is 0: the zero point becomes a border and a part of the offset. The host's engine takes all.

// CHECK-LABEL: func.func @convolution
// CHECK:         %[[BYTES:.+]] = torch.operator "hipdnn.onnx.Quantize"(%arg0) {{.*}}torch.onnx.to = "i8", torch.onnx.zero = -123
// CHECK:         %[[SUMS:.+]] = torch.aten.sum.dim_IntList
// CHECK:         %[[LESS:.+]] = torch.aten.rsub.Scalar
// CHECK:         %[[CENTRED:.+]] = torch.aten.add.Tensor %arg3,
// CHECK:         %[[BORDERED:.+]] = torch.aten.constant_pad_nd %[[BYTES]], {{.+}} -> !torch.vtensor<[1,16,8,8],si8>
// CHECK:         %[[ZERO:.+]] = torch.vtensor.literal(dense<0> : tensor<si32>)
// CHECK:         %[[OFFSET:.+]] = torch.aten.add.Tensor %[[CENTRED]],
// CHECK:         torch.operator "hipdnn.onnx.QuantizedConv"(%[[BORDERED]], %arg1, %[[ZERO]], %arg2, %[[OFFSET]]) {torch.onnx.pads = [0 : si64, 0 : si64, 0 : si64, 0 : si64], torch.onnx.to = "i8"}
// CHECK:         torch.operator "hipdnn.onnx.Dequantize"{{.*}}torch.onnx.zero = -126
// CHECK-NOT:     "u8"
// HOST-LABEL: func.func @convolution
// HOST:         "u8"
// HOST:         QuantizedConv
func.func @convolution(%x: !torch.vtensor<[1,16,6,6],f32>, %w: !torch.vtensor<[8,16,3,3],si8>, %factor: !torch.vtensor<[8],f32>, %offset: !torch.vtensor<[8],f32>) -> !torch.vtensor<[1,8,6,6],f32> {
  %zero = torch.vtensor.literal(dense<5> : tensor<si32>) : !torch.vtensor<[],si32>
  %q = torch.operator "hipdnn.onnx.Quantize"(%x) {torch.onnx.scale = 5.000000e-01 : f32, torch.onnx.zero = 5 : si64, torch.onnx.to = "u8"} : (!torch.vtensor<[1,16,6,6],f32>) -> !torch.vtensor<[1,16,6,6],ui8>
  %y = torch.operator "hipdnn.onnx.QuantizedConv"(%q, %w, %zero, %factor, %offset) {torch.onnx.pads = [1 : si64, 1 : si64, 1 : si64, 1 : si64], torch.onnx.to = "u8"} : (!torch.vtensor<[1,16,6,6],ui8>, !torch.vtensor<[8,16,3,3],si8>, !torch.vtensor<[],si32>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>) -> !torch.vtensor<[1,8,6,6],ui8>
  %f = torch.operator "hipdnn.onnx.Dequantize"(%y) {torch.onnx.scale = 2.500000e-01 : f32, torch.onnx.zero = 2 : si64} : (!torch.vtensor<[1,8,6,6],ui8>) -> !torch.vtensor<[1,8,6,6],f32>
  return %f : !torch.vtensor<[1,8,6,6],f32>
}

// -----

// A zero point that is computed is part of a product's offset. Bytes that come from outside are moved, and so are those that are returned.

// CHECK-LABEL: func.func @computed
// CHECK:         torch.operator "hipdnn.onnx.Dequantize"(%arg0) {{.*}}torch.onnx.zero = 128
// CHECK:         %[[BYTES:.+]] = torch.operator "hipdnn.onnx.Quantize"
// CHECK:         torch.aten.rsub.Scalar
// CHECK:         torch.operator "hipdnn.onnx.QuantizedMatMul"(%[[BYTES]], %arg1,
// CHECK:         torch.operator "hipdnn.onnx.Dequantize"{{.*}}torch.onnx.zero = -128
// CHECK:         torch.operator "hipdnn.onnx.Quantize"{{.*}}torch.onnx.to = "u8"
func.func @computed(%a: !torch.vtensor<[3,16],ui8>, %b: !torch.vtensor<[16,8],si8>, %zero: !torch.vtensor<[1],si32>, %factor: !torch.vtensor<[8],f32>, %offset: !torch.vtensor<[8],f32>) -> !torch.vtensor<[3,8],ui8> {
  %y = torch.operator "hipdnn.onnx.QuantizedMatMul"(%a, %b, %zero, %factor, %offset) {torch.onnx.to = "u8"} : (!torch.vtensor<[3,16],ui8>, !torch.vtensor<[16,8],si8>, !torch.vtensor<[1],si32>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>) -> !torch.vtensor<[3,8],ui8>
  return %y : !torch.vtensor<[3,8],ui8>
}

// -----

// A border of zero points that are computed has no operation, and cuDNN no kernel of 6 channels: such operators stay.

// CHECK-LABEL: func.func @stays
// CHECK:         torch.operator "hipdnn.onnx.QuantizedConv"(%arg0, %arg1, %arg2
// CHECK:         torch.operator "hipdnn.onnx.QuantizedMatMul"(%arg5, %arg6, %arg2
func.func @stays(%x: !torch.vtensor<[1,16,6,6],ui8>, %w: !torch.vtensor<[8,16,3,3],si8>, %zero: !torch.vtensor<[1],si32>, %factor: !torch.vtensor<[8],f32>, %offset: !torch.vtensor<[8],f32>, %a: !torch.vtensor<[3,6],ui8>, %b: !torch.vtensor<[6,8],si8>) -> (!torch.vtensor<[1,8,6,6],ui8>, !torch.vtensor<[3,8],ui8>) {
  %y = torch.operator "hipdnn.onnx.QuantizedConv"(%x, %w, %zero, %factor, %offset) {torch.onnx.pads = [1 : si64, 1 : si64, 1 : si64, 1 : si64], torch.onnx.to = "u8"} : (!torch.vtensor<[1,16,6,6],ui8>, !torch.vtensor<[8,16,3,3],si8>, !torch.vtensor<[1],si32>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>) -> !torch.vtensor<[1,8,6,6],ui8>
  %z = torch.operator "hipdnn.onnx.QuantizedMatMul"(%a, %b, %zero, %factor, %offset) {torch.onnx.to = "u8"} : (!torch.vtensor<[3,6],ui8>, !torch.vtensor<[6,8],si8>, !torch.vtensor<[1],si32>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>) -> !torch.vtensor<[3,8],ui8>
  return %y, %z : !torch.vtensor<[1,8,6,6],ui8>, !torch.vtensor<[3,8],ui8>
}

// -----

// What a border is filled with becomes 128 less, as the bytes inside do.

// CHECK-LABEL: func.func @border
// CHECK:         %[[BYTES:.+]] = torch.operator "hipdnn.onnx.Quantize"(%arg0)
// CHECK:         %[[FILL:.+]] = torch.constant.int -121
// CHECK:         torch.aten.constant_pad_nd %[[BYTES]], {{.+}}, %[[FILL]] {{.+}} -> !torch.vtensor<[3,16],si8>
func.func @border(%x: !torch.vtensor<[3,14],f32>, %b: !torch.vtensor<[16,8],si8>, %factor: !torch.vtensor<[8],f32>, %offset: !torch.vtensor<[8],f32>) -> !torch.vtensor<[3,8],ui8> {
  %zero = torch.vtensor.literal(dense<5> : tensor<si32>) : !torch.vtensor<[],si32>
  %q = torch.operator "hipdnn.onnx.Quantize"(%x) {torch.onnx.scale = 5.000000e-01 : f32, torch.onnx.zero = 5 : si64, torch.onnx.to = "u8"} : (!torch.vtensor<[3,14],f32>) -> !torch.vtensor<[3,14],ui8>
  %1 = torch.constant.int 1
  %7 = torch.constant.int 7
  %counts = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !torch.list<int>
  %p = torch.aten.constant_pad_nd %q, %counts, %7 : !torch.vtensor<[3,14],ui8>, !torch.list<int>, !torch.int -> !torch.vtensor<[3,16],ui8>
  %y = torch.operator "hipdnn.onnx.QuantizedMatMul"(%p, %b, %zero, %factor, %offset) {torch.onnx.to = "u8"} : (!torch.vtensor<[3,16],ui8>, !torch.vtensor<[16,8],si8>, !torch.vtensor<[],si32>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>) -> !torch.vtensor<[3,8],ui8>
  return %y : !torch.vtensor<[3,8],ui8>
}
