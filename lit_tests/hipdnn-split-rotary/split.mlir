// RUN: hipdnn-opt %s --hipdnn-split-rotary --canonicalize --split-input-file | filecheck %s

// Both halves are computed from slices and joined.

// CHECK-LABEL: func.func @rotary
// CHECK-DAG:     %[[A:.+]] = torch.aten.slice.Tensor %arg0, %int3, %int0, %int4
// CHECK-DAG:     %[[B:.+]] = torch.aten.slice.Tensor %arg0, %int3, %int4, %int8
// CHECK-DAG:     %[[COS_A:.+]] = torch.aten.slice.Tensor %arg1, %int2, %int0, %int4
// CHECK-DAG:     %[[COS_B:.+]] = torch.aten.slice.Tensor %arg1, %int2, %int4, %int8
// CHECK-DAG:     %[[SIN_A:.+]] = torch.aten.slice.Tensor %arg2, %int2, %int0, %int4
// CHECK-DAG:     %[[SIN_B:.+]] = torch.aten.slice.Tensor %arg2, %int2, %int4, %int8
// CHECK:         %[[AC:.+]] = torch.aten.mul.Tensor %[[A]], %[[COS_A]]
// CHECK:         %[[BS:.+]] = torch.aten.mul.Tensor %[[B]], %[[SIN_A]]
// CHECK:         %[[FIRST:.+]] = torch.aten.sub.Tensor %[[AC]], %[[BS]]
// CHECK:         %[[BC:.+]] = torch.aten.mul.Tensor %[[B]], %[[COS_B]]
// CHECK:         %[[AS:.+]] = torch.aten.mul.Tensor %[[A]], %[[SIN_B]]
// CHECK:         %[[SECOND:.+]] = torch.aten.add.Tensor %[[BC]], %[[AS]]
// CHECK:         %[[LIST:.+]] = torch.prim.ListConstruct %[[FIRST]], %[[SECOND]]
// CHECK:         torch.aten.cat %[[LIST]], %int3
// CHECK-NOT:     torch.aten.neg
!x = !torch.vtensor<[2,4,3,8],f32>
!half = !torch.vtensor<[2,4,3,4],f32>
!turn = !torch.vtensor<[1,3,8],f32>
!i = !torch.int
func.func @rotary(%x: !x, %cos: !turn, %sin: !turn) -> !x {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %3 = torch.constant.int 3
  %4 = torch.constant.int 4
  %-1 = torch.constant.int -1
  %end = torch.constant.int 9223372036854775807
  %a = torch.aten.slice.Tensor %x, %3, %4, %end, %1 : !x, !i, !i, !i, !i -> !half
  %b = torch.aten.neg %a : !half -> !half
  %c = torch.aten.slice.Tensor %x, %3, %0, %4, %1 : !x, !i, !i, !i, !i -> !half
  %d = torch.prim.ListConstruct %b, %c : (!half, !half) -> !torch.list<vtensor>
  %e = torch.aten.cat %d, %-1 : !torch.list<vtensor>, !i -> !x
  %f = torch.aten.mul.Tensor %e, %sin : !x, !turn -> !x
  %g = torch.aten.mul.Tensor %cos, %x : !turn, !x -> !x
  %h = torch.aten.add.Tensor %f, %g, %1 : !x, !x, !i -> !x
  return %h : !x
}

// -----

// Halves that are not negated, of another tensor, or of another dim are no rotation.

