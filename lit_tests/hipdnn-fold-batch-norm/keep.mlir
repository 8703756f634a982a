// RUN: hipdnn-opt %s --hipdnn-fold-batch-norm | filecheck %s

!x = !torch.vtensor<[1,4,8,8],f32>
!w = !torch.vtensor<[4,4,1,1],f32>
!h = !torch.vtensor<[1,4,8,8],f16>
!wh = !torch.vtensor<[4,4,1,1],f16>
!c = !torch.vtensor<[4],f32>
!l = !torch.list<int>

// Statistics that are an input of the program.

// CHECK-LABEL: func.func @not_constant
// CHECK:         torch.aten.convolution %arg0, %arg1, %none
// CHECK:         torch.aten.batch_norm
func.func @not_constant(%x: !x, %w: !w {hipdnn.constant = "w"}, %s: !c) -> !x {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %eps = torch.constant.float 1.0e-5
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %n = torch.aten.batch_norm %y, %s, %s, %s, %s, %false, %eps, %eps, %false : !x, !c, !c, !c, !c, !torch.bool, !torch.float, !torch.float, !torch.bool -> !x
  return %n : !x
}


// Training computes the statistics of the batch.

// CHECK-LABEL: func.func @training
// CHECK:         torch.aten.batch_norm
func.func @training(%x: !x, %w: !w {hipdnn.constant = "w"}, %s: !c {hipdnn.constant = "s"}) -> !x {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %true = torch.constant.bool true
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %eps = torch.constant.float 1.0e-5
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !x, !w, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !x
  %n = torch.aten.batch_norm %y, %s, %s, %s, %s, %true, %eps, %eps, %false : !x, !c, !c, !c, !c, !torch.bool, !torch.float, !torch.float, !torch.bool -> !x
  return %n : !x
}

// f16 weights and f32 statistics: the product would need a cast.

// CHECK-LABEL: func.func @dtypes_differ
// CHECK:         torch.aten.batch_norm
func.func @dtypes_differ(%x: !h, %w: !wh {hipdnn.constant = "w"}, %s: !c {hipdnn.constant = "s"}) -> !h {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.constant.int 0
  %1 = torch.constant.int 1
  %eps = torch.constant.float 1.0e-5
  %zeros = torch.prim.ListConstruct %0, %0 : (!torch.int, !torch.int) -> !l
  %ones = torch.prim.ListConstruct %1, %1 : (!torch.int, !torch.int) -> !l
  %y = torch.aten.convolution %x, %w, %none, %ones, %zeros, %ones, %false, %zeros, %1 : !h, !wh, !torch.none, !l, !l, !l, !torch.bool, !l, !torch.int -> !h
  %n = torch.aten.batch_norm %y, %s, %s, %s, %s, %false, %eps, %eps, %false : !h, !c, !c, !c, !c, !torch.bool, !torch.float, !torch.float, !torch.bool -> !h
  return %n : !h
}
