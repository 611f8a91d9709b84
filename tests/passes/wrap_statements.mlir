// What a program does outside of tasks is a phase of one task.
// RUN: pkc-opt %s -p pk-wrap-statements --split-input-file --verify-diagnostics | filecheck %s

// What writes between two tasks gets tasks of its own; what tasks behind it need, they read themselves.
// CHECK-LABEL: pk.kernel @between
// CHECK: pk.tasks (%i) in (%rows) {
// CHECK-NOT: pk.load
// CHECK: pk.store %{{.*}}, %P
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT: pk.tasks (%{{.*}}) in (%[[ONE]]) {
// CHECK: %[[S:.*]] = pk.load %P[
// CHECK: %[[T:.*]] = pk.add %[[S]], %[[S]]
// CHECK: pk.store %[[T]], %L
// CHECK: pk.tasks (%j) in (%rows) {
// CHECK: %[[S:.*]] = pk.load %P[
// CHECK-NEXT: %[[T:.*]] = pk.add %[[S]], %[[S]]
// CHECK: pk.store %[[T]], %Q[%j
// CHECK-NOT: pk.load
pk.kernel @between(%P: !pk.private<[M], f32> {pk.name = "P"}, %L: !pk.private<[1], f32> {pk.name = "L"}, %Q: !pk.private<[M], f32> {pk.name = "Q"}) attributes {schedule = {}} {
  %rows = pk.dim "M"
  %zero = arith.constant 0 : index
  pk.tasks (%i) in (%rows) {
    %x = pk.full 1.0 : f32 : !pk.tile<f32>
    pk.store %x, %P[%i : index] : !pk.tile<f32>, !pk.private<[M], f32>
  }
  %s = pk.load %P[%zero : index] : !pk.private<[M], f32> -> !pk.tile<f32>
  %t = pk.add %s, %s : !pk.tile<f32>
  pk.store %t, %L[%zero : index] : !pk.tile<f32>, !pk.private<[1], f32>
  pk.tasks (%j) in (%rows) {
    pk.store %t, %Q[%j : index] : !pk.tile<f32>, !pk.private<[M], f32>
  }
}

// -----

// The tasks write what was read before them: nothing changes.
// CHECK-LABEL: pk.kernel @written
// CHECK: pk.store
// CHECK: %[[S:.*]] = pk.load %P[
// CHECK-NEXT: pk.tasks
// CHECK-NOT: pk.load
// CHECK: pk.store %[[S]], %P[
pk.kernel @written(%P: !pk.private<[M], f32> {pk.name = "P"}) attributes {schedule = {}} {
  %rows = pk.dim "M"
  %zero = arith.constant 0 : index
  pk.tasks (%i) in (%rows) {
    %x = pk.full 1.0 : f32 : !pk.tile<f32>
    pk.store %x, %P[%i : index] : !pk.tile<f32>, !pk.private<[M], f32>
  }
  %s = pk.load %P[%zero : index] : !pk.private<[M], f32> -> !pk.tile<f32>
  pk.tasks (%j) in (%rows) {
    pk.store %s, %P[%j : index] : !pk.tile<f32>, !pk.private<[M], f32>
  }
}

// -----

// They add to it, in place: nothing changes either.
// CHECK-LABEL: pk.kernel @added
// CHECK: pk.store
// CHECK: %[[S:.*]] = pk.load %C[
// CHECK-NEXT: pk.tasks
// CHECK-NOT: pk.load
// CHECK: pk.store_add %[[S]], %C[
pk.kernel @added(%P: !pk.private<[M], f32> {pk.name = "P"}, %C: !pk.pgl<[M], f32, symmetric> {pk.name = "C"}) attributes {schedule = {}} {
  %rows = pk.dim "M"
  %zero = arith.constant 0 : index
  pk.tasks (%i) in (%rows) {
    %x = pk.full 1.0 : f32 : !pk.tile<f32>
    pk.store %x, %P[%i : index] : !pk.tile<f32>, !pk.private<[M], f32>
  }
  %s = pk.load %C[%zero : index] : !pk.pgl<[M], f32, symmetric> -> !pk.tile<f32>
  pk.tasks (%j) in (%rows) {
    pk.store_add %s, %C[%j : index] : !pk.tile<f32>, !pk.pgl<[M], f32, symmetric>
  }
}

// -----

// How many tasks there are is read in front of the first ones, whichever they count.
// CHECK-LABEL: pk.kernel @counted
// CHECK: %[[A:.*]] = pk.read %L[%zero]
// CHECK: %[[B:.*]] = pk.read %L[%one]
// CHECK: %[[ROWS:.*]] = pk.block_count <M by 32> to %[[B]]
// CHECK-NEXT: pk.tasks (%i) in (%[[A]])
// CHECK: pk.tasks (%j) in (%[[ROWS]])
pk.kernel @counted(%L: !pk.private<[E], i32> {pk.name = "L"}, %P: !pk.private<[M], f32> {pk.name = "P"}, %Q: !pk.private<[M], f32> {pk.name = "Q"}) attributes {schedule = {}} {
  %zero = arith.constant 0 : index
  %a = pk.read %L[%zero] : !pk.private<[E], i32>
  pk.tasks (%i) in (%a) {
    %x = pk.full 1.0 : f32 : !pk.tile<f32>
    pk.store %x, %P[%i : index] : !pk.tile<f32>, !pk.private<[M], f32>
  }
  %one = arith.constant 1 : index
  %b = pk.read %L[%one] : !pk.private<[E], i32>
  %rows = pk.block_count <M by 32> to %b
  pk.tasks (%j) in (%rows) {
    %m = pk.block[%j] to %b : !pk.block<M by 32>
    %y = pk.full 1.0 : f32 : !pk.tile<32xf32>
    pk.store %y, %Q[%m : !pk.block<M by 32>] : !pk.tile<32xf32>, !pk.private<[M], f32>
  }
}

// -----

// What numbers tasks, and is written before them, one task around them reads.
// CHECK-LABEL: pk.kernel @numbered
// CHECK: pk.tasks (%i) in (%one) {
// CHECK: pk.store
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT: pk.tasks (%{{.*}}) in (%[[ONE]]) {
// CHECK-NEXT: %[[N:.*]] = pk.read %P[%zero] : !pk.private<[1], i32>
// CHECK-NEXT: pk.tasks (%j) in (%[[N]]) {
// CHECK-NOT: pk.read
pk.kernel @numbered(%P: !pk.private<[1], i32> {pk.name = "P"}, %Q: !pk.private<[M], i32> {pk.name = "Q"}) attributes {schedule = {}} {
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : index
  %x = pk.full 3 : i32 : !pk.tile<i32>
  pk.tasks (%i) in (%one) {
    pk.store %x, %P[%zero : index] : !pk.tile<i32>, !pk.private<[1], i32>
  }
  %n = pk.read %P[%zero] : !pk.private<[1], i32>
  pk.tasks (%j) in (%n) {
    pk.store %x, %Q[%j : index] : !pk.tile<i32>, !pk.private<[M], i32>
  }
}

// -----

// An element that is read before the tasks that write it is the old one for those behind them.
// CHECK-LABEL: pk.kernel @old
// CHECK: pk.read %P[%zero] {outside_tasks}
// CHECK: pk.tasks (%j) in (%n) {
pk.kernel @old(%P: !pk.private<[1], i32> {pk.name = "P"}, %Q: !pk.private<[M], i32> {pk.name = "Q"}) attributes {schedule = {}} {
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : index
  %x = pk.full 3 : i32 : !pk.tile<i32>
  %n = pk.read %P[%zero] : !pk.private<[1], i32>
  pk.tasks (%i) in (%one) {
    pk.store %x, %P[%zero : index] : !pk.tile<i32>, !pk.private<[1], i32>
  }
  pk.tasks (%j) in (%n) {
    pk.store %x, %Q[%j : index] : !pk.tile<i32>, !pk.private<[M], i32>
  }
}
