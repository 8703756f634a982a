// RUN: hipdnn-opt %s --pass-pipeline="builtin.module(func.func(canonicalize,cse),hipdnn-offload{target=host})" --mlir-print-ir-after-all 2>&1 >%t | filecheck %s
// RUN: hipdnn-opt %s --cse --hipdnn-offload --mlir-print-ir-before-all 2>&1 >%t | filecheck %s --check-prefix=BEFORE
// RUN: hipdnn-opt %s --canonicalize --hipdnn-offload --cse --mlir-print-ir-after=hipdnn-offload 2>&1 >%t | filecheck %s --check-prefix=ONE
// RUN: not hipdnn-opt %s --canonicalize --mlir-print-ir-after=cse 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: hipdnn-opt %s --canonicalize --hipdnn-offload --mlir-timing 2>&1 | filecheck %s --check-prefix=TIMING

// Passes of MLIR and of this compiler in the order they run, nested ones one by one.

// CHECK:      // -----// IR Dump After func.func(canonicalize) //----- //
// CHECK-NEXT: module {
// CHECK-NOT:  arith.subi
// CHECK:      arith.addi
// CHECK:      arith.addi
// CHECK:      // -----// IR Dump After func.func(cse) //----- //
// CHECK:      arith.addi
// CHECK-NOT:  arith.addi
// CHECK:      // -----// IR Dump After hipdnn-offload{target=host} //----- //
// CHECK:      hipdnn.graph ins(%arg0) ({
// CHECK-NOT:  IR Dump

// BEFORE:     // -----// IR Dump Before cse //----- //
// BEFORE:     arith.subi
// BEFORE:     // -----// IR Dump Before hipdnn-offload //----- //
// BEFORE-NOT: hipdnn.graph

// ONE:        // -----// IR Dump After hipdnn-offload //----- //
// ONE-NOT:    IR Dump

// UNKNOWN: hipdnn-opt: error: pass cse to print the IR of does not run: expected one of: canonicalize

// TIMING:      Execution time report
// TIMING:      Canonicalizer
// TIMING-NEXT: hipdnn-offload
// TIMING:      Total
!x = !torch.vtensor<[2],f32>
func.func @main(%x: !x, %i: i32) -> (!x, i32, i32) {
  %y = torch.aten.relu %x : !x -> !x
  %unused = arith.subi %i, %i : i32
  %a = arith.addi %i, %i : i32
  %b = arith.addi %i, %i : i32
  return %y, %a, %b : !x, i32, i32
}
