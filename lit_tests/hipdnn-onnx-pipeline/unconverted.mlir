// RUN: not hipdnn-opt %s --hipdnn-onnx-pipeline 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not hipdnn-opt %s --pass-pipeline="hipdnn-rename-unconverted-ops{ops=Scan},hipdnn-onnx-pipeline" 2>&1 | filecheck %s --check-prefix=RENAMED

// An operator that torch-mlir does not convert stops its conversion; renamed, it reaches legalization, which names it.

// UNKNOWN: failed to legalize operation 'torch.operator'
// RENAMED: Scan
// RENAMED-SAME: [legalize]
!x = !torch.vtensor<[2],f32>
func.func @main(%x: !x) -> !x attributes {torch.onnx_meta.ir_version = 9 : si64, torch.onnx_meta.opset_version = 21 : si64} {
  %y = torch.operator "onnx.Scan"(%x) : (!x) -> !x
  return %y : !x
}
