// RUN: hipdnn-opt %s --hipdnn-write-out-attention=target=sm_90 --split-input-file | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-write-out-attention --split-input-file | filecheck %s --check-prefix=TAKEN

// TAKEN-NOT: torch.aten.matmul

// No engine of this target has attention in f32: keys are repeated for the heads that share them, and the triangle is computed.

// CHECK-LABEL: func.func @causal
// CHECK-NOT:     scaled_dot_product_attention
// CHECK:         %[[K:.+]] = torch.aten.expand
// CHECK:         %[[S:.+]] = torch.aten.matmul %arg0, %{{.+}} -> !torch.vtensor<[2,4,5,7],f32>
// CHECK:         %[[X:.+]] = torch.aten.mul.Scalar %[[S]]
// CHECK:         %[[T:.+]] = torch.aten.le.Tensor %{{.+}} -> !torch.vtensor<[5,7],i1>
// CHECK:         %[[M:.+]] = torch.aten.where.self %[[T]], %[[X]]
// CHECK:         %[[P:.+]] = torch.aten.softmax.int %[[M]]
// CHECK:         torch.aten.matmul %[[P]]
!q = !torch.vtensor<[2,4,5,8],f32>
!kv = !torch.vtensor<[2,2,7,8],f32>
func.func @causal(%q: !q, %k: !kv, %v: !kv) -> !q {
  %none = torch.constant.none
  %zero = torch.constant.float 0.000000e+00
  %true = torch.constant.bool true
  %y = torch.aten.scaled_dot_product_attention %q, %k, %v, %none, %zero, %true, %none, %true : !q, !kv, !kv, !torch.none, !torch.float, !torch.bool, !torch.none, !torch.bool -> !q
  return %y : !q
}

// -----

// In f16 there is one.

// CHECK-LABEL: func.func @taken
// CHECK:         torch.aten.scaled_dot_product_attention
!h = !torch.vtensor<[2,4,5,8],f16>
func.func @taken(%q: !h, %k: !h, %v: !h) -> !h {
  %none = torch.constant.none
  %zero = torch.constant.float 0.000000e+00
  %false = torch.constant.bool false
  %y = torch.aten.scaled_dot_product_attention %q, %k, %v, %none, %zero, %false, %none, %false : !h, !h, !h, !torch.none, !torch.float, !torch.bool, !torch.none, !torch.bool -> !h
  return %y : !h
}

// -----

// A mask of f32 beside operands of f16 is added in f32, where softmax is, too.

// CHECK-LABEL: func.func @wide_mask
// CHECK-NOT:     scaled_dot_product_attention
// CHECK:         %[[S:.+]] = torch.aten.mul.Scalar
// CHECK:         %[[W:.+]] = torch.aten.to.dtype %[[S]], {{.+}} -> !torch.vtensor<[2,4,5,7],f32>
// CHECK:         %[[M:.+]] = torch.aten.add.Tensor %[[W]], %arg3
// CHECK:         %[[P:.+]] = torch.aten.softmax.int %[[M]], {{.+}} -> !torch.vtensor<[2,4,5,7],f32>
// CHECK:         %[[N:.+]] = torch.aten.to.dtype %[[P]], {{.+}} -> !torch.vtensor<[2,4,5,7],f16>
// CHECK:         torch.aten.matmul %[[N]], %arg2
!q = !torch.vtensor<[2,4,5,8],f16>
!kv = !torch.vtensor<[2,4,7,8],f16>
!m = !torch.vtensor<[2,1,5,7],f32>
func.func @wide_mask(%q: !q, %k: !kv, %v: !kv, %mask: !m) -> !q {
  %none = torch.constant.none
  %zero = torch.constant.float 0.000000e+00
  %false = torch.constant.bool false
  %y = torch.aten.scaled_dot_product_attention %q, %k, %v, %mask, %zero, %false, %none, %false : !q, !kv, !kv, !m, !torch.float, !torch.bool, !torch.none, !torch.bool -> !q
  return %y : !q
}
