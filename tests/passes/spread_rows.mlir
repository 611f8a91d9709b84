// Each CTA of a cluster has its part of long rows; what is no part of a row is stored by the first of them.
// RUN: pkc-opt %s -p pk-spread-rows | filecheck %s

// CHECK: pk.channel "X" stages 2 : !pk.channel<!pk.tile<1024xf32>, !pk.tile<4xf32>>
// CHECK: pk.role loader {
// CHECK-NEXT: %[[P:.*]] = pk.part
// CHECK: %[[D:.*]] = pk.block[%[[P]]] : !pk.block<4096 by 1024>
// CHECK: pk.load %X[%m, %[[D]] : index, !pk.block<4096 by 1024>] : !pk.private<[M, 4096], f32> -> !pk.tile<1024xf32>
// CHECK: pk.commit %{{.*}} : !pk.channel<!pk.tile<1024xf32>, !pk.tile<4xf32>>, !pk.tile<1024xf32>, !pk.tile<4xf32>
// CHECK: pk.role consumer {
// CHECK-NEXT: %[[Q:.*]] = pk.part
// CHECK: pk.row_max {{.*}} {across = 4 : i64} : !pk.tile<1024xf32> -> !pk.tile<f32>
// CHECK: scf.for {{.*}} -> (!pk.tile<1024xf32>)
// CHECK: pk.row_max %{{.*}} : !pk.tile<4xf32> -> !pk.tile<f32>
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[FIRST:.*]] = arith.cmpi eq, %[[Q]], %[[ZERO]]
// CHECK-NEXT: scf.if %[[FIRST]] {
// CHECK-NEXT: pk.store %{{.*}}, %Z[%{{.*}} : index] : !pk.tile<f32>
// CHECK-NEXT: }
pk.kernel @k(%X: !pk.private<[M, 4096], f32> {pk.name = "X"}, %w: !pk.private<[4], f32> {pk.name = "w"}, %Z: !pk.private<[M], f32> {pk.name = "Z"}) attributes {derived, cluster = 4 : i64, spread = 4096 : i64} {
  %0 = pk.channel "X" stages 2 : !pk.channel<!pk.tile<4096xf32>, !pk.tile<4xf32>>
  pk.role loader {
    %n = pk.dim "M"
    pk.tasks (%m) in (%n) attributes {per_cta} {
      %zero = arith.constant 0 : index
      %d = pk.block[%zero] : !pk.block<4096 by 4096>
      %e = pk.block[%zero] : !pk.block<4 by 4>
      pk.acquire %0 : !pk.channel<!pk.tile<4096xf32>, !pk.tile<4xf32>>
      %x = pk.load %X[%m, %d : index, !pk.block<4096 by 4096>] : !pk.private<[M, 4096], f32> -> !pk.tile<4096xf32>
      %w1 = pk.load %w[%e : !pk.block<4 by 4>] : !pk.private<[4], f32> -> !pk.tile<4xf32>
      pk.commit %0, %x, %w1 : !pk.channel<!pk.tile<4096xf32>, !pk.tile<4xf32>>, !pk.tile<4096xf32>, !pk.tile<4xf32>
    }
  }
  pk.role consumer {
    %n = pk.dim "M"
    pk.tasks (%m) in (%n) attributes {per_cta} {
      %x, %v = pk.consume %0 : !pk.channel<!pk.tile<4096xf32>, !pk.tile<4xf32>> -> !pk.tile<4096xf32>, !pk.tile<4xf32>
      %top = pk.row_max %x : !pk.tile<4096xf32> -> !pk.tile<f32>
      %two = arith.constant 2 : index
      %one = arith.constant 1 : index
      %none = pk.full 0.0 : f32 : !pk.tile<4096xf32>
      %sum = scf.for %i = %one to %two step %one iter_args(%before = %none) -> (!pk.tile<4096xf32>) {
        %after = pk.add %before, %x : !pk.tile<4096xf32>
        scf.yield %after : !pk.tile<4096xf32>
      }
      %few = pk.row_max %v : !pk.tile<4xf32> -> !pk.tile<f32>
      %both = pk.add %top, %few : !pk.tile<f32>
      pk.release %0 : !pk.channel<!pk.tile<4096xf32>, !pk.tile<4xf32>>
      pk.store %both, %Z[%m : index] : !pk.tile<f32>, !pk.private<[M], f32>
    }
  }
}
