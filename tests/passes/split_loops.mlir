// A sum over a dimension becomes sums of splits, and a phase that adds them up.
// RUN: pkc-opt %s -p pk-split-loops --split-input-file --verify-diagnostics | filecheck %s

// Split s goes from iteration n * s / 3 to n * (s + 1) / 3. Its sum lies where its tile does, in f32. What stands
// behind the loop follows the splits, added in order.
// CHECK-LABEL: pk.kernel @matmul
// CHECK-SAME: %acc_partial: !pk.private<[3, M, N], f32, padded> {pk.name = "acc.partial", pk.scratch}
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
// CHECK-SAME: %first_partial: !pk.private<[2, B, M], f32, padded> {pk.name = "first.partial", pk.scratch}
// CHECK-SAME: %second_partial: !pk.private<[2, B, M], f32, padded> {pk.name = "second.partial", pk.scratch}
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
// CHECK: `sum` is no sum, maximum, minimum or sum that grows with a maximum
pk.kernel @scaled(%A: !pk.private<[M, K], f32> {pk.name = "A"}, %C: !pk.private<[M], f32> {pk.name = "C"}) attributes {schedule = {split_K = 2 : i64}} {
  %rows = pk.block_count <M by 64>
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] : !pk.block<M by 64>
    %half = pk.full 0.5 : f32 : !pk.tile<64xf32>
    %zeros = pk.full 0.0 : f32 : !pk.tile<64xf32>
    %steps = pk.block_count <K by 64>
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %sum = scf.for %t = %zero to %steps step %one iter_args(%x = %zeros) -> (!pk.tile<64xf32>) {
      %k = pk.block[%t] : !pk.block<K by 64>
      %a = pk.load %A[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], f32> -> !pk.tile<64x64xf32>
      %s = pk.row_sum %a : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
      %less = pk.mul %x, %half : !pk.tile<64xf32>
      %next = pk.add %less, %s : !pk.tile<64xf32>
      scf.yield %next : !pk.tile<64xf32>
    }
    pk.store %sum, %C[%m : !pk.block<M by 64>] : !pk.tile<64xf32>, !pk.private<[M], f32>
  }
}

// -----

// The greatest value so far is carried on as it is, and merged like what an iteration finds.
// CHECK-LABEL: pk.kernel @greatest
// CHECK-SAME: %top_partial: !pk.private<[2, M], f32, padded>
// CHECK: %[[START:.*]] = pk.full 0xff800000
// CHECK: scf.for %{{.*}} iter_args(%{{.*}} = %[[START]])
// CHECK: pk.store %{{.*}}, %top_partial[%split, %m :
// CHECK: pk.tasks
// CHECK: %[[SHARE:.*]] = pk.load %top_partial
// CHECK-NEXT: pk.max %{{.*}}, %[[SHARE]] : !pk.tile<32xf32>
pk.kernel @greatest(%A: !pk.private<[M, K], f32> {pk.name = "A"}, %C: !pk.private<[M], f32> {pk.name = "C"}) attributes {schedule = {split_K = 2 : i64}} {
  %rows = pk.block_count <M by 64>
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] : !pk.block<M by 64>
    %start = pk.full 0xFF800000 : f32 : !pk.tile<64xf32>
    %steps = pk.block_count <K by 64>
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %top = scf.for %t = %zero to %steps step %one iter_args(%x = %start) -> (!pk.tile<64xf32>) {
      %k = pk.block[%t] : !pk.block<K by 64>
      %a = pk.load %A[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], f32> -> !pk.tile<64x64xf32>
      %s = pk.row_max %a : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
      %next = pk.max %x, %s : !pk.tile<64xf32>
      scf.yield %next : !pk.tile<64xf32>
    }
    pk.store %top, %C[%m : !pk.block<M by 64>] : !pk.tile<64xf32>, !pk.private<[M], f32>
  }
}

// -----

