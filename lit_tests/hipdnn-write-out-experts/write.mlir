// RUN: hipdnn-opt %s --hipdnn-write-out-experts=target=sm_90 --split-input-file | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-write-out-experts --split-input-file | filecheck %s --check-prefix=HOST

// Few rows gather the weights of their experts; the host has a kernel.

// CHECK-LABEL: func.func @few
// CHECK-NOT:     ExpertMatMul
// CHECK:         %[[CHOSEN:.+]] = torch.aten.view %arg1, %{{.+}} -> !torch.vtensor<[2],si64>
// CHECK:         torch.aten.expand %arg0, {{.+}} -> !torch.vtensor<[1,2,8],f32>
// CHECK:         %[[OWN:.+]] = torch.aten.index_select %arg2, %{{.+}}, %[[CHOSEN]] {{.+}} -> !torch.vtensor<[2,3,8],f32>
// CHECK:         torch.aten.matmul %[[OWN]], %{{.+}} -> !torch.vtensor<[2,3,1],f32>
// HOST-LABEL: func.func @few
// HOST:         ExpertMatMul
func.func @few(%x: !torch.vtensor<[1,1,8],f32>, %experts: !torch.vtensor<[1,2],si64>, %weights: !torch.vtensor<[4,3,8],f32>) -> !torch.vtensor<[1,2,3],f32> {
  %y = torch.operator "hipdnn.onnx.ExpertMatMul"(%x, %experts, %weights) {torch.onnx.bits = 0 : si64} : (!torch.vtensor<[1,1,8],f32>, !torch.vtensor<[1,2],si64>, !torch.vtensor<[4,3,8],f32>) -> !torch.vtensor<[1,2,3],f32>
  return %y : !torch.vtensor<[1,2,3],f32>
}

// -----

// More choices than experts: all experts multiply all rows, and each choice takes its row. Codes become floats in the program.

// CHECK-LABEL: func.func @many
// CHECK:         %[[BLOCKS:.+]] = torch.aten.view %arg2, %{{.+}} -> !torch.vtensor<[4,3,2,2],ui8>
// CHECK:         %[[PAIRS:.+]] = torch.aten.view %[[BLOCKS]], %{{.+}} -> !torch.vtensor<[4,3,2,2,1],ui8>
// CHECK:         torch.aten.bitwise_right_shift.Tensor %[[PAIRS]], %{{.+}} {hipdnn.stays}
// CHECK:         torch.aten.sub.Tensor {{.+}} -> !torch.vtensor<[4,3,2,4],f32>
// CHECK:         %[[SCALES:.+]] = torch.aten.view %arg3, %{{.+}} -> !torch.vtensor<[4,3,2,1],f32>
// CHECK:         torch.aten.mul.Tensor %{{.+}}, %[[SCALES]]
// CHECK:         torch.aten.matmul {{.+}} -> !torch.vtensor<[4,5,3],f32>
// CHECK:         %[[OWN:.+]] = torch.vtensor.literal(dense<[0, 0, 1, 1, 2, 2, 3, 3, 4, 4]>
// CHECK:         %[[PLACES:.+]] = torch.aten.add.Tensor %{{.+}}, %[[OWN]]
// CHECK:         torch.aten.index_select %{{.+}}, %{{.+}}, %[[PLACES]] {{.+}} -> !torch.vtensor<[10,3],f32>
func.func @many(%x: !torch.vtensor<[5,1,8],f32>, %experts: !torch.vtensor<[5,2],si32>, %codes: !torch.vtensor<[4,3,4],ui8>, %scales: !torch.vtensor<[4,3,2],f32>) -> !torch.vtensor<[5,2,3],f32> {
  %y = torch.operator "hipdnn.onnx.ExpertMatMul"(%x, %experts, %codes, %scales) {torch.onnx.bits = 4 : si64, torch.onnx.block_size = 4 : si64} : (!torch.vtensor<[5,1,8],f32>, !torch.vtensor<[5,2],si32>, !torch.vtensor<[4,3,4],ui8>, !torch.vtensor<[4,3,2],f32>) -> !torch.vtensor<[5,2,3],f32>
  return %y : !torch.vtensor<[5,2,3],f32>
}

// -----

// What the row refuses stays, so that the reason is told.

// CHECK-LABEL: func.func @refused
// CHECK:         ExpertMatMul
func.func @refused(%x: !torch.vtensor<[1,1,8],f32>, %experts: !torch.vtensor<[2,2],si64>, %weights: !torch.vtensor<[4,3,8],f32>) -> !torch.vtensor<[2,2,3],f32> {
  %y = torch.operator "hipdnn.onnx.ExpertMatMul"(%x, %experts, %weights) {torch.onnx.bits = 0 : si64} : (!torch.vtensor<[1,1,8],f32>, !torch.vtensor<[2,2],si64>, !torch.vtensor<[4,3,8],f32>) -> !torch.vtensor<[2,2,3],f32>
  return %y : !torch.vtensor<[2,2,3],f32>
}
