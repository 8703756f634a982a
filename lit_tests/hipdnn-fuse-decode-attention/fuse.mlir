// RUN: hipdnn-opt %s --hipdnn-fuse-decode-attention=target=sm_90 --split-input-file | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-fuse-decode-attention=target=gfx942 --split-input-file | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-fuse-decode-attention --split-input-file | filecheck %s --check-prefix=HOST

// HOST-NOT: DecodeAttention

// Rotation of query and key, both new rows and the attention are one operator.

// CHECK-LABEL: func.func @rotated
// CHECK-NOT:     CacheUpdate
// CHECK-NOT:     torch.aten.mul
// CHECK:         %[[MADE:.+]]:3 = torch.operator "hipdnn.onnx.DecodeAttention"(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg8, %arg9, %arg10)
// CHECK-SAME:      torch.onnx.left = 7 : si64, torch.onnx.scale = 2.500000e-01 : f32
// CHECK-SAME:      -> (!torch.vtensor<[2,4,1,32],f16>, !torch.vtensor<[2,2,16,32],f16>, !torch.vtensor<[2,2,16,32],f16>)
// CHECK-NOT:     CachedAttention
// CHECK:         return %[[MADE]]#0, %[[MADE]]#1, %[[MADE]]#2
!q = !torch.vtensor<[2,4,1,32],f16>
!new = !torch.vtensor<[2,2,1,32],f16>
!kv = !torch.vtensor<[2,2,16,32],f16>
!counts = !torch.vtensor<[2],si32>
!start = !torch.vtensor<[2],si64>
!places = !torch.vtensor<[16],si64>
!angles = !torch.vtensor<[2,1,1,16],f16>
!i = !torch.int
func.func @rotated(%q: !q, %k: !new, %v: !new, %past_k: !kv, %past_v: !kv, %start: !start, %places: !places, %queries: !counts, %keys: !counts, %cos: !angles, %sin: !angles) -> (!q, !kv, !kv) {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %3 = torch.constant.int 3
  %16 = torch.constant.int 16
  %32 = torch.constant.int 32
  %tqa = torch.aten.slice.Tensor %q, %3, %0, %16, %1 : !q, !i, !i, !i, !i -> !torch.vtensor<[2,4,1,16],f16>
  %tqb = torch.aten.slice.Tensor %q, %3, %16, %32, %1 : !q, !i, !i, !i, !i -> !torch.vtensor<[2,4,1,16],f16>
  %tqac = torch.aten.mul.Tensor %tqa, %cos : !torch.vtensor<[2,4,1,16],f16>, !angles -> !torch.vtensor<[2,4,1,16],f16>
  %tqbs = torch.aten.mul.Tensor %tqb, %sin : !torch.vtensor<[2,4,1,16],f16>, !angles -> !torch.vtensor<[2,4,1,16],f16>
  %tqreal = torch.aten.sub.Tensor %tqac, %tqbs, %1 : !torch.vtensor<[2,4,1,16],f16>, !torch.vtensor<[2,4,1,16],f16>, !i -> !torch.vtensor<[2,4,1,16],f16>
  %tqas = torch.aten.mul.Tensor %tqa, %sin : !torch.vtensor<[2,4,1,16],f16>, !angles -> !torch.vtensor<[2,4,1,16],f16>
  %tqbc = torch.aten.mul.Tensor %tqb, %cos : !torch.vtensor<[2,4,1,16],f16>, !angles -> !torch.vtensor<[2,4,1,16],f16>
  %tqimaginary = torch.aten.add.Tensor %tqas, %tqbc, %1 : !torch.vtensor<[2,4,1,16],f16>, !torch.vtensor<[2,4,1,16],f16>, !i -> !torch.vtensor<[2,4,1,16],f16>
  %tqparts = torch.prim.ListConstruct %tqreal, %tqimaginary : (!torch.vtensor<[2,4,1,16],f16>, !torch.vtensor<[2,4,1,16],f16>) -> !torch.list<vtensor>
  %tq = torch.aten.cat %tqparts, %3 : !torch.list<vtensor>, !i -> !q
  %tka = torch.aten.slice.Tensor %k, %3, %0, %16, %1 : !new, !i, !i, !i, !i -> !torch.vtensor<[2,2,1,16],f16>
  %tkb = torch.aten.slice.Tensor %k, %3, %16, %32, %1 : !new, !i, !i, !i, !i -> !torch.vtensor<[2,2,1,16],f16>
  %tkac = torch.aten.mul.Tensor %tka, %cos : !torch.vtensor<[2,2,1,16],f16>, !angles -> !torch.vtensor<[2,2,1,16],f16>
  %tkbs = torch.aten.mul.Tensor %tkb, %sin : !torch.vtensor<[2,2,1,16],f16>, !angles -> !torch.vtensor<[2,2,1,16],f16>
  %tkreal = torch.aten.sub.Tensor %tkac, %tkbs, %1 : !torch.vtensor<[2,2,1,16],f16>, !torch.vtensor<[2,2,1,16],f16>, !i -> !torch.vtensor<[2,2,1,16],f16>
  %tkas = torch.aten.mul.Tensor %tka, %sin : !torch.vtensor<[2,2,1,16],f16>, !angles -> !torch.vtensor<[2,2,1,16],f16>
  %tkbc = torch.aten.mul.Tensor %tkb, %cos : !torch.vtensor<[2,2,1,16],f16>, !angles -> !torch.vtensor<[2,2,1,16],f16>
  %tkimaginary = torch.aten.add.Tensor %tkas, %tkbc, %1 : !torch.vtensor<[2,2,1,16],f16>, !torch.vtensor<[2,2,1,16],f16>, !i -> !torch.vtensor<[2,2,1,16],f16>
  %tkparts = torch.prim.ListConstruct %tkreal, %tkimaginary : (!torch.vtensor<[2,2,1,16],f16>, !torch.vtensor<[2,2,1,16],f16>) -> !torch.list<vtensor>
  %tk = torch.aten.cat %tkparts, %3 : !torch.list<vtensor>, !i -> !new
  %ks = torch.operator "hipdnn.onnx.CacheUpdate"(%past_k, %tk, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %vs = torch.operator "hipdnn.onnx.CacheUpdate"(%past_v, %v, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%tq, %ks, %vs, %queries, %keys) {torch.onnx.left = 7 : si64, torch.onnx.scale = 0.25 : f32} : (!q, !kv, !kv, !counts, !counts) -> !q
  return %y, %ks, %vs : !q, !kv, !kv
}

// -----

// What is rotated may be the first numbers of a head alone.

// CHECK-LABEL: func.func @partly
// CHECK-NOT:     torch.aten.mul
// CHECK:         "hipdnn.onnx.DecodeAttention"(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg8, %arg9, %arg10)
!q = !torch.vtensor<[2,4,1,32],f16>
!new = !torch.vtensor<[2,2,1,32],f16>
!kv = !torch.vtensor<[2,2,16,32],f16>
!counts = !torch.vtensor<[2],si32>
!start = !torch.vtensor<[2],si64>
!places = !torch.vtensor<[16],si64>
!angles = !torch.vtensor<[2,1,1,8],f16>
!i = !torch.int
func.func @partly(%q: !q, %k: !new, %v: !new, %past_k: !kv, %past_v: !kv, %start: !start, %places: !places, %queries: !counts, %keys: !counts, %cos: !angles, %sin: !angles) -> !q {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %3 = torch.constant.int 3
  %8 = torch.constant.int 8
  %16 = torch.constant.int 16
  %32 = torch.constant.int 32
  %tqa = torch.aten.slice.Tensor %q, %3, %0, %8, %1 : !q, !i, !i, !i, !i -> !torch.vtensor<[2,4,1,8],f16>
  %tqb = torch.aten.slice.Tensor %q, %3, %8, %16, %1 : !q, !i, !i, !i, !i -> !torch.vtensor<[2,4,1,8],f16>
  %tqac = torch.aten.mul.Tensor %tqa, %cos : !torch.vtensor<[2,4,1,8],f16>, !angles -> !torch.vtensor<[2,4,1,8],f16>
  %tqbs = torch.aten.mul.Tensor %tqb, %sin : !torch.vtensor<[2,4,1,8],f16>, !angles -> !torch.vtensor<[2,4,1,8],f16>
  %tqreal = torch.aten.sub.Tensor %tqac, %tqbs, %1 : !torch.vtensor<[2,4,1,8],f16>, !torch.vtensor<[2,4,1,8],f16>, !i -> !torch.vtensor<[2,4,1,8],f16>
  %tqas = torch.aten.mul.Tensor %tqa, %sin : !torch.vtensor<[2,4,1,8],f16>, !angles -> !torch.vtensor<[2,4,1,8],f16>
  %tqbc = torch.aten.mul.Tensor %tqb, %cos : !torch.vtensor<[2,4,1,8],f16>, !angles -> !torch.vtensor<[2,4,1,8],f16>
  %tqimaginary = torch.aten.add.Tensor %tqas, %tqbc, %1 : !torch.vtensor<[2,4,1,8],f16>, !torch.vtensor<[2,4,1,8],f16>, !i -> !torch.vtensor<[2,4,1,8],f16>
  %tqrest = torch.aten.slice.Tensor %q, %3, %16, %32, %1 : !q, !i, !i, !i, !i -> !torch.vtensor<[2,4,1,16],f16>
  %tqhalves = torch.prim.ListConstruct %tqreal, %tqimaginary : (!torch.vtensor<[2,4,1,8],f16>, !torch.vtensor<[2,4,1,8],f16>) -> !torch.list<vtensor>
  %tqjoined = torch.aten.cat %tqhalves, %3 : !torch.list<vtensor>, !i -> !torch.vtensor<[2,4,1,16],f16>
  %tqparts = torch.prim.ListConstruct %tqjoined, %tqrest : (!torch.vtensor<[2,4,1,16],f16>, !torch.vtensor<[2,4,1,16],f16>) -> !torch.list<vtensor>
  %tq = torch.aten.cat %tqparts, %3 : !torch.list<vtensor>, !i -> !q
  %tka = torch.aten.slice.Tensor %k, %3, %0, %8, %1 : !new, !i, !i, !i, !i -> !torch.vtensor<[2,2,1,8],f16>
  %tkb = torch.aten.slice.Tensor %k, %3, %8, %16, %1 : !new, !i, !i, !i, !i -> !torch.vtensor<[2,2,1,8],f16>
  %tkac = torch.aten.mul.Tensor %tka, %cos : !torch.vtensor<[2,2,1,8],f16>, !angles -> !torch.vtensor<[2,2,1,8],f16>
  %tkbs = torch.aten.mul.Tensor %tkb, %sin : !torch.vtensor<[2,2,1,8],f16>, !angles -> !torch.vtensor<[2,2,1,8],f16>
  %tkreal = torch.aten.sub.Tensor %tkac, %tkbs, %1 : !torch.vtensor<[2,2,1,8],f16>, !torch.vtensor<[2,2,1,8],f16>, !i -> !torch.vtensor<[2,2,1,8],f16>
  %tkas = torch.aten.mul.Tensor %tka, %sin : !torch.vtensor<[2,2,1,8],f16>, !angles -> !torch.vtensor<[2,2,1,8],f16>
  %tkbc = torch.aten.mul.Tensor %tkb, %cos : !torch.vtensor<[2,2,1,8],f16>, !angles -> !torch.vtensor<[2,2,1,8],f16>
  %tkimaginary = torch.aten.add.Tensor %tkas, %tkbc, %1 : !torch.vtensor<[2,2,1,8],f16>, !torch.vtensor<[2,2,1,8],f16>, !i -> !torch.vtensor<[2,2,1,8],f16>
  %tkrest = torch.aten.slice.Tensor %k, %3, %16, %32, %1 : !new, !i, !i, !i, !i -> !torch.vtensor<[2,2,1,16],f16>
  %tkhalves = torch.prim.ListConstruct %tkreal, %tkimaginary : (!torch.vtensor<[2,2,1,8],f16>, !torch.vtensor<[2,2,1,8],f16>) -> !torch.list<vtensor>
  %tkjoined = torch.aten.cat %tkhalves, %3 : !torch.list<vtensor>, !i -> !torch.vtensor<[2,2,1,16],f16>
  %tkparts = torch.prim.ListConstruct %tkjoined, %tkrest : (!torch.vtensor<[2,2,1,16],f16>, !torch.vtensor<[2,2,1,16],f16>) -> !torch.list<vtensor>
  %tk = torch.aten.cat %tkparts, %3 : !torch.list<vtensor>, !i -> !new
  %ks = torch.operator "hipdnn.onnx.CacheUpdate"(%past_k, %tk, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %vs = torch.operator "hipdnn.onnx.CacheUpdate"(%past_v, %v, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%tq, %ks, %vs, %queries, %keys) {torch.onnx.left = -1 : si64, torch.onnx.scale = 0.0 : f32} : (!q, !kv, !kv, !counts, !counts) -> !q
  return %y : !q
}

// -----

// Where the key is not rotated, or by other angles, the kernel could not rotate both: it gets what is rotated.

// CHECK-LABEL: func.func @query_alone
// CHECK:         %[[Q:.+]] = torch.aten.cat
// CHECK:         "hipdnn.onnx.DecodeAttention"(%[[Q]], %arg1, %arg2, %arg3, %arg4, %arg5, %arg8)
!q = !torch.vtensor<[2,4,1,32],f16>
!new = !torch.vtensor<[2,2,1,32],f16>
!kv = !torch.vtensor<[2,2,16,32],f16>
!counts = !torch.vtensor<[2],si32>
!start = !torch.vtensor<[2],si64>
!places = !torch.vtensor<[16],si64>
!angles = !torch.vtensor<[2,1,1,16],f16>
!i = !torch.int
func.func @query_alone(%q: !q, %k: !new, %v: !new, %past_k: !kv, %past_v: !kv, %start: !start, %places: !places, %queries: !counts, %keys: !counts, %cos: !angles, %sin: !angles) -> !q {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %3 = torch.constant.int 3
  %16 = torch.constant.int 16
  %32 = torch.constant.int 32
  %tqa = torch.aten.slice.Tensor %q, %3, %0, %16, %1 : !q, !i, !i, !i, !i -> !torch.vtensor<[2,4,1,16],f16>
  %tqb = torch.aten.slice.Tensor %q, %3, %16, %32, %1 : !q, !i, !i, !i, !i -> !torch.vtensor<[2,4,1,16],f16>
  %tqac = torch.aten.mul.Tensor %tqa, %cos : !torch.vtensor<[2,4,1,16],f16>, !angles -> !torch.vtensor<[2,4,1,16],f16>
  %tqbs = torch.aten.mul.Tensor %tqb, %sin : !torch.vtensor<[2,4,1,16],f16>, !angles -> !torch.vtensor<[2,4,1,16],f16>
  %tqreal = torch.aten.sub.Tensor %tqac, %tqbs, %1 : !torch.vtensor<[2,4,1,16],f16>, !torch.vtensor<[2,4,1,16],f16>, !i -> !torch.vtensor<[2,4,1,16],f16>
  %tqas = torch.aten.mul.Tensor %tqa, %sin : !torch.vtensor<[2,4,1,16],f16>, !angles -> !torch.vtensor<[2,4,1,16],f16>
  %tqbc = torch.aten.mul.Tensor %tqb, %cos : !torch.vtensor<[2,4,1,16],f16>, !angles -> !torch.vtensor<[2,4,1,16],f16>
  %tqimaginary = torch.aten.add.Tensor %tqas, %tqbc, %1 : !torch.vtensor<[2,4,1,16],f16>, !torch.vtensor<[2,4,1,16],f16>, !i -> !torch.vtensor<[2,4,1,16],f16>
  %tqparts = torch.prim.ListConstruct %tqreal, %tqimaginary : (!torch.vtensor<[2,4,1,16],f16>, !torch.vtensor<[2,4,1,16],f16>) -> !torch.list<vtensor>
  %tq = torch.aten.cat %tqparts, %3 : !torch.list<vtensor>, !i -> !q
  %ks = torch.operator "hipdnn.onnx.CacheUpdate"(%past_k, %k, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %vs = torch.operator "hipdnn.onnx.CacheUpdate"(%past_v, %v, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%tq, %ks, %vs, %queries, %keys) {torch.onnx.left = -1 : si64, torch.onnx.scale = 0.0 : f32} : (!q, !kv, !kv, !counts, !counts) -> !q
  return %y : !q
}

// CHECK-LABEL: func.func @other_angles
// CHECK:         %[[Q:.+]] = torch.aten.cat
// CHECK:         %[[K:.+]] = torch.aten.cat
// CHECK:         "hipdnn.onnx.DecodeAttention"(%[[Q]], %[[K]], %arg2, %arg3, %arg4, %arg5, %arg8)
func.func @other_angles(%q: !q, %k: !new, %v: !new, %past_k: !kv, %past_v: !kv, %start: !start, %places: !places, %queries: !counts, %keys: !counts, %cos: !angles, %sin: !angles) -> !q {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %3 = torch.constant.int 3
  %16 = torch.constant.int 16
  %32 = torch.constant.int 32
  %tqa = torch.aten.slice.Tensor %q, %3, %0, %16, %1 : !q, !i, !i, !i, !i -> !torch.vtensor<[2,4,1,16],f16>
  %tqb = torch.aten.slice.Tensor %q, %3, %16, %32, %1 : !q, !i, !i, !i, !i -> !torch.vtensor<[2,4,1,16],f16>
  %tqac = torch.aten.mul.Tensor %tqa, %cos : !torch.vtensor<[2,4,1,16],f16>, !angles -> !torch.vtensor<[2,4,1,16],f16>
  %tqbs = torch.aten.mul.Tensor %tqb, %sin : !torch.vtensor<[2,4,1,16],f16>, !angles -> !torch.vtensor<[2,4,1,16],f16>
  %tqreal = torch.aten.sub.Tensor %tqac, %tqbs, %1 : !torch.vtensor<[2,4,1,16],f16>, !torch.vtensor<[2,4,1,16],f16>, !i -> !torch.vtensor<[2,4,1,16],f16>
  %tqas = torch.aten.mul.Tensor %tqa, %sin : !torch.vtensor<[2,4,1,16],f16>, !angles -> !torch.vtensor<[2,4,1,16],f16>
  %tqbc = torch.aten.mul.Tensor %tqb, %cos : !torch.vtensor<[2,4,1,16],f16>, !angles -> !torch.vtensor<[2,4,1,16],f16>
  %tqimaginary = torch.aten.add.Tensor %tqas, %tqbc, %1 : !torch.vtensor<[2,4,1,16],f16>, !torch.vtensor<[2,4,1,16],f16>, !i -> !torch.vtensor<[2,4,1,16],f16>
  %tqparts = torch.prim.ListConstruct %tqreal, %tqimaginary : (!torch.vtensor<[2,4,1,16],f16>, !torch.vtensor<[2,4,1,16],f16>) -> !torch.list<vtensor>
  %tq = torch.aten.cat %tqparts, %3 : !torch.list<vtensor>, !i -> !q
  %tka = torch.aten.slice.Tensor %k, %3, %0, %16, %1 : !new, !i, !i, !i, !i -> !torch.vtensor<[2,2,1,16],f16>
  %tkb = torch.aten.slice.Tensor %k, %3, %16, %32, %1 : !new, !i, !i, !i, !i -> !torch.vtensor<[2,2,1,16],f16>
  %tkac = torch.aten.mul.Tensor %tka, %sin : !torch.vtensor<[2,2,1,16],f16>, !angles -> !torch.vtensor<[2,2,1,16],f16>
  %tkbs = torch.aten.mul.Tensor %tkb, %cos : !torch.vtensor<[2,2,1,16],f16>, !angles -> !torch.vtensor<[2,2,1,16],f16>
  %tkreal = torch.aten.sub.Tensor %tkac, %tkbs, %1 : !torch.vtensor<[2,2,1,16],f16>, !torch.vtensor<[2,2,1,16],f16>, !i -> !torch.vtensor<[2,2,1,16],f16>
  %tkas = torch.aten.mul.Tensor %tka, %cos : !torch.vtensor<[2,2,1,16],f16>, !angles -> !torch.vtensor<[2,2,1,16],f16>
  %tkbc = torch.aten.mul.Tensor %tkb, %sin : !torch.vtensor<[2,2,1,16],f16>, !angles -> !torch.vtensor<[2,2,1,16],f16>
  %tkimaginary = torch.aten.add.Tensor %tkas, %tkbc, %1 : !torch.vtensor<[2,2,1,16],f16>, !torch.vtensor<[2,2,1,16],f16>, !i -> !torch.vtensor<[2,2,1,16],f16>
  %tkparts = torch.prim.ListConstruct %tkreal, %tkimaginary : (!torch.vtensor<[2,2,1,16],f16>, !torch.vtensor<[2,2,1,16],f16>) -> !torch.list<vtensor>
  %tk = torch.aten.cat %tkparts, %3 : !torch.list<vtensor>, !i -> !new
  %ks = torch.operator "hipdnn.onnx.CacheUpdate"(%past_k, %tk, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %vs = torch.operator "hipdnn.onnx.CacheUpdate"(%past_v, %v, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%tq, %ks, %vs, %queries, %keys) {torch.onnx.left = -1 : si64, torch.onnx.scale = 0.0 : f32} : (!q, !kv, !kv, !counts, !counts) -> !q
  return %y : !q
}

// -----

// Attention of several queries stays as it is.

// CHECK-LABEL: func.func @two_queries
// CHECK:         CacheUpdate
// CHECK:         CacheUpdate
// CHECK:         CachedAttention
// CHECK-NOT:     DecodeAttention
!q = !torch.vtensor<[2,4,2,32],f16>
!new = !torch.vtensor<[2,2,2,32],f16>
!kv = !torch.vtensor<[2,2,16,32],f16>
!counts = !torch.vtensor<[2],si32>
!start = !torch.vtensor<[2],si64>
!places = !torch.vtensor<[16],si64>
!angles = !torch.vtensor<[2,1,1,16],f16>
!i = !torch.int
func.func @two_queries(%q: !q, %k: !new, %v: !new, %past_k: !kv, %past_v: !kv, %start: !start, %places: !places, %queries: !counts, %keys: !counts) -> !q {
  %ks = torch.operator "hipdnn.onnx.CacheUpdate"(%past_k, %k, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %vs = torch.operator "hipdnn.onnx.CacheUpdate"(%past_v, %v, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%q, %ks, %vs, %queries, %keys) {torch.onnx.left = -1 : si64, torch.onnx.scale = 0.0 : f32} : (!q, !kv, !kv, !counts, !counts) -> !q
  return %y : !q
}

// -----

// So does attention on a cache that is not updated here, or that something else reads before.

// CHECK-LABEL: func.func @given
// CHECK:         CachedAttention
// CHECK-NOT:     DecodeAttention
!q = !torch.vtensor<[2,4,1,32],f16>
!new = !torch.vtensor<[2,2,1,32],f16>
!kv = !torch.vtensor<[2,2,16,32],f16>
!counts = !torch.vtensor<[2],si32>
!start = !torch.vtensor<[2],si64>
!places = !torch.vtensor<[16],si64>
!angles = !torch.vtensor<[2,1,1,16],f16>
!i = !torch.int
func.func @given(%q: !q, %k: !new, %v: !new, %past_k: !kv, %past_v: !kv, %start: !start, %places: !places, %queries: !counts, %keys: !counts) -> !q {
  %ks = torch.operator "hipdnn.onnx.CacheUpdate"(%past_k, %k, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %vs = torch.operator "hipdnn.onnx.CacheUpdate"(%past_v, %v, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%q, %ks, %past_v, %queries, %keys) {torch.onnx.left = -1 : si64, torch.onnx.scale = 0.0 : f32} : (!q, !kv, !kv, !counts, !counts) -> !q
  return %y : !q
}

// CHECK-LABEL: func.func @read_before
// CHECK:         CachedAttention
// CHECK-NOT:     DecodeAttention
func.func @read_before(%q: !q, %k: !new, %v: !new, %past_k: !kv, %past_v: !kv, %start: !start, %places: !places, %queries: !counts, %keys: !counts) -> (!q, !kv) {
  %ks = torch.operator "hipdnn.onnx.CacheUpdate"(%past_k, %k, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %r = torch.aten.relu %ks : !kv -> !kv
  %vs = torch.operator "hipdnn.onnx.CacheUpdate"(%past_v, %v, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%q, %ks, %vs, %queries, %keys) {torch.onnx.left = -1 : si64, torch.onnx.scale = 0.0 : f32} : (!q, !kv, !kv, !counts, !counts) -> !q
  return %y, %r : !q, !kv
}

// -----

// So do heads that no code is generated for.

// CHECK-LABEL: func.func @odd_heads
// CHECK:         CachedAttention
// CHECK-NOT:     DecodeAttention
!q = !torch.vtensor<[2,4,1,12],f16>
!new = !torch.vtensor<[2,2,1,12],f16>
!kv = !torch.vtensor<[2,2,16,12],f16>
!counts = !torch.vtensor<[2],si32>
!start = !torch.vtensor<[2],si64>
!places = !torch.vtensor<[16],si64>
!angles = !torch.vtensor<[2,1,1,3],f16>
!i = !torch.int
func.func @odd_heads(%q: !q, %k: !new, %v: !new, %past_k: !kv, %past_v: !kv, %start: !start, %places: !places, %queries: !counts, %keys: !counts) -> !q {
  %ks = torch.operator "hipdnn.onnx.CacheUpdate"(%past_k, %k, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %vs = torch.operator "hipdnn.onnx.CacheUpdate"(%past_v, %v, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%q, %ks, %vs, %queries, %keys) {torch.onnx.left = -1 : si64, torch.onnx.scale = 0.0 : f32} : (!q, !kv, !kv, !counts, !counts) -> !q
  return %y : !q
}

// -----

// So does attention with a soft cap, or with a sink, which the kernel does not have.

// CHECK-LABEL: func.func @capped
// CHECK:         CachedAttention
// CHECK:         CachedAttention
// CHECK-NOT:     DecodeAttention
!q = !torch.vtensor<[2,4,1,16],f16>
!new = !torch.vtensor<[2,2,1,16],f16>
!kv = !torch.vtensor<[2,2,16,16],f16>
!counts = !torch.vtensor<[2],si32>
!start = !torch.vtensor<[2],si64>
!places = !torch.vtensor<[16],si64>
!sink = !torch.vtensor<[4],f32>
func.func @capped(%q: !q, %k: !new, %v: !new, %past_k: !kv, %past_v: !kv, %start: !start, %places: !places, %queries: !counts, %keys: !counts, %sink: !sink) -> (!q, !q) {
  %none = torch.constant.none
  %ks = torch.operator "hipdnn.onnx.CacheUpdate"(%past_k, %k, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %vs = torch.operator "hipdnn.onnx.CacheUpdate"(%past_v, %v, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %x = torch.operator "hipdnn.onnx.CachedAttention"(%q, %ks, %vs, %queries, %keys) {torch.onnx.softcap = 5.0 : f32} : (!q, !kv, !kv, !counts, !counts) -> !q
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%q, %ks, %vs, %queries, %keys, %none, %sink) : (!q, !kv, !kv, !counts, !counts, !torch.none, !sink) -> !q
  return %x, %y : !q, !q
}

// -----

// Caches in pages: the table is the last operand, behind the angles that are left out.

// CHECK-LABEL: func.func @pages
// CHECK-NOT:     CacheUpdate
// CHECK:         %[[NONE:.+]] = torch.constant.none
// CHECK:         torch.operator "hipdnn.onnx.DecodeAttention"(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg7, %{{.+}}, %{{.+}}, %arg8)
// CHECK-NOT:     CachedAttention
!q = !torch.vtensor<[2,4,1,32],f16>
!new = !torch.vtensor<[2,2,1,32],f16>
!pool = !torch.vtensor<[9,2,8,32],f16>
!counts = !torch.vtensor<[2],si32>
!start = !torch.vtensor<[2],si64>
!table = !torch.vtensor<[2,3],si32>
func.func @pages(%q: !q, %k: !new, %v: !new, %past_k: !pool, %past_v: !pool, %start: !start, %queries: !counts, %keys: !counts, %table: !table) -> (!q, !pool, !pool) {
  %none = torch.constant.none
  %new_k = torch.operator "hipdnn.onnx.CacheUpdate"(%past_k, %k, %start, %none, %table) : (!pool, !new, !start, !torch.none, !table) -> !pool
  %new_v = torch.operator "hipdnn.onnx.CacheUpdate"(%past_v, %v, %start, %none, %table) : (!pool, !new, !start, !torch.none, !table) -> !pool
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%q, %new_k, %new_v, %queries, %keys, %none, %none, %table) : (!q, !pool, !pool, !counts, !counts, !torch.none, !torch.none, !table) -> !q
  return %y, %new_k, %new_v : !q, !pool, !pool
}

// -----

// Attention reads other pages than are written.

// CHECK-LABEL: func.func @other_pages
// CHECK-NOT:     DecodeAttention
// CHECK:         CachedAttention
!q = !torch.vtensor<[2,4,1,32],f16>
!new = !torch.vtensor<[2,2,1,32],f16>
!pool = !torch.vtensor<[9,2,8,32],f16>
!counts = !torch.vtensor<[2],si32>
!start = !torch.vtensor<[2],si64>
!table = !torch.vtensor<[2,3],si32>
func.func @other_pages(%q: !q, %k: !new, %v: !new, %past_k: !pool, %past_v: !pool, %start: !start, %queries: !counts, %keys: !counts, %table: !table, %other: !table) -> (!q, !pool, !pool) {
  %none = torch.constant.none
  %new_k = torch.operator "hipdnn.onnx.CacheUpdate"(%past_k, %k, %start, %none, %table) : (!pool, !new, !start, !torch.none, !table) -> !pool
  %new_v = torch.operator "hipdnn.onnx.CacheUpdate"(%past_v, %v, %start, %none, %table) : (!pool, !new, !start, !torch.none, !table) -> !pool
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%q, %new_k, %new_v, %queries, %keys, %none, %none, %other) : (!q, !pool, !pool, !counts, !counts, !torch.none, !torch.none, !table) -> !q
  return %y, %new_k, %new_v : !q, !pool, !pool
}

// -----

// What is added to the scores is the last operand; truth values become numbers.

// CHECK-LABEL: func.func @biased
// CHECK-NOT:     CacheUpdate
// CHECK:         torch.operator "hipdnn.onnx.DecodeAttention"(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg7, %{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %arg8)
// CHECK-NOT:     CachedAttention

// CHECK-LABEL: func.func @shown
// CHECK-NOT:     CacheUpdate
// CHECK:         %[[BIAS:.+]] = torch.aten.where.self %{{[^,]+}}, %{{[^,]+}}, %{{.+}} -> !torch.vtensor<[1,1,1,16],f32>
// CHECK:         torch.operator "hipdnn.onnx.DecodeAttention"(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg7, %{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %[[BIAS]])
!q = !torch.vtensor<[2,4,1,32],f16>
!new = !torch.vtensor<[2,2,1,32],f16>
!kv = !torch.vtensor<[2,2,16,32],f16>
!counts = !torch.vtensor<[2],si32>
!start = !torch.vtensor<[2],si64>
!places = !torch.vtensor<[16],si64>
!bias = !torch.vtensor<[2,1,1,16],f32>
!shown = !torch.vtensor<[1,16],i1>
func.func @biased(%q: !q, %k: !new, %v: !new, %past_k: !kv, %past_v: !kv, %start: !start, %queries: !counts, %keys: !counts, %bias: !bias, %places: !places) -> (!q, !kv, !kv) {
  %ks = torch.operator "hipdnn.onnx.CacheUpdate"(%past_k, %k, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %vs = torch.operator "hipdnn.onnx.CacheUpdate"(%past_v, %v, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%q, %ks, %vs, %queries, %keys, %bias) {torch.onnx.causal = 0 : si64} : (!q, !kv, !kv, !counts, !counts, !bias) -> !q
  return %y, %ks, %vs : !q, !kv, !kv
}

func.func @shown(%q: !q, %k: !new, %v: !new, %past_k: !kv, %past_v: !kv, %start: !start, %queries: !counts, %keys: !counts, %shown: !shown, %places: !places) -> (!q, !kv, !kv) {
  %ks = torch.operator "hipdnn.onnx.CacheUpdate"(%past_k, %k, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %vs = torch.operator "hipdnn.onnx.CacheUpdate"(%past_v, %v, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%q, %ks, %vs, %queries, %keys, %shown) {torch.onnx.causal = 0 : si64} : (!q, !kv, !kv, !counts, !counts, !shown) -> !q
  return %y, %ks, %vs : !q, !kv, !kv
}

// -----

// Angles of the other half are the same where exporters join them with themselves.

// CHECK-LABEL: func.func @joined_angles
// CHECK:         %[[COS:.+]] = torch.aten.cos
// CHECK:         %[[HALF:.+]] = torch.aten.slice.Tensor %[[COS]], %{{[^,]+}}, %int0
// CHECK:         "hipdnn.onnx.DecodeAttention"(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg8, %[[HALF]], %{{.+}})

// CHECK-LABEL: func.func @joined_with_others
// CHECK:         torch.aten.cat
// CHECK:         "hipdnn.onnx.DecodeAttention"(%{{[^,]+}}, %{{[^,]+}}, %arg2, %arg3, %arg4, %arg5, %arg8)
!q = !torch.vtensor<[2,4,1,32],f16>
!new = !torch.vtensor<[2,2,1,32],f16>
!kv = !torch.vtensor<[2,2,16,32],f16>
!counts = !torch.vtensor<[2],si32>
!start = !torch.vtensor<[2],si64>
!places = !torch.vtensor<[16],si64>
!angles = !torch.vtensor<[2,1,1,16],f16>
!both = !torch.vtensor<[2,1,1,32],f16>
!i = !torch.int
func.func @joined_angles(%q: !q, %k: !new, %v: !new, %past_k: !kv, %past_v: !kv, %start: !start, %places: !places, %queries: !counts, %keys: !counts, %angles: !angles, %more: !angles) -> (!q, !kv, !kv) {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %3 = torch.constant.int 3
  %16 = torch.constant.int 16
  %32 = torch.constant.int 32
  %list = torch.prim.ListConstruct %angles, %angles : (!angles, !angles) -> !torch.list<vtensor>
  %both = torch.aten.cat %list, %3 : !torch.list<vtensor>, !i -> !both
  %cos = torch.aten.cos %both : !both -> !both
  %sin = torch.aten.sin %both : !both -> !both
  %cosa = torch.aten.slice.Tensor %cos, %3, %0, %16, %1 : !both, !i, !i, !i, !i -> !angles
  %cosb = torch.aten.slice.Tensor %cos, %3, %16, %32, %1 : !both, !i, !i, !i, !i -> !angles
  %sina = torch.aten.slice.Tensor %sin, %3, %0, %16, %1 : !both, !i, !i, !i, !i -> !angles
  %sinb = torch.aten.slice.Tensor %sin, %3, %16, %32, %1 : !both, !i, !i, !i, !i -> !angles
  %qa = torch.aten.slice.Tensor %q, %3, %0, %16, %1 : !q, !i, !i, !i, !i -> !torch.vtensor<[2,4,1,16],f16>
  %qb = torch.aten.slice.Tensor %q, %3, %16, %32, %1 : !q, !i, !i, !i, !i -> !torch.vtensor<[2,4,1,16],f16>
  %qac = torch.aten.mul.Tensor %qa, %cosa : !torch.vtensor<[2,4,1,16],f16>, !angles -> !torch.vtensor<[2,4,1,16],f16>
  %qbs = torch.aten.mul.Tensor %qb, %sina : !torch.vtensor<[2,4,1,16],f16>, !angles -> !torch.vtensor<[2,4,1,16],f16>
  %qreal = torch.aten.sub.Tensor %qac, %qbs, %1 : !torch.vtensor<[2,4,1,16],f16>, !torch.vtensor<[2,4,1,16],f16>, !i -> !torch.vtensor<[2,4,1,16],f16>
  %qbc = torch.aten.mul.Tensor %qb, %cosb : !torch.vtensor<[2,4,1,16],f16>, !angles -> !torch.vtensor<[2,4,1,16],f16>
  %qas = torch.aten.mul.Tensor %qa, %sinb : !torch.vtensor<[2,4,1,16],f16>, !angles -> !torch.vtensor<[2,4,1,16],f16>
  %qimaginary = torch.aten.add.Tensor %qbc, %qas, %1 : !torch.vtensor<[2,4,1,16],f16>, !torch.vtensor<[2,4,1,16],f16>, !i -> !torch.vtensor<[2,4,1,16],f16>
  %qparts = torch.prim.ListConstruct %qreal, %qimaginary : (!torch.vtensor<[2,4,1,16],f16>, !torch.vtensor<[2,4,1,16],f16>) -> !torch.list<vtensor>
  %tq = torch.aten.cat %qparts, %3 : !torch.list<vtensor>, !i -> !q
  %ka = torch.aten.slice.Tensor %k, %3, %0, %16, %1 : !new, !i, !i, !i, !i -> !torch.vtensor<[2,2,1,16],f16>
  %kb = torch.aten.slice.Tensor %k, %3, %16, %32, %1 : !new, !i, !i, !i, !i -> !torch.vtensor<[2,2,1,16],f16>
  %kac = torch.aten.mul.Tensor %ka, %cosa : !torch.vtensor<[2,2,1,16],f16>, !angles -> !torch.vtensor<[2,2,1,16],f16>
  %kbs = torch.aten.mul.Tensor %kb, %sina : !torch.vtensor<[2,2,1,16],f16>, !angles -> !torch.vtensor<[2,2,1,16],f16>
  %kreal = torch.aten.sub.Tensor %kac, %kbs, %1 : !torch.vtensor<[2,2,1,16],f16>, !torch.vtensor<[2,2,1,16],f16>, !i -> !torch.vtensor<[2,2,1,16],f16>
  %kbc = torch.aten.mul.Tensor %kb, %cosb : !torch.vtensor<[2,2,1,16],f16>, !angles -> !torch.vtensor<[2,2,1,16],f16>
  %kas = torch.aten.mul.Tensor %ka, %sinb : !torch.vtensor<[2,2,1,16],f16>, !angles -> !torch.vtensor<[2,2,1,16],f16>
  %kimaginary = torch.aten.add.Tensor %kbc, %kas, %1 : !torch.vtensor<[2,2,1,16],f16>, !torch.vtensor<[2,2,1,16],f16>, !i -> !torch.vtensor<[2,2,1,16],f16>
  %kparts = torch.prim.ListConstruct %kreal, %kimaginary : (!torch.vtensor<[2,2,1,16],f16>, !torch.vtensor<[2,2,1,16],f16>) -> !torch.list<vtensor>
  %tk = torch.aten.cat %kparts, %3 : !torch.list<vtensor>, !i -> !new
  %ks = torch.operator "hipdnn.onnx.CacheUpdate"(%past_k, %tk, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %vs = torch.operator "hipdnn.onnx.CacheUpdate"(%past_v, %v, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%tq, %ks, %vs, %queries, %keys) {torch.onnx.left = -1 : si64, torch.onnx.scale = 0.0 : f32} : (!q, !kv, !kv, !counts, !counts) -> !q
  return %y, %ks, %vs : !q, !kv, !kv
}

func.func @joined_with_others(%q: !q, %k: !new, %v: !new, %past_k: !kv, %past_v: !kv, %start: !start, %places: !places, %queries: !counts, %keys: !counts, %angles: !angles, %more: !angles) -> (!q, !kv, !kv) {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %3 = torch.constant.int 3
  %16 = torch.constant.int 16
  %32 = torch.constant.int 32
  %list = torch.prim.ListConstruct %angles, %more : (!angles, !angles) -> !torch.list<vtensor>
  %both = torch.aten.cat %list, %3 : !torch.list<vtensor>, !i -> !both
  %cos = torch.aten.cos %both : !both -> !both
  %sin = torch.aten.sin %both : !both -> !both
  %cosa = torch.aten.slice.Tensor %cos, %3, %0, %16, %1 : !both, !i, !i, !i, !i -> !angles
  %cosb = torch.aten.slice.Tensor %cos, %3, %16, %32, %1 : !both, !i, !i, !i, !i -> !angles
  %sina = torch.aten.slice.Tensor %sin, %3, %0, %16, %1 : !both, !i, !i, !i, !i -> !angles
  %sinb = torch.aten.slice.Tensor %sin, %3, %16, %32, %1 : !both, !i, !i, !i, !i -> !angles
  %qa = torch.aten.slice.Tensor %q, %3, %0, %16, %1 : !q, !i, !i, !i, !i -> !torch.vtensor<[2,4,1,16],f16>
  %qb = torch.aten.slice.Tensor %q, %3, %16, %32, %1 : !q, !i, !i, !i, !i -> !torch.vtensor<[2,4,1,16],f16>
  %qac = torch.aten.mul.Tensor %qa, %cosa : !torch.vtensor<[2,4,1,16],f16>, !angles -> !torch.vtensor<[2,4,1,16],f16>
  %qbs = torch.aten.mul.Tensor %qb, %sina : !torch.vtensor<[2,4,1,16],f16>, !angles -> !torch.vtensor<[2,4,1,16],f16>
  %qreal = torch.aten.sub.Tensor %qac, %qbs, %1 : !torch.vtensor<[2,4,1,16],f16>, !torch.vtensor<[2,4,1,16],f16>, !i -> !torch.vtensor<[2,4,1,16],f16>
  %qbc = torch.aten.mul.Tensor %qb, %cosb : !torch.vtensor<[2,4,1,16],f16>, !angles -> !torch.vtensor<[2,4,1,16],f16>
  %qas = torch.aten.mul.Tensor %qa, %sinb : !torch.vtensor<[2,4,1,16],f16>, !angles -> !torch.vtensor<[2,4,1,16],f16>
  %qimaginary = torch.aten.add.Tensor %qbc, %qas, %1 : !torch.vtensor<[2,4,1,16],f16>, !torch.vtensor<[2,4,1,16],f16>, !i -> !torch.vtensor<[2,4,1,16],f16>
  %qparts = torch.prim.ListConstruct %qreal, %qimaginary : (!torch.vtensor<[2,4,1,16],f16>, !torch.vtensor<[2,4,1,16],f16>) -> !torch.list<vtensor>
  %tq = torch.aten.cat %qparts, %3 : !torch.list<vtensor>, !i -> !q
  %ka = torch.aten.slice.Tensor %k, %3, %0, %16, %1 : !new, !i, !i, !i, !i -> !torch.vtensor<[2,2,1,16],f16>
  %kb = torch.aten.slice.Tensor %k, %3, %16, %32, %1 : !new, !i, !i, !i, !i -> !torch.vtensor<[2,2,1,16],f16>
  %kac = torch.aten.mul.Tensor %ka, %cosa : !torch.vtensor<[2,2,1,16],f16>, !angles -> !torch.vtensor<[2,2,1,16],f16>
  %kbs = torch.aten.mul.Tensor %kb, %sina : !torch.vtensor<[2,2,1,16],f16>, !angles -> !torch.vtensor<[2,2,1,16],f16>
  %kreal = torch.aten.sub.Tensor %kac, %kbs, %1 : !torch.vtensor<[2,2,1,16],f16>, !torch.vtensor<[2,2,1,16],f16>, !i -> !torch.vtensor<[2,2,1,16],f16>
  %kbc = torch.aten.mul.Tensor %kb, %cosb : !torch.vtensor<[2,2,1,16],f16>, !angles -> !torch.vtensor<[2,2,1,16],f16>
  %kas = torch.aten.mul.Tensor %ka, %sinb : !torch.vtensor<[2,2,1,16],f16>, !angles -> !torch.vtensor<[2,2,1,16],f16>
  %kimaginary = torch.aten.add.Tensor %kbc, %kas, %1 : !torch.vtensor<[2,2,1,16],f16>, !torch.vtensor<[2,2,1,16],f16>, !i -> !torch.vtensor<[2,2,1,16],f16>
  %kparts = torch.prim.ListConstruct %kreal, %kimaginary : (!torch.vtensor<[2,2,1,16],f16>, !torch.vtensor<[2,2,1,16],f16>) -> !torch.list<vtensor>
  %tk = torch.aten.cat %kparts, %3 : !torch.list<vtensor>, !i -> !new
  %ks = torch.operator "hipdnn.onnx.CacheUpdate"(%past_k, %tk, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %vs = torch.operator "hipdnn.onnx.CacheUpdate"(%past_v, %v, %start, %places) : (!kv, !new, !start, !places) -> !kv
  %y = torch.operator "hipdnn.onnx.CachedAttention"(%tq, %ks, %vs, %queries, %keys) {torch.onnx.left = -1 : si64, torch.onnx.scale = 0.0 : f32} : (!q, !kv, !kv, !counts, !counts) -> !q
  return %y, %ks, %vs : !q, !kv, !kv
}
