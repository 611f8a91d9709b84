// A computed tile is stored to all before the first is told.
// RUN: pkc-opt %s -p pk-delay-signals | filecheck %s

// CHECK-LABEL: pk.kernel @tell
// CHECK: scf.for
// CHECK-NEXT: pk.ring_peer
// CHECK-NEXT: pk.store %u, %Y
// CHECK-NEXT: }
// CHECK-NEXT: scf.for
// CHECK-NEXT: %[[PEER:.*]] = pk.ring_peer
// CHECK-NEXT: pk.signal %done at %[[PEER]]
// CHECK-NEXT: }
pk.kernel @tell(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.pgl<[M], f32, symmetric> {pk.name = "Y"}, %done: !pk.signal<[1]> {pk.name = "done"}) attributes {derived, written} {
  pk.role communicator {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %ranks = pk.dim "ranks"
    %m = pk.block[%zero] : !pk.block<M by 16>
    %t = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
    %u = pk.add %t, %t : !pk.tile<16xf32>
    scf.for %i = %zero to %ranks step %one {
      %r = pk.ring_peer %i
      pk.store %u, %Y at %r[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, symmetric>
      pk.signal %done at %r[%zero] by %one : !pk.signal<[1]>
    }
  }
}
