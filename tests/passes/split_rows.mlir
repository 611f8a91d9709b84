// Rows that are longer than the schedule says go through in pieces, and the rest behind them.
// RUN: pkc-opt %s -p pk-split-rows,pk-dce --split-input-file --remarks | filecheck %s

// Two loops: what needs the sum stands in the second one, which loads the pieces again.
// CHECK-LABEL: pk.kernel @normalised
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[COUNT:.*]] = arith.constant 2 : index
// CHECK: %[[NONE:.*]] = pk.full 0.000000e+00 : f32 : !pk.tile<4xf32>
// CHECK-NEXT: %[[LOOP:.*]] = scf.for %[[I:.*]] = %[[ZERO]] to %[[COUNT]] {{.*}} iter_args(%[[SUM:.*]] = %[[NONE]])
// CHECK-NEXT: %[[D:.*]] = pk.block[%[[I]]] : !pk.block<100 by 48>
// CHECK-NEXT: %[[X:.*]] = pk.load %X[%m, %[[D]] :
// CHECK-NEXT: %[[PIECE:.*]] = pk.row_sum %[[X]] : !pk.tile<4x48xf32> -> !pk.tile<4xf32>
// CHECK-NEXT: pk.add %[[SUM]], %[[PIECE]]
// CHECK: %[[FIRST:.*]] = arith.constant 96 : index
// CHECK-NEXT: %[[REST:.*]] = pk.block[%[[ZERO]]] from %[[FIRST]] : !pk.block<100 by 4>
// CHECK-NEXT: %[[LAST:.*]] = pk.load %X[%m, %[[REST]] :
// CHECK-NEXT: %[[OF:.*]] = pk.row_sum %[[LAST]]
// CHECK-NEXT: %[[ALL:.*]] = pk.add %[[LOOP]], %[[OF]]
// CHECK: scf.for
// CHECK: pk.load %X
// CHECK-NEXT: pk.broadcast %[[ALL]] axes [0] : !pk.tile<4xf32> -> !pk.tile<4x48xf32>
// CHECK: pk.store {{.*}} !pk.tile<4x48xf32>
// CHECK: pk.store {{.*}} !pk.tile<4x4xf32>
// CHECK-NOT: remark
pk.kernel @normalised(%X: !pk.private<[M, 100], f32> {pk.name = "X"}, %Y: !pk.private<[M, 100], f32> {pk.name = "Y"}) attributes {schedule = {row = 48 : i64}} {
  %rows = pk.block_count <M by 4>
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] : !pk.block<M by 4>
    %zero = arith.constant 0 : index
    %d = pk.block[%zero] : !pk.block<100 by 100>
    %x = pk.load %X[%m, %d : !pk.block<M by 4>, !pk.block<100 by 100>] : !pk.private<[M, 100], f32> -> !pk.tile<4x100xf32>
    %s = pk.row_sum %x : !pk.tile<4x100xf32> -> !pk.tile<4xf32>
    %b = pk.broadcast %s axes [0] : !pk.tile<4xf32> -> !pk.tile<4x100xf32>
    %y = pk.div %x, %b : !pk.tile<4x100xf32>
    pk.store %y, %Y[%m, %d : !pk.block<M by 4>, !pk.block<100 by 100>] : !pk.tile<4x100xf32>, !pk.private<[M, 100], f32>
  }
}

// -----

