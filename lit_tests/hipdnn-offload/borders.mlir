// RUN: hipdnn-opt %s --hipdnn-offload --canonicalize --split-input-file | filecheck %s

// A zero border in front of a convolution is its padding, one of -inf a max pool's.

// CHECK-LABEL: func.func @absorbed
// CHECK-NOT:     torch.aten.constant_pad_nd
// CHECK:         hipdnn.graph ins(%arg0, %arg1)
// CHECK:           %[[P:.+]] = torch.aten.constant_pad_nd
// CHECK:           torch.aten.convolution %[[P]]
// CHECK:         hipdnn.graph ins(%arg0)
// CHECK:           %[[Q:.+]] = torch.aten.constant_pad_nd
// CHECK:           torch.aten.max_pool2d %[[Q]]
!x = !torch.vtensor<[1,4,8,8],f32>
!padded = !torch.vtensor<[1,4,9,9],f32>
!y = !torch.vtensor<[1,4,7,7],f32>
!w = !torch.vtensor<[4,4,3,3],f32>
!l = !torch.list<int>
func.func @absorbed(%x: !x, %w: !w) -> (!y, !y) {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %3 = torch.constant.int 3
  %zero = torch.constant.float 0.0
  %lowest = torch.constant.float 0xFFF0000000000000
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %threes = torch.prim.ListConstruct %3, %3 : (!torch.int, !torch.int) -> !l
  %border = torch.prim.ListConstruct %0, %1, %0, %1 : (!torch.int, !torch.int, !torch.int, !torch.int) -> !l
  %p = torch.aten.constant_pad_nd %x, %border, %zero : !x, !l, !torch.float -> !padded
  %y = torch.aten.convolution %p, %w, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !padded, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !y
  %q = torch.aten.constant_pad_nd %x, %border, %lowest : !x, !l, !torch.float -> !padded
  %z = torch.aten.max_pool2d %q, %threes, %ones, %zeros, %ones, %false : !padded, !l, !l, !l, !l, !torch.bool -> !y
  return %y, %z : !y, !y
}

// -----

// Another value, a border of channels, another reader, or an op without padding: the border stays outside, its reader gets a graph.

// CHECK-LABEL: func.func @outside
// CHECK-DAG:     %[[ONES:.+]] = torch.aten.constant_pad_nd %arg0, %{{.+}}, %float1.0
// CHECK-DAG:     hipdnn.graph ins(%[[ONES]], %arg1)
// CHECK-DAG:     %[[TWICE:.+]] = torch.aten.constant_pad_nd %arg0, %{{.+}}, %float0.0
// CHECK-DAG:     hipdnn.graph ins(%[[TWICE]], %arg1)
// CHECK-DAG:     %[[RELU:.+]] = torch.aten.constant_pad_nd %arg0, %{{.+}}, %float2.0
// CHECK-DAG:     hipdnn.graph ins(%[[RELU]])
!x = !torch.vtensor<[1,4,8,8],f32>
!padded = !torch.vtensor<[1,4,9,9],f32>
!y = !torch.vtensor<[1,4,7,7],f32>
!w = !torch.vtensor<[4,4,3,3],f32>
!l = !torch.list<int>
func.func @outside(%x: !x, %w: !w) -> (!y, !y, !padded, !padded) {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %f0 = torch.constant.float 0.0
  %f1 = torch.constant.float 1.0
  %f2 = torch.constant.float 2.0
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %border = torch.prim.ListConstruct %0, %1, %0, %1 : (!torch.int, !torch.int, !torch.int, !torch.int) -> !l
  %p = torch.aten.constant_pad_nd %x, %border, %f1 : !x, !l, !torch.float -> !padded
  %y = torch.aten.convolution %p, %w, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !padded, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !y
  %q = torch.aten.constant_pad_nd %x, %border, %f0 : !x, !l, !torch.float -> !padded
  %z = torch.aten.convolution %q, %w, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !padded, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !y
  %r = torch.aten.constant_pad_nd %x, %border, %f2 : !x, !l, !torch.float -> !padded
  %s = torch.aten.relu %r : !padded -> !padded
  return %y, %z, %s, %q : !y, !y, !padded, !padded
}
