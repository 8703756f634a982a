// RUN: hipdnn-opt %s --hipdnn-launch-to-kernel | filecheck %s

// Equal launches on equal strides share one kernel; other strides make another: a transposed operand is read as it lies, without a copy.

// CHECK:         "hipdnn.kernel"() {{.+}}strides\22:[1,4]{{.+}} summary = "bit_not", sym_name = "[[TURNED:k_[0-9a-f]+]]"
// CHECK:         "hipdnn.kernel"() {{.+}}strides\22:[2,1]{{.+}} summary = "bit_not", sym_name = "[[PLAIN:k_[0-9a-f]+]]"
// CHECK-NOT:     hipdnn.kernel"
// CHECK-LABEL: func.func @share
// CHECK-NEXT:    "hipdnn.launch_kernel"(%arg0, %arg1) {kernel = @[[PLAIN]],
// CHECK-NEXT:    "hipdnn.launch_kernel"(%arg1, %arg0) {kernel = @[[PLAIN]],
// CHECK-NEXT:    %[[T:.+]] = memref.transpose %arg2
// CHECK-NEXT:    "hipdnn.launch_kernel"(%[[T]], %arg0) {kernel = @[[TURNED]],
// CHECK-NEXT:    return
#one = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#none = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>
#in_out = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0>
!x = !torch.vtensor<[4,2],si16>
!m = memref<4x2xi16>
!t = memref<4x2xi16, strided<[1, 4]>>
func.func @share(%a: !m, %b: !m, %c: memref<2x4xi16>) {
  "hipdnn.launch"(%a, %b) ({
  ^bb0(%v: !x):
    %r = torch.aten.bitwise_not %v : !x -> !x
    "hipdnn.yield"(%r) {operandSegmentSizes = #one} : (!x) -> ()
  }) {operandSegmentSizes = #in_out, resultSegmentSizes = #none} : (!m, !m) -> ()
  "hipdnn.launch"(%b, %a) ({
  ^bb0(%v: !x):
    %r = torch.aten.bitwise_not %v : !x -> !x
    "hipdnn.yield"(%r) {operandSegmentSizes = #one} : (!x) -> ()
  }) {operandSegmentSizes = #in_out, resultSegmentSizes = #none} : (!m, !m) -> ()
  %t = memref.transpose %c (i, j) -> (j, i) : memref<2x4xi16> to !t
  "hipdnn.launch"(%t, %a) ({
  ^bb0(%v: !x):
    %r = torch.aten.bitwise_not %v : !x -> !x
    "hipdnn.yield"(%r) {operandSegmentSizes = #one} : (!x) -> ()
  }) {operandSegmentSizes = #in_out, resultSegmentSizes = #none} : (!t, !m) -> ()
  return
}
