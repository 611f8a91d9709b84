// Sums of matmuls begin at zero, and what they began with is added behind.
// RUN: pkc-opt %s -p pk-start-at-zero,pk-dce --split-input-file --remarks | filecheck %s

// What the loop began with is loaded behind it, while its MMAs run.
// CHECK-LABEL: pk.kernel @accumulates
// CHECK-NOT: pk.load %C
// CHECK: %[[ZERO:.*]] = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
// CHECK-NEXT: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[ZERO]])
// CHECK: pk.mma %{{.*}}, %{{.*}}, %[[ACC]]
// CHECK: %[[C:.*]] = pk.load %C
// CHECK-NEXT: %[[D:.*]] = pk.abs %[[C]]
// CHECK-NEXT: %[[ALL:.*]] = pk.add %[[SUM]], %[[D]]
// CHECK-NEXT: pk.store %[[ALL]], %C
// CHECK-NOT: remark
pk.kernel @accumulates(%A: !pk.private<[M, K], bf16> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %rows = pk.block_count <M by 64>
  pk.tasks (%i) in (%rows) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %m = pk.block[%i] : !pk.block<M by 64>
    %n = pk.block[%zero] : !pk.block<N by 64>
    %c = pk.load %C[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<64x64xf32>
    %d = pk.abs %c : !pk.tile<64x64xf32>
    %count = pk.block_count <K by 16>
    %sum = scf.for %j = %zero to %count step %one iter_args(%acc = %d) -> (!pk.tile<64x64xf32>) {
      %k = pk.block[%j] : !pk.block<K by 16>
      %a = pk.load %A[%m, %k : !pk.block<M by 64>, !pk.block<K by 16>] : !pk.private<[M, K], bf16> -> !pk.tile<64x16xbf16>
      %b = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 64>] : !pk.private<[K, N], bf16> -> !pk.tile<16x64xbf16>
      %next = pk.mma %a, %b, %acc : !pk.tile<64x16xbf16>, !pk.tile<16x64xbf16> -> !pk.tile<64x64xf32>
      scf.yield %next : !pk.tile<64x64xf32>
    }
    pk.store %sum, %C[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.tile<64x64xf32>, !pk.private<[M, N], f32>
  }
}

// -----

// What is used elsewhere in the loop stays as it is.
// CHECK-LABEL: pk.kernel @scaled
// CHECK: %[[D:.*]] = pk.abs
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[D]])
// CHECK-NOT: remark
pk.kernel @scaled(%A: !pk.private<[M, K], bf16> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %rows = pk.block_count <M by 64>
  pk.tasks (%i) in (%rows) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %m = pk.block[%i] : !pk.block<M by 64>
    %n = pk.block[%zero] : !pk.block<N by 64>
    %c = pk.load %C[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<64x64xf32>
    %d = pk.abs %c : !pk.tile<64x64xf32>
    %count = pk.block_count <K by 16>
    %sum = scf.for %j = %zero to %count step %one iter_args(%acc = %d) -> (!pk.tile<64x64xf32>) {
      %k = pk.block[%j] : !pk.block<K by 16>
      %a = pk.load %A[%m, %k : !pk.block<M by 64>, !pk.block<K by 16>] : !pk.private<[M, K], bf16> -> !pk.tile<64x16xbf16>
      %b = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 64>] : !pk.private<[K, N], bf16> -> !pk.tile<16x64xbf16>
      %next = pk.mma %a, %b, %acc : !pk.tile<64x16xbf16>, !pk.tile<16x64xbf16> -> !pk.tile<64x64xf32>
      %last = pk.abs %next : !pk.tile<64x64xf32>
      scf.yield %last : !pk.tile<64x64xf32>
    }
    pk.store %sum, %C[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.tile<64x64xf32>, !pk.private<[M, N], f32>
  }
}

// -----

// A loop that writes keeps the order of its accesses.
// CHECK-LABEL: pk.kernel @writes
// CHECK: %[[D:.*]] = pk.abs
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[D]])
// CHECK: // remark: {{.*}}: scf.for: its sum does not begin at zero: the loop writes, or waits [pk-start-at-zero]
pk.kernel @writes(%A: !pk.private<[M, K], bf16> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %rows = pk.block_count <M by 64>
  pk.tasks (%i) in (%rows) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %m = pk.block[%i] : !pk.block<M by 64>
    %n = pk.block[%zero] : !pk.block<N by 64>
    %c = pk.load %C[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<64x64xf32>
    %d = pk.abs %c : !pk.tile<64x64xf32>
    %count = pk.block_count <K by 16>
    %sum = scf.for %j = %zero to %count step %one iter_args(%acc = %d) -> (!pk.tile<64x64xf32>) {
      %k = pk.block[%j] : !pk.block<K by 16>
      %a = pk.load %A[%m, %k : !pk.block<M by 64>, !pk.block<K by 16>] : !pk.private<[M, K], bf16> -> !pk.tile<64x16xbf16>
      %b = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 64>] : !pk.private<[K, N], bf16> -> !pk.tile<16x64xbf16>
      %next = pk.mma %a, %b, %acc : !pk.tile<64x16xbf16>, !pk.tile<16x64xbf16> -> !pk.tile<64x64xf32>
      pk.store %a, %A[%m, %k : !pk.block<M by 64>, !pk.block<K by 16>] : !pk.tile<64x16xbf16>, !pk.private<[M, K], bf16>
      scf.yield %next : !pk.tile<64x64xf32>
    }
    pk.store %sum, %C[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.tile<64x64xf32>, !pk.private<[M, N], f32>
  }
}
