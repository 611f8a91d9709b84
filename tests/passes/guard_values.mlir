// What a loop computes for a branch behind it is computed in a branch.
// RUN: pkc-opt %s -p pk-guard-values --split-input-file --remarks | filecheck %s

// The condition moves in front of the loop; what stands between the loop and the branch moves there.
// CHECK-LABEL: pk.kernel @first
// CHECK: %[[POSITION:.*]] = pk.block_position
// CHECK-NEXT: %[[FIRST:.*]] = arith.cmpi eq, %[[POSITION]]
// CHECK-NEXT: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[BEFORE:.*]] = %{{.*}})
// CHECK: %[[Y:.*]] = pk.load %Y
// CHECK: pk.mma
// CHECK-NEXT: %[[D:.*]] = scf.if %[[FIRST]] -> (!pk.tile<64x8xf32>) {
// CHECK-NEXT: pk.transpose %[[Y]]
// CHECK-NEXT: pk.cast
// CHECK-NEXT: pk.fold
// CHECK-NEXT: %[[SUM:.*]] = pk.add %[[BEFORE]]
// CHECK-NEXT: scf.yield %[[SUM]]
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[BEFORE]]
// CHECK-NEXT: }
// CHECK-NEXT: scf.yield %{{.*}}, %[[D]]
// CHECK: pk.store
// CHECK-NEXT: scf.if %[[FIRST]] {
// CHECK-NEXT: pk.row_sum
// CHECK-NEXT: pk.store
// CHECK-NOT: remark
pk.kernel @first(%X: !pk.private<[T, K], bf16> {pk.name = "X"}, %Y: !pk.private<[T, N], bf16> {pk.name = "Y"}, %C: !pk.private<[K, N], f32> {pk.name = "C"}, %S: !pk.private<[N], f32> {pk.name = "S"}) {
  %rows = pk.block_count <K by 64>
  %columns = pk.block_count <N by 64>
  pk.tasks (%h, %i) in (%rows, %columns) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %k = pk.block[%h] : !pk.block<K by 64>
    %n = pk.block[%i] : !pk.block<N by 64>
    %acc = pk.full 0.0 : f32 : !pk.tile<64x64xf32>
    %none = pk.full 0.0 : f32 : !pk.tile<64x8xf32>
    %count = pk.block_count <T by 64>
    %sum, %s = scf.for %j = %zero to %count step %one iter_args(%a = %acc, %b = %none) -> (!pk.tile<64x64xf32>, !pk.tile<64x8xf32>) {
      %t = pk.block[%j] : !pk.block<T by 64>
      %x = pk.load %X[%t, %k : !pk.block<T by 64>, !pk.block<K by 64>] : !pk.private<[T, K], bf16> -> !pk.tile<64x64xbf16>
      %y = pk.load %Y[%t, %n : !pk.block<T by 64>, !pk.block<N by 64>] : !pk.private<[T, N], bf16> -> !pk.tile<64x64xbf16>
      %xt = pk.transpose %x : !pk.tile<64x64xbf16> -> !pk.tile<64x64xbf16>
      %yt = pk.transpose %y : !pk.tile<64x64xbf16> -> !pk.tile<64x64xbf16>
      %next = pk.mma %xt, %y, %a : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %f = pk.cast %yt : !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %r = pk.fold "pk.row_sum" %f : !pk.tile<64x64xf32> -> !pk.tile<64x8xf32>
      %d = pk.add %b, %r : !pk.tile<64x8xf32>
      scf.yield %next, %d : !pk.tile<64x64xf32>, !pk.tile<64x8xf32>
    }
    pk.store %sum, %C[%k, %n : !pk.block<K by 64>, !pk.block<N by 64>] : !pk.tile<64x64xf32>, !pk.private<[K, N], f32>
    %total = pk.row_sum %s : !pk.tile<64x8xf32> -> !pk.tile<64xf32>
    %p = pk.block_position %k : !pk.block<K by 64>
    %c = arith.cmpi eq, %p, %zero : index
    scf.if %c {
      pk.store %total, %S[%n : !pk.block<N by 64>] : !pk.tile<64xf32>, !pk.private<[N], f32>
    }
  }
}

