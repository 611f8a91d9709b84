// Every wait gives up after a time, or once another has; who gives up reports what for.
// RUN: pkc-opt %s -p pk-bound-waits --split-input-file | filecheck %s

// One thread that waits for a counter: its report is one of 4 in this CTA, which has places for as many of indices.
// The first to give up raises the alarm, which ends the waits of all ranks.
// CHECK-LABEL: pk.kernel @one
// CHECK-SAME: %reports: !pk.private<[report_ctas, 8, 8], i32> {pk.name = "reports", pk.scratch}
// CHECK-SAME: bounded = {reports = "reports", ctas = "report_ctas"}
// CHECK: scf.for %[[TASK:.*]] = %
// CHECK-NOT: "spin"
// CHECK: %[[SEEN:.*]] = pk.registers : !pk.registers<1xindex>
// CHECK: %[[ALARM:.*]] = pk.launch_value "alarm"
// CHECK-NEXT: %[[WHY:.*]] = pk.instruction "spin_bounded"(%[[SEEN]], %[[COUNTER:.*]], %[[N:.*]], %[[ALARM]]) {awaits = "ready", until = "raised", point = 0 : i64}
// CHECK: %[[GONE:.*]] = arith.cmpi ne, %[[WHY]]
// CHECK-NEXT: scf.if %[[GONE]] {
// CHECK: %[[VALUE:.*]] = pk.get %[[SEEN]]
// CHECK: %[[LOW:.*]] = arith.index_cast %[[COUNTER]] : i64 to index
// CHECK: pk.instruction "report"(%{{.*}}, %{{.*}}, %[[WHY]], %{{.*}}, %[[TASK]], %[[VALUE]], %[[N]], %[[LOW]])
// CHECK: arith.cmpi ne, %[[WHY]]
// CHECK: %[[AGAIN:.*]] = pk.launch_value "alarm"
// CHECK-NEXT: pk.instruction "raise_alarm"(%[[AGAIN]])
// CHECK: pk.instruction "end_thread"
// CHECK: pk.instruction "mbarrier_wait_bounded"(%{{.*}}, %{{.*}}, %{{.*}}) {awaits = "cast", until = "filled", point = 1 : i64}
// CHECK: pk.instruction "report"
// CHECK: pk.instruction "end_thread"
pk.kernel @one(%ready: !pk.signal<[1]> {pk.name = "ready"}) attributes {threads = 128 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %thread = pk.instruction "thread_number"() : () -> index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 100 : index
  %counter = pk.address %ready : !pk.signal<[1]>
  %first = arith.cmpi eq, %thread, %zero : index
  scf.if %first {
    scf.for %task = %zero to %n step %one {
      pk.instruction "spin"(%counter, %n) {awaits = "ready", until = "raised"} : (i64, index) -> ()
    } {tasks}
    pk.instruction "mbarrier_wait"(%zero, %one) {awaits = "cast", until = "filled"} : (index, index) -> ()
  } {role = "storer", first_warp = 0 : i64, one}
}

// -----

// All threads of a warp give up together: for a stage they agree while they wait; for a counter the first one looks,
// and the others learn behind its branch how that ended.
// CHECK-LABEL: pk.kernel @warps
// CHECK: %[[WHY:.*]] = pk.instruction "mbarrier_wait_bounded_warp"
// CHECK: scf.if
// CHECK: %[[LANE:.*]] = arith.andi
// CHECK: arith.cmpi eq, %[[LANE]]
// CHECK: pk.instruction "report"
// CHECK: pk.instruction "end_thread"
// CHECK: %[[GIVEN:.*]] = pk.registers : !pk.registers<1xindex>
// CHECK: scf.if %leader {
// CHECK: pk.instruction "spin_bounded"
// CHECK-NOT: pk.instruction "end_thread"
// CHECK: pk.set %{{.*}}, %[[GIVEN]]
// CHECK: %[[ALSO:.*]] = pk.instruction "any_of_warp"
// CHECK-NEXT: scf.if %[[ALSO]] {
// CHECK-NEXT: pk.instruction "end_thread"
// CHECK: pk.instruction "sync_warp"
pk.kernel @warps(%ready: !pk.signal<[1]> {pk.name = "ready"}) attributes {threads = 128 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %thread = pk.instruction "thread_number"() : () -> index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %low = arith.cmpi slt, %thread, %one : index
  %leader = arith.cmpi eq, %thread, %zero : index
  %counter = pk.address %ready : !pk.signal<[1]>
  scf.if %low {
    pk.instruction "mbarrier_wait"(%zero, %one) {awaits = "A", until = "free"} : (index, index) -> ()
    scf.if %leader {
      pk.instruction "spin"(%counter, %one) {awaits = "ready", until = "raised"} : (i64, index) -> ()
    }
    pk.instruction "sync_warp"() : () -> ()
  } {role = "consumer", first_warp = 0 : i64}
}

// -----

// Threads that have seen the stage filled leave the wait out, each for itself: as one warp, if one of them has not.
// CHECK-LABEL: pk.kernel @ahead
// CHECK: %[[ANY:.*]] = pk.instruction "any_of_warp"(%unknown)
// CHECK-NEXT: scf.if %[[ANY]] {
// CHECK: pk.instruction "mbarrier_wait_bounded_warp"
pk.kernel @ahead() attributes {threads = 128 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %thread = pk.instruction "thread_number"() : () -> index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %low = arith.cmpi slt, %thread, %one : index
  scf.if %low {
    %seen = pk.instruction "mbarrier_test"(%zero, %one) : (index, index) -> index
    %unknown = arith.cmpi eq, %seen, %zero : index
    scf.if %unknown {
      pk.instruction "mbarrier_wait"(%zero, %one) {awaits = "A", until = "filled"} : (index, index) -> ()
    }
    pk.instruction "sync_warp"() : () -> ()
  } {role = "consumer", first_warp = 0 : i64}
}
