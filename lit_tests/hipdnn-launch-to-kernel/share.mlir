// RUN: hipdnn-opt %s --hipdnn-launch-to-kernel | filecheck %s

// Equal launches on equal strides share one kernel; other strides make another: a transposed operand is read as it lies, without a copy.

// CHECK:         "hipdnn.kernel"() {{.+}}strides\22:[1,4]{{.+}} summary = "bit_not", sym_name = "[[TURNED:k_[0-9a-f]+]]"
// CHECK:         "hipdnn.kernel"() {{.+}}strides\22:[2,1]{{.+}} summary = "bit_not", sym_name = "[[PLAIN:k_[0-9a-f]+]]"
// CHECK-NOT:     hipdnn.kernel"
// CHECK-LABEL: func.func @share
// CHECK-NEXT:    hipdnn.launch_kernel @[[PLAIN]] ins(%arg0) outs(%arg1)
// CHECK-NEXT:    hipdnn.launch_kernel @[[PLAIN]] ins(%arg1) outs(%arg0)
// CHECK-NEXT:    %[[T:.+]] = memref.transpose %arg2
// CHECK-NEXT:    hipdnn.launch_kernel @[[TURNED]] ins(%[[T]]) outs(%arg0)
// CHECK-NEXT:    return
!x = !torch.vtensor<[4,2],si16>
!m = memref<4x2xi16>
!t = memref<4x2xi16, strided<[1, 4]>>
func.func @share(%a: !m, %b: !m, %c: memref<2x4xi16>) {
  hipdnn.launch ins(%a) outs(%b) ({
  ^bb0(%v: !x):
    %r = torch.aten.bitwise_not %v : !x -> !x
    hipdnn.yield %r : !x
  }) : (!m, !m) -> ()
  hipdnn.launch ins(%b) outs(%a) ({
  ^bb0(%v: !x):
    %r = torch.aten.bitwise_not %v : !x -> !x
    hipdnn.yield %r : !x
  }) : (!m, !m) -> ()
  %t = memref.transpose %c (i, j) -> (j, i) : memref<2x4xi16> to !t
  hipdnn.launch ins(%t) outs(%a) ({
  ^bb0(%v: !x):
    %r = torch.aten.bitwise_not %v : !x -> !x
    hipdnn.yield %r : !x
  }) : (!t, !m) -> ()
  return
}
