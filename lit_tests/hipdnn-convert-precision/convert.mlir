// RUN: hipdnn-opt %s --hipdnn-convert-precision=precision=bf16 | filecheck %s

// A product with its bias and activation is narrow, a residual in f32 stays f32; weights are cast in front of their views,
// the bias without leaving the type's range.
// CHECK-LABEL: func.func @residual
// CHECK-SAME: %[[X:.*]]: !torch.vtensor<[4,8],f32>, %[[W:.*]]: !torch.vtensor<[8,8],f32>{{.*}}, %[[B:.*]]: !torch.vtensor<[8],f32>
// CHECK-DAG: %[[XN:.*]] = torch.aten.to.dtype %[[X]], {{.*}} -> !torch.vtensor<[4,8],bf16>
// CHECK-DAG: %[[WN:.*]] = torch.aten.to.dtype %[[W]], {{.*}} -> !torch.vtensor<[8,8],bf16>
// CHECK-DAG: %[[BL:.*]] = torch.aten.maximum %[[B]], {{.*}} -> !torch.vtensor<[8],f32>
// CHECK-DAG: %[[BU:.*]] = torch.aten.minimum %[[BL]], {{.*}} -> !torch.vtensor<[8],f32>
// CHECK-DAG: %[[BN:.*]] = torch.aten.to.dtype %[[BU]], {{.*}} -> !torch.vtensor<[8],bf16>
// CHECK: %[[WT:.*]] = torch.aten.t %[[WN]] {{.*}} -> !torch.vtensor<[8,8],bf16>
// CHECK: %[[MM:.*]] = torch.aten.mm %[[XN]], %[[WT]] {{.*}} -> !torch.vtensor<[4,8],bf16>
// CHECK: %[[S:.*]] = torch.aten.add.Tensor %[[MM]], %[[BN]], {{.*}} -> !torch.vtensor<[4,8],bf16>
// CHECK: %[[A:.*]] = torch.aten.relu %[[S]] : {{.*}} -> !torch.vtensor<[4,8],bf16>
// CHECK: %[[AW:.*]] = torch.aten.to.dtype %[[A]], {{.*}} -> !torch.vtensor<[4,8],f32>
// CHECK: %[[Y:.*]] = torch.aten.add.Tensor %[[AW]], %[[X]], {{.*}} -> !torch.vtensor<[4,8],f32>
// CHECK: return %[[Y]]
func.func @residual(%x: !torch.vtensor<[4,8],f32>, %w: !torch.vtensor<[8,8],f32> {hipdnn.constant = "w"},
                    %b: !torch.vtensor<[8],f32> {hipdnn.constant = "b"}) -> !torch.vtensor<[4,8],f32> {
  %one = torch.constant.int 1
  %t = torch.aten.t %w : !torch.vtensor<[8,8],f32> -> !torch.vtensor<[8,8],f32>
  %p = torch.aten.mm %x, %t : !torch.vtensor<[4,8],f32>, !torch.vtensor<[8,8],f32> -> !torch.vtensor<[4,8],f32>
  %s = torch.aten.add.Tensor %p, %b, %one : !torch.vtensor<[4,8],f32>, !torch.vtensor<[8],f32>, !torch.int -> !torch.vtensor<[4,8],f32>
  %a = torch.aten.relu %s : !torch.vtensor<[4,8],f32> -> !torch.vtensor<[4,8],f32>
  %y = torch.aten.add.Tensor %a, %x, %one : !torch.vtensor<[4,8],f32>, !torch.vtensor<[4,8],f32>, !torch.int -> !torch.vtensor<[4,8],f32>
  return %y : !torch.vtensor<[4,8],f32>
}