// One loop: the sum of exponentials is multiplied when the maximum grows, but for what is -inf alone.
// CHECK-LABEL: pk.kernel @online
// CHECK: %[[LOW:.*]] = pk.full 0xff800000
// CHECK: scf.for {{.*}} iter_args(%[[TOP:.*]] = %[[LOW]], %[[SUM:.*]] = %
// CHECK: %[[NEW:.*]] = pk.max %[[TOP]], %
// CHECK: pk.row_sum
// CHECK-NEXT: %[[LESS:.*]] = pk.sub %[[TOP]], %[[NEW]]
// CHECK-NEXT: %[[PART:.*]] = pk.exp %[[LESS]]
// CHECK-NEXT: %[[SCALED:.*]] = pk.mul %[[SUM]], %[[PART]]
// CHECK: pk.compare eq, %[[TOP]], %
// CHECK: pk.select {{.*}} %[[SCALED]]
// CHECK: scf.yield
// CHECK-NOT: scf.for
// CHECK-NOT: remark
pk.kernel @online(%X: !pk.private<[M, 96], f32> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) attributes {schedule = {row = 48 : i64}} {
  %rows = pk.block_count <M by 4>
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] : !pk.block<M by 4>
    %zero = arith.constant 0 : index
    %d = pk.block[%zero] : !pk.block<96 by 96>
    %x = pk.load %X[%m, %d : !pk.block<M by 4>, !pk.block<96 by 96>] : !pk.private<[M, 96], f32> -> !pk.tile<4x96xf32>
    %t = pk.row_max %x : !pk.tile<4x96xf32> -> !pk.tile<4xf32>
    %b = pk.broadcast %t axes [0] : !pk.tile<4xf32> -> !pk.tile<4x96xf32>
    %u = pk.sub %x, %b : !pk.tile<4x96xf32>
    %e = pk.exp %u : !pk.tile<4x96xf32>
    %s = pk.row_sum %e : !pk.tile<4x96xf32> -> !pk.tile<4xf32>
    pk.store %s, %Y[%m : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M], f32>
  }
}

// -----

// CHECK-LABEL: pk.kernel @square
// CHECK: pk.transpose
// CHECK: // remark: {{.*}}rows of 64 elements are not divided: another axis of a tile is as long [pk-split-rows]
pk.kernel @square(%X: !pk.private<[M, 64], f32> {pk.name = "X"}, %Y: !pk.private<[64, M], f32> {pk.name = "Y"}) attributes {schedule = {row = 16 : i64}} {
  %rows = pk.block_count <M by 64>
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] : !pk.block<M by 64>
    %zero = arith.constant 0 : index
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %x = pk.load %X[%m, %d : !pk.block<M by 64>, !pk.block<64 by 64>] : !pk.private<[M, 64], f32> -> !pk.tile<64x64xf32>
    %y = pk.transpose %x : !pk.tile<64x64xf32> -> !pk.tile<64x64xf32>
    pk.store %y, %Y[%d, %m : !pk.block<64 by 64>, !pk.block<M by 64>] : !pk.tile<64x64xf32>, !pk.private<[64, M], f32>
  }
}

// -----

// Sums so far go on: each piece adds those of the pieces in front of it, from the first to the last.
// CHECK-LABEL: pk.kernel @so_far
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}) -> (!pk.tile<4xf32>)
// CHECK: pk.block[%[[I]]] : !pk.block<100 by 48>
// CHECK: %[[C:.*]] = pk.cum_sum %[[X:.*]] : !pk.tile<4x48xf32>
// CHECK-NEXT: %[[OF:.*]] = pk.row_sum %[[X]]
// CHECK-NEXT: %[[NEXT:.*]] = pk.add %[[SUM]], %[[OF]]
// CHECK-NEXT: %[[BEFORE:.*]] = pk.broadcast %[[SUM]] axes [0] : !pk.tile<4xf32> -> !pk.tile<4x48xf32>
// CHECK-NEXT: %[[ALL:.*]] = pk.add %[[BEFORE]], %[[C]]
// CHECK-NEXT: pk.store %[[ALL]]
// CHECK-NEXT: scf.yield %[[NEXT]]
// CHECK: pk.cum_sum {{.*}} !pk.tile<4x4xf32>
// CHECK-NOT: remark
pk.kernel @so_far(%X: !pk.private<[M, 100], f32> {pk.name = "X"}, %Y: !pk.private<[M, 100], f32> {pk.name = "Y"}) attributes {schedule = {row = 48 : i64}} {
  %rows = pk.block_count <M by 4>
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] : !pk.block<M by 4>
    %zero = arith.constant 0 : index
    %d = pk.block[%zero] : !pk.block<100 by 100>
    %x = pk.load %X[%m, %d : !pk.block<M by 4>, !pk.block<100 by 100>] : !pk.private<[M, 100], f32> -> !pk.tile<4x100xf32>
    %s = pk.cum_sum %x : !pk.tile<4x100xf32>
    pk.store %s, %Y[%m, %d : !pk.block<M by 4>, !pk.block<100 by 100>] : !pk.tile<4x100xf32>, !pk.private<[M, 100], f32>
  }
}