// CHECK-LABEL: func.func @kept
// CHECK-COUNT-3: torch.aten.cat
// CHECK-NOT:     torch.aten.sub
!x = !torch.vtensor<[4,8],f32>
!half = !torch.vtensor<[4,4],f32>
!rows = !torch.vtensor<[2,8],f32>
!i = !torch.int
func.func @kept(%x: !x, %y: !x, %cos: !x, %sin: !x) -> (!x, !x, !x) {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %4 = torch.constant.int 4
  %8 = torch.constant.int 8
  %a = torch.aten.slice.Tensor %x, %1, %4, %8, %1 : !x, !i, !i, !i, !i -> !half
  %b = torch.aten.slice.Tensor %x, %1, %0, %4, %1 : !x, !i, !i, !i, !i -> !half
  %c = torch.aten.slice.Tensor %y, %1, %0, %4, %1 : !x, !i, !i, !i, !i -> !half
  %n = torch.aten.neg %a : !half -> !half
  %xc = torch.aten.mul.Tensor %x, %cos : !x, !x -> !x
  %l0 = torch.prim.ListConstruct %a, %b : (!half, !half) -> !torch.list<vtensor>
  %j0 = torch.aten.cat %l0, %1 : !torch.list<vtensor>, !i -> !x
  %p0 = torch.aten.mul.Tensor %j0, %sin : !x, !x -> !x
  %r0 = torch.aten.add.Tensor %xc, %p0, %1 : !x, !x, !i -> !x
  %l1 = torch.prim.ListConstruct %n, %c : (!half, !half) -> !torch.list<vtensor>
  %j1 = torch.aten.cat %l1, %1 : !torch.list<vtensor>, !i -> !x
  %p1 = torch.aten.mul.Tensor %j1, %sin : !x, !x -> !x
  %r1 = torch.aten.add.Tensor %xc, %p1, %1 : !x, !x, !i -> !x
  %u = torch.aten.slice.Tensor %x, %0, %2, %4, %1 : !x, !i, !i, !i, !i -> !rows
  %v = torch.aten.slice.Tensor %x, %0, %0, %2, %1 : !x, !i, !i, !i, !i -> !rows
  %w = torch.aten.neg %u : !rows -> !rows
  %l2 = torch.prim.ListConstruct %w, %v : (!rows, !rows) -> !torch.list<vtensor>
  %j2 = torch.aten.cat %l2, %0 : !torch.list<vtensor>, !i -> !x
  %p2 = torch.aten.mul.Tensor %j2, %sin : !x, !x -> !x
  %r2 = torch.aten.add.Tensor %xc, %p2, %1 : !x, !x, !i -> !x
  return %r0, %r1, %r2 : !x, !x, !x
}

// -----

// Halves of every second element are written between each other.

// CHECK-LABEL: func.func @pairs
// CHECK-DAG:     %[[A:.+]] = torch.aten.slice.Tensor %arg0, %int1, %int0, %int8, %int2
// CHECK-DAG:     %[[B:.+]] = torch.aten.slice.Tensor %arg0, %int1, %int1, %int8, %int2
// CHECK-DAG:     %[[COS_A:.+]] = torch.aten.slice.Tensor %arg1, %int1, %int0, %int8, %int2
// CHECK-DAG:     %[[COS_B:.+]] = torch.aten.slice.Tensor %arg1, %int1, %int1, %int8, %int2
// CHECK-DAG:     torch.aten.mul.Tensor %[[A]], %[[COS_A]]
// CHECK-DAG:     torch.aten.mul.Tensor %[[B]], %[[COS_B]]
// CHECK-DAG:     %[[FIRST:.+]] = torch.aten.sub.Tensor
// CHECK-DAG:     %[[SECOND:.+]] = torch.aten.add.Tensor
// CHECK-DAG:     %[[U:.+]] = torch.aten.view %[[FIRST]]
// CHECK-DAG:     %[[V:.+]] = torch.aten.view %[[SECOND]]
// CHECK:         %[[LIST:.+]] = torch.prim.ListConstruct %[[U]], %[[V]]
// CHECK:         %[[JOIN:.+]] = torch.aten.cat %[[LIST]], %int2
// CHECK:         torch.aten.view %[[JOIN]]
// CHECK-NOT:     torch.aten.neg
!x = !torch.vtensor<[4,8],f32>
!half = !torch.vtensor<[4,4],f32>
!one = !torch.vtensor<[4,4,1],f32>
!two = !torch.vtensor<[4,4,2],f32>
!i = !torch.int
func.func @pairs(%x: !x, %cos: !x, %sin: !x) -> !x {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %4 = torch.constant.int 4
  %8 = torch.constant.int 8
  %a = torch.aten.slice.Tensor %x, %1, %1, %8, %2 : !x, !i, !i, !i, !i -> !half
  %n = torch.aten.neg %a : !half -> !half
  %b = torch.aten.slice.Tensor %x, %1, %0, %8, %2 : !x, !i, !i, !i, !i -> !half
  %u = torch.aten.unsqueeze %n, %2 : !half, !i -> !one
  %v = torch.aten.unsqueeze %b, %2 : !half, !i -> !one
  %l = torch.prim.ListConstruct %u, %v : (!one, !one) -> !torch.list<vtensor>
  %j = torch.aten.cat %l, %2 : !torch.list<vtensor>, !i -> !two
  %d = torch.prim.ListConstruct %4, %8 : (!i, !i) -> !torch.list<int>
  %r = torch.aten.reshape %j, %d : !two, !torch.list<int> -> !x
  %p = torch.aten.mul.Tensor %x, %cos : !x, !x -> !x
  %q = torch.aten.mul.Tensor %r, %sin : !x, !x -> !x
  %s = torch.aten.add.Tensor %p, %q, %1 : !x, !x, !i -> !x
  return %s : !x
}