// A value is cast once for all who read it narrow, in front of movement with one reader, and numbers stay f32.
// CHECK-LABEL: func.func @movement
// CHECK-SAME: %[[X:.*]]: !torch.vtensor<[2,4,8],f32>
// CHECK-DAG: %[[H:.*]] = torch.vtensor.literal(dense<5.000000e-01> : tensor<f32>)
// CHECK-DAG: %[[XN:.*]] = torch.aten.to.dtype %[[X]], {{.*}} -> !torch.vtensor<[2,4,8],bf16>
// CHECK-NOT: to.dtype
// CHECK: %[[T:.*]] = torch.aten.transpose.int %[[XN]], {{.*}} -> !torch.vtensor<[2,8,4],bf16>
// CHECK: %[[P:.*]] = torch.aten.bmm %[[XN]], %[[T]] {{.*}} -> !torch.vtensor<[2,4,4],bf16>
// CHECK: %[[M:.*]] = torch.aten.mul.Tensor %[[P]], %[[H]] : {{.*}} -> !torch.vtensor<[2,4,4],bf16>
// CHECK: %[[MW:.*]] = torch.aten.to.dtype %[[M]], {{.*}} -> !torch.vtensor<[2,4,4],f32>
// CHECK: %[[Y:.*]] = torch.aten.view %[[MW]], {{.*}} -> !torch.vtensor<[8,4],f32>
// CHECK: return %[[Y]]
func.func @movement(%x: !torch.vtensor<[2,4,8],f32>) -> !torch.vtensor<[8,4],f32> {
  %half = torch.vtensor.literal(dense<0.5> : tensor<f32>) : !torch.vtensor<[],f32>
  %one = torch.constant.int 1
  %two = torch.constant.int 2
  %t = torch.aten.transpose.int %x, %one, %two : !torch.vtensor<[2,4,8],f32>, !torch.int, !torch.int -> !torch.vtensor<[2,8,4],f32>
  %p = torch.aten.bmm %x, %t : !torch.vtensor<[2,4,8],f32>, !torch.vtensor<[2,8,4],f32> -> !torch.vtensor<[2,4,4],f32>
  %m = torch.aten.mul.Tensor %p, %half : !torch.vtensor<[2,4,4],f32>, !torch.vtensor<[],f32> -> !torch.vtensor<[2,4,4],f32>
  %eight = torch.constant.int 8
  %four = torch.constant.int 4
  %dims = torch.prim.ListConstruct %eight, %four : (!torch.int, !torch.int) -> !torch.list<int>
  %y = torch.aten.view %m, %dims : !torch.vtensor<[2,4,4],f32>, !torch.list<int> -> !torch.vtensor<[8,4],f32>
  return %y : !torch.vtensor<[8,4],f32>
}

// A norm keeps its parameters and writes what its readers want.
// CHECK-LABEL: func.func @norm
// CHECK-SAME: %[[X:.*]]: !torch.vtensor<[4,8],f32>, %[[S:.*]]: !torch.vtensor<[8],f32>
// CHECK: %[[N:.*]] = torch.aten.layer_norm %[[X]], %{{.*}}, %[[S]], %[[S]], {{.*}} -> !torch.vtensor<[4,8],bf16>
// CHECK: torch.aten.mm %[[N]], {{.*}} -> !torch.vtensor<[4,8],bf16>
func.func @norm(%x: !torch.vtensor<[4,8],f32>, %s: !torch.vtensor<[8],f32> {hipdnn.constant = "s"},
                %w: !torch.vtensor<[8,8],f32> {hipdnn.constant = "w"}) -> !torch.vtensor<[4,8],f32> {
  %eight = torch.constant.int 8
  %dims = torch.prim.ListConstruct %eight : (!torch.int) -> !torch.list<int>
  %epsilon = torch.constant.float 1.000000e-05
  %false = torch.constant.bool false
  %n = torch.aten.layer_norm %x, %dims, %s, %s, %epsilon, %false : !torch.vtensor<[4,8],f32>, !torch.list<int>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>, !torch.float, !torch.bool -> !torch.vtensor<[4,8],f32>
  %p = torch.aten.mm %n, %w : !torch.vtensor<[4,8],f32>, !torch.vtensor<[8,8],f32> -> !torch.vtensor<[4,8],f32>
  return %p : !torch.vtensor<[4,8],f32>
}

