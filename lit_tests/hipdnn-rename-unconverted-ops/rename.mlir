// RUN: hipdnn-opt %s --pass-pipeline="hipdnn-rename-unconverted-ops{ops=Loop,Scan}" | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-rename-unconverted-ops | filecheck %s --check-prefix=NONE
// RUN: not hipdnn-opt %s --pass-pipeline="hipdnn-rename-unconverted-ops{operators=Loop}" 2>&1 | filecheck %s --check-prefix=OPTION

!x = !torch.vtensor<[3],f32>

// CHECK: torch.operator "hipdnn.onnx.Loop"
// CHECK: torch.operator "hipdnn.onnx.Scan"
// CHECK: torch.operator "onnx.Relu"
// CHECK: torch.operator "onnx.LoopLike"

// NONE-NOT: hipdnn.onnx

// OPTION: pass hipdnn-rename-unconverted-ops has no option 'operators': expected one of: ops
func.func @main(%x: !x) -> !x {
  %a = torch.operator "onnx.Loop"(%x) : (!x) -> !x
  %b = torch.operator "onnx.Scan"(%a) : (!x) -> !x
  %c = torch.operator "onnx.Relu"(%b) : (!x) -> !x
  %d = torch.operator "onnx.LoopLike"(%c) : (!x) -> !x
  return %d : !x
}
