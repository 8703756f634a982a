// RUN: hipdnn-opt %s --hipdnn-offload="target=sm_90" | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-offload="target=host" | filecheck %s --check-prefix=HOST

!x = !torch.vtensor<[4,256],f32>

// On a GPU, regions that read half of the same values are one, if nothing between them waits for the first.

// CHECK-LABEL: func.func @siblings
// CHECK:         %[[R:.+]]:2 = hipdnn.graph
// CHECK-NOT:     hipdnn.graph
// HOST-LABEL:  func.func @siblings
// HOST-COUNT-2:  hipdnn.graph
func.func @siblings(%a: !x, %b: !x, %s: !x, %t: !x) -> (!x, !x) {
  %u = torch.aten.mul.Tensor %a, %s : !x, !x -> !x
  %v = torch.aten.mul.Tensor %a, %t : !x, !x -> !x
  return %u, %v : !x, !x
}

// CHECK-LABEL: func.func @apart
// CHECK-COUNT-3: hipdnn.graph
func.func @apart(%a: !x, %w: !torch.vtensor<[256,256],f32>, %s: !x) -> (!x, !x) {
  %1 = torch.constant.int 1
  %none = torch.constant.none
  %u = torch.aten.mul.Tensor %a, %s : !x, !x -> !x
  %m = torch.aten.mm %u, %w : !x, !torch.vtensor<[256,256],f32> -> !x
  %n = torch.aten.softmax.int %m, %1, %none : !x, !torch.int, !torch.none -> !x
  %v = torch.aten.mul.Tensor %a, %n : !x, !x -> !x
  return %u, %v : !x, !x
}