// -----

// The other side of a branch; a condition that the loop decides; what the loop itself needs each time.
// CHECK-LABEL: pk.kernel @others
// CHECK: scf.for
// CHECK: scf.if %{{.*}} -> (!pk.tile<64xf32>) {
// CHECK-NEXT: scf.yield
// CHECK-NEXT: } else {
// CHECK-NEXT: pk.row_sum
// CHECK-NEXT: pk.add
// CHECK-NEXT: scf.yield
// CHECK: scf.for
// CHECK-NOT: scf.if
// CHECK: scf.yield
// CHECK: // remark: {{.*}}pk.add: it is computed for a branch that may not be taken: whether the branch is taken is known behind the loop [pk-guard-values]
pk.kernel @others(%X: !pk.private<[K, T], bf16> {pk.name = "X"}, %Y: !pk.private<[T, 64], bf16> {pk.name = "Y"}, %C: !pk.private<[K, 64], f32> {pk.name = "C"}, %S: !pk.private<[K], f32> {pk.name = "S"}) {
  %rows = pk.block_count <K by 64>
  pk.tasks (%h) in (%rows) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %k = pk.block[%h] : !pk.block<K by 64>
    %n = pk.block[%zero] : !pk.block<64 by 64>
    %acc = pk.full 0.0 : f32 : !pk.tile<64x64xf32>
    %none = pk.full 0.0 : f32 : !pk.tile<64xf32>
    %count = pk.block_count <T by 64>
    %c = arith.cmpi eq, %h, %zero : index
    %sum, %s = scf.for %j = %zero to %count step %one iter_args(%a = %acc, %b = %none) -> (!pk.tile<64x64xf32>, !pk.tile<64xf32>) {
      %t = pk.block[%j] : !pk.block<T by 64>
      %x = pk.load %X[%k, %t : !pk.block<K by 64>, !pk.block<T by 64>] : !pk.private<[K, T], bf16> -> !pk.tile<64x64xbf16>
      %y = pk.load %Y[%t, %n : !pk.block<T by 64>, !pk.block<64 by 64>] : !pk.private<[T, 64], bf16> -> !pk.tile<64x64xbf16>
      %f = pk.cast %x : !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %next = pk.mma %x, %y, %a : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %g = pk.add %next, %f : !pk.tile<64x64xf32>
      %r = pk.row_sum %f : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
      %d = pk.add %b, %r : !pk.tile<64xf32>
      scf.yield %g, %d : !pk.tile<64x64xf32>, !pk.tile<64xf32>
    }
    scf.if %c {
    } else {
      pk.store %s, %S[%k : !pk.block<K by 64>] : !pk.tile<64xf32>, !pk.private<[K], f32>
    }
    %more, %u, %i = scf.for %j = %zero to %count step %one iter_args(%a = %sum, %b = %none, %l = %zero) -> (!pk.tile<64x64xf32>, !pk.tile<64xf32>, index) {
      %t = pk.block[%j] : !pk.block<T by 64>
      %x = pk.load %X[%k, %t : !pk.block<K by 64>, !pk.block<T by 64>] : !pk.private<[K, T], bf16> -> !pk.tile<64x64xbf16>
      %y = pk.load %Y[%t, %n : !pk.block<T by 64>, !pk.block<64 by 64>] : !pk.private<[T, 64], bf16> -> !pk.tile<64x64xbf16>
      %next = pk.mma %x, %y, %a : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %f = pk.cast %x : !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %r = pk.row_sum %f : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
      %d = pk.add %b, %r : !pk.tile<64xf32>
      scf.yield %next, %d, %j : !pk.tile<64x64xf32>, !pk.tile<64xf32>, index
    }
    pk.store %more, %C[%k, %n : !pk.block<K by 64>, !pk.block<64 by 64>] : !pk.tile<64x64xf32>, !pk.private<[K, 64], f32>
    %e = arith.cmpi eq, %i, %zero : index
    scf.if %e {
      pk.store %u, %S[%k : !pk.block<K by 64>] : !pk.tile<64xf32>, !pk.private<[K], f32>
    }
  }
}

