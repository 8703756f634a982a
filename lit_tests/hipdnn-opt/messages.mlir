// RUN: not hipdnn-opt %s --split-input-file 2>&1 >%t | filecheck %s
// RUN: not hipdnn-opt - --split-input-file < %s 2>&1 >%t | filecheck %s --check-prefix=STDIN
// RUN: not hipdnn-opt %s --split-input-file --verify-diagnostics 2>&1 | filecheck %s --check-prefix=VERIFY

// Every message has the place in the file: lines of later parts too, and columns of what stands in the file.

// CHECK:      {{^.+}}messages.mlir:16:8: error: 'hipdnn.graph' op has 1 ins but its body takes 2 arguments
// CHECK-NEXT: {{^.+}}messages.mlir:28:29: error: use of undeclared SSA value name

// STDIN: <stdin>:16:8: error: 'hipdnn.graph' op

// VERIFY: unexpected: {{.+}}messages.mlir:16:8: error: 'hipdnn.graph' op
!v = !torch.vtensor<[2],f32>

func.func @arguments(%x: !v) -> !v {
  %y = hipdnn.graph ins(%x) ({
  ^bb0(%v: !v, %w: !v):
    hipdnn.yield %v : !v
  }) : (!v) -> !v
  return %y : !v
}

// -----

!v = !torch.vtensor<[2],f32>

func.func @undeclared(%x: memref<2xf32>) {
  hipdnn.execute @g ins(%x, %y) outs(%x) : (memref<2xf32>, memref<2xf32>, memref<2xf32>) -> ()
  return
}
