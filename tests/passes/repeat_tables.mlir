// Tables that something else needs too are computed once more, for the accesses alone; others stay.
// RUN: pkc-opt %s -p pk-repeat-tables --split-input-file | filecheck %s

// CHECK-LABEL: pk.kernel @shared
// CHECK: %at = pk.add %first, %positions
// CHECK-NEXT: %[[OWN:.*]] = pk.add %[[FIRST:.*]], %[[POSITIONS:.*]] :
// CHECK: pk.gather %X rows %[[OWN]]
// CHECK: pk.scatter_store %x, %Y rows %[[OWN]]
// CHECK-NEXT: pk.cast %at
pk.kernel @shared(%X: !pk.private<[M, 64], f32> {pk.name = "X"}, %Y: !pk.private<[M, 64], f32> {pk.name = "Y"}, %Z: !pk.private<[M], f32> {pk.name = "Z"}) {
  %n = pk.dim "M"
  pk.tasks (%i) in (%n) {
    %zero = arith.constant 0 : index
    %m = pk.block[%i] : !pk.block<M by 8>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %positions = pk.positions %m : !pk.block<M by 8> -> !pk.tile<8xi32>
    %first = pk.splat %i : index -> !pk.tile<8xi32>
    %at = pk.add %first, %positions : !pk.tile<8xi32>
    %x = pk.gather %X rows %at[%d : !pk.block<64 by 64>] : !pk.private<[M, 64], f32>, !pk.tile<8xi32> -> !pk.tile<8x64xf32>
    pk.scatter_store %x, %Y rows %at[%d : !pk.block<64 by 64>] : !pk.tile<8x64xf32>, !pk.private<[M, 64], f32>, !pk.tile<8xi32>
    %z = pk.cast %at : !pk.tile<8xi32> -> !pk.tile<8xf32>
    pk.store %z, %Z[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
  }
}

// -----

// CHECK-LABEL: pk.kernel @alone
// CHECK: pk.add
// CHECK-NOT: pk.add
// CHECK: pk.gather
pk.kernel @alone(%X: !pk.private<[M, 64], f32> {pk.name = "X"}, %Y: !pk.private<[M, 64], f32> {pk.name = "Y"}) {
  %n = pk.dim "M"
  pk.tasks (%i) in (%n) {
    %zero = arith.constant 0 : index
    %m = pk.block[%i] : !pk.block<M by 8>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %positions = pk.positions %m : !pk.block<M by 8> -> !pk.tile<8xi32>
    %at = pk.add %positions, %positions : !pk.tile<8xi32>
    %x = pk.gather %X rows %at[%d : !pk.block<64 by 64>] : !pk.private<[M, 64], f32>, !pk.tile<8xi32> -> !pk.tile<8x64xf32>
    pk.store %x, %Y[%m, %d : !pk.block<M by 8>, !pk.block<64 by 64>] : !pk.tile<8x64xf32>, !pk.private<[M, 64], f32>
  }
}

// -----

// Of a table that shares a number with something else, only the copy stays: another table needs the same positions.
// CHECK-LABEL: pk.kernel @number
// CHECK: pk.sub
// CHECK-NOT: pk.sub
// CHECK: pk.store %z
pk.kernel @number(%X: !pk.private<[M, 64], f32> {pk.name = "X"}, %Y: !pk.private<[M, 64], f32> {pk.name = "Y"}, %Z: !pk.private<[M], f32> {pk.name = "Z"}) {
  %n = pk.dim "M"
  pk.tasks (%i) in (%n) {
    %zero = arith.constant 0 : index
    %m = pk.block[%i] : !pk.block<M by 8>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %positions = pk.positions %m : !pk.block<M by 8> -> !pk.tile<8xi32>
    %one = pk.full 1 : i32 : !pk.tile<8xi32>
    %twice = pk.add %positions, %positions : !pk.tile<8xi32>
    %x = pk.gather %X rows %twice[%d : !pk.block<64 by 64>] : !pk.private<[M, 64], f32>, !pk.tile<8xi32> -> !pk.tile<8x64xf32>
    %before = pk.sub %positions, %one : !pk.tile<8xi32>
    %y = pk.gather %X rows %before[%d : !pk.block<64 by 64>] : !pk.private<[M, 64], f32>, !pk.tile<8xi32> -> !pk.tile<8x64xf32>
    %sum = pk.add %x, %y : !pk.tile<8x64xf32>
    pk.store %sum, %Y[%m, %d : !pk.block<M by 8>, !pk.block<64 by 64>] : !pk.tile<8x64xf32>, !pk.private<[M, 64], f32>
    %z = pk.cast %one : !pk.tile<8xi32> -> !pk.tile<8xf32>
    pk.store %z, %Z[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
  }
}
