// What a rank owns is neither copied nor awaited, but read where it lies.
// RUN: pkc-opt %s -p pk-read-own --split-input-file | filecheck %s

// CHECK-LABEL: pk.kernel @fetch
// CHECK: pk.role communicator
// CHECK: %m = pk.block
// CHECK: %[[OWNER:.*]] = pk.owner %m
// CHECK-NEXT: %[[RANK:.*]] = pk.rank
// CHECK-NEXT: %[[FOREIGN:.*]] = arith.cmpi ne, %[[OWNER]], %[[RANK]]
// CHECK-NEXT: scf.if %[[FOREIGN]] {
// CHECK-NEXT: pk.load %A[
// CHECK-NEXT: pk.store
// CHECK-NEXT: pk.block_number
// CHECK-NEXT: pk.signal %ready
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK: pk.role consumer
// CHECK: %[[OWNER2:.*]] = pk.owner %m
// CHECK-NEXT: %[[RANK2:.*]] = pk.rank
// CHECK-NEXT: %[[NOTHING:.*]] = arith.constant 0
// CHECK-NEXT: %[[OWN:.*]] = arith.cmpi eq, %[[OWNER2]], %[[RANK2]]
// CHECK-NEXT: %[[NEEDED:.*]] = arith.select %[[OWN]], %[[NOTHING]], %turns
// CHECK-NEXT: pk.wait %ready[%{{.*}}] for %[[NEEDED]]
// CHECK: pk.load %L own %A : !pk.pgl<[M, K], bf16, shard 0>[
pk.kernel @fetch(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %L: !pk.private<[M, K], bf16> {pk.name = "L", pk.scratch}, %Y: !pk.private<[M, K], bf16> {pk.name = "Y"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {schedule = {}, derived} {
  %rank = pk.rank
  %one = arith.constant 1 : index
  %rows = pk.block_count <M by 16> sharded
  %turns = pk.block_count <K by 16>
  pk.role communicator {
    pk.tasks (%i, %s) in (%rows, %turns) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %k = pk.block[%s] : !pk.block<K by 16>
      %a = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      pk.store %a, %L[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.tile<16x16xbf16>, !pk.private<[M, K], bf16>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.signal %ready at %rank[%number] by %one : !pk.signal<[M by 16]>
    }
  }
  pk.role consumer {
    pk.tasks (%i, %j) in (%rows, %turns) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %k = pk.block[%j] : !pk.block<K by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.wait %ready[%number] for %turns : !pk.signal<[M by 16]>
      %a = pk.load %L[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.private<[M, K], bf16> -> !pk.tile<16x16xbf16>
      pk.store %a, %Y[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.tile<16x16xbf16>, !pk.private<[M, K], bf16>
    }
  }
}

// -----

// Owners push: the signal goes to another rank, which owns nothing of what comes.
// CHECK-LABEL: pk.kernel @push
// CHECK-NOT: pk.owner
// CHECK-NOT: scf.if
// CHECK: pk.wait %ready[%{{.*}}] for %one
// CHECK: pk.load %L[
pk.kernel @push(%A: !pk.pgl<[M], bf16, shard 0> {pk.name = "A"}, %L: !pk.private<[M], bf16> {pk.name = "L", pk.scratch}, %Y: !pk.private<[M], bf16> {pk.name = "Y"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {schedule = {}, derived} {
  %one = arith.constant 1 : index
  %rows = pk.block_count <M by 16> sharded
  pk.role communicator {
    pk.tasks (%i) in (%rows) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %a = pk.load %A[%m : !pk.block<M by 16>] : !pk.pgl<[M], bf16, shard 0> -> !pk.tile<16xbf16>
      pk.store %a, %L[%m : !pk.block<M by 16>] : !pk.tile<16xbf16>, !pk.private<[M], bf16>
      %number = pk.block_number %m : !pk.block<M by 16>
      %peer = pk.ring_peer %one
      pk.signal %ready at %peer[%number] by %one : !pk.signal<[M by 16]>
    }
  }
  pk.role consumer {
    pk.tasks (%i) in (%rows) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.wait %ready[%number] for %one : !pk.signal<[M by 16]>
      %a = pk.load %L[%m : !pk.block<M by 16>] : !pk.private<[M], bf16> -> !pk.tile<16xbf16>
      pk.store %a, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xbf16>, !pk.private<[M], bf16>
    }
  }
}

// -----

// One cell for everything: a wait for it is for no block in particular.
// CHECK-LABEL: pk.kernel @bulk
// CHECK-NOT: pk.owner
// CHECK: pk.wait %ready[%zero] for %rows
// CHECK: pk.load %L[
pk.kernel @bulk(%A: !pk.pgl<[M], bf16, shard 0> {pk.name = "A"}, %L: !pk.private<[M], bf16> {pk.name = "L", pk.scratch}, %Y: !pk.private<[M], bf16> {pk.name = "Y"}, %ready: !pk.signal<[1]> {pk.name = "ready"}) attributes {schedule = {}, derived} {
  %rank = pk.rank
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = pk.block_count <M by 16> sharded
  pk.role communicator {
    pk.tasks (%i) in (%rows) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %a = pk.load %A[%m : !pk.block<M by 16>] : !pk.pgl<[M], bf16, shard 0> -> !pk.tile<16xbf16>
      pk.store %a, %L[%m : !pk.block<M by 16>] : !pk.tile<16xbf16>, !pk.private<[M], bf16>
      pk.signal %ready at %rank[%zero] by %one : !pk.signal<[1]>
    }
  }
  pk.role consumer {
    pk.tasks (%i) in (%rows) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      pk.wait %ready[%zero] for %rows : !pk.signal<[1]>
      %a = pk.load %L[%m : !pk.block<M by 16>] : !pk.private<[M], bf16> -> !pk.tile<16xbf16>
      pk.store %a, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xbf16>, !pk.private<[M], bf16>
    }
  }
}

// -----

// A copy engine copies the boxes of other ranks only.
// CHECK-LABEL: pk.kernel @engine
// CHECK: pk.role copy_engine
// CHECK: %[[OWNER:.*]] = pk.owner %m
// CHECK-NEXT: %[[RANK:.*]] = pk.rank
// CHECK-NEXT: %[[FOREIGN:.*]] = arith.cmpi ne, %[[OWNER]], %[[RANK]]
// CHECK-NEXT: scf.if %[[FOREIGN]] {
// CHECK-NEXT: pk.copy %A
// CHECK-NEXT: pk.block_number
// CHECK-NEXT: pk.raise %ready
// CHECK-NEXT: }
// CHECK: pk.role consumer
// CHECK: arith.select
// CHECK-NEXT: pk.wait %ready
// CHECK: pk.load %L own %A : !pk.pgl<[M, K], bf16, shard 0>[
pk.kernel @engine(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %L: !pk.private<[M, K], bf16> {pk.name = "L", pk.scratch}, %Y: !pk.private<[M, K], bf16> {pk.name = "Y"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {schedule = {}, derived} {
  %rank = pk.rank
  %one = arith.constant 1 : index
  %rows = pk.block_count <M by 16> sharded
  %turns = pk.block_count <K by 16>
  pk.role copy_engine {
    pk.tasks (%i) in (%rows) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      pk.copy %A[%m : !pk.block<M by 16>] along [0] to %L[%m : !pk.block<M by 16>] along [0] : !pk.pgl<[M, K], bf16, shard 0> to !pk.private<[M, K], bf16>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.raise %ready at %rank[%number] to %one : !pk.signal<[M by 16]>
    }
  }
  pk.role consumer {
    pk.tasks (%i, %j) in (%rows, %turns) {
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

// A block that spans parts has rows of others too: all that it has is fetched.
// CHECK-LABEL: pk.kernel @across
// CHECK-NOT: scf.if
// CHECK: pk.wait %ready[%{{.*}}] for %turns
// CHECK: pk.load %L[
pk.kernel @across(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %L: !pk.private<[M, K], bf16> {pk.name = "L", pk.scratch}, %Y: !pk.private<[M, K], bf16> {pk.name = "Y"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {schedule = {}, derived} {
  %rank = pk.rank
  %one = arith.constant 1 : index
  %turns = pk.block_count <K by 16>
  pk.role communicator {
    %rows = pk.block_count <M by 16> sharded
    pk.tasks (%i, %s) in (%rows, %turns) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %k = pk.block[%s] : !pk.block<K by 16>
      %a = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      pk.store %a, %L[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.tile<16x16xbf16>, !pk.private<[M, K], bf16>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.signal %ready at %rank[%number] by %one : !pk.signal<[M by 16]>
    }
  }
  pk.role consumer {
    %rows = pk.block_count <M by 16>
    pk.tasks (%i, %j) in (%rows, %turns) {
      %m = pk.block[%i] : !pk.block<M by 16>
      %k = pk.block[%j] : !pk.block<K by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.wait %ready[%number] for %turns : !pk.signal<[M by 16]>
      %a = pk.load %L[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.private<[M, K], bf16> -> !pk.tile<16x16xbf16>
      pk.store %a, %Y[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.tile<16x16xbf16>, !pk.private<[M, K], bf16>
    }
  }
}
