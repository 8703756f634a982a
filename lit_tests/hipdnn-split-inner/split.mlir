// RUN: hipdnn-opt %s --hipdnn-split-inner=target=sm_90 | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-split-inner=target=gfx942 | filecheck %s --check-prefix=WHOLE
// RUN: hipdnn-opt %s --hipdnn-split-inner | filecheck %s --check-prefix=WHOLE

!x = !torch.vtensor<[32,1,8192],f16>
!y = !torch.vtensor<[32,1,2048],f16>
!w = !torch.vtensor<[2048,8192],f16>
!few = !torch.vtensor<[8,1,8192],f16>
!few_y = !torch.vtensor<[8,1,2048],f16>
!wide = !torch.vtensor<[8192,8192],f16>
!wide_y = !torch.vtensor<[32,1,8192],f16>

// WHOLE-NOT: torch.aten.bmm

// CHECK-LABEL: func.func @parts
// CHECK:         %[[X:.+]] = torch.aten.view %arg0, %{{.+}} -> !torch.vtensor<[32,8,1024],f16>
// CHECK:         %[[LEFT:.+]] = torch.aten.permute %[[X]], %{{.+}} -> !torch.vtensor<[8,32,1024],f16>
// CHECK:         torch.aten.view %{{.+}}, %{{.+}} -> !torch.vtensor<[2048,8,1024],f16>
// CHECK:         %[[RIGHT:.+]] = torch.aten.permute %{{.+}}, %{{.+}} -> !torch.vtensor<[8,1024,2048],f16>
// CHECK:         torch.aten.bmm %[[LEFT]], %[[RIGHT]] : {{.+}} -> !torch.vtensor<[8,32,2048],f16>
// CHECK-COUNT-7: torch.aten.add.Tensor {{.+}} -> !torch.vtensor<[32,1,2048],f16>
// CHECK-NOT:     torch.aten.add.Tensor
// CHECK:         return
func.func @parts(%x: !x) -> !y {
  %w = torch.vtensor.literal(dense<1.0> : tensor<2048x8192xf16>) : !w
  %none = torch.constant.none
  %y = torch.aten.linear %x, %w, %none : !x, !w, !torch.none -> !y
  return %y : !y
}

// Few rows cost little to read again, many columns fill a GPU, and what is computed in each run may lie otherwise.

// CHECK-LABEL: func.func @whole
// CHECK-COUNT-3: torch.aten.linear
// CHECK-NOT:     torch.aten.bmm
func.func @whole(%x: !x, %few: !few, %given: !w) -> (!few_y, !wide_y, !y) {
  %w = torch.vtensor.literal(dense<1.0> : tensor<2048x8192xf16>) : !w
  %wide = torch.vtensor.literal(dense<1.0> : tensor<8192x8192xf16>) : !wide
  %none = torch.constant.none
  %0 = torch.aten.linear %few, %w, %none : !few, !w, !torch.none -> !few_y
  %1 = torch.aten.linear %x, %wide, %none : !x, !wide, !torch.none -> !wide_y
  %2 = torch.aten.linear %x, %given, %none : !x, !w, !torch.none -> !y
  return %0, %1, %2 : !few_y, !wide_y, !y
}
