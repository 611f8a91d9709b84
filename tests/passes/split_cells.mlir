// A fetched row is announced and awaited 128 KB at a time, at least eight tiles.
// RUN: pkc-opt %s -p pk-split-cells --split-input-file | filecheck %s

// The signal has a cell for each 128 tiles of 1 KB; the last one of a row may have fewer tiles.
// CHECK-LABEL: pk.kernel @row
// CHECK-SAME: %ready: !pk.signal<[M by 16, K by 4096]>
// CHECK: pk.role communicator
// CHECK-NEXT: pk.tasks (%{{.*}}, %[[TILE:.*]]) in (%rows, %turns) attributes {raster = 16 : i64} {
// CHECK: %[[MANY:.*]] = arith.constant 128 : index
// CHECK-NEXT: %[[GROUP:.*]] = arith.divsi %[[TILE]], %[[MANY]]
// CHECK-NEXT: pk.signal %ready at %rank[%{{.*}}, %[[GROUP]]] by %one : !pk.signal<[M by 16, K by 4096]>
// CHECK: pk.role consumer
// CHECK-NOT: pk.wait
// CHECK: scf.for %[[TURN:.*]] = %zero to %turns step %one iter_args
// CHECK-NEXT: %[[MANY:.*]] = arith.constant 128 : index
// CHECK-NEXT: %[[NONE:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[GROUP:.*]] = arith.divsi %[[TURN]], %[[MANY]]
// CHECK-NEXT: %[[PLACE:.*]] = arith.remsi %[[TURN]], %[[MANY]]
// CHECK-NEXT: %[[BEGINS:.*]] = arith.cmpi eq, %[[PLACE]], %[[NONE]]
// CHECK-NEXT: scf.if %[[BEGINS]] {
// CHECK-NEXT: %[[LEFT:.*]] = arith.subi %turns, %[[TURN]]
// CHECK-NEXT: %[[NEEDED:.*]] = arith.minsi %[[LEFT]], %[[MANY]]
// CHECK-NEXT: pk.wait %ready[%{{.*}}, %[[GROUP]]] for %[[NEEDED]] : !pk.signal<[M by 16, K by 4096]>
// CHECK-NEXT: }
// CHECK: pk.load %L[
pk.kernel @row(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %L: !pk.private<[M, K], bf16> {pk.name = "L", pk.scratch}, %Y: !pk.private<[M, 16], f32> {pk.name = "Y"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {schedule = {}, derived} {
  %rank = pk.rank
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = pk.block_count <M by 16> sharded
  %turns = pk.block_count <K by 32>
  pk.role communicator {
    pk.tasks (%i, %s) in (%rows, %turns) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %k = pk.block[%s] : !pk.block<K by 32>
      %a = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 32>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x32xbf16>
      pk.store %a, %L[%m, %k : !pk.block<M by 16>, !pk.block<K by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, K], bf16>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.signal %ready at %rank[%number] by %one : !pk.signal<[M by 16]>
    }
  }
  pk.role consumer {
    pk.tasks (%i) in (%rows) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %d = pk.block[%zero] : !pk.block<16 by 16>
      %acc = pk.full 0.0 : f32 : !pk.tile<16x16xf32>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.wait %ready[%number] for %turns : !pk.signal<[M by 16]>
      %sum = scf.for %s = %zero to %turns step %one iter_args(%t = %acc) -> (!pk.tile<16x16xf32>) {
        %k = pk.block[%s] : !pk.block<K by 32>
        %a = pk.load %L[%m, %k : !pk.block<M by 16>, !pk.block<K by 32>] : !pk.private<[M, K], bf16> -> !pk.tile<16x32xbf16>
        %b = pk.transpose %a : !pk.tile<16x32xbf16> -> !pk.tile<32x16xbf16>
        %u = pk.mma %a, %b, %t : !pk.tile<16x32xbf16>, !pk.tile<32x16xbf16> -> !pk.tile<16x16xf32>
        scf.yield %u : !pk.tile<16x16xf32>
      }
      pk.store %sum, %Y[%m, %d : !pk.block<M by 16>, !pk.block<16 by 16>] : !pk.tile<16x16xf32>, !pk.private<[M, 16], f32>
    }
  }
}

