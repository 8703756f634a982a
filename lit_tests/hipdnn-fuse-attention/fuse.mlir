// RUN: hipdnn-opt %s --hipdnn-fuse-attention --canonicalize --split-input-file | filecheck %s

// As PyTorch's exporter writes it: q and k scaled each, keys transposed with the heads as a part of the batch, the guard around softmax.

// CHECK-LABEL: func.func @exported
// CHECK-DAG:     %[[SCALE:.+]] = torch.constant.float 0.35355
// CHECK-DAG:     %[[NONE:.+]] = torch.constant.none
// CHECK:         %[[Y:.+]] = torch.aten.scaled_dot_product_attention %arg0, %arg1, %arg2, %[[NONE]], %{{.+}}, %false, %[[SCALE]], %false
// CHECK-NEXT:    return %[[Y]]
!q = !torch.vtensor<[2,4,5,8],f32>
!kv = !torch.vtensor<[2,4,7,8],f32>
!merged = !torch.vtensor<[8,7,8],f32>
!turned = !torch.vtensor<[8,8,7],f32>
!keys = !torch.vtensor<[2,4,8,7],f32>
!scores = !torch.vtensor<[2,4,5,7],f32>
!hidden = !torch.vtensor<[2,4,5,7],i1>
!s = !torch.vtensor<[1],f32>
!z = !torch.vtensor<[],f32>
!i = !torch.int
!l = !torch.list<int>
func.func @exported(%q: !q, %k: !kv, %v: !kv) -> !q {
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %4 = torch.constant.int 4
  %7 = torch.constant.int 7
  %8 = torch.constant.int 8
  %none = torch.constant.none
  %zero = torch.vtensor.literal(dense<0.0> : tensor<f32>) : !z
  %root = torch.vtensor.literal(dense<0.594603558> : tensor<1xf32>) : !s
  %three = torch.prim.ListConstruct %8, %7, %8 : (!i, !i, !i) -> !l
  %four = torch.prim.ListConstruct %2, %4, %8, %7 : (!i, !i, !i, !i) -> !l
  %a = torch.aten.reshape %k, %three : !kv, !l -> !merged
  %b = torch.aten.transpose.int %a, %1, %2 : !merged, !i, !i -> !turned
  %c = torch.aten.reshape %b, %four : !turned, !l -> !keys
  %d = torch.aten.mul.Tensor %q, %root : !q, !s -> !q
  %e = torch.aten.mul.Tensor %c, %root : !keys, !s -> !keys
  %f = torch.aten.matmul %d, %e : !q, !keys -> !scores
  %g = torch.aten.softmax.int %f, %3, %none : !scores, !i, !torch.none -> !scores
  %h = torch.aten.isnan %g : !scores -> !hidden
  %j = torch.aten.where.self %h, %zero, %g : !hidden, !z, !scores -> !scores
  %y = torch.aten.matmul %j, %v : !scores, !kv -> !q
  return %y : !q
}

// -----

// Groups of heads share keys and values; scores are divided, masked, and cast around softmax.

