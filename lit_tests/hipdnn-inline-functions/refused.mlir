// RUN: env PYTHONPATH=%S not hipdnn-opt %s --extension functions --hipdnn-inline-functions 2>&1 | filecheck %s
// Every node that does not fit is named, with what the function takes or where in its text it cannot go on.

// CHECK:      test.Affine at 'dtype': input 0 is f16[4x3], @affine of {{.*}}functions.mlir.inc takes f32 [dtype]
// CHECK-SAME: test.Affine at 'rank': input 0 is f32[3], @affine of {{.*}}functions.mlir.inc takes [?,?] [shape]
// CHECK-SAME: test.Linear at 'count': @linear of {{.*}}functions.mlir.inc takes 3 tensors, the node has 1 [operands]
// CHECK-SAME: test.Groups at 'lacks': @groups of {{.*}}functions.mlir.inc needs the attribute 'count', which the node lacks [attribute]
// CHECK-SAME: test.Groups at 'kind': attribute 'count' has the value 2.5, @groups of {{.*}}functions.mlir.inc takes a !torch.int [attribute]
// CHECK-SAME: test.Affine at 'extra': @affine of {{.*}}functions.mlir.inc has no argument for attribute 'other' [attribute]
// CHECK-SAME: test.Affine at 'results': the function gives 1 results, the node has 2 [results]
// CHECK-SAME: test.Affine at 'declared': the function gives f32[4x3] as output 0, the model declares f32[4x4] [results]
// CHECK-SAME: test.Nonzero at 'no_row': torch.aten.nonzero in line {{[0-9]+}} of {{.*}}functions.mlir.inc: no hipDNN operation or data movement expresses it [no-row]
// CHECK-SAME: test.BySize at 'by_size': torch.aten.gt.int in line {{[0-9]+}} decides by sizes or data [control-flow]
!t = !torch.vtensor<[4,3],f32>
!h = !torch.vtensor<[4,3],f16>
!v = !torch.vtensor<[3],f32>
!w = !torch.vtensor<[4,4],f32>
!i = !torch.vtensor<[?,2],si64>
func.func @main(%x: !t, %h: !h, %v: !v) {
  %0 = torch.operator "hipdnn.onnx.test.Affine"(%h) : (!h) -> !h loc("dtype")
  %1 = torch.operator "hipdnn.onnx.test.Affine"(%v) : (!v) -> !v loc("rank")
  %2 = torch.operator "hipdnn.onnx.test.Linear"(%x) : (!t) -> !t loc("count")
  %3 = torch.operator "hipdnn.onnx.test.Groups"(%x) : (!t) -> !t loc("lacks")
  %4 = torch.operator "hipdnn.onnx.test.Groups"(%x) {torch.onnx.count = 2.5 : f32} : (!t) -> !t loc("kind")
  %5 = torch.operator "hipdnn.onnx.test.Affine"(%x) {torch.onnx.other = 1 : si64} : (!t) -> !t loc("extra")
  %6:2 = torch.operator "hipdnn.onnx.test.Affine"(%x) : (!t) -> (!t, !t) loc("results")
  %7 = torch.operator "hipdnn.onnx.test.Affine"(%x) : (!t) -> !w loc("declared")
  %8 = torch.operator "hipdnn.onnx.test.Nonzero"(%x) : (!t) -> !i loc("no_row")
  %9 = torch.operator "hipdnn.onnx.test.BySize"(%x) : (!t) -> !t loc("by_size")
  return
}
