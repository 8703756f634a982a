// RUN: hipdnn-opt %s --hipdnn-canonicalize-torch | filecheck %s

!x = !torch.vtensor<[2,3],f32>
!b = !torch.vtensor<[3],f32>

// The factor becomes an op of its own, in the second operand's shape: of a constant it is evaluated at compile time.

// CHECK-LABEL: func.func @add_with_factor
// CHECK-DAG:     %[[TWO:.+]] = torch.constant.float 2.0
// CHECK:         %[[S:.+]] = torch.aten.mul.Scalar %arg1, %[[TWO]] : !torch.vtensor<[3],f32>, !torch.float -> !torch.vtensor<[3],f32>
// CHECK:         %[[ONE:.+]] = torch.constant.int 1
// CHECK:         torch.aten.add.Tensor %arg0, %[[S]], %[[ONE]]
func.func @add_with_factor(%x: !x, %b: !b) -> !x {
  %alpha = torch.constant.float 2.0
  %y = torch.aten.add.Tensor %x, %b, %alpha : !x, !b, !torch.float -> !x
  return %y : !x
}

// CHECK-LABEL: func.func @sub_with_factor
// CHECK:         %[[S:.+]] = torch.aten.mul.Scalar %arg1
// CHECK:         torch.aten.sub.Tensor %arg0, %[[S]]
func.func @sub_with_factor(%x: !x, %b: !b) -> !x {
  %alpha = torch.constant.int 3
  %y = torch.aten.sub.Tensor %x, %b, %alpha : !x, !b, !torch.int -> !x
  return %y : !x
}

// A factor of one is none; one that is not known stays.

// CHECK-LABEL: func.func @without_factor
// CHECK-NOT:     mul
// CHECK:         torch.aten.add.Tensor %arg0, %arg1, %int1
// CHECK:         torch.aten.add.Tensor %arg0, %arg1, %arg2
// CHECK-NOT:     mul
// CHECK:         return
func.func @without_factor(%x: !x, %b: !b, %alpha: !torch.int) -> (!x, !x) {
  %1 = torch.constant.int 1
  %y = torch.aten.add.Tensor %x, %b, %1 : !x, !b, !torch.int -> !x
  %z = torch.aten.add.Tensor %x, %b, %alpha : !x, !b, !torch.int -> !x
  return %y, %z : !x, !x
}