// CHECK-LABEL: func.func @grouped
// CHECK-DAG:     %[[SCALE:.+]] = torch.constant.float 2.500000e-01
// CHECK:         torch.aten.scaled_dot_product_attention %arg0, %arg1, %arg2, %arg3, %{{.+}}, %false, %[[SCALE]], %true
// CHECK-NOT:     torch.aten.matmul
!q = !torch.vtensor<[2,4,5,8],f16>
!kv = !torch.vtensor<[2,2,7,8],f16>
!one = !torch.vtensor<[2,2,1,7,8],f16>
!many = !torch.vtensor<[2,2,2,7,8],f16>
!heads = !torch.vtensor<[2,4,7,8],f16>
!keys = !torch.vtensor<[2,4,8,7],f16>
!scores = !torch.vtensor<[2,4,5,7],f16>
!wide = !torch.vtensor<[2,4,5,7],f32>
!mask = !torch.vtensor<[2,1,5,7],f16>
!i = !torch.int
!l = !torch.list<int>
func.func @grouped(%q: !q, %k: !kv, %v: !kv, %mask: !mask) -> !q {
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %4 = torch.constant.int 4
  %5 = torch.constant.int 5
  %6 = torch.constant.int 6
  %7 = torch.constant.int 7
  %8 = torch.constant.int 8
  %none = torch.constant.none
  %false = torch.constant.bool false
  %root = torch.constant.float 4.0
  %repeated = torch.prim.ListConstruct %2, %2, %2, %7, %8 : (!i, !i, !i, !i, !i) -> !l
  %merged = torch.prim.ListConstruct %2, %4, %7, %8 : (!i, !i, !i, !i) -> !l
  %k1 = torch.aten.unsqueeze %k, %2 : !kv, !i -> !one
  %k2 = torch.aten.expand %k1, %repeated, %false : !one, !l, !torch.bool -> !many
  %k3 = torch.aten.reshape %k2, %merged : !many, !l -> !heads
  %v1 = torch.aten.unsqueeze %v, %2 : !kv, !i -> !one
  %v2 = torch.aten.expand %v1, %repeated, %false : !one, !l, !torch.bool -> !many
  %v3 = torch.aten.reshape %v2, %merged : !many, !l -> !heads
  %kt = torch.aten.transpose.int %k3, %2, %3 : !heads, !i, !i -> !keys
  %s = torch.aten.matmul %q, %kt : !q, !keys -> !scores
  %t = torch.aten.div.Scalar %s, %root : !scores, !torch.float -> !scores
  %u = torch.aten.add.Tensor %t, %mask, %1 : !scores, !mask, !i -> !scores
  %w = torch.aten.to.dtype %u, %6, %false, %false, %none : !scores, !i, !torch.bool, !torch.bool, !torch.none -> !wide
  %x = torch.aten.softmax.int %w, %3, %none : !wide, !i, !torch.none -> !wide
  %p = torch.aten.to.dtype %x, %5, %false, %false, %none : !wide, !i, !torch.bool, !torch.bool, !torch.none -> !scores
  %y = torch.aten.matmul %p, %v3 : !scores, !heads -> !q
  return %y : !q
}

// -----

// Heads are a part of the batch but where a padding mask is applied: there they are apart again. The mask says which keys are hidden.

// CHECK-LABEL: func.func @masked_where_heads_are_apart
// CHECK:         %[[Q:.+]] = torch.aten.view %arg0, %{{.+}} -> !torch.vtensor<[2,4,5,8],f32>
// CHECK:         %[[K:.+]] = torch.aten.view %arg1, %{{.+}} -> !torch.vtensor<[2,4,7,8],f32>
// CHECK:         %[[V:.+]] = torch.aten.view %arg2, %{{.+}} -> !torch.vtensor<[2,4,7,8],f32>
// CHECK:         %[[SEEN:.+]] = torch.aten.logical_not %arg3
// CHECK:         %[[Y:.+]] = torch.aten.scaled_dot_product_attention %[[Q]], %[[K]], %[[V]], %[[SEEN]], %{{.+}}, %false
// CHECK:         torch.aten.view %[[Y]], %{{.+}} -> !torch.vtensor<[8,5,8],f32>
!q = !torch.vtensor<[8,5,8],f32>
!kv = !torch.vtensor<[8,7,8],f32>
!keys = !torch.vtensor<[8,8,7],f32>
!scores = !torch.vtensor<[8,5,7],f32>
!apart = !torch.vtensor<[2,4,5,7],f32>
!mask = !torch.vtensor<[2,1,1,7],i1>
!z = !torch.vtensor<[],f32>
!i = !torch.int
!l = !torch.list<int>
func.func @masked_where_heads_are_apart(%q: !q, %k: !kv, %v: !kv, %padding: !mask) -> !q {
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %4 = torch.constant.int 4
  %5 = torch.constant.int 5
  %7 = torch.constant.int 7
  %8 = torch.constant.int 8
  %none = torch.constant.none
  %infinity = torch.vtensor.literal(dense<0xFF800000> : tensor<f32>) : !z
  %four = torch.prim.ListConstruct %2, %4, %5, %7 : (!i, !i, !i, !i) -> !l
  %three = torch.prim.ListConstruct %8, %5, %7 : (!i, !i, !i) -> !l
  %kt = torch.aten.transpose.int %k, %1, %2 : !kv, !i, !i -> !keys
  %s = torch.aten.bmm %q, %kt : !q, !keys -> !scores
  %t = torch.aten.view %s, %four : !scores, !l -> !apart
  %u = torch.aten.where.self %padding, %infinity, %t : !mask, !z, !apart -> !apart
  %w = torch.aten.view %u, %three : !apart, !l -> !scores
  %p = torch.aten.softmax.int %w, %2, %none : !scores, !i, !torch.none -> !scores
  %y = torch.aten.bmm %p, %v : !scores, !kv -> !q
  return %y : !q
}
