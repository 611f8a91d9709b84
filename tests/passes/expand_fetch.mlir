// What a fetch becomes: roles that fetch tiles, their signals, and the waits of the reader.
// RUN: pkc-opt %s -p pk-expand-fetch --split-input-file | filecheck %s

// Once for each block of rows; the whole row of tiles is announced at once, and awaited before the loop.
// CHECK-LABEL: pk.kernel @ag
// CHECK-SAME: %A_fetched: !pk.private<[M, K], bf16> {pk.name = "A.fetched", pk.scratch}
// CHECK-SAME: %A_ready: !pk.signal<[M by 16]> {pk.name = "A.ready"}
// CHECK: pk.role communicator
// CHECK: pk.tasks (%{{[0-9]+}}) in (
// CHECK: %[[M:.*]] = pk.block[
// CHECK: scf.for
// CHECK: %[[T:.*]] = pk.load %A[%[[M]],
// CHECK-NEXT: pk.store %[[T]], %A_fetched[%[[M]],
// CHECK-NEXT: }
// CHECK-NEXT: %[[I:.*]] = pk.block_number %[[M]]
// CHECK: pk.raise %A_ready at %{{.*}}[%[[I]]] to
// CHECK: pk.role consumer attributes {derived}
// CHECK: %[[J:.*]] = pk.block_number
// CHECK: pk.wait %A_ready[%[[J]]] for
// CHECK-NEXT: scf.for
// CHECK-NOT: pk.load %A[
// CHECK: pk.load %A_fetched[
pk.kernel @ag(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}, %A_fetched: !pk.private<[M, K], bf16> {pk.name = "A.fetched", pk.scratch}, %A_ready: !pk.signal<[M by 16]> {pk.name = "A.ready"}) attributes {schedule = {}, order = "local_first"} {
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
      %8 = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] {remote = {overlap = "inter_sm", why = "used again along n: fetched once, by a communicator"}} : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %9 = pk.fetch %8 into %A_fetched[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] ready %A_ready : !pk.private<[M, K], bf16>, !pk.signal<[M by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
      %10 = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_3 = pk.mma %9, %10, %acc_2 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_3 : !pk.tile<16x32xf32>
    }
    %11 = pk.cast %acc_1 : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
    pk.store %11, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, N], bf16>
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
pk.kernel @ag(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}, %A_fetched: !pk.private<[M, K], bf16> {pk.name = "A.fetched", pk.scratch}, %A_ready: !pk.signal<[1]> {pk.name = "A.ready"}) attributes {schedule = {overlap = "none"}, order = "local_first"} {
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
      %8 = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] {remote = {overlap = "none", why = "the schedule says so"}} : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %9 = pk.fetch %8 into %A_fetched[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] ready %A_ready : !pk.private<[M, K], bf16>, !pk.signal<[1]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
      %10 = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_3 = pk.mma %9, %10, %acc_2 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_3 : !pk.tile<16x32xf32>
    }
    %11 = pk.cast %acc_1 : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
    pk.store %11, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// A gather lands where its table stands, block by block of the table.
// CHECK-LABEL: pk.kernel @gathered
// CHECK-SAME: %X_fetched: !pk.private<[E, P, H], f32>
// CHECK-SAME: %X_ready: !pk.signal<[E, P by 8]>
// CHECK: pk.role communicator
// CHECK: pk.tasks (%[[E:.*]]) in (
// CHECK: pk.read %count[%[[E]]]
// CHECK: pk.tasks (%{{[0-9]+}}) in (
// CHECK: %[[G:.*]] = pk.gather %X rows
// CHECK-NEXT: pk.store %[[G]], %X_fetched[%[[E]],
// CHECK: pk.raise %X_ready
// CHECK: pk.role consumer
// CHECK-NOT: pk.gather
// CHECK: pk.load %X_fetched[
pk.kernel @gathered(%X: !pk.pgl<[T, H], f32, shard 0> {pk.name = "X"}, %rows: !pk.private<[E, P], i32> {pk.name = "rows"}, %count: !pk.private<[E], i32> {pk.name = "count"}, %Y: !pk.private<[E, P, N, H], f32> {pk.name = "Y"}, %X_fetched: !pk.private<[E, P, H], f32> {pk.name = "X.fetched", pk.scratch}, %X_ready: !pk.signal<[E, P by 8]> {pk.name = "X.ready"}) attributes {schedule = {}, order = "local_first"} {
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
        %10 = pk.gather %X rows %9[%h : !pk.block<H by 16>] {remote = {overlap = "inter_sm", why = "used again along n: fetched once, by a communicator"}} : !pk.pgl<[T, H], f32, shard 0>, !pk.tile<8xi32> -> !pk.tile<8x16xf32>
        %11 = pk.fetch %10 into %X_fetched[%e, %p, %h : index, !pk.block<P by 8>, !pk.block<H by 16>] ready %X_ready : !pk.private<[E, P, H], f32>, !pk.signal<[E, P by 8]>, !pk.tile<8x16xf32> -> !pk.tile<8x16xf32>
        pk.store %11, %Y[%e, %p, %n, %h : index, !pk.block<P by 8>, index, !pk.block<H by 16>] : !pk.tile<8x16xf32>, !pk.private<[E, P, N, H], f32>
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
// CHECK-NEXT: pk.store %[[K]], %K_fetched
// CHECK-NEXT: pk.store %[[V]], %V_fetched
// CHECK: pk.raise %K_V_ready
// CHECK-NOT: pk.role communicator
// CHECK: pk.role consumer
// CHECK: pk.load %Q[
// CHECK: pk.wait %K_V_ready
// CHECK: pk.load %K_fetched
// CHECK-NOT: pk.wait
// CHECK: pk.load %V_fetched
pk.kernel @attention(%Q: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "Q"}, %K: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "K"}, %V: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "V"}, %O: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "O"}, %K_fetched: !pk.private<[S, 16], bf16> {pk.name = "K.fetched", pk.scratch}, %V_fetched: !pk.private<[S, 16], bf16> {pk.name = "V.fetched", pk.scratch}, %K_V_ready: !pk.signal<[S by 16]> {pk.name = "K_V.ready"}) attributes {schedule = {}, order = "local_first"} {
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
        %12 = pk.load %K[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] {remote = {overlap = "inter_sm", why = "used again along q: fetched once, by a communicator"}} : !pk.pgl<[S, 16], bf16, shard 0> -> !pk.tile<16x16xbf16>
        %13 = pk.fetch %12 into %K_fetched[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] ready %K_V_ready : !pk.private<[S, 16], bf16>, !pk.signal<[S by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
        %14 = pk.transpose %13 : !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
        %15 = pk.mma %11, %14, %o : !pk.tile<16x16xbf16>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xf32>
        %16 = pk.cast %15 : !pk.tile<16x16xf32> -> !pk.tile<16x16xbf16>
        %17 = pk.load %V[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] {remote = {overlap = "inter_sm", why = "used again along q: fetched once, by a communicator"}} : !pk.pgl<[S, 16], bf16, shard 0> -> !pk.tile<16x16xbf16>
        %18 = pk.fetch %17 into %V_fetched[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] ready %K_V_ready : !pk.private<[S, 16], bf16>, !pk.signal<[S by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
        %19 = pk.clip %16 axis 1 to %kv fill 0.000000e+00 : bf16 : !pk.tile<16x16xbf16>, !pk.block<S by 16> -> !pk.tile<16x16xbf16>
        %o_5 = pk.mma %19, %18, %o_4 : !pk.tile<16x16xbf16>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xf32>
        scf.yield %o_5 : !pk.tile<16x16xf32>
      }
      scf.yield %o_3 : !pk.tile<16x16xf32>
    }
    %20 = pk.block[%4] : !pk.block<16 by 16>
    %21 = pk.cast %o_1 : !pk.tile<16x16xf32> -> !pk.tile<16x16xbf16>
    pk.store %21, %O[%q, %20 : !pk.block<S by 16>, !pk.block<16 by 16>] : !pk.tile<16x16xbf16>, !pk.pgl<[S, 16], bf16, shard 0>
  }
}

