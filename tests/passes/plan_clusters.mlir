// Rows that reductions go over lie in the CTAs of a cluster, of as many as the schedule says.
// RUN: pkc-opt %s -p pk-plan-clusters --split-input-file --remarks | filecheck %s

// CHECK-LABEL: pk.kernel @normalised
// CHECK-SAME: cluster = 4 : i64, spread = 4096 : i64
// CHECK-NOT: remark
pk.kernel @normalised(%X: !pk.private<[M, 4096], f32> {pk.name = "X"}, %Y: !pk.private<[M, 4096], f32> {pk.name = "Y"}) attributes {schedule = {cluster = 4 : i64}} {
  %n = pk.dim "M"
  pk.tasks (%m) in (%n) {
    %zero = arith.constant 0 : index
    %d = pk.block[%zero] : !pk.block<4096 by 4096>
    %x = pk.load %X[%m, %d : index, !pk.block<4096 by 4096>] : !pk.private<[M, 4096], f32> -> !pk.tile<4096xf32>
    %s = pk.row_sum %x : !pk.tile<4096xf32> -> !pk.tile<f32>
    %b = pk.broadcast %s axes [] : !pk.tile<f32> -> !pk.tile<4096xf32>
    %y = pk.div %x, %b : !pk.tile<4096xf32>
    pk.store %y, %Y[%m, %d : index, !pk.block<4096 by 4096>] : !pk.tile<4096xf32>, !pk.private<[M, 4096], f32>
  }
}

// -----

// A transposed row is along another axis.
// CHECK-LABEL: pk.kernel @transposed
// CHECK-NOT: spread
// CHECK: pk.kernel: CTAs form no clusters of 2: another axis of a tile is as long [pk-plan-clusters]
pk.kernel @transposed(%X: !pk.private<[8, 4096], f32> {pk.name = "X"}, %Y: !pk.private<[8], f32> {pk.name = "Y"}) attributes {schedule = {cluster = 2 : i64}} {
  %one = arith.constant 1 : index
  pk.tasks (%i) in (%one) {
    %zero = arith.constant 0 : index
    %m = pk.block[%zero] : !pk.block<8 by 8>
    %d = pk.block[%zero] : !pk.block<4096 by 4096>
    %x = pk.load %X[%m, %d : !pk.block<8 by 8>, !pk.block<4096 by 4096>] : !pk.private<[8, 4096], f32> -> !pk.tile<8x4096xf32>
    %t = pk.transpose %x : !pk.tile<8x4096xf32> -> !pk.tile<4096x8xf32>
    %u = pk.transpose %t : !pk.tile<4096x8xf32> -> !pk.tile<8x4096xf32>
    %s = pk.row_max %u : !pk.tile<8x4096xf32> -> !pk.tile<8xf32>
    pk.store %s, %Y[%m : !pk.block<8 by 8>] : !pk.tile<8xf32>, !pk.private<[8], f32>
  }
}

// -----

// The parts of a row would be no multiples of 16 bytes.
// CHECK-LABEL: pk.kernel @odd
// CHECK-NOT: spread
// CHECK: CTAs form no clusters of 8: a part of a row is no multiple of 16 bytes
pk.kernel @odd(%X: !pk.private<[M, 4104], bf16> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) attributes {schedule = {cluster = 8 : i64}} {
  %n = pk.dim "M"
  pk.tasks (%m) in (%n) {
    %zero = arith.constant 0 : index
    %d = pk.block[%zero] : !pk.block<4104 by 4104>
    %x = pk.load %X[%m, %d : index, !pk.block<4104 by 4104>] : !pk.private<[M, 4104], bf16> -> !pk.tile<4104xbf16>
    %f = pk.cast %x : !pk.tile<4104xbf16> -> !pk.tile<4104xf32>
    %s = pk.row_sum %f : !pk.tile<4104xf32> -> !pk.tile<f32>
    pk.store %s, %Y[%m : index] : !pk.tile<f32>, !pk.private<[M], f32>
  }
}

// -----

// CHECK-LABEL: pk.kernel @three
// CHECK-NOT: spread
// CHECK: CTAs form no clusters of 3: sm_90a has clusters of a power of two of CTAs, at most 8
pk.kernel @three(%X: !pk.private<[M, 4096], f32> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) attributes {schedule = {cluster = 3 : i64}} {
  %n = pk.dim "M"
  pk.tasks (%m) in (%n) {
    %zero = arith.constant 0 : index
    %d = pk.block[%zero] : !pk.block<4096 by 4096>
    %x = pk.load %X[%m, %d : index, !pk.block<4096 by 4096>] : !pk.private<[M, 4096], f32> -> !pk.tile<4096xf32>
    %s = pk.row_sum %x : !pk.tile<4096xf32> -> !pk.tile<f32>
    pk.store %s, %Y[%m : index] : !pk.tile<f32>, !pk.private<[M], f32>
  }
}

// -----

// A loop carries each CTA's part of what it leaves of a row.
// CHECK-LABEL: pk.kernel @carried
// CHECK-SAME: cluster = 4 : i64, spread = 4096 : i64
// CHECK-NOT: remark
pk.kernel @carried(%X: !pk.private<[M, 4096], f32> {pk.name = "X"}, %Y: !pk.private<[M, 4096], f32> {pk.name = "Y"}) attributes {schedule = {cluster = 4 : i64}} {
  %n = pk.dim "M"
  pk.tasks (%m) in (%n) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %three = arith.constant 3 : index
    %d = pk.block[%zero] : !pk.block<4096 by 4096>
    %x = pk.load %X[%m, %d : index, !pk.block<4096 by 4096>] : !pk.private<[M, 4096], f32> -> !pk.tile<4096xf32>
    %y = scf.for %k = %zero to %three step %one iter_args(%rest = %x) -> (!pk.tile<4096xf32>) {
      %s = pk.row_max %rest : !pk.tile<4096xf32> -> !pk.tile<f32>
      %b = pk.broadcast %s axes [] : !pk.tile<f32> -> !pk.tile<4096xf32>
      %z = pk.sub %rest, %b : !pk.tile<4096xf32>
      scf.yield %z : !pk.tile<4096xf32>
    }
    pk.store %y, %Y[%m, %d : index, !pk.block<4096 by 4096>] : !pk.tile<4096xf32>, !pk.private<[M, 4096], f32>
  }
}