// What a norm writes is narrow for a sum that norms alone read, too, and the sum is f32; one that is read otherwise wants f32 of the norm.
// CHECK-LABEL: func.func @layer_that_ends_in_a_norm
// CHECK: %[[N:.*]] = torch.aten.layer_norm {{.*}} -> !torch.vtensor<[4,8],bf16>
// CHECK: %[[NW:.*]] = torch.aten.to.dtype %[[N]], {{.*}} -> !torch.vtensor<[4,8],f32>
// CHECK: %[[P:.*]] = torch.aten.mm %[[N]], {{.*}} -> !torch.vtensor<[4,8],bf16>
// CHECK: %[[PW:.*]] = torch.aten.to.dtype %[[P]], {{.*}} -> !torch.vtensor<[4,8],f32>
// CHECK: %[[S:.*]] = torch.aten.add.Tensor %[[PW]], %[[NW]], {{.*}} -> !torch.vtensor<[4,8],f32>
// CHECK: %[[M:.*]] = torch.aten.layer_norm %[[S]], {{.*}} -> !torch.vtensor<[4,8],f32>
// CHECK: %[[Q:.*]] = torch.aten.mm {{.*}} -> !torch.vtensor<[4,8],bf16>
// CHECK: %[[QW:.*]] = torch.aten.to.dtype %[[Q]], {{.*}} -> !torch.vtensor<[4,8],f32>
// CHECK: torch.aten.add.Tensor %[[QW]], %[[M]], {{.*}} -> !torch.vtensor<[4,8],f32>
func.func @layer_that_ends_in_a_norm(%x: !torch.vtensor<[4,8],f32>, %s: !torch.vtensor<[8],f32> {hipdnn.constant = "s"},
                                     %w: !torch.vtensor<[8,8],f32> {hipdnn.constant = "w"}) -> !torch.vtensor<[4,8],f32> {
  %one = torch.constant.int 1
  %eight = torch.constant.int 8
  %dims = torch.prim.ListConstruct %eight : (!torch.int) -> !torch.list<int>
  %epsilon = torch.constant.float 1.000000e-05
  %false = torch.constant.bool false
  %n = torch.aten.layer_norm %x, %dims, %s, %s, %epsilon, %false : !torch.vtensor<[4,8],f32>, !torch.list<int>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>, !torch.float, !torch.bool -> !torch.vtensor<[4,8],f32>
  %p = torch.aten.mm %n, %w : !torch.vtensor<[4,8],f32>, !torch.vtensor<[8,8],f32> -> !torch.vtensor<[4,8],f32>
  %a = torch.aten.add.Tensor %p, %n, %one : !torch.vtensor<[4,8],f32>, !torch.vtensor<[4,8],f32>, !torch.int -> !torch.vtensor<[4,8],f32>
  %m = torch.aten.layer_norm %a, %dims, %s, %s, %epsilon, %false : !torch.vtensor<[4,8],f32>, !torch.list<int>, !torch.vtensor<[8],f32>, !torch.vtensor<[8],f32>, !torch.float, !torch.bool -> !torch.vtensor<[4,8],f32>
  %q = torch.aten.mm %m, %w : !torch.vtensor<[4,8],f32>, !torch.vtensor<[8,8],f32> -> !torch.vtensor<[4,8],f32>
  %y = torch.aten.add.Tensor %q, %m, %one : !torch.vtensor<[4,8],f32>, !torch.vtensor<[4,8],f32>, !torch.int -> !torch.vtensor<[4,8],f32>
  return %y : !torch.vtensor<[4,8],f32>
}

// Tensors in lists are cast too.
// CHECK-LABEL: func.func @concatenation
// CHECK-SAME: %[[X:.*]]: !torch.vtensor<[4,4],f32>
// CHECK: %[[R:.*]] = torch.aten.relu {{.*}} -> !torch.vtensor<[4,4],bf16>
// CHECK: %[[W:.*]] = torch.aten.to.dtype %[[R]], {{.*}} -> !torch.vtensor<[4,4],f32>
// CHECK: torch.prim.ListConstruct %[[W]], %[[X]]
// CHECK: torch.aten.cat {{.*}} -> !torch.vtensor<[8,4],f32>
func.func @concatenation(%x: !torch.vtensor<[4,4],f32>) -> !torch.vtensor<[8,4],f32> {
  %zero = torch.constant.int 0
  %p = torch.aten.mm %x, %x : !torch.vtensor<[4,4],f32>, !torch.vtensor<[4,4],f32> -> !torch.vtensor<[4,4],f32>
  %r = torch.aten.relu %p : !torch.vtensor<[4,4],f32> -> !torch.vtensor<[4,4],f32>
  %l = torch.prim.ListConstruct %r, %x : (!torch.vtensor<[4,4],f32>, !torch.vtensor<[4,4],f32>) -> !torch.list<vtensor<[4,4],f32>>
  %y = torch.aten.cat %l, %zero : !torch.list<vtensor<[4,4],f32>>, !torch.int -> !torch.vtensor<[8,4],f32>
  return %y : !torch.vtensor<[8,4],f32>
}

// A repeated value is cast in front of its repetition.
// CHECK-LABEL: func.func @repeated
// CHECK-SAME: %[[X:.*]]: !torch.vtensor<[2,4,8],f32>, %[[K:.*]]: !torch.vtensor<[1,8,4],f32>
// CHECK: %[[N:.*]] = torch.aten.to.dtype %[[K]], {{.*}} -> !torch.vtensor<[1,8,4],bf16>
// CHECK: %[[T:.*]] = torch.aten.tile %[[N]], {{.*}} -> !torch.vtensor<[2,8,4],bf16>
// CHECK: torch.aten.bmm {{.*}}, %[[T]]
func.func @repeated(%x: !torch.vtensor<[2,4,8],f32>, %k: !torch.vtensor<[1,8,4],f32>) -> !torch.vtensor<[2,4,4],f32> {
  %one = torch.constant.int 1
  %two = torch.constant.int 2
  %l = torch.prim.ListConstruct %two, %one, %one : (!torch.int, !torch.int, !torch.int) -> !torch.list<int>
  %t = torch.aten.tile %k, %l : !torch.vtensor<[1,8,4],f32>, !torch.list<int> -> !torch.vtensor<[2,8,4],f32>
  %y = torch.aten.bmm %x, %t : !torch.vtensor<[2,4,8],f32>, !torch.vtensor<[2,8,4],f32> -> !torch.vtensor<[2,4,4],f32>
  return %y : !torch.vtensor<[2,4,4],f32>
}