// -----

// Only what the last task of this rank visits, which visits most: where its block is not before the tile's.
// CHECK-LABEL: pk.kernel @masked
// CHECK: pk.role communicator
// CHECK: %[[KV:.*]] = pk.block[%{{.*}}] sharded
// CHECK: %[[OWNER:.*]] = pk.owner %[[KV]]
// CHECK: arith.cmpi ne, %[[OWNER]]
// CHECK-NEXT: scf.if
// CHECK: %[[NUMBER:.*]] = pk.block_index %[[KV]] in <S by 16> sharded
// CHECK-NEXT: %[[INSIDE:.*]] = arith.subi %[[NUMBER]]
// CHECK: %[[COUNT:.*]] = pk.block_count <S by 16> of %[[RANK:.*]] sharded
// CHECK-NEXT: %[[LAST:.*]] = arith.subi %[[COUNT]], %{{.*}}
// CHECK: pk.block[%[[LAST]]] of %[[RANK]] sharded
// CHECK: pk.block[%{{.*}}] of %{{.*}} sharded
// CHECK: arith.floordivsi
// CHECK: %[[NEEDED:.*]] = arith.addi
// CHECK-NEXT: %[[VISITED:.*]] = arith.cmpi slt, %[[INSIDE]], %[[NEEDED]]
// CHECK-NEXT: scf.if %[[VISITED]] {
// CHECK: pk.load %K[
// CHECK: pk.raise %K_V_ready
// CHECK: pk.role consumer
pk.kernel @masked(%Q: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "Q"}, %K: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "K"}, %V: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "V"}, %O: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "O"}, %K_fetched: !pk.private<[S, 16], bf16> {pk.name = "K.fetched", pk.scratch}, %V_fetched: !pk.private<[S, 16], bf16> {pk.name = "V.fetched", pk.scratch}, %K_V_ready: !pk.signal<[S by 16]> {pk.name = "K_V.ready"}) attributes {schedule = {}, order = "local_first"} {
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
        %12 = pk.load %K[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] {remote = {overlap = "inter_sm", why = "used again along q: fetched once, by a communicator"}} : !pk.pgl<[S, 16], bf16, shard 0> -> !pk.tile<16x16xbf16>
        %13 = pk.fetch %12 into %K_fetched[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] ready %K_V_ready local spread 2 visited : !pk.private<[S, 16], bf16>, !pk.signal<[S by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
        %14 = pk.transpose %13 : !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
        %15 = pk.mma %11, %14, %o : !pk.tile<16x16xbf16>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xf32>
        %16 = pk.cast %15 : !pk.tile<16x16xf32> -> !pk.tile<16x16xbf16>
        %17 = pk.load %V[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] {remote = {overlap = "inter_sm", why = "used again along q: fetched once, by a communicator"}} : !pk.pgl<[S, 16], bf16, shard 0> -> !pk.tile<16x16xbf16>
        %18 = pk.fetch %17 into %V_fetched[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] ready %K_V_ready local spread 2 visited : !pk.private<[S, 16], bf16>, !pk.signal<[S by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
        %19 = pk.clip %16 axis 1 to %kv fill 0.000000e+00 : bf16 : !pk.tile<16x16xbf16>, !pk.block<S by 16> -> !pk.tile<16x16xbf16>
        %o_5 = pk.mma %19, %18, %o_4 : !pk.tile<16x16xbf16>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xf32>
        scf.yield %o_5 : !pk.tile<16x16xf32>
      }
      scf.yield %o_3 : !pk.tile<16x16xf32>
    }
    %20 = pk.block[%4] : !pk.block<16 by 16>
    %21 = pk.cast %o_1 : !pk.tile<16x16xf32> -> !pk.tile<16x16xbf16>
    pk.store %21, %O[%q, %20 : !pk.block<S by 16>, !pk.block<16 by 16>] : !pk.tile<16x16xbf16>, !pk.pgl<[S, 16], bf16, shard 0>
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
pk.kernel @shared(%X: !pk.pgl<[K, J], f32, shard 0> {pk.name = "X"}, %Y: !pk.private<[N], f32> {pk.name = "Y"}, %X_fetched: !pk.private<[K, J], f32> {pk.name = "X.fetched", pk.scratch}, %X_ready: !pk.signal<[K]> {pk.name = "X.ready"}) attributes {schedule = {}, order = "local_first"} {
  %0 = pk.dim "N"
  pk.tasks (%n) in (%0) {
    %1 = arith.constant 3 : index
    %2 = arith.constant 0 : index
    %3 = pk.full 0.000000e+00 : f32 : !pk.tile<f32>
    %4 = arith.constant 1 : index
    %5 = arith.constant 4 : index
    %acc = scf.for %6 = %2 to %1 step %4 iter_args(%acc_1 = %3) -> (!pk.tile<f32>) {
      %acc_2 = scf.for %7 = %2 to %5 step %4 iter_args(%acc_3 = %acc_1) -> (!pk.tile<f32>) {
        %8 = pk.load %X[%6, %7 : index, index] {remote = {overlap = "inter_sm", why = "used again along n: fetched once, by a communicator"}} : !pk.pgl<[K, J], f32, shard 0> -> !pk.tile<f32>
        %9 = pk.fetch %8 into %X_fetched[%6, %7 : index, index] ready %X_ready : !pk.private<[K, J], f32>, !pk.signal<[K]>, !pk.tile<f32> -> !pk.tile<f32>
        %acc_4 = pk.add %acc_3, %9 : !pk.tile<f32>
        scf.yield %acc_4 : !pk.tile<f32>
      }
      scf.yield %acc_2 : !pk.tile<f32>
    }
    pk.store %acc, %Y[%n : index] : !pk.tile<f32>, !pk.private<[N], f32>
  }
}

// -----

// A copy engine fetches a whole row of tiles at once, and raises its counter.
// CHECK-LABEL: pk.kernel @ag
// CHECK-SAME: %A_fetched: !pk.private<[M, K], bf16>
// CHECK-SAME: %A_ready: !pk.signal<[M by 16]>
// CHECK: pk.role copy_engine
// CHECK: pk.tasks (%{{[0-9]+}}) in (
// CHECK: %[[M:.*]] = pk.block[
// CHECK-NOT: scf.for
// CHECK: pk.copy %A[%[[M]] : !pk.block<M by 16>] along [0] to %A_fetched[%[[M]] : !pk.block<M by 16>] along [0]
// CHECK-NEXT: %[[I:.*]] = pk.block_number %[[M]]
// CHECK: pk.raise %A_ready at %{{.*}}[%[[I]]] to
// CHECK: pk.role consumer
// CHECK: pk.wait %A_ready
// CHECK-NEXT: scf.for
// CHECK: pk.load %A_fetched[
pk.kernel @ag(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}, %A_fetched: !pk.private<[M, K], bf16> {pk.name = "A.fetched", pk.scratch}, %A_ready: !pk.signal<[M by 16]> {pk.name = "A.ready"}) attributes {schedule = {overlap = "copy_engine"}, order = "local_first"} {
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
      %8 = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] {remote = {overlap = "copy_engine", why = "the schedule says so"}} : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %9 = pk.fetch %8 into %A_fetched[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] ready %A_ready : !pk.private<[M, K], bf16>, !pk.signal<[M by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
      %10 = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_3 = pk.mma %9, %10, %acc_2 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_3 : !pk.tile<16x32xf32>
    }
    %11 = pk.cast %acc_1 : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
    pk.store %11, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// The owner goes through its local rows, and sends each tile to all, the next rank first; it raises the counters of all.
