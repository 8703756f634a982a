// RUN: hipdnn-opt %s --hipdnn-canonicalize-torch | filecheck %s

!x = !torch.vtensor<[2,3],f32>
!row = !torch.vtensor<[1,3],f32>
!l = !torch.list<int>

// Readers that broadcast by themselves read the small tensor.

// CHECK-LABEL: func.func @absorbed
// CHECK-NOT:     torch.aten.expand
// CHECK:         torch.aten.mul.Tensor %arg0, %arg1 : !torch.vtensor<[2,3],f32>, !torch.vtensor<[1,3],f32>
func.func @absorbed(%x: !x, %row: !row) -> !x {
  %false = torch.constant.bool false
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %dims = torch.prim.ListConstruct %2, %3 : (!torch.int, !torch.int) -> !l
  %wide = torch.aten.expand %row, %dims, %false : !row, !l, !torch.bool -> !x
  %y = torch.aten.mul.Tensor %x, %wide : !x, !x -> !x
  return %y : !x
}

// The reader's shape comes from the broadcast, or the reader does not broadcast: it stays.

// CHECK-LABEL: func.func @kept
// CHECK:         %[[E:.+]] = torch.aten.expand %arg0
// CHECK:         torch.aten.mul.Tensor %[[E]], %arg0
// CHECK:         %[[F:.+]] = torch.aten.expand %arg0
// CHECK:         torch.aten.softmax.int %[[F]]
func.func @kept(%row: !row) -> (!x, !x) {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %dims = torch.prim.ListConstruct %2, %3 : (!torch.int, !torch.int) -> !l
  %wide = torch.aten.expand %row, %dims, %false : !row, !l, !torch.bool -> !x
  %y = torch.aten.mul.Tensor %wide, %row : !x, !row -> !x
  %again = torch.aten.expand %row, %dims, %false : !row, !l, !torch.bool -> !x
  %z = torch.aten.softmax.int %again, %1, %none : !x, !torch.int, !torch.none -> !x
  return %y, %z : !x, !x
}

// -----

// A constant of one element needs no dims beside others, but where they make the result's.

// CHECK-LABEL: func.func @number
// CHECK-DAG:     %[[PLAIN:.+]] = torch.vtensor.literal(dense<5.000000e-01> : tensor<f32>)
// CHECK-DAG:     %[[KEPT:.+]] = torch.vtensor.literal(dense<2.000000e+00> : tensor<1x1x1xf32>)
// CHECK:         torch.aten.mul.Tensor %arg0, %[[PLAIN]]
// CHECK:         torch.aten.mul.Tensor %{{.+}}, %[[KEPT]]
func.func @number(%x: !torch.vtensor<[2,4],f32>) -> !torch.vtensor<[1,2,4],f32> {
  %0 = torch.vtensor.literal(dense<0.5> : tensor<1xf32>) : !torch.vtensor<[1],f32>
  %1 = torch.vtensor.literal(dense<2.0> : tensor<1x1x1xf32>) : !torch.vtensor<[1,1,1],f32>
  %2 = torch.aten.mul.Tensor %x, %0 : !torch.vtensor<[2,4],f32>, !torch.vtensor<[1],f32> -> !torch.vtensor<[2,4],f32>
  %3 = torch.aten.mul.Tensor %2, %1 : !torch.vtensor<[2,4],f32>, !torch.vtensor<[1,1,1],f32> -> !torch.vtensor<[1,2,4],f32>
  return %3 : !torch.vtensor<[1,2,4],f32>
}
