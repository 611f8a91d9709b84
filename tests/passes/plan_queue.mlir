// Tasks that nothing orders go to whichever CTA is ready, where there are no MMAs or the schedule says so.
// RUN: pkc-opt %s -p pk-plan-queue --split-input-file --remarks | filecheck %s

// CHECK-LABEL: pk.kernel @rows
// CHECK-SAME: queue = 8 : i64
pk.kernel @rows(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {target = "sm_90a", derived} {
  pk.role loader warps 1 {
    %n = pk.dim "M"
    pk.tasks (%m) in (%n) attributes {per_cta} { }
  }
  pk.role storer warps 1 {
    %n = pk.dim "M"
    pk.tasks (%m) in (%n) attributes {per_cta} { }
  }
}

// -----

// What one role loads is the same for all tasks: it has none.
// CHECK-LABEL: pk.kernel @loaded_once
// CHECK-SAME: queue = 8 : i64
pk.kernel @loaded_once(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {target = "sm_90a", derived} {
  pk.role loader warps 1 {
    %zero = arith.constant 0 : index
  }
  pk.role storer warps 1 {
    %n = pk.dim "M"
    pk.tasks (%m) in (%n) attributes {per_cta} { }
  }
}

// -----

// CHECK-LABEL: pk.kernel @single
// CHECK-NOT: queue = 8
// CHECK-NOT: pk-plan-queue
pk.kernel @single(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {target = "sm_90a", derived} {
  pk.role loader warps 1 {
    %n = arith.constant 1 : index
    pk.tasks (%m) in (%n) attributes {per_cta} { }
  }
}

// -----

// CHECK-LABEL: pk.kernel @single_and_asked
// CHECK-NOT: queue = 8
// CHECK: pk.kernel: `queue=true` changes nothing: there is a single task [pk-plan-queue]
pk.kernel @single_and_asked(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {target = "sm_90a", derived, schedule = {queue = true}} {
  pk.role loader warps 1 {
    %n = arith.constant 1 : index
    pk.tasks (%m) in (%n) attributes {per_cta} { }
  }
}

// -----

// An author wrote these roles.
// CHECK-LABEL: pk.kernel @written
// CHECK-NOT: queue
pk.kernel @written(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {target = "sm_90a"} {
  pk.role loader warps 1 {
    %n = pk.dim "M"
    pk.tasks (%m) in (%n) attributes {per_cta} { }
  }
}

// -----

// CHECK-LABEL: pk.kernel @said
// CHECK-NOT: queue = 8
pk.kernel @said(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {target = "sm_90a", derived, schedule = {queue = false}} {
  pk.role loader warps 1 {
    %n = pk.dim "M"
    pk.tasks (%m) in (%n) attributes {per_cta} { }
  }
}

// -----

// CHECK-LABEL: pk.kernel @ordered
// CHECK-NOT: queue = 8
// CHECK-NOT: pk-plan-queue
pk.kernel @ordered(%X: !pk.private<[M], f32> {pk.name = "X"}, %s: !pk.signal<[1]> {pk.name = "s"}) attributes {target = "sm_90a", derived} {
  pk.role loader warps 1 {
    %n = pk.dim "M"
    pk.tasks (%m) in (%n) attributes {per_cta} { }
  }
}

// -----

// CHECK-LABEL: pk.kernel @ordered_and_asked
// CHECK-NOT: queue = 8
// CHECK: pk.kernel: `queue=true` changes nothing: signals order them [pk-plan-queue]
pk.kernel @ordered_and_asked(%X: !pk.private<[M], f32> {pk.name = "X"}, %s: !pk.signal<[1]> {pk.name = "s"}) attributes {target = "sm_90a", derived, schedule = {queue = true}} {
  pk.role loader warps 1 {
    %n = pk.dim "M"
    pk.tasks (%m) in (%n) attributes {per_cta} { }
  }
}

// -----

// CHECK-LABEL: pk.kernel @clustered
// CHECK-NOT: queue = 8
// CHECK: pk.kernel: each CTA has an equal share of the tasks: clusters of CTAs take them [pk-plan-queue]
pk.kernel @clustered(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {target = "sm_90a", derived, cluster = 4 : i64} {
  pk.role loader warps 1 {
    %n = pk.dim "M"
    pk.tasks (%m) in (%n) attributes {per_cta} { }
  }
}

// -----

// CHECK-LABEL: pk.kernel @phases
// CHECK-NOT: queue = 8
// CHECK: pk.kernel: each CTA has an equal share of the tasks: the kernel has several sets of them [pk-plan-queue]
pk.kernel @phases(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {target = "sm_90a", derived} {
  pk.role loader warps 1 {
    %n = pk.dim "M"
    pk.tasks (%m) in (%n) attributes {per_cta} { }
    pk.tasks (%m) in (%n) attributes {per_cta} { }
  }
}

// -----

// CHECK-LABEL: pk.kernel @full
// CHECK-NOT: queue = 8
// CHECK: pk.kernel: each CTA has an equal share of the tasks: shared memory has no room for their numbers [pk-plan-queue]
pk.kernel @full(%X: !pk.private<[M, 57824], f32> {pk.name = "X"}) attributes {target = "sm_90a", derived} {
  %0 = pk.channel "X" stages 1 : !pk.channel<!pk.tile<57824xf32>>
  pk.role loader warps 1 {
    %n = pk.dim "M"
    pk.tasks (%m) in (%n) attributes {per_cta} { }
  }
}

// -----

// CHECK-LABEL: pk.kernel @multiplies
// CHECK-NOT: queue = 8
pk.kernel @multiplies(%X: !pk.private<[M], f32> {pk.name = "X"}, %A: !pk.private<[64, 64], bf16> {pk.name = "A"}) attributes {target = "sm_90a", derived} {
  pk.role consumer warps 4 {
    %n = pk.dim "M"
    pk.tasks (%m) in (%n) attributes {per_cta} {
      %zero = arith.constant 0 : index
      %b = pk.block[%zero] : !pk.block<64 by 64>
      %a = pk.load %A[%b, %b : !pk.block<64 by 64>, !pk.block<64 by 64>] : !pk.private<[64, 64], bf16> -> !pk.tile<64x64xbf16>
      %acc = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
      %c = pk.mma %a, %a, %acc : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
    }
  }
}
