// RUN: hipdnn-opt %s --hipdnn-canonicalize-torch | filecheck %s

!x = !torch.vtensor<[2,3,5],f32>
!y = !torch.vtensor<[2,3],f32>
!kept = !torch.vtensor<[2,3,1],f32>

// A sum of rows that its reader makes a column: the column is what the sum returns.

// CHECK-LABEL: func.func @sum
// CHECK:         %[[S:.+]] = torch.aten.sum.dim_IntList %arg0, %{{.+}}, %true, %{{.+}} -> !torch.vtensor<[2,3,1],f32>
// CHECK-NEXT:    return %[[S]]
func.func @sum(%x: !x) -> !kept {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %axis = torch.constant.int -1
  %axes = torch.prim.ListConstruct %axis : (!torch.int) -> !torch.list<int>
  %y = torch.aten.sum.dim_IntList %x, %axes, %false, %none : !x, !torch.list<int>, !torch.bool, !torch.none -> !y
  %kept = torch.aten.unsqueeze %y, %axis : !y, !torch.int -> !kept
  return %kept : !kept
}

// One of the readers wants the rows: nothing changes. Nor does it where the dim comes elsewhere.

// CHECK-LABEL: func.func @two_readers
// CHECK:         torch.aten.amax %arg0, %{{.+}}, %false
// CHECK:         torch.aten.unsqueeze
func.func @two_readers(%x: !x) -> (!y, !kept) {
  %false = torch.constant.bool false
  %axis = torch.constant.int 2
  %axes = torch.prim.ListConstruct %axis : (!torch.int) -> !torch.list<int>
  %y = torch.aten.amax %x, %axes, %false : !x, !torch.list<int>, !torch.bool -> !y
  %kept = torch.aten.unsqueeze %y, %axis : !y, !torch.int -> !kept
  return %y, %kept : !y, !kept
}

// CHECK-LABEL: func.func @elsewhere
// CHECK:         torch.aten.amax %arg0, %{{.+}}, %false
func.func @elsewhere(%x: !x) -> !torch.vtensor<[2,1,3],f32> {
  %false = torch.constant.bool false
  %axis = torch.constant.int 2
  %place = torch.constant.int 1
  %axes = torch.prim.ListConstruct %axis : (!torch.int) -> !torch.list<int>
  %y = torch.aten.amax %x, %axes, %false : !x, !torch.list<int>, !torch.bool -> !y
  %z = torch.aten.unsqueeze %y, %place : !y, !torch.int -> !torch.vtensor<[2,1,3],f32>
  return %z : !torch.vtensor<[2,1,3],f32>
}
