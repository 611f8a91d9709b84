// Tasks become roles, joined by channels.
// RUN: pkc-opt %s -p pk-assign-roles,pk-split-roles --split-input-file --verify-diagnostics | filecheck %s

// Two operands share the stages of a loop; the result has a separate stage.
// CHECK-LABEL: pk.kernel @ag
// CHECK: %[[IN:.*]] = pk.channel "A, B" stages 1 : !pk.channel<!pk.tile<16x16xbf16>, !pk.tile<16x32xbf16>>
// CHECK-NEXT: %[[OUT:.*]] = pk.channel "cast" stages 1 : !pk.channel<!pk.tile<16x32xbf16>>
// CHECK: pk.role loader {
// CHECK: pk.tasks {{.*}} attributes {per_cta}
// CHECK-NOT: iter_args
// CHECK: pk.acquire %[[IN]]
// CHECK-NEXT: %[[A:.*]] = pk.load %A
// CHECK-NEXT: %[[B:.*]] = pk.load %B
// CHECK-NEXT: pk.commit %[[IN]], %[[A]], %[[B]]
// CHECK: pk.role consumer {
// CHECK: scf.for {{.*}} iter_args
// CHECK: %[[C:.*]], %[[D:.*]] = pk.consume %[[IN]]
// CHECK-NEXT: pk.mma %[[C]], %[[D]]
// CHECK-NEXT: pk.release %[[IN]]
// CHECK: pk.acquire %[[OUT]]
// CHECK-NEXT: %[[R:.*]] = pk.cast
// CHECK-NEXT: pk.commit %[[OUT]], %[[R]]
// CHECK: pk.role storer {
// CHECK-NOT: scf.for
// CHECK: %[[S:.*]] = pk.consume %[[OUT]]
// CHECK-NEXT: pk.store %[[S]], %C
// CHECK-NEXT: pk.release %[[OUT]]
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

// Two tiles of a task that a loop uses all the time have stages of their own, so that results may leave in them.
// CHECK-LABEL: pk.kernel @kept
// CHECK: pk.channel "K" stages 1 : !pk.channel<!pk.tile<16x16xbf16>>
// CHECK-NEXT: %{{.*}} = pk.channel "V" stages 1 : !pk.channel<!pk.tile<16x16xbf16>>
// CHECK: pk.channel "Q" stages 1 : !pk.channel<!pk.tile<16x16xbf16>>
pk.kernel @kept(%K: !pk.private<[T, 16], bf16> {pk.name = "K"}, %V: !pk.private<[T, 16], bf16> {pk.name = "V"}, %Q: !pk.private<[S, 16], bf16> {pk.name = "Q"}, %C: !pk.private<[T, 16], f32> {pk.name = "C"}) attributes {schedule = {}} {
  %0 = pk.block_count <T by 16>
  pk.tasks (%1) in (%0) {
    %t = pk.block[%1] : !pk.block<T by 16>
    %2 = arith.constant 0 : index
    %3 = arith.constant 1 : index
    %4 = pk.block_count <S by 16>
    %d = pk.block[%2] : !pk.block<16 by 16>
    %5 = pk.load %K[%t, %d : !pk.block<T by 16>, !pk.block<16 by 16>] : !pk.private<[T, 16], bf16> -> !pk.tile<16x16xbf16>
    %6 = pk.load %V[%t, %d : !pk.block<T by 16>, !pk.block<16 by 16>] : !pk.private<[T, 16], bf16> -> !pk.tile<16x16xbf16>
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<16x16xf32>
    %7 = scf.for %8 = %2 to %4 step %3 iter_args(%acc_1 = %acc) -> (!pk.tile<16x16xf32>) {
      %s = pk.block[%8] : !pk.block<S by 16>
      %9 = pk.load %Q[%s, %d : !pk.block<S by 16>, !pk.block<16 by 16>] : !pk.private<[S, 16], bf16> -> !pk.tile<16x16xbf16>
      %acc_2 = pk.mma %5, %9, %acc_1 : !pk.tile<16x16xbf16>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xf32>
      %acc_3 = pk.mma %6, %9, %acc_2 : !pk.tile<16x16xbf16>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xf32>
      scf.yield %acc_3 : !pk.tile<16x16xf32>
    }
    pk.store %7, %C[%t, %d : !pk.block<T by 16>, !pk.block<16 by 16>] : !pk.tile<16x16xf32>, !pk.private<[T, 16], f32>
  }
}

