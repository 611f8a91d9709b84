// Sums over all ranks' copies of a tile are loads in rank order, additions, and stores to every rank.
// RUN: pkc-opt %s -p pk-expand-reduce --split-input-file | filecheck %s

// The sum begins with rank 0's copy.
// CHECK-LABEL: pk.kernel @narrow
// CHECK: %[[FIRST:.*]] = pk.load %X at %[[ZERO:.*]][%m
// CHECK-NEXT: %[[BEGIN:.*]] = pk.cast %[[FIRST]]
// CHECK-NEXT: %t = scf.for %[[R:.*]] = %[[ONE:.*]] to %{{.*}} step %[[ONE]] iter_args(%[[SUM:.*]] = %[[BEGIN]])
// CHECK-NEXT: %[[NEXT:.*]] = pk.load %X at %[[R]][%m
// CHECK-NEXT: %[[WIDE:.*]] = pk.cast %[[NEXT]]
// CHECK-NEXT: %[[MORE:.*]] = pk.add %[[SUM]], %[[WIDE]]
// CHECK-NEXT: scf.yield %[[MORE]]
// CHECK-NOT: pk.reduce
// CHECK: pk.cast %t
pk.kernel @narrow(%X: !pk.pgl<[M], bf16, symmetric> {pk.name = "X"}, %Y: !pk.private<[M], bf16> {pk.name = "Y"}) {
  pk.role communicator {
    %zero = arith.constant 0 : index
    %m = pk.block[%zero] : !pk.block<M by 16>
    %t = pk.reduce %X[%m : !pk.block<M by 16>] : !pk.pgl<[M], bf16, symmetric> -> !pk.tile<16xf32>
    %narrow = pk.cast %t : !pk.tile<16xf32> -> !pk.tile<16xbf16>
    pk.store %narrow, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xbf16>, !pk.private<[M], bf16>
  }
}

// -----

// CHECK-LABEL: pk.kernel @wide
// CHECK: %[[SUM:.*]] = scf.for
// CHECK-NOT: pk.cast
// CHECK: scf.for %[[I:.*]] =
// CHECK-NEXT: %[[PEER:.*]] = pk.ring_peer %[[I]]
// CHECK-NEXT: pk.store %[[SUM]], %X at %[[PEER]][%m
// CHECK-NOT: pk.all_reduce
pk.kernel @wide(%X: !pk.pgl<[M], f32, symmetric> {pk.name = "X"}) {
  pk.role communicator {
    %zero = arith.constant 0 : index
    %m = pk.block[%zero] : !pk.block<M by 16>
    pk.all_reduce %X[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, symmetric>
  }
}
