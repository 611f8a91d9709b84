// Many tasks that have shares of the same tiles become few.
// RUN: pkc-opt %s -p pk-coarsen-tasks --split-input-file --verify-diagnostics | filecheck %s

// Tiles of the sum have an index of their own; a task has every 1024th value of the other one.
// CHECK-LABEL: pk.kernel @columns
// CHECK: %[[MOST:.*]] = arith.constant 1024 : index
// CHECK: %[[FEW:.*]] = arith.minsi %rows, %[[MOST]] : index
// CHECK: pk.tasks (%[[P:.*]], %[[J:.*]]) in (%[[FEW]], %columns) {
// CHECK: %[[LEFT:.*]] = arith.subi %rows, %[[P]] : index
// CHECK: %[[UP:.*]] = arith.addi %[[LEFT]], %{{.*}} : index
// CHECK: %[[TURNS:.*]] = arith.divsi %[[UP]], %{{.*}} : index
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %[[TURNS]] step %{{.*}} {
// CHECK: %[[BEFORE:.*]] = arith.muli %[[K]], %{{.*}} : index
// CHECK: %[[I:.*]] = arith.addi %[[BEFORE]], %[[P]] : index
// CHECK: pk.block[%[[I]]] : !pk.block<M by 32>
// CHECK: pk.block[%[[J]]] : !pk.block<N by 64>
// CHECK: pk.accumulate
pk.kernel @columns(%X: !pk.private<[M, N], f32> {pk.name = "X"}, %S: !pk.pgl<[N], f32, shard 0> {pk.name = "S"}) attributes {schedule = {}} {
  %rows = pk.block_count <M by 32>
  %columns = pk.block_count <N by 64>
  pk.tasks (%i, %j) in (%rows, %columns) {
    %m = pk.block[%i] : !pk.block<M by 32>
    %n = pk.block[%j] : !pk.block<N by 64>
    %x = pk.load %X[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<32x64xf32>
    %y = pk.transpose %x : !pk.tile<32x64xf32> -> !pk.tile<64x32xf32>
    %t = pk.row_sum %y : !pk.tile<64x32xf32> -> !pk.tile<64xf32>
    pk.accumulate %t, %S[%n : !pk.block<N by 64>] : !pk.tile<64xf32>, !pk.pgl<[N], f32, shard 0>
  }
}

// -----

// Larger shares of two indices: loops in each other. A number of tasks that is small as it is stays.
// CHECK-LABEL: pk.kernel @both
// CHECK: arith.constant 256 : index
// CHECK: pk.tasks (%{{.*}}, %[[H:.*]], %{{.*}}) in (%{{.*}}, %four, %{{.*}}) {
// CHECK: scf.for
// CHECK: scf.for
// CHECK: pk.load %X[%{{.*}}, %[[H]], %{{.*}} :
// CHECK: pk.accumulate
pk.kernel @both(%X: !pk.private<[B, 4, M, 64], f32> {pk.name = "X"}, %S: !pk.pgl<[64], f32, replicate> {pk.name = "S"}) attributes {schedule = {}} {
  %four = arith.constant 4 : index
  %zero = arith.constant 0 : index
  %batch = pk.dim "B"
  %rows = pk.dim "M"
  pk.tasks (%b, %h, %i) in (%batch, %four, %rows) {
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %x = pk.load %X[%b, %h, %i, %d : index, index, index, !pk.block<64 by 64>] : !pk.private<[B, 4, M, 64], f32> -> !pk.tile<64xf32>
    pk.accumulate %x, %S[%d : !pk.block<64 by 64>] : !pk.tile<64xf32>, !pk.pgl<[64], f32, replicate>
  }
}

// -----

// Each task contributes to a tile of its own.
// CHECK-LABEL: pk.kernel @own
// CHECK-NOT: scf.for
pk.kernel @own(%X: !pk.private<[M], f32> {pk.name = "X"}, %S: !pk.pgl<[M], f32, shard 0> {pk.name = "S"}) attributes {schedule = {}} {
  %rows = pk.block_count <M by 32>
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] : !pk.block<M by 32>
    %x = pk.load %X[%m : !pk.block<M by 32>] : !pk.private<[M], f32> -> !pk.tile<32xf32>
    pk.accumulate %x, %S[%m : !pk.block<M by 32>] : !pk.tile<32xf32>, !pk.pgl<[M], f32, shard 0>
  }
}
