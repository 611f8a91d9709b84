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
