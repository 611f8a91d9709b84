// What several tasks of a rank contribute to one tile is added up in a phase of its own.
// RUN: pkc-opt %s -p pk-collect-sums --split-input-file --verify-diagnostics | filecheck %s

// Vectors are added up many at once, in the order of the tasks, as they were before they are rounded.
// CHECK-LABEL: pk.kernel @columns
// CHECK-SAME: %S_shares: !pk.private<[M, N], f32> {pk.name = "S.shares", pk.scratch}
// CHECK: pk.tasks (%i, %j) in (%rows, %columns) {
// CHECK: pk.store %t, %S_shares[%i, %n :
// CHECK-NOT: pk.accumulate
// CHECK: pk.tasks (%[[J:.*]]) in (%columns) {
// CHECK: %[[N:.*]] = pk.block[%[[J]]] : !pk.block<N by 64>
// CHECK: %[[COUNT:.*]] = pk.block_count <M by 64> to %rows
// CHECK: %[[SUM:.*]] = scf.for %[[I:.*]] = %{{.*}} to %[[COUNT]] step %{{.*}} iter_args(%[[TOTAL:.*]] = %{{.*}})
// CHECK-NEXT: %[[M:.*]] = pk.block[%[[I]]] to %rows : !pk.block<M by 64>
// CHECK-NEXT: %[[SHARES:.*]] = pk.load %S_shares[%[[M]], %[[N]] :
// CHECK-NEXT: %[[CLIPPED:.*]] = pk.clip %[[SHARES]] axis 0 to %[[M]]
// CHECK-NEXT: %[[TURNED:.*]] = pk.transpose %[[CLIPPED]]
// CHECK-NEXT: %[[PART:.*]] = pk.row_sum %[[TURNED]]
// CHECK-NEXT: pk.add %[[TOTAL]], %[[PART]]
// CHECK: %[[ROUNDED:.*]] = pk.cast %[[SUM]]
// CHECK-NEXT: pk.accumulate %[[ROUNDED]], %S[%[[N]] :
pk.kernel @columns(%X: !pk.private<[M, N], f32> {pk.name = "X"}, %S: !pk.pgl<[N], bf16, shard 0> {pk.name = "S"}) attributes {schedule = {}} {
  %rows = pk.block_count <M by 32>
  %columns = pk.block_count <N by 64>
  pk.tasks (%i, %j) in (%rows, %columns) {
    %m = pk.block[%i] : !pk.block<M by 32>
    %n = pk.block[%j] : !pk.block<N by 64>
    %x = pk.load %X[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<32x64xf32>
    %y = pk.transpose %x : !pk.tile<32x64xf32> -> !pk.tile<64x32xf32>
    %t = pk.row_sum %y : !pk.tile<64x32xf32> -> !pk.tile<64xf32>
    %r = pk.cast %t : !pk.tile<64xf32> -> !pk.tile<64xbf16>
    pk.accumulate %r, %S[%n : !pk.block<N by 64>] : !pk.tile<64xbf16>, !pk.pgl<[N], bf16, shard 0>
  }
}

// -----

// Numbers lie side by side, and are added as rows; what is not there counts as zero.
// CHECK-LABEL: pk.kernel @total
// CHECK-SAME: %S_shares: !pk.private<[1, H, M], i32>
// CHECK: pk.store %t, %S_shares[%zero, %h, %i : index, index, index]
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK: pk.tasks (%{{.*}}) in (%[[ONE]]) {
// CHECK: scf.for %[[H:.*]] = %{{.*}} to %heads
// CHECK: %[[COUNT:.*]] = pk.block_count <M by 1024> to %rows
// CHECK: scf.for %[[B:.*]] = %{{.*}} to %[[COUNT]]
// CHECK-NEXT: %[[M:.*]] = pk.block[%[[B]]] to %rows : !pk.block<M by 1024>
// CHECK-NEXT: %[[ROW:.*]] = pk.load %S_shares[%{{.*}}, %[[H]], %[[M]] :
// CHECK-NEXT: %[[CLIPPED:.*]] = pk.clip %[[ROW]] axis 0 to %[[M]]
// CHECK-NEXT: pk.row_sum %[[CLIPPED]]
// CHECK: pk.accumulate
pk.kernel @total(%X: !pk.private<[H, M], i32> {pk.name = "X"}, %S: !pk.pgl<[1], i32, replicate> {pk.name = "S"}) attributes {schedule = {}} {
  %zero = arith.constant 0 : index
  %heads = pk.dim "H"
  %rows = pk.block_count <M by 32>
  pk.tasks (%h, %i) in (%heads, %rows) {
    %m = pk.block[%i] : !pk.block<M by 32>
    %x = pk.load %X[%h, %m : index, !pk.block<M by 32>] : !pk.private<[H, M], i32> -> !pk.tile<32xi32>
    %t = pk.row_sum %x : !pk.tile<32xi32> -> !pk.tile<i32>
    pk.accumulate %t, %S[%zero : index] : !pk.tile<i32>, !pk.pgl<[1], i32, replicate>
  }
}

// -----

// One task contributes to each tile, or the schedule allows any order: nothing changes.
// CHECK-LABEL: pk.kernel @once
// CHECK-NOT: shares
pk.kernel @once(%X: !pk.private<[M], f32> {pk.name = "X"}, %S: !pk.pgl<[M], f32, shard 0> {pk.name = "S"}, %T: !pk.pgl<[M], f32, shard 0> {pk.name = "T"}) attributes {schedule = {}} {
  %rows = pk.block_count <M by 32>
  %one = arith.constant 1 : index
  pk.tasks (%i, %j) in (%rows, %one) {
    %m = pk.block[%i] : !pk.block<M by 32>
    %x = pk.load %X[%m : !pk.block<M by 32>] : !pk.private<[M], f32> -> !pk.tile<32xf32>
    pk.accumulate %x, %S[%m : !pk.block<M by 32>] : !pk.tile<32xf32>, !pk.pgl<[M], f32, shard 0>
  }
}

// -----

// Of nested tasks, whoever adds up counts again: tiles in front of its tasks, shares in them.
// CHECK-LABEL: pk.kernel @nested
// CHECK: pk.store %t, %S_shares[%e, %i, %n : index, index, !pk.block<N by 64>]
// CHECK: %[[COLUMNS:.*]] = pk.block_count <N by 64>
// CHECK: pk.tasks (%[[J:.*]]) in (%[[COLUMNS]]) {
// CHECK: %[[ROWS:.*]] = pk.block_count <M by 32>
// CHECK: scf.for %[[E:.*]] = %{{.*}} to %experts
// CHECK: %[[BLOCKS:.*]] = pk.block_count <M by 64> to %[[ROWS]]
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[BLOCKS]]
// CHECK: pk.accumulate
pk.kernel @nested(%X: !pk.private<[E, M, N], f32> {pk.name = "X"}, %S: !pk.pgl<[N], f32, replicate> {pk.name = "S"}) attributes {schedule = {}} {
  %experts = pk.dim "E"
  pk.tasks (%e) in (%experts) {
    %rows = pk.block_count <M by 32>
    %columns = pk.block_count <N by 64>
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] : !pk.block<M by 32>
      %n = pk.block[%j] : !pk.block<N by 64>
      %x = pk.load %X[%e, %m, %n : index, !pk.block<M by 32>, !pk.block<N by 64>] : !pk.private<[E, M, N], f32> -> !pk.tile<32x64xf32>
      %y = pk.transpose %x : !pk.tile<32x64xf32> -> !pk.tile<64x32xf32>
      %t = pk.row_sum %y : !pk.tile<64x32xf32> -> !pk.tile<64xf32>
      pk.accumulate %t, %S[%n : !pk.block<N by 64>] : !pk.tile<64xf32>, !pk.pgl<[N], f32, replicate>
    }
  }
}

