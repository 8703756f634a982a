// RUN: hipdnn-opt %s --hipdnn-offload | filecheck %s
// RUN: not hipdnn-opt %s --hipdnn-offload=target=elsewhere 2>&1 | filecheck %s --check-prefix=TARGET

// TARGET: hipdnn-opt: error: unknown target 'elsewhere': expected one of host

!x = !torch.vtensor<[4,8],f32>
!i = !torch.vtensor<[4,4],si8>
!open = !torch.vtensor<[?,8],f32>
!pool = !torch.vtensor<[1,2,4,4],f32>
!pooled = !torch.vtensor<[1,2,2,2],f32>
!at = !torch.vtensor<[1,2,2,2],si64>

// What no row or no engine takes, data movement, sizes that are not known, and results that hipDNN does not produce stay outside graphs.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     hipdnn.graph
// CHECK:         return
func.func @main(%x: !x, %i: !i, %open: !open, %pool: !pool) -> (!x, !x, !i, !open, !pooled, !at) {
  %false = torch.constant.bool false
  %none = torch.constant.none
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %4 = torch.constant.int 4
  %8 = torch.constant.int 8
  %dims = torch.prim.ListConstruct %8, %4 : (!torch.int, !torch.int) -> !torch.list<int>
  %back = torch.prim.ListConstruct %4, %8 : (!torch.int, !torch.int) -> !torch.list<int>
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !torch.list<int>
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !torch.list<int>
  %twos = torch.prim.ListConstruct %2, %2 : (!torch.int, !torch.int) -> !torch.list<int>
  %a = torch.aten.cumsum %x, %1, %none : !x, !torch.int, !torch.none -> !x
  %b = torch.aten.view %x, %dims : !x, !torch.list<int> -> !torch.vtensor<[8,4],f32>
  %c = torch.aten.view %b, %back : !torch.vtensor<[8,4],f32>, !torch.list<int> -> !x
  %d = torch.aten.mm %i, %i : !i, !i -> !i
  %e = torch.aten.relu %open : !open -> !open
  %f, %g = torch.aten.max_pool2d_with_indices %pool, %twos, %twos, %zeros, %ones, %false : !pool, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool -> !pooled, !at
  return %a, %c, %d, %e, %f, %g : !x, !x, !i, !open, !pooled, !at
}