// CHECK-LABEL: pk.kernel @ag
// CHECK-SAME: %A_fetched: !pk.pgl<[M, K], bf16, symmetric> {pk.name = "A.fetched", pk.scratch}
// CHECK: pk.role communicator
// CHECK: %[[R:.*]] = pk.rank
// CHECK: %[[LOCAL_BLOCKS:.*]] = pk.block_count <M by 16> of %[[R]] sharded
// CHECK: pk.tasks (%[[I:.*]]) in (%[[LOCAL_BLOCKS]])
// CHECK: %[[M:.*]] = pk.block[%[[I]]] of %[[R]] sharded
// CHECK: scf.for
// CHECK: %[[T:.*]] = pk.load %A[%[[M]],
// CHECK: scf.for %[[S:.*]] =
// CHECK: %[[N:.*]] = arith.addi %[[S]], %{{.*}}
// CHECK-NEXT: %[[P:.*]] = pk.ring_peer %[[N]]
// CHECK-NEXT: pk.store %[[T]], %A_fetched at %[[P]][%[[M]],
// CHECK: scf.for
// CHECK: %[[Q:.*]] = pk.ring_peer
// CHECK: %[[B:.*]] = pk.block_number %[[M]]
// CHECK: pk.raise %A_ready at %[[Q]][%[[B]]] to
// CHECK: pk.role consumer
// CHECK: pk.wait %A_ready
// CHECK: pk.load %A_fetched[
pk.kernel @ag(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}, %A_fetched: !pk.pgl<[M, K], bf16, symmetric> {pk.name = "A.fetched", pk.scratch}, %A_ready: !pk.signal<[M by 16]> {pk.name = "A.ready"}) attributes {schedule = {transfer = "push"}, order = "local_first"} {
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
      %8 = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] {remote = {overlap = "inter_sm", why = "the schedule lets its owner send it", direction = "push"}} : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %9 = pk.fetch %8 into %A_fetched[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] ready %A_ready : !pk.pgl<[M, K], bf16, symmetric>, !pk.signal<[M by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
      %10 = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_3 = pk.mma %9, %10, %acc_2 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_3 : !pk.tile<16x32xf32>
    }
    %11 = pk.cast %acc_1 : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
    pk.store %11, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, N], bf16>
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
pk.kernel @ag(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}, %A_fetched: !pk.pgl<[M, K], bf16, symmetric> {pk.name = "A.fetched", pk.scratch}, %A_ready: !pk.signal<[1]> {pk.name = "A.ready"}) attributes {schedule = {transfer = "push", overlap = "none"}, order = "local_first"} {
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
      %8 = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] {remote = {overlap = "none", why = "the schedule says so", direction = "push"}} : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %9 = pk.fetch %8 into %A_fetched[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] ready %A_ready : !pk.pgl<[M, K], bf16, symmetric>, !pk.signal<[1]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
      %10 = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_3 = pk.mma %9, %10, %acc_2 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_3 : !pk.tile<16x32xf32>
    }
    %11 = pk.cast %acc_1 : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
    pk.store %11, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// Of a loop over ranks and the blocks of each one's shard, the owner takes the iteration of its rank.
