// RUN: hipdnn-opt %s --hipdnn-write-out-caches=target=sm_90 --split-input-file | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-write-out-caches=target=gfx942 --split-input-file | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-write-out-caches --split-input-file | filecheck %s --check-prefix=HOST

// A query sees the keys up to its own place, counted from the valid ones' end; the host has an engine.

// CHECK-LABEL: func.func @causal
// CHECK-NOT:     CachedAttention
// CHECK:         %[[BEFORE:.+]] = torch.aten.sub.Tensor %arg4, %arg3
// CHECK:         %[[FIRST:.+]] = torch.aten.view %[[BEFORE]], %{{.+}} -> !torch.vtensor<[2,1,1,1],si32>
// CHECK:         %[[OWN:.+]] = torch.aten.add.Tensor %[[FIRST]], %{{.+}} -> !torch.vtensor<[2,1,3,1],si32>
// CHECK:         %[[COLUMNS:.+]] = torch.aten.arange.start_step {{.+}} -> !torch.vtensor<[16],si32>
// CHECK:         %[[SHOWN:.+]] = torch.aten.le.Tensor %[[COLUMNS]], %[[OWN]] {{.+}} -> !torch.vtensor<[2,1,3,16],i1>
// CHECK-NOT:     torch.aten.logical_and
// CHECK:         %[[MASK:.+]] = torch.aten.where.self %[[SHOWN]], {{.+}} -> !torch.vtensor<[2,1,3,16],f32>
// CHECK:         %[[SCALE:.+]] = torch.constant.float 2.500000e-01
// CHECK:         %[[SHARED:.+]] = torch.constant.bool true
// CHECK:         torch.aten.scaled_dot_product_attention %arg0, %arg1, %arg2, %[[MASK]], %{{.+}}, %{{.+}}, %[[SCALE]], %[[SHARED]]
// HOST-LABEL: func.func @causal
// HOST:         CachedAttention
!q = !torch.vtensor<[2,4,3,16],f32>
!kv = !torch.vtensor<[2,2,16,16],f32>
!counts = !torch.vtensor<[2],si32>
func.func @causal(%q: !q, %k: !kv, %v: !kv, %queries: !counts, %keys: !counts) -> !q {
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%q, %k, %v, %queries, %keys) {torch.onnx.left = -1 : si64, torch.onnx.scale = 0.0 : f32} : (!q, !kv, !kv, !counts, !counts) -> !q
  return %y : !q
}

// -----

// Of those it sees the last three.

// CHECK-LABEL: func.func @window
// CHECK:         %[[COLUMNS:.+]] = torch.aten.arange.start_step {{.+}} -> !torch.vtensor<[16],si32>
// CHECK:         %[[NEAR:.+]] = torch.aten.le.Tensor %[[COLUMNS]], %[[OWN:.+]] :
// CHECK:         %[[THREE:.+]] = torch.vtensor.literal(dense<3> : tensor<si32>)
// CHECK:         %[[HIDDEN:.+]] = torch.aten.sub.Tensor %[[OWN]], %[[THREE]]
// CHECK:         %[[FAR:.+]] = torch.aten.gt.Tensor %[[COLUMNS]], %[[HIDDEN]]
// CHECK:         %[[SHOWN:.+]] = torch.aten.logical_and %[[NEAR]], %[[FAR]]
// CHECK:         torch.aten.where.self %[[SHOWN]]
// CHECK:         %[[SCALE:.+]] = torch.constant.float 5.000000e-01
// CHECK:         %[[SHARED:.+]] = torch.constant.bool false
// CHECK:         torch.aten.scaled_dot_product_attention {{.+}} %[[SCALE]], %[[SHARED]]
!q = !torch.vtensor<[1,2,3,16],f16>
!kv = !torch.vtensor<[1,2,16,16],f16>
!counts = !torch.vtensor<[1],si32>
func.func @window(%q: !q, %k: !kv, %v: !kv, %queries: !counts, %keys: !counts) -> !q {
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%q, %k, %v, %queries, %keys) {torch.onnx.left = 3 : si64, torch.onnx.scale = 0.5 : f32} : (!q, !kv, !kv, !counts, !counts) -> !q
  return %y : !q
}

// -----

// A bias is part of the mask: only the host's engine takes it beside counts.

// CHECK-LABEL: func.func @bias
// CHECK:         %[[MASK:.+]] = torch.aten.where.self %{{.+}}, %arg5, %{{.+}} -> !torch.vtensor<[2,4,3,16],f32>
// CHECK:         torch.aten.scaled_dot_product_attention %arg0, %arg1, %arg2, %[[MASK]]
// HOST-LABEL: func.func @bias
// HOST:         CachedAttention
!q = !torch.vtensor<[2,4,3,16],f32>
!kv = !torch.vtensor<[2,2,16,16],f32>
!counts = !torch.vtensor<[2],si32>
!bias = !torch.vtensor<[1,4,3,16],f32>
func.func @bias(%q: !q, %k: !kv, %v: !kv, %queries: !counts, %keys: !counts, %bias: !bias) -> !q {
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%q, %k, %v, %queries, %keys, %bias) {torch.onnx.scale = 0.5 : f32} : (!q, !kv, !kv, !counts, !counts, !bias) -> !q
  return %y : !q
}

// -----

// With a soft cap and a sink attention is its parts, in f32. Rows of heads that share keys lie below each other.

