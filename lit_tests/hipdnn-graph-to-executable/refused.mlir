// RUN: hipdnn-opt %s --pass-pipeline='builtin.module(hipdnn-graph-to-executable{refused=g_a8e39059889632ec})' | filecheck %s
// RUN: hipdnn-opt %s --pass-pipeline='builtin.module(hipdnn-graph-to-executable{refused=g_a8e39059889632ec,g_88f1ab9f16d5835d})' | filecheck %s --check-prefix=AGAIN
// RUN: not hipdnn-opt %s --pass-pipeline='builtin.module(hipdnn-graph-to-executable{refused=g_a8e39059889632ec,g_88f1ab9f16d5835d,g_e810e7ea8aeefe93})' 2>&1 | filecheck %s --check-prefix=NONE

// A graph that the library refused is cut where it meets a second operand of its size, and if that will not do, behind its first operation.
// Where the library refuses that too, and there is no kernel for it, that is an error.

// CHECK-DAG:   summary = "matmul + tanh", sym_name = "[[HEAD:g_[0-9a-f]+]]"
// CHECK-DAG:   summary = "add + relu", sym_name = "[[TAIL:g_[0-9a-f]+]]"
// CHECK-LABEL: func.func @product
// CHECK:         %[[M:.+]] = memref.alloc() : memref<4x4xf32>
// CHECK:         hipdnn.execute @[[HEAD]] ins(%arg0, %arg1) outs(%[[M]]) {hipdnn.refused = ["g_a8e39059889632ec"]}
// CHECK:         hipdnn.execute @[[TAIL]] ins(%[[M]], %arg2) outs(%arg3) {hipdnn.refused = ["g_a8e39059889632ec"]}

// AGAIN-DAG:   summary = "matmul", sym_name = "[[HEAD:g_[0-9a-f]+]]"
// AGAIN-DAG:   summary = "tanh + add + relu", sym_name = "[[TAIL:g_[0-9a-f]+]]"
// AGAIN:         hipdnn.execute @[[HEAD]] ins(%arg0, %arg1) outs(%[[M:.+]]) {hipdnn.refused = ["g_a8e39059889632ec", "g_88f1ab9f16d5835d"]}
// AGAIN:         hipdnn.execute @[[TAIL]] ins(%[[M]], %arg2) outs(%arg3)

// NONE: 1 node cannot run on target 'host': matmul + tanh + add + relu at '-': the library refuses it with and without its epilogue, and there is no fallback kernel
!m = !torch.vtensor<[4,4],f32>
func.func @product(%a: memref<4x4xf32>, %b: memref<4x4xf32>, %r: memref<4x4xf32>, %y: memref<4x4xf32>) {
  hipdnn.graph ins(%a, %b, %r) outs(%y) ({
  ^bb0(%v: !m, %w: !m, %u: !m):
    %one = torch.constant.int 1
    %p = torch.aten.mm %v, %w : !m, !m -> !m
    %t = torch.aten.tanh %p : !m -> !m
    %s = torch.aten.add.Tensor %t, %u, %one : !m, !m, !torch.int -> !m
    %o = torch.aten.relu %s : !m -> !m
    hipdnn.yield %o : !m
  }) : (memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>) -> ()
  return
}
