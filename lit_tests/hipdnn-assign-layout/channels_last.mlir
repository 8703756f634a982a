// RUN: hipdnn-opt %s --hipdnn-offload --hipdnn-assign-layout --split-input-file | filecheck %s

// Two convolutions of one input: it is converted once, weights are not; results are channels-last, and what reads them follows, but not
// what only the caller reads.

// CHECK-LABEL: func.func @convolutions
// CHECK:         %[[X:.+]] = hipdnn.graph ins(%arg0)
// CHECK:           torch.aten.clone
// CHECK:         hipdnn.layouts = ["channels_last"]
// CHECK:         %[[A:.+]] = hipdnn.graph ins(%[[X]], %arg1)
// CHECK:           torch.aten.convolution
// CHECK:         hipdnn.layouts = ["channels_last"]
// CHECK:         %[[B:.+]] = hipdnn.graph ins(%[[X]], %arg2)
// CHECK:           torch.aten.convolution
// CHECK:         hipdnn.layouts = ["channels_last"]
// CHECK:         %[[M:.+]]:2 = hipdnn.graph ins(%[[A]], %[[B]])
// CHECK:           torch.aten.ceil
// CHECK:           torch.aten.sub.Tensor
// CHECK:         hipdnn.layouts = ["channels_last", "contiguous"]
// CHECK:         %[[C:.+]] = hipdnn.graph ins(%[[M]]#0, %arg2)
// CHECK:           torch.aten.convolution
// CHECK:         hipdnn.layouts = ["channels_last"]
// CHECK:         return %[[C]], %[[M]]#1
!x = !torch.vtensor<[1,4,8,8],f32>
!w = !torch.vtensor<[4,4,1,1],f32>
!l = !torch.list<int>
func.func @convolutions(%x: !x, %w: !w {hipdnn.constant = "w"}, %v: !w {hipdnn.constant = "v"}) -> (!x, !x) {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %a = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %b = torch.aten.convolution %x, %v, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %m = torch.aten.ceil %a : !x -> !x
  %c = torch.aten.convolution %m, %v, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %p = torch.aten.sub.Tensor %m, %b, %1 : !x, !x, !torch.int -> !x
  return %c, %p : !x, !x
}

// -----

// A concatenation of channels-last values and a border around one are channels-last themselves.

// CHECK-LABEL: func.func @movement
// CHECK:         %[[A:.+]] = hipdnn.graph
// CHECK:           torch.aten.avg_pool2d
// CHECK:         torch.aten.cat %{{.+}} {hipdnn.layouts = ["channels_last"]}
// CHECK:         torch.aten.constant_pad_nd %{{.+}} {hipdnn.layouts = ["channels_last"]}
!x = !torch.vtensor<[1,4,8,8],f32>
!c = !torch.vtensor<[1,8,8,8],f32>
!p = !torch.vtensor<[1,8,10,10],f32>
!l = !torch.list<int>
func.func @movement(%x: !x) -> !p {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %f1 = torch.constant.float 1.0
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %border = torch.prim.ListConstruct %1, %1, %1, %1 : (!torch.int, !torch.int, !torch.int, !torch.int) -> !l
  %a = torch.aten.avg_pool2d %x, %ones, %ones, %zeros, %false, %false, %none : !x, !l, !l, !l, !torch.bool, !torch.bool, !torch.none -> !x
  %parts = torch.prim.ListConstruct %a, %x : (!x, !x) -> !torch.list<vtensor>
  %b = torch.aten.cat %parts, %1 : !torch.list<vtensor>, !torch.int -> !c
  %c = torch.aten.constant_pad_nd %b, %border, %f1 : !c, !l, !torch.float -> !p
  %d = torch.aten.relu %c : !p -> !p
  return %d : !p
}

// -----

// Channels in groups, of which one is made: the sum follows. Sums of the groups themselves, and over rows, do not.

// CHECK-LABEL: func.func @groups
// CHECK:         %[[Y:.+]] = hipdnn.graph ins(%{{.+}}, %arg1)
// CHECK:           torch.aten.convolution
// CHECK:         %[[GROUPS:.+]] = torch.aten.view %[[Y]]
// CHECK:         %[[S:.+]] = hipdnn.graph ins(%[[GROUPS]])
// CHECK:           torch.aten.sum.dim_IntList
// CHECK:         hipdnn.layouts = ["channels_last"]
// CHECK:         %[[T:.+]] = hipdnn.graph ins(%[[GROUPS]])
// CHECK:           torch.aten.sum.dim_IntList
// CHECK-NOT:     hipdnn.layouts
// CHECK:         hipdnn.graph ins(%[[S]]
!x = !torch.vtensor<[1,4,8,8],f32>
!w = !torch.vtensor<[4,4,1,1],f32>
!g = !torch.vtensor<[1,2,2,8,8],f32>
!s = !torch.vtensor<[1,2,8,8],f32>
!k = !torch.vtensor<[1,2,2,8,1],f32>
!l = !torch.list<int>
func.func @groups(%x: !x, %w: !w {hipdnn.constant = "w"}) -> (!s, !k) {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %true = torch.constant.bool true
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %4 = torch.constant.int 4
  %8 = torch.constant.int 8
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %dims = torch.prim.ListConstruct %1, %2, %2, %8, %8 : (!torch.int, !torch.int, !torch.int, !torch.int, !torch.int) -> !l
  %g = torch.aten.view %y, %dims : !x, !l -> !g
  %axis = torch.prim.ListConstruct %1 : (!torch.int) -> !l
  %s = torch.aten.sum.dim_IntList %g, %axis, %false, %none : !g, !l, !torch.bool, !torch.none -> !s
  %last = torch.prim.ListConstruct %4 : (!torch.int) -> !l
  %k = torch.aten.sum.dim_IntList %g, %last, %true, %none : !g, !l, !torch.bool, !torch.none -> !k
  %r = torch.aten.ceil %s : !s -> !s
  return %r, %k : !s, !k
}

// -----

// What several transposes bring to where channels are lies channels-last: no copy between the norm and the convolutions.

// CHECK-LABEL: func.func @transposes
// CHECK:         %[[C:.+]] = hipdnn.graph
// CHECK:           torch.aten.convolution
// CHECK:         hipdnn.layouts = ["channels_last"]
// CHECK:         %[[R:.+]] = hipdnn.graph
// CHECK:           torch.aten.softmax.int
// CHECK-NOT:     torch.aten.clone
// CHECK:           torch.aten.convolution
// CHECK-NOT:     torch.aten.clone
// CHECK:         return
!x = !torch.vtensor<[2,4,8,8],f32>
!h = !torch.vtensor<[2,8,4,8],f32>
!r = !torch.vtensor<[2,8,8,4],f32>
!w = !torch.vtensor<[4,4,1,1],f32>
!l = !torch.list<int>
func.func @transposes(%x: !x, %w: !w {hipdnn.constant = "w"}) -> !x {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %a = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %t = torch.aten.transpose.int %a, %1, %2 : !x, !torch.int, !torch.int -> !h
  %r = torch.aten.transpose.int %t, %2, %3 : !h, !torch.int, !torch.int -> !r
  %s = torch.aten.softmax.int %r, %3, %none : !r, !torch.int, !torch.none -> !r
  %u = torch.aten.transpose.int %s, %1, %3 : !r, !torch.int, !torch.int -> !x
  %v = torch.aten.transpose.int %u, %2, %3 : !x, !torch.int, !torch.int -> !x
  %b = torch.aten.convolution %v, %w, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  return %b : !x
}
