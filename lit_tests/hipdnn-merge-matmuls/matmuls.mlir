// RUN: hipdnn-opt %s --hipdnn-merge-matmuls=target=sm_90 | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-merge-matmuls | filecheck %s --check-prefix=HOST

!x = !torch.vtensor<[2,4,8],f16>
!w = !torch.vtensor<[8,6],f16>
!v = !torch.vtensor<[8,10],f16>
!b = !torch.vtensor<[6],f16>
!c = !torch.vtensor<[10],f16>
!p = !torch.vtensor<[2,4,6],f16>
!q = !torch.vtensor<[2,4,10],f16>

// HOST-NOT: torch.aten.cat

// CHECK-LABEL: func.func @biased
// CHECK:         torch.aten.cat %{{.+}} -> !torch.vtensor<[8,16],f16>
// CHECK:         %[[Y:.+]] = torch.aten.matmul %arg0, %{{.+}} -> !torch.vtensor<[2,4,16],f16>
// CHECK:         torch.aten.cat %{{.+}} -> !torch.vtensor<[16],f16>
// CHECK:         %[[S:.+]] = torch.aten.add.Tensor %[[Y]], %{{.+}} -> !torch.vtensor<[2,4,16],f16>
// CHECK:         torch.aten.slice.Tensor %[[S]], %{{.+}} -> !torch.vtensor<[2,4,6],f16>
// CHECK:         torch.aten.slice.Tensor %[[S]], %{{.+}} -> !torch.vtensor<[2,4,10],f16>
// CHECK-NOT:     torch.aten.matmul
func.func @biased(%x: !x, %w: !w {hipdnn.constant = "w"}, %v: !v {hipdnn.constant = "v"}, %b: !b {hipdnn.constant = "b"}, %c: !c {hipdnn.constant = "c"}) -> (!p, !q) {
  %1 = torch.constant.int 1
  %0 = torch.aten.matmul %x, %w : !x, !w -> !p
  %2 = torch.aten.add.Tensor %b, %0, %1 : !b, !p, !torch.int -> !p
  %3 = torch.aten.matmul %x, %v : !x, !v -> !q
  %4 = torch.aten.add.Tensor %3, %c, %1 : !q, !c, !torch.int -> !q
  return %2, %4 : !p, !q
}

// Weights that are computed at run time would be joined in each run; a bias beside none would be zeros.

// CHECK-LABEL: func.func @apart
// CHECK-NOT:     torch.aten.cat
func.func @apart(%x: !x, %w: !w {hipdnn.constant = "w"}, %v: !v, %u: !v {hipdnn.constant = "u"}, %b: !b {hipdnn.constant = "b"}) -> (!p, !q, !q) {
  %1 = torch.constant.int 1
  %0 = torch.aten.matmul %x, %w : !x, !w -> !p
  %2 = torch.aten.add.Tensor %0, %b, %1 : !p, !b, !torch.int -> !p
  %3 = torch.aten.matmul %x, %v : !x, !v -> !q
  %4 = torch.aten.matmul %x, %u : !x, !v -> !q
  return %2, %3, %4 : !p, !q, !q
}

// The two halves of a gated layer are one kernel, which reads the result of neither from memory.

// CHECK-LABEL: func.func @gated
// CHECK-NOT:     torch.aten.cat
func.func @gated(%x: !x, %w: !v {hipdnn.constant = "w"}, %v: !v {hipdnn.constant = "v"}) -> !q {
  %0 = torch.aten.matmul %x, %w : !x, !v -> !q
  %1 = torch.aten.matmul %x, %v : !x, !v -> !q
  %2 = torch.aten.silu %0 : !q -> !q
  %3 = torch.aten.mul.Tensor %2, %1 : !q, !q -> !q
  return %3 : !q
}

// Two that are not multiplied by each other are joined, and three.

// CHECK-LABEL: func.func @no_gate
// CHECK:         torch.aten.cat %{{.+}} -> !torch.vtensor<[8,20],f16>
// CHECK:         torch.aten.matmul %arg0, %{{.+}} -> !torch.vtensor<[2,4,20],f16>
// CHECK-NOT:     torch.aten.matmul
func.func @no_gate(%x: !x, %w: !v {hipdnn.constant = "w"}, %v: !v {hipdnn.constant = "v"}) -> (!q, !q) {
  %0 = torch.aten.matmul %x, %w : !x, !v -> !q
  %1 = torch.aten.matmul %x, %v : !x, !v -> !q
  %2 = torch.aten.silu %0 : !q -> !q
  %3 = torch.aten.silu %1 : !q -> !q
  return %2, %3 : !q, !q
}

// CHECK-LABEL: func.func @gate_and_another
// CHECK:         torch.aten.matmul %arg0, %{{.+}} -> !torch.vtensor<[2,4,26],f16>
// CHECK-NOT:     torch.aten.matmul
func.func @gate_and_another(%x: !x, %w: !v {hipdnn.constant = "w"}, %v: !v {hipdnn.constant = "v"}, %u: !w {hipdnn.constant = "u"}) -> (!q, !p) {
  %0 = torch.aten.matmul %x, %w : !x, !v -> !q
  %1 = torch.aten.matmul %x, %v : !x, !v -> !q
  %2 = torch.aten.matmul %x, %u : !x, !w -> !p
  %3 = torch.aten.mul.Tensor %0, %1 : !q, !q -> !q
  return %3, %2 : !q, !p
}
