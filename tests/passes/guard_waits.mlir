// A wait for a counter gives up after a time, or once another has; who gives up reports what for, and goes on.
// RUN: pkc-opt %s -p pk-guard-waits --split-input-file | filecheck %s

// Of a warp the first thread looks, and the others wait for it as before. Waits for stages stay as they are.
// CHECK-LABEL: pk.kernel @warps
// CHECK-SAME: bounded = {reports = "reports", ctas = "report_ctas"}
// CHECK: pk.instruction "mbarrier_wait"(
// CHECK: scf.if %leader {
// CHECK: %[[REPORTS:.*]] = pk.address %reports
// CHECK: pk.instruction "spin_guarded"(%counter, %one, %{{.*}}, %[[REPORTS]], %{{.*}}, %{{.*}}, %{{.*}}) {awaits = "ready", until = "raised", point = 0 : i64}
// CHECK-NOT: "spin"
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

// Within a task a wait for a counter keeps nothing for a report.
// CHECK-LABEL: pk.kernel @tasks
// CHECK: scf.for %task
// CHECK: pk.instruction "spin_guarded_in_task"(%counter, %n, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %task) {awaits = "ready", until = "raised", point = 0 : i64}
// CHECK: pk.instruction "spin_guarded"(%counter, %one, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {awaits = "ready", until = "raised", point = 1 : i64}
pk.kernel @tasks(%ready: !pk.signal<[1]> {pk.name = "ready"}) attributes {threads = 128 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
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
    pk.instruction "spin"(%counter, %one) {awaits = "ready", until = "raised"} : (i64, index) -> ()
  } {role = "communicator", first_warp = 0 : i64, one}
}

// -----

// A kernel without waits for counters is left as it is.
// CHECK-LABEL: pk.kernel @stages
// CHECK-NOT: bounded
// CHECK: pk.instruction "mbarrier_wait"(
pk.kernel @stages() attributes {threads = 128 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %thread = pk.instruction "thread_number"() : () -> index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %low = arith.cmpi slt, %thread, %one : index
  scf.if %low {
    pk.instruction "mbarrier_wait"(%zero, %one) {awaits = "A", until = "free"} : (index, index) -> ()
  } {role = "consumer", first_warp = 0 : i64}
}

// -----

// A wait for packets is guarded, too, and reports nothing.
// CHECK-LABEL: pk.kernel @packets
// CHECK: %[[FIRST:.*]] = pk.address %slots
// CHECK-NOT: "receive_b16"
// CHECK: %[[WORD:.*]] = pk.instruction "receive_b16_guarded"(%[[FIRST]], %one, %{{.*}}) :
// CHECK: pk.instruction "low_bf16"(%[[WORD]])
// CHECK: pk.instruction "receive_v4_guarded"(%{{.*}}, %[[FIRST]], %one, %low, %{{.*}}) :
pk.kernel @packets(%slots: !pk.private<[8], i32> {pk.name = "Y.packets", pk.scratch}) attributes {threads = 128 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %thread = pk.instruction "thread_number"() : () -> index
  %one = arith.constant 1 : index
  %low = arith.cmpi slt, %thread, %one : index
  scf.if %low {
    %first = pk.address %slots : !pk.private<[8], i32>
    %word = pk.instruction "receive_b16"(%first, %one) : (i64, index) -> ui32
    %value = pk.instruction "low_bf16"(%word) : (ui32) -> f32
    %bits = pk.registers : !pk.registers<4xui32>
    pk.instruction "receive_v4_where"(%bits, %first, %one, %low) : (!pk.registers<4xui32>, i64, index, i1) -> ()
  } {role = "communicator", first_warp = 0 : i64}
}
