// What a phase computes of a sum over ranks, element by element, is computed where the sum is added up.
// RUN: pkc-opt %s -p pk-fuse-phases --split-input-file --remarks | filecheck %s

// In the blocks of the sum, whatever blocks the phase had; what else it loads comes first. The sum is not stored.
// CHECK-LABEL: pk.kernel @bias
// CHECK-SAME: "slots"
// CHECK-NOT: pk.name = "S"
// CHECK-SAME: pk.name = "b"
// CHECK: pk.role communicator
// CHECK: pk.tasks (%i, %j)
// CHECK: %m = pk.block[%i] of %rank sharded : !pk.block<M by 16>
// CHECK-NEXT: %n = pk.block[%j] : !pk.block<N by 64>
// CHECK: pk.wait %arrived
// CHECK-NEXT: %[[BIAS:.*]] = pk.load %b[%n : !pk.block<N by 64>] : !pk.private<[N], f32> -> !pk.tile<64xf32>
// CHECK-NEXT: %s = pk.load %slots
// CHECK-NEXT: %[[ROW:.*]] = pk.broadcast %[[BIAS]] axes [1] : !pk.tile<64xf32> -> !pk.tile<16x64xf32>
// CHECK-NEXT: %[[TWO:.*]] = pk.full 2.000000e+00 : f32 : !pk.tile<16x64xf32>
// CHECK-NEXT: %[[SUM:.*]] = pk.add %s, %[[ROW]] : !pk.tile<16x64xf32>
// CHECK-NEXT: %[[ALL:.*]] = pk.mul %[[SUM]], %[[TWO]] : !pk.tile<16x64xf32>
// CHECK-NEXT: pk.store %[[ALL]], %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>]
// CHECK-NEXT: }
// CHECK: pk.role consumer
// CHECK: pk.tasks (%{{.*}}) in (%all) attributes {phase = 0 : i64}
// CHECK-NOT: pk.tasks
// CHECK-LABEL: pk.kernel @kept
pk.kernel @bias(%slots: !pk.private<[M, N], f32> {pk.name = "slots", pk.scratch}, %S: !pk.pgl<[M, N], f32, shard 0> {pk.name = "S", pk.scratch}, %b: !pk.private<[N], f32> {pk.name = "b"}, %C: !pk.pgl<[M, N], f32, shard 0> {pk.name = "C"}, %arrived: !pk.signal<[M by 16]> {pk.name = "arrived"}) attributes {schedule = {}, derived} {
  pk.role communicator attributes {after_all, phase = 0} {
    %rank = pk.rank
    %rows = pk.block_count <M by 16> of %rank sharded
    %columns = pk.block_count <N by 64>
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 16>
      %n = pk.block[%j] : !pk.block<N by 64>
      %zero = arith.constant 0 : index
      pk.wait %arrived[%zero] for %i : !pk.signal<[M by 16]>
      %s = pk.load %slots[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<16x64xf32>
      pk.store %s, %S[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.tile<16x64xf32>, !pk.pgl<[M, N], f32, shard 0>
    }
  }
  pk.role consumer attributes {derived} {
    %all = pk.block_count <M by 16>
    pk.tasks (%i) in (%all) attributes {phase = 0} {
    }
    %rank = pk.rank
    %rows = pk.block_count <M by 32> of %rank sharded
    %columns = pk.block_count <N by 32>
    pk.tasks (%j, %i) in (%columns, %rows) attributes {phase = 1} {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 32>
      %n = pk.block[%j] : !pk.block<N by 32>
      %s = pk.load %S[%m, %n : !pk.block<M by 32>, !pk.block<N by 32>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<32x32xf32>
      %b1 = pk.load %b[%n : !pk.block<N by 32>] : !pk.private<[N], f32> -> !pk.tile<32xf32>
      %b2 = pk.broadcast %b1 axes [1] : !pk.tile<32xf32> -> !pk.tile<32x32xf32>
      %two = pk.full 2.0 : f32 : !pk.tile<32x32xf32>
      %t = pk.add %s, %b2 : !pk.tile<32x32xf32>
      %u = pk.mul %t, %two : !pk.tile<32x32xf32>
      pk.store %u, %C[%m, %n : !pk.block<M by 32>, !pk.block<N by 32>] : !pk.tile<32x32xf32>, !pk.pgl<[M, N], f32, shard 0>
    }
  }
}

// -----

// A sum that the caller gets is stored too.
// CHECK: pk.store %s, %S[%m, %n
// CHECK-NEXT: }
// CHECK-LABEL: pk.kernel @rows
pk.kernel @kept(%slots: !pk.private<[M, N], f32> {pk.name = "slots", pk.scratch}, %S: !pk.pgl<[M, N], f32, shard 0> {pk.name = "S"}, %C: !pk.private<[M, N], f32> {pk.name = "C"}) attributes {schedule = {}, derived} {
  pk.role communicator attributes {after_all, phase = 0} {
    %rank = pk.rank
    %rows = pk.block_count <M by 16> of %rank sharded
    %columns = pk.block_count <N by 64>
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 16>
      %n = pk.block[%j] : !pk.block<N by 64>
      %s = pk.load %slots[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<16x64xf32>
      pk.store %s, %S[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.tile<16x64xf32>, !pk.pgl<[M, N], f32, shard 0>
    }
  }
  pk.role consumer attributes {derived} {
    %rank = pk.rank
    %rows = pk.block_count <M by 16> of %rank sharded
    %columns = pk.block_count <N by 64>
    pk.tasks (%i, %j) in (%rows, %columns) attributes {phase = 1} {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 16>
      %n = pk.block[%j] : !pk.block<N by 64>
      %s = pk.load %S[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<16x64xf32>
      %t = pk.neg %s : !pk.tile<16x64xf32>
      pk.store %t, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, N], f32>
    }
  }
}

// -----

// A row is complete when its last tile is: the phase stays.
// CHECK: pk.store %s, %S
// CHECK: pk.role consumer
// CHECK: pk.row_sum
// CHECK: // remark: {{.*}}: pk.tasks: this phase begins when all of `S` is added up: a row of the sum is complete later than a tile of it [pk-fuse-phases]
pk.kernel @rows(%slots: !pk.private<[M, N], f32> {pk.name = "slots", pk.scratch}, %S: !pk.pgl<[M, N], f32, shard 0> {pk.name = "S", pk.scratch}, %C: !pk.private<[M], f32> {pk.name = "C"}) attributes {schedule = {}, derived} {
  pk.role communicator attributes {after_all, phase = 0} {
    %rank = pk.rank
    %rows = pk.block_count <M by 16> of %rank sharded
    %columns = pk.block_count <N by 64>
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 16>
      %n = pk.block[%j] : !pk.block<N by 64>
      %s = pk.load %slots[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<16x64xf32>
      pk.store %s, %S[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.tile<16x64xf32>, !pk.pgl<[M, N], f32, shard 0>
    }
  }
  pk.role consumer attributes {derived} {
    %rank = pk.rank
    %rows = pk.block_count <M by 16> of %rank sharded
    %zero = arith.constant 0 : index
    pk.tasks (%i) in (%rows) attributes {phase = 1} {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 16>
      %n = pk.block[%zero] : !pk.block<N by 64>
      %s = pk.load %S[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<16x64xf32>
      %t = pk.row_sum %s : !pk.tile<16x64xf32> -> !pk.tile<16xf32>
      pk.store %t, %C[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
    }
  }
}

// -----

// Scalars, and what is computed or loaded from in front of the phase, are computed in front of the tasks that add up,
// too; what it loads by rank is loaded there.
// CHECK-LABEL: pk.kernel @given
// CHECK: pk.role communicator
// CHECK: pk.rank
// CHECK: %[[HERE:.*]] = pk.rank
// CHECK-NEXT: %[[F:.*]] = pk.splat %f : f32 -> !pk.tile<f32>
// CHECK-NEXT: %[[SEVEN:.*]] = arith.constant 7 : index
// CHECK-NEXT: %[[LAST:.*]] = pk.load %w[%[[SEVEN]] : index]
// CHECK-NEXT: pk.tasks
// CHECK: %[[MINE:.*]] = pk.load %w[%[[HERE]] : index]
// CHECK-NEXT: %s = pk.load %slots
// CHECK-NEXT: pk.broadcast %[[F]] axes [] : !pk.tile<f32> -> !pk.tile<16x64xf32>
// CHECK: pk.broadcast %[[MINE]] axes []
// CHECK: pk.broadcast %[[LAST]] axes []
// CHECK: pk.store %{{.*}}, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>]
// CHECK-NOT: remark
pk.kernel @given(%slots: !pk.private<[M, N], f32> {pk.name = "slots", pk.scratch}, %S: !pk.pgl<[M, N], f32, shard 0> {pk.name = "S", pk.scratch}, %w: !pk.private<[8], f32> {pk.name = "w"}, %C: !pk.private<[M, N], f32> {pk.name = "C"}, %f: f32 {pk.name = "f"}) attributes {schedule = {}, derived} {
  pk.role communicator attributes {after_all, phase = 0} {
    %rank = pk.rank
    %rows = pk.block_count <M by 16> of %rank sharded
    %columns = pk.block_count <N by 64>
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 16>
      %n = pk.block[%j] : !pk.block<N by 64>
      %s = pk.load %slots[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<16x64xf32>
      pk.store %s, %S[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.tile<16x64xf32>, !pk.pgl<[M, N], f32, shard 0>
    }
  }
  pk.role consumer attributes {derived} {
    %rank = pk.rank
    %rows = pk.block_count <M by 32> of %rank sharded
    %columns = pk.block_count <N by 64>
    %one = pk.splat %f : f32 -> !pk.tile<f32>
    %seven = arith.constant 7 : index
    %last = pk.load %w[%seven : index] : !pk.private<[8], f32> -> !pk.tile<f32>
    pk.tasks (%i, %j) in (%rows, %columns) attributes {phase = 1} {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 32>
      %n = pk.block[%j] : !pk.block<N by 64>
      %s = pk.load %S[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<32x64xf32>
      %mine = pk.load %w[%rank : index] : !pk.private<[8], f32> -> !pk.tile<f32>
      %1 = pk.broadcast %one axes [] : !pk.tile<f32> -> !pk.tile<32x64xf32>
      %2 = pk.broadcast %mine axes [] : !pk.tile<f32> -> !pk.tile<32x64xf32>
      %3 = pk.broadcast %last axes [] : !pk.tile<f32> -> !pk.tile<32x64xf32>
      %4 = pk.mul %s, %1 : !pk.tile<32x64xf32>
      %5 = pk.mul %4, %2 : !pk.tile<32x64xf32>
      %t = pk.add %5, %3 : !pk.tile<32x64xf32>
      pk.store %t, %C[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.tile<32x64xf32>, !pk.private<[M, N], f32>
    }
  }
}

// -----

// What loops compute is not computed twice.
// CHECK-LABEL: pk.kernel @looped
// CHECK: pk.store %s, %S
// CHECK: // remark: {{.*}}: pk.tasks: this phase begins when all of `S` is added up: what it uses is computed in a loop or branch in front of it [pk-fuse-phases]
pk.kernel @looped(%slots: !pk.private<[M, N], f32> {pk.name = "slots", pk.scratch}, %S: !pk.pgl<[M, N], f32, shard 0> {pk.name = "S", pk.scratch}, %w: !pk.private<[8], f32> {pk.name = "w"}, %C: !pk.private<[M, N], f32> {pk.name = "C"}, %f: f32 {pk.name = "f"}) attributes {schedule = {}, derived} {
  pk.role communicator attributes {after_all, phase = 0} {
    %rank = pk.rank
    %rows = pk.block_count <M by 16> of %rank sharded
    %columns = pk.block_count <N by 64>
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 16>
      %n = pk.block[%j] : !pk.block<N by 64>
      %s = pk.load %slots[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<16x64xf32>
      pk.store %s, %S[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.tile<16x64xf32>, !pk.pgl<[M, N], f32, shard 0>
    }
  }
  pk.role consumer attributes {derived} {
    %rank = pk.rank
    %rows = pk.block_count <M by 32> of %rank sharded
    %columns = pk.block_count <N by 64>
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %eight = arith.constant 8 : index
    %none = pk.full 0.0 : f32 : !pk.tile<f32>
    %all = scf.for %k = %zero to %eight step %one iter_args(%sum = %none) -> (!pk.tile<f32>) {
      %x = pk.load %w[%k : index] : !pk.private<[8], f32> -> !pk.tile<f32>
      %y = pk.add %sum, %x : !pk.tile<f32>
      scf.yield %y : !pk.tile<f32>
    }
    pk.tasks (%i, %j) in (%rows, %columns) attributes {phase = 1} {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 32>
      %n = pk.block[%j] : !pk.block<N by 64>
      %s = pk.load %S[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<32x64xf32>
      %1 = pk.broadcast %all axes [] : !pk.tile<f32> -> !pk.tile<32x64xf32>
      %t = pk.mul %s, %1 : !pk.tile<32x64xf32>
      pk.store %t, %C[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.tile<32x64xf32>, !pk.private<[M, N], f32>
    }
  }
}

// -----

// Nor is read early what the kernel writes.
// CHECK-LABEL: pk.kernel @written
// CHECK: pk.store %s, %S
// CHECK: // remark: {{.*}}: pk.tasks: this phase begins when all of `S` is added up: it reads `w`, which the kernel writes [pk-fuse-phases]
pk.kernel @written(%slots: !pk.private<[M, N], f32> {pk.name = "slots", pk.scratch}, %S: !pk.pgl<[M, N], f32, shard 0> {pk.name = "S", pk.scratch}, %w: !pk.private<[8], f32> {pk.name = "w"}, %C: !pk.private<[M, N], f32> {pk.name = "C"}, %f: f32 {pk.name = "f"}) attributes {schedule = {}, derived} {
  pk.role communicator attributes {after_all, phase = 0} {
    %rank = pk.rank
    %rows = pk.block_count <M by 16> of %rank sharded
    %columns = pk.block_count <N by 64>
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 16>
      %n = pk.block[%j] : !pk.block<N by 64>
      %s = pk.load %slots[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<16x64xf32>
      pk.store %s, %S[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.tile<16x64xf32>, !pk.pgl<[M, N], f32, shard 0>
    }
  }
  pk.role consumer attributes {derived} {
    %rank = pk.rank
    %rows = pk.block_count <M by 32> of %rank sharded
    %columns = pk.block_count <N by 64>
    %zero = arith.constant 0 : index
    %none = pk.full 0.0 : f32 : !pk.tile<f32>
    pk.store %none, %w[%zero : index] : !pk.tile<f32>, !pk.private<[8], f32>
    %first = pk.load %w[%zero : index] : !pk.private<[8], f32> -> !pk.tile<f32>
    pk.tasks (%i, %j) in (%rows, %columns) attributes {phase = 1} {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 32>
      %n = pk.block[%j] : !pk.block<N by 64>
      %s = pk.load %S[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<32x64xf32>
      %1 = pk.broadcast %first axes [] : !pk.tile<f32> -> !pk.tile<32x64xf32>
      %t = pk.mul %s, %1 : !pk.tile<32x64xf32>
      pk.store %t, %C[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.tile<32x64xf32>, !pk.private<[M, N], f32>
    }
  }
}

// -----

// Tiles of the phase's blocks do not become those of the sum's.
// CHECK-LABEL: pk.kernel @whole
// CHECK: pk.store %s, %S
// CHECK: // remark: {{.*}}: pk.tasks: this phase begins when all of `S` is added up: it uses a tile from in front of it [pk-fuse-phases]
pk.kernel @whole(%slots: !pk.private<[M, N], f32> {pk.name = "slots", pk.scratch}, %S: !pk.pgl<[M, N], f32, shard 0> {pk.name = "S", pk.scratch}, %w: !pk.private<[8], f32> {pk.name = "w"}, %C: !pk.private<[M, N], f32> {pk.name = "C"}, %f: f32 {pk.name = "f"}) attributes {schedule = {}, derived} {
  pk.role communicator attributes {after_all, phase = 0} {
    %rank = pk.rank
    %rows = pk.block_count <M by 16> of %rank sharded
    %columns = pk.block_count <N by 64>
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 16>
      %n = pk.block[%j] : !pk.block<N by 64>
      %s = pk.load %slots[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<16x64xf32>
      pk.store %s, %S[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.tile<16x64xf32>, !pk.pgl<[M, N], f32, shard 0>
    }
  }
  pk.role consumer attributes {derived} {
    %rank = pk.rank
    %rows = pk.block_count <M by 32> of %rank sharded
    %columns = pk.block_count <N by 64>
    %two = pk.full 2.0 : f32 : !pk.tile<32x64xf32>
    pk.tasks (%i, %j) in (%rows, %columns) attributes {phase = 1} {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 32>
      %n = pk.block[%j] : !pk.block<N by 64>
      %s = pk.load %S[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<32x64xf32>
      %t = pk.mul %s, %two : !pk.tile<32x64xf32>
      pk.store %t, %C[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.tile<32x64xf32>, !pk.private<[M, N], f32>
    }
  }
}

// -----

// Nor does what branches compute.
// CHECK-LABEL: pk.kernel @branched
// CHECK: pk.store %s, %S
// CHECK: // remark: {{.*}}: pk.tasks: this phase begins when all of `S` is added up: it has a loop or branch [pk-fuse-phases]
pk.kernel @branched(%slots: !pk.private<[M, N], f32> {pk.name = "slots", pk.scratch}, %S: !pk.pgl<[M, N], f32, shard 0> {pk.name = "S", pk.scratch}, %w: !pk.private<[8], f32> {pk.name = "w"}, %C: !pk.private<[M, N], f32> {pk.name = "C"}, %f: f32 {pk.name = "f"}) attributes {schedule = {}, derived} {
  pk.role communicator attributes {after_all, phase = 0} {
    %rank = pk.rank
    %rows = pk.block_count <M by 16> of %rank sharded
    %columns = pk.block_count <N by 64>
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 16>
      %n = pk.block[%j] : !pk.block<N by 64>
      %s = pk.load %slots[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<16x64xf32>
      pk.store %s, %S[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.tile<16x64xf32>, !pk.pgl<[M, N], f32, shard 0>
    }
  }
  pk.role consumer attributes {derived} {
    %rank = pk.rank
    %rows = pk.block_count <M by 32> of %rank sharded
    %columns = pk.block_count <N by 64>
    pk.tasks (%i, %j) in (%rows, %columns) attributes {phase = 1} {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 32>
      %n = pk.block[%j] : !pk.block<N by 64>
      %s = pk.load %S[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<32x64xf32>
      %zero = arith.constant 0 : index
      %whether = arith.cmpi eq, %rank, %zero : index
      %t = scf.if %whether -> (!pk.tile<32x64xf32>) {
        %u = pk.neg %s : !pk.tile<32x64xf32>
        scf.yield %u : !pk.tile<32x64xf32>
      } else {
        scf.yield %s : !pk.tile<32x64xf32>
      }
      pk.store %t, %C[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.tile<32x64xf32>, !pk.private<[M, N], f32>
    }
  }
}
