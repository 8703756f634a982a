// RUN: hipdnn-opt %s --hipdnn-join-groups | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-join-groups=target=sm_90 | filecheck %s --check-prefix=GPU

!l = !torch.list<int>
!x16 = !torch.vtensor<[1,16,8,8],f32>
!y16 = !torch.vtensor<[1,16,6,6],f32>
!y32 = !torch.vtensor<[1,32,6,6],f32>
!x24 = !torch.vtensor<[1,24,8,8],f32>
!y24 = !torch.vtensor<[1,24,6,6],f32>
!x12 = !torch.vtensor<[1,12,8,8],f32>
!y12 = !torch.vtensor<[1,12,6,6],f32>

// GPU-NOT: torch.aten.mul.Tensor

// CHECK-LABEL: func.func @fours
// CHECK-DAG:     %[[W:.+]] = torch.aten.view %arg1, %{{.+}} -> !torch.vtensor<[2,2,4,1,36],f32>
// CHECK-DAG:     %[[OWN:.+]] = torch.vtensor.literal({{.*}}) : !torch.vtensor<[1,2,1,2,1],f32>
// CHECK:         %[[SPREAD:.+]] = torch.aten.mul.Tensor %[[W]], %[[OWN]] : {{.+}} -> !torch.vtensor<[2,2,4,2,36],f32>
// CHECK:         %[[JOINED:.+]] = torch.aten.view %[[SPREAD]], %{{.+}} -> !torch.vtensor<[16,8,3,3],f32>
// CHECK:         %[[TWO:.+]] = torch.constant.int 2
// CHECK:         torch.aten.convolution %arg0, %[[JOINED]], {{.+}}, %[[TWO]]
func.func @fours(%x: !x16, %w: !torch.vtensor<[16,4,3,3],f32> {hipdnn.constant = "w"}) -> !y16 {
  %none = torch.constant.none
  %transposed = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %groups = torch.constant.int 4
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %transposed, %zeros, %groups : !x16, !torch.vtensor<[16,4,3,3],f32>, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !y16
  return %y : !y16
}

// Three channels take eight groups to make a multiple of eight.

// CHECK-LABEL: func.func @threes
// CHECK:         torch.aten.view %{{.+}} -> !torch.vtensor<[24,24,3,3],f32>
func.func @threes(%x: !x24, %w: !torch.vtensor<[24,3,3,3],f32> {hipdnn.constant = "w"}) -> !y24 {
  %none = torch.constant.none
  %transposed = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %groups = torch.constant.int 8
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %transposed, %zeros, %groups : !x24, !torch.vtensor<[24,3,3,3],f32>, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !y24
  return %y : !y24
}

// One channel with several outputs is no depthwise convolution of oneDNN's.

// CHECK-LABEL: func.func @multiplied
// CHECK:         torch.aten.view %{{.+}} -> !torch.vtensor<[32,8,3,3],f32>
func.func @multiplied(%x: !x16, %w: !torch.vtensor<[32,1,3,3],f32> {hipdnn.constant = "w"}) -> !y32 {
  %none = torch.constant.none
  %transposed = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %groups = torch.constant.int 16
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %transposed, %zeros, %groups : !x16, !torch.vtensor<[32,1,3,3],f32>, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !y32
  return %y : !y32
}

// Depthwise ones have a kernel; there are not enough groups of four channels in three; wide groups have one, too; computed weights would be
// joined in each run.

// CHECK-NOT: torch.aten.mul.Tensor
func.func @depthwise(%x: !x16, %w: !torch.vtensor<[16,1,3,3],f32> {hipdnn.constant = "w"}) -> !y16 {
  %none = torch.constant.none
  %transposed = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %groups = torch.constant.int 16
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %transposed, %zeros, %groups : !x16, !torch.vtensor<[16,1,3,3],f32>, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !y16
  return %y : !y16
}

func.func @odd(%x: !x12, %w: !torch.vtensor<[12,4,3,3],f32> {hipdnn.constant = "w"}) -> !y12 {
  %none = torch.constant.none
  %transposed = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %groups = torch.constant.int 3
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %transposed, %zeros, %groups : !x12, !torch.vtensor<[12,4,3,3],f32>, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !y12
  return %y : !y12
}

func.func @wide(%x: !x16, %w: !torch.vtensor<[16,8,3,3],f32> {hipdnn.constant = "w"}) -> !y16 {
  %none = torch.constant.none
  %transposed = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %groups = torch.constant.int 2
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %transposed, %zeros, %groups : !x16, !torch.vtensor<[16,8,3,3],f32>, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !y16
  return %y : !y16
}

func.func @computed(%x: !x16, %w: !torch.vtensor<[16,4,3,3],f32>) -> !y16 {
  %none = torch.constant.none
  %transposed = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %groups = torch.constant.int 4
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %transposed, %zeros, %groups : !x16, !torch.vtensor<[16,4,3,3],f32>, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !y16
  return %y : !y16
}