// -----

// From the loader to the storer; no consumer.
// CHECK-LABEL: pk.kernel @spread
// CHECK: pk.role loader
// CHECK-NOT: pk.role consumer
// CHECK: pk.role storer
pk.kernel @spread(%X: !pk.pgl<[M, N], f32, shard 0> {pk.name = "X"}, %Y: !pk.pgl<[M, N], f32, replicate> {pk.name = "Y"}) attributes {schedule = {}} {
  %0 = pk.rank
  %1 = pk.block_count <M by 16> of %0 sharded
  %2 = pk.block_count <N by 16>
  pk.tasks (%3, %4) in (%1, %2) {
    %m = pk.block[%3] of %0 sharded : !pk.block<M by 16>
    %n = pk.block[%4] : !pk.block<N by 16>
    %5 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<16x16xf32>
    pk.store %5, %Y[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xf32>, !pk.pgl<[M, N], f32, replicate>
  }
}

// -----

// Nested tasks; the inner count is read by both roles. Rows are fetched in a loop, so their stages go round.
// CHECK-LABEL: pk.kernel @gathered
// CHECK: pk.channel "X" stages 1
// CHECK: pk.role loader
// CHECK: pk.tasks {{.*}} attributes {per_cta}
// CHECK: pk.read %count
// CHECK: pk.tasks {{.*}} attributes {per_cta}
// CHECK: pk.load %rows
// CHECK: pk.gather
// CHECK: pk.role storer
// CHECK: pk.tasks {{.*}} attributes {per_cta}
// CHECK: pk.read %count
// CHECK: pk.tasks {{.*}} attributes {per_cta}
// CHECK-NOT: pk.load
// CHECK: pk.store
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

// Tiles that are first used together share a channel, transposed or not; those that are not have separate ones.
// CHECK-LABEL: pk.kernel @attention
// CHECK: pk.channel "Q, K" stages 1
// CHECK: pk.channel "V" stages
// CHECK: pk.role loader
// CHECK: pk.load %Q
// CHECK: pk.load %K
// CHECK: pk.commit
// CHECK: pk.load %V
// CHECK: pk.commit
// CHECK: pk.role consumer
// CHECK: pk.consume
// CHECK-NEXT: pk.transpose
// CHECK-NEXT: pk.mma
// CHECK-NEXT: pk.release
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

// The loader and the consumer branch alike; the branch that loads nothing stays empty.
// CHECK-LABEL: pk.kernel @guarded
// CHECK: pk.role loader
// CHECK: pk.read %T
// CHECK: scf.if
// CHECK: pk.acquire
// CHECK: pk.commit
// CHECK: pk.role consumer
// CHECK: scf.if {{.*}} -> (!pk.tile<16xf32>)
// CHECK: pk.consume
// CHECK-NEXT: pk.mul
// CHECK: pk.release
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

// The loader carries the index, the consumer the sum.
// CHECK-LABEL: pk.kernel @carried
// CHECK: pk.role loader
// CHECK: iter_args(%{{[a-z0-9_]+}} = %{{[a-z0-9_]+}}) -> (index)
// CHECK: pk.role consumer
// CHECK: iter_args(%{{[a-z0-9_]+}} = %{{[a-z0-9_]+}}) -> (!pk.tile<16xf32>)
pk.kernel @carried(%X: !pk.pgl<[M, N], f32, shard 0> {pk.name = "X"}, %Y: !pk.private<[L, N], f32> {pk.name = "Y"}) attributes {schedule = {}} {
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

// A view is committed before the stage that it shows is released; so is one that waits for another tile.
// CHECK-LABEL: pk.kernel @views
// CHECK: pk.role consumer
// CHECK: %[[X:.*]] = pk.consume %[[IN:[0-9]+]]
// CHECK: pk.transpose %[[X]]
// CHECK: pk.exp2
// CHECK: pk.commit
// CHECK-NEXT: pk.release %[[IN]]
pk.kernel @views(%X: !pk.private<[M, N], f32> {pk.name = "X"}, %c: !pk.private<[1], i32> {pk.name = "c"}, %Y: !pk.private<[N, M], f32> {pk.name = "Y"}, %Z: !pk.private<[M, N], f32> {pk.name = "Z"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 16>
  %1 = pk.block_count <N by 16>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 16>
    %4 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.private<[M, N], f32> -> !pk.tile<16x16xf32>
    %y = pk.transpose %4 : !pk.tile<16x16xf32> -> !pk.tile<16x16xf32>
    %5 = pk.full 0.000000e+00 : f32 : !pk.tile<16x16xf32>
    %6 = pk.full 1.000000e+00 : f32 : !pk.tile<16x16xf32>
    %7 = pk.add %5, %6 : !pk.tile<16x16xf32>
    %w = pk.exp2 %7 : !pk.tile<16x16xf32>
    %8 = arith.constant 0 : index
    %9 = pk.read %c[%8] : !pk.private<[1], i32>
    %10 = arith.cmpi sgt, %9, %8 : index
    scf.if %10 {
      pk.store %y, %Y[%n, %m : !pk.block<N by 16>, !pk.block<M by 16>] : !pk.tile<16x16xf32>, !pk.private<[N, M], f32>
      pk.store %w, %Z[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xf32>, !pk.private<[M, N], f32>
    } else {
    }
  }
}

// -----

// A loop without iterations gives back the tile that it began with: its stage is kept until the last use of that.
// CHECK-LABEL: pk.kernel @begun
// CHECK: pk.role consumer
// CHECK: pk.consume %[[IN:[0-9]+]]
// CHECK: scf.for
// CHECK-NOT: pk.release %[[IN]]
// CHECK: pk.mul
// CHECK-NEXT: pk.commit
// CHECK-NEXT: pk.release %[[IN]]
pk.kernel @begun(%X: !pk.private<[M], f32> {pk.name = "X"}, %c: !pk.private<[1], i32> {pk.name = "c"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 16>
  pk.tasks (%1) in (%0) {
    %m = pk.block[%1] : !pk.block<M by 16>
    %u = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
    %2 = arith.constant 0 : index
    %3 = pk.read %c[%2] : !pk.private<[1], i32>
    %4 = arith.constant 1 : index
    %u_1 = scf.for %5 = %2 to %3 step %4 iter_args(%u_2 = %u) -> (!pk.tile<16xf32>) {
      %6 = pk.full 1.000000e+00 : f32 : !pk.tile<16xf32>
      %u_3 = pk.add %u_2, %6 : !pk.tile<16xf32>
      scf.yield %u_3 : !pk.tile<16xf32>
    }
    %7 = pk.full 0.000000e+00 : f32 : !pk.tile<16xf32>
    %v = pk.exp2 %7 : !pk.tile<16xf32>
    %8 = pk.mul %u_1, %v : !pk.tile<16xf32>
    pk.store %8, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
  }
}

// -----

// Roles that the author wrote stay as they are, and share out no tasks.
// CHECK-LABEL: pk.kernel @written
// CHECK-NOT: per_cta
// CHECK-NOT: pk.channel
pk.kernel @written(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  pk.role consumer {
    %0 = pk.block_count <M by 16>
    pk.tasks (%1) in (%0) {
      %m = pk.block[%1] : !pk.block<M by 16>
      %2 = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      %3 = pk.full 1.000000e+00 : f32 : !pk.tile<16xf32>
      %4 = pk.add %2, %3 : !pk.tile<16xf32>
      pk.store %4, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
    }
  }
}

// -----

// Each role keeps all lists of a set, also those of which it needs nothing: the numbers of one go on from the one before.
// CHECK-LABEL: pk.kernel @lists
// CHECK: pk.role loader
// CHECK-COUNT-3: pk.tasks
// CHECK: pk.role consumer
// CHECK: pk.tasks
// CHECK: pk.tasks (%{{.*}}) in (%{{.*}}) attributes {per_cta} {
// CHECK-NEXT: }
// CHECK: pk.tasks
// CHECK: pk.exp2
// CHECK: pk.role storer
// CHECK-COUNT-3: pk.tasks
pk.kernel @lists(%X: !pk.private<[E, M], f32> {pk.name = "X"}, %Y: !pk.private<[E, M], f32> {pk.name = "Y"}, %Z: !pk.private<[E, M], f32> {pk.name = "Z"}) attributes {schedule = {}} {
  %0 = pk.dim "E"
  pk.tasks (%e) in (%0) {
    %1 = pk.block_count <M by 16>
    pk.tasks (%2) in (%1) {
      %m = pk.block[%2] : !pk.block<M by 16>
      %t = pk.load %X[%e, %m : index, !pk.block<M by 16>] : !pk.private<[E, M], f32> -> !pk.tile<16xf32>
      pk.store %t, %Y[%e, %m : index, !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[E, M], f32>
    }
    pk.tasks (%3) in (%1) {
      %m = pk.block[%3] : !pk.block<M by 16>
      %t = pk.load %X[%e, %m : index, !pk.block<M by 16>] : !pk.private<[E, M], f32> -> !pk.tile<16xf32>
      %u = pk.exp2 %t : !pk.tile<16xf32>
      pk.store %u, %Z[%e, %m : index, !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[E, M], f32>
    }
  }
}

// -----

// Roles that an author wrote: whoever loads what the kernel writes awaits it, also a storer that computes a tile again.
// Here it does not go through a channel, as `pk-keep-tiles` did not run. It has the wait in front of the load, and the
// one behind it, which comes before the load of the next iteration.
// CHECK-LABEL: pk.kernel @awaited
// CHECK: pk.role loader
// CHECK: pk.wait %got[%{{.*}}] for %one
// CHECK: pk.load %S
// CHECK: pk.wait %again
// CHECK: pk.role storer
// CHECK: scf.if
// CHECK: pk.wait %got[%{{.*}}] for %one
// CHECK: pk.load %S
// CHECK: pk.wait %again
// CHECK: else
// CHECK: pk.store
pk.kernel @awaited(%S: !pk.pgl<[3, M], f32, symmetric> {pk.name = "S"}, %Y: !pk.private<[3, M], f32> {pk.name = "Y"}, %got: !pk.signal<[3]> {pk.name = "got"}, %again: !pk.signal<[3]> {pk.name = "again"}) attributes {schedule = {}, derived, written} {
  pk.role communicator {
    %zero = arith.constant 0 : index
    %m = pk.block[%zero] : !pk.block<M by 16>
    %x = pk.full 1.000000e+00 : f32 : !pk.tile<16xf32>
    pk.store %x, %S[%zero, %m : index, !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[3, M], f32, symmetric>
  }
  pk.role consumer attributes {derived} {
    %0 = pk.block_count <M by 16>
    pk.tasks (%1) in (%0) {
      %m = pk.block[%1] : !pk.block<M by 16>
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %three = arith.constant 3 : index
      %start = pk.full 0.000000e+00 : f32 : !pk.tile<16xf32>
      %sum = scf.for %l = %zero to %three step %one iter_args(%t = %start) -> (!pk.tile<16xf32>) {
        %first = arith.cmpi eq, %l, %zero : index
        %v = scf.if %first -> (!pk.tile<16xf32>) {
          pk.wait %got[%l] for %one : !pk.signal<[3]>
          %x = pk.load %S[%l, %m : index, !pk.block<M by 16>] : !pk.pgl<[3, M], f32, symmetric> -> !pk.tile<16xf32>
          pk.wait %again[%l] for %one : !pk.signal<[3]>
          %u = pk.add %t, %x : !pk.tile<16xf32>
          scf.yield %u : !pk.tile<16xf32>
        } else {
          pk.store %t, %Y[%l, %m : index, !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[3, M], f32>
          scf.yield %t : !pk.tile<16xf32>
        }
        scf.yield %v : !pk.tile<16xf32>
      }
    }
  }
}
