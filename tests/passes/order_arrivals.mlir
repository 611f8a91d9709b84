// Lists of tasks whose rows tables name: the first lists begin with what needs no other rank's rows, which come meanwhile.
// RUN: pkc-opt %s -p pk-attach-target,pk-plan-overlap,pk-stage-rows,pk-order-arrivals --split-input-file --verify-diagnostics | filecheck %s

// In the last round all wait once, at the first list; in the one before it tasks wait if they name rows of other ranks.
// CHECK-LABEL: pk.kernel @dispatch
// CHECK-DAG: %[[EXPERTS:.*]] = pk.dim "E"
// CHECK-DAG: %[[RANKS:.*]] = pk.dim "ranks"
// CHECK: %[[LEADERS:.*]] = arith.minsi %[[EXPERTS]], %
// CHECK: %[[LISTS:.*]] = arith.addi %[[LEADERS]], %[[EXPERTS]] : index
// CHECK: pk.tasks (%list) in (%[[LISTS]]) {
// CHECK-NEXT: %[[FIRST:.*]] = arith.cmpi slt, %list, %[[LEADERS]] : index
// CHECK-NEXT: %[[LATER:.*]] = arith.subi %list, %[[LEADERS]] : index
// CHECK-NEXT: %e = arith.select %[[FIRST]], %list, %[[LATER]] : index
// CHECK: %[[BLOCKS:.*]] = pk.block_count <P by 32> to %
// CHECK: %[[SHARE:.*]] = arith.divsi %{{.*}}, %[[RANKS]] : index
// CHECK: %[[OWN:.*]] = arith.subi %{{.*}}, %[[SHARE]] : index
// CHECK: %[[LEADING:.*]] = scf.if %{{.*}} -> (index) {
// CHECK: pk.read %rows[%e,
// CHECK: pk.read %rows[%e,
// CHECK: pk.read %rows[%e,
// CHECK: pk.read %rows[%e,
// CHECK: %[[IF:.*]] = arith.select %{{.*}}, %[[OWN]], %
// CHECK-NEXT: scf.yield %[[IF]] : index
// CHECK-NEXT: } else {
// CHECK: %[[BEGIN:.*]] = arith.select %[[FIRST]], %{{.*}}, %[[LEADING]] : index
// CHECK-NEXT: %[[END:.*]] = arith.select %[[FIRST]], %[[LEADING]], %[[BLOCKS]] : index
// CHECK-NEXT: %[[SOME:.*]] = arith.subi %[[END]], %[[BEGIN]] : index
// CHECK-NEXT: %[[ONCE:.*]] = arith.cmpi eq, %list, %[[LEADERS]] : index
// CHECK-NEXT: scf.if %[[ONCE]] {
// CHECK-NEXT: pk.wait %X_ready[%{{.*}}] for %[[ALL:.*]] : !pk.signal<[1]>
// CHECK-NEXT: }
// CHECK-NEXT: pk.tasks (%[[I:.*]], %{{.*}}) in (%[[SOME]], %
// CHECK-NEXT: %[[NTH:.*]] = arith.addi %[[I]], %[[BEGIN]] : index
// CHECK-NEXT: %[[AT:.*]] = pk.rotate %[[NTH]] by %[[SHARE]] of %[[BLOCKS]]
// CHECK-NEXT: %{{.*}} = pk.block[%[[AT]]] to
// CHECK: %[[NAMED:.*]] = pk.load %rows[
// CHECK-NEXT: scf.if %[[FIRST]] {
// CHECK-NEXT: pk.wait %X_ready[%{{.*}}] rows %[[NAMED]] : !pk.tile<32xi32> of <T by 32> for %[[ALL]] : !pk.signal<[1]>
// CHECK-NEXT: }
// CHECK-NEXT: pk.load %rows[
// CHECK: pk.gather %X_fetched
pk.kernel @dispatch(%X: !pk.pgl<[T, H], bf16, shard 0> {pk.name = "X"}, %W: !pk.private<[E, H, N], bf16> {pk.name = "W"}, %rows: !pk.private<[E, P], i32> {pk.name = "rows"}, %count: !pk.private<[E], i32> {pk.name = "count"}, %Y: !pk.private<[E, P, N], f32> {pk.name = "Y"}) attributes {schedule = {overlap = "copy_engine"}} {
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

// Tasks that only copy rows have nothing to do meanwhile, and tasks that are no lists no round for each.
// CHECK-LABEL: pk.kernel @no_lists
// CHECK: pk.wait %X_ready[%{{.*}}] for %{{.*}} : !pk.signal<[1]>
// CHECK-NEXT: pk.tasks (%e, 
// CHECK-NOT: pk.wait
pk.kernel @no_lists(%X: !pk.pgl<[T, H], bf16, shard 0> {pk.name = "X"}, %rows: !pk.private<[E, P], i32> {pk.name = "rows"}, %Y: !pk.private<[E, P, H], bf16> {pk.name = "Y"}) attributes {schedule = {overlap = "copy_engine"}} {
  %0 = pk.dim "E"
  %1 = pk.block_count <P by 32>
  // expected-remark@+1 {{all tasks wait for the rows of other ranks: their tasks are no lists}}
  pk.tasks (%e, %i) in (%0, %1) {
    %p = pk.block[%i] : !pk.block<P by 32>
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

// -----

// CHECK-LABEL: pk.kernel @copies
// CHECK: pk.tasks (%e) in
// CHECK-NOT: pk.rotate %
pk.kernel @copies(%X: !pk.pgl<[T, H], bf16, shard 0> {pk.name = "X"}, %rows: !pk.private<[E, P], i32> {pk.name = "rows"}, %count: !pk.private<[E], i32> {pk.name = "count"}, %Y: !pk.private<[E, P, H], bf16> {pk.name = "Y"}) attributes {schedule = {overlap = "copy_engine"}} {
  %0 = pk.dim "E"
  // expected-remark@+1 {{all tasks wait for the rows of other ranks: without a matmul they take no longer than the link}}
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
