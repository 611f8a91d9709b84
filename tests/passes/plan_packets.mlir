// What travels to other ranks in packets, and what does not.
// RUN: pkc-opt %s -p pk-plan-overlap,pk-plan-packets --split-input-file --remarks | filecheck %s

// Contributions to a sum; two bytes each.
// CHECK-LABEL: pk.kernel @sum
// CHECK: pk.accumulate {{.*}} {remote = {overlap = "intra_sm", why = {{.*}}, packets}}
pk.kernel @sum(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) attributes {schedule = {packets = true}} {
  %0 = pk.block_count <M by 16>
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %4 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.private<[M, N], bf16> -> !pk.tile<16x32xbf16>
    pk.accumulate %4, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.pgl<[M, N], bf16, shard 0>
  }
}

// -----

// Without the key nothing does.
// CHECK-LABEL: pk.kernel @plain
// CHECK-NOT: packets
pk.kernel @plain(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) {
  %0 = pk.block_count <M by 16>
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %4 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.private<[M, N], bf16> -> !pk.tile<16x32xbf16>
    pk.accumulate %4, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.pgl<[M, N], bf16, shard 0>
  }
}

// -----

// What a rank stores of its shard for all; of four bytes nothing.
// CHECK-LABEL: pk.kernel @gather
// CHECK: pk.store {{.*}}, %Y[{{.*}}] {remote = {overlap = "intra_sm", why = {{.*}}, packets}}
// CHECK: pk.store {{.*}}, %Z[{{.*}}] {remote = {overlap = "intra_sm", why = {{.*}}"}}
// CHECK: // remark: {{.*}}: pk.store: `Z` does not travel in packets: its elements have not 2 bytes [pk-plan-packets]
pk.kernel @gather(%X: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "X"}, %Y: !pk.pgl<[M, N], bf16, replicate> {pk.name = "Y"}, %W: !pk.pgl<[M, N], f32, shard 0> {pk.name = "W"}, %Z: !pk.pgl<[M, N], f32, replicate> {pk.name = "Z"}) attributes {schedule = {packets = true}} {
  %r = pk.rank
  %0 = pk.block_count <M by 16> of %r sharded
  %1 = pk.block_count <N by 16>
  pk.tasks (%i, %j) in (%0, %1) {
    %m = pk.block[%i] of %r sharded : !pk.block<M by 16>
    %n = pk.block[%j] : !pk.block<N by 16>
    %x = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.pgl<[M, N], bf16, shard 0> -> !pk.tile<16x16xbf16>
    pk.store %x, %Y[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xbf16>, !pk.pgl<[M, N], bf16, replicate>
    %w = pk.load %W[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<16x16xf32>
    pk.store %w, %Z[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xf32>, !pk.pgl<[M, N], f32, replicate>
  }
}

// -----

// A shard of columns is not for all ranks; blocks of both dimensions of a rank's shard are no list of one.
// CHECK-LABEL: pk.kernel @exchange
// CHECK-NOT: packets}
// CHECK: // remark: {{.*}}: pk.store: `Y` does not travel in packets: only what every rank gets is unpacked by all [pk-plan-packets]
pk.kernel @exchange(%X: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "X"}, %Y: !pk.pgl<[M, N], bf16, shard 1> {pk.name = "Y"}) attributes {schedule = {packets = true}} {
  %r = pk.rank
  %0 = pk.block_count <M by 16> of %r sharded
  %1 = pk.block_count <N by 16> sharded
  pk.tasks (%i, %j) in (%0, %1) {
    %m = pk.block[%i] of %r sharded : !pk.block<M by 16>
    %n = pk.block[%j] sharded : !pk.block<N by 16>
    %x = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.pgl<[M, N], bf16, shard 0> -> !pk.tile<16x16xbf16>
    pk.store %x, %Y[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xbf16>, !pk.pgl<[M, N], bf16, shard 1>
  }
}

// -----

// Copy engines write no epochs.
// CHECK-LABEL: pk.kernel @engines
// CHECK-NOT: packets}
// CHECK: // remark: {{.*}}: pk.accumulate: `C` does not travel in packets: copy engines move bytes as they are [pk-plan-packets]
pk.kernel @engines(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) attributes {schedule = {overlap = "copy_engine", packets = true}} {
  %0 = pk.block_count <M by 16>
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %4 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.private<[M, N], bf16> -> !pk.tile<16x32xbf16>
    pk.accumulate %4, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.pgl<[M, N], bf16, shard 0>
  }
}
