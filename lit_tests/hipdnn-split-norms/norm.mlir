// RUN: hipdnn-opt %s --hipdnn-split-norms=target=sm_90 | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-split-norms=target=gfx942 | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-split-norms | filecheck %s --check-prefix=HOST

!x = !torch.vtensor<[1,1,320,14,14],f32>
!many = !torch.vtensor<[2,32,10,64,64],f32>
!c = !torch.vtensor<[1],f32>
!cs = !torch.vtensor<[32],f32>

// HOST-NOT: torch.aten.mean.dim

// CHECK-LABEL: func.func @few
// CHECK:         %[[PART:.+]] = torch.aten.mean.dim %arg0, %{{.+}} -> !torch.vtensor<[1,1,1,14,14],f32>
// CHECK:         %[[OFF:.+]] = torch.aten.sub.Tensor %arg0, %[[PART]], %{{.+}} -> !torch.vtensor<[1,1,320,14,14],f32>
// CHECK:         %[[SQUARE:.+]] = torch.aten.mul.Tensor %[[OFF]], %[[OFF]]
// CHECK:         %[[SPREAD:.+]] = torch.aten.mean.dim %[[SQUARE]], %{{.+}} -> !torch.vtensor<[1,1,1,14,14],f32>
// CHECK:         %[[MEAN:.+]] = torch.aten.mean.dim %[[PART]], %{{.+}} -> !torch.vtensor<[1,1,1,1,1],f32>
// CHECK:         torch.aten.rsqrt
// CHECK-NOT:     torch.aten.instance_norm
func.func @few(%x: !x, %w: !c, %b: !c) -> !x {
  %none = torch.constant.none
  %true = torch.constant.bool true
  %false = torch.constant.bool false
  %momentum = torch.constant.float 0.0
  %eps = torch.constant.float 1.0e-5
  %y = torch.aten.instance_norm %x, %w, %b, %none, %none, %true, %momentum, %eps, %false : !x, !c, !c, !torch.none, !torch.none, !torch.bool, !torch.float, !torch.float, !torch.bool -> !x
  return %y : !x
}

// As many rows as keep a GPU busy stay one kernel.

// CHECK-LABEL: func.func @enough
// CHECK:         torch.aten.instance_norm
func.func @enough(%x: !many, %w: !cs, %b: !cs) -> !many {
  %none = torch.constant.none
  %true = torch.constant.bool true
  %false = torch.constant.bool false
  %momentum = torch.constant.float 0.0
  %eps = torch.constant.float 1.0e-5
  %y = torch.aten.instance_norm %x, %w, %b, %none, %none, %true, %momentum, %eps, %false : !many, !cs, !cs, !torch.none, !torch.none, !torch.bool, !torch.float, !torch.float, !torch.bool -> !many
  return %y : !many
}
