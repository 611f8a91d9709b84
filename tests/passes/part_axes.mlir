// A tile of one axis along rows and along columns becomes two.
// RUN: pkc-opt %s -p pk-part-axes,pk-cse --split-input-file --remarks | filecheck %s

// Positions, and what is computed from a load, are made again for columns; what equals them is not merged with them.
// CHECK-LABEL: pk.kernel @both
// CHECK:       %[[V:.*]] = pk.load %V
// CHECK-SAME:  %m : !pk.block<M by 64>] : !pk.private<[M], f32>
// CHECK-NEXT:  %[[V2:.*]] = pk.load %V
// CHECK-SAME:  {along = "columns"}
// CHECK:       %[[S:.*]] = pk.broadcast %s axes [] : !pk.tile<f32>
// CHECK-NEXT:  %[[S2:.*]] = pk.broadcast %s axes [] {along = "columns"}
// CHECK-NEXT:  %[[W:.*]] = pk.mul %[[V]], %[[S]] :
// CHECK-NEXT:  %[[W2:.*]] = pk.mul %[[V2]], %[[S2]] {along = "columns"}
// CHECK-NEXT:  pk.broadcast %[[W]] axes [0]
// CHECK-NEXT:  pk.broadcast %[[W2]] axes [1]
pk.kernel @both(%V: !pk.private<[M], f32> {pk.name = "V"}, %Y: !pk.private<[M, M], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %m = pk.block[%i] : !pk.block<M by 64>
  %v = pk.load %V[%m : !pk.block<M by 64>] : !pk.private<[M], f32> -> !pk.tile<64xf32>
  %s = pk.full 2.0 : f32 : !pk.tile<f32>
  %scale = pk.broadcast %s axes [] : !pk.tile<f32> -> !pk.tile<64xf32>
  %w = pk.mul %v, %scale : !pk.tile<64xf32>
  %r = pk.broadcast %w axes [0] : !pk.tile<64xf32> -> !pk.tile<64x64xf32>
  %c = pk.broadcast %w axes [1] : !pk.tile<64xf32> -> !pk.tile<64x64xf32>
  %y = pk.add %r, %c : !pk.tile<64x64xf32>
  pk.store %y, %Y[%m, %m : !pk.block<M by 64>, !pk.block<M by 64>] : !pk.tile<64x64xf32>, !pk.private<[M, M], f32>
}

// -----

// What is reduced is not.
// CHECK-LABEL: pk.kernel @reduced
// CHECK:       %[[S:.*]] = pk.row_sum
// CHECK-NEXT:  pk.broadcast %[[S]] axes [1]
// CHECK:       a tile that lies along rows and along columns goes through shared memory: it follows from a reduction of rows, or a loop carries it
pk.kernel @reduced(%X: !pk.private<[M, M], f32> {pk.name = "X"}, %Y: !pk.private<[M, M], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %m = pk.block[%i] : !pk.block<M by 64>
  %x = pk.load %X[%m, %m : !pk.block<M by 64>, !pk.block<M by 64>] : !pk.private<[M, M], f32> -> !pk.tile<64x64xf32>
  %s = pk.row_sum %x : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
  %c = pk.broadcast %s axes [1] : !pk.tile<64xf32> -> !pk.tile<64x64xf32>
  pk.store %c, %Y[%m, %m : !pk.block<M by 64>, !pk.block<M by 64>] : !pk.tile<64x64xf32>, !pk.private<[M, M], f32>
}
