// RUN: not hipdnn-opt %s --no-such-pass 2>&1 | filecheck %s --check-prefix=PASS
// RUN: not hipdnn-opt %s --pass-pipeline="hipdnn-offload{engine=x}" 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not hipdnn-opt %t.missing --cse 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: hipdnn-opt --help | filecheck %s --check-prefix=HELP
// RUN: hipdnn-opt %s --pass-pipeline="builtin.module(func.func(canonicalize,cse),hipdnn-offload{target=host})" | filecheck %s
// RUN: hipdnn-opt - --hipdnn-offload=target=host < %s | filecheck %s
// RUN: hipdnn-opt %s --hipdnn-offload -o %t && filecheck %s < %t
// RUN: hipdnn-opt %s --mlir-print-debuginfo --hipdnn-offload | filecheck %s --check-prefix=LOC

// PASS: hipdnn-opt: error: unknown pass or option in 'no-such-pass'; see hipdnn-opt --help for the list
// OPTION: hipdnn-opt: error: pass hipdnn-offload has no option 'engine': expected one of: target
// MISSING: hipdnn-opt: error: {{.+}}.missing: cannot read: No such file or directory; check the path
// HELP-DAG: --hipdnn-offload target=host
// HELP-DAG: --hipdnn-offload-pipeline

// CHECK: hipdnn.graph ins(%arg0)

// The graph's location names the node it came from.

// LOC: #[[NODE:.+]] = loc("Relu_0")
// LOC: hipdnn.graph
// LOC: loc(#[[NODE]])
!x = !torch.vtensor<[2],f32>
func.func @main(%x: !x) -> !x {
  %y = torch.aten.relu %x : !x -> !x loc("Relu_0")
  return %y : !x
}
