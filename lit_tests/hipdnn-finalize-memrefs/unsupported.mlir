// RUN: not hipdnn-opt %s --hipdnn-finalize-memrefs 2>&1 | filecheck %s

// hipDNN has no 16-bit integers: moving them is unsupported, and said so.

// CHECK: data of i16 has to move, hipDNN has no data type for it [dtype]
func.func @main(%a: memref<2x3xi16, strided<[1, 2]>>, %b: memref<2x3xi16>) {
  memref.copy %a, %b : memref<2x3xi16, strided<[1, 2]>> to memref<2x3xi16>
  return
}
