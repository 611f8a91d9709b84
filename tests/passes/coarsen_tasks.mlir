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
// CHECK: pk.block[%[[J]]] : !pk.block<N by 64>
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %[[TURNS]] step %{{.*}} {
// CHECK: %[[BEFORE:.*]] = arith.muli %[[K]], %{{.*}} : index
// CHECK: %[[I:.*]] = arith.addi %[[BEFORE]], %[[P]] : index
// CHECK: pk.block[%[[I]]] : !pk.block<M by 32>
// CHECK: scf.yield
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

// Indices of which none says anything of the tile become one.
// CHECK-LABEL: pk.kernel @both
// CHECK: %[[SOME:.*]] = arith.muli %batch, %four : index
// CHECK: %[[ALL:.*]] = arith.muli %[[SOME]], %rows : index
// CHECK: %[[FEW:.*]] = arith.minsi %[[ALL]], %{{.*}} : index
// CHECK: pk.tasks (%[[P:.*]]) in (%[[FEW]]) {
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[TOTAL:.*]] = %{{.*}}) -> (!pk.tile<64xf32>) {
// CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[P]] : index
// CHECK: %[[I:.*]] = arith.remsi %[[AT]], %rows : index
// CHECK: %[[REST:.*]] = arith.divsi %[[AT]], %rows : index
// CHECK: %[[H:.*]] = arith.remsi %[[REST]], %four : index
// CHECK: %[[B:.*]] = arith.divsi %[[REST]], %four : index
// CHECK: %[[X:.*]] = pk.load %X[%[[B]], %[[H]], %[[I]], %{{.*}} :
// CHECK: pk.add %[[TOTAL]], %[[X]]
// CHECK: pk.accumulate %[[SUM]]
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

// -----

// What a loop adds up begins at the sum of the shares before.
// CHECK-LABEL: pk.kernel @inner
// CHECK: scf.for {{.*}} iter_args(%[[TOTAL:.*]] = %{{.*}}) -> (!pk.tile<f32>) {
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[PART:.*]] = %[[TOTAL]]) -> (!pk.tile<f32>) {
// CHECK: pk.add %[[PART]], %{{.*}} :
// CHECK: scf.yield
// CHECK: scf.yield %[[SUM]] : !pk.tile<f32>
pk.kernel @inner(%X: !pk.private<[M, 4], f32> {pk.name = "X"}, %S: !pk.pgl<[1], f32, replicate> {pk.name = "S"}) attributes {schedule = {}} {
  %rows = pk.dim "M"
  pk.tasks (%i) in (%rows) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %four = arith.constant 4 : index
    %none = pk.full 0.0 : f32 : !pk.tile<f32>
    %s = scf.for %k = %zero to %four step %one iter_args(%a = %none) -> (!pk.tile<f32>) {
      %x = pk.load %X[%i, %k : index, index] : !pk.private<[M, 4], f32> -> !pk.tile<f32>
      %y = pk.add %a, %x : !pk.tile<f32>
      scf.yield %y : !pk.tile<f32>
    }
    pk.accumulate %s, %S[%zero : index] : !pk.tile<f32>, !pk.pgl<[1], f32, replicate>
  }
}

// -----

// Sums that need more registers than there are stay shares: what counts is all of them.
// CHECK-LABEL: pk.kernel @large
// CHECK-NOT: scf.for
pk.kernel @large(%X: !pk.private<[M, 8192], f32> {pk.name = "X"}, %S: !pk.pgl<[2, 8192], f32, replicate> {pk.name = "S"}) attributes {schedule = {consumers = 1 : i64}} {
  %rows = pk.dim "M"
  pk.tasks (%i) in (%rows) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %d = pk.block[%zero] : !pk.block<8192 by 8192>
    %x = pk.load %X[%i, %d : index, !pk.block<8192 by 8192>] : !pk.private<[M, 8192], f32> -> !pk.tile<8192xf32>
    %y = pk.mul %x, %x : !pk.tile<8192xf32>
    %e = pk.exp %y : !pk.tile<8192xf32>
    pk.accumulate %y, %S[%zero, %d : index, !pk.block<8192 by 8192>] : !pk.tile<8192xf32>, !pk.pgl<[2, 8192], f32, replicate>
    pk.accumulate %e, %S[%one, %d : index, !pk.block<8192 by 8192>] : !pk.tile<8192xf32>, !pk.pgl<[2, 8192], f32, replicate>
  }
}

// -----

// Rows that a table names have places by the indices of their tasks.
// CHECK-LABEL: pk.kernel @rows
// CHECK-NOT: scf.for
pk.kernel @rows(%X: !pk.private<[M, 16], f32> {pk.name = "X"}, %r: !pk.private<[M], i32> {pk.name = "r"}, %S: !pk.pgl<[L, 16], f32, replicate> {pk.name = "S"}, %T: !pk.pgl<[1], f32, replicate> {pk.name = "T"}) attributes {schedule = {}} {
  %rows = pk.block_count <M by 32>
  %zero = arith.constant 0 : index
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] : !pk.block<M by 32>
    %n = pk.block[%zero] : !pk.block<16 by 16>
    %x = pk.load %X[%m, %n : !pk.block<M by 32>, !pk.block<16 by 16>] : !pk.private<[M, 16], f32> -> !pk.tile<32x16xf32>
    %t = pk.load %r[%m : !pk.block<M by 32>] : !pk.private<[M], i32> -> !pk.tile<32xi32>
    pk.scatter_accumulate %x, %S rows %t[%n : !pk.block<16 by 16>] : !pk.tile<32x16xf32>, !pk.pgl<[L, 16], f32, replicate>, !pk.tile<32xi32>
    %u = pk.row_sum %x : !pk.tile<32x16xf32> -> !pk.tile<32xf32>
    %s = pk.row_sum %u : !pk.tile<32xf32> -> !pk.tile<f32>
    pk.accumulate %s, %T[%zero : index] : !pk.tile<f32>, !pk.pgl<[1], f32, replicate>
  }
}
