// Tiles with all of a constant dimension get the lengths that MMAs take.
// RUN: pkc-opt %s -p pk-pad-axes --split-input-file --remarks | filecheck %s

// What an MMA sums over is clipped; stores leave out what lies past the end.
// CHECK-LABEL: pk.kernel @low_rank
// CHECK:       %[[R:.*]] = pk.block[%{{.*}}] : !pk.block<8 by 16>
// CHECK:       %[[A:.*]] = pk.load %A
// CHECK-SAME:  !pk.block<8 by 16>] : !pk.private<[K, 8], bf16> -> !pk.tile<64x16xbf16>
// CHECK:       %[[L:.*]] = pk.mma
// CHECK-SAME:  -> !pk.tile<64x16xf32>
// CHECK:       %[[C:.*]] = pk.cast %[[L]] : !pk.tile<64x16xf32> -> !pk.tile<64x16xbf16>
// CHECK:       %[[B:.*]] = pk.load %B
// CHECK:       %[[P:.*]] = pk.clip %[[C]] axis 1 to %[[R]] fill 0.000000e+00
// CHECK:       %[[Q:.*]] = pk.clip %[[B]] axis 0 to %[[R]] fill 0.000000e+00
// CHECK:       pk.mma %[[P]], %[[Q]]
// CHECK-SAME:  !pk.tile<64x16xbf16>, !pk.tile<16x64xbf16> -> !pk.tile<64x64xf32>
pk.kernel @low_rank(%X: !pk.private<[M, K], bf16> {pk.name = "X"}, %A: !pk.private<[K, 8], bf16> {pk.name = "A"},
                    %B: !pk.private<[8, N], bf16> {pk.name = "B"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %m = pk.block[%i] : !pk.block<M by 64>
  %k = pk.block[%i] : !pk.block<K by 64>
  %n = pk.block[%i] : !pk.block<N by 64>
  %r = pk.block[%i] : !pk.block<8 by 8>
  %x = pk.load %X[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<64x64xbf16>
  %a = pk.load %A[%k, %r : !pk.block<K by 64>, !pk.block<8 by 8>] : !pk.private<[K, 8], bf16> -> !pk.tile<64x8xbf16>
  %z = pk.full 0.0 : f32 : !pk.tile<64x8xf32>
  %l = pk.mma %x, %a, %z : !pk.tile<64x64xbf16>, !pk.tile<64x8xbf16> -> !pk.tile<64x8xf32>
  %c = pk.cast %l : !pk.tile<64x8xf32> -> !pk.tile<64x8xbf16>
  %b = pk.load %B[%r, %n : !pk.block<8 by 8>, !pk.block<N by 64>] : !pk.private<[8, N], bf16> -> !pk.tile<8x64xbf16>
  %w = pk.full 0.0 : f32 : !pk.tile<64x64xf32>
  %y = pk.mma %c, %b, %w : !pk.tile<64x8xbf16>, !pk.tile<8x64xbf16> -> !pk.tile<64x64xf32>
  pk.store %y, %Y[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.tile<64x64xf32>, !pk.private<[M, N], f32>
}

// -----

// The greatest element of a row of 20 is not that of what lies past its end.
// CHECK-LABEL: pk.kernel @greatest
// CHECK:       %[[Y:.*]] = pk.mma
// CHECK:       %[[C:.*]] = pk.clip %[[Y]] axis 1 to %{{.*}} fill 0xff800000
// CHECK-NEXT:  pk.row_max %[[C]] : !pk.tile<64x32xf32>
pk.kernel @greatest(%X: !pk.private<[M, 64], bf16> {pk.name = "X"}, %A: !pk.private<[64, 20], bf16> {pk.name = "A"},
                    %Y: !pk.private<[M], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %m = pk.block[%i] : !pk.block<M by 64>
  %k = pk.block[%i] : !pk.block<64 by 64>
  %r = pk.block[%i] : !pk.block<20 by 20>
  %x = pk.load %X[%m, %k : !pk.block<M by 64>, !pk.block<64 by 64>] : !pk.private<[M, 64], bf16> -> !pk.tile<64x64xbf16>
  %a = pk.load %A[%k, %r : !pk.block<64 by 64>, !pk.block<20 by 20>] : !pk.private<[64, 20], bf16> -> !pk.tile<64x20xbf16>
  %z = pk.full 0.0 : f32 : !pk.tile<64x20xf32>
  %y = pk.mma %x, %a, %z : !pk.tile<64x64xbf16>, !pk.tile<64x20xbf16> -> !pk.tile<64x20xf32>
  %t = pk.row_max %y : !pk.tile<64x20xf32> -> !pk.tile<64xf32>
  pk.store %t, %Y[%m : !pk.block<M by 64>] : !pk.tile<64xf32>, !pk.private<[M], f32>
}

// -----

// A part of a dimension goes on where another begins: it stays as it is.
// CHECK-LABEL: pk.kernel @half
// CHECK:       -> !pk.tile<64x20xf32>
// CHECK:       remark{{.*}}an axis of 20 elements is not padded for an MMA: blocks along it do not have all of a constant dimension
pk.kernel @half(%X: !pk.private<[M, 64], bf16> {pk.name = "X"}, %A: !pk.private<[64, 40], bf16> {pk.name = "A"},
                %Y: !pk.private<[M, 40], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %m = pk.block[%i] : !pk.block<M by 64>
  %k = pk.block[%i] : !pk.block<64 by 64>
  %r = pk.block[%i] : !pk.block<40 by 20>
  %x = pk.load %X[%m, %k : !pk.block<M by 64>, !pk.block<64 by 64>] : !pk.private<[M, 64], bf16> -> !pk.tile<64x64xbf16>
  %a = pk.load %A[%k, %r : !pk.block<64 by 64>, !pk.block<40 by 20>] : !pk.private<[64, 40], bf16> -> !pk.tile<64x20xbf16>
  %z = pk.full 0.0 : f32 : !pk.tile<64x20xf32>
  %y = pk.mma %x, %a, %z : !pk.tile<64x64xbf16>, !pk.tile<64x20xbf16> -> !pk.tile<64x20xf32>
  pk.store %y, %Y[%m, %r : !pk.block<M by 64>, !pk.block<40 by 20>] : !pk.tile<64x20xf32>, !pk.private<[M, 40], f32>
}

// -----

// Threads add up sums over ranks by eight elements of a row: rows of 77 have room for 80. A sum of rows leaves out what
// lies past the end. Rows of 24 stay as they are, and so do those of a private array.
// CHECK-LABEL: pk.kernel @summed
// CHECK:       %[[B:.*]] = pk.block[%{{.*}}] : !pk.block<77 by 80>
// CHECK:       %[[X:.*]] = pk.load %X[%m, %[[B]] : !pk.block<M by 4>, !pk.block<77 by 80>]
// CHECK-NEXT:  %[[C:.*]] = pk.clip %[[X]] axis 1 to %[[B]] fill 0.000000e+00
// CHECK-NEXT:  pk.row_sum %[[C]] : !pk.tile<4x80xf32>
// CHECK:       pk.accumulate %[[X]], %S[%m, %[[B]] :
// CHECK:       pk.accumulate %{{.*}}, %T[%m, %d : !pk.block<M by 4>, !pk.block<24 by 24>]
pk.kernel @summed(%X: !pk.private<[M, 77], f32> {pk.name = "X"}, %Y: !pk.private<[M, 24], f32> {pk.name = "Y"},
                  %S: !pk.pgl<[M, 77], f32, shard 0> {pk.name = "S"}, %T: !pk.pgl<[M, 24], f32, shard 0> {pk.name = "T"},
                  %U: !pk.private<[M], f32> {pk.name = "U"}) {
  %0 = pk.block_count <M by 4>
  pk.tasks (%i) in (%0) {
    %m = pk.block[%i] : !pk.block<M by 4>
    %zero = arith.constant 0 : index
    %c = pk.block[%zero] : !pk.block<77 by 77>
    %d = pk.block[%zero] : !pk.block<24 by 24>
    %x = pk.load %X[%m, %c : !pk.block<M by 4>, !pk.block<77 by 77>] : !pk.private<[M, 77], f32> -> !pk.tile<4x77xf32>
    %u = pk.row_sum %x : !pk.tile<4x77xf32> -> !pk.tile<4xf32>
    pk.store %u, %U[%m : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M], f32>
    pk.accumulate %x, %S[%m, %c : !pk.block<M by 4>, !pk.block<77 by 77>] : !pk.tile<4x77xf32>, !pk.pgl<[M, 77], f32, shard 0>
    %y = pk.load %Y[%m, %d : !pk.block<M by 4>, !pk.block<24 by 24>] : !pk.private<[M, 24], f32> -> !pk.tile<4x24xf32>
    pk.accumulate %y, %T[%m, %d : !pk.block<M by 4>, !pk.block<24 by 24>] : !pk.tile<4x24xf32>, !pk.pgl<[M, 24], f32, shard 0>
  }
}
