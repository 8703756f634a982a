// RUN: hipdnn-opt %s --hipdnn-share-operators --split-input-file | filecheck %s

// The same operator on the same, and what is computed from it, is there once.

// CHECK-LABEL: func.func @equal
// CHECK:         %[[G:.+]] = torch.operator "hipdnn.onnx.Gather"
// CHECK:         %[[N:.+]] = torch.aten.neg %[[G]]
// CHECK-NOT:     Gather
// CHECK-NOT:     torch.aten.neg
// CHECK:         return %[[N]], %[[N]]
!table = !torch.vtensor<[9,4],f32>
!indices = !torch.vtensor<[3],si64>
!rows = !torch.vtensor<[3,4],f32>
func.func @equal(%table: !table, %indices: !indices) -> (!rows, !rows) {
  %a = torch.operator "hipdnn.onnx.Gather"(%table, %indices) {torch.onnx.axis = 0 : si64} : (!table, !indices) -> !rows
  %b = torch.aten.neg %a : !rows -> !rows
  %c = torch.operator "hipdnn.onnx.Gather"(%table, %indices) {torch.onnx.axis = 0 : si64} : (!table, !indices) -> !rows
  %d = torch.aten.neg %c : !rows -> !rows
  return %b, %d : !rows, !rows
}

// -----

// Constants that are equal are the same.

// CHECK-LABEL: func.func @constants
// CHECK:         %[[S:.+]] = torch.aten.mul.Scalar
// CHECK-NOT:     torch.aten.mul.Scalar
// CHECK:         return %[[S]], %[[S]]
!x = !torch.vtensor<[3,4],f32>
func.func @constants(%x: !x) -> (!x, !x) {
  %two = torch.constant.float 2.0
  %a = torch.aten.mul.Scalar %x, %two : !x, !torch.float -> !x
  %again = torch.constant.float 2.0
  %b = torch.aten.mul.Scalar %x, %again : !x, !torch.float -> !x
  return %a, %b : !x, !x
}

// -----

// Another attribute, other operands or another type is another operator.

// CHECK-LABEL: func.func @others
// CHECK:         %[[A:.+]] = torch.operator "hipdnn.onnx.Gather"(%arg0, %arg1) {torch.onnx.axis = 0 : si64}
// CHECK:         %[[B:.+]] = torch.operator "hipdnn.onnx.Gather"(%arg0, %arg1) {torch.onnx.axis = 1 : si64}
// CHECK:         %[[C:.+]] = torch.operator "hipdnn.onnx.Gather"(%arg0, %arg2) {torch.onnx.axis = 0 : si64}
// CHECK:         %[[D:.+]] = torch.operator "hipdnn.onnx.Clip"(%arg0) : {{.+}} -> !torch.vtensor<[3,3],f32>
// CHECK:         %[[E:.+]] = torch.operator "hipdnn.onnx.Clip"(%arg0) : {{.+}} -> !torch.vtensor<[3,3],f16>
// CHECK:         return %[[A]], %[[B]], %[[C]], %[[D]], %[[E]]
!x = !torch.vtensor<[3,3],f32>
!h = !torch.vtensor<[3,3],f16>
!indices = !torch.vtensor<[3],si64>
func.func @others(%x: !x, %i: !indices, %j: !indices) -> (!x, !x, !x, !x, !h) {
  %a = torch.operator "hipdnn.onnx.Gather"(%x, %i) {torch.onnx.axis = 0 : si64} : (!x, !indices) -> !x
  %b = torch.operator "hipdnn.onnx.Gather"(%x, %i) {torch.onnx.axis = 1 : si64} : (!x, !indices) -> !x
  %c = torch.operator "hipdnn.onnx.Gather"(%x, %j) {torch.onnx.axis = 0 : si64} : (!x, !indices) -> !x
  %d = torch.operator "hipdnn.onnx.Clip"(%x) : (!x) -> !x
  %e = torch.operator "hipdnn.onnx.Clip"(%x) : (!x) -> !h
  return %a, %b, %c, %d, %e : !x, !x, !x, !x, !h
}

// -----

// An operator that the table does not know may give other numbers each time.

// CHECK-LABEL: func.func @unknown
// CHECK:         %[[A:.+]] = torch.operator "onnx.RandomNormalLike"
// CHECK:         %[[B:.+]] = torch.operator "onnx.RandomNormalLike"
// CHECK:         return %[[A]], %[[B]]
!x = !torch.vtensor<[3,4],f32>
func.func @unknown(%x: !x) -> (!x, !x) {
  %a = torch.operator "onnx.RandomNormalLike"(%x) : (!x) -> !x
  %b = torch.operator "onnx.RandomNormalLike"(%x) : (!x) -> !x
  return %a, %b : !x, !x
}
