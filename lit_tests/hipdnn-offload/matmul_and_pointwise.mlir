// RUN: hipdnn-opt %s --hipdnn-offload --canonicalize --split-input-file | filecheck %s

// Matmul, bias and activation are one graph; the transpose of the weight stays outside, as a view.

// CHECK-LABEL: func.func @linear
// CHECK:         %[[T:.+]] = torch.aten.t %arg1
// CHECK:         hipdnn.graph ins(%arg0, %[[T]], %arg2)
// CHECK:           torch.aten.mm
// CHECK-NEXT:      torch.aten.add.Tensor
// CHECK-NEXT:      torch.aten.gelu
// CHECK-NEXT:      hipdnn.yield
// CHECK:         hipdnn.engine = "HOST_ONEDNN_ENGINE"
// CHECK-NOT:     hipdnn.graph
!x = !torch.vtensor<[2,8],f32>
!w = !torch.vtensor<[4,8],f32>
!wt = !torch.vtensor<[8,4],f32>
!b = !torch.vtensor<[4],f32>
!y = !torch.vtensor<[2,4],f32>
func.func @linear(%x: !x, %w: !w, %b: !b) -> !y {
  %1 = torch.constant.int 1
  %none = torch.constant.str "none"
  %t = torch.aten.t %w : !w -> !wt
  %m = torch.aten.mm %x, %t : !x, !wt -> !y
  %a = torch.aten.add.Tensor %m, %b, %1 : !y, !b, !torch.int -> !y
  %y = torch.aten.gelu %a, %none : !y, !torch.str -> !y
  return %y : !y
}

// -----

// A diamond of pointwise ops and a softmax over it are one graph of the rowwise engine.

// CHECK-LABEL: func.func @diamond
// CHECK:         hipdnn.graph ins(%arg0)
// CHECK:           torch.aten.exp
// CHECK:           torch.aten.tanh
// CHECK:           torch.aten.mul.Tensor
// CHECK:           torch.aten.softmax.int
// CHECK-NEXT:      hipdnn.yield
// CHECK:         hipdnn.engine = "HOST_ROWWISE_ENGINE"
// CHECK-NOT:     hipdnn.graph
!x = !torch.vtensor<[4,8],f32>
func.func @diamond(%x: !x) -> !x {
  %1 = torch.constant.int 1
  %none = torch.constant.none
  %a = torch.aten.exp %x : !x -> !x
  %b = torch.aten.tanh %x : !x -> !x
  %c = torch.aten.mul.Tensor %a, %b : !x, !x -> !x
  %d = torch.aten.softmax.int %c, %1, %none : !x, !torch.int, !torch.none -> !x
  return %d : !x
}

// -----

// Joining both ends of a path that leaves through an op outside would make a cycle: the sum is no part of the first graph.

// CHECK-LABEL: func.func @cycle
// CHECK:         %[[E:.+]] = hipdnn.graph ins(%arg0)
// CHECK:           torch.aten.exp
// CHECK-NEXT:      hipdnn.yield
// CHECK:         %[[O:.+]] = torch.aten.cumsum %[[E]]
// CHECK:         hipdnn.graph ins(%[[E]], %[[O]])
// CHECK:           torch.aten.add.Tensor
!x = !torch.vtensor<[4,8],f32>
func.func @cycle(%x: !x) -> !x {
  %1 = torch.constant.int 1
  %none = torch.constant.none
  %a = torch.aten.exp %x : !x -> !x
  %b = torch.aten.cumsum %a, %1, %none : !x, !torch.int, !torch.none -> !x
  %c = torch.aten.add.Tensor %a, %b, %1 : !x, !x, !torch.int -> !x
  return %c : !x
}

// -----

// A reduction that drops its dim leaves a unit dim in the graph; a reader that would broadcast it the wrong way gets a graph of its own.

// CHECK-LABEL: func.func @dropped_dim
// CHECK:         %[[S:.+]] = hipdnn.graph ins(%arg0)
// CHECK:           torch.aten.sum.dim_IntList
// CHECK-NEXT:      hipdnn.yield
// CHECK:         hipdnn.graph ins(%[[S]], %arg1)
// CHECK:           torch.aten.add.Tensor
!x = !torch.vtensor<[3,3],f32>
!s = !torch.vtensor<[3],f32>
func.func @dropped_dim(%x: !x, %y: !x) -> !x {
  %1 = torch.constant.int 1
  %none = torch.constant.none
  %false = torch.constant.bool false
  %axes = torch.prim.ListConstruct %1 : (!torch.int) -> !torch.list<int>
  %s = torch.aten.sum.dim_IntList %x, %axes, %false, %none : !x, !torch.list<int>, !torch.bool, !torch.none -> !s
  %z = torch.aten.add.Tensor %s, %y, %1 : !s, !x, !torch.int -> !x
  return %z : !x
}
