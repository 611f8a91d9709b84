// What each rank adds to its own shard alone is stored.
// RUN: pkc-opt %s -p pk-store-own-sums --split-input-file --verify-diagnostics | filecheck %s

// CHECK-LABEL: pk.kernel @own
// CHECK-NOT: pk.accumulate
// CHECK: pk.store %t, %R[%m, %n :
// CHECK-NOT: pk.accumulate
pk.kernel @own(%X: !pk.private<[M, N], f32> {pk.name = "X"}, %R: !pk.pgl<[M, N], f32, shard 0> {pk.name = "R"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %rank = pk.rank
  %some = arith.constant 40 : index
  %rows = pk.block_count <M by 32> of %rank sharded
  %columns = pk.block_count <N by 64>
  pk.tasks (%i, %j) in (%rows, %columns) {
    %m = pk.block[%i] of %rank sharded : !pk.block<M by 32>
    %n = pk.block[%j] : !pk.block<N by 64>
    %t = pk.load %X[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<32x64xf32>
    pk.accumulate %t, %R[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.tile<32x64xf32>, !pk.pgl<[M, N], f32, shard 0>
  }
}

// -----

// All ranks add to these rows.
// CHECK-LABEL: pk.kernel @all
// CHECK: pk.accumulate
pk.kernel @all(%X: !pk.private<[M, N], f32> {pk.name = "X"}, %R: !pk.pgl<[M, N], f32, shard 0> {pk.name = "R"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %rank = pk.rank
  %some = arith.constant 40 : index
  %rows = pk.block_count <M by 32> sharded
  %columns = pk.block_count <N by 64>
  pk.tasks (%i, %j) in (%rows, %columns) {
    %m = pk.block[%i] sharded : !pk.block<M by 32>
    %n = pk.block[%j] : !pk.block<N by 64>
    %t = pk.load %X[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<32x64xf32>
    pk.accumulate %t, %R[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.tile<32x64xf32>, !pk.pgl<[M, N], f32, shard 0>
  }
}

// -----

// Some columns get no contribution, and are zero.
// CHECK-LABEL: pk.kernel @part
// CHECK: pk.accumulate
pk.kernel @part(%X: !pk.private<[M, N], f32> {pk.name = "X"}, %R: !pk.pgl<[M, N], f32, shard 0> {pk.name = "R"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %rank = pk.rank
  %some = arith.constant 40 : index
  %rows = pk.block_count <M by 32> of %rank sharded
  %columns = pk.block_count <N by 64> to %some
  pk.tasks (%i, %j) in (%rows, %columns) {
    %m = pk.block[%i] of %rank sharded : !pk.block<M by 32>
    %n = pk.block[%j] to %some : !pk.block<N by 64>
    %t = pk.load %X[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<32x64xf32>
    pk.accumulate %t, %R[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.tile<32x64xf32>, !pk.pgl<[M, N], f32, shard 0>
  }
}

// -----

// What is read before is what a sum begins with: zero.
// CHECK-LABEL: pk.kernel @read
// CHECK: pk.accumulate
pk.kernel @read(%X: !pk.private<[M, N], f32> {pk.name = "X"}, %R: !pk.pgl<[M, N], f32, shard 0> {pk.name = "R"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %rank = pk.rank
  %some = arith.constant 40 : index
  %rows = pk.block_count <M by 32> of %rank sharded
  %columns = pk.block_count <N by 64>
  pk.tasks (%k, %l) in (%rows, %columns) {
    %a = pk.block[%k] of %rank sharded : !pk.block<M by 32>
    %b = pk.block[%l] : !pk.block<N by 64>
    %r = pk.load %R[%a, %b : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<32x64xf32>
    pk.store %r, %Y[%a, %b : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.tile<32x64xf32>, !pk.private<[M, N], f32>
  }
  pk.tasks (%i, %j) in (%rows, %columns) {
    %m = pk.block[%i] of %rank sharded : !pk.block<M by 32>
    %n = pk.block[%j] : !pk.block<N by 64>
    %t = pk.load %X[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<32x64xf32>
    pk.accumulate %t, %R[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.tile<32x64xf32>, !pk.pgl<[M, N], f32, shard 0>
  }
}

// -----

// What is read behind it was not there at entry, either: callers give nothing.
// CHECK-LABEL: pk.kernel @behind
// CHECK-SAME: "R", pk.fresh}
// CHECK: pk.store %t, %R[%m, %n :
pk.kernel @behind(%X: !pk.private<[M, N], f32> {pk.name = "X"}, %R: !pk.pgl<[M, N], f32, shard 0> {pk.name = "R"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %rank = pk.rank
  %rows = pk.block_count <M by 32> of %rank sharded
  %columns = pk.block_count <N by 64>
  pk.tasks (%i, %j) in (%rows, %columns) {
    %m = pk.block[%i] of %rank sharded : !pk.block<M by 32>
    %n = pk.block[%j] : !pk.block<N by 64>
    %t = pk.load %X[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<32x64xf32>
    pk.accumulate %t, %R[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.tile<32x64xf32>, !pk.pgl<[M, N], f32, shard 0>
  }
  pk.tasks (%k, %l) in (%rows, %columns) {
    %a = pk.block[%k] of %rank sharded : !pk.block<M by 32>
    %b = pk.block[%l] : !pk.block<N by 64>
    %r = pk.load %R[%a, %b : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<32x64xf32>
    pk.store %r, %Y[%a, %b : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.tile<32x64xf32>, !pk.private<[M, N], f32>
  }
}
