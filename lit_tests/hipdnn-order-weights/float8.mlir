// RUN: hipdnn-opt %s --hipdnn-order-weights | filecheck %s

// Every target stores a matrix that the model transposes; one that lies as it is read stays.

// CHECK-LABEL: func.func @transposed
// CHECK:         %[[VIEW:.+]] = torch.aten.permute %arg1
// CHECK:         %[[STORED:.+]] = torch.aten.clone %[[VIEW]]
// CHECK:         "hipdnn.onnx.Float8MatMul"(%arg0, %[[STORED]])
// CHECK:         "hipdnn.onnx.Float8MatMul"(%arg0, %arg2)
func.func @transposed(%x: !torch.vtensor<[3,16],f8E4M3FN>, %w: !torch.vtensor<[16,32],f8E4M3FN> {hipdnn.constant = "w"}, %v: !torch.vtensor<[32,16],f8E4M3FN> {hipdnn.constant = "v"}) -> (!torch.vtensor<[3,32],f32>, !torch.vtensor<[3,32],f32>) {
  %int0 = torch.constant.int 0
  %int1 = torch.constant.int 1
  %order = torch.prim.ListConstruct %int1, %int0 : (!torch.int, !torch.int) -> !torch.list<int>
  %t = torch.aten.permute %w, %order : !torch.vtensor<[16,32],f8E4M3FN>, !torch.list<int> -> !torch.vtensor<[32,16],f8E4M3FN>
  %y = torch.operator "hipdnn.onnx.Float8MatMul"(%x, %t) {torch.onnx.scale = 5.000000e-01 : f32} : (!torch.vtensor<[3,16],f8E4M3FN>, !torch.vtensor<[32,16],f8E4M3FN>) -> !torch.vtensor<[3,32],f32>
  %z = torch.operator "hipdnn.onnx.Float8MatMul"(%x, %v) {torch.onnx.scale = 5.000000e-01 : f32} : (!torch.vtensor<[3,16],f8E4M3FN>, !torch.vtensor<[32,16],f8E4M3FN>) -> !torch.vtensor<[3,32],f32>
  return %y, %z : !torch.vtensor<[3,32],f32>, !torch.vtensor<[3,32],f32>
}
