// RUN: hipdnn-opt %s --hipdnn-offload-pipeline | filecheck %s

// Convolution, batch norm, residual addition and relu run as one executable. The only other step converts the caller's image to
// channels-last. Batch norm and the residual, which is the convolution's own input, are in the weights.

// CHECK-DAG:   "hipdnn.executable"() {{.+}} engine = "HOST_ONEDNN_ENGINE", {{.+}} summary = "conv2d + add + relu", sym_name = "[[BLOCK:g_[0-9a-f]+]]"
// CHECK-DAG:   "hipdnn.executable"() {{.+}} engine = "HOST_ROWWISE_ENGINE", {{.+}} summary = "copy", sym_name = "[[COPY:g_[0-9a-f]+]]"
// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%arg0: memref<1x4x8x8xf32>, %[[B:arg[12]]]: memref<4xf32> {hipdnn.constant = "mean.folded"},
// CHECK-SAME:     %[[W:arg[12]]]: memref<4x4x3x3xf32> {hipdnn.constant = "w.folded"}, %arg3: memref<1x4x8x8xf32> {bufferize.result})
// CHECK-NEXT:    %[[BUFFER:.+]] = memref.alloc() : memref<1x8x8x4xf32>
// CHECK-NEXT:    %[[X:.+]] = memref.transpose %[[BUFFER]] {{.+}} to memref<1x4x8x8xf32, strided<[256, 1, 32, 4]>>
// CHECK-NEXT:    hipdnn.execute @[[COPY]] ins(%arg0) outs(%[[X]])
// CHECK-NEXT:    hipdnn.execute @[[BLOCK]] ins(%[[X]], %[[W]], %[[B]]) outs(%[[Y:.+]])
// CHECK-NOT:     hipdnn.execute
!x = !torch.vtensor<[1,4,8,8],f32>
!w = !torch.vtensor<[4,4,3,3],f32>
!c = !torch.vtensor<[4],f32>
!l = !torch.list<int>
func.func @main(%x: !x, %w: !w {hipdnn.constant = "w"}, %scale: !c {hipdnn.constant = "scale"}, %shift: !c {hipdnn.constant = "shift"},
                %mean: !c {hipdnn.constant = "mean"}, %variance: !c {hipdnn.constant = "variance"}) -> !x {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %eps = torch.constant.float 1.0e-5
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %c = torch.aten.convolution %x, %w, %none, %ones, %ones, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %n = torch.aten.batch_norm %c, %scale, %shift, %mean, %variance, %false, %eps, %eps, %false : !x, !c, !c, !c, !c, !torch.bool, !torch.float, !torch.float, !torch.bool -> !x
  %a = torch.aten.add.Tensor %n, %x, %1 : !x, !x, !torch.int -> !x
  %y = torch.aten.relu %a : !x -> !x
  return %y : !x
}
