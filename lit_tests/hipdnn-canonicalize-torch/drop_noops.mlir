// RUN: hipdnn-opt %s --hipdnn-canonicalize-torch --split-input-file | filecheck %s

// Ops that return their operand unchanged vanish.

// CHECK-LABEL: func.func @noops
// CHECK-NEXT:    %[[R:.+]] = torch.aten.relu %arg0
// CHECK-NEXT:    return %[[R]]
!x = !torch.vtensor<[2,3],f32>
!i = !torch.int
func.func @noops(%x: !x) -> !x {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %f32 = torch.constant.int 6
  %order = torch.prim.ListConstruct %0, %1 : (!i, !i) -> !torch.list<int>
  %dims = torch.prim.ListConstruct %2, %3 : (!i, !i) -> !torch.list<int>
  %a = torch.aten.clone %x, %none : !x, !torch.none -> !x
  %b = torch.aten.to.dtype %a, %f32, %false, %false, %none : !x, !i, !torch.bool, !torch.bool, !torch.none -> !x
  %c = torch.aten.view %b, %dims : !x, !torch.list<int> -> !x
  %d = torch.aten.permute %c, %order : !x, !torch.list<int> -> !x
  %e = torch.aten.slice.Tensor %d, %1, %0, %3, %1 : !x, !i, !i, !i, !i -> !x
  %f = torch.aten.expand %e, %dims, %false : !x, !torch.list<int>, !torch.bool -> !x
  %g = torch.aten.relu %f : !x -> !x
  return %g : !x
}

// -----

// What changes dtype, order of equal sizes, or values stays.

// CHECK-LABEL: func.func @kept
// CHECK:         torch.aten.to.dtype %arg0
// CHECK:         torch.aten.permute %arg1
// CHECK:         torch.aten.roll %arg1
!f = !torch.vtensor<[3,3],f32>
!h = !torch.vtensor<[3,3],f16>
!i = !torch.int
func.func @kept(%h: !h, %x: !f) -> (!f, !f, !f) {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %f32 = torch.constant.int 6
  %order = torch.prim.ListConstruct %1, %0 : (!i, !i) -> !torch.list<int>
  %zero = torch.prim.ListConstruct %0 : (!i) -> !torch.list<int>
  %one = torch.prim.ListConstruct %1 : (!i) -> !torch.list<int>
  %a = torch.aten.to.dtype %h, %f32, %false, %false, %none : !h, !i, !torch.bool, !torch.bool, !torch.none -> !f
  %b = torch.aten.permute %x, %order : !f, !torch.list<int> -> !f
  %c = torch.aten.roll %x, %one, %zero : !f, !torch.list<int>, !torch.list<int> -> !f
  return %a, %b, %c : !f, !f, !f
}

// -----

// A gather from dims of one takes what is there; one from more, or of several, takes what data says.

// CHECK-LABEL: func.func @gathers
// CHECK-NEXT:    %[[G:.+]] = torch.operator "hipdnn.onnx.GatherND"(%arg1, %arg2)
// CHECK-NEXT:    %[[H:.+]] = torch.operator "hipdnn.onnx.GatherND"(%arg0, %arg3)
// CHECK-NEXT:    return %arg0, %[[G]], %[[H]]
!one = !torch.vtensor<[2,1,4],f32>
!more = !torch.vtensor<[2,3,4],f32>
!index = !torch.vtensor<[2,1,1],si64>
!indices = !torch.vtensor<[2,3,1],si64>
func.func @gathers(%one: !one, %more: !more, %index: !index, %indices: !indices) -> (!one, !one, !more) {
  %a = torch.operator "hipdnn.onnx.GatherND"(%one, %index) {torch.onnx.batch_dims = 1 : si64} : (!one, !index) -> !one
  %b = torch.operator "hipdnn.onnx.GatherND"(%more, %index) {torch.onnx.batch_dims = 1 : si64} : (!more, !index) -> !one
  %c = torch.operator "hipdnn.onnx.GatherND"(%one, %indices) {torch.onnx.batch_dims = 1 : si64} : (!one, !indices) -> !more
  return %a, %b, %c : !one, !one, !more
}

// -----

// Once each.

// CHECK-LABEL: func.func @repeated
// CHECK-NEXT:    return %arg0
func.func @repeated(%x: !torch.vtensor<[2,3],f32>) -> !torch.vtensor<[2,3],f32> {
  %1 = torch.constant.int 1
  %times = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !torch.list<int>
  %y = torch.aten.tile %x, %times : !torch.vtensor<[2,3],f32>, !torch.list<int> -> !torch.vtensor<[2,3],f32>
  return %y : !torch.vtensor<[2,3],f32>
}
