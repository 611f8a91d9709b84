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

// -----

// In a loop each counter counts its own, if constants say which.
// CHECK-LABEL: pk.kernel @two_in_a_loop
// CHECK: scf.for %i = %zero to %n
// CHECK: pk.signal_all %at[%zero] by
// CHECK-NEXT: pk.wait %at[%zero] for
// CHECK: pk.signal_all %at[%one] by
// CHECK-NEXT: pk.wait %at[%one] for
// CHECK-NOT: pk.barrier
pk.kernel @two_in_a_loop(%at: !pk.signal<[2]> {pk.name = "at"}) {
  pk.role communicator {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = pk.dim "M"
    scf.for %i = %zero to %n step %one {
      pk.barrier %at[%zero] : !pk.signal<[2]>
      pk.barrier %at[%one] : !pk.signal<[2]>
    }
  }
}

// -----

// Where a block begins names its task, and so does a part of that which is no longer than the block.
// CHECK-LABEL: pk.kernel @by_position
// CHECK: pk.signal_all %at[%number] by
// CHECK-NEXT: pk.wait %at[%number] for
pk.kernel @by_position(%at: !pk.signal<[M]> {pk.name = "at"}) {
  pk.role communicator {
    %count = pk.block_count <M by 32>
    %by = arith.constant 32 : index
    pk.tasks (%t) in (%count) {
      %m = pk.block[%t] : !pk.block<M by 32>
      %first = pk.block_position %m : !pk.block<M by 32>
      %number = arith.floordivsi %first, %by : index
      pk.barrier %at[%number] : !pk.signal<[M]>
    }
  }
}
