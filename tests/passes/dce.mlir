// RUN: pkc-opt %s -p pk-dce | filecheck %s

// Unused reads and loops go; what writes or orders memory stays.
// CHECK-LABEL: pk.kernel @dead
// CHECK-NOT:   pk.load
// CHECK-NOT:   scf.for
// CHECK-NOT:   pk.role storer
// CHECK:       pk.role communicator
// CHECK:       pk.wait
// CHECK-NEXT:  pk.signal_all
// CHECK-NEXT:  pk.barrier
// CHECK-NEXT:  pk.all_reduce
// CHECK-NEXT:  }
pk.kernel @dead(%X: !pk.pgl<[8], f32, symmetric> {pk.name = "X"}, %ready: !pk.signal<[1]> {pk.name = "ready"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %b = pk.block[%i] : !pk.block<8 by 8>
  pk.role communicator {
    %x = pk.load %X[%b : !pk.block<8 by 8>] : !pk.pgl<[8], f32, symmetric> -> !pk.tile<8xf32>
    %r = pk.reduce %X[%b : !pk.block<8 by 8>] : !pk.pgl<[8], f32, symmetric> -> !pk.tile<8xf32>
    %s = scf.for %j = %i to %one step %one iter_args(%c = %x) -> (!pk.tile<8xf32>) {
      %d = pk.add %c, %r : !pk.tile<8xf32>
      scf.yield %d : !pk.tile<8xf32>
    }
    %e = pk.exp %s : !pk.tile<8xf32>
    pk.wait %ready[%i] for %one : !pk.signal<[1]>
    pk.signal_all %ready[%i] by %one : !pk.signal<[1]>
    pk.barrier %ready[%i] : !pk.signal<[1]>
    pk.all_reduce %X[%b : !pk.block<8 by 8>] : !pk.pgl<[8], f32, symmetric>
  }
}
