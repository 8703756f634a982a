// RUN: hipdnn-opt %s --hipdnn-order-weights=target=sm_90 | filecheck %s

// Filters of integers are stored channels-last, and matrices by columns, as those of floats are.

// CHECK-LABEL: func.func @integers
// CHECK:         torch.aten.clone {{.+}} -> !torch.vtensor<[8,3,3,16],si8>
// CHECK:         %[[FILTER:.+]] = torch.aten.permute {{.+}} -> !torch.vtensor<[8,16,3,3],si8>
// CHECK:         "hipdnn.onnx.QuantizedConv"(%arg0, %[[FILTER]],
// CHECK:         torch.aten.clone {{.+}} -> !torch.vtensor<[8,16],si8>
// CHECK:         %[[MATRIX:.+]] = torch.aten.permute {{.+}} -> !torch.vtensor<[16,8],si8>
// CHECK:         "hipdnn.onnx.QuantizedMatMul"(%arg1, %[[MATRIX]],
func.func @integers(%x: !torch.vtensor<[1,16,6,6],si8>, %a: !torch.vtensor<[3,16],si8>, %zero: !torch.vtensor<[1],si32>, %factor: !torch.vtensor<[8],f32>, %offset: !torch.vtensor<[8],f32>, %w: !torch.vtensor<[8,16,3,3],si8> {hipdnn.constant = "w"}, %b: !torch.vtensor<[16,8],si8> {hipdnn.constant = "b"}) -> (!torch.vtensor<[1,8,4,4],f32>, !torch.vtensor<[3,8],f32>) {
  %y = torch.operator "hipdnn.onnx.QuantizedConv"(%x, %w, %zero, %factor, %offset) {torch.onnx.to = "f32"} : (!torch.vtensor<[1,16,6,6],si8>, !torch.vtensor<[8,16,3,3],si8>, !torch.vtensor<[1],si32>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>) -> !torch.vtensor<[1,8,4,4],f32>
  %z = torch.operator "hipdnn.onnx.QuantizedMatMul"(%a, %b, %zero, %factor, %offset) {torch.onnx.to = "f32"} : (!torch.vtensor<[3,16],si8>, !torch.vtensor<[16,8],si8>, !torch.vtensor<[1],si32>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>) -> !torch.vtensor<[3,8],f32>
  return %y, %z : !torch.vtensor<[1,8,4,4],f32>, !torch.vtensor<[3,8],f32>
}
