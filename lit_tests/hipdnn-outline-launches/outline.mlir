// RUN: hipdnn-opt %s --hipdnn-outline-launches --split-input-file | filecheck %s

// Elementwise ops join one region, whatever their dtypes; a value that something else reads leaves it.

// CHECK-LABEL: func.func @chain
// CHECK:         %[[R:.+]]:2 = hipdnn.launch ins(%arg0, %arg1) ({
// CHECK-NEXT:    ^bb0(%[[A:.+]]: !torch.vtensor<[4,8],si32>, %[[B:.+]]: !torch.vtensor<[8],si32>):
// CHECK-NEXT:      %[[AND:.+]] = torch.aten.bitwise_and.Tensor %[[A]], %[[B]]
// CHECK-NEXT:      %[[NOT:.+]] = torch.aten.bitwise_not %[[AND]]
// CHECK:           %[[CAST:.+]] = torch.aten.to.dtype %[[NOT]]
// CHECK-NEXT:      hipdnn.yield %[[NOT]], %[[CAST]] :
// CHECK:         return %[[R]]#0, %[[R]]#1
!x = !torch.vtensor<[4,8],si32>
!h = !torch.vtensor<[4,8],si16>
func.func @chain(%x: !x, %m: !torch.vtensor<[8],si32>) -> (!x, !h) {
  %false = torch.constant.bool false
  %none = torch.constant.none
  %short = torch.constant.int 2
  %0 = torch.aten.bitwise_and.Tensor %x, %m : !x, !torch.vtensor<[8],si32> -> !x
  %1 = torch.aten.bitwise_not %0 : !x -> !x
  %2 = torch.aten.to.dtype %1, %short, %false, %false, %none : !x, !torch.int, !torch.bool, !torch.bool, !torch.none -> !h
  return %1, %2 : !x, !h
}

// -----

// A kernel of its own shares its region with nothing, and the number it reads is an operand.

// CHECK-LABEL: func.func @gather
// CHECK:         %[[G:.+]] = hipdnn.launch ins(%arg0, %arg1)
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      torch.operator "hipdnn.onnx.Gather"
// CHECK-NEXT:      hipdnn.yield
// CHECK:         %[[N:.+]] = hipdnn.launch ins(%[[G]])
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      torch.aten.bitwise_not
func.func @gather(%t: !torch.vtensor<[9,4],si32>, %i: !torch.vtensor<[2,3],si64>) -> !torch.vtensor<[2,3,4],si32> {
  %0 = torch.operator "hipdnn.onnx.Gather"(%t, %i) {torch.onnx.axis = 0 : si64} : (!torch.vtensor<[9,4],si32>, !torch.vtensor<[2,3],si64>) -> !torch.vtensor<[2,3,4],si32>
  %1 = torch.aten.bitwise_not %0 : !torch.vtensor<[2,3,4],si32> -> !torch.vtensor<[2,3,4],si32>
  return %1 : !torch.vtensor<[2,3,4],si32>
}

// -----

// What broadcasts inside a region is computed again where it is used; read outside as well, it is a region of its own.

// CHECK-LABEL: func.func @broadcast
// CHECK:         %[[ROW:.+]] = hipdnn.launch ins(%arg0)
// CHECK:         %[[OUT:.+]] = hipdnn.launch ins(%arg1, %[[ROW]])
// CHECK:         return %[[ROW]], %[[OUT]]
!row = !torch.vtensor<[8],si32>
!all = !torch.vtensor<[4,8],si32>
func.func @broadcast(%r: !row, %x: !all) -> (!row, !all) {
  %0 = torch.aten.bitwise_not %r : !row -> !row
  %1 = torch.aten.bitwise_and.Tensor %x, %0 : !all, !row -> !all
  return %0, %1 : !row, !all
}
