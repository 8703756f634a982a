// RUN: hipdnn-opt %s --hipdnn-fuse-group-norm --canonicalize --split-input-file | filecheck %s

// Channels are split from x to behind the activation; scale and bias are split with them, and what follows is as it was.

// CHECK-LABEL: func.func @group_norm
// CHECK:         %[[X:.+]] = torch.aten.view %arg0, %{{.+}} -> !torch.vtensor<[2,4,2,3,5],f32>
// CHECK:         %[[N:.+]] = torch.aten.instance_norm %[[X]], %arg1, %arg2, {{.+}} -> !torch.vtensor<[2,4,2,3,5],f32>
// CHECK:         %[[S:.+]] = torch.aten.view %arg3, %{{.+}} -> !torch.vtensor<[4,2,1,1],f32>
// CHECK:         %[[P:.+]] = torch.aten.mul.Tensor %[[N]], %[[S]] {{.+}} -> !torch.vtensor<[2,4,2,3,5],f32>
// CHECK:         %[[B:.+]] = torch.aten.view %arg4, %{{.+}} -> !torch.vtensor<[1,4,2,1,1],f32>
// CHECK:         %[[Q:.+]] = torch.aten.add.Tensor %[[P]], %[[B]]
// CHECK:         %[[A:.+]] = torch.aten.silu %[[Q]]
// CHECK:         %[[Y:.+]] = torch.aten.view %[[A]], %{{.+}} -> !torch.vtensor<[2,8,3,5],f32>
// CHECK:         torch.aten.add.Tensor %[[Y]], %arg0
!x = !torch.vtensor<[2,8,3,5],f32>
!g = !torch.vtensor<[2,4,30],f32>
!c = !torch.vtensor<[8,1,1],f32>
!b = !torch.vtensor<[1,8,1,1],f32>
!w = !torch.vtensor<[4],f32>
!i = !torch.int
!l = !torch.list<int>
func.func @group_norm(%x: !x, %one: !w, %zero: !w, %scale: !c, %bias: !b) -> !x {
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %4 = torch.constant.int 4
  %5 = torch.constant.int 5
  %8 = torch.constant.int 8
  %-1 = torch.constant.int -1
  %none = torch.constant.none
  %true = torch.constant.bool true
  %false = torch.constant.bool false
  %eps = torch.constant.float 1.0e-5
  %zero_f = torch.constant.float 0.0
  %grouped = torch.prim.ListConstruct %2, %4, %-1 : (!i, !i, !i) -> !l
  %whole = torch.prim.ListConstruct %2, %8, %3, %5 : (!i, !i, !i, !i) -> !l
  %a = torch.aten.reshape %x, %grouped : !x, !l -> !g
  %b = torch.aten.instance_norm %a, %one, %zero, %none, %none, %true, %zero_f, %eps, %false : !g, !w, !w, !torch.none, !torch.none, !torch.bool, !torch.float, !torch.float, !torch.bool -> !g
  %c = torch.aten.reshape %b, %whole : !g, !l -> !x
  %d = torch.aten.mul.Tensor %c, %scale : !x, !c -> !x
  %e = torch.aten.add.Tensor %d, %bias, %1 : !x, !b, !i -> !x
  %f = torch.aten.silu %e : !x -> !x
  %g = torch.aten.add.Tensor %f, %x, %1 : !x, !x, !i -> !x
  return %g : !x
}

// -----

// A reshape that does not split channels, and a norm read before it is reshaped back, stay.

// CHECK-LABEL: func.func @kept
// CHECK:         torch.aten.reshape %arg0
// CHECK:         torch.aten.instance_norm
// CHECK:         torch.aten.reshape %arg1
// CHECK:         torch.aten.instance_norm
// CHECK-NOT:     torch.aten.view
!x = !torch.vtensor<[2,8,15],f32>
!other = !torch.vtensor<[16,3,5],f32>
!g = !torch.vtensor<[2,4,30],f32>
!w = !torch.vtensor<[4],f32>
!i = !torch.int
!l = !torch.list<int>
func.func @kept(%x: !x, %y: !other, %one: !w, %zero: !w) -> (!x, !g, !other) {
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %4 = torch.constant.int 4
  %5 = torch.constant.int 5
  %8 = torch.constant.int 8
  %15 = torch.constant.int 15
  %16 = torch.constant.int 16
  %30 = torch.constant.int 30
  %none = torch.constant.none
  %true = torch.constant.bool true
  %false = torch.constant.bool false
  %eps = torch.constant.float 1.0e-5
  %zero_f = torch.constant.float 0.0
  %grouped = torch.prim.ListConstruct %2, %4, %30 : (!i, !i, !i) -> !l
  %whole = torch.prim.ListConstruct %2, %8, %15 : (!i, !i, !i) -> !l
  %other = torch.prim.ListConstruct %16, %3, %5 : (!i, !i, !i) -> !l
  %a = torch.aten.reshape %x, %grouped : !x, !l -> !g
  %b = torch.aten.instance_norm %a, %one, %zero, %none, %none, %true, %zero_f, %eps, %false : !g, !w, !w, !torch.none, !torch.none, !torch.bool, !torch.float, !torch.float, !torch.bool -> !g
  %c = torch.aten.reshape %b, %whole : !g, !l -> !x
  %d = torch.aten.reshape %y, %grouped : !other, !l -> !g
  %e = torch.aten.instance_norm %d, %one, %zero, %none, %none, %true, %zero_f, %eps, %false : !g, !w, !w, !torch.none, !torch.none, !torch.bool, !torch.float, !torch.float, !torch.bool -> !g
  %f = torch.aten.reshape %e, %other : !g, !l -> !other
  return %c, %b, %f : !x, !g, !other
}
