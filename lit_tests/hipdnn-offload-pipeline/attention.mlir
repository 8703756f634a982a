// RUN: hipdnn-opt %s --hipdnn-offload-pipeline | filecheck %s

// Self-attention is two graphs: the split of the product into heads, the transposed keys and the merge of heads are strides of their
// operands, and attention writes into the caller's buffer.

// CHECK-COUNT-2: "hipdnn.executable"()
// CHECK-NOT:     "hipdnn.executable"()
// CHECK-LABEL: func.func @main(%arg0: memref<2x5x8xf32>, %arg1: memref<8x24xf32> {hipdnn.constant = "w"}, %arg2: memref<2x5x8xf32> {bufferize.result})
// CHECK-NOT:     memref.copy
// CHECK:         %[[QKV:.+]] = memref.alloc() : memref<2x5x24xf32>
// CHECK:         hipdnn.execute @{{.+}} ins(%arg0, %arg1) outs(%[[QKV]])
// CHECK-DAG:     %[[Q:.+]] = memref.transpose %{{.+}} to memref<2x2x5x4xf32, strided<[120, 4, 24, 1]>>
// CHECK-DAG:     %[[K:.+]] = memref.transpose %{{.+}} to memref<2x2x5x4xf32, strided<[120, 4, 24, 1], offset: 8>>
// CHECK-DAG:     %[[V:.+]] = memref.transpose %{{.+}} to memref<2x2x5x4xf32, strided<[120, 4, 24, 1], offset: 16>>
// CHECK:         %[[HEADS:.+]] = memref.expand_shape %arg2
// CHECK:         %[[OUT:.+]] = memref.transpose %[[HEADS]] {{.+}} to memref<2x2x5x4xf32, strided<[40, 4, 8, 1]>>
// CHECK:         hipdnn.execute @{{.+}} ins(%[[Q]], %[[K]], %[[V]]) outs(%[[OUT]])
// CHECK-NEXT:    return
!x = !torch.vtensor<[2,5,8],f32>
!w = !torch.vtensor<[8,24],f32>
!qkv = !torch.vtensor<[2,5,24],f32>
!split = !torch.vtensor<[2,5,2,4],f32>
!heads = !torch.vtensor<[2,2,5,4],f32>
!keys = !torch.vtensor<[2,2,4,5],f32>
!scores = !torch.vtensor<[2,2,5,5],f32>
!l = !torch.list<int>
!i = !torch.int
func.func @main(%x: !x, %w: !w {hipdnn.constant = "w"}) -> !x {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %4 = torch.constant.int 4
  %5 = torch.constant.int 5
  %8 = torch.constant.int 8
  %16 = torch.constant.int 16
  %24 = torch.constant.int 24
  %none = torch.constant.none
  %split = torch.prim.ListConstruct %2, %5, %2, %4 : (!i, !i, !i, !i) -> !l
  %merged = torch.prim.ListConstruct %2, %5, %8 : (!i, !i, !i) -> !l
  %heads_first = torch.prim.ListConstruct %0, %2, %1, %3 : (!i, !i, !i, !i) -> !l
  %keys_last = torch.prim.ListConstruct %0, %2, %3, %1 : (!i, !i, !i, !i) -> !l
  %qkv = torch.aten.matmul %x, %w : !x, !w -> !qkv
  %q = torch.aten.slice.Tensor %qkv, %2, %0, %8, %1 : !qkv, !i, !i, !i, !i -> !x
  %k = torch.aten.slice.Tensor %qkv, %2, %8, %16, %1 : !qkv, !i, !i, !i, !i -> !x
  %v = torch.aten.slice.Tensor %qkv, %2, %16, %24, %1 : !qkv, !i, !i, !i, !i -> !x
  %q4 = torch.aten.view %q, %split : !x, !l -> !split
  %k4 = torch.aten.view %k, %split : !x, !l -> !split
  %v4 = torch.aten.view %v, %split : !x, !l -> !split
  %qt = torch.aten.permute %q4, %heads_first : !split, !l -> !heads
  %kt = torch.aten.permute %k4, %keys_last : !split, !l -> !keys
  %vt = torch.aten.permute %v4, %heads_first : !split, !l -> !heads
  %s = torch.aten.matmul %qt, %kt : !heads, !keys -> !scores
  %p = torch.aten.softmax.int %s, %3, %none : !scores, !i, !torch.none -> !scores
  %o = torch.aten.matmul %p, %vt : !scores, !heads -> !heads
  %ot = torch.aten.permute %o, %heads_first : !heads, !l -> !split
  %y = torch.aten.view %ot, %merged : !split, !l -> !x
  return %y : !x
}
