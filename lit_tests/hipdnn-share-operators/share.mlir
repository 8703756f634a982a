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

// -----

// A concatenation begins with an earlier one's result, the longest there is; along another dim, or with other parts, it stays.

// CHECK-LABEL: func.func @beginnings
// CHECK:         %[[AB:.+]] = torch.aten.cat %{{.+}}, %int1 {{.+}} -> !torch.vtensor<[1,4,3],f32>
// CHECK:         %[[OTHER:.+]] = torch.prim.ListConstruct %arg0, %arg1, %arg2
// CHECK:         %[[L:.+]] = torch.prim.ListConstruct %[[AB]], %arg2
// CHECK:         %[[ABC:.+]] = torch.aten.cat %[[L]], %int1
// CHECK:         %[[M:.+]] = torch.prim.ListConstruct %[[ABC]], %arg0
// CHECK:         torch.aten.cat %[[M]], %int1
// CHECK:         torch.aten.cat %[[OTHER]], %int2
// CHECK:         %[[TURNED:.+]] = torch.prim.ListConstruct %arg1, %arg0, %arg2
// CHECK:         torch.aten.cat %[[TURNED]], %int1
!x = !torch.vtensor<[1,2,3],f32>
!x2 = !torch.vtensor<[1,4,3],f32>
!x3 = !torch.vtensor<[1,6,3],f32>
!x4 = !torch.vtensor<[1,8,3],f32>
!wide = !torch.vtensor<[1,2,9],f32>
!t = !torch.list<vtensor>
func.func @beginnings(%a: !x, %b: !x, %c: !x) -> (!x2, !x3, !x4, !wide, !x3) {
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %ab = torch.prim.ListConstruct %a, %b : (!x, !x) -> !t
  %y = torch.aten.cat %ab, %1 : !t, !torch.int -> !x2
  %abc = torch.prim.ListConstruct %a, %b, %c : (!x, !x, !x) -> !t
  %z = torch.aten.cat %abc, %1 : !t, !torch.int -> !x3
  %abca = torch.prim.ListConstruct %a, %b, %c, %a : (!x, !x, !x, !x) -> !t
  %u = torch.aten.cat %abca, %1 : !t, !torch.int -> !x4
  %v = torch.aten.cat %abc, %2 : !t, !torch.int -> !wide
  %bac = torch.prim.ListConstruct %b, %a, %c : (!x, !x, !x) -> !t
  %w = torch.aten.cat %bac, %1 : !t, !torch.int -> !x3
  return %y, %z, %u, %v, %w : !x2, !x3, !x4, !wide, !x3
}
