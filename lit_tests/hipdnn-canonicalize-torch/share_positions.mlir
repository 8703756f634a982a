// RUN: hipdnn-opt %s --hipdnn-canonicalize-torch | filecheck %s

// Positions that are the same for all rows are read as they are, with as many dims as the result.

// CHECK-LABEL: func.func @shared
// CHECK-NOT:     torch.aten.broadcast_to
// CHECK:         %[[AT:.+]] = torch.aten.view %arg1, {{.*}} -> !torch.vtensor<[1,3],si64>
// CHECK:         torch.operator "hipdnn.onnx.GatherElements"(%arg0, %[[AT]]) {{.*}} -> !torch.vtensor<[2,3],f32>
func.func @shared(%x: !torch.vtensor<[2,9],f32>, %at: !torch.vtensor<[3],si64>) -> !torch.vtensor<[2,3],f32> {
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %dims = torch.prim.ListConstruct %2, %3 : (!torch.int, !torch.int) -> !torch.list<int>
  %e = torch.aten.broadcast_to %at, %dims : !torch.vtensor<[3],si64>, !torch.list<int> -> !torch.vtensor<[2,3],si64>
  %y = torch.operator "hipdnn.onnx.GatherElements"(%x, %e) {torch.onnx.axis = 1 : si64} : (!torch.vtensor<[2,9],f32>, !torch.vtensor<[2,3],si64>) -> !torch.vtensor<[2,3],f32>
  return %y : !torch.vtensor<[2,3],f32>
}
