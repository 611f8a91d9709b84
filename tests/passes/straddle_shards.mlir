// Blocks of tasks that straddle the ranks' shards, if the schedule says so.
// RUN: pkc-opt %s -p pk-plan-overlap,pk-straddle-shards --split-input-file --verify-diagnostics | filecheck %s

// What tasks go through.
// CHECK-LABEL: pk.kernel @across
// CHECK: %[[ROWS:.*]] = pk.block_count <M by 16>{{$}}
// CHECK: pk.tasks (%[[I:.*]], %{{.*}}) in (%[[ROWS]],
// CHECK: %m = pk.block[%[[I]]] : !pk.block<M by 16>
pk.kernel @across(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) attributes {schedule = {straddle = true}} {
  %0 = pk.block_count <M by 16> sharded
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] sharded : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %4 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.private<[M, N], bf16> -> !pk.tile<16x32xbf16>
    pk.accumulate %4, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.pgl<[M, N], bf16, shard 0>
  }
}

// -----

// Unless it does, they stay.
// CHECK-LABEL: pk.kernel @along
// CHECK: pk.block_count <M by 16> sharded
// CHECK: pk.block[%{{.*}}] sharded
pk.kernel @along(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) attributes {schedule = {straddle = false}} {
  %0 = pk.block_count <M by 16> sharded
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] sharded : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %4 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.private<[M, N], bf16> -> !pk.tile<16x32xbf16>
    pk.accumulate %4, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.pgl<[M, N], bf16, shard 0>
  }
}

// -----

// What an author wrote as roles stays as it is.
// CHECK-LABEL: pk.kernel @written
// CHECK: pk.block[%{{.*}}] sharded
pk.kernel @written(%C: !pk.pgl<[M], f32, shard 0> {pk.name = "C"}) attributes {schedule = {straddle = true}} {
  pk.role storer {
    %0 = pk.block_count <M by 16> sharded
    pk.tasks (%2) in (%0) {
      %m = pk.block[%2] sharded : !pk.block<M by 16>
      %4 = pk.full 0.0 : f32 : !pk.tile<16xf32>
      pk.store %4, %C[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, shard 0>
    }
  }
}

// -----

// Loops are not changed: what they sum up would be added in another order.
// CHECK-LABEL: pk.kernel @loops
// CHECK: %[[ROWS:.*]] = pk.block_count <M by 16> sharded
// CHECK: %[[ALL:.*]] = pk.block_count <M by 16>{{$}}
// CHECK-NEXT: pk.tasks (%{{.*}}) in (%[[ALL]])
// CHECK: pk.block[%{{.*}}] : !pk.block<M by 16>
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[ROWS]]
// CHECK-NEXT: pk.block[%{{.*}}] sharded : !pk.block<M by 16>
pk.kernel @loops(%X: !pk.pgl<[M, M], f32, shard 1> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) attributes {schedule = {straddle = true}} {
  %0 = pk.block_count <M by 16> sharded
  pk.tasks (%1) in (%0) {
    %m = pk.block[%1] sharded : !pk.block<M by 16>
    %2 = arith.constant 0 : index
    %3 = arith.constant 1 : index
    %4 = pk.full 0.0 : f32 : !pk.tile<16xf32>
    %5 = scf.for %6 = %2 to %0 step %3 iter_args(%7 = %4) -> (!pk.tile<16xf32>) {
      %k = pk.block[%6] sharded : !pk.block<M by 16>
      %8 = pk.load %X[%m, %k : !pk.block<M by 16>, !pk.block<M by 16>] : !pk.pgl<[M, M], f32, shard 1> -> !pk.tile<16x16xf32>
      %9 = pk.row_sum %8 : !pk.tile<16x16xf32> -> !pk.tile<16xf32>
      %10 = pk.add %7, %9 : !pk.tile<16xf32>
      scf.yield %10 : !pk.tile<16xf32>
    }
    pk.store %5, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
  }
}

// -----

