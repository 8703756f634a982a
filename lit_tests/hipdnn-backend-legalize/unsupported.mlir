// RUN: not hipdnn-opt %s --hipdnn-backend-legalize 2>&1 | filecheck %s

// An op that is neither in a graph nor data movement ends the pass, with the op's name.

// CHECK: torch.aten.cumsum
// CHECK-SAME: [legalize]
!x = !torch.vtensor<[4],f32>
func.func @main(%x: !x) -> !x {
  %0 = torch.constant.int 0
  %none = torch.constant.none
  %y = torch.aten.cumsum %x, %0, %none : !x, !torch.int, !torch.none -> !x
  return %y : !x
}
