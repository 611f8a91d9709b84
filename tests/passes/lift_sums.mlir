// Each task contributes once to a tile of a sum over ranks.
// RUN: pkc-opt %s -p pk-lift-sums,pk-dce --split-input-file --remarks | filecheck %s

// Behind the loop, what was rounded in each iteration is added up before it is rounded.
// CHECK-LABEL: pk.kernel @carried
// CHECK: %[[ZERO:.*]] = pk.full 0.000000e+00 : f32 : !pk.tile<16x32xf32>
// CHECK-NEXT: %[[SUM:.*]] = scf.for %[[T:.*]] = %{{.*}} iter_args(%[[ACC:.*]] = %[[ZERO]])
// CHECK: %[[X:.*]] = pk.load
// CHECK-NEXT: %[[NEXT:.*]] = pk.add %[[ACC]], %[[X]] : !pk.tile<16x32xf32>
// CHECK-NEXT: scf.yield %[[NEXT]]
// CHECK: %[[ROUNDED:.*]] = pk.cast %[[SUM]] : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
// CHECK-NEXT: pk.accumulate %[[ROUNDED]], %C
// CHECK-NOT: pk.accumulate
pk.kernel @carried(%X: !pk.private<[T, M, N], f32> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) {
  %rows = pk.block_count <M by 16>
  pk.tasks (%i) in (%rows) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %m = pk.block[%i] : !pk.block<M by 16>
    %n = pk.block[%zero] : !pk.block<N by 32>
    %count = pk.dim "T"
    scf.for %t = %zero to %count step %one {
      %x = pk.load %X[%t, %m, %n : index, !pk.block<M by 16>, !pk.block<N by 32>] : !pk.private<[T, M, N], f32> -> !pk.tile<16x32xf32>
      %c = pk.cast %x : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
      pk.accumulate %c, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.pgl<[M, N], bf16, shard 0>
    }
  }
}

// -----

// A loop whose iterations contribute to other tiles becomes tasks, which load for themselves what it uses; of two
// contributions to one tile the sum is contributed.
// CHECK-LABEL: pk.kernel @spread
// CHECK: pk.tasks (%i) in
// CHECK: %[[COLUMNS:.*]] = pk.block_count <N by 32>
// CHECK: pk.tasks (%[[J:.*]]) in (%[[COLUMNS]]) {
// CHECK-NEXT: %[[X:.*]] = pk.load %X
// CHECK: %[[TWICE:.*]] = pk.add %[[X]], %[[X]]
// CHECK-NEXT: pk.accumulate %[[TWICE]], %C
// CHECK-NOT: pk.accumulate
// CHECK-NOT: scf.for
pk.kernel @spread(%X: !pk.private<[M, 32], f32> {pk.name = "X"}, %C: !pk.pgl<[M, N], f32, shard 0> {pk.name = "C"}) {
  %rows = pk.block_count <M by 16>
  pk.tasks (%i) in (%rows) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %m = pk.block[%i] : !pk.block<M by 16>
    %all = pk.block[%zero] : !pk.block<32 by 32>
    %x = pk.load %X[%m, %all : !pk.block<M by 16>, !pk.block<32 by 32>] : !pk.private<[M, 32], f32> -> !pk.tile<16x32xf32>
    %columns = pk.block_count <N by 32>
    scf.for %j = %zero to %columns step %one {
      %n = pk.block[%j] : !pk.block<N by 32>
      pk.accumulate %x, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xf32>, !pk.pgl<[M, N], f32, shard 0>
      pk.accumulate %x, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xf32>, !pk.pgl<[M, N], f32, shard 0>
    }
  }
}

// -----

// What a branch contributes is chosen, zeros elsewhere; what is loaded alone is loaded in any case.
// CHECK-LABEL: pk.kernel @branch
// CHECK: %[[X:.*]] = pk.load %X
// CHECK: %[[NONE:.*]] = pk.full 0.000000e+00
// CHECK: %[[MASK:.*]] = pk.splat %first : i1
// CHECK: %[[CHOSEN:.*]] = pk.select %[[MASK]], %[[X]], %[[NONE]]
// CHECK: pk.accumulate %[[CHOSEN]], %C[
pk.kernel @branch(%X: !pk.private<[M, 32], f32> {pk.name = "X"}, %C: !pk.pgl<[M, 32], f32, shard 0> {pk.name = "C"}) {
  %rows = pk.block_count <M by 16>
  pk.tasks (%i) in (%rows) {
    %zero = arith.constant 0 : index
    %m = pk.block[%i] : !pk.block<M by 16>
    %all = pk.block[%zero] : !pk.block<32 by 32>
    %x = pk.load %X[%m, %all : !pk.block<M by 16>, !pk.block<32 by 32>] : !pk.private<[M, 32], f32> -> !pk.tile<16x32xf32>
    %first = arith.cmpi eq, %i, %zero : index
    scf.if %first {
      pk.accumulate %x, %C[%m, %all : !pk.block<M by 16>, !pk.block<32 by 32>] : !pk.tile<16x32xf32>, !pk.pgl<[M, 32], f32, shard 0>
    }
  }
}

