// RUN: hipdnn-opt %s --hipdnn-write-out-recurrence=target=sm_90 | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-write-out-recurrence | filecheck %s --check-prefix=HOST

// Pairs of weights are torn apart, shifted, scaled, and zero where there are no units. The host has a kernel.

// CHECK-LABEL: func.func @steps
// CHECK-NOT:     QuantizedRecurrence
// CHECK:         torch.aten.view %arg1, %{{.+}} -> !torch.vtensor<[4,4,16,2],si8>
// CHECK:         torch.aten.permute {{.+}} -> !torch.vtensor<[4,4,2,16],si8>
// CHECK:         torch.aten.slice.Tensor {{.+}} -> !torch.vtensor<[1,4,5,16],si8>
// CHECK:         torch.aten.add.Tensor {{.+}} !torch.vtensor<[1,1,1,1],f32>
// CHECK:         torch.aten.mul.Tensor {{.+}} !torch.vtensor<[1,4,1,16],f32>
// CHECK:         torch.aten.constant_pad_nd {{.+}} -> !torch.vtensor<[1,4,8,16],f32>
// CHECK:         %[[WEIGHTS:.+]] = torch.aten.view {{.+}} -> !torch.vtensor<[512],f32>
// CHECK:         %[[ALL:.+]]:4 = torch.operator "hipdnn.onnx.Recurrence"(%arg0, %[[WEIGHTS]], %arg2, %arg3, %arg6)
// CHECK-SAME:      torch.onnx.cell = "lstm", torch.onnx.reverse = 1
// CHECK:         return %[[ALL]]#0, %[[ALL]]#1, %[[ALL]]#2
// HOST-LABEL: func.func @steps
// HOST:         QuantizedRecurrence
func.func @steps(%rows: !torch.vtensor<[3,2,20],f32>, %weights: !torch.vtensor<[512],si8>, %state: !torch.vtensor<[1,2,5],f32>, %cell: !torch.vtensor<[1,2,5],f32>, %factors: !torch.vtensor<[64],f32>, %shifts: !torch.vtensor<[1],si32>, %lengths: !torch.vtensor<[2],si32>) -> (!torch.vtensor<[3,1,2,5],f32>, !torch.vtensor<[1,2,5],f32>, !torch.vtensor<[1,2,5],f32>) {
  %r:4 = torch.operator "hipdnn.onnx.QuantizedRecurrence"(%rows, %weights, %state, %cell, %factors, %shifts, %lengths) {torch.onnx.reverse = 1 : si64} : (!torch.vtensor<[3,2,20],f32>, !torch.vtensor<[512],si8>, !torch.vtensor<[1,2,5],f32>, !torch.vtensor<[1,2,5],f32>, !torch.vtensor<[64],f32>, !torch.vtensor<[1],si32>, !torch.vtensor<[2],si32>) -> (!torch.vtensor<[3,1,2,5],f32>, !torch.vtensor<[1,2,5],f32>, !torch.vtensor<[1,2,5],f32>, !torch.vtensor<[4,1,2,16],si32>)
  return %r#0, %r#1, %r#2 : !torch.vtensor<[3,1,2,5],f32>, !torch.vtensor<[1,2,5],f32>, !torch.vtensor<[1,2,5],f32>
}