// -----

// Elements of odd index in front of those of even index, as pairs: no rotation.

// CHECK-LABEL: func.func @other_pairs
// CHECK:         torch.aten.neg
!x = !torch.vtensor<[4,8],f32>
!half = !torch.vtensor<[4,4],f32>
!one = !torch.vtensor<[4,4,1],f32>
!two = !torch.vtensor<[4,4,2],f32>
!i = !torch.int
func.func @other_pairs(%x: !x, %cos: !x, %sin: !x) -> !x {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %4 = torch.constant.int 4
  %8 = torch.constant.int 8
  %a = torch.aten.slice.Tensor %x, %1, %0, %8, %2 : !x, !i, !i, !i, !i -> !half
  %n = torch.aten.neg %a : !half -> !half
  %b = torch.aten.slice.Tensor %x, %1, %1, %8, %2 : !x, !i, !i, !i, !i -> !half
  %u = torch.aten.unsqueeze %n, %2 : !half, !i -> !one
  %v = torch.aten.unsqueeze %b, %2 : !half, !i -> !one
  %l = torch.prim.ListConstruct %u, %v : (!one, !one) -> !torch.list<vtensor>
  %j = torch.aten.cat %l, %2 : !torch.list<vtensor>, !i -> !two
  %d = torch.prim.ListConstruct %4, %8 : (!i, !i) -> !torch.list<int>
  %r = torch.aten.reshape %j, %d : !two, !torch.list<int> -> !x
  %p = torch.aten.mul.Tensor %x, %cos : !x, !x -> !x
  %q = torch.aten.mul.Tensor %r, %sin : !x, !x -> !x
  %s = torch.aten.add.Tensor %p, %q, %1 : !x, !x, !i -> !x
  return %s : !x
}

// -----

// Rows in front that are not rotated are, by 1 and 0, where the tables are constant: the rotated rows need no copy behind them.

