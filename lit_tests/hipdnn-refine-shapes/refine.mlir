// RUN: hipdnn-opt %s --hipdnn-refine-shapes --split-input-file | filecheck %s

// Data movement, borders and compute ops get the sizes that the table computes.

// CHECK-LABEL: func.func @main
// CHECK:         torch.aten.slice.Tensor {{.+}} -> !torch.vtensor<[2,3],f32>
// CHECK:         torch.aten.select.int {{.+}} -> !torch.vtensor<[3],f32>
// CHECK:         torch.aten.constant_pad_nd {{.+}} -> !torch.vtensor<[4,7],f32>
// CHECK:         torch.aten.mul.Tensor {{.+}} -> !torch.vtensor<[2,3],f32>
// CHECK:         torch.aten.cat {{.+}} -> !torch.vtensor<[4,3],f32>
// CHECK:         torch.aten.relu {{.+}} : !torch.vtensor<[4,3],f32> -> !torch.vtensor<[4,3],f32>
!x = !torch.vtensor<[4,3],f32>
!o = !torch.vtensor<[?,3],f32>
!s = !torch.vtensor<[?],f32>
!p = !torch.vtensor<[?,?],f32>
!i = !torch.int
func.func @main(%x: !x) -> (!x, !torch.vtensor<[3],f32>, !torch.vtensor<[4,7],f32>) {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %f0 = torch.constant.float 0.0
  %pads = torch.prim.ListConstruct %1, %3 : (!i, !i) -> !torch.list<int>
  %a = torch.aten.slice.Tensor %x, %0, %1, %3, %1 : !x, !i, !i, !i, !i -> !o
  %b = torch.aten.select.int %x, %0, %2 : !x, !i, !i -> !s
  %c = torch.aten.constant_pad_nd %x, %pads, %f0 : !x, !torch.list<int>, !torch.float -> !p
  %d = torch.aten.mul.Tensor %a, %b : !o, !s -> !p
  %parts = torch.prim.ListConstruct %d, %a : (!p, !o) -> !torch.list<vtensor>
  %e = torch.aten.cat %parts, %0 : !torch.list<vtensor>, !i -> !p
  %f = torch.aten.relu %e : !p -> !p
  %g = torch.tensor_static_info_cast %f : !p to !x
  %h = torch.tensor_static_info_cast %b : !s to !torch.vtensor<[3],f32>
  %i = torch.tensor_static_info_cast %c : !p to !torch.vtensor<[4,7],f32>
  return %g, %h, %i : !x, !torch.vtensor<[3],f32>, !torch.vtensor<[4,7],f32>
}

// -----

// A returned value takes the function's type along.

// CHECK-LABEL: func.func @returned
// CHECK-SAME:    -> !torch.vtensor<[2,3],f32>
// CHECK:         return %{{.+}} : !torch.vtensor<[2,3],f32>
func.func @returned(%x: !torch.vtensor<[4,3],f32>) -> !torch.vtensor<[?,3],f32> {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %3 = torch.constant.int 3
  %a = torch.aten.slice.Tensor %x, %0, %1, %3, %1 : !torch.vtensor<[4,3],f32>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[?,3],f32>
  return %a : !torch.vtensor<[?,3],f32>
}

// -----

// Sizes that depend on data, on the caller, or on an op outside the table stay open.

// CHECK-LABEL: func.func @open
// CHECK:         torch.aten.relu {{.+}} -> !torch.vtensor<[?,3],f32>
// CHECK:         torch.aten.nonzero {{.+}} -> !torch.vtensor<[?,2],si64>
// CHECK:         torch.aten.slice.Tensor {{.+}} -> !torch.vtensor<[?,3],f32>
!x = !torch.vtensor<[?,3],f32>
func.func @open(%x: !x, %y: !torch.vtensor<[4,3],f32>, %start: !torch.int) -> (!x, !torch.vtensor<[?,2],si64>, !x) {
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %3 = torch.constant.int 3
  %a = torch.aten.relu %x : !x -> !x
  %b = torch.aten.nonzero %y : !torch.vtensor<[4,3],f32> -> !torch.vtensor<[?,2],si64>
  %c = torch.aten.slice.Tensor %y, %0, %start, %3, %1 : !torch.vtensor<[4,3],f32>, !torch.int, !torch.int, !torch.int, !torch.int -> !x
  return %a, %b, %c : !x, !torch.vtensor<[?,2],si64>, !x
}
