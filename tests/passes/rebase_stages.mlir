// Innermost loops find their stages again in each iteration.
// RUN: pkc-opt %s -p pk-rebase-stages --split-input-file | filecheck %s

// The base that loops use may be hidden already. Loops around others keep it, and so do loops that are written out and
// those that do not use it.
// CHECK-LABEL: pk.kernel @tasks
// CHECK: %[[SHARED:.*]] = pk.instruction "shared_base"()
// CHECK-NEXT: %[[HIDDEN:.*]] = pk.instruction "unknown"(%[[SHARED]])
// CHECK: scf.for
// CHECK-NEXT: %[[OUTER:.*]] = arith.addi %[[HIDDEN]],
// CHECK-NEXT: scf.for
// CHECK-NEXT: %[[AGAIN:.*]] = pk.instruction "unknown"(%[[HIDDEN]])
// CHECK-NEXT: %[[FULL:.*]] = arith.addi %[[AGAIN]],
// CHECK-NEXT: pk.instruction "mbarrier_wait"(%[[FULL]], %[[OUTER]])
// CHECK-NEXT: scf.for
// CHECK-NEXT: %[[EMPTY:.*]] = arith.addi %[[AGAIN]],
// CHECK: scf.for
// CHECK-NEXT: pk.instruction "mbarrier_wait"(%{{.*}}, %{{.*}})
pk.kernel @tasks() attributes {threads = 128 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %shared = pk.instruction "shared_base"() : () -> index
  %hidden = pk.instruction "unknown"(%shared) : (index) -> index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %offset = arith.constant 128 : index
  scf.for %task = %zero to %four step %one {
    %outer = arith.addi %hidden, %task : index
    scf.for %kv = %zero to %four step %one {
      %full = arith.addi %hidden, %offset : index
      pk.instruction "mbarrier_wait"(%full, %outer) : (index, index) -> ()
      scf.for %i = %zero to %four step %one {
        %empty = arith.addi %hidden, %i : index
        pk.instruction "mbarrier_wait"(%empty, %zero) : (index, index) -> ()
      } {unroll}
    }
    scf.for %j = %zero to %four step %one {
      pk.instruction "mbarrier_wait"(%j, %zero) : (index, index) -> ()
    }
  }
}
