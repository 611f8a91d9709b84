// Tasks begin, or end, with the blocks of the local shard.
// RUN: pkc-opt %s -p pk-order-tasks --split-input-file --remarks | filecheck %s

// Only lists that follow the shards are rotated.
// CHECK-LABEL: pk.kernel @first
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[RANK:.*]] = pk.rank
// CHECK-NEXT: %[[EACH:.*]] = pk.block_count <M by 16> of %[[ZERO]] sharded
// CHECK-NEXT: %[[SHIFT:.*]] = arith.muli %[[RANK]], %[[EACH]]
// CHECK-NEXT: pk.tasks (%[[I:.*]], %[[J:.*]]) in (%rows, %columns)
// CHECK-NEXT: %[[AT:.*]] = pk.rotate %[[I]] by %[[SHIFT]] of %rows
// CHECK-NEXT: pk.block[%[[AT]]] sharded
// CHECK-NEXT: pk.block[%[[J]]] : !pk.block<N by 16>
pk.kernel @first(%X: !pk.pgl<[M, N], f32, shard 0> {pk.name = "X"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}) attributes {order = "local_first"} {
  %rows = pk.block_count <M by 16> sharded
  %columns = pk.block_count <N by 16>
  pk.tasks (%i, %j) in (%rows, %columns) {
    %m = pk.block[%i] sharded : !pk.block<M by 16>
    %n = pk.block[%j] : !pk.block<N by 16>
    %x = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<16x16xf32>
    pk.store %x, %Y[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xf32>, !pk.private<[M, N], f32>
  }
}

// -----

// To end with the local shard a rank takes one block of each shard at a time, the next rank's first.
// CHECK-LABEL: pk.kernel @last
// CHECK: %[[RANK:.*]] = pk.rank
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[RANK]], %[[ONE]]
// CHECK-NEXT: pk.tasks (%[[I:.*]]) in (%rows) {
// CHECK-NEXT: %[[AT:.*]] = pk.interleave %[[I]] <M by 16> from %[[NEXT]]
// CHECK-NEXT: pk.block[%[[AT]]] sharded
// CHECK-NOT: pk.rotate
pk.kernel @last(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.pgl<[M], f32, shard 0> {pk.name = "Y"}) attributes {order = "local_last"} {
  %rows = pk.block_count <M by 16> sharded
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] sharded : !pk.block<M by 16>
    %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
    pk.accumulate %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, shard 0>
  }
}

// -----

// A list of one rank's blocks, and a kernel in natural order, stay as they are.
// CHECK-LABEL: pk.kernel @local
// CHECK-NOT: pk.rotate
pk.kernel @local(%X: !pk.pgl<[M], f32, shard 0> {pk.name = "X"}, %Y: !pk.pgl<[M], f32, replicate> {pk.name = "Y"}) attributes {order = "local_first"} {
  %rank = pk.rank
  %rows = pk.block_count <M by 16> of %rank sharded
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] of %rank sharded : !pk.block<M by 16>
    %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<16xf32>
    pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, replicate>
  }
}

// CHECK-LABEL: pk.kernel @natural
// CHECK-NOT: pk.rotate
// CHECK: // remark: {{.*}}: pk.kernel: tasks come in their natural order, not `local_first`: none of their indices goes through all shards of a dimension, one after the other [pk-order-tasks]
pk.kernel @natural(%X: !pk.pgl<[M], f32, shard 0> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) attributes {order = "natural"} {
  %rows = pk.block_count <M by 16> sharded
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] sharded : !pk.block<M by 16>
    %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<16xf32>
    pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
  }
}

// -----

// Tasks that compute and have two indices are numbered by bands of eight rows, in whatever order they are, unless it is
// said how; what communicates, and what an author wrote as roles, stays as it is.
// CHECK-LABEL: pk.kernel @bands
// CHECK: pk.role communicator
// CHECK: pk.tasks (%{{.*}}, %{{.*}}) in (%rows, %columns) {
// CHECK: pk.role consumer
// CHECK: pk.tasks (%{{.*}}, %{{.*}}) in (%rows, %columns) attributes {raster = 8 : i64} {
// CHECK: pk.tasks (%{{.*}}, %{{.*}}) in (%rows, %columns) attributes {raster = 4 : i64} {
// CHECK: pk.tasks (%{{.*}}) in (%rows) {
pk.kernel @bands(%Y: !pk.private<[M, N], f32> {pk.name = "Y"}) attributes {order = "natural"} {
  %rows = pk.block_count <M by 16>
  %columns = pk.block_count <N by 16>
  pk.role communicator {
    pk.tasks (%i, %j) in (%rows, %columns) {
    }
  }
  pk.role consumer attributes {derived} {
    pk.tasks (%i, %j) in (%rows, %columns) {
    }
    pk.tasks (%i, %j) in (%rows, %columns) attributes {raster = 4 : i64} {
    }
    pk.tasks (%i) in (%rows) {
    }
  }
}

// -----

