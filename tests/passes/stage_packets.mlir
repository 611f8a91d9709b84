// Stores in packets: scratch memory of two halves on every rank, and a communicator that unpacks what all have sent.
// RUN: pkc-opt %s -p pk-plan-overlap,pk-straddle-shards,pk-plan-packets,pk-stage-sums,pk-stage-packets --split-input-file | filecheck %s

// CHECK-LABEL: pk.kernel @gather
// CHECK-SAME: %Y_packets: !pk.pgl<[2, M, N], bf16, replicate> {pk.name = "Y.packets", pk.scratch, pk.packets}
// CHECK-SAME: %Y_arrived: !pk.signal<[2, M by 16, N by 16]> {pk.name = "Y.arrived", pk.packets}
// CHECK: pk.role communicator
// CHECK: %[[RANK:.*]] = pk.rank
// CHECK: %[[EPOCH:.*]] = pk.epoch
// CHECK: %[[HALF:.*]] = arith.remsi %[[EPOCH]]
// CHECK: %[[ROWS:.*]] = pk.block_count <M by 16> sharded
// CHECK: pk.tasks (%{{.*}}, %{{.*}}) in (%[[ROWS]],
// CHECK: %m = pk.block[%{{.*}}] sharded : !pk.block<M by 16>
// CHECK: pk.wait %Y_arrived[%[[HALF]], %{{.*}}, %{{.*}}] for %{{.*}}
// CHECK-NEXT: %[[T:.*]] = pk.load %Y_packets[%[[HALF]], %m,
// CHECK-NEXT: pk.store %[[T]], %Y at %[[RANK]][%m,
// CHECK: pk.role consumer
// CHECK: %[[X:.*]] = pk.load %X[
// CHECK: %[[TURN:.*]] = arith.remsi
// CHECK: pk.store %[[X]], %Y_packets[%[[TURN]], %{{.*}}, %{{.*}} :
// CHECK-NEXT: pk.signal_all %Y_arrived[%[[TURN]],
// CHECK-NOT: pk.store
pk.kernel @gather(%X: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "X"}, %Y: !pk.pgl<[M, N], bf16, replicate> {pk.name = "Y"}) attributes {schedule = {packets = true}} {
  %r = pk.rank
  %0 = pk.block_count <M by 16> of %r sharded
  %1 = pk.block_count <N by 16>
  pk.tasks (%i, %j) in (%0, %1) {
    %m = pk.block[%i] of %r sharded : !pk.block<M by 16>
    %n = pk.block[%j] : !pk.block<N by 16>
    %x = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.pgl<[M, N], bf16, shard 0> -> !pk.tile<16x16xbf16>
    pk.store %x, %Y[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xbf16>, !pk.pgl<[M, N], bf16, replicate>
  }
}

// -----

// A sum in two shots: contributions in packets to the owner, and its sums in packets to all.
// CHECK-LABEL: pk.kernel @two_shots
// CHECK-SAME: %C_slots: !pk.pgl<[2, ranks, M, N], bf16, shard 2> {pk.name = "C.slots", pk.scratch, pk.packets}
// CHECK-SAME: %C_arrived: !pk.signal<[2, M by 16, N by 32]> {pk.name = "C.arrived", pk.packets}
// CHECK-SAME: %C_packets: !pk.pgl<[2, M, N], bf16, replicate> {pk.name = "C.packets", pk.scratch, pk.packets}
// CHECK: pk.role communicator {
// CHECK: pk.wait %C_arrived[
// CHECK: pk.load %C_slots[
// CHECK: pk.store {{.*}}, %C_packets[
// CHECK-NEXT: pk.signal_all
// CHECK: pk.role consumer
// CHECK: pk.store {{.*}}, %C_slots[
// CHECK: pk.role communicator {
// CHECK: pk.load %C_packets[
// CHECK-NEXT: pk.store {{.*}}, %C at
pk.kernel @two_shots(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, replicate> {pk.name = "C"}) attributes {schedule = {packets = true}} {
  %0 = pk.block_count <M by 16>
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %4 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.private<[M, N], bf16> -> !pk.tile<16x32xbf16>
    pk.accumulate %4, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.pgl<[M, N], bf16, replicate>
  }
}

// -----

// Blocks of a rank's share end with it, though no array has its rows in shards: so do those that are unpacked.
// CHECK-LABEL: pk.kernel @shares
// CHECK: pk.role communicator
// CHECK: pk.block_count <M by 16> sharded
// CHECK: %m = pk.block[%{{.*}}] sharded : !pk.block<M by 16>
// CHECK: pk.role consumer
pk.kernel @shares(%X: !pk.private<[M], bf16> {pk.name = "X"}, %Y: !pk.pgl<[M], bf16, replicate> {pk.name = "Y"}) attributes {schedule = {packets = true}} {
  %r = pk.rank
  %0 = pk.block_count <M by 16> of %r
  pk.tasks (%i) in (%0) {
    %m = pk.block[%i] of %r : !pk.block<M by 16>
    %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], bf16> -> !pk.tile<16xbf16>
    pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xbf16>, !pk.pgl<[M], bf16, replicate>
  }
}
