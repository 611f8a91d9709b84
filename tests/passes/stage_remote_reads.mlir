// Operands of other ranks that are fetched ahead: what goes through which receive buffer, and what shares a counter.
// RUN: pkc-opt %s -p pk-plan-overlap,pk-stage-remote-reads --split-input-file --verify-diagnostics | filecheck %s

// A counter for each row of tiles; the read stays, and all that used its tile uses what is fetched.
// CHECK-LABEL: pk.kernel @ag
// CHECK-SAME: %A_fetched: !pk.private<[M, K], bf16> {pk.name = "A.fetched", pk.scratch}
// CHECK-SAME: %A_ready: !pk.signal<[M by 16]> {pk.name = "A.ready"}
// CHECK-NOT: pk.role
// CHECK: %[[T:.*]] = pk.load %A[
// CHECK-NEXT: %[[F:.*]] = pk.fetch %[[T]] into %A_fetched[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] ready %A_ready : !pk.private
// CHECK: pk.mma %[[F]],
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

// One counter for all.
// CHECK-LABEL: pk.kernel @bulk
// CHECK-SAME: %A_ready: !pk.signal<[1]>
// CHECK: pk.fetch
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

// Who computes reads from the other rank: nothing changes.
// CHECK-LABEL: pk.kernel @direct
// CHECK-NOT: pk.fetch
// CHECK: pk.load %A[
// CHECK-NOT: pk.fetch
pk.kernel @direct(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {schedule = {overlap = "intra_sm"}} {
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

// What its owner sends lies at the same place on all ranks.
// CHECK-LABEL: pk.kernel @pushed
// CHECK-SAME: %A_fetched: !pk.pgl<[M, K], bf16, symmetric>
// CHECK: pk.fetch %{{.*}} into %A_fetched[
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

// K and V are read side by side: a buffer for each, one counter for both. Q stays on its rank.
// CHECK-LABEL: pk.kernel @attention
// CHECK-SAME: %K_fetched: !pk.private<[S, 16], bf16>
// CHECK-SAME: %V_fetched: !pk.private<[S, 16], bf16>
// CHECK-SAME: %K_V_ready: !pk.signal<[S by 16]> {pk.name = "K_V.ready"}
// CHECK: pk.load %Q[
// CHECK-NOT: pk.fetch
// CHECK: pk.load %K[
// CHECK-NEXT: pk.fetch %{{.*}} into %K_fetched[%{{.*}}] ready %K_V_ready
// CHECK: pk.load %V[
// CHECK-NEXT: pk.fetch %{{.*}} into %V_fetched[%{{.*}}] ready %K_V_ready
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

// Two loops read the same tiles: they are fetched once.
// CHECK-LABEL: pk.kernel @twice
// CHECK-SAME: %A_fetched: {{.*}}, %A_ready: !pk.signal<[M by 16]> {pk.name = "A.ready"})
// CHECK: pk.fetch %{{.*}} into %A_fetched[%m, %k : {{.*}}] ready %A_ready
// CHECK: pk.fetch %{{.*}} into %A_fetched[%m, %k_1 : {{.*}}] ready %A_ready
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

// The second loop reads fewer tiles: they are fetched separately.
// CHECK-LABEL: pk.kernel @others
// CHECK-SAME: %A_fetched2: {{.*}}, %A_ready2:
// CHECK: pk.fetch %{{.*}} into %A_fetched[%m, %k : {{.*}}] ready %A_ready :
// CHECK: pk.fetch %{{.*}} into %A_fetched2[%m, %k_1 : {{.*}}] ready %A_ready2 :
pk.kernel @others(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {schedule = {}} {
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
    %acc_4 = scf.for %11 = %5 to %6 step %6 iter_args(%acc_5 = %acc_1) -> (!pk.tile<16x32xf32>) {
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

// A gather lands where its table stands, block by block of the table.
// CHECK-LABEL: pk.kernel @gathered
// CHECK-SAME: %X_fetched: !pk.private<[E, P, H], f32>
// CHECK-SAME: %X_ready: !pk.signal<[E, P by 8]>
// CHECK: %[[G:.*]] = pk.gather %X rows
// CHECK-NEXT: pk.fetch %[[G]] into %X_fetched[%e, %p, %h : index, !pk.block<P by 8>, !pk.block<H by 16>] ready %X_ready
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

// -----

// An index that a loop carries is not known ahead.
// CHECK: error[PK432]: `X` cannot be fetched ahead
pk.kernel @carried(%X: !pk.pgl<[M, N], f32, shard 0> {pk.name = "X"}, %Y: !pk.private<[L, N], f32> {pk.name = "Y"}) attributes {schedule = {overlap = "inter_sm"}} {
  %0 = pk.dim "L"
  %1 = pk.block_count <N by 16>
  pk.tasks (%l, %2) in (%0, %1) {
    %n = pk.block[%2] : !pk.block<N by 16>
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<16xf32>
    %3 = arith.constant 3 : index
    %4 = arith.constant 0 : index
    %5 = arith.constant 1 : index
    %6 = arith.constant 2 : index
    %i, %acc_1 = scf.for %7 = %4 to %3 step %5 iter_args(%i_1 = %4, %acc_2 = %acc) -> (index, !pk.tile<16xf32>) {
      %8 = arith.addi %i_1, %6 : index
      %9 = arith.floordivsi %8, %3 : index
      %10 = arith.muli %9, %3 : index
      %i_2 = arith.subi %8, %10 : index
      %11 = pk.load %X[%i_2, %n : index, !pk.block<N by 16>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<16xf32>
      %acc_3 = pk.add %acc_2, %11 : !pk.tile<16xf32>
      scf.yield %i_2, %acc_3 : index, !pk.tile<16xf32>
    }
    pk.store %acc_1, %Y[%l, %n : index, !pk.block<N by 16>] : !pk.tile<16xf32>, !pk.private<[L, N], f32>
  }
}

// -----

// Nor is one that a branch guards.
// CHECK: error[PK432]: `X` cannot be fetched ahead
pk.kernel @guarded(%X: !pk.pgl<[M, N], f32, shard 0> {pk.name = "X"}, %T: !pk.private<[L], i32> {pk.name = "T"}, %Y: !pk.private<[L, N], f32> {pk.name = "Y"}) attributes {schedule = {overlap = "none"}} {
  %0 = pk.dim "L"
  %1 = pk.block_count <N by 16>
  pk.tasks (%l, %2) in (%0, %1) {
    %n = pk.block[%2] : !pk.block<N by 16>
    %t = pk.full 0.000000e+00 : f32 : !pk.tile<16xf32>
    %3 = arith.constant 0 : index
    %4 = pk.read %T[%3] : !pk.private<[L], i32>
    %5 = arith.cmpi sge, %4, %3 : index
    %t_1 = scf.if %5 -> (!pk.tile<16xf32>) {
      %6 = pk.read %T[%3] : !pk.private<[L], i32>
      %7 = pk.load %X[%6, %n : index, !pk.block<N by 16>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<16xf32>
      %8 = pk.full 2.000000e+00 : f32 : !pk.tile<16xf32>
      %t_2 = pk.mul %7, %8 : !pk.tile<16xf32>
      scf.yield %t_2 : !pk.tile<16xf32>
    } else {
      scf.yield %t : !pk.tile<16xf32>
    }
    pk.store %t_1, %Y[%l, %n : index, !pk.block<N by 16>] : !pk.tile<16xf32>, !pk.private<[L, N], f32>
  }
}

// -----

// With the plan that pkc chooses they are read in place.
// CHECK-LABEL: pk.kernel @guarded
// CHECK-NOT: pk.fetch
// CHECK: pk.load %X[
pk.kernel @guarded(%X: !pk.pgl<[M, N], f32, shard 0> {pk.name = "X"}, %T: !pk.private<[L], i32> {pk.name = "T"}, %Y: !pk.private<[L, N], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %0 = pk.dim "L"
  %1 = pk.block_count <N by 16>
  pk.tasks (%l, %2) in (%0, %1) {
    %n = pk.block[%2] : !pk.block<N by 16>
    %t = pk.full 0.000000e+00 : f32 : !pk.tile<16xf32>
    %3 = arith.constant 0 : index
    %4 = pk.read %T[%3] : !pk.private<[L], i32>
    %5 = arith.cmpi sge, %4, %3 : index
    %t_1 = scf.if %5 -> (!pk.tile<16xf32>) {
      %6 = pk.read %T[%3] : !pk.private<[L], i32>
      %7 = pk.load %X[%6, %n : index, !pk.block<N by 16>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<16xf32>
      %8 = pk.full 2.000000e+00 : f32 : !pk.tile<16xf32>
      %t_2 = pk.mul %7, %8 : !pk.tile<16xf32>
      scf.yield %t_2 : !pk.tile<16xf32>
    } else {
      scf.yield %t : !pk.tile<16xf32>
    }
    pk.store %t_1, %Y[%l, %n : index, !pk.block<N by 16>] : !pk.tile<16xf32>, !pk.private<[L, N], f32>
  }
}

// -----

// What belongs to the rows of an operand shares its counter; what belongs to columns of them does not.
// CHECK-LABEL: pk.kernel @rows
// CHECK-SAME: %Q_L_ready: !pk.signal<[S by 16]> {pk.name = "Q_L.ready"}
// CHECK-SAME: %W_ready: !pk.signal<[S by 16]> {pk.name = "W.ready"}
// CHECK: pk.fetch %{{.*}} into %Q_fetched[%q, %{{.*}} : !pk.block<S by 16>, !pk.block<16 by 16>] ready %Q_L_ready
// CHECK: pk.fetch %{{.*}} into %L_fetched[%q : !pk.block<S by 16>] ready %Q_L_ready
// CHECK: pk.fetch %{{.*}} into %W_fetched[%q, %{{.*}} : !pk.block<S by 16>, !pk.block<32 by 16>] ready %W_ready
pk.kernel @rows(%Q: !pk.pgl<[S, 16], f32, shard 0> {pk.name = "Q"}, %L: !pk.pgl<[S], f32, shard 0> {pk.name = "L"}, %W: !pk.pgl<[S, 32], f32, shard 0> {pk.name = "W"}, %Y: !pk.private<[T, 16], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %0 = pk.block_count <T by 16>
  %1 = pk.block_count <S by 16> sharded
  pk.tasks (%2) in (%0) {
    %t = pk.block[%2] : !pk.block<T by 16>
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %d = pk.block[%zero] : !pk.block<16 by 16>
    %e = pk.block[%one] : !pk.block<32 by 16>
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<16x16xf32>
    %sum = scf.for %3 = %zero to %1 step %one iter_args(%acc_1 = %acc) -> (!pk.tile<16x16xf32>) {
      %q = pk.block[%3] sharded : !pk.block<S by 16>
      %x = pk.load %Q[%q, %d : !pk.block<S by 16>, !pk.block<16 by 16>] : !pk.pgl<[S, 16], f32, shard 0> -> !pk.tile<16x16xf32>
      %l = pk.load %L[%q : !pk.block<S by 16>] : !pk.pgl<[S], f32, shard 0> -> !pk.tile<16xf32>
      %w = pk.load %W[%q, %e : !pk.block<S by 16>, !pk.block<32 by 16>] : !pk.pgl<[S, 32], f32, shard 0> -> !pk.tile<16x16xf32>
      %r = pk.broadcast %l axes [0] : !pk.tile<16xf32> -> !pk.tile<16x16xf32>
      %y = pk.mul %x, %r : !pk.tile<16x16xf32>
      %z = pk.add %y, %w : !pk.tile<16x16xf32>
      %acc_2 = pk.add %acc_1, %z : !pk.tile<16x16xf32>
      scf.yield %acc_2 : !pk.tile<16x16xf32>
    }
    pk.store %sum, %Y[%t, %d : !pk.block<T by 16>, !pk.block<16 by 16>] : !pk.tile<16x16xf32>, !pk.private<[T, 16], f32>
  }
}
