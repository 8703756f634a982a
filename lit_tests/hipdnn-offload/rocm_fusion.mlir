// RUN: hipdnn-opt %s --hipdnn-offload=target=gfx942 --canonicalize | filecheck %s --check-prefix=CDNA
// RUN: hipdnn-opt %s --hipdnn-offload=target=gfx90a --canonicalize | filecheck %s --check-prefix=ALONE
// RUN: hipdnn-opt %s --hipdnn-offload=target=gfx1100 --canonicalize | filecheck %s --check-prefix=ALONE

// MIOpen takes what follows a convolution where it has kernels for it. Elsewhere the convolution is alone, the rest one generated kernel.

// CDNA-LABEL: func.func @bias_and_relu
// CDNA:         torch.aten.convolution
// CDNA-NEXT:      torch.aten.add.Tensor
// CDNA-NEXT:      torch.aten.relu
// CDNA:         hipdnn.engine = "MIOPEN_ENGINE"
// CDNA-NOT:     hipdnn.graph

// ALONE-LABEL: func.func @bias_and_relu
// ALONE:         torch.aten.convolution
// ALONE-NEXT:      hipdnn.yield
// ALONE:         hipdnn.engine = "MIOPEN_ENGINE"
// ALONE:         hipdnn.graph
// ALONE:           torch.aten.add.Tensor
// ALONE-NEXT:      torch.aten.relu
// ALONE:         hipdnn.engine = "GENERATED"
!x = !torch.vtensor<[1,4,8,8],f32>
!w = !torch.vtensor<[4,4,3,3],f32>
!b = !torch.vtensor<[4,1,1],f32>
!l = !torch.list<int>
func.func @bias_and_relu(%x: !x, %w: !w, %b: !b) -> !x {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %c = torch.aten.convolution %x, %w, %none, %ones, %ones, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %a = torch.aten.add.Tensor %c, %b, %1 : !x, !b, !torch.int -> !x
  %y = torch.aten.relu %a : !x -> !x
  return %y : !x
}
