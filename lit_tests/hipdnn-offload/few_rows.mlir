// RUN: hipdnn-opt %s --hipdnn-offload=target=sm_90 --canonicalize --split-input-file | filecheck %s --check-prefixes=CHECK,CUDA
// RUN: hipdnn-opt %s --hipdnn-offload=target=gfx942 --canonicalize --split-input-file | filecheck %s --check-prefixes=CHECK,ROCM

// The norm in front of both halves of a gated layer is part of their kernel, though neither half alone could take it in.

// CHECK-LABEL: func.func @gated
// CHECK:         hipdnn.graph ins(%arg0, %arg1, %arg2, %arg3)
// CHECK:           torch.aten.rms_norm
// CHECK:           torch.aten.linear
// CHECK:           torch.aten.linear
// CHECK:           torch.aten.mul.Tensor
// CHECK-NEXT:      hipdnn.yield
// CHECK:         hipdnn.engine = "GENERATED"
// CHECK-NOT:     hipdnn.graph
!x = !torch.vtensor<[1,1,64],f16>
!s = !torch.vtensor<[64],f16>
!w = !torch.vtensor<[96,64],f16>
!y = !torch.vtensor<[1,1,96],f16>
func.func @gated(%x: !x, %s: !s, %w: !w, %v: !w) -> !y {
  %none = torch.constant.none
  %64 = torch.constant.int 64
  %epsilon = torch.constant.float 1.000000e-05
  %dims = torch.prim.ListConstruct %64 : (!torch.int) -> !torch.list<int>
  %n = torch.aten.rms_norm %x, %dims, %s, %epsilon : !x, !torch.list<int>, !s, !torch.float -> !x
  %a = torch.aten.linear %n, %w, %none : !x, !w, !torch.none -> !y
  %b = torch.aten.linear %n, %v, %none : !x, !w, !torch.none -> !y
  %c = torch.aten.silu %a : !y -> !y
  %y = torch.aten.mul.Tensor %c, %b : !y, !y -> !y
  return %y : !y
}

// -----

// What something else reads, or what an epilogue reads, is written once and read: a kernel each.

// CHECK-LABEL: func.func @read_elsewhere
// CHECK:         torch.aten.rms_norm
// CHECK-NEXT:      hipdnn.yield
// CHECK:         torch.aten.linear
// CHECK-NEXT:      torch.aten.add.Tensor
// CHECK-NEXT:      hipdnn.yield
// CHECK:         hipdnn.engine = "GENERATED"
!x = !torch.vtensor<[1,64],f16>
!s = !torch.vtensor<[64],f16>
!w = !torch.vtensor<[64,64],f16>
func.func @read_elsewhere(%x: !x, %s: !s, %w: !w) -> !x {
  %none = torch.constant.none
  %1 = torch.constant.int 1
  %64 = torch.constant.int 64
  %epsilon = torch.constant.float 1.000000e-05
  %dims = torch.prim.ListConstruct %64 : (!torch.int) -> !torch.list<int>
  %n = torch.aten.rms_norm %x, %dims, %s, %epsilon : !x, !torch.list<int>, !s, !torch.float -> !x
  %a = torch.aten.linear %n, %w, %none : !x, !w, !torch.none -> !x
  %y = torch.aten.add.Tensor %a, %n, %1 : !x, !x, !torch.int -> !x
  return %y : !x
}

// -----

// Of many rows, a matmul is the library's, and the norm a kernel.

// CHECK-LABEL: func.func @many_rows
// CHECK:           torch.aten.rms_norm
// CHECK-NEXT:      hipdnn.yield
// CHECK:           torch.aten.linear
// CHECK-NEXT:      hipdnn.yield
// CUDA:          hipdnn.engine = "CUDNN_ENGINE"
// ROCM:          hipdnn.engine = "HIPBLASLT_ENGINE"
!x = !torch.vtensor<[64,64],f16>
!s = !torch.vtensor<[64],f16>
!w = !torch.vtensor<[64,64],f16>
func.func @many_rows(%x: !x, %s: !s, %w: !w) -> !x {
  %none = torch.constant.none
  %64 = torch.constant.int 64
  %epsilon = torch.constant.float 1.000000e-05
  %dims = torch.prim.ListConstruct %64 : (!torch.int) -> !torch.list<int>
  %n = torch.aten.rms_norm %x, %dims, %s, %epsilon : !x, !torch.list<int>, !s, !torch.float -> !x
  %a = torch.aten.linear %n, %w, %none : !x, !w, !torch.none -> !x
  return %a : !x
}
