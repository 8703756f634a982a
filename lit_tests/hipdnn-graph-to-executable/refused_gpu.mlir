// RUN: hipdnn-opt %s --hipdnn-graph-to-executable=target=sm_90+tf32 | filecheck %s --check-prefix=TAKEN
// RUN: hipdnn-opt %s --pass-pipeline='builtin.module(hipdnn-graph-to-executable{target=sm_90+tf32 refused=g_1af2706d11c6275c})' | filecheck %s --check-prefix=SPLIT
// RUN: hipdnn-opt %s --pass-pipeline='builtin.module(hipdnn-graph-to-executable{target=sm_90+tf32 refused=g_1af2706d11c6275c,g_61079562bb6112e7})' | filecheck %s --check-prefix=CODE
// RUN: hipdnn-opt %s --hipdnn-graph-to-executable=target=sm_90 | filecheck %s --check-prefix=EXACT

// On a GPU the second half is a kernel; where the library refuses the first half as well, the whole graph is. cuDNN has no exact products
// of f32: without TF32 they are cuBLASLt's.

// TAKEN: "hipdnn.executable"() {{.+}} engine = "CUDNN_ENGINE"{{.+}} summary = "matmul + relu"
// EXACT: "hipdnn.executable"() {{.+}} engine = "CUBLASLT_ENGINE"{{.+}} summary = "matmul + relu"
// SPLIT-DAG: "hipdnn.executable"() {{.+}} summary = "matmul"
// SPLIT-DAG: "hipdnn.kernel"() {{.+}} summary = "relu"
// CODE-NOT: hipdnn.executable
// CODE: "hipdnn.kernel"() {{.+}} summary = "matmul + relu"
// CODE: hipdnn.launch_kernel @{{.+}} ins(%arg0, %arg1) outs(%arg2)
!m = !torch.vtensor<[8,8],f32>
func.func @product(%a: memref<8x8xf32>, %b: memref<8x8xf32>, %y: memref<8x8xf32>) {
  hipdnn.graph ins(%a, %b) outs(%y) ({
  ^bb0(%v: !m, %w: !m):
    %p = torch.aten.mm %v, %w : !m, !m -> !m
    %o = torch.aten.relu %p : !m -> !m
    hipdnn.yield %o : !m
  }) : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
  return
}
