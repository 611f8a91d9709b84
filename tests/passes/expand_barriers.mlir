// A barrier is a signal to all and a wait for as many as all ranks have sent up to it.
// RUN: pkc-opt %s -p pk-expand-barriers --split-input-file | filecheck %s

// The second one by the same counter waits for twice as many.
// CHECK-LABEL: pk.kernel @twice
// CHECK: pk.signal_all %at[%zero] by
// CHECK-NEXT: pk.wait %at[%zero] for
// CHECK: %[[N:.*]] = arith.constant 1 : index
// CHECK: arith.muli %[[N]],
// CHECK: pk.wait %at[%one] for
// CHECK: %[[TWO:.*]] = arith.constant 2 : index
// CHECK: %[[RANKS:.*]] = pk.dim "ranks"
// CHECK-NEXT: %[[ALL:.*]] = arith.muli %[[TWO]], %[[RANKS]]
// CHECK-NEXT: pk.signal_all %at[%zero] by
// CHECK-NEXT: pk.wait %at[%zero] for %[[ALL]]
// CHECK-NOT: pk.barrier
pk.kernel @twice(%at: !pk.signal<[2]> {pk.name = "at"}) {
  pk.role communicator {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    pk.barrier %at[%zero] : !pk.signal<[2]>
    pk.barrier %at[%one] : !pk.signal<[2]>
    pk.barrier %at[%zero] : !pk.signal<[2]>
  }
}

// -----

// In a loop, the iteration says how many there were.
// CHECK-LABEL: pk.kernel @rounds
// CHECK: scf.for %i = %zero to %n
// CHECK: %[[DONE:.*]] = arith.subi %i, %zero
// CHECK: %[[TIMES:.*]] = arith.addi %[[DONE]],
// CHECK: %[[ALL:.*]] = arith.muli %[[TIMES]],
// CHECK: pk.wait %at[%zero] for %[[ALL]]
pk.kernel @rounds(%at: !pk.signal<[1]> {pk.name = "at"}) {
  pk.role communicator {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = pk.dim "M"
    scf.for %i = %zero to %n step %one {
      pk.barrier %at[%zero] : !pk.signal<[1]>
    }
  }
}
