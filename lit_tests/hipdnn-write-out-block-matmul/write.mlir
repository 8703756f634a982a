// RUN: hipdnn-opt %s --hipdnn-write-out-block-matmul=target=sm_90 --split-input-file | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-write-out-block-matmul --split-input-file | filecheck %s --check-prefix=HOST

// No engine of this target multiplies these rows as they are: one makes floats of them, or else arithmetic does, the lower half of a byte
// first. The host's multiplies.

// CHECK-LABEL: func.func @whole_blocks
// CHECK-NOT:     BlockScaleMatMul
// CHECK:         %[[MADE:.+]] = torch.operator "hipdnn.onnx.BlockScaleDequantize"(%arg1, %arg2) {{.*}}"f16"{{.*}} -> !torch.vtensor<[8,64],f16>
// CHECK:         %[[CUT:.+]] = torch.aten.slice.Tensor %[[MADE]], {{.+}} -> !torch.vtensor<[8,40],f16>
// CHECK:         %[[W:.+]] = torch.aten.permute %[[CUT]]
// CHECK:         torch.aten.matmul %arg0, %[[W]]
// HOST-LABEL: func.func @whole_blocks
// HOST:         BlockScaleMatMul
func.func @whole_blocks(%a: !torch.vtensor<[20,40],f16>, %numbers: !torch.vtensor<[8,32],ui8>, %scales: !torch.vtensor<[8,2],f16>) -> !torch.vtensor<[20,8],f16> {
  %y = torch.operator "hipdnn.onnx.BlockScaleMatMul"(%a, %numbers, %scales) {torch.onnx.bits = 4 : si64, torch.onnx.block_size = 32 : si64, torch.onnx.rounds = 1 : si64} : (!torch.vtensor<[20,40],f16>, !torch.vtensor<[8,32],ui8>, !torch.vtensor<[8,2],f16>) -> !torch.vtensor<[20,8],f16>
  return %y : !torch.vtensor<[20,8],f16>
}

// -----

// CHECK-LABEL: func.func @of_4_bits
// CHECK-NOT:     BlockScaleMatMul
// CHECK:         %[[FULL:.+]] = torch.aten.constant_pad_nd %arg1, {{.+}} -> !torch.vtensor<[8,24],ui8>
// CHECK:         %[[BYTES:.+]] = torch.aten.view %[[FULL]], %{{.+}} -> !torch.vtensor<[8,3,8,1],ui8>
// CHECK:         %[[ENDS:.+]] = torch.vtensor.literal(dense<[0, 4]> : tensor<2xui8>)
// CHECK:         %[[SHIFTED:.+]] = torch.aten.bitwise_right_shift.Tensor %[[BYTES]], %[[ENDS]] {hipdnn.stays}
// CHECK:         %[[LOW:.+]] = torch.aten.bitwise_and.Tensor %[[SHIFTED]]
// CHECK:         %[[CODES:.+]] = torch.aten.bitwise_xor.Tensor %[[LOW]]
// CHECK:         %[[WIDE:.+]] = torch.aten.to.dtype %[[CODES]]
// CHECK:         %[[NUMBERS:.+]] = torch.aten.sub.Tensor %[[WIDE]]
// CHECK:         %[[SCALES:.+]] = torch.aten.view %arg2
// CHECK:         %[[SCALED:.+]] = torch.aten.mul.Tensor %[[NUMBERS]], %[[SCALES]] {{.*}} -> !torch.vtensor<[8,3,8,2],f32>
// CHECK:         %[[ROWS:.+]] = torch.aten.view %[[SCALED]], %{{.+}} -> !torch.vtensor<[8,48],f32>
// CHECK:         %[[CUT:.+]] = torch.aten.slice.Tensor %[[ROWS]], {{.+}} -> !torch.vtensor<[8,40],f32>
// CHECK:         %[[W:.+]] = torch.aten.permute %[[CUT]]
// CHECK:         torch.aten.matmul %arg0, %[[W]]
// HOST-LABEL: func.func @of_4_bits
// HOST:         BlockScaleMatMul
func.func @of_4_bits(%a: !torch.vtensor<[3,40],f32>, %numbers: !torch.vtensor<[8,20],ui8>, %scales: !torch.vtensor<[8,3],f32>) -> !torch.vtensor<[3,8],f32> {
  %y = torch.operator "hipdnn.onnx.BlockScaleMatMul"(%a, %numbers, %scales) {torch.onnx.bits = 4 : si64, torch.onnx.block_size = 16 : si64, torch.onnx.rounds = 1 : si64} : (!torch.vtensor<[3,40],f32>, !torch.vtensor<[8,20],ui8>, !torch.vtensor<[8,3],f32>) -> !torch.vtensor<[3,8],f32>
  return %y : !torch.vtensor<[3,8],f32>
}

