// What a phase does to an array comes before what later ones do to it.
// RUN: pkc-opt %s -p pk-order-phases --split-input-file | filecheck %s

// Who stores the array signals at the end of its set, who loads it waits at the start, on all ranks; nobody else does.
// CHECK-LABEL: pk.kernel @two
// CHECK-SAME: %phase0_over: !pk.signal<[1]> {pk.name = "phase0.over"}
// CHECK: pk.role communicator attributes {phase = 1 : i64} {
// CHECK: %[[S:.*]] = pk.ctas storer
// CHECK-NEXT: %[[R:.*]] = pk.dim "ranks"
// CHECK-NEXT: %[[ALL:.*]] = arith.muli %[[S]], %[[R]]
// CHECK-NEXT: pk.wait %phase0_over[%{{.*}}] for %[[ALL]]
// CHECK: pk.load %Y
// CHECK-NOT: pk.signal
// CHECK: pk.role loader {
// CHECK-NOT: %phase0_over
// CHECK: pk.role storer {
// CHECK: pk.store {{.*}}, %Y
// CHECK: pk.signal_all %phase0_over
// CHECK-NOT: pk.wait
pk.kernel @two(%X: !pk.private<[M], f32> {pk.name = "X"}, %T: !pk.private<[M], i32> {pk.name = "T"}, %Y: !pk.pgl<[M], f32, replicate> {pk.name = "Y"}) attributes {derived} {
  %c = pk.channel "X" stages 1 : !pk.channel<!pk.tile<16xf32>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  pk.role communicator attributes {phase = 1} {
    %m = pk.block[%zero] : !pk.block<M by 16>
    %y = pk.load %Y[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, replicate> -> !pk.tile<16xf32>
  }
  pk.role loader {
    pk.tasks (%i) in (%one) attributes {per_cta, phase = 0} {
      %m = pk.block[%i] : !pk.block<M by 16>
      pk.acquire %c : !pk.channel<!pk.tile<16xf32>>
      %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      pk.commit %c, %x : !pk.channel<!pk.tile<16xf32>>, !pk.tile<16xf32>
    }
    %n = pk.read %T[%zero] : !pk.private<[M], i32>
    pk.tasks (%j) in (%n) attributes {per_cta, phase = 1} {
      %m = pk.block[%j] : !pk.block<M by 16>
    }
  }
  pk.role storer {
    pk.tasks (%i) in (%one) attributes {per_cta, phase = 0} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %x = pk.consume %c : !pk.channel<!pk.tile<16xf32>> -> !pk.tile<16xf32>
      pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, replicate>
      pk.release %c : !pk.channel<!pk.tile<16xf32>>
    }
  }
}

// -----

// An array that no other rank reaches is ordered on each rank by itself, whatever else the phases do. What stands before
// the second set, and reads the array, comes behind the wait; the wait of a later phase is not repeated.
// CHECK-LABEL: pk.kernel @local
// CHECK-SAME: %phase0_over: !pk.signal<[1]> {pk.name = "phase0.over"}
// CHECK-NOT: phase1.over
// CHECK: pk.role loader {
// CHECK: pk.tasks
// CHECK: %[[S:.*]] = pk.ctas storer
// CHECK-NEXT: pk.wait %phase0_over[%{{.*}}] for %[[S]]
// CHECK-NEXT: pk.read %T
// CHECK: pk.tasks
// CHECK-NOT: pk.wait
// CHECK: pk.role storer {
// CHECK: pk.store {{.*}}, %T
// CHECK: %[[R:.*]] = pk.rank
// CHECK-NEXT: pk.signal %phase0_over at %[[R]]
// CHECK-NOT: %phase0_over
// CHECK: pk.store {{.*}}, %Y
pk.kernel @local(%T: !pk.private<[M], i32> {pk.name = "T"}, %Y: !pk.pgl<[M], i32, replicate> {pk.name = "Y"}) attributes {derived} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  pk.role loader {
    pk.tasks (%i) in (%one) attributes {per_cta, phase = 0} {
    }
    %n = pk.read %T[%zero] : !pk.private<[M], i32>
    pk.tasks (%j) in (%n) attributes {per_cta, phase = 1} {
    }
    pk.tasks (%k) in (%n) attributes {per_cta, phase = 2} {
      %t = pk.read %T[%k] : !pk.private<[M], i32>
    }
  }
  pk.role storer {
    %x = pk.full 0 : i32 : !pk.tile<16xi32>
    pk.tasks (%i) in (%one) attributes {per_cta, phase = 0} {
      %m = pk.block[%i] : !pk.block<M by 16>
      pk.store %x, %T[%m : !pk.block<M by 16>] : !pk.tile<16xi32>, !pk.private<[M], i32>
    }
    pk.tasks (%k) in (%one) attributes {per_cta, phase = 2} {
      %m = pk.block[%k] : !pk.block<M by 16>
      pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xi32>, !pk.pgl<[M], i32, replicate>
    }
  }
}

// -----

// A role that uses an array in both phases waits for those that do, itself among them.
// CHECK-LABEL: pk.kernel @alone
// CHECK: pk.tasks
// CHECK: %[[R:.*]] = pk.rank
// CHECK-NEXT: pk.signal %phase0_over at %[[R]]
// CHECK: %[[C:.*]] = pk.ctas storer
// CHECK-NEXT: pk.wait %phase0_over[%{{.*}}] for %[[C]]
// CHECK: pk.tasks
pk.kernel @alone(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {derived} {
  %one = arith.constant 1 : index
  pk.role storer {
    %x = pk.full 0.0 : f32 : !pk.tile<16xf32>
    pk.tasks (%i) in (%one) attributes {per_cta, phase = 0} {
      %m = pk.block[%i] : !pk.block<M by 16>
      pk.store %x, %X[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
    }
    pk.tasks (%i) in (%one) attributes {per_cta, phase = 1} {
      %m = pk.block[%i] : !pk.block<M by 16>
      pk.store %x, %X[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
    }
  }
}

// -----

// A kernel of one phase stays as it is.
// CHECK-LABEL: pk.kernel @one
// CHECK-NOT: over
pk.kernel @one(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {derived} {
  %one = arith.constant 1 : index
  pk.role storer {
    %x = pk.full 0.0 : f32 : !pk.tile<16xf32>
    pk.tasks (%i) in (%one) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      pk.store %x, %X[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
    }
  }
}
