// What is decided of a transfer: local shards stay where they are, CTAs share the copies, groups of tiles are awaited.
// RUN: pkc-opt %s -p pk-plan-overlap,pk-straddle-shards,pk-stage-remote-reads,pk-plan-fetch --split-input-file | filecheck %s

// A row of tiles: 256 tiles of 512 bytes are awaited at once.
// CHECK-LABEL: pk.kernel @ag
// CHECK: pk.fetch {{.*}} ready %A_ready local spread 1 group 256 :
pk.kernel @ag(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 16> sharded
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] sharded : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<16x32xf32>
    %4 = pk.block_count <K by 16>
    %5 = arith.constant 0 : index
    %6 = arith.constant 1 : index
    %acc_1 = scf.for %7 = %5 to %4 step %6 iter_args(%acc_2 = %acc) -> (!pk.tile<16x32xf32>) {
      %k = pk.block[%7] : !pk.block<K by 16>
      %8 = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %9 = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_3 = pk.mma %8, %9, %acc_2 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_3 : !pk.tile<16x32xf32>
    }
    %10 = pk.cast %acc_1 : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
    pk.store %10, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// Both loops say the same.
// CHECK-LABEL: pk.kernel @twice
// CHECK: pk.fetch {{.*}} ready %A_ready local spread 1 group 256 :
// CHECK: pk.fetch {{.*}} ready %A_ready local spread 1 group 256 :
pk.kernel @twice(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 16> sharded
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] sharded : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<16x32xf32>
    %4 = pk.block_count <K by 16>
    %5 = arith.constant 0 : index
    %6 = arith.constant 1 : index
    %acc_1 = scf.for %7 = %5 to %4 step %6 iter_args(%acc_2 = %acc) -> (!pk.tile<16x32xf32>) {
      %k = pk.block[%7] : !pk.block<K by 16>
      %8 = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %9 = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_3 = pk.mma %8, %9, %acc_2 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_3 : !pk.tile<16x32xf32>
    }
    %acc_4 = scf.for %11 = %5 to %4 step %6 iter_args(%acc_5 = %acc_1) -> (!pk.tile<16x32xf32>) {
      %k_1 = pk.block[%11] : !pk.block<K by 16>
      %12 = pk.load %A[%m, %k_1 : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %13 = pk.load %B[%k_1, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_6 = pk.mma %12, %13, %acc_5 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_6 : !pk.tile<16x32xf32>
    }
    %10 = pk.cast %acc_4 : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
    pk.store %10, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// Large tiles are awaited eight at a time.
// CHECK-LABEL: pk.kernel @large
// CHECK: pk.fetch {{.*}} local spread 1 group 8 :
pk.kernel @large(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 128> sharded
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] sharded : !pk.block<M by 128>
    %n = pk.block[%3] : !pk.block<N by 32>
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x32xf32>
    %4 = pk.block_count <K by 64>
    %5 = arith.constant 0 : index
    %6 = arith.constant 1 : index
    %acc_1 = scf.for %7 = %5 to %4 step %6 iter_args(%acc_2 = %acc) -> (!pk.tile<128x32xf32>) {
      %k = pk.block[%7] : !pk.block<K by 64>
      %8 = pk.load %A[%m, %k : !pk.block<M by 128>, !pk.block<K by 64>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<128x64xbf16>
      %9 = pk.load %B[%k, %n : !pk.block<K by 64>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<64x32xbf16>
      %acc_3 = pk.mma %8, %9, %acc_2 : !pk.tile<128x64xbf16>, !pk.tile<64x32xbf16> -> !pk.tile<128x32xf32>
      scf.yield %acc_3 : !pk.tile<128x32xf32>
    }
    %10 = pk.cast %acc_1 : !pk.tile<128x32xf32> -> !pk.tile<128x32xbf16>
    pk.store %10, %C[%m, %n : !pk.block<M by 128>, !pk.block<N by 32>] : !pk.tile<128x32xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// Blocks of a shard are awaited together too; the loops over ranks and over the blocks of each both become tasks.
// CHECK-LABEL: pk.kernel @attention
// CHECK: pk.fetch {{.*}} ready %K_V_ready local spread 2 group 128 :
// CHECK: pk.fetch {{.*}} ready %K_V_ready local spread 2 group 128 :
pk.kernel @attention(%Q: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "Q"}, %K: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "K"}, %V: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "V"}, %O: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "O"}) attributes {schedule = {}} {
  %0 = pk.rank
  %1 = pk.block_count <S by 16> of %0 sharded
  pk.tasks (%2) in (%1) {
    %q = pk.block[%2] of %0 sharded : !pk.block<S by 16>
    %o = pk.full 0.000000e+00 : f32 : !pk.tile<16x16xf32>
    %3 = pk.dim "ranks"
    %4 = arith.constant 0 : index
    %5 = arith.constant 1 : index
    %o_1 = scf.for %6 = %4 to %3 step %5 iter_args(%o_2 = %o) -> (!pk.tile<16x16xf32>) {
      %7 = pk.ring_peer %6
      %8 = pk.block_count <S by 16> of %7 sharded
      %o_3 = scf.for %9 = %4 to %8 step %5 iter_args(%o_4 = %o_2) -> (!pk.tile<16x16xf32>) {
        %kv = pk.block[%9] of %7 sharded : !pk.block<S by 16>
        %10 = pk.block[%4] : !pk.block<16 by 16>
        %11 = pk.load %Q[%q, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] : !pk.pgl<[S, 16], bf16, shard 0> -> !pk.tile<16x16xbf16>
        %12 = pk.load %K[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] : !pk.pgl<[S, 16], bf16, shard 0> -> !pk.tile<16x16xbf16>
        %13 = pk.transpose %12 : !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
        %14 = pk.mma %11, %13, %o : !pk.tile<16x16xbf16>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xf32>
        %15 = pk.cast %14 : !pk.tile<16x16xf32> -> !pk.tile<16x16xbf16>
        %16 = pk.load %V[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] : !pk.pgl<[S, 16], bf16, shard 0> -> !pk.tile<16x16xbf16>
        %17 = pk.clip %15 axis 1 to %kv fill 0.000000e+00 : bf16 : !pk.tile<16x16xbf16>, !pk.block<S by 16> -> !pk.tile<16x16xbf16>
        %o_5 = pk.mma %17, %16, %o_4 : !pk.tile<16x16xbf16>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xf32>
        scf.yield %o_5 : !pk.tile<16x16xf32>
      }
      scf.yield %o_3 : !pk.tile<16x16xf32>
    }
    %18 = pk.block[%4] : !pk.block<16 by 16>
    %19 = pk.cast %o_1 : !pk.tile<16x16xf32> -> !pk.tile<16x16xbf16>
    pk.store %19, %O[%q, %18 : !pk.block<S by 16>, !pk.block<16 by 16>] : !pk.tile<16x16xbf16>, !pk.pgl<[S, 16], bf16, shard 0>
  }
}

