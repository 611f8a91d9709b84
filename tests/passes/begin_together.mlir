// Tasks in lists whose rows come list by list: the first tasks of all CTAs begin when the last of them can.
// RUN: pkc-opt %s -p pk-attach-target,pk-plan-overlap,pk-stage-rows,pk-stage-remote-reads,pk-plan-fetch,pk-expand-fetch,pk-begin-together --split-input-file --verify-diagnostics | filecheck %s

// Of the lists from the first on that have tasks, the last that begins before each CTA has one; its last block of rows,
// and its last group of columns.
// CHECK-LABEL: pk.kernel @dispatch
// CHECK-SAME: %X_ready: !pk.signal<[E, P by 32, H by 2048]>
// CHECK: pk.role communicator {
// CHECK: pk.tasks (%e) in
// CHECK: pk.tasks (%[[G:.*]], %[[I:.*]]) in (%{{.*}}, %{{.*}}) {
// CHECK: %[[ROWS:.*]] = pk.load %rows[%e,
// CHECK: scf.for
// CHECK-NOT: pk.load %rows[
// CHECK: %[[TILE:.*]] = pk.gather %X rows %[[ROWS]][
// CHECK-NEXT: pk.store %[[TILE]], %X_fetched[%e,
// CHECK: pk.raise %X_ready at %{{.*}}[%e, %{{.*}}, %[[G]]] to
// CHECK: pk.role consumer attributes {derived} {
// CHECK: %[[EXPERTS:.*]] = pk.dim "E"
// CHECK: %[[CTAS:.*]] = pk.ctas consumer
// CHECK: %[[SOME:.*]] = arith.minsi %[[EXPERTS]],
// CHECK: %[[LAST:.*]], %{{.*}} = scf.for %[[L:.*]] = %{{.*}} to %[[SOME]] step %{{.*}} iter_args(%[[FOUND:.*]] = %{{.*}}, %[[PASSED:.*]] = %{{.*}}) -> (index, index) {
// CHECK: pk.read %count[%[[L]]]
// CHECK: %[[ANY:.*]] = arith.cmpi sgt, %[[TASKS:.*]], %
// CHECK-NEXT: %[[EARLY:.*]] = arith.cmpi slt, %[[PASSED]], %[[CTAS]]
// CHECK-NEXT: %[[TAKES:.*]] = arith.andi %[[ANY]], %[[EARLY]]
// CHECK-NEXT: %[[NOW:.*]] = arith.select %[[TAKES]], %[[L]], %[[FOUND]]
// CHECK-NEXT: %[[ALL:.*]] = arith.addi %[[PASSED]], %[[TASKS]]
// CHECK-NEXT: scf.yield %[[NOW]], %[[ALL]]
// CHECK: %[[THERE:.*]] = arith.cmpi sge, %[[LAST]],
// CHECK-NEXT: scf.if %[[THERE]] {
// CHECK: pk.wait %X_ready[%[[LAST]], %{{.*}}, %{{.*}}] for
// CHECK-NEXT: }
// CHECK-NEXT: pk.tasks (%e
// CHECK: pk.wait %X_ready[%e
// CHECK: pk.load %X_fetched[%e
pk.kernel @dispatch(%X: !pk.pgl<[T, H], bf16, shard 0> {pk.name = "X"}, %W: !pk.private<[E, H, N], bf16> {pk.name = "W"}, %rows: !pk.private<[E, P], i32> {pk.name = "rows"}, %count: !pk.private<[E], i32> {pk.name = "count"}, %Y: !pk.private<[E, P, N], f32> {pk.name = "Y"}) attributes {schedule = {overlap = "inter_sm"}} {
  %0 = pk.dim "E"
  pk.tasks (%e) in (%0) {
    %n = pk.read %count[%e] : !pk.private<[E], i32>
    %1 = pk.block_count <P by 32> to %n
    %2 = pk.block_count <N by 32>
    pk.tasks (%i, %j) in (%1, %2) {
      %p = pk.block[%i] to %n : !pk.block<P by 32>
      %c = pk.block[%j] : !pk.block<N by 32>
      %rows_1 = pk.load %rows[%e, %p : index, !pk.block<P by 32>] : !pk.private<[E, P], i32> -> !pk.tile<32xi32>
      %3 = pk.block_count <H by 16>
      %4 = arith.constant 0 : index
      %5 = arith.constant 1 : index
      %zero = pk.full 0.000000e+00 : f32 : !pk.tile<32x32xf32>
      %sum = scf.for %6 = %4 to %3 step %5 iter_args(%acc = %zero) -> (!pk.tile<32x32xf32>) {
        %k = pk.block[%6] : !pk.block<H by 16>
        %7 = pk.gather %X rows %rows_1[%k : !pk.block<H by 16>] : !pk.pgl<[T, H], bf16, shard 0>, !pk.tile<32xi32> -> !pk.tile<32x16xbf16>
        %8 = pk.load %W[%e, %k, %c : index, !pk.block<H by 16>, !pk.block<N by 32>] : !pk.private<[E, H, N], bf16> -> !pk.tile<16x32xbf16>
        %9 = pk.mma %7, %8, %acc : !pk.tile<32x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<32x32xf32>
        scf.yield %9 : !pk.tile<32x32xf32>
      }
      pk.store %sum, %Y[%e, %p, %c : index, !pk.block<P by 32>, !pk.block<N by 32>] : !pk.tile<32x32xf32>, !pk.private<[E, P, N], f32>
    }
  }
}