// CHECK-LABEL: pk.kernel @ring
// CHECK: pk.role communicator
// CHECK: %[[R:.*]] = pk.rank
// CHECK-NOT: pk.ring_peer
// CHECK: %[[LOCAL_BLOCKS:.*]] = pk.block_count <S by 16> of %[[R]] sharded
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[LOCAL_BLOCKS]]
// CHECK: %[[KV:.*]] = pk.block[%[[I]]] of %[[R]] sharded
// CHECK: pk.load %K[%[[KV]],
// CHECK: pk.ring_peer
// CHECK-NEXT: pk.store {{.*}} %K_fetched at
pk.kernel @ring(%K: !pk.pgl<[S, 16], f32, shard 0> {pk.name = "K"}, %O: !pk.private<[L, 16], f32> {pk.name = "O"}, %K_fetched: !pk.pgl<[S, 16], f32, symmetric> {pk.name = "K.fetched", pk.scratch}, %K_ready: !pk.signal<[S by 16]> {pk.name = "K.ready"}) attributes {schedule = {transfer = "push"}, order = "local_first"} {
  %0 = pk.dim "L"
  pk.tasks (%l) in (%0) {
    %1 = arith.constant 0 : index
    %2 = arith.constant 1 : index
    %ranks = pk.dim "ranks"
    %d = pk.block[%1] : !pk.block<16 by 16>
    %o = pk.full 0.000000e+00 : f32 : !pk.tile<16xf32>
    %o_1 = scf.for %s = %1 to %ranks step %2 iter_args(%o_2 = %o) -> (!pk.tile<16xf32>) {
      %r = pk.ring_peer %s
      %n = pk.block_count <S by 16> of %r sharded
      %o_3 = scf.for %i = %1 to %n step %2 iter_args(%o_4 = %o_2) -> (!pk.tile<16xf32>) {
        %kv = pk.block[%i] of %r sharded : !pk.block<S by 16>
        %k = pk.load %K[%kv, %d : !pk.block<S by 16>, !pk.block<16 by 16>] {remote = {overlap = "inter_sm", why = "the schedule lets its owner send it", direction = "push"}} : !pk.pgl<[S, 16], f32, shard 0> -> !pk.tile<16x16xf32>
        %k_1 = pk.fetch %k into %K_fetched[%kv, %d : !pk.block<S by 16>, !pk.block<16 by 16>] ready %K_ready : !pk.pgl<[S, 16], f32, symmetric>, !pk.signal<[S by 16]>, !pk.tile<16x16xf32> -> !pk.tile<16x16xf32>
        %t = pk.transpose %k_1 : !pk.tile<16x16xf32> -> !pk.tile<16x16xf32>
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

// Tasks that run splits of the loop: what is done for every split is done once for all iterations.
// CHECK-LABEL: pk.kernel @splits
// CHECK-SAME: %A_ready: !pk.signal<[M by 16]> {pk.name = "A.ready"}
// CHECK: pk.role communicator
// CHECK: pk.tasks (%{{[a-z0-9]+}}) in (
// CHECK-NOT: arith.divsi
// CHECK: %[[STEPS:.*]] = pk.block_count <K by 16>
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[STEPS]] step
// CHECK: pk.load %A[
// CHECK: pk.raise %A_ready
// CHECK: pk.role consumer attributes {derived}
// CHECK: pk.tasks (%{{.*}}, %{{.*}}, %{{.*}}) in (
// CHECK: pk.wait %A_ready[
// CHECK: scf.for %{{.*}} = %first to %last step
// CHECK: pk.load %A_fetched[
pk.kernel @splits(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[4, M, N], f32> {pk.name = "C"}, %A_fetched: !pk.private<[M, K], bf16> {pk.name = "A.fetched", pk.scratch}, %A_ready: !pk.signal<[M by 16]> {pk.name = "A.ready"}) attributes {schedule = {}, order = "local_first"} {
  %rows = pk.block_count <M by 16> sharded
  %columns = pk.block_count <N by 32>
  %four = arith.constant 4 : index
  pk.tasks (%i, %j, %s) in (%rows, %columns, %four) {
    %m = pk.block[%i] sharded : !pk.block<M by 16>
    %n = pk.block[%j] : !pk.block<N by 32>
    %zeros = pk.full 0.000000e+00 : f32 : !pk.tile<16x32xf32>
    %steps = pk.block_count <K by 16>
    %one = arith.constant 1 : index
    %following = arith.addi %s, %one : index
    %before = arith.muli %steps, %s : index
    %first = arith.divsi %before, %four : index
    %until = arith.muli %steps, %following : index
    %last = arith.divsi %until, %four : index
    %acc = scf.for %t = %first to %last step %one iter_args(%sum = %zeros) -> (!pk.tile<16x32xf32>) {
      %k = pk.block[%t] : !pk.block<K by 16>
      %a = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] {remote = {overlap = "inter_sm", why = "used again along n: fetched once, by a communicator"}} : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %a_1 = pk.fetch %a into %A_fetched[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] ready %A_ready : !pk.private<[M, K], bf16>, !pk.signal<[M by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
      %b = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %next = pk.mma %a_1, %b, %sum : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %next : !pk.tile<16x32xf32>
    }
    pk.store %acc, %C[%s, %m, %n : index, !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xf32>, !pk.private<[4, M, N], f32>
  }
}

// -----

// A block that straddles shards is fetched shard by shard; it is awaited for as many copies as overlap it.
// CHECK-LABEL: pk.kernel @across
// CHECK-SAME: %A_ready: !pk.signal<[M by 16]>
// CHECK: pk.role communicator
// CHECK: pk.block_count <M by 16> sharded
// CHECK: %m = pk.block[%{{.*}}] sharded
// CHECK: pk.load %A[%m,
// CHECK: pk.store {{.*}} %A_fetched[%m,
// CHECK: %[[FIRST:.*]] = pk.block_index %m in <M by 16> : !pk.block<M by 16>
// CHECK-NEXT: %[[LAST:.*]] = pk.block_index last %m in <M by 16> : !pk.block<M by 16>
// CHECK: %[[STOP:.*]] = arith.addi %[[LAST]],
// CHECK: scf.for %[[OVERLAPPED:.*]] = %[[FIRST]] to %[[STOP]]
// CHECK-NEXT: %[[BLOCK:.*]] = pk.block[%[[OVERLAPPED]]] : !pk.block<M by 16>
// CHECK-NEXT: %[[NUMBER:.*]] = pk.block_number %[[BLOCK]]
// CHECK: pk.signal %A_ready at %{{.*}}[%[[NUMBER]]] by
// CHECK: pk.role consumer
// CHECK: %m_1 = pk.block[%{{.*}}] : !pk.block<M by 16>
// CHECK: %[[BEGIN:.*]] = pk.block_index %m_1 in <M by 16> sharded
// CHECK-NEXT: %[[LAST2:.*]] = pk.block_index last %m_1 in <M by 16> sharded
// CHECK: %[[END:.*]] = arith.addi %[[LAST2]],
// CHECK-NEXT: %[[PIECES:.*]] = arith.subi %[[END]], %[[BEGIN]]
// CHECK-NEXT: pk.wait %A_ready[%{{.*}}] for %[[PIECES]]
// CHECK: pk.load %A_fetched[%m_1,
pk.kernel @across(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}, %A_fetched: !pk.private<[M, K], bf16> {pk.name = "A.fetched", pk.scratch}, %A_ready: !pk.signal<[M by 16]> {pk.name = "A.ready"}) attributes {schedule = {straddle = true}, order = "local_first"} {
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
      %8 = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] {remote = {overlap = "inter_sm", why = "used again along n: fetched once, by a communicator"}} : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %9 = pk.fetch %8 into %A_fetched[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] ready %A_ready : !pk.private<[M, K], bf16>, !pk.signal<[M by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
      %10 = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_3 = pk.mma %9, %10, %acc_2 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_3 : !pk.tile<16x32xf32>
    }
    %11 = pk.cast %acc_1 : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
    pk.store %11, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// CTAs share the copies of a row, and each tile is signalled: to a counter of its group, and none for a local shard. The
// first groups of 16 rows come before the second ones. The reader waits at the first tile of each group; the last one
// may have fewer.
// CHECK-LABEL: pk.kernel @groups
// CHECK-SAME: %A_ready: !pk.signal<[M by 16, K by 4096]>
// CHECK: pk.role communicator
// CHECK: %[[STEPS:.*]] = pk.block_count <K by 16>
// CHECK: pk.tasks (%[[I:.*]], %[[S:.*]]) in (%{{.*}}, %[[STEPS]]) attributes {in_order = 1 : i64, raster = 16 : i64} {
// CHECK: %[[OWNER:.*]] = pk.owner %[[M:.*]] : !pk.block<M by 16>
// CHECK: %[[FOREIGN:.*]] = arith.cmpi ne, %[[OWNER]], %{{.*}} : index
// CHECK-NEXT: scf.if %[[FOREIGN]] {
// CHECK-NEXT: %[[T:.*]] = pk.load %A[%[[M]],
// CHECK-NEXT: pk.store %[[T]], %A_fetched[%[[M]],
// CHECK-NEXT: %[[ROW:.*]] = pk.block_number %[[M]]
// CHECK: %[[GROUP:.*]] = arith.divsi %[[S]],
// CHECK-NEXT: pk.signal %A_ready at %{{.*}}[%[[ROW]], %[[GROUP]]] by
// CHECK: pk.role consumer
// CHECK: %[[LOCAL:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : index
// CHECK-NOT: pk.wait
// CHECK: scf.for %[[STEP:.*]] = %{{.*}} to %[[END:.*]] step
// CHECK: %[[GROUP:.*]] = arith.divsi %[[STEP]], %[[MANY:.*]] : index
// CHECK: %[[BEGINS:.*]] = arith.cmpi eq,
// CHECK: %[[FOREIGN:.*]] = arith.xori %[[LOCAL]],
// CHECK-NEXT: %[[WAITS:.*]] = arith.andi %[[BEGINS]], %[[FOREIGN]] : i1
// CHECK-NEXT: scf.if %[[WAITS]] {
// CHECK-NEXT: %[[LEFT:.*]] = arith.subi %[[END]], %[[STEP]]
// CHECK-NEXT: %[[NEEDED:.*]] = arith.minsi %[[LEFT]], %[[MANY]]
// CHECK-NEXT: pk.wait %A_ready[%{{.*}}, %[[GROUP]]] for %[[NEEDED]]
// CHECK: pk.load %A_fetched local %A
pk.kernel @groups(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}, %A_fetched: !pk.private<[M, K], bf16> {pk.name = "A.fetched", pk.scratch}, %A_ready: !pk.signal<[M by 16]> {pk.name = "A.ready"}) attributes {schedule = {}, order = "local_first"} {
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
      %8 = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] {remote = {overlap = "inter_sm", why = "used again along n: fetched once, by a communicator"}} : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %9 = pk.fetch %8 into %A_fetched[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] ready %A_ready local spread 1 group 256 : !pk.private<[M, K], bf16>, !pk.signal<[M by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
      %10 = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_3 = pk.mma %9, %10, %acc_2 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_3 : !pk.tile<16x32xf32>
    }
    %11 = pk.cast %acc_1 : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
    pk.store %11, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// CTAs share the copies of a row that is awaited as a whole: for as many signals as it has tiles.
// CHECK-LABEL: pk.kernel @spread
// CHECK-SAME: %A_ready: !pk.signal<[M by 16]>
// CHECK: pk.role communicator
// CHECK: pk.tasks (%{{.*}}, %{{.*}}) in (
// CHECK-NOT: scf.for
// CHECK-NOT: scf.if
// CHECK: pk.signal %A_ready at
// CHECK: pk.role consumer
// CHECK: %[[COUNT:.*]] = arith.muli
// CHECK-NEXT: pk.wait %A_ready[%{{.*}}] for %[[COUNT]]
// CHECK-NEXT: scf.for
pk.kernel @spread(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}, %A_fetched: !pk.private<[M, K], bf16> {pk.name = "A.fetched", pk.scratch}, %A_ready: !pk.signal<[M by 16]> {pk.name = "A.ready"}) attributes {schedule = {}, order = "local_first"} {
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
      %8 = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] {remote = {overlap = "inter_sm", why = "used again along n: fetched once, by a communicator"}} : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %9 = pk.fetch %8 into %A_fetched[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] ready %A_ready spread 1 : !pk.private<[M, K], bf16>, !pk.signal<[M by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
      %10 = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_3 = pk.mma %9, %10, %acc_2 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_3 : !pk.tile<16x32xf32>
    }
    %11 = pk.cast %acc_1 : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
    pk.store %11, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// The local shard stays where it is: the rest comes in a loop, and only for others something is awaited.
// CHECK-LABEL: pk.kernel @local
// CHECK: pk.role communicator
// CHECK: pk.tasks (%{{[0-9]+}}) in (
// CHECK: scf.if %{{.*}} {
// CHECK: scf.for
// CHECK: pk.store
// CHECK: }
// CHECK: pk.raise %A_ready
// CHECK: }
// CHECK: pk.role consumer
// CHECK: %[[IS_LOCAL:.*]] = arith.cmpi eq
// CHECK: %[[NEEDED:.*]] = arith.select %[[IS_LOCAL]],
// CHECK-NEXT: pk.wait %A_ready[%{{.*}}] for %[[NEEDED]]
// CHECK: pk.load %A_fetched local %A
pk.kernel @local(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}, %A_fetched: !pk.private<[M, K], bf16> {pk.name = "A.fetched", pk.scratch}, %A_ready: !pk.signal<[M by 16]> {pk.name = "A.ready"}) attributes {schedule = {}, order = "local_first"} {
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
      %8 = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] {remote = {overlap = "inter_sm", why = "used again along n: fetched once, by a communicator"}} : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %9 = pk.fetch %8 into %A_fetched[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] ready %A_ready local : !pk.private<[M, K], bf16>, !pk.signal<[M by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
      %10 = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_3 = pk.mma %9, %10, %acc_2 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_3 : !pk.tile<16x32xf32>
    }
    %11 = pk.cast %acc_1 : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
    pk.store %11, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// A copy engine copies boxes of other ranks only.
