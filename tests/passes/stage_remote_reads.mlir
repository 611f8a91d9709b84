// Operands of other ranks: who fetches them, and what the reader waits for.
// RUN: pkc-opt %s -p pk-plan-overlap,pk-stage-remote-reads --split-input-file --verify-diagnostics | filecheck %s

// Once for each block of rows; the whole row of tiles is announced at once, and awaited before the loop.
// CHECK-LABEL: pk.kernel @ag
// CHECK-SAME: %A_landing: !pk.private<[M, K], bf16> {pk.name = "A.landing", pk.scratch}
// CHECK-SAME: %A_ready: !pk.signal<[M by 16]> {pk.name = "A.ready"}
// CHECK: pk.role communicator
// CHECK: pk.tasks (%{{[0-9]+}}) in (
// CHECK: %[[M:.*]] = pk.block[
// CHECK: scf.for
// CHECK: %[[T:.*]] = pk.load %A[%[[M]],
// CHECK-NEXT: pk.store %[[T]], %A_landing[%[[M]],
// CHECK-NEXT: }
// CHECK-NEXT: %[[I:.*]] = pk.block_number %[[M]]
// CHECK: pk.raise %A_ready at %{{.*}}[%[[I]]] to
// CHECK: pk.role consumer attributes {derived}
// CHECK: %[[J:.*]] = pk.block_number
// CHECK: pk.wait %A_ready[%[[J]]] for
// CHECK-NEXT: scf.for
// CHECK-NOT: pk.load %A[
// CHECK: pk.load %A_landing[
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