// -----

// What is computed in a branch the branch gives, on its other side zeros.
// CHECK-LABEL: pk.kernel @otherwise
// CHECK: %[[SUM:.*]] = scf.if %first -> (!pk.tile<16x32xf32>) {
// CHECK: %[[NONE:.*]] = pk.full 0.000000e+00
// CHECK-NEXT: scf.yield %[[NONE]]
// CHECK: } else {
// CHECK: %[[TWICE:.*]] = pk.add %x, %x
// CHECK-NEXT: scf.yield %[[TWICE]]
// CHECK: pk.accumulate %[[SUM]], %C[
pk.kernel @otherwise(%X: !pk.private<[M, 32], f32> {pk.name = "X"}, %C: !pk.pgl<[M, 32], f32, shard 0> {pk.name = "C"}) {
  %rows = pk.block_count <M by 16>
  pk.tasks (%i) in (%rows) {
    %zero = arith.constant 0 : index
    %m = pk.block[%i] : !pk.block<M by 16>
    %all = pk.block[%zero] : !pk.block<32 by 32>
    %x = pk.load %X[%m, %all : !pk.block<M by 16>, !pk.block<32 by 32>] : !pk.private<[M, 32], f32> -> !pk.tile<16x32xf32>
    %first = arith.cmpi eq, %i, %zero : index
    scf.if %first {
    } else {
      %twice = pk.add %x, %x : !pk.tile<16x32xf32>
      pk.accumulate %twice, %C[%m, %all : !pk.block<M by 16>, !pk.block<32 by 32>] : !pk.tile<16x32xf32>, !pk.pgl<[M, 32], f32, shard 0>
    }
  }
}

// -----

// Elements that constants name are there whatever the branch says, each of them.
// CHECK-LABEL: pk.kernel @two
// CHECK: scf.if
// CHECK: }
// CHECK-DAG: pk.accumulate {{.*}}, %C[%zero : index]
// CHECK-DAG: pk.accumulate {{.*}}, %C[%one : index]
// CHECK-NOT: remark
pk.kernel @two(%X: !pk.private<[M], f32> {pk.name = "X"}, %C: !pk.pgl<[2], f32, replicate> {pk.name = "C"}) {
  %rows = pk.dim "M"
  pk.tasks (%i) in (%rows) {
    %zero = arith.constant 0 : index
    %x = pk.load %X[%i : index] : !pk.private<[M], f32> -> !pk.tile<f32>
    %valid = arith.cmpi sgt, %i, %zero : index
    scf.if %valid {
      %y = pk.add %x, %x : !pk.tile<f32>
      pk.accumulate %y, %C[%zero : index] : !pk.tile<f32>, !pk.pgl<[2], f32, replicate>
      %one = arith.constant 1 : index
      %n = pk.full 1.0 : f32 : !pk.tile<f32>
      pk.accumulate %n, %C[%one : index] : !pk.tile<f32>, !pk.pgl<[2], f32, replicate>
    }
  }
}

// -----

// A row that may not exist is added to where the branch says that it does.
// CHECK-LABEL: pk.kernel @next
// CHECK: scf.if
// CHECK: pk.accumulate
// CHECK: // remark: {{.*}}how often a task contributes is not known before: it stands in a branch [pk-lift-sums]
pk.kernel @next(%X: !pk.private<[M], f32> {pk.name = "X"}, %C: !pk.pgl<[M], f32, shard 0> {pk.name = "C"}) {
  %rows = pk.dim "M"
  pk.tasks (%i) in (%rows) {
    %one = arith.constant 1 : index
    %x = pk.load %X[%i : index] : !pk.private<[M], f32> -> !pk.tile<f32>
    %j = arith.addi %i, %one : index
    %exists = arith.cmpi slt, %j, %rows : index
    scf.if %exists {
      pk.accumulate %x, %C[%j : index] : !pk.tile<f32>, !pk.pgl<[M], f32, shard 0>
    }
  }
}