// -----

// Several statements contribute to one tile: each has its shares, and a phase behind the last adds up all of them.
// CHECK-LABEL: pk.kernel @statements
// CHECK: pk.store %x, %S_shares[%{{.*}}, %i : index, index]
// CHECK: pk.store %y, %S_shares_1[%{{.*}} : index]
// CHECK: %[[SUM:.*]] = scf.for
// CHECK: pk.load %S_shares[
// CHECK: %[[SHARE:.*]] = pk.load %S_shares_1[
// CHECK: %[[ALL:.*]] = pk.add %[[SUM]], %[[SHARE]] : !pk.tile<f32>
// CHECK: pk.accumulate %[[ALL]], %S
// CHECK-NOT: pk.accumulate
pk.kernel @statements(%X: !pk.private<[M], f32> {pk.name = "X"}, %S: !pk.pgl<[1], f32, replicate> {pk.name = "S"}) attributes {schedule = {}} {
  %rows = pk.dim "M"
  pk.tasks (%i) in (%rows) {
    %zero = arith.constant 0 : index
    %x = pk.load %X[%i : index] : !pk.private<[M], f32> -> !pk.tile<f32>
    pk.accumulate %x, %S[%zero : index] : !pk.tile<f32>, !pk.pgl<[1], f32, replicate>
  }
  %one = arith.constant 1 : index
  pk.tasks (%j) in (%one) {
    %zero = arith.constant 0 : index
    %y = pk.full 5.000000e-01 : f32 : !pk.tile<f32>
    pk.accumulate %y, %S[%zero : index] : !pk.tile<f32>, !pk.pgl<[1], f32, replicate>
  }
}

// -----

// What is read between two statements is the sum of the first one alone: nothing changes.
// CHECK-LABEL: pk.kernel @between
// CHECK-NOT: shares
pk.kernel @between(%X: !pk.private<[M], f32> {pk.name = "X"}, %S: !pk.pgl<[1], f32, replicate> {pk.name = "S"}, %Y: !pk.private<[1], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : index
  pk.tasks (%i) in (%one) {
    %x = pk.load %X[%zero : index] : !pk.private<[M], f32> -> !pk.tile<f32>
    pk.accumulate %x, %S[%zero : index] : !pk.tile<f32>, !pk.pgl<[1], f32, replicate>
  }
  pk.tasks (%i) in (%one) {
    %s = pk.load %S[%zero : index] : !pk.pgl<[1], f32, replicate> -> !pk.tile<f32>
    pk.store %s, %Y[%zero : index] : !pk.tile<f32>, !pk.private<[1], f32>
  }
  pk.tasks (%i) in (%one) {
    %y = pk.full 5.000000e-01 : f32 : !pk.tile<f32>
    pk.accumulate %y, %S[%zero : index] : !pk.tile<f32>, !pk.pgl<[1], f32, replicate>
  }
}
