// RUN: env PYTHONPATH=%S hipdnn-opt %s --extension functions --hipdnn-inline-functions | filecheck %s

// An attribute has its default, or what the node says; an operand that is left out takes its branch along.

// CHECK-LABEL: func.func @attributes
// CHECK-NOT:     torch.operator
// CHECK-DAG:     %[[TWO:.+]] = torch.constant.float 2.000000e+00
// CHECK:         %[[A:.+]] = torch.aten.mul.Scalar %{{.+}}, %[[TWO]] : !torch.vtensor<[4,3],f32>, !torch.float -> !torch.vtensor<[4,3],f32>
// CHECK:         %[[FIVE:.+]] = torch.constant.float 5.000000e+00
// CHECK:         %[[B:.+]] = torch.aten.mul.Scalar %[[A]], %[[FIVE]]
// CHECK:         %[[C:.+]] = torch.aten.add.Tensor %[[B]], %{{.+}} : !torch.vtensor<[4,3],f32>, !torch.vtensor<[3],f32>, !torch.int -> !torch.vtensor<[4,3],f32>
// CHECK:         return %[[C]]
func.func @attributes(%x: !torch.vtensor<[4,3],f32>, %b: !torch.vtensor<[3],f32>) -> !torch.vtensor<[4,3],f32> {
  %none = torch.constant.none
  %0 = torch.operator "hipdnn.onnx.test.Affine"(%x, %none) : (!torch.vtensor<[4,3],f32>, !torch.none) -> !torch.vtensor<[4,3],f32>
  %1 = torch.operator "hipdnn.onnx.test.Affine"(%0, %b) {torch.onnx.factor = 5.0 : f32} : (!torch.vtensor<[4,3],f32>, !torch.vtensor<[3],f32>) -> !torch.vtensor<[4,3],f32>
  return %1 : !torch.vtensor<[4,3],f32>
}

// Sizes that follow from the operands are numbers, and what the model leaves open follows too.

// CHECK-LABEL: func.func @sizes
// CHECK-SAME:    -> !torch.vtensor<[4,2,3],si32>
// CHECK:         %[[DIMS:.+]] = torch.prim.ListConstruct
// CHECK:         torch.aten.view %{{.+}}, %[[DIMS]] : !torch.vtensor<[4,6],si32>, !torch.list<int> -> !torch.vtensor<[4,2,3],si32>
func.func @sizes(%x: !torch.vtensor<[4,6],si32>) -> !torch.vtensor<[?,?,?],si32> {
  %0 = torch.operator "hipdnn.onnx.test.Groups"(%x) {torch.onnx.count = 2 : si64} : (!torch.vtensor<[4,6],si32>) -> !torch.vtensor<[?,?,?],si32>
  return %0 : !torch.vtensor<[?,?,?],si32>
}

// An op without a row is decomposed; one with a row stays as it is.

// CHECK-LABEL: func.func @decomposed
// CHECK-NOT:     torch.aten.linear
// CHECK:         torch.aten.matmul {{.+}} -> !torch.vtensor<[4,5],f16>
// CHECK:         torch.aten.add.Tensor {{.+}} -> !torch.vtensor<[4,5],f16>
!w = !torch.vtensor<[5,6],f16>
func.func @decomposed(%x: !torch.vtensor<[4,6],f16>, %w: !w, %b: !torch.vtensor<[5],f16>) -> !torch.vtensor<[4,5],f16> {
  %0 = torch.operator "hipdnn.onnx.test.Linear"(%x, %w, %b) : (!torch.vtensor<[4,6],f16>, !w, !torch.vtensor<[5],f16>) -> !torch.vtensor<[4,5],f16>
  return %0 : !torch.vtensor<[4,5],f16>
}

// Several results, of which the node may leave out the last ones.

// CHECK-LABEL: func.func @results
// CHECK:         torch.aten.cat {{.+}} : !torch.list<vtensor>, !torch.int -> !torch.vtensor<[4,6],bf16>
// CHECK:         return %{{.+}}, %{{.+}}, %{{.+}} : !torch.vtensor<[4,3],bf16>, !torch.vtensor<[4,6],bf16>, !torch.vtensor<[4,3],bf16>
!h = !torch.vtensor<[4,3],bf16>
func.func @results(%x: !torch.vtensor<[4,6],bf16>) -> (!h, !torch.vtensor<[4,6],bf16>, !h) {
  %0:2 = torch.operator "hipdnn.onnx.test.Halves"(%x) : (!torch.vtensor<[4,6],bf16>) -> (!h, !torch.vtensor<[4,6],bf16>)
  %1 = torch.operator "hipdnn.onnx.test.Halves"(%0#1) : (!torch.vtensor<[4,6],bf16>) -> !h
  return %0#0, %0#1, %1 : !h, !torch.vtensor<[4,6],bf16>, !h
}

// Operators that no function stands for stay.

// CHECK-LABEL: func.func @others
// CHECK:         torch.operator "hipdnn.onnx.other.Affine"
func.func @others(%x: !torch.vtensor<[4,3],f32>) -> !torch.vtensor<[4,3],f32> {
  %0 = torch.operator "hipdnn.onnx.other.Affine"(%x) : (!torch.vtensor<[4,3],f32>) -> !torch.vtensor<[4,3],f32>
  return %0 : !torch.vtensor<[4,3],f32>
}