// -----

// Nothing is shared where nothing is multiplied: each task begins when its own rows have come.
// CHECK-LABEL: pk.kernel @copied
// CHECK-NOT: pk.ctas consumer
// CHECK: pk.wait %X_ready[%e
pk.kernel @copied(%X: !pk.pgl<[T, H], bf16, shard 0> {pk.name = "X"}, %rows: !pk.private<[E, P], i32> {pk.name = "rows"}, %count: !pk.private<[E], i32> {pk.name = "count"}, %Y: !pk.private<[E, P, H], bf16> {pk.name = "Y"}) attributes {schedule = {overlap = "inter_sm"}} {
  %0 = pk.dim "E"
  pk.tasks (%e) in (%0) {
    %n = pk.read %count[%e] : !pk.private<[E], i32>
    %1 = pk.block_count <P by 32> to %n
    pk.tasks (%i) in (%1) {
      %p = pk.block[%i] to %n : !pk.block<P by 32>
      %rows_1 = pk.load %rows[%e, %p : index, !pk.block<P by 32>] : !pk.private<[E, P], i32> -> !pk.tile<32xi32>
      %3 = pk.block_count <H by 16>
      %4 = arith.constant 0 : index
      %5 = arith.constant 1 : index
      scf.for %6 = %4 to %3 step %5 {
        %k = pk.block[%6] : !pk.block<H by 16>
        %7 = pk.gather %X rows %rows_1[%k : !pk.block<H by 16>] : !pk.pgl<[T, H], bf16, shard 0>, !pk.tile<32xi32> -> !pk.tile<32x16xbf16>
        pk.store %7, %Y[%e, %p, %k : index, !pk.block<P by 32>, !pk.block<H by 16>] : !pk.tile<32x16xbf16>, !pk.private<[E, P, H], bf16>
      }
    }
  }
}

// -----

// CHECK-LABEL: pk.kernel @two_indices
// CHECK-NOT: pk.ctas consumer
pk.kernel @two_indices(%X: !pk.pgl<[T, H], bf16, shard 0> {pk.name = "X"}, %W: !pk.private<[E, H, N], bf16> {pk.name = "W"}, %rows: !pk.private<[E, P], i32> {pk.name = "rows"}, %count: !pk.private<[E], i32> {pk.name = "count"}, %Y: !pk.private<[E, P, N], f32> {pk.name = "Y"}) attributes {schedule = {overlap = "inter_sm"}} {
  %0 = pk.dim "E"
  // expected-remark@+1 {{each task begins when its rows have come: lists have 2 indices, and it is not known which are the first ones}}
  pk.tasks (%e, %f) in (%0, %0) {
    %n = pk.read %count[%e] : !pk.private<[E], i32>
    %1 = pk.block_count <P by 32> to %n
    %2 = pk.block_count <N by 32>
    pk.tasks (%i, %j) in (%1, %2) {
      %p = pk.block[%i] to %n : !pk.block<P by 32>
      %c = pk.block[%j] : !pk.block<N by 32>
      %rows_1 = pk.load %rows[%e, %p : index, !pk.block<P by 32>] : !pk.private<[E, P], i32> -> !pk.tile<32xi32>
      %3 = pk.block_count <H by 16>
      %4 = arith.constant 0 : index
      %5 = arith.constant 1 : index
      %zero = pk.full 0.000000e+00 : f32 : !pk.tile<32x32xf32>
      %sum = scf.for %6 = %4 to %3 step %5 iter_args(%acc = %zero) -> (!pk.tile<32x32xf32>) {
        %k = pk.block[%6] : !pk.block<H by 16>
        %7 = pk.gather %X rows %rows_1[%k : !pk.block<H by 16>] : !pk.pgl<[T, H], bf16, shard 0>, !pk.tile<32xi32> -> !pk.tile<32x16xbf16>
        %8 = pk.load %W[%e, %k, %c : index, !pk.block<H by 16>, !pk.block<N by 32>] : !pk.private<[E, H, N], bf16> -> !pk.tile<16x32xbf16>
        %9 = pk.mma %7, %8, %acc : !pk.tile<32x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<32x32xf32>
        scf.yield %9 : !pk.tile<32x32xf32>
      }
      pk.store %sum, %Y[%f, %p, %c : index, !pk.block<P by 32>, !pk.block<N by 32>] : !pk.tile<32x32xf32>, !pk.private<[E, P, N], f32>
    }
  }
}