// -----

// For tiles of the own part nothing is awaited. Large ones are awaited eight at a time.
// CHECK-LABEL: pk.kernel @own
// CHECK-SAME: %ready: !pk.signal<[M by 128, K by 512]>
// CHECK: %own = arith.cmpi eq
// CHECK: %[[BEGINS:.*]] = arith.cmpi eq
// CHECK-NEXT: %[[YES:.*]] = arith.constant true
// CHECK-NEXT: %[[FOREIGN:.*]] = arith.xori %own, %[[YES]]
// CHECK-NEXT: %[[AWAITED:.*]] = arith.andi %[[BEGINS]], %[[FOREIGN]]
// CHECK-NEXT: scf.if %[[AWAITED]]
// CHECK: %[[NEEDED:.*]] = arith.minsi
// CHECK-NEXT: pk.wait %ready[%{{.*}}, %{{.*}}] for %[[NEEDED]]
pk.kernel @own(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %L: !pk.private<[M, K], bf16> {pk.name = "L", pk.scratch}, %Y: !pk.private<[M, 128], f32> {pk.name = "Y"}, %ready: !pk.signal<[M by 128]> {pk.name = "ready"}) attributes {schedule = {}, derived} {
  %rank = pk.rank
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = pk.block_count <M by 128> sharded
  %turns = pk.block_count <K by 64>
  pk.role communicator {
    pk.tasks (%i, %s) in (%rows, %turns) {
      %m = pk.block[%i] sharded : !pk.block<M by 128>
      %k = pk.block[%s] : !pk.block<K by 64>
      %a = pk.load %A[%m, %k : !pk.block<M by 128>, !pk.block<K by 64>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<128x64xbf16>
      pk.store %a, %L[%m, %k : !pk.block<M by 128>, !pk.block<K by 64>] : !pk.tile<128x64xbf16>, !pk.private<[M, K], bf16>
      %number = pk.block_number %m : !pk.block<M by 128>
      pk.signal %ready at %rank[%number] by %one : !pk.signal<[M by 128]>
    }
  }
  pk.role consumer {
    pk.tasks (%i) in (%rows) {
      %m = pk.block[%i] sharded : !pk.block<M by 128>
      %d = pk.block[%zero] : !pk.block<128 by 128>
      %acc = pk.full 0.0 : f32 : !pk.tile<128x128xf32>
      %number = pk.block_number %m : !pk.block<M by 128>
      %owner = pk.owner %m : !pk.block<M by 128>
      %own = arith.cmpi eq, %owner, %rank : index
      %needed = arith.select %own, %zero, %turns : index
      pk.wait %ready[%number] for %needed : !pk.signal<[M by 128]>
      %sum = scf.for %s = %zero to %turns step %one iter_args(%t = %acc) -> (!pk.tile<128x128xf32>) {
        %k = pk.block[%s] : !pk.block<K by 64>
        %a = pk.load %L own %A : !pk.pgl<[M, K], bf16, shard 0>[%m, %k : !pk.block<M by 128>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<128x64xbf16>
        %b = pk.transpose %a : !pk.tile<128x64xbf16> -> !pk.tile<64x128xbf16>
        %u = pk.mma %a, %b, %t : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
        scf.yield %u : !pk.tile<128x128xf32>
      }
      pk.store %sum, %Y[%m, %d : !pk.block<M by 128>, !pk.block<128 by 128>] : !pk.tile<128x128xf32>, !pk.private<[M, 128], f32>
    }
  }
}

// -----

// Two places wait for the row: it stays one cell.
// CHECK-LABEL: pk.kernel @two_waits
// CHECK-SAME: %ready: !pk.signal<[M by 16]>
// CHECK-NOT: raster
// CHECK: pk.signal %ready at %rank[%{{[a-z0-9_]+}}] by %one
// CHECK: pk.wait %ready[%{{[a-z0-9_]+}}] for %turns
// CHECK-NEXT: pk.wait %ready[%{{[a-z0-9_]+}}] for %turns
// CHECK-NEXT: scf.for
pk.kernel @two_waits(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %L: !pk.private<[M, K], bf16> {pk.name = "L", pk.scratch}, %Y: !pk.private<[M, 16], f32> {pk.name = "Y"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {schedule = {}, derived} {
  %rank = pk.rank
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = pk.block_count <M by 16> sharded
  %turns = pk.block_count <K by 32>
  pk.role communicator {
    pk.tasks (%i, %s) in (%rows, %turns) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %k = pk.block[%s] : !pk.block<K by 32>
      %a = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 32>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x32xbf16>
      pk.store %a, %L[%m, %k : !pk.block<M by 16>, !pk.block<K by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, K], bf16>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.signal %ready at %rank[%number] by %one : !pk.signal<[M by 16]>
    }
  }
  pk.role consumer {
    pk.tasks (%i) in (%rows) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %d = pk.block[%zero] : !pk.block<16 by 16>
      %acc = pk.full 0.0 : f32 : !pk.tile<16x16xf32>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.wait %ready[%number] for %turns : !pk.signal<[M by 16]>
      pk.wait %ready[%number] for %turns : !pk.signal<[M by 16]>
      %sum = scf.for %s = %zero to %turns step %one iter_args(%t = %acc) -> (!pk.tile<16x16xf32>) {
        %k = pk.block[%s] : !pk.block<K by 32>
        %a = pk.load %L[%m, %k : !pk.block<M by 16>, !pk.block<K by 32>] : !pk.private<[M, K], bf16> -> !pk.tile<16x32xbf16>
        %b = pk.transpose %a : !pk.tile<16x32xbf16> -> !pk.tile<32x16xbf16>
        %u = pk.mma %a, %b, %t : !pk.tile<16x32xbf16>, !pk.tile<32x16xbf16> -> !pk.tile<16x16xf32>
        scf.yield %u : !pk.tile<16x16xf32>
      }
      pk.store %sum, %Y[%m, %d : !pk.block<M by 16>, !pk.block<16 by 16>] : !pk.tile<16x16xf32>, !pk.private<[M, 16], f32>
    }
  }
}

// -----

// A wait inside the loop is not one for the tiles that the loop goes through.
// CHECK-LABEL: pk.kernel @inside
// CHECK-SAME: %ready: !pk.signal<[M by 16]>
// CHECK-NOT: raster
// CHECK: scf.for
// CHECK: pk.wait %ready[%{{[a-z0-9_]+}}] for %turns
pk.kernel @inside(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %L: !pk.private<[M, K], bf16> {pk.name = "L", pk.scratch}, %Y: !pk.private<[M, 16], f32> {pk.name = "Y"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {schedule = {}, derived} {
  %rank = pk.rank
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = pk.block_count <M by 16> sharded
  %turns = pk.block_count <K by 32>
  pk.role communicator {
    pk.tasks (%i, %s) in (%rows, %turns) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %k = pk.block[%s] : !pk.block<K by 32>
      %a = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 32>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x32xbf16>
      pk.store %a, %L[%m, %k : !pk.block<M by 16>, !pk.block<K by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, K], bf16>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.signal %ready at %rank[%number] by %one : !pk.signal<[M by 16]>
    }
  }
  pk.role consumer {
    pk.tasks (%i) in (%rows) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %d = pk.block[%zero] : !pk.block<16 by 16>
      %acc = pk.full 0.0 : f32 : !pk.tile<16x16xf32>
      %number = pk.block_number %m : !pk.block<M by 16>
      %sum = scf.for %s = %zero to %turns step %one iter_args(%t = %acc) -> (!pk.tile<16x16xf32>) {
        %k = pk.block[%s] : !pk.block<K by 32>
        pk.wait %ready[%number] for %turns : !pk.signal<[M by 16]>
        %a = pk.load %L[%m, %k : !pk.block<M by 16>, !pk.block<K by 32>] : !pk.private<[M, K], bf16> -> !pk.tile<16x32xbf16>
        %b = pk.transpose %a : !pk.tile<16x32xbf16> -> !pk.tile<32x16xbf16>
        %u = pk.mma %a, %b, %t : !pk.tile<16x32xbf16>, !pk.tile<32x16xbf16> -> !pk.tile<16x16xf32>
        scf.yield %u : !pk.tile<16x16xf32>
      }
      pk.store %sum, %Y[%m, %d : !pk.block<M by 16>, !pk.block<16 by 16>] : !pk.tile<16x16xf32>, !pk.private<[M, 16], f32>
    }
  }
}

// -----

// A task that goes through a part of the tiles may begin inside a group: it waits there too, for the whole group.
// CHECK-LABEL: pk.kernel @part
// CHECK: pk.role consumer
// CHECK: scf.for %[[TURN:.*]] = %first to %last step %one iter_args
// CHECK: %[[GROUP:.*]] = arith.divsi %[[TURN]], %[[MANY:.*]] : index
// CHECK: %[[BEGINS:.*]] = arith.cmpi eq
// CHECK-NEXT: %[[ENTERS:.*]] = arith.cmpi eq, %[[TURN]], %first : index
// CHECK-NEXT: %[[EITHER:.*]] = arith.ori %[[BEGINS]], %[[ENTERS]] : i1
// CHECK-NEXT: scf.if %[[EITHER]] {
// CHECK-NEXT: %[[START:.*]] = arith.muli %[[GROUP]], %[[MANY]]
// CHECK-NEXT: %[[LEFT:.*]] = arith.subi %turns, %[[START]]
// CHECK-NEXT: %[[NEEDED:.*]] = arith.minsi %[[LEFT]], %[[MANY]]
// CHECK-NEXT: pk.wait %ready[%{{.*}}, %[[GROUP]]] for %[[NEEDED]] : !pk.signal<[M by 16, K by 4096]>
pk.kernel @part(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %L: !pk.private<[M, K], bf16> {pk.name = "L", pk.scratch}, %Y: !pk.private<[4, M, 16], f32> {pk.name = "Y"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {schedule = {}, derived} {
  %rank = pk.rank
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %rows = pk.block_count <M by 16> sharded
  %turns = pk.block_count <K by 32>
  pk.role communicator {
    pk.tasks (%i, %s) in (%rows, %turns) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %k = pk.block[%s] : !pk.block<K by 32>
      %a = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 32>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x32xbf16>
      pk.store %a, %L[%m, %k : !pk.block<M by 16>, !pk.block<K by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, K], bf16>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.signal %ready at %rank[%number] by %one : !pk.signal<[M by 16]>
    }
  }
  pk.role consumer {
    pk.tasks (%i, %p) in (%rows, %four) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %d = pk.block[%zero] : !pk.block<16 by 16>
      %acc = pk.full 0.0 : f32 : !pk.tile<16x16xf32>
      %following = arith.addi %p, %one : index
      %before = arith.muli %turns, %p : index
      %first = arith.divsi %before, %four : index
      %until = arith.muli %turns, %following : index
      %last = arith.divsi %until, %four : index
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.wait %ready[%number] for %turns : !pk.signal<[M by 16]>
      %sum = scf.for %s = %first to %last step %one iter_args(%t = %acc) -> (!pk.tile<16x16xf32>) {
        %k = pk.block[%s] : !pk.block<K by 32>
        %a = pk.load %L[%m, %k : !pk.block<M by 16>, !pk.block<K by 32>] : !pk.private<[M, K], bf16> -> !pk.tile<16x32xbf16>
        %b = pk.transpose %a : !pk.tile<16x32xbf16> -> !pk.tile<32x16xbf16>
        %u = pk.mma %a, %b, %t : !pk.tile<16x32xbf16>, !pk.tile<32x16xbf16> -> !pk.tile<16x16xf32>
        scf.yield %u : !pk.tile<16x16xf32>
      }
      pk.store %sum, %Y[%p, %m, %d : index, !pk.block<M by 16>, !pk.block<16 by 16>] : !pk.tile<16x16xf32>, !pk.private<[4, M, 16], f32>
    }
  }
}

// -----

// A row in pieces, each with a signal for each tile.
// CHECK-LABEL: pk.kernel @pieces
// CHECK-SAME: %ready: !pk.signal<[M by 16, K by 4096]>
// CHECK: %[[LEFT:.*]] = arith.subi %turns,
// CHECK-NEXT: %[[TILES:.*]] = arith.minsi %[[LEFT]],
// CHECK-NEXT: %[[ALL:.*]] = arith.muli %two, %[[TILES]]
// CHECK-NEXT: pk.wait %ready[%{{.*}}, %{{.*}}] for %[[ALL]]
pk.kernel @pieces(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %L: !pk.private<[M, K], bf16> {pk.name = "L", pk.scratch}, %Y: !pk.private<[M, 16], f32> {pk.name = "Y"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {schedule = {}, derived} {
  %rank = pk.rank
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %rows = pk.block_count <M by 16> sharded
  %turns = pk.block_count <K by 32>
  pk.role communicator {
    pk.tasks (%i, %s) in (%rows, %turns) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %k = pk.block[%s] : !pk.block<K by 32>
      %a = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 32>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x32xbf16>
      pk.store %a, %L[%m, %k : !pk.block<M by 16>, !pk.block<K by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, K], bf16>
      %first = pk.block_index %m in <M by 16> : !pk.block<M by 16>
      %last = pk.block_index last %m in <M by 16> : !pk.block<M by 16>
      %stop = arith.addi %last, %one : index
      scf.for %cell = %first to %stop step %one {
        %reached = pk.block[%cell] : !pk.block<M by 16>
        %number = pk.block_number %reached : !pk.block<M by 16>
        pk.signal %ready at %rank[%number] by %one : !pk.signal<[M by 16]>
      }
    }
  }
  pk.role consumer {
    pk.tasks (%i) in (%rows) {
      %m = pk.block[%i] : !pk.block<M by 16>
      %d = pk.block[%zero] : !pk.block<16 by 16>
      %acc = pk.full 0.0 : f32 : !pk.tile<16x16xf32>
      %number = pk.block_number %m : !pk.block<M by 16>
      %each = arith.muli %two, %turns : index
      pk.wait %ready[%number] for %each : !pk.signal<[M by 16]>
      %sum = scf.for %s = %zero to %turns step %one iter_args(%t = %acc) -> (!pk.tile<16x16xf32>) {
        %k = pk.block[%s] : !pk.block<K by 32>
        %a = pk.load %L[%m, %k : !pk.block<M by 16>, !pk.block<K by 32>] : !pk.private<[M, K], bf16> -> !pk.tile<16x32xbf16>
        %b = pk.transpose %a : !pk.tile<16x32xbf16> -> !pk.tile<32x16xbf16>
        %u = pk.mma %a, %b, %t : !pk.tile<16x32xbf16>, !pk.tile<32x16xbf16> -> !pk.tile<16x16xf32>
        scf.yield %u : !pk.tile<16x16xf32>
      }
      pk.store %sum, %Y[%m, %d : !pk.block<M by 16>, !pk.block<16 by 16>] : !pk.tile<16x16xf32>, !pk.private<[M, 16], f32>
    }
  }
}