// CHECK-LABEL: pk.kernel @engine
// CHECK: pk.role copy_engine
// CHECK: scf.if %{{.*}} {
// CHECK-NEXT: pk.copy %A[
// CHECK: pk.raise %A_ready
// CHECK: pk.role consumer
// CHECK: pk.load %A_fetched local %A
pk.kernel @engine(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}, %A_fetched: !pk.private<[M, K], bf16> {pk.name = "A.fetched", pk.scratch}, %A_ready: !pk.signal<[M by 16]> {pk.name = "A.ready"}) attributes {schedule = {overlap = "copy_engine"}, order = "local_first"} {
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
      %8 = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] {remote = {overlap = "copy_engine", why = "the schedule says so"}} : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %9 = pk.fetch %8 into %A_fetched[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] ready %A_ready local : !pk.private<[M, K], bf16>, !pk.signal<[M by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
      %10 = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_3 = pk.mma %9, %10, %acc_2 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_3 : !pk.tile<16x32xf32>
    }
    %11 = pk.cast %acc_1 : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
    pk.store %11, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// The loops over ranks and over the blocks of each become one over all blocks, each a task. K and V of a block come
// together, unless they are local.
// CHECK-LABEL: pk.kernel @attention
// CHECK: pk.role communicator
// CHECK: %[[ALL:.*]] = pk.block_count <S by 16> sharded
// CHECK-NEXT: pk.tasks (%[[I:.*]]) in (%[[ALL]]) {
// CHECK: %[[B:.*]] = pk.block[%[[I]]] sharded : !pk.block<S by 16>
// CHECK: pk.owner %[[B]]
// CHECK: scf.if
// CHECK: pk.store %{{.*}}, %K_fetched[%[[B]],
// CHECK: pk.store %{{.*}}, %V_fetched[%[[B]],
// CHECK: pk.raise %K_V_ready
// CHECK-NOT: pk.role communicator
// CHECK: pk.role consumer
// CHECK: pk.wait %K_V_ready
// CHECK: pk.load %K_fetched local %K
// CHECK-NOT: pk.wait
// CHECK: pk.load %V_fetched local %V
pk.kernel @attention(%Q: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "Q"}, %K: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "K"}, %V: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "V"}, %O: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "O"}, %K_fetched: !pk.private<[S, 16], bf16> {pk.name = "K.fetched", pk.scratch}, %V_fetched: !pk.private<[S, 16], bf16> {pk.name = "V.fetched", pk.scratch}, %K_V_ready: !pk.signal<[S by 16]> {pk.name = "K_V.ready"}) attributes {schedule = {}, order = "local_first"} {
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
        %12 = pk.load %K[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] {remote = {overlap = "inter_sm", why = "used again along q: fetched once, by a communicator"}} : !pk.pgl<[S, 16], bf16, shard 0> -> !pk.tile<16x16xbf16>
        %13 = pk.fetch %12 into %K_fetched[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] ready %K_V_ready local spread 2 : !pk.private<[S, 16], bf16>, !pk.signal<[S by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
        %14 = pk.transpose %13 : !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
        %15 = pk.mma %11, %14, %o : !pk.tile<16x16xbf16>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xf32>
        %16 = pk.cast %15 : !pk.tile<16x16xf32> -> !pk.tile<16x16xbf16>
        %17 = pk.load %V[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] {remote = {overlap = "inter_sm", why = "used again along q: fetched once, by a communicator"}} : !pk.pgl<[S, 16], bf16, shard 0> -> !pk.tile<16x16xbf16>
        %18 = pk.fetch %17 into %V_fetched[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] ready %K_V_ready local spread 2 : !pk.private<[S, 16], bf16>, !pk.signal<[S by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
        %19 = pk.clip %16 axis 1 to %kv fill 0.000000e+00 : bf16 : !pk.tile<16x16xbf16>, !pk.block<S by 16> -> !pk.tile<16x16xbf16>
        %o_5 = pk.mma %19, %18, %o_4 : !pk.tile<16x16xbf16>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xf32>
        scf.yield %o_5 : !pk.tile<16x16xf32>
      }
      scf.yield %o_3 : !pk.tile<16x16xf32>
    }
    %20 = pk.block[%4] : !pk.block<16 by 16>
    %21 = pk.cast %o_1 : !pk.tile<16x16xf32> -> !pk.tile<16x16xbf16>
    pk.store %21, %O[%q, %20 : !pk.block<S by 16>, !pk.block<16 by 16>] : !pk.tile<16x16xbf16>, !pk.pgl<[S, 16], bf16, shard 0>
  }
}

