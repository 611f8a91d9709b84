// Sums into rows that a table names: slots, the inverse of the table, and sums of what it lists.
// RUN: pkc-opt %s -p pk-order-scatters --split-input-file | filecheck %s

// Entries that no task visits name no row; blocks of the table are whole, and columns do not matter to it.
// CHECK-LABEL: pk.kernel @scattered
// CHECK-SAME: %O_slots: !pk.pgl<[E, P, N], f32, symmetric> {pk.name = "O.slots", pk.scratch}
// CHECK-SAME: %O_named: !pk.pgl<[ranks, E, P], i32, replicate> {pk.name = "O.named", pk.scratch}
// CHECK-SAME: %O_bounds: !pk.pgl<[T, 10], i32, shard 0> {pk.name = "O.bounds", pk.scratch}
// CHECK-SAME: %O_order: !pk.private<[ranks, E, P], i32> {pk.name = "O.order", pk.scratch}
// CHECK: %[[E:.*]] = pk.dim "E"
// CHECK: %[[P:.*]] = pk.block_count <P by 8>
// CHECK: pk.tasks (%[[KEY:.*]], %[[I:.*]]) in (%{{.*}}, %[[P]])
// CHECK: %[[BLOCK:.*]] = pk.block[%[[I]]] : !pk.block<P by 8>
// CHECK: %[[ROWS:.*]] = pk.load %rows[%[[KEY]], %[[BLOCK]]
// CHECK: %[[STOP:.*]] = pk.read %count[%[[KEY]]]
// CHECK: %[[IN:.*]] = pk.compare lt
// CHECK: %[[NONE:.*]] = pk.full -1 : i32
// CHECK: %[[VISITED:.*]] = pk.select %[[IN]], %[[ROWS]], %[[NONE]]
// CHECK: %[[RANK:.*]] = pk.rank
// CHECK: pk.store %[[VISITED]], %O_named[%[[RANK]], %[[KEY]], %[[BLOCK]]
// CHECK: pk.tasks (%e) in
// CHECK: %p = pk.block[%{{.*}}] to
// CHECK: pk.store %{{.*}}, %O_slots[%e, %p, %n
// CHECK: pk.block_count <T by 64> of %{{.*}}
// CHECK: pk.tasks
// CHECK: %[[T:.*]] = pk.block
// CHECK: pk.invert %O_named of %O[%[[T]]] to %O_bounds, %O_order
// CHECK: pk.block_count <T by 32> of %{{.*}}
// CHECK: pk.block_count <N by 16>
// CHECK: pk.tasks
// CHECK: pk.sum_rows %O_slots by %O_bounds, %O_order to %O[%{{.*}}, %{{.*}} : !pk.block<T by 32>, !pk.block<N by 16>]
// CHECK-NOT: scatter_accumulate
pk.kernel @scattered(%Y: !pk.private<[E, P, N], f32> {pk.name = "Y"}, %rows: !pk.private<[E, P], i32> {pk.name = "rows"}, %count: !pk.private<[E], i32> {pk.name = "count"}, %O: !pk.pgl<[T, N], f32, shard 0> {pk.name = "O"}) {
  %0 = pk.dim "E"
  pk.tasks (%e) in (%0) {
    %1 = pk.read %count[%e] : !pk.private<[E], i32>
    %2 = pk.block_count <P by 8> to %1
    %3 = pk.block_count <N by 16>
    pk.tasks (%4, %5) in (%2, %3) {
      %p = pk.block[%4] to %1 : !pk.block<P by 8>
      %n = pk.block[%5] : !pk.block<N by 16>
      %6 = pk.load %rows[%e, %p : index, !pk.block<P by 8>] : !pk.private<[E, P], i32> -> !pk.tile<8xi32>
      %7 = pk.load %Y[%e, %p, %n : index, !pk.block<P by 8>, !pk.block<N by 16>] : !pk.private<[E, P, N], f32> -> !pk.tile<8x16xf32>
      pk.scatter_accumulate %7, %O rows %6[%n : !pk.block<N by 16>] : !pk.tile<8x16xf32>, !pk.pgl<[T, N], f32, shard 0>, !pk.tile<8xi32>
    }
  }
}

// -----

