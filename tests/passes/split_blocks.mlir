// Blocks of long rows that are reduced along columns go through row by row.
// RUN: pkc-opt %s -p pk-split-blocks,pk-dce --split-input-file --remarks | filecheck %s

// What is stored for each row comes in the loop, and what needs the sum of all behind it.
// CHECK-LABEL: pk.kernel @both_ways
// CHECK: %[[FIRST:.*]] = arith.muli %i, %{{.*}} : index
// CHECK-NEXT: %[[ROWS:.*]] = pk.block_count <M by 1>
// CHECK-NEXT: %[[LEFT:.*]] = arith.subi %[[ROWS]], %[[FIRST]] : index
// CHECK-NEXT: %[[COUNT:.*]] = arith.minsi %[[LEFT]], %{{.*}} : index
// CHECK: %[[SUM:.*]] = scf.for %[[R:.*]] = %{{.*}} to %[[COUNT]] {{.*}} iter_args(%[[BEFORE:.*]] = %{{.*}}) -> (!pk.tile<256xf32>)
// CHECK-NEXT: %[[N:.*]] = arith.addi %[[FIRST]], %[[R]] : index
// CHECK-NEXT: %[[ROW:.*]] = pk.block[%[[N]]] : !pk.block<M by 1>
// CHECK-NEXT: %[[AT:.*]] = pk.block_position %[[ROW]]
// CHECK-NEXT: %[[X:.*]] = pk.load %X[%[[AT]], %d : index, !pk.block<256 by 256>] {{.*}} -> !pk.tile<256xf32>
// CHECK-NEXT: %[[S:.*]] = pk.row_sum %[[X]] : !pk.tile<256xf32> -> !pk.tile<f32>
// CHECK-NEXT: pk.store %[[S]], %Z[%[[AT]] : index]
// CHECK-NEXT: %[[B:.*]] = pk.broadcast %[[S]] axes [] : !pk.tile<f32> -> !pk.tile<256xf32>
// CHECK-NEXT: %[[Y:.*]] = pk.sub %[[X]], %[[B]] : !pk.tile<256xf32>
// CHECK-NEXT: %[[T:.*]] = pk.add %[[BEFORE]], %[[Y]] : !pk.tile<256xf32>
// CHECK-NEXT: scf.yield %[[T]]
// CHECK: %[[TWICE:.*]] = pk.add %[[SUM]], %[[SUM]]
// CHECK-NEXT: pk.store %[[TWICE]], %W
// CHECK-NOT: remark
pk.kernel @both_ways(%X: !pk.private<[M, 256], f32> {pk.name = "X"}, %Z: !pk.private<[M], f32> {pk.name = "Z"}, %W: !pk.private<[K, 256], f32> {pk.name = "W"}) {
  %rows = pk.block_count <M by 4>
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] : !pk.block<M by 4>
    %zero = arith.constant 0 : index
    %d = pk.block[%zero] : !pk.block<256 by 256>
    %x = pk.load %X[%m, %d : !pk.block<M by 4>, !pk.block<256 by 256>] : !pk.private<[M, 256], f32> -> !pk.tile<4x256xf32>
    %s = pk.row_sum %x : !pk.tile<4x256xf32> -> !pk.tile<4xf32>
    pk.store %s, %Z[%m : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M], f32>
    %b = pk.broadcast %s axes [0] : !pk.tile<4xf32> -> !pk.tile<4x256xf32>
    %y = pk.sub %x, %b : !pk.tile<4x256xf32>
    %t = pk.transpose %y : !pk.tile<4x256xf32> -> !pk.tile<256x4xf32>
    %u = pk.clip %t axis 1 to %m fill 0.0 : f32 : !pk.tile<256x4xf32>, !pk.block<M by 4> -> !pk.tile<256x4xf32>
    %c = pk.row_sum %u : !pk.tile<256x4xf32> -> !pk.tile<256xf32>
    %w = pk.add %c, %c : !pk.tile<256xf32>
    pk.store %w, %W[%i, %d : index, !pk.block<256 by 256>] : !pk.tile<256xf32>, !pk.private<[K, 256], f32>
  }
}

// -----

