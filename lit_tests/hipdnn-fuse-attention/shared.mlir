// RUN: hipdnn-opt %s --hipdnn-fuse-attention --canonicalize --split-input-file | filecheck %s

// Keys and values repeated for groups of heads are shared, where attention is one op already.

// CHECK-LABEL: func.func @repeated
// CHECK:         torch.aten.scaled_dot_product_attention %arg0, %arg1, %arg2, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %true
// CHECK-NOT:     torch.aten.expand
!q = !torch.vtensor<[2,4,5,8],f32>
!kv = !torch.vtensor<[2,2,7,8],f32>
!one = !torch.vtensor<[2,2,1,7,8],f32>
!two = !torch.vtensor<[2,2,2,7,8],f32>
!full = !torch.vtensor<[2,4,7,8],f32>
!l = !torch.list<int>
!i = !torch.int
func.func @repeated(%q: !q, %k: !kv, %v: !kv) -> !q {
  %none = torch.constant.none
  %zero = torch.constant.float 0.000000e+00
  %false = torch.constant.bool false
  %2 = torch.constant.int 2
  %4 = torch.constant.int 4
  %7 = torch.constant.int 7
  %8 = torch.constant.int 8
  %wide = torch.prim.ListConstruct %2, %2, %2, %7, %8 : (!i, !i, !i, !i, !i) -> !l
  %flat = torch.prim.ListConstruct %2, %4, %7, %8 : (!i, !i, !i, !i) -> !l
  %a = torch.aten.unsqueeze %k, %2 : !kv, !i -> !one
  %b = torch.aten.expand %a, %wide, %false : !one, !l, !torch.bool -> !two
  %c = torch.aten.view %b, %flat : !two, !l -> !full
  %d = torch.aten.unsqueeze %v, %2 : !kv, !i -> !one
  %e = torch.aten.expand %d, %wide, %false : !one, !l, !torch.bool -> !two
  %f = torch.aten.view %e, %flat : !two, !l -> !full
  %y = torch.aten.scaled_dot_product_attention %q, %c, %f, %none, %zero, %false, %none, %false : !q, !full, !full, !torch.none, !torch.float, !torch.bool, !torch.none, !torch.bool -> !q
  return %y : !q
}

// -----

// Values that are repeated alone stay.

// CHECK-LABEL: func.func @alone
// CHECK:         torch.aten.expand
// CHECK:         torch.aten.scaled_dot_product_attention %arg0, %arg1, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %false
!q = !torch.vtensor<[2,4,5,8],f32>
!kv = !torch.vtensor<[2,2,7,8],f32>
!one = !torch.vtensor<[2,2,1,7,8],f32>
!two = !torch.vtensor<[2,2,2,7,8],f32>
!full = !torch.vtensor<[2,4,7,8],f32>
!l = !torch.list<int>
!i = !torch.int
func.func @alone(%q: !q, %k: !full, %v: !kv) -> !q {
  %none = torch.constant.none
  %zero = torch.constant.float 0.000000e+00
  %false = torch.constant.bool false
  %2 = torch.constant.int 2
  %4 = torch.constant.int 4
  %7 = torch.constant.int 7
  %8 = torch.constant.int 8
  %wide = torch.prim.ListConstruct %2, %2, %2, %7, %8 : (!i, !i, !i, !i, !i) -> !l
  %flat = torch.prim.ListConstruct %2, %4, %7, %8 : (!i, !i, !i, !i) -> !l
  %d = torch.aten.unsqueeze %v, %2 : !kv, !i -> !one
  %e = torch.aten.expand %d, %wide, %false : !one, !l, !torch.bool -> !two
  %f = torch.aten.view %e, %flat : !two, !l -> !full
  %y = torch.aten.scaled_dot_product_attention %q, %k, %f, %none, %zero, %false, %none, %false : !q, !full, !full, !torch.none, !torch.float, !torch.bool, !torch.none, !torch.bool -> !q
  return %y : !q
}
