// RUN: pkc-opt %s -p licm | filecheck %s

// Hoisting index arithmetic out of a loop is free; hoisting a tile would keep its registers alive for the whole loop.
// CHECK-LABEL: pk.kernel @loop
// CHECK:       pk.block_count <N by 8>
// CHECK-NEXT:  pk.block[
// CHECK-NEXT:  pk.ring_peer
// CHECK-NEXT:  scf.for
// CHECK-NEXT:  pk.full
// CHECK-NEXT:  pk.positions
// CHECK-NEXT:  pk.load
pk.kernel @loop(%X: !pk.private<[N], f32> {pk.name = "X"}, %Y: !pk.pgl<[N], i32, symmetric> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <N by 8>
  scf.for %j = %i to %n step %one {
    %b = pk.block[%i] : !pk.block<N by 8>
    %p = pk.ring_peer %one
    %f = pk.full 1.0 : f32 : !pk.tile<8xf32>
    %q = pk.positions %b : !pk.block<N by 8> -> !pk.tile<8xi32>
    %x = pk.load %X[%b : !pk.block<N by 8>] : !pk.private<[N], f32> -> !pk.tile<8xf32>
    %s = pk.add %x, %f : !pk.tile<8xf32>
    pk.store %s, %X[%b : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
    pk.store %q, %Y at %p[%b : !pk.block<N by 8>] : !pk.tile<8xi32>, !pk.pgl<[N], i32, symmetric>
  }
}
