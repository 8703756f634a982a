// RUN: hipdnn-opt %s --hipdnn-convert-precision=precision=f16 | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-convert-precision | filecheck %s --check-prefixes=MODEL
// RUN: not hipdnn-opt %s --hipdnn-convert-precision=precision=f8 2>&1 | filecheck %s --check-prefixes=ERROR

// MODEL-NOT: f16
// ERROR: unknown precision 'f8': expected one of model, tf32, f16, bf16

// A norm that something else reads in f32 stays f32, as do softmax and what follows them.
// CHECK-LABEL: func.func @softmax
// CHECK: %[[S:.*]] = torch.aten.softmax.int {{.*}} -> !torch.vtensor<[4,8],f32>
// CHECK: torch.aten.mul.Tensor %[[S]], %[[S]] : {{.*}} -> !torch.vtensor<[4,8],f32>
func.func @softmax(%x: !torch.vtensor<[4,8],f32>) -> !torch.vtensor<[4,8],f32> {
  %one = torch.constant.int 1
  %none = torch.constant.none
  %s = torch.aten.softmax.int %x, %one, %none : !torch.vtensor<[4,8],f32>, !torch.int, !torch.none -> !torch.vtensor<[4,8],f32>
  %y = torch.aten.mul.Tensor %s, %s : !torch.vtensor<[4,8],f32>, !torch.vtensor<[4,8],f32> -> !torch.vtensor<[4,8],f32>
  return %y : !torch.vtensor<[4,8],f32>
}

// A mask that is added keeps its type: it may hold the least f32.
// CHECK-LABEL: func.func @attention
// CHECK-SAME: %[[Q:.*]]: !torch.vtensor<[1,2,4,8],f32>, %[[M:.*]]: !torch.vtensor<[1,1,4,4],f32>
// CHECK: torch.aten.scaled_dot_product_attention %[[QN:.*]], %[[QN]], %[[QN]], %[[M]], {{.*}} -> !torch.vtensor<[1,2,4,8],f16>
func.func @attention(%q: !torch.vtensor<[1,2,4,8],f32>, %m: !torch.vtensor<[1,1,4,4],f32>) -> !torch.vtensor<[1,2,4,8],f32> {
  %zero = torch.constant.float 0.0
  %false = torch.constant.bool false
  %none = torch.constant.none
  %y = torch.aten.scaled_dot_product_attention %q, %q, %q, %m, %zero, %false, %none, %false : !torch.vtensor<[1,2,4,8],f32>, !torch.vtensor<[1,2,4,8],f32>, !torch.vtensor<[1,2,4,8],f32>, !torch.vtensor<[1,1,4,4],f32>, !torch.float, !torch.bool, !torch.none, !torch.bool -> !torch.vtensor<[1,2,4,8],f32>
  return %y : !torch.vtensor<[1,2,4,8],f32>
}

// Finite numbers stay finite in the narrow type, whose range they get.
// CHECK-LABEL: func.func @number
// CHECK: torch.vtensor.literal(dense<-6.550400e+04> : tensor<f32>)
func.func @number(%x: !torch.vtensor<[4,4],f32>) -> !torch.vtensor<[4,4],f32> {
  %least = torch.vtensor.literal(dense<-3.40282347E+38> : tensor<f32>) : !torch.vtensor<[],f32>
  %p = torch.aten.mm %x, %x : !torch.vtensor<[4,4],f32>, !torch.vtensor<[4,4],f32> -> !torch.vtensor<[4,4],f32>
  %y = torch.aten.maximum %p, %least : !torch.vtensor<[4,4],f32>, !torch.vtensor<[],f32> -> !torch.vtensor<[4,4],f32>
  return %y : !torch.vtensor<[4,4],f32>
}

// Other types are no concern of it.
// CHECK-LABEL: func.func @double
// CHECK-NOT: to.dtype
// CHECK: return
func.func @double(%x: !torch.vtensor<[4,4],f64>, %i: !torch.vtensor<[4],si64>) -> (!torch.vtensor<[4,4],f64>, !torch.vtensor<[4],si64>) {
  %one = torch.constant.int 1
  %p = torch.aten.mm %x, %x : !torch.vtensor<[4,4],f64>, !torch.vtensor<[4,4],f64> -> !torch.vtensor<[4,4],f64>
  %j = torch.aten.add.Scalar %i, %one, %one : !torch.vtensor<[4],si64>, !torch.int, !torch.int -> !torch.vtensor<[4],si64>
  return %p, %j : !torch.vtensor<[4,4],f64>, !torch.vtensor<[4],si64>
}
