// Sums over ranks: slots, arrival counters and who adds up.
// RUN: pkc-opt %s -p pk-plan-overlap,pk-straddle-shards,pk-stage-sums --split-input-file --verify-diagnostics | filecheck %s

// Slots at the owner, one counter for each tile; the owner adds its rows in rank order and rounds once.
// CHECK-LABEL: pk.kernel @rs
// CHECK-SAME: %C_slots: !pk.pgl<[ranks, M, N], bf16, shard 1> {pk.name = "C.slots", pk.scratch}
// CHECK-SAME: %C_arrived: !pk.signal<[M by 16, N by 32]> {pk.name = "C.arrived"}
// CHECK: pk.role communicator
// CHECK: %[[RANK:.*]] = pk.rank
// CHECK: %[[RANKS:.*]] = pk.dim "ranks"
// CHECK: %[[LOCAL:.*]] = pk.block_count <M by 16> of %[[RANK]] sharded
// CHECK: %[[ALL:.*]] = pk.block_count <N by 32>
// CHECK: pk.tasks (%{{[0-9]+}}, %{{[0-9]+}}) in (%[[LOCAL]], %[[ALL]])
// CHECK: pk.wait %C_arrived[%{{.*}}, %{{.*}}] for %[[RANKS]]
// CHECK: scf.for %[[R:.*]] = %{{.*}} to %[[RANKS]]
// CHECK: pk.load %C_slots[%[[R]],
// CHECK-NEXT: pk.cast
// CHECK-NEXT: pk.add
// CHECK: pk.cast
// CHECK-NEXT: pk.store {{.*}} %C[
// CHECK: pk.role consumer attributes {derived}
// CHECK: %[[OWNER:.*]] = pk.owner
// CHECK-NOT: pk.accumulate
// CHECK: pk.store {{.*}} %C_slots[
// CHECK-NEXT: pk.signal %C_arrived at %[[OWNER]][
pk.kernel @rs(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) attributes {schedule = {}} {
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

// A tile of 128 rows is added up by four tasks, each of which waits for the whole tile.
// CHECK-LABEL: pk.kernel @tall
// CHECK-SAME: %C_arrived: !pk.signal<[M by 128, N by 32]>
// CHECK: %[[LOCAL:.*]] = pk.block_count <M by 32> of %[[RANK:.*]] sharded
// CHECK: pk.tasks (%[[I:.*]], %[[J:.*]]) in (%[[LOCAL]], %{{.*}}) attributes {chunks = 4 : i64}
// CHECK: %[[FOUR:.*]] = arith.constant 4
// CHECK-NEXT: %[[WHOLE:.*]] = arith.divsi %[[I]], %[[FOUR]]
// CHECK-NEXT: %[[TILE:.*]] = pk.block[%[[WHOLE]]] of %[[RANK]] sharded : !pk.block<M by 128>
// CHECK: %[[NUMBER:.*]] = pk.block_number %[[TILE]]
// CHECK: %[[CHUNK:.*]] = pk.block[%[[I]]] of %[[RANK]] sharded : !pk.block<M by 32>
// CHECK: pk.wait %C_arrived[%[[NUMBER]],
// CHECK: pk.load %C_slots[%{{.*}}, %[[CHUNK]], {{.*}} -> !pk.tile<32x32xbf16>
// CHECK: pk.store {{.*}} %C[%[[CHUNK]],
// CHECK: pk.role consumer
// CHECK: pk.store {{.*}} !pk.tile<128x32xbf16>
pk.kernel @tall(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 128> sharded
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] sharded : !pk.block<M by 128>
    %n = pk.block[%3] : !pk.block<N by 32>
    %4 = pk.load %X[%m, %n : !pk.block<M by 128>, !pk.block<N by 32>] : !pk.private<[M, N], bf16> -> !pk.tile<128x32xbf16>
    pk.accumulate %4, %C[%m, %n : !pk.block<M by 128>, !pk.block<N by 32>] : !pk.tile<128x32xbf16>, !pk.pgl<[M, N], bf16, shard 0>
  }
}

// -----