// Of three indices the last two make bands if tiles are shared along both; here A along the columns, B along the rows.
// CHECK-LABEL: pk.kernel @batched
// CHECK: pk.tasks (%h, %i, %j) in (%heads, %rows, %columns) attributes {raster = 8 : i64} {
// CHECK: pk.tasks (%h_1, %i_1, %j_1) in (%heads, %rows, %columns) {
pk.kernel @batched(%A: !pk.private<[H, M], f32> {pk.name = "A"}, %B: !pk.private<[H, N], f32> {pk.name = "B"}) attributes {order = "natural"} {
  %heads = pk.dim "H"
  %rows = pk.block_count <M by 16>
  %columns = pk.block_count <N by 16>
  pk.tasks (%h, %i, %j) in (%heads, %rows, %columns) {
    %m = pk.block[%i] : !pk.block<M by 16>
    %n = pk.block[%j] : !pk.block<N by 16>
    %a = pk.load %A[%h, %m : index, !pk.block<M by 16>] : !pk.private<[H, M], f32> -> !pk.tile<16xf32>
    %b = pk.load %B[%h, %n : index, !pk.block<N by 16>] : !pk.private<[H, N], f32> -> !pk.tile<16xf32>
  }
  pk.tasks (%h, %i, %j) in (%heads, %rows, %columns) {
    %m = pk.block[%i] : !pk.block<M by 16>
    %a = pk.load %A[%h, %m : index, !pk.block<M by 16>] : !pk.private<[H, M], f32> -> !pk.tile<16xf32>
  }
}

// -----

// What was a loop keeps the order in which its reader goes through the blocks.
// CHECK-LABEL: pk.kernel @kept
// CHECK: pk.tasks (%[[I:.*]], %[[J:.*]]) in (%rows, %rows) attributes {in_order = 1 : i64
// CHECK-NEXT: %[[AT:.*]] = pk.rotate %[[I]]
// CHECK-NOT: pk.rotate
// CHECK: pk.block[%[[AT]]] sharded
// CHECK-NEXT: pk.block[%[[J]]] sharded
pk.kernel @kept(%X: !pk.pgl<[M, M], f32, shard 0> {pk.name = "X"}, %Y: !pk.private<[M, M], f32> {pk.name = "Y"}) attributes {order = "local_first"} {
  %rows = pk.block_count <M by 16> sharded
  pk.tasks (%i, %j) in (%rows, %rows) attributes {in_order = 1 : i64} {
    %m = pk.block[%i] sharded : !pk.block<M by 16>
    %n = pk.block[%j] sharded : !pk.block<M by 16>
    %x = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<M by 16>] : !pk.pgl<[M, M], f32, shard 0> -> !pk.tile<16x16xf32>
    pk.store %x, %Y[%m, %n : !pk.block<M by 16>, !pk.block<M by 16>] : !pk.tile<16x16xf32>, !pk.private<[M, M], f32>
  }
}

// -----

// Tasks in tasks: bands of the rows of each expert, if tables name them only where there are many columns. Tasks that
// enclose others have no numbers.
// CHECK-LABEL: pk.kernel @experts
// CHECK: pk.tasks (%e) in (%{{.*}}) {
// CHECK: pk.tasks (%i, %j) in (%{{.*}}) attributes {raster = 8 : i64} {
// CHECK: pk.tasks (%e_1) in (%{{.*}}) {
// CHECK: pk.tasks (%i_1, %j_1) in (%{{.*}}) attributes {raster = 8 : i64, wide} {
pk.kernel @experts(%X: !pk.private<[E, M, N], f32> {pk.name = "X"}, %T: !pk.private<[M], i32> {pk.name = "T"}, %Z: !pk.private<[M, N], f32> {pk.name = "Z"}, %count: !pk.private<[E], i32> {pk.name = "count"}) attributes {target = "sm_90a"} {
  %experts = pk.dim "E"
  pk.tasks (%e) in (%experts) {
    %end = pk.read %count[%e] : !pk.private<[E], i32>
    %rows = pk.block_count <M by 64> to %end
    %columns = pk.block_count <N by 64>
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] to %end : !pk.block<M by 64>
      %n = pk.block[%j] : !pk.block<N by 64>
      %x = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
      pk.store %x, %X[%e, %m, %n : index, !pk.block<M by 64>, !pk.block<N by 64>] : !pk.tile<64x64xf32>, !pk.private<[E, M, N], f32>
    }
  }
  pk.tasks (%e_1) in (%experts) {
    %end_1 = pk.read %count[%e_1] : !pk.private<[E], i32>
    %rows_1 = pk.block_count <M by 64> to %end_1
    %columns_1 = pk.block_count <N by 64>
    pk.tasks (%i_1, %j_1) in (%rows_1, %columns_1) {
      %m = pk.block[%i_1] to %end_1 : !pk.block<M by 64>
      %n = pk.block[%j_1] : !pk.block<N by 64>
      %t = pk.load %T[%m : !pk.block<M by 64>] : !pk.private<[M], i32> -> !pk.tile<64xi32>
      %x = pk.gather %Z rows %t[%n : !pk.block<N by 64>] : !pk.private<[M, N], f32>, !pk.tile<64xi32> -> !pk.tile<64x64xf32>
      pk.store %x, %X[%e_1, %m, %n : index, !pk.block<M by 64>, !pk.block<N by 64>] : !pk.tile<64x64xf32>, !pk.private<[E, M, N], f32>
    }
  }
}
