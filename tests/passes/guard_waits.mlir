// A wait for a counter gives up after a time, or once another has; who gives up reports what for, and goes on.
// RUN: pkc-opt %s -p pk-guard-waits | filecheck %s

// Of a warp the first thread looks, and the others wait for it as before. Waits for stages stay as they are.
// CHECK-LABEL: pk.kernel @warps
// CHECK-SAME: bounded = {reports = "reports", ctas = "report_ctas", stopped = "stopped"}
// CHECK: pk.instruction "mbarrier_wait"(
// CHECK: scf.if %leader {
// CHECK: %[[SEEN:.*]] = pk.registers : !pk.registers<1xindex>
// CHECK: %[[LIMIT:.*]] = pk.launch_value "wait_limit"
// CHECK-NEXT: %[[WHY:.*]] = pk.instruction "spin_guarded"(%[[SEEN]], %counter, %one, %{{.*}}, %[[LIMIT]]) {awaits = "ready", until = "raised", point = 0 : i64}
// CHECK: %[[GONE:.*]] = arith.cmpi ne, %[[WHY]]
// CHECK-NEXT: scf.if %[[GONE]] {
// CHECK: pk.instruction "record"
// CHECK: pk.instruction "record"
// CHECK: arith.cmpi ne, %[[WHY]]
// CHECK: pk.instruction "signal_relaxed_sys"
// CHECK-NOT: end_thread
// CHECK-NOT: any_of_warp
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
