// RUN: hipdnn-opt %s --hipdnn-graph-to-executable --split-input-file | filecheck %s

// Equal graphs on equal strides share one executable; other dims make another. Its name is the digest of its descriptors.

// CHECK:         "hipdnn.executable"() {{.+}} engine = "HOST_ROWWISE_ENGINE", {{.+}} summary = "relu", sym_name = "[[SMALL:g_[0-9a-f]+]]"
// CHECK:         "hipdnn.executable"() {{.+}} engine = "HOST_ROWWISE_ENGINE", {{.+}} summary = "relu", sym_name = "[[LARGE:g_[0-9a-f]+]]"
// CHECK-NOT:     hipdnn.executable
// CHECK-LABEL: func.func @share
// CHECK:         hipdnn.execute @[[LARGE]] ins(%arg0) outs(%arg1)
// CHECK:         hipdnn.execute @[[LARGE]] ins(%arg1) outs(%arg0)
// CHECK:         hipdnn.execute @[[SMALL]] ins(%arg2) outs(%arg3)
// CHECK-NOT:     hipdnn.graph
!l = !torch.vtensor<[4],f32>
!s = !torch.vtensor<[2],f32>
func.func @share(%a: memref<4xf32>, %b: memref<4xf32>, %c: memref<2xf32>, %d: memref<2xf32>) {
  hipdnn.graph ins(%a) outs(%b) ({
  ^bb0(%v: !l):
    %r = torch.aten.relu %v : !l -> !l
    hipdnn.yield %r : !l
  }) : (memref<4xf32>, memref<4xf32>) -> ()
  hipdnn.graph ins(%b) outs(%a) ({
  ^bb0(%v: !l):
    %r = torch.aten.relu %v : !l -> !l
    hipdnn.yield %r : !l
  }) : (memref<4xf32>, memref<4xf32>) -> ()
  hipdnn.graph ins(%c) outs(%d) ({
  ^bb0(%v: !s):
    %r = torch.aten.relu %v : !s -> !s
    hipdnn.yield %r : !s
  }) : (memref<2xf32>, memref<2xf32>) -> ()
  return
}

// -----

// Strides of the buffers are the tensors' strides: [1304 strides] of a transposed operand. No other op is added.

// CHECK:         "hipdnn.executable"() {{.+}}[1303,3,[3,2]],[1304,3,[1,3]]
// CHECK-SAME:    summary = "copy"
// CHECK-LABEL: func.func @strides
// CHECK-NEXT:    hipdnn.execute @{{.+}} ins(%arg0) outs(%arg1)
// CHECK-NEXT:    return
!v = !torch.vtensor<[3,2],f32>
!t = memref<3x2xf32, strided<[1, 3]>>
func.func @strides(%a: !t, %b: memref<3x2xf32>) {
  hipdnn.graph ins(%a) outs(%b) ({
  ^bb0(%v: !v):
    hipdnn.yield %v : !v
  }) : (!t, memref<3x2xf32>) -> ()
  return
}

// -----

// An operand that starts in the middle of a buffer is aligned to what its offset leaves of 16 bytes: attribute 1309.

// CHECK:         "hipdnn.executable"() {{.+}}[1309,3,[4]]
// CHECK-LABEL: func.func @alignment
!v = !torch.vtensor<[2],f32>
!tail = memref<2xf32, strided<[1], offset: 1>>
func.func @alignment(%a: !tail, %b: memref<2xf32>) {
  hipdnn.graph ins(%a) outs(%b) ({
  ^bb0(%v: !v):
    %r = torch.aten.relu %v : !v -> !v
    hipdnn.yield %r : !v
  }) : (!tail, memref<2xf32>) -> ()
  return
}
