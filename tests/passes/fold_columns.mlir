// Reductions of columns beside MMAs: a loop keeps some elements of each, which are reduced behind it.
// RUN: pkc-opt %s -p pk-fold-columns --split-input-file --remarks | filecheck %s

// Two reductions of one tile; what the first began with is added behind, and the second begins with nothing.
// CHECK-LABEL: pk.kernel @sums
// CHECK-DAG: %[[NONE:.*]] = pk.full 0.000000e+00 : f32 : !pk.tile<256x8xf32>
// CHECK-DAG: %[[LEAST:.*]] = pk.full 0xff800000 : f32 : !pk.tile<256x8xf32>
// CHECK: %{{.*}}, %[[S:.*]], %[[T:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[SUM:.*]] = %[[NONE]], %[[TOP:.*]] = %[[LEAST]])
// CHECK: %[[Y:.*]] = pk.transpose %{{.*}} : !pk.tile<64x256xbf16>
// CHECK: %[[X:.*]] = pk.cast %[[Y]]
// CHECK: %[[EACH:.*]] = pk.fold "pk.row_sum" %[[X]] across : !pk.tile<256x64xf32> -> !pk.tile<256x8xf32>
// CHECK: pk.add %[[SUM]], %[[EACH]] : !pk.tile<256x8xf32>
// CHECK: %[[GREAT:.*]] = pk.fold "pk.row_max" %[[X]]
// CHECK: pk.max %[[GREAT]], %[[TOP]] : !pk.tile<256x8xf32>
// CHECK: }
// CHECK: %[[MOST:.*]] = pk.row_max %[[T]] : !pk.tile<256x8xf32> -> !pk.tile<256xf32>
// CHECK: %[[HERE:.*]] = pk.row_sum %[[S]] : !pk.tile<256x8xf32> -> !pk.tile<256xf32>
// CHECK: %[[ALL:.*]] = pk.add %{{.*}}, %[[HERE]] : !pk.tile<256xf32>
// CHECK: pk.store %[[ALL]]
// CHECK: pk.store %[[MOST]]
// CHECK-NOT: remark
pk.kernel @sums(%X: !pk.private<[T, 64], bf16> {pk.name = "X"}, %Y: !pk.private<[T, N], bf16> {pk.name = "Y"}, %C: !pk.private<[64, N], f32> {pk.name = "C"}, %S: !pk.private<[N], f32> {pk.name = "S"}, %M: !pk.private<[N], f32> {pk.name = "M"}) {
  %blocks = pk.block_count <N by 256>
  pk.tasks (%i) in (%blocks) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = pk.block[%i] : !pk.block<N by 256>
    %k = pk.block[%zero] : !pk.block<64 by 64>
    %acc = pk.full 0.0 : f32 : !pk.tile<64x256xf32>
    %begin = pk.load %S[%n : !pk.block<N by 256>] : !pk.private<[N], f32> -> !pk.tile<256xf32>
    %least = pk.full 0xff800000 : f32 : !pk.tile<256xf32>
    %count = pk.block_count <T by 64>
    %sum, %s, %m = scf.for %j = %zero to %count step %one iter_args(%a = %acc, %b = %begin, %c = %least) -> (!pk.tile<64x256xf32>, !pk.tile<256xf32>, !pk.tile<256xf32>) {
      %t = pk.block[%j] : !pk.block<T by 64>
      %x = pk.load %X[%t, %k : !pk.block<T by 64>, !pk.block<64 by 64>] : !pk.private<[T, 64], bf16> -> !pk.tile<64x64xbf16>
      %y = pk.load %Y[%t, %n : !pk.block<T by 64>, !pk.block<N by 256>] : !pk.private<[T, N], bf16> -> !pk.tile<64x256xbf16>
      %xt = pk.transpose %x : !pk.tile<64x64xbf16> -> !pk.tile<64x64xbf16>
      %next = pk.mma %xt, %y, %a : !pk.tile<64x64xbf16>, !pk.tile<64x256xbf16> -> !pk.tile<64x256xf32>
      %yt = pk.transpose %y : !pk.tile<64x256xbf16> -> !pk.tile<256x64xbf16>
      %f = pk.cast %yt : !pk.tile<256x64xbf16> -> !pk.tile<256x64xf32>
      %r = pk.row_sum %f : !pk.tile<256x64xf32> -> !pk.tile<256xf32>
      %d = pk.add %b, %r : !pk.tile<256xf32>
      %g = pk.row_max %f : !pk.tile<256x64xf32> -> !pk.tile<256xf32>
      %e = pk.max %g, %c : !pk.tile<256xf32>
      scf.yield %next, %d, %e : !pk.tile<64x256xf32>, !pk.tile<256xf32>, !pk.tile<256xf32>
    }
    pk.store %sum, %C[%k, %n : !pk.block<64 by 64>, !pk.block<N by 256>] : !pk.tile<64x256xf32>, !pk.private<[64, N], f32>
    pk.store %s, %S[%n : !pk.block<N by 256>] : !pk.tile<256xf32>, !pk.private<[N], f32>
    pk.store %m, %M[%n : !pk.block<N by 256>] : !pk.tile<256xf32>, !pk.private<[N], f32>
  }
}

// -----

// Also without MMAs.
// CHECK-LABEL: pk.kernel @alone
// CHECK: %[[PARTS:.*]] = scf.for {{.*}} -> (!pk.tile<256x8xf32>)
// CHECK: pk.fold "pk.row_sum" %{{.*}} across : !pk.tile<256x64xf32> -> !pk.tile<256x8xf32>
// CHECK: pk.row_sum %[[PARTS]] : !pk.tile<256x8xf32> -> !pk.tile<256xf32>
// CHECK-NOT: remark
pk.kernel @alone(%Y: !pk.private<[T, N], f32> {pk.name = "Y"}, %S: !pk.private<[N], f32> {pk.name = "S"}) {
  %blocks = pk.block_count <N by 256>
  pk.tasks (%i) in (%blocks) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = pk.block[%i] : !pk.block<N by 256>
    %begin = pk.full 0.0 : f32 : !pk.tile<256xf32>
    %count = pk.block_count <T by 64>
    %s = scf.for %j = %zero to %count step %one iter_args(%b = %begin) -> (!pk.tile<256xf32>) {
      %t = pk.block[%j] : !pk.block<T by 64>
      %y = pk.load %Y[%t, %n : !pk.block<T by 64>, !pk.block<N by 256>] : !pk.private<[T, N], f32> -> !pk.tile<64x256xf32>
      %yt = pk.transpose %y : !pk.tile<64x256xf32> -> !pk.tile<256x64xf32>
      %r = pk.row_sum %yt : !pk.tile<256x64xf32> -> !pk.tile<256xf32>
      %d = pk.add %b, %r : !pk.tile<256xf32>
      scf.yield %d : !pk.tile<256xf32>
    }
    pk.store %s, %S[%n : !pk.block<N by 256>] : !pk.tile<256xf32>, !pk.private<[N], f32>
  }
}
