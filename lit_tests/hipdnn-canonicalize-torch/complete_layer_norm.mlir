// RUN: hipdnn-opt %s --hipdnn-canonicalize-torch | filecheck %s

!x = !torch.vtensor<[2,8],f32>
!c = !torch.vtensor<[8],f32>
!m = !torch.vtensor<[2,1],f32>

// hipDNN's layer norm has a scale and a bias.

// CHECK-LABEL: func.func @without_scale_and_bias
// CHECK:         %[[ONES:.+]] = torch.vtensor.literal(dense<1.000000e+00> : tensor<8xf32>)
// CHECK:         %[[ZEROS:.+]] = torch.vtensor.literal(dense<0.000000e+00> : tensor<8xf32>)
// CHECK:         torch.aten.native_layer_norm %arg0, %{{.+}}, %[[ONES]], %[[ZEROS]]
func.func @without_scale_and_bias(%x: !x) -> !x {
  %none = torch.constant.none
  %eps = torch.constant.float 1.0e-5
  %8 = torch.constant.int 8
  %dims = torch.prim.ListConstruct %8 : (!torch.int) -> !torch.list<int>
  %y, %mean, %rstd = torch.aten.native_layer_norm %x, %dims, %none, %none, %eps : !x, !torch.list<int>, !torch.none, !torch.none, !torch.float -> !x, !m, !m
  return %y : !x
}

// CHECK-LABEL: func.func @complete
// CHECK-NOT:     torch.vtensor.literal
// CHECK:         torch.aten.native_layer_norm %arg0, %{{.+}}, %arg1, %arg2
func.func @complete(%x: !x, %scale: !c, %bias: !c) -> !x {
  %eps = torch.constant.float 1.0e-5
  %8 = torch.constant.int 8
  %dims = torch.prim.ListConstruct %8 : (!torch.int) -> !torch.list<int>
  %y, %mean, %rstd = torch.aten.native_layer_norm %x, %dims, %scale, %bias, %eps : !x, !torch.list<int>, !c, !c, !torch.float -> !x, !m, !m
  return %y : !x
}
