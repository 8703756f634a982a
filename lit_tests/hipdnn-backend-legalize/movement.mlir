// RUN: hipdnn-opt %s --hipdnn-backend-legalize --split-input-file | filecheck %s

// CHECK-LABEL: func.func @reshape
// CHECK:         %[[C:.+]] = tensor.collapse_shape %arg0 {{\[\[}}0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
// CHECK:         tensor.expand_shape %[[C]] {{\[\[}}0], [1, 2]] output_shape [6, 2, 2] : tensor<6x4xf32> into tensor<6x2x2xf32>
func.func @reshape(%x: !torch.vtensor<[2,3,4],f32>) -> !torch.vtensor<[6,2,2],f32> {
  %6 = torch.constant.int 6
  %2 = torch.constant.int 2
  %dims = torch.prim.ListConstruct %6, %2, %2 : (!torch.int, !torch.int, !torch.int) -> !torch.list<int>
  %y = torch.aten.view %x, %dims : !torch.vtensor<[2,3,4],f32>, !torch.list<int> -> !torch.vtensor<[6,2,2],f32>
  return %y : !torch.vtensor<[6,2,2],f32>
}

// -----

// CHECK-LABEL: func.func @slice_and_select
// CHECK:         tensor.extract_slice %arg0[1, 0] [2, 6] [2, 1] : tensor<4x6xf32> to tensor<2x6xf32>
// CHECK:         %[[ROW:.+]] = tensor.extract_slice %arg0[3, 0] [1, 6] [1, 1] : tensor<4x6xf32> to tensor<1x6xf32>
// CHECK:         tensor.collapse_shape %[[ROW]] {{.+}} into tensor<6xf32>
!x = !torch.vtensor<[4,6],f32>
func.func @slice_and_select(%x: !x) -> (!torch.vtensor<[2,6],f32>, !torch.vtensor<[6],f32>) {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %99 = torch.constant.int 99
  %minus1 = torch.constant.int -1
  %y = torch.aten.slice.Tensor %x, %0, %1, %99, %2 : !x, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[2,6],f32>
  %z = torch.aten.select.int %x, %0, %minus1 : !x, !torch.int, !torch.int -> !torch.vtensor<[6],f32>
  return %y, %z : !torch.vtensor<[2,6],f32>, !torch.vtensor<[6],f32>
}

// -----

// CHECK-LABEL: func.func @transpose
// CHECK:         %[[E:.+]] = tensor.empty() : tensor<4x2x3xf32>
// CHECK:         linalg.transpose ins(%arg0 : tensor<2x3x4xf32>) outs(%[[E]] : tensor<4x2x3xf32>) permutation = [2, 0, 1]
!x = !torch.vtensor<[2,3,4],f32>
func.func @transpose(%x: !x) -> !torch.vtensor<[4,2,3],f32> {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %order = torch.prim.ListConstruct %2, %0, %1 : (!torch.int, !torch.int, !torch.int) -> !torch.list<int>
  %y = torch.aten.permute %x, %order : !x, !torch.list<int> -> !torch.vtensor<[4,2,3],f32>
  return %y : !torch.vtensor<[4,2,3],f32>
}

// -----

// CHECK-LABEL: func.func @concat
// CHECK:         %[[BUFFER:.+]] = memref.alloc() : memref<2x7xf32>
// CHECK:         %[[WHOLE:.+]] = bufferization.to_tensor %[[BUFFER]] restrict writable
// CHECK:         %[[FIRST:.+]] = tensor.insert_slice %arg0 into %[[WHOLE]][0, 0] [2, 3] [1, 1]
// CHECK:         tensor.insert_slice %arg1 into %[[FIRST]][0, 3] [2, 4] [1, 1]
!a = !torch.vtensor<[2,3],f32>
!b = !torch.vtensor<[2,4],f32>
!y = !torch.vtensor<[2,7],f32>
func.func @concat(%a: !a, %b: !b) -> !y {
  %minus1 = torch.constant.int -1
  %parts = torch.prim.ListConstruct %a, %b : (!a, !b) -> !torch.list<vtensor>
  %y = torch.aten.cat %parts, %minus1 : !torch.list<vtensor>, !torch.int -> !y
  return %y : !y
}

// -----

// A border is a fill, with the operand inserted.

// CHECK-LABEL: func.func @pad
// CHECK:         %[[BUFFER:.+]] = memref.alloc() : memref<3x6xi32>
// CHECK:         hipdnn.graph ins() outs(%[[BUFFER]]) ({
// CHECK-NEXT:      %[[FILL:.+]] = torch.vtensor.literal(dense<7> : tensor<3x6xsi32>)
// CHECK-NEXT:      hipdnn.yield %[[FILL]] :
// CHECK:         tensor.insert_slice %arg0 into %{{.+}}[1, 2] [2, 3] [1, 1]
!x = !torch.vtensor<[2,3],si32>
!y = !torch.vtensor<[3,6],si32>
func.func @pad(%x: !x) -> !y {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %7 = torch.constant.int 7
  %border = torch.prim.ListConstruct %2, %1, %1, %0 : (!torch.int, !torch.int, !torch.int, !torch.int) -> !torch.list<int>
  %y = torch.aten.constant_pad_nd %x, %border, %7 : !x, !torch.list<int>, !torch.int -> !y
  return %y : !y
}
