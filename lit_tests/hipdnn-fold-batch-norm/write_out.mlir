// RUN: hipdnn-opt %s --hipdnn-fold-batch-norm | filecheck %s

!x = !torch.vtensor<[1,4,8,8],f32>
!w = !torch.vtensor<[4,4,1,1],f32>
!w2 = !torch.vtensor<[4,2,1,1],f32>
!c = !torch.vtensor<[4],f32>
!l = !torch.list<int>

// The convolution has another reader.

// CHECK-LABEL: func.func @used_twice
// CHECK:         %[[Y:.+]] = torch.aten.convolution %arg0, %arg1, %none
// CHECK:         %[[S:.+]] = torch.aten.mul.Tensor %arg2, %{{.+}} : !torch.vtensor<[4],f32>
// CHECK:         %[[MOVED:.+]] = torch.aten.mul.Tensor %arg2, %[[S]]
// CHECK:         %[[T:.+]] = torch.aten.sub.Tensor %arg2, %[[MOVED]]
// CHECK-DAG:     %[[SCALE:.+]] = torch.aten.view %[[S]], %{{.+}} -> !torch.vtensor<[4,1,1],f32>
// CHECK-DAG:     %[[SHIFT:.+]] = torch.aten.view %[[T]], %{{.+}} -> !torch.vtensor<[4,1,1],f32>
// CHECK:         %[[SCALED:.+]] = torch.aten.mul.Tensor %[[Y]], %[[SCALE]]
// CHECK:         %[[N:.+]] = torch.aten.add.Tensor %[[SCALED]], %[[SHIFT]]
// CHECK-NOT:     torch.aten.batch_norm
// CHECK:         return %[[Y]], %[[N]]
func.func @used_twice(%x: !x, %w: !w {hipdnn.constant = "w"}, %s: !c {hipdnn.constant = "s"}) -> (!x, !x) {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %eps = torch.constant.float 1.0e-5
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %n = torch.aten.batch_norm %y, %s, %s, %s, %s, %false, %eps, %eps, %false : !x, !c, !c, !c, !c, !torch.bool, !torch.float, !torch.float, !torch.bool -> !x
  return %y, %n : !x, !x
}

// Weights that are an input of the program.

// CHECK-LABEL: func.func @weights_not_constant
// CHECK:         %[[Y:.+]] = torch.aten.convolution %arg0, %arg1, %none
// CHECK:         torch.aten.mul.Tensor %[[Y]]
// CHECK-NOT:     torch.aten.batch_norm
func.func @weights_not_constant(%x: !x, %v: !w, %t: !c {hipdnn.constant = "t"}) -> !x {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %eps = torch.constant.float 1.0e-5
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %z = torch.aten.convolution %x, %v, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %m = torch.aten.batch_norm %z, %t, %t, %t, %t, %false, %eps, %eps, %false : !x, !c, !c, !c, !c, !torch.bool, !torch.float, !torch.float, !torch.bool -> !x
  return %m : !x
}


// Weights of a transposed convolution in groups are not ordered by output channel.

// CHECK-LABEL: func.func @transposed_in_groups
// CHECK:         torch.aten.mul.Tensor
// CHECK-NOT:     torch.aten.batch_norm
func.func @transposed_in_groups(%x: !x, %w: !w2 {hipdnn.constant = "w"}, %s: !c {hipdnn.constant = "s"}) -> !x {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %true = torch.constant.bool true
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %eps = torch.constant.float 1.0e-5
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %true, %zeros, %2 : !x, !w2, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %n = torch.aten.batch_norm %y, %s, %s, %s, %s, %false, %eps, %eps, %false : !x, !c, !c, !c, !c, !torch.bool, !torch.float, !torch.float, !torch.bool -> !x
  return %n : !x
}

// There is no convolution; one of sequences.

// CHECK-LABEL: func.func @alone
// CHECK:         torch.aten.view %{{.+}} -> !torch.vtensor<[4,1],f32>
// CHECK:         torch.aten.mul.Tensor %arg0
// CHECK-NOT:     torch.aten.batch_norm
func.func @alone(%x: !torch.vtensor<[2,4,9],f32>, %s: !c {hipdnn.constant = "s"}) -> !torch.vtensor<[2,4,9],f32> {
  %false = torch.constant.bool false
  %eps = torch.constant.float 1.0e-5
  %n = torch.aten.batch_norm %x, %s, %s, %s, %s, %false, %eps, %eps, %false : !torch.vtensor<[2,4,9],f32>, !c, !c, !c, !c, !torch.bool, !torch.float, !torch.float, !torch.bool -> !torch.vtensor<[2,4,9],f32>
  return %n : !torch.vtensor<[2,4,9],f32>
}