// -----

// Two values for one branch: both are computed of one tile, and the second one of the first.
// CHECK-LABEL: pk.kernel @both
// CHECK: %[[FIRST:.*]] = arith.cmpi eq
// CHECK: scf.for
// CHECK: pk.mma
// CHECK-NOT: pk.row_sum
// CHECK: %{{.*}}, %{{.*}} = scf.if %[[FIRST]] -> (!pk.tile<64xf32>, !pk.tile<64xf32>) {
// CHECK-NEXT: pk.transpose
// CHECK-NEXT: %[[F:.*]] = pk.cast
// CHECK-NEXT: %[[R:.*]] = pk.row_sum %[[F]]
// CHECK: scf.yield %{{.*}}, %{{.*}} : !pk.tile<64xf32>, !pk.tile<64xf32>
// CHECK-NEXT: } else {
// CHECK-NOT: remark
pk.kernel @both(%X: !pk.private<[T, K], bf16> {pk.name = "X"}, %Y: !pk.private<[T, 64], bf16> {pk.name = "Y"}, %C: !pk.private<[K, 64], f32> {pk.name = "C"}, %S: !pk.private<[64], f32> {pk.name = "S"}, %Q: !pk.private<[64], f32> {pk.name = "Q"}) {
  %blocks = pk.block_count <K by 64>
  pk.tasks (%i) in (%blocks) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %k = pk.block[%i] : !pk.block<K by 64>
    %n = pk.block[%zero] : !pk.block<64 by 64>
    %acc = pk.full 0.0 : f32 : !pk.tile<64x64xf32>
    %none = pk.full 0.0 : f32 : !pk.tile<64xf32>
    %count = pk.block_count <T by 64>
    %sum, %s, %q = scf.for %j = %zero to %count step %one iter_args(%a = %acc, %b = %none, %c = %none) -> (!pk.tile<64x64xf32>, !pk.tile<64xf32>, !pk.tile<64xf32>) {
      %t = pk.block[%j] : !pk.block<T by 64>
      %x = pk.load %X[%t, %k : !pk.block<T by 64>, !pk.block<K by 64>] : !pk.private<[T, K], bf16> -> !pk.tile<64x64xbf16>
      %y = pk.load %Y[%t, %n : !pk.block<T by 64>, !pk.block<64 by 64>] : !pk.private<[T, 64], bf16> -> !pk.tile<64x64xbf16>
      %xt = pk.transpose %x : !pk.tile<64x64xbf16> -> !pk.tile<64x64xbf16>
      %next = pk.mma %xt, %y, %a : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %yt = pk.transpose %y : !pk.tile<64x64xbf16> -> !pk.tile<64x64xbf16>
      %f = pk.cast %yt : !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %r = pk.row_sum %f : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
      %d = pk.add %b, %r : !pk.tile<64xf32>
      %m = pk.max %b, %r : !pk.tile<64xf32>
      %e = pk.add %c, %m : !pk.tile<64xf32>
      scf.yield %next, %d, %e : !pk.tile<64x64xf32>, !pk.tile<64xf32>, !pk.tile<64xf32>
    }
    pk.store %sum, %C[%k, %n : !pk.block<K by 64>, !pk.block<64 by 64>] : !pk.tile<64x64xf32>, !pk.private<[K, 64], f32>
    %first = arith.cmpi eq, %i, %zero : index
    scf.if %first {
      pk.store %s, %S[%n : !pk.block<64 by 64>] : !pk.tile<64xf32>, !pk.private<[64], f32>
      pk.store %q, %Q[%n : !pk.block<64 by 64>] : !pk.tile<64xf32>, !pk.private<[64], f32>
    }
  }
}