// -----

// Rows that end before their last block does are filled up; the weights get the type of the left operand.

// CHECK-LABEL: func.func @of_8_bits
// CHECK:         %[[FULL:.+]] = torch.aten.constant_pad_nd %arg1, {{.+}} -> !torch.vtensor<[8,48],si8>
// CHECK:         %[[NUMBERS:.+]] = torch.aten.view %[[FULL]], %{{.+}} -> !torch.vtensor<[8,3,16,1],si8>
// CHECK:         torch.aten.to.dtype %[[NUMBERS]], {{.+}} {hipdnn.stays}
// CHECK:         %[[SCALED:.+]] = torch.aten.mul.Tensor
// CHECK:         torch.aten.to.dtype %[[SCALED]], {{.+}} -> !torch.vtensor<[8,3,16,1],f16>
// CHECK:         torch.aten.matmul %arg0, %{{.+}} -> !torch.vtensor<[4,8,8],f16>
func.func @of_8_bits(%a: !torch.vtensor<[4,8,40],f16>, %numbers: !torch.vtensor<[8,40],si8>, %scales: !torch.vtensor<[8,3],f32>) -> !torch.vtensor<[4,8,8],f16> {
  %y = torch.operator "hipdnn.onnx.BlockScaleMatMul"(%a, %numbers, %scales) {torch.onnx.bits = 8 : si64, torch.onnx.block_size = 16 : si64} : (!torch.vtensor<[4,8,40],f16>, !torch.vtensor<[8,40],si8>, !torch.vtensor<[8,3],f32>) -> !torch.vtensor<[4,8,8],f16>
  return %y : !torch.vtensor<[4,8,8],f16>
}

// -----

// Few rows are multiplied as they are, but not by integers: a generated kernel does not round the left operand.

// CHECK-LABEL: func.func @few_rows
// CHECK:         BlockScaleMatMul
// CHECK-NOT:     rounds
// HOST-LABEL: func.func @few_rows
// HOST:         BlockScaleMatMul{{.*}}rounds
func.func @few_rows(%a: !torch.vtensor<[3,64],f16>, %numbers: !torch.vtensor<[8,32],ui8>, %scales: !torch.vtensor<[8,2],f32>) -> !torch.vtensor<[3,8],f16> {
  %y = torch.operator "hipdnn.onnx.BlockScaleMatMul"(%a, %numbers, %scales) {torch.onnx.bits = 4 : si64, torch.onnx.block_size = 32 : si64, torch.onnx.rounds = 1 : si64} : (!torch.vtensor<[3,64],f16>, !torch.vtensor<[8,32],ui8>, !torch.vtensor<[8,2],f32>) -> !torch.vtensor<[3,8],f16>
  return %y : !torch.vtensor<[3,8],f16>
}

// -----

// What its row refuses stays, so that the reason is told.

// CHECK-LABEL: func.func @refused
// CHECK:         BlockScaleMatMul
func.func @refused(%a: !torch.vtensor<[3,40],f64>, %numbers: !torch.vtensor<[8,32],ui8>, %scales: !torch.vtensor<[8,2],f32>) -> !torch.vtensor<[3,8],f64> {
  %y = torch.operator "hipdnn.onnx.BlockScaleMatMul"(%a, %numbers, %scales) {torch.onnx.bits = 4 : si64, torch.onnx.block_size = 32 : si64} : (!torch.vtensor<[3,40],f64>, !torch.vtensor<[8,32],ui8>, !torch.vtensor<[8,2],f32>) -> !torch.vtensor<[3,8],f64>
  return %y : !torch.vtensor<[3,8],f64>
}

// -----

// Blocks that the host's engine does not have are written out there, too.

// HOST-LABEL: func.func @of_12
// HOST-NOT:     BlockScaleMatMul
// HOST:         torch.aten.matmul
func.func @of_12(%a: !torch.vtensor<[3,36],f32>, %numbers: !torch.vtensor<[8,18],ui8>, %scales: !torch.vtensor<[8,3],f32>) -> !torch.vtensor<[3,8],f32> {
  %y = torch.operator "hipdnn.onnx.BlockScaleMatMul"(%a, %numbers, %scales) {torch.onnx.bits = 4 : si64, torch.onnx.block_size = 12 : si64} : (!torch.vtensor<[3,36],f32>, !torch.vtensor<[8,18],ui8>, !torch.vtensor<[8,3],f32>) -> !torch.vtensor<[3,8],f32>
  return %y : !torch.vtensor<[3,8],f32>
}
