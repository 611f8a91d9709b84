// One thread of each role writes records of 16 bytes into its row.
// RUN: pkc-opt %s -p pk-trace --split-input-file | filecheck %s

// A role of one thread: it writes itself. A wait outside of loops has a separate record, with the cycles it took; the
// stages waited for in a loop share one, behind the loop. Counters have one each wherever they are. The number of the
// records that a row would have had comes last, into its first word.
// CHECK-LABEL: pk.kernel @one
// CHECK-SAME: %trace: !pk.private<[trace_ctas, 1, trace_records, 4], i32> {pk.name = "trace", pk.scratch}
// CHECK-SAME: trace = {array = "trace", ctas = "trace_ctas", records = "trace_records", roles = ["storer"]}
// CHECK: %[[BEGAN:.*]] = pk.instruction "timer"()
// CHECK: scf.if
// CHECK-NEXT: %[[LENGTH:.*]] = pk.dim "trace_records"
// CHECK: %[[ROW:.*]] = arith.addi
// CHECK: %[[N:.*]] = pk.registers : !pk.registers<1xindex>
// CHECK: %[[SM:.*]] = pk.instruction "sm_number"()
// CHECK: pk.instruction "record"(%[[N]], %[[ROW]], %[[LENGTH]], %[[BEGAN]], %{{.*}}, %{{.*}}, %[[SM]]) {kind = "cta", what = ""}
// CHECK: %[[NOW:.*]] = pk.instruction "timer"()
// CHECK-NEXT: %[[CYCLE:.*]] = pk.instruction "cycle"()
// CHECK: pk.instruction "record"(%[[N]], %[[ROW]], %[[LENGTH]], %[[NOW]], %{{.*}}, %{{.*}}, %[[CYCLE]]) {kind = "begin", what = ""}
// CHECK: scf.for %[[TASK:.*]] = %
// CHECK: pk.instruction "record"(%[[N]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[TASK]], %{{.*}}) {kind = "task", what = "copies"}
// CHECK: %[[START:.*]] = pk.instruction "timer"()
// CHECK-NEXT: %[[FIRST:.*]] = pk.instruction "cycle"()
// CHECK-NEXT: pk.instruction "mbarrier_wait"
// CHECK-NEXT: %[[LAST:.*]] = pk.instruction "cycle"()
// CHECK-NEXT: %[[CYCLES:.*]] = arith.subi %[[LAST]], %[[FIRST]]
// CHECK: pk.instruction "record"(%[[N]], %{{.*}}, %{{.*}}, %[[START]], %{{.*}}, %[[TASK]], %[[CYCLES]]) {kind = "wait", what = "room in `cast`"}
// CHECK: %[[WAITED:.*]] = pk.registers : !pk.registers<1xindex>
// CHECK: scf.for
// CHECK-NOT: pk.instruction "record"
// CHECK: %[[FROM:.*]] = pk.instruction "cycle"()
// CHECK-NEXT: pk.instruction "mbarrier_wait"
// CHECK-NEXT: %[[TO:.*]] = pk.instruction "cycle"()
// CHECK-NEXT: %[[MORE:.*]] = arith.subi %[[TO]], %[[FROM]]
// CHECK: %[[SUM:.*]] = arith.addi %{{.*}}, %[[MORE]]
// CHECK: pk.set %[[SUM]], %[[WAITED]]
// CHECK: pk.instruction "spin"
// CHECK: {kind = "wait", what = "`ready`"}
// CHECK: }
// CHECK-NEXT: %[[END:.*]] = pk.instruction "timer"()
// CHECK: %[[ALL:.*]] = pk.get %[[WAITED]]
// CHECK: pk.instruction "record"(%[[N]], %{{.*}}, %{{.*}}, %[[END]], %{{.*}}, %[[TASK]], %[[ALL]]) {kind = "waits", what = "`A, B`"}
// CHECK: pk.instruction "bulk_wait_full"
// CHECK: {kind = "drain", what = "complete"}
// CHECK: } {tasks}
// CHECK: {kind = "over", what = "copies"}
// CHECK: {kind = "end", what = ""}
// CHECK: %[[COUNT:.*]] = pk.get %[[N]]
// CHECK: pk.instruction "store_u32"(%[[ROW]], %[[COUNT]])
pk.kernel @one(%ready: !pk.signal<[1]> {pk.name = "ready"}) attributes {threads = 128 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %thread = pk.instruction "thread_number"() : () -> index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 100 : index
  %counter = pk.address %ready : !pk.signal<[1]>
  %first = arith.cmpi eq, %thread, %zero : index
  scf.if %first {
    scf.for %task = %zero to %n step %one {
      pk.instruction "mbarrier_wait"(%zero, %one) {awaits = "cast", until = "free"} : (index, index) -> ()
      scf.for %k = %zero to %n step %one {
        pk.instruction "mbarrier_wait"(%zero, %one) {awaits = "A, B", until = "filled"} : (index, index) -> ()
        pk.instruction "spin"(%counter, %n) {awaits = "ready", until = "raised"} : (i64, index) -> ()
      }
      pk.instruction "bulk_wait_full"() : () -> ()
    } {tasks}
  } {role = "storer", first_warp = 0 : i64, one}
}

// -----

// A role of several warps: the first thread of the first one writes.
// CHECK-LABEL: pk.kernel @warps
// CHECK-SAME: roles = ["consumer, MMAs", "consumer, sums"]
// CHECK: %[[ELECTED:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : index
// CHECK: scf.if %[[ELECTED]] {
// CHECK: {kind = "cta", what = ""}
// CHECK: scf.if %[[ELECTED]] {
// CHECK: {kind = "begin", what = ""}
// CHECK: pk.instruction "wgmma_fence"
// CHECK: arith.constant 128 : index
pk.kernel @warps() attributes {threads = 256 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %warp = pk.instruction "thread_number"() : () -> index
  %four = arith.constant 128 : index
  %low = arith.cmpi slt, %warp, %four : index
  %high = arith.cmpi sge, %warp, %four : index
  scf.if %low {
    %acc = pk.registers : !pk.registers<4xf32>
    %desc = arith.constant 0 : i64
    %use = arith.constant 1 : index
    pk.instruction "wgmma_fence"() : () -> ()
    pk.instruction "wgmma_n8_bf16_ss_kn"(%acc, %desc, %desc, %use) : (!pk.registers<4xf32>, i64, i64, index) -> ()
  } {role = "consumer", first_warp = 0 : i64}
  scf.if %high {
    %x = arith.constant 1.0 : f32
    %y = arith.addf %x, %x : f32
  } {role = "consumer", first_warp = 4 : i64}
}
