// RUN: hipdnn-opt %s --hipdnn-gather-rows=target=sm_90 | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-gather-rows | filecheck %s --check-prefix=HOST

!l = !torch.list<int>
!list = !torch.list<vtensor>
!x = !torch.vtensor<[2,4,96],f32>
!a = !torch.vtensor<[2,3,96],f32>
!b = !torch.vtensor<[2,1,96],f32>
!n = !torch.vtensor<[2,4,2],f32>
!m = !torch.vtensor<[2,3,2],f32>
!o = !torch.vtensor<[2,1,2],f32>

// A shift, and a transpose of the rows behind it: both images have one order.

// CHECK-LABEL: func.func @shifted
// CHECK:         %[[ORDER:.+]] = torch.vtensor.literal(dense<[1, 3, 2, 0]> : tensor<4xsi64>)
// CHECK:         %[[ROWS:.+]] = torch.aten.index_select %arg0, %{{.+}}, %[[ORDER]] : {{.+}} -> !torch.vtensor<[2,4,96],f32>
// CHECK:         %[[SEEN:.+]] = torch.aten.view %[[ROWS]], %{{.+}} -> !torch.vtensor<[2,2,2,96],f32>
// CHECK-NOT:     torch.aten.slice
// CHECK-NOT:     torch.aten.cat
// CHECK:         torch.aten.relu %[[SEEN]]
// HOST:          torch.aten.cat
func.func @shifted(%x: !x) -> !torch.vtensor<[2,2,2,96],f32> {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %4 = torch.constant.int 4
  %96 = torch.constant.int 96
  %tail = torch.aten.slice.Tensor %x, %1, %1, %4, %1 : !x, !torch.int, !torch.int, !torch.int, !torch.int -> !a
  %head = torch.aten.slice.Tensor %x, %1, %0, %1, %1 : !x, !torch.int, !torch.int, !torch.int, !torch.int -> !b
  %both = torch.prim.ListConstruct %tail, %head : (!a, !b) -> !list
  %y = torch.aten.cat %both, %1 : !list, !torch.int -> !x
  %dims = torch.prim.ListConstruct %2, %2, %2, %96 : (!torch.int, !torch.int, !torch.int, !torch.int) -> !l
  %v = torch.aten.view %y, %dims : !x, !l -> !torch.vtensor<[2,2,2,96],f32>
  %order = torch.prim.ListConstruct %0, %2, %1, %3 : (!torch.int, !torch.int, !torch.int, !torch.int) -> !l
  %t = torch.aten.permute %v, %order : !torch.vtensor<[2,2,2,96],f32>, !l -> !torch.vtensor<[2,2,2,96],f32>
  %z = torch.aten.relu %t : !torch.vtensor<[2,2,2,96],f32> -> !torch.vtensor<[2,2,2,96],f32>
  return %z : !torch.vtensor<[2,2,2,96],f32>
}

// Rows of 8 bytes, and parts of two values, stay.

// CHECK-LABEL: func.func @kept
// CHECK-COUNT-2: torch.aten.cat
func.func @kept(%x: !n, %y: !n) -> (!n, !n) {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %4 = torch.constant.int 4
  %tail = torch.aten.slice.Tensor %x, %1, %1, %4, %1 : !n, !torch.int, !torch.int, !torch.int, !torch.int -> !m
  %head = torch.aten.slice.Tensor %x, %1, %0, %1, %1 : !n, !torch.int, !torch.int, !torch.int, !torch.int -> !o
  %other = torch.aten.slice.Tensor %y, %1, %0, %1, %1 : !n, !torch.int, !torch.int, !torch.int, !torch.int -> !o
  %both = torch.prim.ListConstruct %tail, %head : (!m, !o) -> !list
  %one = torch.aten.cat %both, %1 : !list, !torch.int -> !n
  %mixed = torch.prim.ListConstruct %tail, %other : (!m, !o) -> !list
  %two = torch.aten.cat %mixed, %1 : !list, !torch.int -> !n
  return %one, %two : !n, !n
}