// Ranks share the columns if those are sharded: each lists all rows, and sums its columns of them. A rank without rows
// has a task, too, which waits for what the others say.
// CHECK-LABEL: pk.kernel @columns
// CHECK-SAME: %O_bounds: !pk.private<[T, 10], i32>
// CHECK: %[[ROWS:.*]] = pk.block_count <T by 64>
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1
// CHECK-NEXT: %[[SOME:.*]] = arith.maxsi %[[ROWS]], %[[ONE]]
// CHECK-NEXT: pk.tasks (%{{.*}}) in (%[[SOME]])
// CHECK: pk.block_count <T by 32>
// CHECK: pk.block_count <N by 16> of %{{.*}}
pk.kernel @columns(%Y: !pk.private<[P, N], f32> {pk.name = "Y"}, %rows: !pk.private<[P], i32> {pk.name = "rows"}, %O: !pk.pgl<[T, N], f32, shard 1> {pk.name = "O"}) {
  %0 = pk.block_count <P by 8>
  %1 = pk.block_count <N by 16> sharded
  pk.tasks (%2, %3) in (%0, %1) {
    %p = pk.block[%2] : !pk.block<P by 8>
    %n = pk.block[%3] sharded : !pk.block<N by 16>
    %4 = pk.load %rows[%p : !pk.block<P by 8>] : !pk.private<[P], i32> -> !pk.tile<8xi32>
    %5 = pk.load %Y[%p, %n : !pk.block<P by 8>, !pk.block<N by 16>] : !pk.private<[P, N], f32> -> !pk.tile<8x16xf32>
    pk.scatter_accumulate %5, %O rows %4[%n : !pk.block<N by 16>] : !pk.tile<8x16xf32>, !pk.pgl<[T, N], f32, shard 1>, !pk.tile<8xi32>
  }
}

// -----

// In any order rows are added where they go.
// CHECK-LABEL: pk.kernel @anyhow
// CHECK: pk.scatter_accumulate
// CHECK-NOT: unordered
pk.kernel @anyhow(%Y: !pk.private<[P, N], f32> {pk.name = "Y"}, %rows: !pk.private<[P], i32> {pk.name = "rows"}, %O: !pk.pgl<[T, N], f32, shard 0> {pk.name = "O"}) attributes {schedule = {deterministic = false}} {
  %0 = pk.block_count <P by 8>
  %1 = pk.block_count <N by 16>
  pk.tasks (%2, %3) in (%0, %1) {
    %p = pk.block[%2] : !pk.block<P by 8>
    %n = pk.block[%3] : !pk.block<N by 16>
    %4 = pk.load %rows[%p : !pk.block<P by 8>] : !pk.private<[P], i32> -> !pk.tile<8xi32>
    %5 = pk.load %Y[%p, %n : !pk.block<P by 8>, !pk.block<N by 16>] : !pk.private<[P, N], f32> -> !pk.tile<8x16xf32>
    pk.scatter_accumulate %5, %O rows %4[%n : !pk.block<N by 16>] : !pk.tile<8x16xf32>, !pk.pgl<[T, N], f32, shard 0>, !pk.tile<8xi32>
  }
}

// -----

// A row that one element names is an entry of a table for each task; beside it, rows of a block have their positions.
// CHECK-LABEL: pk.kernel @named
// CHECK-SAME: %O_slots: !pk.pgl<[2, M, 1, N], f32, symmetric>
// CHECK-NOT: pk.accumulate
// CHECK: pk.broadcast %x axes [1] : !pk.tile<16xf32> -> !pk.tile<1x16xf32>
// CHECK-NOT: pk.accumulate
// CHECK: pk.sum_rows
pk.kernel @named(%X: !pk.private<[M, N], f32> {pk.name = "X"}, %rows: !pk.private<[M], i32> {pk.name = "rows"}, %O: !pk.pgl<[T, N], f32, replicate> {pk.name = "O"}) {
  %0 = pk.dim "M"
  %1 = pk.block_count <N by 16>
  pk.tasks (%m, %2) in (%0, %1) {
    %n = pk.block[%2] : !pk.block<N by 16>
    %r = pk.read %rows[%m] : !pk.private<[M], i32>
    %x = pk.load %X[%m, %n : index, !pk.block<N by 16>] : !pk.private<[M, N], f32> -> !pk.tile<16xf32>
    pk.accumulate %x, %O[%r, %n : index, !pk.block<N by 16>] : !pk.tile<16xf32>, !pk.pgl<[T, N], f32, replicate>
    pk.accumulate %x, %O[%r, %n : index, !pk.block<N by 16>] : !pk.tile<16xf32>, !pk.pgl<[T, N], f32, replicate>
  }
}