// Positions in zigzag order are known for blocks of one shard, so these follow the shards.
// CHECK-LABEL: pk.kernel @folded
// CHECK: pk.block_count <M by 16> sharded
// CHECK: pk.block[%{{.*}}] sharded
pk.kernel @folded(%C: !pk.pgl<[M], i32, shard 0 zigzag> {pk.name = "C"}) attributes {schedule = {straddle = true}} {
  %0 = pk.block_count <M by 16> sharded
  pk.tasks (%1) in (%0) {
    %m = pk.block[%1] sharded : !pk.block<M by 16>
    %2 = pk.zigzag_position %m : !pk.block<M by 16>
    %3 = pk.zigzag_position last %m : !pk.block<M by 16>
    %4 = pk.zigzag_gap %m : !pk.block<M by 16>
    %5 = pk.positions %m zigzag %2, %3, %4 : !pk.block<M by 16> -> !pk.tile<16xi32>
    pk.accumulate %5, %C[%m : !pk.block<M by 16>] : !pk.tile<16xi32>, !pk.pgl<[M], i32, shard 0 zigzag>
  }
}

// -----

// A sum that owners add up: tasks follow the shards of the dimension that is divided among them.
// CHECK-LABEL: pk.kernel @owners
// CHECK: pk.block_count <M by 16> sharded
// CHECK: pk.block[%{{.*}}] sharded : !pk.block<M by 16>
// A loop that adds up block by block keeps its list, though the dimension is the same.
// CHECK: %[[ALL:.*]] = pk.block_count <M by 16>{{$}}
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %[[ALL]]
// CHECK-NEXT: pk.block[%[[K]]] : !pk.block<M by 16>
pk.kernel @owners(%X: !pk.private<[M, M], f32> {pk.name = "X"}, %C: !pk.pgl<[M], f32, replicate> {pk.name = "C"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 16>
  pk.tasks (%1) in (%0) {
    %m = pk.block[%1] : !pk.block<M by 16>
    %all = pk.block_count <M by 16>
    %2 = arith.constant 0 : index
    %3 = arith.constant 1 : index
    %4 = pk.full 0.0 : f32 : !pk.tile<16xf32>
    %5 = scf.for %6 = %2 to %all step %3 iter_args(%7 = %4) -> (!pk.tile<16xf32>) {
      %k = pk.block[%6] : !pk.block<M by 16>
      %8 = pk.load %X[%m, %k : !pk.block<M by 16>, !pk.block<M by 16>] : !pk.private<[M, M], f32> -> !pk.tile<16x16xf32>
      %9 = pk.row_sum %8 : !pk.tile<16x16xf32> -> !pk.tile<16xf32>
      %10 = pk.add %7, %9 : !pk.tile<16xf32>
      scf.yield %10 : !pk.tile<16xf32>
    }
    pk.accumulate %5, %C[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, replicate>
  }
}

// -----

// What every rank adds up itself has no owners.
// CHECK-LABEL: pk.kernel @everyone
// CHECK: pk.block_count <M by 16>{{$}}
pk.kernel @everyone(%X: !pk.private<[M], f32> {pk.name = "X"}, %C: !pk.pgl<[M], f32, replicate> {pk.name = "C"}) attributes {schedule = {all_reduce = "one_shot"}} {
  %0 = pk.block_count <M by 16>
  pk.tasks (%1) in (%0) {
    %m = pk.block[%1] : !pk.block<M by 16>
    %2 = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
    pk.accumulate %2, %C[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, replicate>
  }
}

// -----

// Tasks whose results depend on where their blocks end keep them: tiles of the sum have several owners.
// CHECK-LABEL: pk.kernel @kept
// CHECK: pk.block_count <M by 16>{{$}}
// CHECK: pk.block[%{{.*}}] : !pk.block<M by 16>
pk.kernel @kept(%X: !pk.private<[M], f32> {pk.name = "X"}, %C: !pk.pgl<[M], f32, replicate> {pk.name = "C"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 16>
  pk.tasks (%1) in (%0) {
    %m = pk.block[%1] : !pk.block<M by 16>
    %2 = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
    %3 = pk.row_max %2 : !pk.tile<16xf32> -> !pk.tile<f32>
    %4 = pk.broadcast %3 axes [] : !pk.tile<f32> -> !pk.tile<16xf32>
    %5 = pk.sub %2, %4 : !pk.tile<16xf32>
    pk.accumulate %5, %C[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, replicate>
  }
}
