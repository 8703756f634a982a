// RUN: hipdnn-opt %s --hipdnn-outline-constants --split-input-file | filecheck %s

// Arithmetic on constants leaves the program; what only it read leaves the signature.

// CHECK-LABEL: func.func private @hipdnn_constants
// CHECK-SAME:    (%arg0: !torch.vtensor<[3],f32> {hipdnn.constant = "w"}, %arg1: !torch.vtensor<[3],f32> {hipdnn.constant = "v"})
// CHECK-SAME:    -> (!torch.vtensor<[3],f32> {hipdnn.constant = "w.folded"}, !torch.vtensor<[3],f32> {hipdnn.constant = "w.folded.1"})
// CHECK:         %[[P:.+]] = torch.aten.mul.Tensor %arg0, %arg1
// CHECK:         %[[N:.+]] = torch.aten.neg %arg0
// CHECK:         return %[[P]], %[[N]]
// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%arg0: !torch.vtensor<[3],f32>, %arg1: !torch.vtensor<[3],f32> {hipdnn.constant = "v"},
// CHECK-SAME:     %arg2: !torch.vtensor<[3],f32> {hipdnn.constant = "w.folded"}, %arg3: !torch.vtensor<[3],f32> {hipdnn.constant = "w.folded.1"})
// CHECK:         %[[A:.+]] = torch.aten.mul.Tensor %arg0, %arg2
// CHECK:         %[[B:.+]] = torch.aten.mul.Tensor %[[A]], %arg3
// CHECK:         torch.aten.mul.Tensor %[[B]], %arg1
!x = !torch.vtensor<[3],f32>
func.func @main(%x: !x, %w: !x {hipdnn.constant = "w"}, %v: !x {hipdnn.constant = "v"}) -> !x {
  %p = torch.aten.mul.Tensor %w, %v : !x, !x -> !x
  %n = torch.aten.neg %w : !x -> !x
  %a = torch.aten.mul.Tensor %x, %p : !x, !x -> !x
  %b = torch.aten.mul.Tensor %a, %n : !x, !x -> !x
  %c = torch.aten.mul.Tensor %b, %v : !x, !x -> !x
  return %c : !x
}

// -----

// Literals with dims become constants, numbers stay; so does a literal that the program returns, whatever its rank.

// CHECK-LABEL: func.func private @hipdnn_constants
// CHECK-DAG:     %[[V:.+]] = torch.vtensor.literal(dense<[1.000000e+00, 2.000000e+00]>
// CHECK-DAG:     %[[S:.+]] = torch.vtensor.literal(dense<4.000000e+00> : tensor<f32>)
// CHECK:         return %[[V]], %[[S]]
// CHECK-LABEL: func.func @main
// CHECK-SAME:    %arg1: !torch.vtensor<[2],f32> {hipdnn.constant = "literal.folded"}, %arg2: !torch.vtensor<[],f32> {hipdnn.constant = "literal.folded.1"})
// CHECK:         %[[N:.+]] = torch.vtensor.literal(dense<3.000000e+00> : tensor<f32>)
// CHECK:         %[[A:.+]] = torch.aten.mul.Tensor %arg0, %arg1
// CHECK:         %[[B:.+]] = torch.aten.mul.Tensor %[[A]], %[[N]]
// CHECK:         return %[[B]], %arg2
!x = !torch.vtensor<[2],f32>
!s = !torch.vtensor<[],f32>
func.func @main(%x: !x) -> (!x, !s) {
  %v = torch.vtensor.literal(dense<[1.0, 2.0]> : tensor<2xf32>) : !x
  %n = torch.vtensor.literal(dense<3.0> : tensor<f32>) : !s
  %s = torch.vtensor.literal(dense<4.0> : tensor<f32>) : !s
  %a = torch.aten.mul.Tensor %x, %v : !x, !x -> !x
  %b = torch.aten.mul.Tensor %a, %n : !x, !s -> !x
  return %b, %s : !x, !s
}

// -----

// A view of a weight costs nothing at run time and stays, unless arithmetic needs it.

// CHECK-LABEL: func.func private @hipdnn_constants
// CHECK:         torch.aten.t %arg1
// CHECK-NEXT:    torch.aten.neg
// CHECK-LABEL: func.func @main
// CHECK:         %[[T:.+]] = torch.aten.t %arg1
// CHECK:         torch.aten.mm %arg0, %[[T]]
!x = !torch.vtensor<[2,3],f32>
!w = !torch.vtensor<[4,3],f32>
!t = !torch.vtensor<[3,4],f32>
!y = !torch.vtensor<[2,4],f32>
func.func @main(%x: !x, %w: !w {hipdnn.constant = "w"}, %v: !w {hipdnn.constant = "v"}) -> (!y, !y) {
  %t = torch.aten.t %w : !w -> !t
  %y = torch.aten.mm %x, %t : !x, !t -> !y
  %u = torch.aten.t %v : !w -> !t
  %n = torch.aten.neg %u : !t -> !t
  %z = torch.aten.mm %x, %n : !x, !t -> !y
  return %y, %z : !y, !y
}