// A rank's whole contribution has one counter, which gets a signal for each tile.
// CHECK-LABEL: pk.kernel @rs
// CHECK-SAME: %C_arrived: !pk.signal<[1]>
// CHECK: %[[LOCAL:.*]] = pk.block_count <M by 16> of
// CHECK: %[[ALL:.*]] = pk.block_count <N by 32>
// CHECK: %[[A:.*]] = arith.muli %{{.*}}, %[[LOCAL]]
// CHECK-NEXT: %[[B:.*]] = arith.muli %[[A]], %[[ALL]]
// CHECK: pk.wait %C_arrived[%{{.*}}] for %[[B]]
pk.kernel @rs(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) attributes {schedule = {overlap = "none"}} {
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

// The plan of a sum that its owners keep changes nothing here.
// CHECK-LABEL: pk.kernel @rs
// CHECK: pk.wait %C_arrived[%{{.*}}, %{{.*}}] for
pk.kernel @rs(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) attributes {schedule = {overlap = "inter_sm"}} {
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

// A replicated array is divided among the owners; they store to every rank. Its blocks follow the shards.
// CHECK-LABEL: pk.kernel @ar
// CHECK-SAME: %C_slots: !pk.pgl<[ranks, M, N], bf16, shard 1>
// CHECK: pk.block_count <M by 16> of %{{.*}} sharded
// CHECK: pk.store {{.*}} %C[{{.*}} !pk.pgl<[M, N], bf16, replicate>
// CHECK: pk.role consumer
// CHECK: pk.block_count <M by 16> sharded
// CHECK: pk.block[%{{.*}}] sharded : !pk.block<M by 16>
pk.kernel @ar(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, replicate> {pk.name = "C"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 16>
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %4 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.private<[M, N], bf16> -> !pk.tile<16x32xbf16>
    pk.accumulate %4, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.pgl<[M, N], bf16, replicate>
  }
}

// -----

// Nested tasks, integers, and another dimension that is sharded: all ranks contribute to all of its blocks.
// CHECK-LABEL: pk.kernel @other
// CHECK-SAME: %C_arrived: !pk.signal<[H, M by 16, N by 32]>
// CHECK: %[[H:.*]] = pk.dim "H"
// CHECK: %[[LOCAL:.*]] = pk.block_count <M by 16> of %{{.*}} sharded
// CHECK: %[[ALL:.*]] = pk.block_count <N by 32> sharded
// CHECK: pk.tasks (%{{.*}}, %[[I:.*]], %[[J:.*]]) in (%[[H]], %[[LOCAL]], %[[ALL]])
// CHECK: pk.block[%[[I]]] of %{{.*}} sharded : !pk.block<M by 16>
// CHECK: pk.block[%[[J]]] sharded : !pk.block<N by 32>
pk.kernel @other(%A: !pk.private<[H, M, N], f32> {pk.name = "A"}, %B: !pk.pgl<[N], f32, shard 0> {pk.name = "B"}, %C: !pk.pgl<[H, M, N], f32, shard 1> {pk.name = "C"}) attributes {schedule = {}} {
  %0 = pk.dim "H"
  pk.tasks (%h) in (%0) {
    %1 = pk.block_count <M by 16> sharded
    %2 = pk.block_count <N by 32> sharded
    pk.tasks (%3, %4) in (%1, %2) {
      %m = pk.block[%3] sharded : !pk.block<M by 16>
      %n = pk.block[%4] sharded : !pk.block<N by 32>
      %5 = pk.load %A[%h, %m, %n : index, !pk.block<M by 16>, !pk.block<N by 32>] : !pk.private<[H, M, N], f32> -> !pk.tile<16x32xf32>
      %6 = pk.load %B[%n : !pk.block<N by 32>] : !pk.pgl<[N], f32, shard 0> -> !pk.tile<32xf32>
      %7 = pk.broadcast %6 axes [1] : !pk.tile<32xf32> -> !pk.tile<16x32xf32>
      %8 = pk.add %5, %7 : !pk.tile<16x32xf32>
      pk.accumulate %8, %C[%h, %m, %n : index, !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xf32>, !pk.pgl<[H, M, N], f32, shard 1>
    }
  }
}

// -----

// Any order will do: the sum stays.
// CHECK-LABEL: pk.kernel @rs
// CHECK-NOT: pk.role
// CHECK: pk.accumulate
pk.kernel @rs(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) attributes {schedule = {deterministic = false}} {
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

// Two statements.
// CHECK: error[PK433]: the contributions to `C` cannot be counted
// CHECK: it is summed by more than one statement
pk.kernel @rs(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 16> sharded
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] sharded : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %4 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.private<[M, N], bf16> -> !pk.tile<16x32xbf16>
    pk.accumulate %4, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.pgl<[M, N], bf16, shard 0>
    %5 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.private<[M, N], bf16> -> !pk.tile<16x32xbf16>
    pk.accumulate %5, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.pgl<[M, N], bf16, shard 0>
  }
}

// -----

// Some tiles only.
// CHECK: error[PK433]: the contributions to `C` cannot be counted
// CHECK: some tiles of it may get no contribution
pk.kernel @rs(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) attributes {schedule = {}} {
  %0 = arith.constant 40 : index
  %1 = pk.block_count <M by 16> sharded
  %2 = pk.block_count <N by 32> to %0
  pk.tasks (%3, %4) in (%1, %2) {
    %m = pk.block[%3] sharded : !pk.block<M by 16>
    %n = pk.block[%4] to %0 : !pk.block<N by 32>
    %5 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.private<[M, N], bf16> -> !pk.tile<16x32xbf16>
    pk.accumulate %5, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.pgl<[M, N], bf16, shard 0>
  }
}

// -----

// Rank by rank.
// CHECK: error[PK433]: the contributions to `C` cannot be counted
// CHECK: which tiles a rank contributes to depends on the rank
pk.kernel @rs(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) attributes {schedule = {}} {
  %0 = pk.rank
  %1 = pk.block_count <M by 16> of %0 sharded
  %2 = pk.block_count <N by 32>
  pk.tasks (%3, %4) in (%1, %2) {
    %m = pk.block[%3] of %0 sharded : !pk.block<M by 16>
    %n = pk.block[%4] : !pk.block<N by 32>
    %5 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.private<[M, N], bf16> -> !pk.tile<16x32xbf16>
    pk.accumulate %5, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.pgl<[M, N], bf16, shard 0>
  }
}

// -----

// Twice from a rank.
// CHECK: error[PK433]: the contributions to `C` cannot be counted
// CHECK: several tasks of a rank contribute to one tile
pk.kernel @rs(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) attributes {schedule = {}} {
  %0 = arith.constant 2 : index
  %1 = pk.block_count <M by 16> sharded
  %2 = pk.block_count <N by 32>
  pk.tasks (%3, %4, %i) in (%1, %2, %0) {
    %m = pk.block[%3] sharded : !pk.block<M by 16>
    %n = pk.block[%4] : !pk.block<N by 32>
    %5 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.private<[M, N], bf16> -> !pk.tile<16x32xbf16>
    pk.accumulate %5, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.pgl<[M, N], bf16, shard 0>
  }
}

// -----

// Again and again.
// CHECK: error[PK433]: the contributions to `C` cannot be counted
// CHECK: it stands in a loop or branch
pk.kernel @rs(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 16> sharded
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] sharded : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %4 = arith.constant 2 : index
    %5 = arith.constant 0 : index
    %6 = arith.constant 1 : index
    scf.for %7 = %5 to %4 step %6 {
      %8 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.private<[M, N], bf16> -> !pk.tile<16x32xbf16>
      pk.accumulate %8, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.pgl<[M, N], bf16, shard 0>
    }
  }
}