// CHECK-LABEL: func.func @capped
// CHECK-NOT:     CachedAttention
// CHECK:         %[[MASK:.+]] = torch.aten.where.self {{.+}} -> !torch.vtensor<[2,1,3,16],f32>
// CHECK:         %[[KEYS:.+]] = torch.aten.permute %arg1, {{.+}} -> !torch.vtensor<[2,2,16,16],f16>
// CHECK:         %[[ROWS:.+]] = torch.aten.view %arg0, {{.+}} -> !torch.vtensor<[2,2,6,16],f16>
// CHECK:         torch.aten.matmul %[[ROWS]], %[[KEYS]]
// CHECK:         %[[INNER:.+]] = torch.constant.float 2.500000e-01
// CHECK:         %[[SMALL:.+]] = torch.aten.mul.Scalar %{{.+}}, %[[INNER]] {{.+}} -> !torch.vtensor<[2,4,3,16],f32>
// CHECK:         %[[BOUND:.+]] = torch.aten.tanh %[[SMALL]]
// CHECK:         %[[CAP:.+]] = torch.constant.float 2.000000e+00
// CHECK:         %[[CAPPED:.+]] = torch.aten.mul.Scalar %[[BOUND]], %[[CAP]]
// CHECK:         %[[SEEN:.+]] = torch.aten.add.Tensor %[[CAPPED]], %[[MASK]]
// CHECK:         torch.aten.cat {{.+}} -> !torch.vtensor<[2,4,3,17],f32>
// CHECK:         torch.aten.softmax.int
// CHECK:         torch.aten.slice.Tensor {{.+}} -> !torch.vtensor<[2,4,3,16],f32>
// CHECK:         torch.aten.matmul %{{.+}}, %arg2 : !torch.vtensor<[2,2,6,16],f16>, !torch.vtensor<[2,2,16,16],f16> -> !torch.vtensor<[2,2,6,16],f16>
// HOST-LABEL: func.func @capped
// HOST:         CachedAttention
!q = !torch.vtensor<[2,4,3,16],f16>
!kv = !torch.vtensor<[2,2,16,16],f16>
!counts = !torch.vtensor<[2],si32>
!sink = !torch.vtensor<[4],f32>
func.func @capped(%q: !q, %k: !kv, %v: !kv, %queries: !counts, %keys: !counts, %sink: !sink) -> !q {
  %none = torch.constant.none
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%q, %k, %v, %queries, %keys, %none, %sink) {torch.onnx.scale = 0.5 : f32, torch.onnx.softcap = 2.0 : f32} : (!q, !kv, !kv, !counts, !counts, !torch.none, !sink) -> !q
  return %y : !q
}

// -----

// What a row refuses stays, so that the reason is told.

// CHECK-LABEL: func.func @refused
// CHECK:         CachedAttention
!cache = !torch.vtensor<[2,4,16,8],f64>
!q = !torch.vtensor<[2,4,3,8],f64>
!counts = !torch.vtensor<[2],si32>
func.func @refused(%q: !q, %k: !cache, %queries: !counts) -> !q {
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%q, %k, %k, %queries, %queries) : (!q, !cache, !cache, !counts, !counts) -> !q
  return %y : !q
}

// -----

// Pages are gathered into a buffer for each sequence.

// CHECK-LABEL: func.func @pages
// CHECK:         %[[NAMES:.+]] = torch.aten.view %arg5, %{{.+}} -> !torch.vtensor<[6],si32>
// CHECK:         torch.aten.index_select %arg1, %{{.+}}, %[[NAMES]] {{.+}} -> !torch.vtensor<[6,2,8,16],f32>
// CHECK:         %[[KEYS:.+]] = torch.aten.view %{{.+}} -> !torch.vtensor<[2,2,24,16],f32>
// CHECK:         torch.aten.index_select %arg2
// CHECK:         %[[VALUES:.+]] = torch.aten.view %{{.+}} -> !torch.vtensor<[2,2,24,16],f32>
// CHECK:         torch.aten.scaled_dot_product_attention %arg0, %[[KEYS]], %[[VALUES]]
// HOST-LABEL: func.func @pages
// HOST:         CachedAttention
!q = !torch.vtensor<[2,4,3,16],f32>
!pool = !torch.vtensor<[9,2,8,16],f32>
!counts = !torch.vtensor<[2],si32>
!table = !torch.vtensor<[2,3],si32>
func.func @pages(%q: !q, %k: !pool, %v: !pool, %queries: !counts, %keys: !counts, %table: !table) -> !q {
  %none = torch.constant.none
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%q, %k, %v, %queries, %keys, %none, %none, %table) : (!q, !pool, !pool, !counts, !counts, !torch.none, !torch.none, !table) -> !q
  return %y : !q
}

// -----

// Where attention is not causal, a query sees all keys that are valid.

// CHECK-LABEL: func.func @all
// CHECK-NOT:     CachedAttention
// CHECK:         %[[COUNTS:.+]] = torch.aten.view %arg4, %{{.+}} -> !torch.vtensor<[2,1,1,1],si32>
// CHECK:         %[[SHOWN:.+]] = torch.aten.lt.Tensor %{{.+}}, %[[COUNTS]] {{.+}} -> !torch.vtensor<[2,1,1,16],i1>
// CHECK:         %[[MASK:.+]] = torch.aten.where.self %[[SHOWN]], {{.+}} -> !torch.vtensor<[2,1,1,16],f32>
// CHECK:         torch.aten.scaled_dot_product_attention %arg0, %arg1, %arg2, %[[MASK]]
// HOST-LABEL: func.func @all
// HOST:         CachedAttention
!q = !torch.vtensor<[2,4,3,16],f32>
!kv = !torch.vtensor<[2,2,16,16],f32>
!counts = !torch.vtensor<[2],si32>
func.func @all(%q: !q, %k: !kv, %v: !kv, %queries: !counts, %keys: !counts) -> !q {
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%q, %k, %v, %queries, %keys) {torch.onnx.causal = 0 : si64, torch.onnx.scale = 0.0 : f32} : (!q, !kv, !kv, !counts, !counts) -> !q
  return %y : !q
}