// CHECK-LABEL: func.func @kept_rows
// CHECK-DAG:     torch.aten.slice.Tensor %arg0, %int1, %int0, %int4
// CHECK-DAG:     torch.aten.slice.Tensor %arg0, %int1, %int4, %int8
// CHECK-DAG:     %[[COS:.+]] = torch.aten.constant_pad_nd %arg1, %{{.+}}, %float1.0{{.*}} -> !torch.vtensor<[5,8],f32>
// CHECK-DAG:     %[[SIN:.+]] = torch.aten.constant_pad_nd %arg2, %{{.+}}, %float0.0{{.*}} -> !torch.vtensor<[5,8],f32>
// CHECK-DAG:     torch.aten.slice.Tensor %[[COS]]
// CHECK-DAG:     torch.aten.slice.Tensor %[[SIN]]
// CHECK:         %[[OUT:.+]] = torch.aten.cat {{.+}} -> !torch.vtensor<[5,8],f32>
// CHECK-NEXT:    return %[[OUT]]
// CHECK-LABEL: func.func @computed_tables
// CHECK-NOT:     torch.aten.constant_pad_nd
!all = !torch.vtensor<[5,8],f32>
!x = !torch.vtensor<[4,8],f32>
!first = !torch.vtensor<[1,8],f32>
!half = !torch.vtensor<[4,4],f32>
!i = !torch.int
func.func @kept_rows(%all: !all, %cos: !x {hipdnn.constant = "cos"}, %sin: !x {hipdnn.constant = "sin"}) -> !all {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %4 = torch.constant.int 4
  %5 = torch.constant.int 5
  %8 = torch.constant.int 8
  %first = torch.aten.slice.Tensor %all, %0, %0, %1, %1 : !all, !i, !i, !i, !i -> !first
  %x = torch.aten.slice.Tensor %all, %0, %1, %5, %1 : !all, !i, !i, !i, !i -> !x
  %a = torch.aten.slice.Tensor %x, %1, %4, %8, %1 : !x, !i, !i, !i, !i -> !half
  %n = torch.aten.neg %a : !half -> !half
  %b = torch.aten.slice.Tensor %x, %1, %0, %4, %1 : !x, !i, !i, !i, !i -> !half
  %l = torch.prim.ListConstruct %n, %b : (!half, !half) -> !torch.list<vtensor>
  %r = torch.aten.cat %l, %1 : !torch.list<vtensor>, !i -> !x
  %p = torch.aten.mul.Tensor %x, %cos : !x, !x -> !x
  %q = torch.aten.mul.Tensor %r, %sin : !x, !x -> !x
  %s = torch.aten.add.Tensor %p, %q, %1 : !x, !x, !i -> !x
  %m = torch.prim.ListConstruct %first, %s : (!first, !x) -> !torch.list<vtensor>
  %y = torch.aten.cat %m, %0 : !torch.list<vtensor>, !i -> !all
  return %y : !all
}

func.func @computed_tables(%all: !all, %cos: !x, %sin: !x) -> !all {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %4 = torch.constant.int 4
  %5 = torch.constant.int 5
  %8 = torch.constant.int 8
  %first = torch.aten.slice.Tensor %all, %0, %0, %1, %1 : !all, !i, !i, !i, !i -> !first
  %x = torch.aten.slice.Tensor %all, %0, %1, %5, %1 : !all, !i, !i, !i, !i -> !x
  %a = torch.aten.slice.Tensor %x, %1, %4, %8, %1 : !x, !i, !i, !i, !i -> !half
  %n = torch.aten.neg %a : !half -> !half
  %b = torch.aten.slice.Tensor %x, %1, %0, %4, %1 : !x, !i, !i, !i, !i -> !half
  %l = torch.prim.ListConstruct %n, %b : (!half, !half) -> !torch.list<vtensor>
  %r = torch.aten.cat %l, %1 : !torch.list<vtensor>, !i -> !x
  %p = torch.aten.mul.Tensor %x, %cos : !x, !x -> !x
  %q = torch.aten.mul.Tensor %r, %sin : !x, !x -> !x
  %s = torch.aten.add.Tensor %p, %q, %1 : !x, !x, !i -> !x
  %m = torch.prim.ListConstruct %first, %s : (!first, !x) -> !torch.list<vtensor>
  %y = torch.aten.cat %m, %0 : !torch.list<vtensor>, !i -> !all
  return %y : !all
}
