// The copies of one awaited cell become tasks of their own.
// RUN: pkc-opt %s -p pk-spread-copies --split-input-file | filecheck %s

// The loop over the tiles of a row block goes; the reader waits for as many signals as there were turns.
// CHECK-LABEL: pk.kernel @fetch
// CHECK: pk.role communicator
// CHECK: %[[ROWS:.*]] = pk.block_count <M by 16> sharded
// CHECK: %[[TURNS:.*]] = pk.block_count <K by 16>
// CHECK: pk.tasks (%{{.*}}, %[[S:.*]]) in (%[[ROWS]], %[[TURNS]])
// CHECK-NOT: scf.for
// CHECK: %k = pk.block[%[[S]]]
// CHECK: %[[A:.*]] = pk.load %A
// CHECK: pk.store %[[A]], %L
// CHECK: pk.signal %ready at %{{.*}}[%{{.*}}] by %{{.*}} : !pk.signal<[M by 16]>
// CHECK-NOT: pk.raise
// CHECK: pk.role consumer
// CHECK: pk.tasks
// CHECK: %[[COUNT:.*]] = pk.block_count <K by 16>
// CHECK: pk.wait %ready[%{{.*}}] for %[[COUNT]]
pk.kernel @fetch(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %L: !pk.private<[M, K], bf16> {pk.name = "L", pk.scratch}, %Y: !pk.private<[M, K], bf16> {pk.name = "Y"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {schedule = {}, derived} {
  %rank = pk.rank
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  pk.role communicator {
    %rows = pk.block_count <M by 16> sharded
    pk.tasks (%i) in (%rows) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %turns = pk.block_count <K by 16>
      scf.for %s = %zero to %turns step %one {
        %k = pk.block[%s] : !pk.block<K by 16>
        %a = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
        pk.store %a, %L[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.tile<16x16xbf16>, !pk.private<[M, K], bf16>
      }
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.raise %ready at %rank[%number] to %one : !pk.signal<[M by 16]>
    }
  }
  pk.role consumer {
    %rows = pk.block_count <M by 16> sharded
    %columns = pk.block_count <K by 16>
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %k = pk.block[%j] : !pk.block<K by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.wait %ready[%number] for %one : !pk.signal<[M by 16]>
      %a = pk.load %L[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.private<[M, K], bf16> -> !pk.tile<16x16xbf16>
      pk.store %a, %Y[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.tile<16x16xbf16>, !pk.private<[M, K], bf16>
    }
  }
}

// -----

// The number of turns depends on the task: its rows differ in what they need, so the loop stays.
// CHECK-LABEL: pk.kernel @triangle
// CHECK: pk.tasks (%{{[a-z0-9_]+}}) in
// CHECK: scf.for
// CHECK: pk.raise
pk.kernel @triangle(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %L: !pk.private<[M, K], bf16> {pk.name = "L", pk.scratch}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {schedule = {}, derived} {
  %rank = pk.rank
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  pk.role communicator {
    %rows = pk.block_count <M by 16> sharded
    pk.tasks (%i) in (%rows) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      scf.for %s = %zero to %i step %one {
        %k = pk.block[%s] : !pk.block<K by 16>
        %a = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
        pk.store %a, %L[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.tile<16x16xbf16>, !pk.private<[M, K], bf16>
      }
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.raise %ready at %rank[%number] to %one : !pk.signal<[M by 16]>
    }
  }
}

// -----

// Turns that add up what they load belong to one task.
// CHECK-LABEL: pk.kernel @sums
// CHECK: scf.for
// CHECK: pk.raise
pk.kernel @sums(%A: !pk.pgl<[M, K], f32, shard 0> {pk.name = "A"}, %L: !pk.private<[M, 16], f32> {pk.name = "L", pk.scratch}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {schedule = {}, derived} {
  %rank = pk.rank
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  pk.role communicator {
    %rows = pk.block_count <M by 16> sharded
    pk.tasks (%i) in (%rows) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %start = pk.full 0.000000e+00 : f32 : !pk.tile<16x16xf32>
      %turns = pk.block_count <K by 16>
      %sum = scf.for %s = %zero to %turns step %one iter_args(%t = %start) -> (!pk.tile<16x16xf32>) {
        %k = pk.block[%s] : !pk.block<K by 16>
        %a = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.pgl<[M, K], f32, shard 0> -> !pk.tile<16x16xf32>
        %u = pk.add %t, %a : !pk.tile<16x16xf32>
        scf.yield %u : !pk.tile<16x16xf32>
      }
      %d = pk.block[%zero] : !pk.block<16 by 16>
      pk.store %sum, %L[%m, %d : !pk.block<M by 16>, !pk.block<16 by 16>] : !pk.tile<16x16xf32>, !pk.private<[M, 16], f32>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.raise %ready at %rank[%number] to %one : !pk.signal<[M by 16]>
    }
  }
}

// -----

// Pieces that are part of several cells: each is waited for by each of its turns.
// CHECK-LABEL: pk.kernel @pieces
// CHECK: pk.tasks (%[[I:.*]], %[[S:.*]]) in (%{{.*}}, %{{.*}}) {
// CHECK: pk.store
// CHECK: scf.for %[[CELL:.*]] = %first to
// CHECK-NEXT: pk.signal %ready at %rank[%[[CELL]]] by %one
// CHECK: %[[TURNS:.*]] = pk.block_count <K by 16>
// CHECK-NEXT: %[[ALL:.*]] = arith.muli %two, %[[TURNS]]
// CHECK-NEXT: pk.wait %ready[%zero] for %[[ALL]]
pk.kernel @pieces(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %L: !pk.private<[M, K], bf16> {pk.name = "L", pk.scratch}, %ready: !pk.signal<[M]> {pk.name = "ready"}) attributes {schedule = {}, derived} {
  %rank = pk.rank
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  pk.role communicator {
    %rows = pk.block_count <M by 16> sharded
    pk.tasks (%i) in (%rows) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %turns = pk.block_count <K by 16>
      scf.for %s = %zero to %turns step %one {
        %k = pk.block[%s] : !pk.block<K by 16>
        %a = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
        pk.store %a, %L[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.tile<16x16xbf16>, !pk.private<[M, K], bf16>
      }
      %first = pk.block_index %m in <M by 16> : !pk.block<M by 16>
      %last = pk.block_index last %m in <M by 16> : !pk.block<M by 16>
      %stop = arith.addi %last, %one : index
      scf.for %cell = %first to %stop step %one {
        pk.signal %ready at %rank[%cell] by %one : !pk.signal<[M]>
      }
    }
  }
  pk.role consumer {
    pk.wait %ready[%zero] for %two : !pk.signal<[M]>
  }
}
