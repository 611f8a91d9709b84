// What copy engines raise and await is counted from zero in each launch.
// RUN: pkc-opt %s -p pk-restart-counters --split-input-file --verify-diagnostics | filecheck %s

// Counters of this rank alone, and those that copy engines of others raise, are marked: the runtime clears them. Those
// by which copy engines meet are cleared behind the loop that awaits them. Counts in epochs become those of a launch.
// CHECK-LABEL: pk.kernel @sent
// CHECK-SAME: %computed: !pk.signal<[1]> {pk.name = "computed", pk.restarts}
// CHECK-SAME: %arrived: !pk.signal<[ranks]> {pk.name = "arrived", pk.restarts}
// CHECK-SAME: %began: !pk.signal<[ranks]> {pk.name = "began"}
// CHECK-SAME: %other: !pk.signal<[1]> {pk.name = "other"}
// CHECK: pk.role copy_engine {
// CHECK-NOT: pk.epoch
// CHECK: pk.raise %began at %{{.*}}[%{{.*}}] to %[[ONE:.*]] :
// CHECK: pk.wait %began[%{{.*}}] for %[[UNIT:.*]] :
// CHECK-NEXT: }
// CHECK-NEXT: pk.reset %began
// CHECK: pk.wait %computed[%{{.*}}] for %two
// CHECK: pk.raise %arrived at %{{.*}} to %two
// CHECK: pk.role storer {
// CHECK: pk.raise %computed at %{{.*}} to %two
// CHECK: pk.wait %arrived[%{{.*}}] for %two
// CHECK: pk.wait %other[%{{.*}}] for %e
pk.kernel @sent(%S: !pk.private<[M], f32> {pk.name = "S", pk.scratch}, %Y: !pk.pgl<[M], f32, replicate> {pk.name = "Y"}, %computed: !pk.signal<[1]> {pk.name = "computed"}, %arrived: !pk.signal<[ranks]> {pk.name = "arrived"}, %began: !pk.signal<[ranks]> {pk.name = "began"}, %other: !pk.signal<[1]> {pk.name = "other"}) attributes {derived} {
  pk.role copy_engine {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %r = pk.rank
    %ranks = pk.dim "ranks"
    %e = pk.epoch
    %n = arith.muli %two, %e : index
    scf.for %i = %zero to %ranks step %one {
      pk.raise %began at %i[%r] to %e : !pk.signal<[ranks]>
    }
    scf.for %i = %zero to %ranks step %one {
      pk.wait %began[%i] for %e : !pk.signal<[ranks]>
    }
    %m = pk.block[%zero] : !pk.block<M by 16>
    pk.wait %computed[%zero] for %n : !pk.signal<[1]>
    pk.copy %S[%m : !pk.block<M by 16>] along [0] to %Y[%m : !pk.block<M by 16>] along [0] : !pk.private<[M], f32> to !pk.pgl<[M], f32, replicate>
    pk.raise %arrived at %one[%r] to %n : !pk.signal<[ranks]>
  }
  pk.role storer {
    %zero = arith.constant 0 : index
    %two = arith.constant 2 : index
    %r = pk.rank
    %e = pk.epoch
    %n = arith.muli %two, %e : index
    pk.raise %computed at %r[%zero] to %n : !pk.signal<[1]>
    pk.wait %arrived[%zero] for %n : !pk.signal<[ranks]>
    pk.wait %other[%zero] for %e : !pk.signal<[1]>
  }
}

// -----

// SMs of another rank could signal before this rank has cleared the counter.
// CHECK: error[PK510]: cannot be compiled for sm_90a yet: a signal of SMs to other ranks by `entered`, which copy engines touch
pk.kernel @early(%S: !pk.private<[M], f32> {pk.name = "S"}, %entered: !pk.signal<[1]> {pk.name = "entered"}) attributes {derived} {
  pk.role copy_engine {
    %zero = arith.constant 0 : index
    %e = pk.epoch
    pk.wait %entered[%zero] for %e : !pk.signal<[1]>
  }
  pk.role loader {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    pk.signal_all %entered[%zero] by %one : !pk.signal<[1]>
  }
}

// -----

// CHECK: error[PK510]: cannot be compiled for sm_90a yet: a copy engine that counts launches or CTAs
pk.kernel @counting(%ready: !pk.signal<[8]> {pk.name = "ready"}) attributes {derived} {
  pk.role copy_engine {
    %one = arith.constant 1 : index
    %e = pk.epoch
    pk.wait %ready[%e] for %one : !pk.signal<[8]>
  }
}

// -----

// Without copy engines counters stay as they are.
// CHECK-LABEL: pk.kernel @none
// CHECK-NOT: pk.restarts
// CHECK: pk.wait %s[%{{.*}}] for %e
pk.kernel @none(%s: !pk.signal<[1]> {pk.name = "s"}) attributes {derived} {
  pk.role loader {
    %zero = arith.constant 0 : index
    %e = pk.epoch
    pk.wait %s[%zero] for %e : !pk.signal<[1]>
  }
}
