// Arrays of other ranks whose rows tables name: a buffer with a place for each row, filled block by block.
// RUN: pkc-opt %s -p pk-attach-target,pk-plan-overlap,pk-stage-rows --split-input-file --verify-diagnostics | filecheck %s

// One tile of rows and columns at a time, from this rank's on when tasks are ordered; a reader waits for all of them. Of a
// table that is computed nobody else knows which rows it names.
// CHECK-LABEL: pk.kernel @dispatch
// CHECK-SAME: %X_fetched: !pk.private<[T, H], bf16> {pk.name = "X.fetched", pk.scratch}
// CHECK-SAME: %X_ready: !pk.signal<[1]> {pk.name = "X.ready"}
// CHECK: %[[RANK:.*]] = pk.rank
// CHECK-NEXT: %[[ALL:.*]] = pk.block_count <T by 32> sharded
// CHECK-NEXT: %[[OWN:.*]] = pk.block_count <T by 32> of %[[RANK]] sharded
// CHECK: %[[OTHERS:.*]] = arith.subi %[[ALL]], %[[OWN]]
// CHECK-NEXT: %[[COLUMNS:.*]] = pk.block_count <H by 16>
// CHECK: %[[COUNT:.*]] = arith.muli {{.*}}, %[[COLUMNS]]
// CHECK-NEXT: pk.wait %X_ready[%{{.*}}] for %[[COUNT]] : !pk.signal<[1]>
// CHECK-NEXT: pk.tasks (%e, 
// CHECK: %[[ROWS:.*]] = pk.add %{{.*}}, %{{.*}} : !pk.tile<32xi32>
// CHECK-NOT: pk.wait
// CHECK: pk.gather %X_fetched local %X : !pk.pgl<[T, H], bf16, shard 0> rows %[[ROWS]][%k : !pk.block<H by 16>] : !pk.private<[T, H], bf16>
// CHECK: pk.role communicator {
// CHECK: %[[BLOCKS:.*]] = pk.block_count <T by 32> sharded
// CHECK: %[[COLUMNS:.*]] = pk.block_count <H by 16>
// CHECK: pk.tasks (%[[I:.*]], %[[J:.*]]) in (%[[BLOCKS]], %[[COLUMNS]]) attributes {in_order = 1 : i64, raster = 16 : i64} {
// CHECK: %[[OWNER:.*]] = pk.owner
// CHECK: %[[FOREIGN:.*]] = arith.cmpi ne, %[[OWNER]],
// CHECK: scf.if %[[FOREIGN]] {
// CHECK: %[[TILE:.*]] = pk.load %X[
// CHECK-NEXT: pk.store %[[TILE]], %X_fetched[
// CHECK: pk.signal %X_ready at %{{.*}}[%{{.*}}] by %{{.*}} : !pk.signal<[1]>
pk.kernel @dispatch(%X: !pk.pgl<[T, H], bf16, shard 0> {pk.name = "X"}, %rows: !pk.private<[E, P], i32> {pk.name = "rows"}, %Y: !pk.private<[E, P, H], bf16> {pk.name = "Y"}) attributes {schedule = {}} {
  %0 = pk.dim "E"
  %1 = pk.block_count <P by 32>
  %2 = pk.block_count <N by 32>
  pk.tasks (%e, %i, %j) in (%0, %1, %2) {
    %p = pk.block[%i] : !pk.block<P by 32>
    %named = pk.load %rows[%e, %p : index, !pk.block<P by 32>] : !pk.private<[E, P], i32> -> !pk.tile<32xi32>
    %rows_1 = pk.add %named, %named : !pk.tile<32xi32>
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

// Copy engines take whole rows, a block of them at a time, and raise the counter behind the last.
// CHECK-LABEL: pk.kernel @by_engines
// CHECK: pk.wait %X_ready[%{{.*}}] for %{{.*}} : !pk.signal<[1]>
// CHECK-NEXT: pk.tasks (%e, 
// CHECK: pk.role copy_engine {
// CHECK: pk.tasks (%{{[0-9]+}}) in
// CHECK: pk.copy %X[%[[ROWS:.*]] : !pk.block<T by 32>] along [0] to %X_fetched[%[[ROWS]] : !pk.block<T by 32>] along [0]
// CHECK: pk.raise %X_ready at
pk.kernel @by_engines(%X: !pk.pgl<[T, H], bf16, shard 0> {pk.name = "X"}, %rows: !pk.private<[E, P], i32> {pk.name = "rows"}, %Y: !pk.private<[E, P, H], bf16> {pk.name = "Y"}) attributes {schedule = {overlap = "copy_engine"}} {
  %0 = pk.dim "E"
  %1 = pk.block_count <P by 32>
  %2 = pk.block_count <N by 32>
  pk.tasks (%e, %i, %j) in (%0, %1, %2) {
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