// What is computed for each row needs the sum of all.
// CHECK-LABEL: pk.kernel @all_together
// CHECK-NOT: scf.for
// CHECK: // remark: {{.*}}rows do not go through one by one: what is computed for each needs the reduction of all [pk-split-blocks]
pk.kernel @all_together(%X: !pk.private<[M, 256], f32> {pk.name = "X"}, %Z: !pk.private<[M], f32> {pk.name = "Z"}, %W: !pk.private<[K, 256], f32> {pk.name = "W"}) {
  %rows = pk.block_count <M by 4>
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] : !pk.block<M by 4>
    %zero = arith.constant 0 : index
    %d = pk.block[%zero] : !pk.block<256 by 256>
    %x = pk.load %X[%m, %d : !pk.block<M by 4>, !pk.block<256 by 256>] : !pk.private<[M, 256], f32> -> !pk.tile<4x256xf32>
    %s = pk.row_sum %x : !pk.tile<4x256xf32> -> !pk.tile<4xf32>
    pk.store %s, %Z[%m : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M], f32>
    %b = pk.broadcast %s axes [0] : !pk.tile<4xf32> -> !pk.tile<4x256xf32>
    %y = pk.sub %x, %b : !pk.tile<4x256xf32>
    %t = pk.transpose %y : !pk.tile<4x256xf32> -> !pk.tile<256x4xf32>
    %u = pk.clip %t axis 1 to %m fill 0.0 : f32 : !pk.tile<256x4xf32>, !pk.block<M by 4> -> !pk.tile<256x4xf32>
    %c = pk.row_sum %u : !pk.tile<256x4xf32> -> !pk.tile<256xf32>
    %e = pk.broadcast %c axes [1] : !pk.tile<256xf32> -> !pk.tile<4x256xf32>
    %f = pk.mul %x, %e : !pk.tile<4x256xf32>
    pk.store %f, %X[%m, %d : !pk.block<M by 4>, !pk.block<256 by 256>] : !pk.tile<4x256xf32>, !pk.private<[M, 256], f32>
  }
}

// -----

// Short rows stay together: threads have several of them at once.
// CHECK-LABEL: pk.kernel @short
// CHECK-NOT: scf.for
// CHECK-NOT: remark
pk.kernel @short(%X: !pk.private<[M, 64], f32> {pk.name = "X"}, %Z: !pk.private<[M], f32> {pk.name = "Z"}, %W: !pk.private<[K, 64], f32> {pk.name = "W"}) {
  %rows = pk.block_count <M by 4>
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] : !pk.block<M by 4>
    %zero = arith.constant 0 : index
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %x = pk.load %X[%m, %d : !pk.block<M by 4>, !pk.block<64 by 64>] : !pk.private<[M, 64], f32> -> !pk.tile<4x64xf32>
    %s = pk.row_sum %x : !pk.tile<4x64xf32> -> !pk.tile<4xf32>
    pk.store %s, %Z[%m : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M], f32>
    %b = pk.broadcast %s axes [0] : !pk.tile<4xf32> -> !pk.tile<4x64xf32>
    %y = pk.sub %x, %b : !pk.tile<4x64xf32>
    %t = pk.transpose %y : !pk.tile<4x64xf32> -> !pk.tile<64x4xf32>
    %u = pk.clip %t axis 1 to %m fill 0.0 : f32 : !pk.tile<64x4xf32>, !pk.block<M by 4> -> !pk.tile<64x4xf32>
    %c = pk.row_sum %u : !pk.tile<64x4xf32> -> !pk.tile<64xf32>
    pk.store %c, %W[%i, %d : index, !pk.block<64 by 64>] : !pk.tile<64xf32>, !pk.private<[K, 64], f32>
  }
}

// -----

// Short rows of which nothing but sums of columns is made come as a block.
// CHECK-LABEL: pk.kernel @short
// CHECK-NOT: scf.for
// CHECK: pk.row_sum %{{.*}} : !pk.tile<512x4xf32> -> !pk.tile<512xf32>
// CHECK-NOT: remark
pk.kernel @short(%X: !pk.private<[M, 512], f32> {pk.name = "X"}, %W: !pk.private<[K, 512], f32> {pk.name = "W"}) {
  %rows = pk.block_count <M by 4>
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] : !pk.block<M by 4>
    %zero = arith.constant 0 : index
    %d = pk.block[%zero] : !pk.block<512 by 512>
    %x = pk.load %X[%m, %d : !pk.block<M by 4>, !pk.block<512 by 512>] : !pk.private<[M, 512], f32> -> !pk.tile<4x512xf32>
    %t = pk.transpose %x : !pk.tile<4x512xf32> -> !pk.tile<512x4xf32>
    %u = pk.clip %t axis 1 to %m fill 0.0 : f32 : !pk.tile<512x4xf32>, !pk.block<M by 4> -> !pk.tile<512x4xf32>
    %c = pk.row_sum %u : !pk.tile<512x4xf32> -> !pk.tile<512xf32>
    pk.store %c, %W[%i, %d : index, !pk.block<512 by 512>] : !pk.tile<512xf32>, !pk.private<[K, 512], f32>
  }
}
