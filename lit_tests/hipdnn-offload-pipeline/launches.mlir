// RUN: hipdnn-opt %s --hipdnn-offload-pipeline | filecheck %s

// Data of a type that hipDNN has not is moved by a kernel; what an elementwise kernel reads through a transpose is not moved at all.

// CHECK-DAG:     "hipdnn.kernel"() {{.+}} summary = "copy", sym_name = "[[COPY:k_[0-9a-f]+]]"
// CHECK-DAG:     "hipdnn.kernel"() {{.+}} summary = "add", sym_name = "[[ADD:k_[0-9a-f]+]]"
// CHECK-LABEL: func.func @main
// CHECK-NOT:     hipdnn.execute
// CHECK:         %[[T:.+]] = memref.transpose %arg1
// CHECK-NEXT:    hipdnn.launch_kernel @[[ADD]] ins(%arg0, %[[T]]) outs(%arg2)
// CHECK:         hipdnn.launch_kernel
// CHECK-NOT:     memref.alloc
// CHECK:         return
!x = !torch.vtensor<[4,8],si16>
!y = !torch.vtensor<[8,4],si16>
func.func @main(%x: !x, %y: !y) -> (!x, !y) {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %a = torch.aten.transpose.int %y, %0, %1 : !y, !torch.int, !torch.int -> !x
  %b = torch.aten.add.Tensor %x, %a, %1 : !x, !x, !torch.int -> !x
  %c = torch.aten.transpose.int %x, %0, %1 : !x, !torch.int, !torch.int -> !y
  return %b, %c : !x, !y
}