// -----

// Positions instead of blocks.
// CHECK: error[PK433]: the contributions to `C` cannot be counted
// CHECK: the dimension to divide among its owners has no blocks
pk.kernel @rs(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) attributes {schedule = {}} {
  %0 = pk.dim "M"
  %1 = pk.block_count <N by 32>
  pk.tasks (%m, %2) in (%0, %1) {
    %n = pk.block[%2] : !pk.block<N by 32>
    %3 = pk.load %X[%m, %n : index, !pk.block<N by 32>] : !pk.private<[M, N], bf16> -> !pk.tile<32xbf16>
    pk.accumulate %3, %C[%m, %n : index, !pk.block<N by 32>] : !pk.tile<32xbf16>, !pk.pgl<[M, N], bf16, shard 0>
  }
}

// -----

// A copy engine adds to no counter: each rank has a separate one at the owner, which awaits them one by one.
// CHECK-LABEL: pk.kernel @rs
// CHECK-SAME: %C_arrived: !pk.signal<[ranks, M by 16, N by 32]>
// CHECK: pk.role communicator
// CHECK: scf.for %[[R:.*]] = %{{.*}} to
// CHECK-NEXT: pk.wait %C_arrived[%[[R]], %{{.*}}, %{{.*}}] for
// CHECK-NEXT: }
// CHECK: scf.for %[[S:.*]] = %{{.*}} to
// CHECK-NEXT: pk.load %C_slots[%[[S]],
// CHECK: pk.role consumer
// CHECK: pk.store {{.*}} %C_slots[{{.*}}remote = {overlap = "copy_engine"
// CHECK-NEXT: pk.raise %C_arrived at %{{.*}}remote = {overlap = "copy_engine"
pk.kernel @rs(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) attributes {schedule = {overlap = "copy_engine"}} {
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

// Tiles with rows of several ranks: each of these is told, and awaits all tiles that its blocks overlap.
// CHECK-LABEL: pk.kernel @across
// CHECK: pk.role communicator
// CHECK: %[[RANKS:.*]] = pk.dim "ranks"
// CHECK: %m = pk.block[%{{.*}}] of %{{.*}} : !pk.block<M by 16>
// CHECK: %[[FIRST:.*]] = pk.block_index %m in <M by 16> : !pk.block<M by 16>
// CHECK-NEXT: %[[LAST:.*]] = pk.block_index last %m in <M by 16> : !pk.block<M by 16>
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1
// CHECK-NEXT: %[[STOP:.*]] = arith.addi %[[LAST]], %[[ONE]]
// CHECK: scf.for %[[TILE:.*]] = %[[FIRST]] to %[[STOP]]
// CHECK-NEXT: %[[BLOCK:.*]] = pk.block[%[[TILE]]] : !pk.block<M by 16>
// CHECK-NEXT: %[[ROW:.*]] = pk.block_number %[[BLOCK]]
// CHECK: pk.wait %C_arrived[%[[ROW]], %{{.*}}] for %[[RANKS]]
// CHECK: pk.role consumer
// CHECK: %m_1 = pk.block[%{{.*}}] : !pk.block<M by 16>
// CHECK: %[[OWNER:.*]] = pk.owner %m_1
// CHECK: %[[OTHER:.*]] = pk.owner last %m_1
// CHECK-NEXT: pk.store {{.*}} %C_slots[
// CHECK-NEXT: pk.signal_all %C_arrived from %[[OWNER]] to %[[OTHER]][
pk.kernel @across(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) attributes {schedule = {straddle = true}} {
  %0 = pk.block_count <M by 16>
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %4 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.private<[M, N], bf16> -> !pk.tile<16x32xbf16>
    pk.accumulate %4, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.pgl<[M, N], bf16, shard 0>
  }
}

// -----

// One shot: every rank has slots for all tiles, is sent all contributions, and stores the sums to its own copy.
// CHECK-LABEL: pk.kernel @one_shot
// CHECK-SAME: %C_slots: !pk.pgl<[ranks, M, N], bf16, replicate>
// CHECK: pk.role communicator
// CHECK: %[[RANK:.*]] = pk.rank
// CHECK: pk.tasks
// CHECK: %m = pk.block[%{{.*}}] : !pk.block<M by 16>
// CHECK: pk.wait %C_arrived
// CHECK: pk.load %C_slots
// CHECK: pk.store {{.*}}, %C at %[[RANK]][%m,
// CHECK: pk.role consumer
// CHECK: pk.store {{.*}}, %C_slots[
// CHECK-NEXT: pk.signal_all %C_arrived[
pk.kernel @one_shot(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, replicate> {pk.name = "C"}) attributes {schedule = {all_reduce = "one_shot"}} {
  %0 = pk.block_count <M by 16>
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %4 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.private<[M, N], bf16> -> !pk.tile<16x32xbf16>
    pk.accumulate %4, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.pgl<[M, N], bf16, replicate>
  }
}
