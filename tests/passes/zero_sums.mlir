// Sums in no order: zeros first, on every rank, then additions where the array lives.
// RUN: pkc-opt %s -p pk-zero-sums --split-input-file | filecheck %s

// Each rank sets its local rows to zero and tells all; roles that add wait for all of them.
// CHECK-LABEL: pk.kernel @scattered
// CHECK-SAME: %O_zeroed: !pk.signal<[1]> {pk.name = "O.zeroed"}
// CHECK: pk.role consumer attributes {derived}
// CHECK: %[[C:.*]] = pk.ctas communicator
// CHECK: %[[R:.*]] = pk.dim "ranks"
// CHECK: %[[ALL:.*]] = arith.muli %[[C]], %[[R]]
// CHECK-NEXT: pk.wait %O_zeroed{{.*}} for %[[ALL]] {role = #pk<role_name storer>}
// CHECK: pk.tasks
// CHECK: pk.scatter_add %{{.*}}, %O rows
// CHECK: pk.role communicator
// CHECK: %[[LOCAL:.*]] = pk.rank
// CHECK: %[[ROWS:.*]] = pk.block_count <T by 8> of %[[LOCAL]] sharded
// CHECK: %[[COLUMNS:.*]] = pk.block_count <N by 16>
// CHECK: pk.tasks (%{{.*}}, %{{.*}}) in (%[[ROWS]], %[[COLUMNS]])
// CHECK: %[[Z:.*]] = pk.full 0.000000e+00 : f32 : !pk.tile<8x16xf32>
// CHECK: pk.store %[[Z]], %O[
// CHECK: }
// CHECK: pk.signal_all %O_zeroed
// CHECK-NOT: accumulate
pk.kernel @scattered(%Y: !pk.private<[P, N], f32> {pk.name = "Y"}, %rows: !pk.private<[P], i32> {pk.name = "rows"}, %O: !pk.pgl<[T, N], f32, shard 0> {pk.name = "O"}) {
  %0 = pk.block_count <P by 8>
  %1 = pk.block_count <N by 16>
  pk.tasks (%2, %3) in (%0, %1) {
    %p = pk.block[%2] : !pk.block<P by 8>
    %n = pk.block[%3] : !pk.block<N by 16>
    %4 = pk.load %rows[%p : !pk.block<P by 8>] : !pk.private<[P], i32> -> !pk.tile<8xi32>
    %5 = pk.load %Y[%p, %n : !pk.block<P by 8>, !pk.block<N by 16>] : !pk.private<[P, N], f32> -> !pk.tile<8x16xf32>
    pk.scatter_accumulate %5, %O rows %4[%n : !pk.block<N by 16>] : !pk.tile<8x16xf32>, !pk.pgl<[T, N], f32, shard 0>, !pk.tile<8xi32>
  }
}

// -----

// A replicated array is divided among the ranks along its first dimension that is not a constant.
// CHECK-LABEL: pk.kernel @everywhere
// CHECK: pk.atomic_add %{{.*}}, %C[
// CHECK: pk.role communicator
// CHECK: %[[HEADS:.*]] = pk.block_count <4 by 1>
// CHECK: %[[ROWS:.*]] = pk.block_count <M by 16> of %{{.*}}
// CHECK: pk.tasks (%{{.*}}, %{{.*}}) in (%[[HEADS]], %[[ROWS]])
// CHECK: pk.store %{{.*}}, %C[
pk.kernel @everywhere(%X: !pk.private<[4, M], f32> {pk.name = "X"}, %C: !pk.pgl<[4, M], f32, replicate> {pk.name = "C"}) {
  %0 = arith.constant 4 : index
  %1 = pk.block_count <M by 16>
  pk.tasks (%h, %2) in (%0, %1) {
    %m = pk.block[%2] : !pk.block<M by 16>
    %3 = pk.load %X[%h, %m : index, !pk.block<M by 16>] : !pk.private<[4, M], f32> -> !pk.tile<16xf32>
    pk.accumulate %3, %C[%h, %m : index, !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[4, M], f32, replicate>
  }
}

// -----

// Of arrays of more than two dimensions zeros are tiles of two axes, as what is added: heads are numbers.
// CHECK-LABEL: pk.kernel @heads
// CHECK: pk.role communicator
// CHECK: %[[HEADS:.*]] = pk.block_count <4 by 1>
// CHECK: %[[ROWS:.*]] = pk.block_count <M by 16> of %{{.*}}
// CHECK: %[[H:.*]] = pk.block[%{{.*}}] : !pk.block<4 by 1>
// CHECK: %[[AT:.*]] = pk.block_position %[[H]]
// CHECK: %[[Z:.*]] = pk.full 0.000000e+00 : f32 : !pk.tile<16x64xf32>
// CHECK: pk.store %[[Z]], %C[%[[AT]], %{{.*}}, %{{.*}} : index, !pk.block<M by 16>, !pk.block<64 by 64>]
pk.kernel @heads(%X: !pk.private<[4, M, 64], f32> {pk.name = "X"}, %C: !pk.pgl<[4, M, 64], f32, replicate> {pk.name = "C"}) {
  %0 = arith.constant 4 : index
  %1 = pk.block_count <M by 16>
  pk.tasks (%h, %2) in (%0, %1) {
    %zero = arith.constant 0 : index
    %m = pk.block[%2] : !pk.block<M by 16>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %3 = pk.load %X[%h, %m, %d : index, !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.private<[4, M, 64], f32> -> !pk.tile<16x64xf32>
    pk.accumulate %3, %C[%h, %m, %d : index, !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.pgl<[4, M, 64], f32, replicate>
  }
}

// -----

// Without sums nothing changes.
// CHECK-LABEL: pk.kernel @none
// CHECK-NOT: pk.role
pk.kernel @none(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) {
  %0 = pk.block_count <M by 16>
  pk.tasks (%1) in (%0) {
    %m = pk.block[%1] : !pk.block<M by 16>
    %2 = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
    pk.store %2, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
  }
}
