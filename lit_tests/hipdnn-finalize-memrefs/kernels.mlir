// RUN: hipdnn-opt %s --hipdnn-finalize-memrefs | filecheck %s

// hipDNN has no 16-bit integers: a kernel copies them instead of a graph.

// CHECK-NOT: hipdnn.graph
// CHECK:     hipdnn.launch ins(%arg0) outs(%arg1)
// CHECK:     torch.aten.clone %{{.+}}, %{{.+}} : !torch.vtensor<[2,3],si16>, !torch.none -> !torch.vtensor<[2,3],si16>
// CHECK-NOT: memref.copy
func.func @main(%a: memref<2x3xi16, strided<[1, 2]>>, %b: memref<2x3xi16>) {
  memref.copy %a, %b : memref<2x3xi16, strided<[1, 2]>> to memref<2x3xi16>
  return
}
