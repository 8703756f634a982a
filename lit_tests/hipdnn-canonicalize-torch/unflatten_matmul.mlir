// RUN: hipdnn-opt %s --hipdnn-canonicalize-torch | filecheck %s

!x = !torch.vtensor<[2,3,4],f32>
!rows = !torch.vtensor<[6,4],f32>
!w = !torch.vtensor<[4,8],f32>
!b = !torch.vtensor<[8],f32>
!flat = !torch.vtensor<[6,8],f32>
!y = !torch.vtensor<[2,3,8],f32>
!l = !torch.list<int>

// Rows that were flattened for a matmul and a bias keep their dims.

// CHECK-LABEL: func.func @linear
// CHECK:         %[[Y:.+]] = torch.aten.matmul %arg0, %arg1 : !torch.vtensor<[2,3,4],f32>, !torch.vtensor<[4,8],f32>
// CHECK:         %[[Z:.+]] = torch.aten.add.Tensor %[[Y]], %arg2
// CHECK:         return %[[Z]]
func.func @linear(%x: !x, %w: !w, %b: !b) -> !y {
  %1 = torch.constant.int 1
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %4 = torch.constant.int 4
  %6 = torch.constant.int 6
  %8 = torch.constant.int 8
  %in = torch.prim.ListConstruct %6, %4 : (!torch.int, !torch.int) -> !l
  %out = torch.prim.ListConstruct %2, %3, %8 : (!torch.int, !torch.int, !torch.int) -> !l
  %rows = torch.aten.reshape %x, %in : !x, !l -> !rows
  %y = torch.aten.mm %rows, %w : !rows, !w -> !flat
  %z = torch.aten.add.Tensor %y, %b, %1 : !flat, !b, !torch.int -> !flat
  %back = torch.aten.reshape %z, %out : !flat, !l -> !y
  return %back : !y
}

// Columns that are reshaped, and rows that others read, stay.

// CHECK-LABEL: func.func @kept
// CHECK-COUNT-2: torch.aten.mm
// CHECK-NOT:     torch.aten.matmul
func.func @kept(%x: !rows, %w: !w) -> (!torch.vtensor<[6,2,4],f32>, !flat, !y) {
  %2 = torch.constant.int 2
  %3 = torch.constant.int 3
  %4 = torch.constant.int 4
  %6 = torch.constant.int 6
  %8 = torch.constant.int 8
  %split = torch.prim.ListConstruct %6, %2, %4 : (!torch.int, !torch.int, !torch.int) -> !l
  %out = torch.prim.ListConstruct %2, %3, %8 : (!torch.int, !torch.int, !torch.int) -> !l
  %y = torch.aten.mm %x, %w : !rows, !w -> !flat
  %heads = torch.aten.reshape %y, %split : !flat, !l -> !torch.vtensor<[6,2,4],f32>
  %z = torch.aten.mm %x, %w : !rows, !w -> !flat
  %more = torch.aten.reshape %z, %out : !flat, !l -> !y
  return %heads, %z, %more : !torch.vtensor<[6,2,4],f32>, !flat, !y
}