// All has arrived before anything is computed: one counter, one signal from each CTA of the communicator.
// CHECK-LABEL: pk.kernel @ag
// CHECK-SAME: %A_ready: !pk.signal<[1]>
// CHECK: pk.role communicator
// CHECK: pk.store
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK: pk.signal %A_ready at
// CHECK: pk.role consumer
// CHECK: %[[C:.*]] = pk.ctas communicator
// CHECK-NEXT: pk.wait %A_ready[%{{.*}}] for %[[C]]
pk.kernel @ag(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {schedule = {overlap = "none"}} {
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

// Whoever computes reads from the other rank: nothing changes.
// CHECK-LABEL: pk.kernel @ag
// CHECK-NOT: pk.role
// CHECK: pk.load %A[
pk.kernel @ag(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {schedule = {overlap = "intra_sm"}} {
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

// A gather lands where its table stands, block by block of the table.
// CHECK-LABEL: pk.kernel @gathered
// CHECK-SAME: %X_landing: !pk.private<[E, P, H], f32>
// CHECK-SAME: %X_ready: !pk.signal<[E, P by 8]>
// CHECK: pk.role communicator
// CHECK: pk.tasks (%[[E:.*]]) in (
// CHECK: pk.read %count[%[[E]]]
// CHECK: pk.tasks (%{{[0-9]+}}) in (
// CHECK: %[[G:.*]] = pk.gather %X rows
// CHECK-NEXT: pk.store %[[G]], %X_landing[%[[E]],
// CHECK: pk.raise %X_ready
// CHECK: pk.role consumer
// CHECK-NOT: pk.gather
// CHECK: pk.load %X_landing[
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

// K and V come block after block, together; no task of the communicator depends on the queries.
// CHECK-LABEL: pk.kernel @attention
// CHECK-SAME: %K_V_ready: !pk.signal<[S by 16]> {pk.name = "K_V.ready"}
// CHECK: pk.role communicator
// CHECK: pk.tasks (%{{[0-9]+}}) in (%{{[0-9]+}}) {
// CHECK: %[[K:.*]] = pk.load %K[
// CHECK-NEXT: %[[V:.*]] = pk.load %V[
// CHECK-NEXT: pk.store %[[K]], %K_landing
// CHECK-NEXT: pk.store %[[V]], %V_landing
// CHECK: pk.raise %K_V_ready
// CHECK-NOT: pk.role communicator
// CHECK: pk.role consumer
// CHECK: pk.load %Q[
// CHECK: pk.wait %K_V_ready
// CHECK: pk.load %K_landing
// CHECK-NOT: pk.wait
// CHECK: pk.load %V_landing
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

// What depends on no task is fetched by a single one: every CTA of the communicator would fetch it otherwise.
// CHECK-LABEL: pk.kernel @shared
// CHECK-SAME: %X_ready: !pk.signal<[K]>
// CHECK: pk.role communicator
// CHECK: %[[ONE:.*]] = arith.constant 1
// CHECK-NEXT: pk.tasks (%{{[0-9]+}}) in (%[[ONE]])
// CHECK: scf.for
// CHECK: scf.for
// CHECK: pk.load %X[
// CHECK: pk.raise
pk.kernel @shared(%X: !pk.pgl<[K, J], f32, shard 0> {pk.name = "X"}, %Y: !pk.private<[N], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %0 = pk.dim "N"
  pk.tasks (%n) in (%0) {
    %1 = arith.constant 3 : index
    %2 = arith.constant 0 : index
    %3 = pk.full 0.000000e+00 : f32 : !pk.tile<f32>
    %4 = arith.constant 1 : index
    %5 = arith.constant 4 : index
    %acc = scf.for %6 = %2 to %1 step %4 iter_args(%acc_1 = %3) -> (!pk.tile<f32>) {
      %acc_2 = scf.for %7 = %2 to %5 step %4 iter_args(%acc_3 = %acc_1) -> (!pk.tile<f32>) {
        %8 = pk.load %X[%6, %7 : index, index] : !pk.pgl<[K, J], f32, shard 0> -> !pk.tile<f32>
        %acc_4 = pk.add %acc_3, %8 : !pk.tile<f32>
        scf.yield %acc_4 : !pk.tile<f32>
      }
      scf.yield %acc_2 : !pk.tile<f32>
    }
    pk.store %acc, %Y[%n : index] : !pk.tile<f32>, !pk.private<[N], f32>
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
// CHECK-NOT: pk.role
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

// A copy engine brings a whole row of tiles at once, and raises its counter.
// CHECK-LABEL: pk.kernel @ag
// CHECK-SAME: %A_landing: !pk.private<[M, K], bf16>
// CHECK-SAME: %A_ready: !pk.signal<[M by 16]>
// CHECK: pk.role copy_engine
// CHECK: pk.tasks (%{{[0-9]+}}) in (
// CHECK: %[[M:.*]] = pk.block[
// CHECK-NOT: scf.for
// CHECK: pk.copy %A[%[[M]] : !pk.block<M by 16>] along [0] to %A_landing[%[[M]] : !pk.block<M by 16>] along [0]
// CHECK-NEXT: %[[I:.*]] = pk.block_number %[[M]]
// CHECK: pk.raise %A_ready at %{{.*}}[%[[I]]] to
// CHECK: pk.role consumer
// CHECK: pk.wait %A_ready
// CHECK-NEXT: scf.for
// CHECK: pk.load %A_landing[
pk.kernel @ag(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {schedule = {overlap = "copy_engine"}} {
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

// The owner goes through its own rows, and sends each tile to all, the next rank first; it raises the counters of all.
// CHECK-LABEL: pk.kernel @ag
// CHECK-SAME: %A_landing: !pk.pgl<[M, K], bf16, symmetric> {pk.name = "A.landing", pk.scratch}
// CHECK: pk.role communicator
// CHECK: %[[R:.*]] = pk.rank
// CHECK: %[[OWN:.*]] = pk.block_count <M by 16> of %[[R]] sharded
// CHECK: pk.tasks (%[[I:.*]]) in (%[[OWN]])
// CHECK: %[[M:.*]] = pk.block[%[[I]]] of %[[R]] sharded
// CHECK: scf.for
// CHECK: %[[T:.*]] = pk.load %A[%[[M]],
// CHECK: scf.for %[[S:.*]] =
// CHECK: %[[N:.*]] = arith.addi %[[S]], %{{.*}}
// CHECK-NEXT: %[[P:.*]] = pk.ring_peer %[[N]]
// CHECK-NEXT: pk.store %[[T]], %A_landing at %[[P]][%[[M]],
// CHECK: scf.for
// CHECK: %[[Q:.*]] = pk.ring_peer
// CHECK: %[[B:.*]] = pk.block_number %[[M]]
// CHECK: pk.raise %A_ready at %[[Q]][%[[B]]] to
// CHECK: pk.role consumer
// CHECK: pk.wait %A_ready
// CHECK: pk.load %A_landing[
pk.kernel @ag(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {schedule = {transfer = "push"}} {
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

// Without overlap each CTA of every owner signals all ranks once.
// CHECK-LABEL: pk.kernel @ag
// CHECK: pk.role communicator
// CHECK-NOT: pk.raise
// CHECK: pk.signal_all %A_ready
// CHECK: pk.role consumer
// CHECK: %[[C:.*]] = pk.ctas communicator
// CHECK-NEXT: %[[R:.*]] = pk.dim "ranks"
// CHECK-NEXT: %[[ALL:.*]] = arith.muli %[[C]], %[[R]]
// CHECK-NEXT: pk.wait %A_ready[%{{.*}}] for %[[ALL]]
pk.kernel @ag(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {schedule = {transfer = "push", overlap = "none"}} {
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

// Of a loop over ranks and the blocks of each one's part, the owner takes its own turn.
// CHECK-LABEL: pk.kernel @ring
// CHECK: pk.role communicator
// CHECK: %[[R:.*]] = pk.rank
// CHECK-NOT: pk.ring_peer
// CHECK: %[[OWN:.*]] = pk.block_count <S by 16> of %[[R]] sharded
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[OWN]]
// CHECK: %[[KV:.*]] = pk.block[%[[I]]] of %[[R]] sharded
// CHECK: pk.load %K[%[[KV]],
// CHECK: pk.ring_peer
// CHECK-NEXT: pk.store {{.*}} %K_landing at
pk.kernel @ring(%K: !pk.pgl<[S, 16], f32, shard 0> {pk.name = "K"}, %O: !pk.private<[L, 16], f32> {pk.name = "O"}) attributes {schedule = {transfer = "push"}} {
  %0 = pk.dim "L"
  pk.tasks (%l) in (%0) {
    %1 = arith.constant 0 : index
    %2 = arith.constant 1 : index
    %ranks = pk.dim "ranks"
    %d = pk.block[%1] : !pk.block<16 by 16>
    %o = pk.full 0.0 : f32 : !pk.tile<16xf32>
    %o_1 = scf.for %s = %1 to %ranks step %2 iter_args(%o_2 = %o) -> (!pk.tile<16xf32>) {
      %r = pk.ring_peer %s
      %n = pk.block_count <S by 16> of %r sharded
      %o_3 = scf.for %i = %1 to %n step %2 iter_args(%o_4 = %o_2) -> (!pk.tile<16xf32>) {
        %kv = pk.block[%i] of %r sharded : !pk.block<S by 16>
        %k = pk.load %K[%kv, %d : !pk.block<S by 16>, !pk.block<16 by 16>] : !pk.pgl<[S, 16], f32, shard 0> -> !pk.tile<16x16xf32>
        %t = pk.transpose %k : !pk.tile<16x16xf32> -> !pk.tile<16x16xf32>
        %u = pk.row_sum %t : !pk.tile<16x16xf32> -> !pk.tile<16xf32>
        %o_5 = pk.add %o_4, %u : !pk.tile<16xf32>
        scf.yield %o_5 : !pk.tile<16xf32>
      }
      scf.yield %o_3 : !pk.tile<16xf32>
    }
    pk.store %o_1, %O[%l, %d : index, !pk.block<16 by 16>] : !pk.tile<16xf32>, !pk.private<[L, 16], f32>
  }
}

// -----

// Tasks that go through parts of the loop: what is done for every part is done once for all turns.
// CHECK-LABEL: pk.kernel @parts
// CHECK-SAME: %A_ready: !pk.signal<[M by 16]> {pk.name = "A.ready"}
// CHECK: pk.role communicator
// CHECK: pk.tasks (%{{[a-z0-9]+}}) in (
// CHECK-NOT: arith.divsi
// CHECK: %[[TURNS:.*]] = pk.block_count <K by 16>
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[TURNS]] step
// CHECK: pk.load %A[
// CHECK: pk.raise %A_ready
// CHECK: pk.role consumer attributes {derived}
// CHECK: pk.tasks (%{{.*}}, %{{.*}}, %{{.*}}) in (
// CHECK: pk.wait %A_ready[
// CHECK: scf.for %{{.*}} = %first to %last step
// CHECK: pk.load %A_landing[
pk.kernel @parts(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[4, M, N], f32> {pk.name = "C"}) attributes {schedule = {}} {
  %rows = pk.block_count <M by 16> sharded
  %columns = pk.block_count <N by 32>
  %four = arith.constant 4 : index
  pk.tasks (%i, %j, %s) in (%rows, %columns, %four) {
    %m = pk.block[%i] sharded : !pk.block<M by 16>
    %n = pk.block[%j] : !pk.block<N by 32>
    %zeros = pk.full 0.000000e+00 : f32 : !pk.tile<16x32xf32>
    %turns = pk.block_count <K by 16>
    %one = arith.constant 1 : index
    %following = arith.addi %s, %one : index
    %before = arith.muli %turns, %s : index
    %first = arith.divsi %before, %four : index
    %until = arith.muli %turns, %following : index
    %last = arith.divsi %until, %four : index
    %acc = scf.for %t = %first to %last step %one iter_args(%sum = %zeros) -> (!pk.tile<16x32xf32>) {
      %k = pk.block[%t] : !pk.block<K by 16>
      %a = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %b = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %next = pk.mma %a, %b, %sum : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %next : !pk.tile<16x32xf32>
    }
    pk.store %acc, %C[%s, %m, %n : index, !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xf32>, !pk.private<[4, M, N], f32>
  }
}

// -----

// A block that spans parts is fetched piece by piece, each of one rank's rows; it is awaited for as many as overlap it.
// CHECK-LABEL: pk.kernel @across
// CHECK-SAME: %A_ready: !pk.signal<[M by 16]>
// CHECK: pk.role communicator
// CHECK: pk.block_count <M by 16> sharded
// CHECK: %m = pk.block[%{{.*}}] sharded
// CHECK: pk.load %A[%m,
// CHECK: pk.store {{.*}} %A_landing[%m,
// CHECK: %[[FIRST:.*]] = pk.block_index %m in <M by 16> : !pk.block<M by 16>
// CHECK-NEXT: %[[LAST:.*]] = pk.block_index last %m in <M by 16> : !pk.block<M by 16>
// CHECK: %[[STOP:.*]] = arith.addi %[[LAST]],
// CHECK: scf.for %[[CELL:.*]] = %[[FIRST]] to %[[STOP]]
// CHECK-NEXT: %[[BLOCK:.*]] = pk.block[%[[CELL]]] : !pk.block<M by 16>
// CHECK-NEXT: %[[NUMBER:.*]] = pk.block_number %[[BLOCK]]
// CHECK: pk.signal %A_ready at %{{.*}}[%[[NUMBER]]] by
// CHECK: pk.role consumer
// CHECK: %m_1 = pk.block[%{{.*}}] : !pk.block<M by 16>
// CHECK: %[[BEGIN:.*]] = pk.block_index %m_1 in <M by 16> sharded
// CHECK-NEXT: %[[LAST2:.*]] = pk.block_index last %m_1 in <M by 16> sharded
// CHECK: %[[END:.*]] = arith.addi %[[LAST2]],
// CHECK-NEXT: %[[PIECES:.*]] = arith.subi %[[END]], %[[BEGIN]]
// CHECK-NEXT: pk.wait %A_ready[%{{.*}}] for %[[PIECES]]
// CHECK: pk.load %A_landing[%m_1,
pk.kernel @across(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {schedule = {straddle = true}} {
  %0 = pk.block_count <M by 16>
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] : !pk.block<M by 16>
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