// A sum that grows with a maximum: splits begin at zero, the tasks that merge with what the loop began with. While a
// maximum is -inf, exponents take zero in its place. Both what was merged and the next share are multiplied.
// CHECK-LABEL: pk.kernel @online
// CHECK: %top = pk.full 0xff800000
// CHECK: %total = pk.full 1.0
// CHECK: %[[ZERO:.*]] = pk.full 0.0{{.*}} !pk.tile<64xf32>
// CHECK: scf.for %{{.*}} iter_args(%[[TOP:.*]] = %top, %{{.*}} = %[[ZERO]])
// CHECK: %[[NOW:.*]] = pk.max %[[TOP]]
// CHECK: %[[MASKED:.*]] = pk.compare eq, %[[NOW]]
// CHECK-NEXT: %[[SAFE:.*]] = pk.select %[[MASKED]], %{{.*}}, %[[NOW]]
// CHECK-NOT: pk.sub %{{.*}}, %[[NOW]]
// CHECK: scf.yield %[[NOW]]
// CHECK: pk.tasks
// CHECK: %total_{{.*}} = pk.full 1.0
// CHECK: scf.for
// CHECK: %[[TOP2:.*]] = pk.load %top_partial
// CHECK: %[[BOTH:.*]] = pk.max %[[BEFORE:[^,]*]], %[[TOP2]]
// CHECK: %[[SAFE2:.*]] = pk.select %{{.*}}, %{{.*}}, %[[BOTH]]
// CHECK: %[[SHARE:.*]] = pk.load %total_partial
// CHECK: %[[D:.*]] = pk.sub %[[BEFORE]], %[[SAFE2]]
// CHECK: %[[E:.*]] = pk.exp %[[D]]
// CHECK: %[[ONE:.*]] = pk.mul %{{.*}}, %[[E]]
// CHECK: %[[F:.*]] = pk.sub %[[TOP2]], %[[SAFE2]]
// CHECK: %[[G:.*]] = pk.exp %[[F]]
// CHECK: %[[OTHER:.*]] = pk.mul %[[SHARE]], %[[G]]
// CHECK: pk.add %[[ONE]], %[[OTHER]]
pk.kernel @online(%A: !pk.private<[M, K], f32> {pk.name = "A"}, %C: !pk.private<[M], f32> {pk.name = "C"}) attributes {schedule = {split_K = 4 : i64}} {
  %rows = pk.block_count <M by 64>
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] : !pk.block<M by 64>
    %top = pk.full 0xFF800000 : f32 : !pk.tile<64xf32>
    %total = pk.full 1.0 : f32 : !pk.tile<64xf32>
    %steps = pk.block_count <K by 64>
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %top_1, %total_1 = scf.for %t = %zero to %steps step %one iter_args(%x = %top, %y = %total) -> (!pk.tile<64xf32>, !pk.tile<64xf32>) {
      %k = pk.block[%t] : !pk.block<K by 64>
      %a = pk.load %A[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], f32> -> !pk.tile<64x64xf32>
      %s = pk.row_max %a : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
      %now = pk.max %x, %s : !pk.tile<64xf32>
      %d = pk.sub %x, %now : !pk.tile<64xf32>
      %c = pk.exp %d : !pk.tile<64xf32>
      %old = pk.mul %y, %c : !pk.tile<64xf32>
      %b = pk.broadcast %now axes [0] : !pk.tile<64xf32> -> !pk.tile<64x64xf32>
      %u = pk.sub %a, %b : !pk.tile<64x64xf32>
      %p = pk.exp %u : !pk.tile<64x64xf32>
      %r = pk.row_sum %p : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
      %next = pk.add %old, %r : !pk.tile<64xf32>
      scf.yield %now, %next : !pk.tile<64xf32>, !pk.tile<64xf32>
    }
    pk.store %total_1, %C[%m : !pk.block<M by 64>] : !pk.tile<64xf32>, !pk.private<[M], f32>
  }
}

// -----

// The maximum of another row is not what a row's exponentials are multiples of.
// CHECK: error[PK442]: `split_K=4` is not possible in `turned`
// CHECK: `total` is no sum, maximum, minimum or sum that grows with a maximum
pk.kernel @turned(%A: !pk.private<[M, K], f32> {pk.name = "A"}, %C: !pk.private<[M], f32> {pk.name = "C"}) attributes {schedule = {split_K = 4 : i64}} {
  %rows = pk.block_count <M by 64>
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] : !pk.block<M by 64>
    %top = pk.full 0xFF800000 : f32 : !pk.tile<64xf32>
    %total = pk.full 1.0 : f32 : !pk.tile<64xf32>
    %steps = pk.block_count <K by 64>
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %top_1, %total_1 = scf.for %t = %zero to %steps step %one iter_args(%x = %top, %y = %total) -> (!pk.tile<64xf32>, !pk.tile<64xf32>) {
      %k = pk.block[%t] : !pk.block<K by 64>
      %a = pk.load %A[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], f32> -> !pk.tile<64x64xf32>
      %s = pk.row_max %a : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
      %now = pk.max %x, %s : !pk.tile<64xf32>
      %d = pk.sub %x, %now : !pk.tile<64xf32>
      %c = pk.exp %d : !pk.tile<64xf32>
      %old = pk.mul %y, %c : !pk.tile<64xf32>
      %b = pk.broadcast %now axes [1] : !pk.tile<64xf32> -> !pk.tile<64x64xf32>
      %u = pk.sub %a, %b : !pk.tile<64x64xf32>
      %p = pk.exp %u : !pk.tile<64x64xf32>
      %r = pk.row_sum %p : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
      %next = pk.add %old, %r : !pk.tile<64xf32>
      scf.yield %now, %next : !pk.tile<64xf32>, !pk.tile<64xf32>
    }
    pk.store %total_1, %C[%m : !pk.block<M by 64>] : !pk.tile<64xf32>, !pk.private<[M], f32>
  }
}