// -----

// What all tasks of a rank skip is not fetched, where the last task visits all that the others do, but for what a group
// has of it.
// CHECK-LABEL: pk.kernel @masked
// CHECK: pk.fetch {{.*}} ready %K_V_ready local spread 2 group 128 visited :
// CHECK: pk.fetch {{.*}} ready %K_V_ready local spread 2 group 128 visited :
pk.kernel @masked(%Q: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "Q"}, %K: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "K"}, %V: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "V"}, %O: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "O"}) attributes {schedule = {}} {
  %0 = pk.rank
  %1 = pk.block_count <S by 16> of %0 sharded
  pk.tasks (%2) in (%1) {
    %q = pk.block[%2] of %0 sharded : !pk.block<S by 16>
    %o = pk.full 0.000000e+00 : f32 : !pk.tile<16x16xf32>
    %3 = pk.dim "ranks"
    %4 = arith.constant 0 : index
    %5 = arith.constant 1 : index
    %o_1 = scf.for %6 = %4 to %3 step %5 iter_args(%o_2 = %o) -> (!pk.tile<16x16xf32>) {
      %7 = pk.ring_peer %6
      %8 = pk.block_count <S by 16> of %7 sharded
      %first = pk.block[%4] of %7 sharded : !pk.block<S by 16>
      %from = pk.block_position %first : !pk.block<S by 16>
      %at = pk.block_position %q : !pk.block<S by 16>
      %ahead = arith.subi %at, %from : index
      %extent = arith.constant 16 : index
      %over = arith.floordivsi %ahead, %extent : index
      %needed = arith.addi %over, %5 : index
      %bound = pk.visited %needed of %8
      %o_3 = scf.for %9 = %4 to %bound step %5 iter_args(%o_4 = %o_2) -> (!pk.tile<16x16xf32>) {
        %kv = pk.block[%9] of %7 sharded : !pk.block<S by 16>
        %10 = pk.block[%4] : !pk.block<16 by 16>
        %11 = pk.load %Q[%q, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] : !pk.pgl<[S, 16], bf16, shard 0> -> !pk.tile<16x16xbf16>
        %12 = pk.load %K[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] : !pk.pgl<[S, 16], bf16, shard 0> -> !pk.tile<16x16xbf16>
        %13 = pk.transpose %12 : !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
        %14 = pk.mma %11, %13, %o : !pk.tile<16x16xbf16>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xf32>
        %15 = pk.cast %14 : !pk.tile<16x16xf32> -> !pk.tile<16x16xbf16>
        %16 = pk.load %V[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] : !pk.pgl<[S, 16], bf16, shard 0> -> !pk.tile<16x16xbf16>
        %17 = pk.clip %15 axis 1 to %kv fill 0.000000e+00 : bf16 : !pk.tile<16x16xbf16>, !pk.block<S by 16> -> !pk.tile<16x16xbf16>
        %o_5 = pk.mma %17, %16, %o_4 : !pk.tile<16x16xbf16>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xf32>
        scf.yield %o_5 : !pk.tile<16x16xf32>
      }
      scf.yield %o_3 : !pk.tile<16x16xf32>
    }
    %18 = pk.block[%4] : !pk.block<16 by 16>
    %19 = pk.cast %o_1 : !pk.tile<16x16xf32> -> !pk.tile<16x16xbf16>
    pk.store %19, %O[%q, %18 : !pk.block<S by 16>, !pk.block<16 by 16>] : !pk.tile<16x16xbf16>, !pk.pgl<[S, 16], bf16, shard 0>
  }
}