// -----

// Both loops that read a row wait for its groups; it comes once.
// CHECK-LABEL: pk.kernel @twice
// CHECK: pk.role communicator
// CHECK-NOT: pk.role communicator
// CHECK: pk.role consumer
// CHECK: scf.for
// CHECK: pk.wait %A_ready
// CHECK: pk.load %A_fetched local %A
// CHECK: scf.for
// CHECK: pk.wait %A_ready
// CHECK: pk.load %A_fetched local %A
pk.kernel @twice(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}, %A_fetched: !pk.private<[M, K], bf16> {pk.name = "A.fetched", pk.scratch}, %A_ready: !pk.signal<[M by 16]> {pk.name = "A.ready"}) attributes {schedule = {}, order = "local_first"} {
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
      %8 = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] {remote = {overlap = "inter_sm", why = "used again along n: fetched once, by a communicator"}} : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %9 = pk.fetch %8 into %A_fetched[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] ready %A_ready local spread 1 group 256 : !pk.private<[M, K], bf16>, !pk.signal<[M by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
      %10 = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_3 = pk.mma %9, %10, %acc_2 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_3 : !pk.tile<16x32xf32>
    }
    %acc_4 = scf.for %11 = %5 to %4 step %6 iter_args(%acc_5 = %acc_1) -> (!pk.tile<16x32xf32>) {
      %k_1 = pk.block[%11] : !pk.block<K by 16>
      %12 = pk.load %A[%m, %k_1 : !pk.block<M by 16>, !pk.block<K by 16>] {remote = {overlap = "inter_sm", why = "used again along n: fetched once, by a communicator"}} : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %13 = pk.fetch %12 into %A_fetched[%m, %k_1 : !pk.block<M by 16>, !pk.block<K by 16>] ready %A_ready local spread 1 group 256 : !pk.private<[M, K], bf16>, !pk.signal<[M by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
      %14 = pk.load %B[%k_1, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_6 = pk.mma %13, %14, %acc_5 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_6 : !pk.tile<16x32xf32>
    }
    %15 = pk.cast %acc_4 : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
    pk.store %15, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// A task that goes through a split of the tiles may begin inside a group: it waits there too, for the whole group.
// CHECK-LABEL: pk.kernel @splits
// CHECK: pk.role consumer
// CHECK: scf.for %[[STEP:.*]] = %[[FIRST:.*]] to %{{.*}} step
// CHECK: %[[GROUP:.*]] = arith.divsi %[[STEP]], %[[MANY:.*]] : index
// CHECK: %[[BEGINS:.*]] = arith.cmpi eq
// CHECK-NEXT: %[[ENTERS:.*]] = arith.cmpi eq, %[[STEP]], %[[FIRST]] : index
// CHECK-NEXT: %[[EITHER:.*]] = arith.ori %[[BEGINS]], %[[ENTERS]] : i1
// CHECK: scf.if
// CHECK-NEXT: %[[START:.*]] = arith.muli %[[GROUP]], %[[MANY]]
// CHECK-NEXT: %[[LEFT:.*]] = arith.subi %{{.*}}, %[[START]]
// CHECK-NEXT: %[[NEEDED:.*]] = arith.minsi %[[LEFT]], %[[MANY]]
// CHECK-NEXT: pk.wait %A_ready[%{{.*}}, %[[GROUP]]] for %[[NEEDED]]
pk.kernel @splits(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[4, M, N], f32> {pk.name = "C"}, %A_fetched: !pk.private<[M, K], bf16> {pk.name = "A.fetched", pk.scratch}, %A_ready: !pk.signal<[M by 16]> {pk.name = "A.ready"}) attributes {schedule = {}, order = "local_first"} {
  %rows = pk.block_count <M by 16> sharded
  %columns = pk.block_count <N by 32>
  %four = arith.constant 4 : index
  pk.tasks (%i, %j, %s) in (%rows, %columns, %four) {
    %m = pk.block[%i] sharded : !pk.block<M by 16>
    %n = pk.block[%j] : !pk.block<N by 32>
    %zeros = pk.full 0.000000e+00 : f32 : !pk.tile<16x32xf32>
    %steps = pk.block_count <K by 16>
    %one = arith.constant 1 : index
    %following = arith.addi %s, %one : index
    %before = arith.muli %steps, %s : index
    %first = arith.divsi %before, %four : index
    %until = arith.muli %steps, %following : index
    %last = arith.divsi %until, %four : index
    %acc = scf.for %t = %first to %last step %one iter_args(%sum = %zeros) -> (!pk.tile<16x32xf32>) {
      %k = pk.block[%t] : !pk.block<K by 16>
      %a = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] {remote = {overlap = "inter_sm", why = "used again along n: fetched once, by a communicator"}} : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %a_1 = pk.fetch %a into %A_fetched[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] ready %A_ready local spread 1 group 256 : !pk.private<[M, K], bf16>, !pk.signal<[M by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
      %b = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %next = pk.mma %a_1, %b, %sum : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %next : !pk.tile<16x32xf32>
    }
    pk.store %acc, %C[%s, %m, %n : index, !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xf32>, !pk.private<[4, M, N], f32>
  }
}

// -----

// Pieces of a block that straddles shards: as many signals for each tile as there are pieces.
// CHECK-LABEL: pk.kernel @across
// CHECK-SAME: %A_ready: !pk.signal<[M by 16, K by 4096]>
// CHECK: pk.role communicator
// CHECK: scf.for
// CHECK: pk.signal %A_ready at
// CHECK: pk.role consumer
// CHECK: %[[PIECES:.*]] = arith.subi
// CHECK: scf.for
// CHECK: %[[TILES:.*]] = arith.minsi
// CHECK-NEXT: %[[ALL:.*]] = arith.muli %[[PIECES]], %[[TILES]]
// CHECK-NEXT: pk.wait %A_ready[%{{.*}}, %{{.*}}] for %[[ALL]]
pk.kernel @across(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}, %A_fetched: !pk.private<[M, K], bf16> {pk.name = "A.fetched", pk.scratch}, %A_ready: !pk.signal<[M by 16]> {pk.name = "A.ready"}) attributes {schedule = {straddle = true}, order = "local_first"} {
  %0 = pk.block_count <M by 16> sharded
  %1 = pk.block_count <N by 32>
  %2 = pk.block_count <M by 16>
  pk.tasks (%3, %4) in (%2, %1) {
    %m = pk.block[%3] : !pk.block<M by 16>
    %n = pk.block[%4] : !pk.block<N by 32>
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<16x32xf32>
    %5 = pk.block_count <K by 16>
    %6 = arith.constant 0 : index
    %7 = arith.constant 1 : index
    %acc_1 = scf.for %8 = %6 to %5 step %7 iter_args(%acc_2 = %acc) -> (!pk.tile<16x32xf32>) {
      %k = pk.block[%8] : !pk.block<K by 16>
      %9 = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] {remote = {overlap = "inter_sm", why = "used again along n: fetched once, by a communicator"}} : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %10 = pk.fetch %9 into %A_fetched[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] ready %A_ready spread 1 group 256 : !pk.private<[M, K], bf16>, !pk.signal<[M by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
      %11 = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_3 = pk.mma %10, %11, %acc_2 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_3 : !pk.tile<16x32xf32>
    }
    %12 = pk.cast %acc_1 : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
    pk.store %12, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// Blocks of a shard that are awaited together are one longer block, whose counter counts them; the last may be of fewer.
// CHECK-LABEL: pk.kernel @attention
// CHECK-SAME: %K_V_ready: !pk.signal<[S by 2048]>
// CHECK: pk.role communicator
// CHECK: %[[KV:.*]] = pk.block[%{{.*}}] sharded : !pk.block<S by 16>
// CHECK: %[[FOREIGN:.*]] = arith.cmpi ne,
// CHECK-NEXT: scf.if %[[FOREIGN]] {
// CHECK: %[[GROUP:.*]] = pk.block_index %[[KV]] in <S by 2048> sharded
// CHECK: pk.signal %K_V_ready at %{{.*}}[%[[GROUP]]] by
// CHECK: pk.role consumer
// CHECK: %[[PEER:.*]] = pk.ring_peer
// CHECK: %[[COUNT:.*]] = pk.block_count <S by 16> of %[[PEER]] sharded
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[COUNT]] step
// CHECK: %[[KV:.*]] = pk.block[%[[I]]] of %[[PEER]] sharded
// CHECK: %[[INSIDE:.*]] = arith.remsi %[[I]], %[[MANY:.*]] : index
// CHECK: arith.cmpi eq, %[[INSIDE]],
// CHECK: scf.if
// CHECK-NEXT: %[[GROUP:.*]] = pk.block_index %[[KV]] in <S by 2048> sharded
// CHECK-NEXT: %[[LEFT:.*]] = arith.subi %[[COUNT]], %[[I]] : index
// CHECK-NEXT: %[[NEEDED:.*]] = arith.minsi %[[LEFT]], %[[MANY]] : index
// CHECK-NEXT: pk.wait %K_V_ready[%[[GROUP]]] for %[[NEEDED]]
// CHECK: pk.load %K_fetched local %K
pk.kernel @attention(%Q: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "Q"}, %K: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "K"}, %V: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "V"}, %O: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "O"}, %K_fetched: !pk.private<[S, 16], bf16> {pk.name = "K.fetched", pk.scratch}, %V_fetched: !pk.private<[S, 16], bf16> {pk.name = "V.fetched", pk.scratch}, %K_V_ready: !pk.signal<[S by 16]> {pk.name = "K_V.ready"}) attributes {schedule = {}, order = "local_first"} {
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
        %12 = pk.load %K[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] {remote = {overlap = "inter_sm", why = "used again along q: fetched once, by a communicator"}} : !pk.pgl<[S, 16], bf16, shard 0> -> !pk.tile<16x16xbf16>
        %13 = pk.fetch %12 into %K_fetched[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] ready %K_V_ready local spread 2 group 128 : !pk.private<[S, 16], bf16>, !pk.signal<[S by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
        %14 = pk.transpose %13 : !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
        %15 = pk.mma %11, %14, %o : !pk.tile<16x16xbf16>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xf32>
        %16 = pk.cast %15 : !pk.tile<16x16xf32> -> !pk.tile<16x16xbf16>
        %17 = pk.load %V[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] {remote = {overlap = "inter_sm", why = "used again along q: fetched once, by a communicator"}} : !pk.pgl<[S, 16], bf16, shard 0> -> !pk.tile<16x16xbf16>
        %18 = pk.fetch %17 into %V_fetched[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] ready %K_V_ready local spread 2 group 128 : !pk.private<[S, 16], bf16>, !pk.signal<[S by 16]>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
        %19 = pk.clip %16 axis 1 to %kv fill 0.000000e+00 : bf16 : !pk.tile<16x16xbf16>, !pk.block<S by 16> -> !pk.tile<16x16xbf16>
        %o_5 = pk.mma %19, %18, %o_4 : !pk.tile<16x16xbf16>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xf32>
        scf.yield %o_5 : !pk.tile<16x16xf32>
      }
      scf.yield %o_3 : !pk.tile<16x16xf32>
    }
    %20 = pk.block[%4] : !pk.block<16 by 16>
    %21 = pk.cast %o_1 : !pk.tile<16x16xf32> -> !pk.tile<16x16xbf16>
    pk.store %21, %O[%q, %20 : !pk.block<S by 16>, !pk.block<16 by 16>] : !pk.tile<16x16xbf16>, !pk.pgl<[S, 16], bf16, shard 0>
  }
}