// -----

// Reductions of weights are arithmetic too, as standardized weights have them.

// CHECK-LABEL: func.func private @hipdnn_constants
// CHECK:         torch.aten.mean.dim
// CHECK:         torch.aten.sub.Tensor
// CHECK-LABEL: func.func @main
// CHECK-NOT:     torch.aten.mean.dim
// CHECK:         torch.aten.mm %arg0, %arg1
!w = !torch.vtensor<[3,3],f32>
!m = !torch.vtensor<[3,1],f32>
func.func @main(%x: !w, %w: !w {hipdnn.constant = "w"}) -> !w {
  %int1 = torch.constant.int 1
  %true = torch.constant.bool true
  %none = torch.constant.none
  %dims = torch.prim.ListConstruct %int1 : (!torch.int) -> !torch.list<int>
  %m = torch.aten.mean.dim %w, %dims, %true, %none : !w, !torch.list<int>, !torch.bool, !torch.none -> !m
  %c = torch.aten.sub.Tensor %w, %m, %int1 : !w, !m, !torch.int -> !w
  %y = torch.aten.mm %x, %c : !w, !w -> !w
  return %y : !w
}

// -----

// A filter that is wide between two others is arithmetic; one that stays wide would make the program many times larger.

// CHECK-LABEL: func.func private @hipdnn_constants
// CHECK:         torch.aten.constant_pad_nd
// CHECK:         torch.aten.add.Tensor
// CHECK-LABEL: func.func @main
// CHECK-DAG:     torch.aten.add.Tensor %arg0, %arg2
// CHECK-DAG:     %[[WIDE:.+]] = torch.aten.constant_pad_nd %arg1
// CHECK:         torch.aten.add.Tensor %arg0, %[[WIDE]]
!small = !torch.vtensor<[400,300,1,1],f32>
!wide = !torch.vtensor<[400,300,3,3],f32>
func.func @main(%x: !wide, %w: !wide {hipdnn.constant = "w"}, %v: !small {hipdnn.constant = "v"}) -> (!wide, !wide) {
  %1 = torch.constant.int 1
  %zero = torch.constant.float 0.0
  %pads = torch.prim.ListConstruct %1, %1, %1, %1 : (!torch.int, !torch.int, !torch.int, !torch.int) -> !torch.list<int>
  %p = torch.aten.constant_pad_nd %v, %pads, %zero : !small, !torch.list<int>, !torch.float -> !wide
  %s = torch.aten.add.Tensor %w, %p, %1 : !wide, !wide, !torch.int -> !wide
  %a = torch.aten.add.Tensor %x, %s, %1 : !wide, !wide, !torch.int -> !wide
  %q = torch.aten.constant_pad_nd %v, %pads, %zero : !small, !torch.list<int>, !torch.float -> !wide
  %b = torch.aten.add.Tensor %x, %q, %1 : !wide, !wide, !torch.int -> !wide
  return %a, %b : !wide, !wide
}

// -----

// A reshape that a transposed weight's strides do not show needs a copy, which is made once; a transpose of a transposed one does not.

// CHECK-LABEL: func.func private @hipdnn_constants
// CHECK:         %[[T:.+]] = torch.aten.t %arg0
// CHECK:         %[[F:.+]] = torch.aten.view %[[T]]
// CHECK:         return %[[F]] : !torch.vtensor<[6],f32>
// CHECK-LABEL: func.func @main
// CHECK-SAME:    %arg2: !torch.vtensor<[6],f32> {hipdnn.constant = "w.folded"})
// CHECK:         %[[V:.+]] = torch.aten.t %arg1
// CHECK:         %[[M:.+]] = torch.aten.mul.Tensor %arg0, %arg2
// CHECK:         %[[U:.+]] = torch.aten.t %[[V]]
// CHECK:         torch.aten.mm %[[U]], %{{.+}}
!x = !torch.vtensor<[6],f32>
!w = !torch.vtensor<[2,3],f32>
!t = !torch.vtensor<[3,2],f32>
!y = !torch.vtensor<[2,2],f32>
func.func @main(%x: !x, %w: !w {hipdnn.constant = "w"}) -> !y {
  %c3 = torch.constant.int 3
  %c2 = torch.constant.int 2
  %c6 = torch.constant.int 6
  %l = torch.prim.ListConstruct %c6 : (!torch.int) -> !torch.list<int>
  %d = torch.prim.ListConstruct %c3, %c2 : (!torch.int, !torch.int) -> !torch.list<int>
  %t = torch.aten.t %w : !w -> !t
  %f = torch.aten.view %t, %l : !t, !torch.list<int> -> !x
  %m = torch.aten.mul.Tensor %x, %f : !x, !x -> !x
  %r = torch.aten.view %m, %d : !x, !torch.list<int> -> !t
  %u = torch.aten.t %t : !t -> !w
  %p = torch.aten.mm %u, %r : !w, !t -> !y
  return %p : !y
}
