// RUN: hipdnn-opt %s --split-input-file --verify-diagnostics --canonicalize

// Both forms of a graph, an executable and its call.
!v = !torch.vtensor<[2],f32>
!w = !torch.vtensor<[3],f32>
func.func @valid(%x: !v, %a: memref<2xf32>, %b: memref<2xf32, strided<[?], offset: ?>>) -> !v {
  %y = hipdnn.graph ins(%x) ({
  ^bb0(%v: !v):
    %r = torch.aten.relu %v : !v -> !v
    hipdnn.yield %r : !v
  }) : (!v) -> !v
  hipdnn.graph ins(%b) outs(%a) ({
  ^bb0(%v: !v):
    %r = torch.aten.relu %v : !v -> !v
    hipdnn.yield %r : !v
  }) : (memref<2xf32, strided<[?], offset: ?>>, memref<2xf32>) -> ()
  hipdnn.execute @g ins(%b) outs(%a) : (memref<2xf32, strided<[?], offset: ?>>, memref<2xf32>) -> ()
  return %y : !v
}
"hipdnn.executable"() {sym_name = "g", summary = "relu", engine = "E", operands_json = "[]", descriptors = "[]"} : () -> ()

// -----

!v = !torch.vtensor<[2],f32>
!w = !torch.vtensor<[3],f32>
func.func @neither_form(%x: !v) {
  // expected-error@+1 {{'hipdnn.graph' op expects either results (tensor form) or outs (buffer form)}}
  hipdnn.graph ins(%x) ({
  ^bb0(%v: !v):
    hipdnn.yield
  }) : (!v) -> ()
  return
}

// -----

!v = !torch.vtensor<[2],f32>
!w = !torch.vtensor<[3],f32>
func.func @both_forms(%x: memref<2xf32>) -> !v {
  // expected-error@+1 {{'hipdnn.graph' op expects either results (tensor form) or outs (buffer form)}}
  %y = hipdnn.graph ins(%x) outs(%x) ({
  ^bb0(%v: !v):
    hipdnn.yield %v : !v
  }) : (memref<2xf32>, memref<2xf32>) -> !v
  return %y : !v
}

// -----

!v = !torch.vtensor<[2],f32>
!w = !torch.vtensor<[3],f32>
func.func @argument_count(%x: !v) -> !v {
  // expected-error@+1 {{'hipdnn.graph' op has 1 ins but its body takes 2 arguments}}
  %y = hipdnn.graph ins(%x) ({
  ^bb0(%v: !v, %u: !v):
    hipdnn.yield %v : !v
  }) : (!v) -> !v
  return %y : !v
}

// -----

!v = !torch.vtensor<[2],f32>
!w = !torch.vtensor<[3],f32>
func.func @argument_type(%x: !v) -> !w {
  // expected-error@+1 {{'hipdnn.graph' op ins #0 is !torch.vtensor<[2],f32>, its body expects !torch.vtensor<[3],f32>}}
  %y = hipdnn.graph ins(%x) ({
  ^bb0(%v: !w):
    hipdnn.yield %v : !w
  }) : (!v) -> !w
  return %y : !w
}

// -----

// Buffers store si8 and ui8 alike, but not other widths.
!v = !torch.vtensor<[2],f32>
!w = !torch.vtensor<[3],f32>
func.func @buffer_type(%x: memref<2xi8>, %y: memref<2xi8>, %z: memref<2xf16>) {
  hipdnn.graph ins(%x) outs(%y) ({
  ^bb0(%v: !torch.vtensor<[2],ui8>):
    hipdnn.yield %v : !torch.vtensor<[2],ui8>
  }) : (memref<2xi8>, memref<2xi8>) -> ()
  // expected-error@+1 {{'hipdnn.graph' op yields !torch.vtensor<[2],ui8> as #0, expected memref<2xf16>}}
  hipdnn.graph ins(%x) outs(%z) ({
  ^bb0(%v: !torch.vtensor<[2],ui8>):
    hipdnn.yield %v : !torch.vtensor<[2],ui8>
  }) : (memref<2xi8>, memref<2xf16>) -> ()
  return
}

// -----

!v = !torch.vtensor<[2],f32>
!w = !torch.vtensor<[3],f32>
func.func @yield_count(%x: !v) -> !v {
  // expected-error@+1 {{'hipdnn.graph' op yields 0 values, expected 1}}
  %y = hipdnn.graph ins(%x) ({
  ^bb0(%v: !v):
    hipdnn.yield
  }) : (!v) -> !v
  return %y : !v
}

// -----

!v = !torch.vtensor<[2],f32>
!w = !torch.vtensor<[3],f32>
func.func @yield_type(%x: !v) -> !w {
  // expected-error@+1 {{'hipdnn.graph' op yields !torch.vtensor<[2],f32> as #0, expected !torch.vtensor<[3],f32>}}
  %y = hipdnn.graph ins(%x) ({
  ^bb0(%v: !v):
    hipdnn.yield %v : !v
  }) : (!v) -> !w
  return %y : !w
}

// -----

// A graph's body sees nothing from outside.
!v = !torch.vtensor<[2],f32>
!w = !torch.vtensor<[3],f32>
func.func @isolated(%x: !v, %z: !v) -> !v {
  // expected-error@+3 {{using value defined outside the region}}
  %y = hipdnn.graph ins(%x) ({
  ^bb0(%v: !v):
    %r = torch.aten.mul.Tensor %v, %z : !v, !v -> !v
    hipdnn.yield %r : !v
  }) : (!v) -> !v
  return %y : !v
}

// -----

!v = !torch.vtensor<[2],f32>
!w = !torch.vtensor<[3],f32>
// expected-error@+1 {{'hipdnn.executable' op attribute "descriptors" is expected but not provided}}
"hipdnn.executable"() {sym_name = "g", summary = "relu", engine = "E", operands_json = "[]"} : () -> ()

// -----

!v = !torch.vtensor<[2],f32>
!w = !torch.vtensor<[3],f32>
func.func @call(%a: memref<2xf32>) {
  // expected-error@+1 {{expected base attribute 'builtin.symbol_ref' but got 'builtin.string'}}
  hipdnn.execute ins(%a) outs(%a) {executable = "g"} : (memref<2xf32>, memref<2xf32>) -> ()
  return
}
