// RUN: hipdnn-opt %s --hipdnn-graph-to-executable=target=sm_90 | filecheck %s

// Constant weights are read before the kernel in front has ended, others are not: the same graph is two kernels, one of them for both constants.

// CHECK:         "hipdnn.kernel"() {{.+}} sym_name = "[[LATE:g_[0-9a-f]+]]"
// CHECK:         "hipdnn.kernel"() {{.+}} sym_name = "[[EARLY:g_[0-9a-f]+_1]]"
// CHECK-NOT:     hipdnn.kernel"
// CHECK-LABEL: func.func @products
// CHECK:         hipdnn.launch_kernel @[[EARLY]] ins(%arg0, %arg1)
// CHECK:         hipdnn.launch_kernel @[[EARLY]] ins(%arg0, %arg2)
// CHECK:         hipdnn.launch_kernel @[[LATE]] ins(%arg0, %arg3)
!x = memref<1x64xf16>
!w = memref<32x64xf16>
!y = memref<1x32xf16>
!xt = !torch.vtensor<[1,64],f16>
!wt = !torch.vtensor<[32,64],f16>
!yt = !torch.vtensor<[1,32],f16>
func.func @products(%x: !x, %w: !w {hipdnn.constant = "w"}, %v: !w {hipdnn.constant = "v"}, %u: !w, %a: !y, %b: !y, %c: !y) {
  hipdnn.graph ins(%x, %w) outs(%a) ({
  ^bb0(%0: !xt, %1: !wt):
    %none = torch.constant.none
    %2 = torch.aten.linear %0, %1, %none : !xt, !wt, !torch.none -> !yt
    hipdnn.yield %2 : !yt
  }) {hipdnn.engine = "GENERATED"} : (!x, !w, !y) -> ()
  hipdnn.graph ins(%x, %v) outs(%b) ({
  ^bb0(%0: !xt, %1: !wt):
    %none = torch.constant.none
    %2 = torch.aten.linear %0, %1, %none : !xt, !wt, !torch.none -> !yt
    hipdnn.yield %2 : !yt
  }) {hipdnn.engine = "GENERATED"} : (!x, !w, !y) -> ()
  hipdnn.graph ins(%x, %u) outs(%c) ({
  ^bb0(%0: !xt, %1: !wt):
    %none = torch.constant.none
    %2 = torch.aten.linear %0, %1, %none : !xt, !wt, !torch.none -> !yt
    hipdnn.yield %2 : !yt
  }) {hipdnn.engine = "GENERATED"} : (!x, !w, !y) -> ()
  return
}
