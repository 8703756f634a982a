// RUN: hipdnn-opt %s --hipdnn-order-weights=target=sm_90 --hipdnn-outline-constants --split-input-file | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-order-weights=target=gfx942 --hipdnn-outline-constants --split-input-file | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-order-weights --split-input-file | filecheck %s --check-prefix=HOST

// HOST-NOT: torch.aten.linear
// HOST-NOT: torch.aten.permute

// The stored constant has a row for each column; two matmuls by it have it in common.

// CHECK-LABEL: func.func private @hipdnn_constants
// CHECK:         %[[P:.+]] = torch.aten.permute %arg0, %{{.+}} -> !torch.vtensor<[4,8],f16>
// CHECK:         %[[C:.+]] = torch.aten.clone %[[P]]
// CHECK:         return %[[C]] : !torch.vtensor<[4,8],f16>
// CHECK-LABEL: func.func @constant
// CHECK-SAME:    %[[W:[a-z0-9]+]]: !torch.vtensor<[4,8],f16> {hipdnn.constant = "w.folded"}
// CHECK:         torch.aten.linear %arg0, %[[W]], %none : !torch.vtensor<[2,3,8],f16>, !torch.vtensor<[4,8],f16>, !torch.none -> !torch.vtensor<[2,3,4],f16>
// CHECK:         torch.aten.linear %arg1, %[[W]], %none_0 : !torch.vtensor<[5,8],f16>, !torch.vtensor<[4,8],f16>, !torch.none -> !torch.vtensor<[5,4],f16>
// CHECK-NOT:     torch.aten.{{matmul|mm}}
!x = !torch.vtensor<[2,3,8],f16>
!r = !torch.vtensor<[5,8],f16>
!w = !torch.vtensor<[8,4],f16>
!y = !torch.vtensor<[2,3,4],f16>
!z = !torch.vtensor<[5,4],f16>
func.func @constant(%x: !x, %r: !r, %w: !w {hipdnn.constant = "w"}) -> (!y, !z) {
  %y = torch.aten.matmul %x, %w : !x, !w -> !y
  %z = torch.aten.mm %r, %w : !r, !w -> !z
  return %y, %z : !y, !z
}

// -----

// What the model itself transposes is there already, for whatever else reads it, too: embeddings that are the last layer's weights.

// CHECK-NOT:   @hipdnn_constants
// CHECK-LABEL: func.func @tied
// CHECK:         torch.aten.linear %arg0, %arg1, %none : !torch.vtensor<[2,8],f16>, !torch.vtensor<[4,8],f16>, !torch.none
// CHECK-NOT:     torch.aten.clone
!x = !torch.vtensor<[2,8],f16>
!w = !torch.vtensor<[8,4],f16>
!e = !torch.vtensor<[4,8],f16>
!y = !torch.vtensor<[2,4],f16>
func.func @tied(%x: !x, %e: !e {hipdnn.constant = "e"}) -> (!y, !e) {
  %w = torch.aten.t %e : !e -> !w
  %y = torch.aten.matmul %x, %w : !x, !w -> !y
  return %y, %e : !y, !e
}

// -----

// A matrix that is computed at run time would be copied in each run; batches of matrices and vectors stay as well.

// CHECK-LABEL: func.func @other
// CHECK-NOT:     torch.aten.linear
!x = !torch.vtensor<[2,3,8],f16>
!v = !torch.vtensor<[8],f16>
!w = !torch.vtensor<[8,4],f16>
!b = !torch.vtensor<[2,8,4],f16>
!y = !torch.vtensor<[2,3,4],f16>
!r = !torch.vtensor<[4],f16>
!z = !torch.vtensor<[2,3],f16>
func.func @other(%x: !x, %v: !v, %w: !w, %c: !w {hipdnn.constant = "c"}, %b: !b {hipdnn.constant = "b"}, %d: !v {hipdnn.constant = "d"}) -> (!y, !y, !r, !z) {
  %0 = torch.aten.matmul %x, %w : !x, !w -> !y
  %1 = torch.aten.matmul %x, %b : !x, !b -> !y
  %2 = torch.aten.matmul %v, %c : !v, !w -> !r
  %3 = torch.aten.matmul %x, %d : !x, !v -> !z
  return %0, %1, %2, %3 : !y, !y, !r, !z
}