// -----

// A copy engine is one, and copies whole rows of tiles.
// CHECK-LABEL: pk.kernel @engine
// CHECK: pk.fetch {{.*}} ready %A_ready local :
pk.kernel @engine(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {schedule = {overlap = "copy_engine"}} {
  %0 = pk.block_count <M by 16> sharded
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] sharded : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<16x32xf32>
    %4 = pk.block_count <K by 16>
    %5 = arith.constant 0 : index
    %6 = arith.constant 1 : index
    %acc_1 = scf.for %7 = %5 to %4 step %6 iter_args(%acc_2 = %acc) -> (!pk.tile<16x32xf32>) {
      %k = pk.block[%7] : !pk.block<K by 16>
      %8 = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %9 = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_3 = pk.mma %8, %9, %acc_2 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_3 : !pk.tile<16x32xf32>
    }
    %10 = pk.cast %acc_1 : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
    pk.store %10, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// Nothing is decided of what is awaited as a whole, or sent by its owner.
// CHECK-LABEL: pk.kernel @bulk
// CHECK: pk.fetch {{.*}} ready %A_ready :
pk.kernel @bulk(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {schedule = {overlap = "none"}} {
  %0 = pk.block_count <M by 16> sharded
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] sharded : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<16x32xf32>
    %4 = pk.block_count <K by 16>
    %5 = arith.constant 0 : index
    %6 = arith.constant 1 : index
    %acc_1 = scf.for %7 = %5 to %4 step %6 iter_args(%acc_2 = %acc) -> (!pk.tile<16x32xf32>) {
      %k = pk.block[%7] : !pk.block<K by 16>
      %8 = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %9 = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_3 = pk.mma %8, %9, %acc_2 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_3 : !pk.tile<16x32xf32>
    }
    %10 = pk.cast %acc_1 : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
    pk.store %10, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// CHECK-LABEL: pk.kernel @pushed
// CHECK: pk.fetch {{.*}} ready %A_ready :
pk.kernel @pushed(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {schedule = {transfer = "push"}} {
  %0 = pk.block_count <M by 16> sharded
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] sharded : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<16x32xf32>
    %4 = pk.block_count <K by 16>
    %5 = arith.constant 0 : index
    %6 = arith.constant 1 : index
    %acc_1 = scf.for %7 = %5 to %4 step %6 iter_args(%acc_2 = %acc) -> (!pk.tile<16x32xf32>) {
      %k = pk.block[%7] : !pk.block<K by 16>
      %8 = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %9 = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_3 = pk.mma %8, %9, %acc_2 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_3 : !pk.tile<16x32xf32>
    }
    %10 = pk.cast %acc_1 : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
    pk.store %10, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// A block that straddles shards has rows of others too: all of it is fetched.
// CHECK-LABEL: pk.kernel @across
// CHECK: pk.fetch {{.*}} ready %A_ready spread 1 group 256 :
pk.kernel @across(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {schedule = {straddle = true}} {
  %0 = pk.block_count <M by 16> sharded
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] sharded : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<16x32xf32>
    %4 = pk.block_count <K by 16>
    %5 = arith.constant 0 : index
    %6 = arith.constant 1 : index
    %acc_1 = scf.for %7 = %5 to %4 step %6 iter_args(%acc_2 = %acc) -> (!pk.tile<16x32xf32>) {
      %k = pk.block[%7] : !pk.block<K by 16>
      %8 = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %9 = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_3 = pk.mma %8, %9, %acc_2 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_3 : !pk.tile<16x32xf32>
    }
    %10 = pk.cast %acc_1 : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
    pk.store %10, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// How many rows a table names differs from launch to launch, so that signals of many CTAs would not add up: one CTA
// fetches all of a group, and groups are shared out.
// CHECK-LABEL: pk.kernel @gathered
// CHECK: pk.fetch {{.*}} ready %X_ready group 256 :
pk.kernel @gathered(%X: !pk.pgl<[T, H], f32, shard 0> {pk.name = "X"}, %rows: !pk.private<[E, P], i32> {pk.name = "rows"}, %count: !pk.private<[E], i32> {pk.name = "count"}, %Y: !pk.private<[E, P, N, H], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %0 = pk.dim "E"
  pk.tasks (%e) in (%0) {
    %1 = pk.read %count[%e] : !pk.private<[E], i32>
    %2 = pk.dim "N"
    %3 = pk.block_count <P by 8> to %1
    pk.tasks (%4, %n) in (%3, %2) {
      %p = pk.block[%4] to %1 : !pk.block<P by 8>
      %5 = pk.block_count <H by 16>
      %6 = arith.constant 0 : index
      %7 = arith.constant 1 : index
      scf.for %8 = %6 to %5 step %7 {
        %h = pk.block[%8] : !pk.block<H by 16>
        %9 = pk.load %rows[%e, %p : index, !pk.block<P by 8>] : !pk.private<[E, P], i32> -> !pk.tile<8xi32>
        %10 = pk.gather %X rows %9[%h : !pk.block<H by 16>] : !pk.pgl<[T, H], f32, shard 0>, !pk.tile<8xi32> -> !pk.tile<8x16xf32>
        pk.store %10, %Y[%e, %p, %n, %h : index, !pk.block<P by 8>, index, !pk.block<H by 16>] : !pk.tile<8x16xf32>, !pk.private<[E, P, N, H], f32>
      }
    }
  }
}
