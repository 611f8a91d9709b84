// RUN: pkc-opt %s -p pk-load-quotients --remarks | filecheck %s

// A block of 64 divided by 4 is a block of 16, of which each element is there four times; blocks of M may end early.
// CHECK-LABEL: pk.kernel @both
// CHECK:       %[[ROWS:.*]] = pk.block[%i] {shifted = !pk.block<M by 8>} : !pk.block<8 by 4>
// CHECK:       %[[COLUMNS:.*]] = pk.block[%i] {shifted = !pk.block<256 by 64>} : !pk.block<64 by 16>
// CHECK-NEXT:  %[[FEW:.*]] = pk.load %A[%[[ROWS]], %[[COLUMNS]] : !pk.block<8 by 4>, !pk.block<64 by 16>]
// CHECK-NEXT:  %[[MANY:.*]] = pk.enlarge %[[FEW]] : !pk.tile<4x16xf32> -> !pk.tile<8x64xf32>
// CHECK-NEXT:  %x = pk.clip %[[MANY]] axis 0 to %m fill 0.000000e+00
// CHECK-NEXT:  pk.store %x
// CHECK-NOT:   pk.gather
pk.kernel @both(%A: !pk.private<[8, 64], f32> {pk.name = "A"}, %Y: !pk.private<[M, 256], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %m = pk.block[%i] : !pk.block<M by 8>
  %n = pk.block[%i] : !pk.block<256 by 64>
  %p = pk.positions %m : !pk.block<M by 8> -> !pk.tile<8xi32>
  %two = pk.full 2 : i32 : !pk.tile<8xi32>
  %half = pk.floordiv %p, %two : !pk.tile<8xi32>
  %eight = pk.full 8 : i32 : !pk.tile<8xi32>
  %low = pk.compare lt, %half, %eight : !pk.tile<8xi32> -> !pk.tile<8xi1>
  %none = pk.full -1 : i32 : !pk.tile<8xi32>
  %inside = pk.select %low, %half, %none : !pk.tile<8xi1>, !pk.tile<8xi32>
  %rows = pk.clip %inside axis 0 to %m fill -1 : i32 : !pk.tile<8xi32>, !pk.block<M by 8> -> !pk.tile<8xi32>
  %q = pk.positions %n : !pk.block<256 by 64> -> !pk.tile<64xi32>
  %four = pk.full 4 : i32 : !pk.tile<64xi32>
  %columns = pk.floordiv %q, %four : !pk.tile<64xi32>
  %x = pk.gather %A rows %rows dim 0 axes [0, 1][%columns : !pk.tile<64xi32>] : !pk.private<[8, 64], f32>, !pk.tile<8xi32> -> !pk.tile<8x64xf32>
  pk.store %x, %Y[%m, %n : !pk.block<M by 8>, !pk.block<256 by 64>] : !pk.tile<8x64xf32>, !pk.private<[M, 256], f32>
}

// All positions of a block of 64 name one place of 128.
// CHECK-LABEL: pk.kernel @place
// CHECK:       %[[BEGIN:.*]] = pk.block_position %n
// CHECK-NEXT:  %[[AT:.*]] = arith.floordivsi %[[BEGIN]], %{{.*}} : index
// CHECK-NEXT:  %[[ROW:.*]] = pk.load %A[%m, %[[AT]] : !pk.block<M by 8>, index]
// CHECK-NEXT:  %x = pk.broadcast %[[ROW]] axes [0] : !pk.tile<8xf32> -> !pk.tile<8x64xf32>
pk.kernel @place(%A: !pk.private<[M, 2], f32> {pk.name = "A"}, %Y: !pk.private<[M, 256], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %m = pk.block[%i] : !pk.block<M by 8>
  %n = pk.block[%i] : !pk.block<256 by 64>
  %q = pk.positions %n : !pk.block<256 by 64> -> !pk.tile<64xi32>
  %many = pk.full 128 : i32 : !pk.tile<64xi32>
  %columns = pk.floordiv %q, %many : !pk.tile<64xi32>
  %x = pk.gather %A rows %columns dim 1 axes [0, 1][%m : !pk.block<M by 8>] : !pk.private<[M, 2], f32>, !pk.tile<64xi32> -> !pk.tile<8x64xf32>
  pk.store %x, %Y[%m, %n : !pk.block<M by 8>, !pk.block<256 by 64>] : !pk.tile<8x64xf32>, !pk.private<[M, 256], f32>
}

// Blocks of 64 begin within what 48 positions name; a matmul reads what is gathered as it is.
// CHECK-LABEL: pk.kernel @kept
// CHECK:       pk.gather
// CHECK:       pk.gather
// CHECK:       remark: {{.*}}pk.gather: positions divided by a number go by a table, not as a block does: the blocks of 64 do not begin and end at multiples of 48 [pk-load-quotients]
// CHECK:       remark: {{.*}}pk.gather: positions divided by a number go by a table, not as a block does: a matmul reads it where it is loaded [pk-load-quotients]
pk.kernel @kept(%A: !pk.private<[64, 16], bf16> {pk.name = "A"}, %B: !pk.private<[64, 16], bf16> {pk.name = "B"}, %Y: !pk.private<[64, 64], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %n = pk.block[%i] : !pk.block<64 by 64>
  %q = pk.positions %n : !pk.block<64 by 64> -> !pk.tile<64xi32>
  %odd = pk.full 48 : i32 : !pk.tile<64xi32>
  %few = pk.floordiv %q, %odd : !pk.tile<64xi32>
  %x = pk.gather %A rows %few dim 1 axes [0, 1][%n : !pk.block<64 by 64>] : !pk.private<[64, 16], bf16>, !pk.tile<64xi32> -> !pk.tile<64x64xbf16>
  %four = pk.full 4 : i32 : !pk.tile<64xi32>
  %columns = pk.floordiv %q, %four : !pk.tile<64xi32>
  %y = pk.gather %B rows %columns dim 1 axes [0, 1][%n : !pk.block<64 by 64>] : !pk.private<[64, 16], bf16>, !pk.tile<64xi32> -> !pk.tile<64x64xbf16>
  %zero = pk.full 0.0 : f32 : !pk.tile<64x64xf32>
  %yt = pk.transpose %y : !pk.tile<64x64xbf16> -> !pk.tile<64x64xbf16>
  %c = pk.mma %x, %yt, %zero : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
  pk.store %c, %Y[%n, %n : !pk.block<64 by 64>, !pk.block<64 by 64>] : !pk.tile<64x64xf32>, !pk.private<[64, 64], f32>
}
