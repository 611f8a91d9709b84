// A sum over a dimension becomes sums of splits, and a phase that adds them up.
// RUN: pkc-opt %s -p pk-split-loops --split-input-file --verify-diagnostics | filecheck %s

// Split s goes from iteration n * s / 3 to n * (s + 1) / 3. Its sum lies where its tile does, in f32. What stands
// behind the loop follows the splits, added in order.
// CHECK-LABEL: pk.kernel @matmul
// CHECK-SAME: %acc_partial: !pk.private<[3, M, N], f32> {pk.name = "acc.partial", pk.scratch}
// CHECK: %[[SPLITS:.*]] = arith.constant 3 : index
// CHECK: pk.tasks (%i, %j, %split) in (%rows, %columns, %[[SPLITS]]) {
// CHECK: %[[ZEROS:.*]] = pk.full 0.0
// CHECK: %[[STEPS:.*]] = pk.block_count <K by 64>
// CHECK: %[[NEXT:.*]] = arith.addi %split, %{{.*}}
// CHECK-NEXT: %[[A:.*]] = arith.muli %[[STEPS]], %split
// CHECK-NEXT: %[[FIRST:.*]] = arith.divsi %[[A]], %[[SPLITS]]
// CHECK-NEXT: %[[B:.*]] = arith.muli %[[STEPS]], %[[NEXT]]
// CHECK-NEXT: %[[LAST:.*]] = arith.divsi %[[B]], %[[SPLITS]]
// CHECK-NEXT: %[[ACC:.*]] = scf.for %{{.*}} = %[[FIRST]] to %[[LAST]] step %{{.*}} iter_args(%{{.*}} = %[[ZEROS]])
// CHECK: pk.mma
// CHECK: pk.store %[[ACC]], %acc_partial[%split, %m, %n :
// CHECK-NOT: pk.store
// CHECK: pk.tasks (%{{.*}}, %{{.*}}) in
// CHECK-NOT: pk.mma
// CHECK: %[[SUM:.*]] = scf.for %[[T:.*]] = %{{.*}} to %{{.*}} step
// CHECK: %[[SHARE:.*]] = pk.load %acc_partial[%[[T]], %{{.*}}, %{{.*}} :
// CHECK-NEXT: pk.add %{{.*}}, %[[SHARE]]
// CHECK: pk.store %[[SUM]], %C
pk.kernel @matmul(%A: !pk.private<[M, K], bf16> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], f32> {pk.name = "C"}) attributes {schedule = {split_K = 3 : i64}} {
  %rows = pk.block_count <M by 64>
  %columns = pk.block_count <N by 32>
  pk.tasks (%i, %j) in (%rows, %columns) {
    %m = pk.block[%i] : !pk.block<M by 64>
    %n = pk.block[%j] : !pk.block<N by 32>
    %zeros = pk.full 0.0 : f32 : !pk.tile<64x32xf32>
    %steps = pk.block_count <K by 64>
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %acc = scf.for %t = %zero to %steps step %one iter_args(%sum = %zeros) -> (!pk.tile<64x32xf32>) {
      %k = pk.block[%t] : !pk.block<K by 64>
      %a = pk.load %A[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<64x64xbf16>
      %b = pk.load %B[%k, %n : !pk.block<K by 64>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<64x32xbf16>
      %next = pk.mma %a, %b, %sum : !pk.tile<64x64xbf16>, !pk.tile<64x32xbf16> -> !pk.tile<64x32xf32>
      scf.yield %next : !pk.tile<64x32xf32>
    }
    pk.store %acc, %C[%m, %n : !pk.block<M by 64>, !pk.block<N by 32>] : !pk.tile<64x32xf32>, !pk.private<[M, N], f32>
  }
}

// -----

// Sums of tiles that are computed, two at once. A task index that no axis goes through is a separate dimension.
// CHECK-LABEL: pk.kernel @rows
// CHECK-SAME: %first_partial: !pk.private<[2, B, M], f32> {pk.name = "first.partial", pk.scratch}
// CHECK-SAME: %second_partial: !pk.private<[2, B, M], f32> {pk.name = "second.partial", pk.scratch}
// CHECK: pk.tasks (%h, %i, %split) in
// CHECK: scf.for
// CHECK: pk.store %{{.*}}, %first_partial[%split, %h, %m :
// CHECK: pk.store %{{.*}}, %second_partial[%split, %h, %m :
// CHECK: pk.tasks
// CHECK: scf.for
// CHECK: pk.load %first_partial
// CHECK-NEXT: pk.add
// CHECK-NEXT: pk.load %second_partial
// CHECK-NEXT: pk.add
// CHECK-NEXT: scf.yield
// CHECK: pk.div
pk.kernel @rows(%A: !pk.private<[B, M, K], f32> {pk.name = "A"}, %C: !pk.private<[B, M], f32> {pk.name = "C"}) attributes {schedule = {split_K = 2 : i64}} {
  %batches = pk.dim "B"
  %rows = pk.block_count <M by 64>
  pk.tasks (%h, %i) in (%batches, %rows) {
    %m = pk.block[%i] : !pk.block<M by 64>
    %zeros = pk.full 0.0 : f32 : !pk.tile<64xf32>
    %steps = pk.block_count <K by 64>
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %first, %second = scf.for %t = %zero to %steps step %one iter_args(%x = %zeros, %y = %zeros) -> (!pk.tile<64xf32>, !pk.tile<64xf32>) {
      %k = pk.block[%t] : !pk.block<K by 64>
      %a = pk.load %A[%h, %m, %k : index, !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[B, M, K], f32> -> !pk.tile<64x64xf32>
      %e = pk.exp %a : !pk.tile<64x64xf32>
      %s = pk.row_sum %a : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
      %u = pk.row_sum %e : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
      %x1 = pk.add %s, %x : !pk.tile<64xf32>
      %y1 = pk.add %y, %u : !pk.tile<64xf32>
      scf.yield %x1, %y1 : !pk.tile<64xf32>, !pk.tile<64xf32>
    }
    %q = pk.div %first, %second : !pk.tile<64xf32>
    pk.store %q, %C[%h, %m : index, !pk.block<M by 64>] : !pk.tile<64xf32>, !pk.private<[B, M], f32>
  }
}

// -----

// One split is the loop itself; so is a kernel whose schedule says nothing.
// CHECK-LABEL: pk.kernel @one
// CHECK-NOT: partial
// CHECK: scf.for
pk.kernel @one(%A: !pk.private<[M, K], f32> {pk.name = "A"}, %C: !pk.private<[M], f32> {pk.name = "C"}) attributes {schedule = {split_K = 1 : i64}} {
  %rows = pk.block_count <M by 64>
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] : !pk.block<M by 64>
    %zeros = pk.full 0.0 : f32 : !pk.tile<64xf32>
    %steps = pk.block_count <K by 64>
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %sum = scf.for %t = %zero to %steps step %one iter_args(%x = %zeros) -> (!pk.tile<64xf32>) {
      %k = pk.block[%t] : !pk.block<K by 64>
      %a = pk.load %A[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], f32> -> !pk.tile<64x64xf32>
      %s = pk.row_sum %a : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
      %next = pk.add %x, %s : !pk.tile<64xf32>
      scf.yield %next : !pk.tile<64xf32>
    }
    pk.store %sum, %C[%m : !pk.block<M by 64>] : !pk.tile<64xf32>, !pk.private<[M], f32>
  }
}

// -----

// CHECK: error[PK442]: `split_K=2` is not possible in `scaled`
// CHECK: this loop carries something other than a sum that begins at zero
pk.kernel @scaled(%A: !pk.private<[M, K], f32> {pk.name = "A"}, %C: !pk.private<[M], f32> {pk.name = "C"}) attributes {schedule = {split_K = 2 : i64}} {
  %rows = pk.block_count <M by 64>
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] : !pk.block<M by 64>
    %zeros = pk.full 1.0 : f32 : !pk.tile<64xf32>
    %steps = pk.block_count <K by 64>
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %sum = scf.for %t = %zero to %steps step %one iter_args(%x = %zeros) -> (!pk.tile<64xf32>) {
      %k = pk.block[%t] : !pk.block<K by 64>
      %a = pk.load %A[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], f32> -> !pk.tile<64x64xf32>
      %s = pk.row_sum %a : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
      %next = pk.add %x, %s : !pk.tile<64xf32>
      scf.yield %next : !pk.tile<64xf32>
    }
    pk.store %sum, %C[%m : !pk.block<M by 64>] : !pk.tile<64xf32>, !pk.private<[M], f32>
  }
}
