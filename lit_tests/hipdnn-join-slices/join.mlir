// RUN: hipdnn-opt %s --hipdnn-join-slices=target=sm_90 | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-join-slices | filecheck %s --check-prefix=HOST

!l = !torch.list<int>
!x = !torch.vtensor<[1,24,9,9],f32>
!a = !torch.vtensor<[1,8,9,9],f32>
!b = !torch.vtensor<[1,16,9,9],f32>
!w3 = !torch.vtensor<[8,1,3,3],f32>
!w5 = !torch.vtensor<[16,1,5,5],f32>
!wa = !torch.vtensor<[8,8,1,1],f32>
!wb = !torch.vtensor<[16,16,1,1],f32>

// The smaller filter has a border of zeros; one bias is zeros.

// CHECK-LABEL: func.func @depthwise
// CHECK:         %[[WIDE:.+]] = torch.aten.constant_pad_nd %arg1, {{.+}} -> !torch.vtensor<[8,1,5,5],f32>
// CHECK:         %[[BOTH:.+]] = torch.prim.ListConstruct %[[WIDE]], %arg2
// CHECK:         %[[W:.+]] = torch.aten.cat %[[BOTH]], %{{.+}} -> !torch.vtensor<[24,1,5,5],f32>
// CHECK:         %[[ZEROS:.+]] = torch.vtensor.literal(dense<0.000000e+00> : tensor<8xf32>)
// CHECK:         %[[BIASES:.+]] = torch.prim.ListConstruct %[[ZEROS]], %arg3
// CHECK:         %[[BIAS:.+]] = torch.aten.cat %[[BIASES]], %{{.+}} -> !torch.vtensor<[24],f32>
// CHECK:         %[[Y:.+]] = torch.aten.convolution %arg0, %[[W]], %[[BIAS]], {{.+}} -> !torch.vtensor<[1,24,9,9],f32>
// CHECK-NOT:     torch.aten.slice
// CHECK:         return %[[Y]]
// HOST-LABEL: func.func @depthwise
// HOST-COUNT-2: torch.aten.convolution
func.func @depthwise(%x: !x, %w3: !w3 {hipdnn.constant = "a"}, %w5: !w5 {hipdnn.constant = "b"},
                     %bias: !torch.vtensor<[16],f32> {hipdnn.constant = "c"}) -> !x {
  %none = torch.constant.none
  %transposed = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %8 = torch.constant.int 8
  %16 = torch.constant.int 16
  %24 = torch.constant.int 24
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %twos = torch.prim.ListConstruct %2, %2 : (!torch.int, !torch.int) -> !l
  %a = torch.aten.slice.Tensor %x, %1, %0, %8, %1 : !x, !torch.int, !torch.int, !torch.int, !torch.int -> !a
  %b = torch.aten.slice.Tensor %x, %1, %8, %24, %1 : !x, !torch.int, !torch.int, !torch.int, !torch.int -> !b
  %c = torch.aten.convolution %a, %w3, %none, %ones, %ones, %ones, %transposed, %zeros, %8 : !a, !w3, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !a
  %d = torch.aten.convolution %b, %w5, %bias, %ones, %twos, %ones, %transposed, %zeros, %16 : !b, !w5, !torch.vtensor<[16],f32>, !l, !l, !l, !torch.bool, !l, !torch.int -> !b
  %both = torch.prim.ListConstruct %c, %d : (!a, !b) -> !torch.list<vtensor>
  %y = torch.aten.cat %both, %1 : !torch.list<vtensor>, !torch.int -> !x
  return %y : !x
}

// Filters of one tap have zeros for the channels of the other.

// CHECK-LABEL: func.func @one_tap
// CHECK-DAG:     %[[A:.+]] = torch.aten.constant_pad_nd %arg1, {{.+}} -> !torch.vtensor<[8,24,1,1],f32>
// CHECK-DAG:     %[[B:.+]] = torch.aten.constant_pad_nd %arg2, {{.+}} -> !torch.vtensor<[16,24,1,1],f32>
// CHECK:         %[[BOTH:.+]] = torch.prim.ListConstruct %[[A]], %[[B]]
// CHECK:         %[[W:.+]] = torch.aten.cat %[[BOTH]], %{{.+}} -> !torch.vtensor<[24,24,1,1],f32>
// CHECK:         torch.aten.convolution %arg0, %[[W]], %none, {{.+}} -> !torch.vtensor<[1,24,9,9],f32>
func.func @one_tap(%x: !x, %wa: !wa {hipdnn.constant = "a"}, %wb: !wb {hipdnn.constant = "b"}) -> !x {
  %none = torch.constant.none
  %transposed = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %8 = torch.constant.int 8
  %24 = torch.constant.int 24
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %a = torch.aten.slice.Tensor %x, %1, %0, %8, %1 : !x, !torch.int, !torch.int, !torch.int, !torch.int -> !a
  %b = torch.aten.slice.Tensor %x, %1, %8, %24, %1 : !x, !torch.int, !torch.int, !torch.int, !torch.int -> !b
  %c = torch.aten.convolution %a, %wa, %none, %ones, %zeros, %ones, %transposed, %zeros, %1 : !a, !wa, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !a
  %d = torch.aten.convolution %b, %wb, %none, %ones, %zeros, %ones, %transposed, %zeros, %1 : !b, !wb, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !b
  %both = torch.prim.ListConstruct %c, %d : (!a, !b) -> !torch.list<vtensor>
  %y = torch.aten.cat %both, %1 : !torch.list<vtensor>, !torch.int -> !x
  return %y : !x
}

// Parts in another order, and results that others read, stay.

// CHECK-LABEL: func.func @kept
// CHECK-COUNT-3: torch.aten.convolution
func.func @kept(%x: !x, %w3: !w3 {hipdnn.constant = "a"}, %w5: !w5 {hipdnn.constant = "b"}, %wa: !wa {hipdnn.constant = "c"}) -> (!x, !b, !a) {
  %none = torch.constant.none
  %transposed = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %8 = torch.constant.int 8
  %16 = torch.constant.int 16
  %24 = torch.constant.int 24
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %twos = torch.prim.ListConstruct %2, %2 : (!torch.int, !torch.int) -> !l
  %a = torch.aten.slice.Tensor %x, %1, %0, %8, %1 : !x, !torch.int, !torch.int, !torch.int, !torch.int -> !a
  %b = torch.aten.slice.Tensor %x, %1, %8, %24, %1 : !x, !torch.int, !torch.int, !torch.int, !torch.int -> !b
  %c = torch.aten.convolution %a, %w3, %none, %ones, %ones, %ones, %transposed, %zeros, %8 : !a, !w3, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !a
  %d = torch.aten.convolution %b, %w5, %none, %ones, %twos, %ones, %transposed, %zeros, %16 : !b, !w5, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !b
  %both = torch.prim.ListConstruct %d, %c : (!b, !a) -> !torch.list<vtensor>
  %y = torch.aten.cat %both, %1 : !torch.list<vtensor>, !torch.int -> !x
  %e = torch.aten.convolution %a, %wa, %none, %ones, %zeros, %ones, %transposed, %zeros, %1 : !a, !wa, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !a
  return %y, %d, %e : !x, !b, !a
}
