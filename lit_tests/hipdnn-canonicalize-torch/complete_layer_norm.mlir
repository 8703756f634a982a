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

// Layer norm is computed in f32, whatever its operands are.

// CHECK-LABEL: func.func @narrow
// CHECK-NOT:     torch.aten.to.dtype
// CHECK:         torch.aten.native_layer_norm %arg0, %{{.+}}, %arg1, %arg2
!h = !torch.vtensor<[2,8],f16>
!hc = !torch.vtensor<[8],f16>
func.func @narrow(%x: !h, %scale: !hc, %bias: !hc) -> !h {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %f32 = torch.constant.int 6
  %eps = torch.constant.float 1.0e-5
  %8 = torch.constant.int 8
  %dims = torch.prim.ListConstruct %8 : (!torch.int) -> !torch.list<int>
  %wide = torch.aten.to.dtype %x, %f32, %false, %false, %none : !h, !torch.int, !torch.bool, !torch.bool, !torch.none -> !x
  %y, %mean, %rstd = torch.aten.native_layer_norm %wide, %dims, %scale, %bias, %eps : !x, !torch.list<int>, !hc, !hc, !torch.float -> !h, !m, !m
  return %y : !h
}
