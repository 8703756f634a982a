// RUN: hipdnn-opt %s --hipdnn-canonicalize-torch=target=sm_90 | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-canonicalize-torch | filecheck %s --check-prefix=HOST

// A border of nothing vanishes where no other size is compiled; a border stays.

// CHECK-LABEL: func.func @borders
// CHECK:         %[[WIDE:.+]] = torch.aten.constant_pad_nd %arg0, {{.+}} -> !torch.vtensor<[2,4],f32>
// CHECK-NEXT:    return %arg0, %[[WIDE]]

// HOST-LABEL:  func.func @borders
// HOST-COUNT-2:  torch.aten.constant_pad_nd %arg0
!x = !torch.vtensor<[2,3],f32>
!wide = !torch.vtensor<[2,4],f32>
!i = !torch.int
func.func @borders(%x: !x) -> (!x, !wide) {
  %zero = torch.constant.float 0.0
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %nothing = torch.prim.ListConstruct %0, %0 : (!i, !i) -> !torch.list<int>
  %border = torch.prim.ListConstruct %0, %1 : (!i, !i) -> !torch.list<int>
  %a = torch.aten.constant_pad_nd %x, %nothing, %zero : !x, !torch.list<int>, !torch.float -> !x
  %b = torch.aten.constant_pad_nd %x, %border, %zero : !x, !torch.list<int>, !torch.float -> !wide
  return %a, %b : !x, !wide
}
