// Tiles lie flat where no MMA and no transposition reads them, and the kernel reaches no other rank.
// RUN: pkc-opt %s -p pk-plan-layouts --split-input-file | filecheck %s

// CHECK-LABEL: pk.kernel @rows
// CHECK-SAME:  attributes {flat}
pk.kernel @rows(%X: !pk.private<[M, 64], f32> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %m = pk.block[%i] : !pk.block<M by 64>
  %n = pk.block[%i] : !pk.block<64 by 64>
  %x = pk.load %X[%m, %n : !pk.block<M by 64>, !pk.block<64 by 64>] : !pk.private<[M, 64], f32> -> !pk.tile<64x64xf32>
  %s = pk.row_sum %x : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
  pk.store %s, %Y[%m : !pk.block<M by 64>] : !pk.tile<64xf32>, !pk.private<[M], f32>
}

// -----

// CHECK-LABEL: pk.kernel @columns
// CHECK-NOT:   flat
pk.kernel @columns(%X: !pk.private<[M, 64], f32> {pk.name = "X"}, %Y: !pk.private<[64], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %m = pk.block[%i] : !pk.block<M by 64>
  %n = pk.block[%i] : !pk.block<64 by 64>
  %x = pk.load %X[%m, %n : !pk.block<M by 64>, !pk.block<64 by 64>] : !pk.private<[M, 64], f32> -> !pk.tile<64x64xf32>
  %t = pk.transpose %x : !pk.tile<64x64xf32> -> !pk.tile<64x64xf32>
  %s = pk.row_sum %t : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
  pk.store %s, %Y[%n : !pk.block<64 by 64>] : !pk.tile<64xf32>, !pk.private<[64], f32>
}

// -----

// CHECK-LABEL: pk.kernel @shards
// CHECK-NOT:   flat
pk.kernel @shards(%X: !pk.pgl<[M, 64], f32, shard 0> {pk.name = "X"}, %Y: !pk.private<[M, 64], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %m = pk.block[%i] : !pk.block<M by 64>
  %n = pk.block[%i] : !pk.block<64 by 64>
  %x = pk.load %X[%m, %n : !pk.block<M by 64>, !pk.block<64 by 64>] : !pk.pgl<[M, 64], f32, shard 0> -> !pk.tile<64x64xf32>
  pk.store %x, %Y[%m, %n : !pk.block<M by 64>, !pk.block<64 by 64>] : !pk.tile<64x64xf32>, !pk.private<[M, 64], f32>
}

// -----

// CHECK-LABEL: pk.kernel @product
// CHECK-NOT:   flat
pk.kernel @product(%X: !pk.private<[64, 64], bf16> {pk.name = "X"}, %Y: !pk.private<[64, 64], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %n = pk.block[%i] : !pk.block<64 by 64>
  %x = pk.load %X[%n, %n : !pk.block<64 by 64>, !pk.block<64 by 64>] : !pk.private<[64, 64], bf16> -> !pk.tile<64x64xbf16>
  %z = pk.full 0.0 : f32 : !pk.tile<64x64xf32>
  %p = pk.mma %x, %x, %z : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
  pk.store %p, %Y[%n, %n : !pk.block<64 by 64>, !pk.block<64 by 64>] : !pk.tile<64x64xf32>, !pk.private<[64, 64], f32>
}

// -----

// Of panels of 128 bytes one box has all 64; of 512 bytes, 16 boxes have one each.
// CHECK-LABEL: pk.kernel @long
// CHECK-NOT:   flat
pk.kernel @long(%X: !pk.private<[M, 4096], bf16> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %m = pk.block[%i] : !pk.block<M by 4>
  %n = pk.block[%i] : !pk.block<4096 by 4096>
  %x = pk.load %X[%m, %n : !pk.block<M by 4>, !pk.block<4096 by 4096>] : !pk.private<[M, 4096], bf16> -> !pk.tile<4x4096xbf16>
  %w = pk.cast %x : !pk.tile<4x4096xbf16> -> !pk.tile<4x4096xf32>
  %s = pk.row_sum %w : !pk.tile<4x4096xf32> -> !pk.tile<4xf32>
  pk.store %s, %Y[%m : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M], f32>
}

// -----

// Rows of 1002 bytes lie in one piece each, with room for what lies around them; so do those of a row that is one.
// CHECK-LABEL: pk.kernel @anywhere
// CHECK-SAME:  attributes {around}
pk.kernel @anywhere(%X: !pk.private<[M, 501], bf16> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %m = pk.block[%i] : !pk.block<M by 4>
  %n = pk.block[%i] : !pk.block<501 by 501>
  %x = pk.load %X[%m, %n : !pk.block<M by 4>, !pk.block<501 by 501>] : !pk.private<[M, 501], bf16> -> !pk.tile<4x501xbf16>
  %c = pk.cast %x : !pk.tile<4x501xbf16> -> !pk.tile<4x501xf32>
  %s = pk.row_sum %c : !pk.tile<4x501xf32> -> !pk.tile<4xf32>
  pk.store %s, %Y[%m : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M], f32>
}

// -----

// Of short rows a copy each is not worth it.
// CHECK-LABEL: pk.kernel @short
// CHECK-NOT:   around
pk.kernel @short(%X: !pk.private<[M, 51], bf16> {pk.name = "X"}, %Y: !pk.private<[M, 51], bf16> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %m = pk.block[%i] : !pk.block<M by 4>
  %n = pk.block[%i] : !pk.block<51 by 51>
  %x = pk.load %X[%m, %n : !pk.block<M by 4>, !pk.block<51 by 51>] : !pk.private<[M, 51], bf16> -> !pk.tile<4x51xbf16>
  pk.store %x, %Y[%m, %n : !pk.block<M by 4>, !pk.block<51 by 51>] : !pk.tile<4x51xbf16>, !pk.private<[M, 51], bf16>
}
