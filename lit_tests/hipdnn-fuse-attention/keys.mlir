// RUN: hipdnn-opt %s --hipdnn-fuse-attention --canonicalize --split-input-file | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-fuse-attention=target=sm_90 --canonicalize --split-input-file | filecheck %s --check-prefix=GPU

// On GPUs no engine takes it; there are kernels, or it is written out.

// GPU-LABEL: func.func @counted
// GPU:         torch.operator "hipdnn.onnx.CachedAttention"

// A where that shows the first keys up to a number of them: the others are not read. What else is masked is the bias.

// CHECK-LABEL: func.func @counted
// CHECK-DAG:     %[[QUERIES:.+]] = torch.vtensor.literal(dense<5> : tensor<2xsi32>)
// CHECK:         %[[COUNT:.+]] = torch.aten.to.dtype %arg4
// CHECK:         %[[KEYS:.+]] = torch.aten.expand %[[COUNT]]
// CHECK:         %[[Y:.+]] = torch.operator "hipdnn.onnx.CachedAttention"(%arg0, %arg1, %arg2, %[[QUERIES]], %[[KEYS]], %arg3)
// CHECK-SAME:      torch.onnx.causal = 0 : si64, torch.onnx.scale = 1.000000e+00 : f32
// CHECK-NEXT:    return %[[Y]]
!q = !torch.vtensor<[2,4,5,8],f32>
!kv = !torch.vtensor<[2,4,7,8],f32>
!keys = !torch.vtensor<[2,4,8,7],f32>
!scores = !torch.vtensor<[2,4,5,7],f32>
!bias = !torch.vtensor<[2,1,5,7],f32>
!count = !torch.vtensor<[1],si64>
!n = !torch.vtensor<[],si64>
!i = !torch.int
func.func @counted(%q: !q, %k: !kv, %v: !kv, %bias: !bias, %count: !count) -> !q {
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %none = torch.constant.none
  %hidden = torch.vtensor.literal(dense<0xFF800000> : tensor<f32>) : !torch.vtensor<[],f32>
  %zero = torch.vtensor.literal(dense<0> : tensor<si64>) : !n
  %one = torch.vtensor.literal(dense<1> : tensor<si64>) : !n
  %seven = torch.vtensor.literal(dense<7> : tensor<si64>) : !n
  %places = torch.operator "hipdnn.onnx.Range"(%zero, %seven, %one) : (!n, !n, !n) -> !torch.vtensor<[7],si64>
  %valid = torch.aten.lt.Tensor %places, %count : !torch.vtensor<[7],si64>, !count -> !torch.vtensor<[7],i1>
  %kt = torch.aten.transpose.int %k, %2, %3 : !kv, !i, !i -> !keys
  %a = torch.aten.matmul %q, %kt : !q, !keys -> !scores
  %b = torch.aten.add.Tensor %a, %bias, %1 : !scores, !bias, !i -> !scores
  %c = torch.aten.where.self %valid, %b, %hidden : !torch.vtensor<[7],i1>, !scores, !torch.vtensor<[],f32> -> !scores
  %d = torch.aten.softmax.int %c, %3, %none : !scores, !i, !torch.none -> !scores
  %y = torch.aten.matmul %d, %v : !scores, !kv -> !q
  return %y : !q
}

// -----

// A number that differs between texts, and a range that does not begin at 0, are masks as others are.

// CHECK-LABEL: func.func @masked
// CHECK-NOT:     CachedAttention
// CHECK:         torch.aten.scaled_dot_product_attention
// CHECK:         torch.aten.scaled_dot_product_attention
!q = !torch.vtensor<[2,4,5,8],f32>
!keys = !torch.vtensor<[2,4,8,5],f32>
!scores = !torch.vtensor<[2,4,5,5],f32>
!n = !torch.vtensor<[],si64>
!places = !torch.vtensor<[5],si64>
!counts = !torch.vtensor<[2,1,1,1],si64>
!i = !torch.int
func.func @masked(%q: !q, %counts: !counts, %count: !torch.vtensor<[1],si64>) -> (!q, !q) {
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %none = torch.constant.none
  %hidden = torch.vtensor.literal(dense<0xFF800000> : tensor<f32>) : !torch.vtensor<[],f32>
  %zero = torch.vtensor.literal(dense<0> : tensor<si64>) : !n
  %one = torch.vtensor.literal(dense<1> : tensor<si64>) : !n
  %five = torch.vtensor.literal(dense<5> : tensor<si64>) : !n
  %six = torch.vtensor.literal(dense<6> : tensor<si64>) : !n
  %places = torch.operator "hipdnn.onnx.Range"(%zero, %five, %one) : (!n, !n, !n) -> !places
  %later = torch.operator "hipdnn.onnx.Range"(%one, %six, %one) : (!n, !n, !n) -> !places
  %a = torch.aten.lt.Tensor %places, %counts : !places, !counts -> !torch.vtensor<[2,1,1,5],i1>
  %b = torch.aten.lt.Tensor %later, %count : !places, !torch.vtensor<[1],si64> -> !torch.vtensor<[5],i1>
  %qt = torch.aten.transpose.int %q, %2, %3 : !q, !i, !i -> !keys
  %c = torch.aten.matmul %q, %qt : !q, !keys -> !scores
  %d = torch.aten.where.self %a, %c, %hidden : !torch.vtensor<[2,1,1,5],i1>, !scores, !torch.vtensor<[],f32> -> !scores
  %e = torch.aten.softmax.int %d, %3, %none : !scores, !i, !torch.none -> !scores
  %f = torch.aten.matmul %e, %q : !scores, !q -> !q
  %g = torch.aten.matmul %q, %qt : !q, !keys -> !scores
  %h = torch.aten.where.self %b, %g, %hidden : !torch.vtensor<[5],i1>, !scores, !torch.vtensor<[],f32> -> !scores
  %j = torch.aten.softmax.int %h, %3, %none : !scores, !i, !torch.none -> !scores
  %k = torch.aten.matmul %j, %q : !scores, !q -> !q
  return %f, %k : !q, !q
}
