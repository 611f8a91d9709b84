// The end of an epilogue beside the MMAs of the next task.
// RUN: pkc-opt %s -p pk-overlap-epilogues --split-input-file --remarks | filecheck %s

// Iterations 0 and 1 of the loop do one half each of what the task before has left, in branches of their own, and what
// comes behind it is done behind them; the loop goes on with 2. A loop of fewer iterations comes behind all of that, and
// what the last task leaves behind all tasks. What the end needs of its task is computed again from what does not change.
// CHECK-LABEL: pk.kernel @task
// CHECK: %phase = pk.registers : !pk.registers<1xindex>
// CHECK: %[[KEPT:.*]] = pk.registers : !pk.registers<16xf32>
// CHECK: scf.for %[[TASK:.*]] = %[[CTA:cta]] to %[[TASKS:tasks]] step
// CHECK-NEXT: %[[ACC:.*]] = pk.registers : !pk.registers<32xf32>
// CHECK-NEXT: %[[HAS:.*]] = arith.cmpi ne, %[[TASK]], %[[CTA]]
// CHECK-NEXT: %[[TWO:.*]] = arith.constant 2
// CHECK-NEXT: %[[ENOUGH:.*]] = arith.cmpi sge, %[[BLOCKS:.*]], %[[TWO]]
// CHECK: %[[FEW:.*]] = arith.xori %[[ENOUGH]]
// CHECK-NEXT: %[[LEFT:.*]] = arith.andi %[[HAS]], %[[FEW]]
// CHECK-NEXT: scf.if %[[LEFT]] {
// CHECK: pk.get %[[KEPT]]
// CHECK: pk.instruction "mbarrier_arrive"
// CHECK: scf.if %[[ENOUGH]] {
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %[[END:.*]] step
// CHECK: pk.instruction "mbarrier_wait"
// CHECK: scf.if %[[HAS]] {
// CHECK: %[[FIRST:.*]] = arith.addi %[[K]], %
// CHECK: %[[ROW:.*]] = arith.addi %shared
// CHECK: scf.for %[[I:.*]] = %
// CHECK-NEXT: %[[PLACE:.*]] = arith.addi %[[I]], %[[FIRST]]
// CHECK-NEXT: %[[E:.*]] = arith.muli %[[PLACE]], %eight
// CHECK: %[[AT:.*]] = arith.subi %[[E]], %
// CHECK-NEXT: %[[X:.*]] = pk.get %[[KEPT]][%[[AT]]]
// CHECK: pk.instruction "store_shared_b32"(%[[ROW]], %
// CHECK: {unroll}
// CHECK: {unroll}
// CHECK-NEXT: scf.if %[[HAS]] {
// CHECK: pk.instruction "mbarrier_arrive"
// CHECK: pk.set %{{.*}}, %phase
// CHECK: %[[BEGIN:.*]] = arith.select %[[ENOUGH]], %[[TWO]], %zero
// CHECK-NEXT: scf.for %{{.*}} = %[[BEGIN]] to %[[BLOCKS]] step
// CHECK: pk.instruction "wgmma_wait_0"
// CHECK: pk.instruction "mbarrier_wait"
// CHECK-NOT: mbarrier_arrive
// CHECK: %[[LAST:.*]] = pk.get %[[ACC]]
// CHECK-NEXT: pk.set %[[LAST]], %[[KEPT]]
// CHECK: {tasks}
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %[[CTA]], %[[TASKS]]
// CHECK-NEXT: scf.if %[[ANY]] {
// CHECK: pk.get %[[KEPT]]
// CHECK: pk.instruction "mbarrier_arrive"
// CHECK: pk.comment "end"
pk.kernel @task() attributes {threads = 384 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %shared = pk.instruction "shared_base"() : () -> index
  %cta = pk.instruction "cta_number"() : () -> index
  %lane = pk.instruction "warp_number"() : () -> index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %four = arith.constant 4 : index
  %eight = arith.constant 8 : index
  %tasks = pk.dim "M"
  %blocks = pk.dim "K"
  %ctas = arith.constant 132 : index
  %stage = pk.registers : !pk.registers<1xindex>
  %phase = pk.registers : !pk.registers<1xindex>
  scf.for %task = %cta to %tasks step %ctas {
    %acc = pk.registers : !pk.registers<32xf32>
    scf.for %k = %zero to %blocks step %one {
      %s = pk.get %stage[%zero] : !pk.registers<1xindex> -> index
      pk.instruction "mbarrier_wait"(%shared, %s) {awaits = "A, B", until = "filled"} : (index, index) -> ()
      pk.set %s, %stage[%zero] : index, !pk.registers<1xindex>
    }
    pk.instruction "wgmma_wait_0"() : () -> ()
    %p = pk.get %phase[%zero] : !pk.registers<1xindex> -> index
    pk.instruction "mbarrier_wait"(%shared, %p) {awaits = "C", until = "free"} : (index, index) -> ()
    %row = arith.addi %shared, %lane : index
    scf.for %i = %two to %four step %one {
      %e = arith.muli %i, %eight : index
      %x = pk.get %acc[%e] : !pk.registers<32xf32> -> f32
      %bits = pk.instruction "bits_f32"(%x) : (f32) -> ui32
      pk.instruction "store_shared_b32"(%row, %bits) : (index, ui32) -> ()
    } {unroll, later = 16 : i64}
    pk.instruction "mbarrier_arrive"(%shared) : (index) -> ()
    %q = pk.get %phase[%zero] : !pk.registers<1xindex> -> index
    pk.set %q, %phase[%zero] : index, !pk.registers<1xindex>
  } {tasks}
  pk.comment "end"
}

// -----

// The number of the task is kept, if the end needs it.
// CHECK-LABEL: pk.kernel @numbered
// CHECK: %[[KEPT:.*]] = pk.registers : !pk.registers<16xf32>
// CHECK: %[[NUMBER:.*]] = pk.registers : !pk.registers<1xindex>
// CHECK: scf.for %[[TASK:.*]] = %cta to %tasks step
// CHECK: %[[BEFORE:.*]] = pk.get %[[NUMBER]]
// CHECK: pk.get %[[KEPT]]
// CHECK: pk.instruction "mbarrier_arrive"(%[[BEFORE]])
// CHECK: pk.set %[[TASK]], %[[NUMBER]]
pk.kernel @numbered() attributes {threads = 384 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %shared = pk.instruction "shared_base"() : () -> index
  %cta = pk.instruction "cta_number"() : () -> index
  %lane = pk.instruction "warp_number"() : () -> index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %four = arith.constant 4 : index
  %eight = arith.constant 8 : index
  %tasks = pk.dim "M"
  %blocks = pk.dim "K"
  %ctas = arith.constant 132 : index
  %stage = pk.registers : !pk.registers<1xindex>
  %phase = pk.registers : !pk.registers<1xindex>
  scf.for %task = %cta to %tasks step %ctas {
    %acc = pk.registers : !pk.registers<32xf32>
    scf.for %k = %zero to %blocks step %one {
      %s = pk.get %stage[%zero] : !pk.registers<1xindex> -> index
      pk.instruction "mbarrier_wait"(%shared, %s) {awaits = "A, B", until = "filled"} : (index, index) -> ()
      pk.set %s, %stage[%zero] : index, !pk.registers<1xindex>
    }
    pk.instruction "wgmma_wait_0"() : () -> ()
    %p = pk.get %phase[%zero] : !pk.registers<1xindex> -> index
    pk.instruction "mbarrier_wait"(%shared, %p) {awaits = "C", until = "free"} : (index, index) -> ()
    %row = arith.addi %shared, %lane : index
    scf.for %i = %two to %four step %one {
      %e = arith.muli %i, %eight : index
      %x = pk.get %acc[%e] : !pk.registers<32xf32> -> f32
      %bits = pk.instruction "bits_f32"(%x) : (f32) -> ui32
      pk.instruction "store_shared_b32"(%row, %bits) : (index, ui32) -> ()
    } {unroll, later = 16 : i64}
    pk.instruction "mbarrier_arrive"(%task) : (index) -> ()
    pk.instruction "mbarrier_arrive"(%shared) : (index) -> ()
    %q = pk.get %phase[%zero] : !pk.registers<1xindex> -> index
    pk.set %q, %phase[%zero] : index, !pk.registers<1xindex>
  } {tasks}
  pk.comment "end"
}

// -----

// Not in tasks.
// CHECK-LABEL: pk.kernel @alone
// CHECK-NOT: later
// CHECK: remark: {{.*}}no MMAs run beside the end of the epilogue: it does not stand in the tasks themselves [pk-overlap-epilogues]
pk.kernel @alone() attributes {threads = 384 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %shared = pk.instruction "shared_base"() : () -> index
  %cta = pk.instruction "cta_number"() : () -> index
  %lane = pk.instruction "warp_number"() : () -> index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %four = arith.constant 4 : index
  %eight = arith.constant 8 : index
  %tasks = pk.dim "M"
  %blocks = pk.dim "K"
  %ctas = arith.constant 132 : index
  %stage = pk.registers : !pk.registers<1xindex>
  %phase = pk.registers : !pk.registers<1xindex>
  scf.for %task = %cta to %tasks step %ctas {
    %acc = pk.registers : !pk.registers<32xf32>
    scf.for %k = %zero to %blocks step %one {
      %s = pk.get %stage[%zero] : !pk.registers<1xindex> -> index
      pk.instruction "mbarrier_wait"(%shared, %s) {awaits = "A, B", until = "filled"} : (index, index) -> ()
      pk.set %s, %stage[%zero] : index, !pk.registers<1xindex>
    }
    pk.instruction "wgmma_wait_0"() : () -> ()
    %p = pk.get %phase[%zero] : !pk.registers<1xindex> -> index
    pk.instruction "mbarrier_wait"(%shared, %p) {awaits = "C", until = "free"} : (index, index) -> ()
    %row = arith.addi %shared, %lane : index
    scf.for %i = %two to %four step %one {
      %e = arith.muli %i, %eight : index
      %x = pk.get %acc[%e] : !pk.registers<32xf32> -> f32
      %bits = pk.instruction "bits_f32"(%x) : (f32) -> ui32
      pk.instruction "store_shared_b32"(%row, %bits) : (index, ui32) -> ()
    } {unroll, later = 16 : i64}
    pk.instruction "mbarrier_arrive"(%shared) : (index) -> ()
    %q = pk.get %phase[%zero] : !pk.registers<1xindex> -> index
    pk.set %q, %phase[%zero] : index, !pk.registers<1xindex>
  }
  pk.comment "end"
}

// -----

// Iterations that do not begin with 0.
// CHECK-LABEL: pk.kernel @from_one
// CHECK-NOT: later
// CHECK: remark: {{.*}}no MMAs run beside the end of the epilogue: no loop of the task counts from 0 [pk-overlap-epilogues]
pk.kernel @from_one() attributes {threads = 384 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %shared = pk.instruction "shared_base"() : () -> index
  %cta = pk.instruction "cta_number"() : () -> index
  %lane = pk.instruction "warp_number"() : () -> index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %four = arith.constant 4 : index
  %eight = arith.constant 8 : index
  %tasks = pk.dim "M"
  %blocks = pk.dim "K"
  %ctas = arith.constant 132 : index
  %stage = pk.registers : !pk.registers<1xindex>
  %phase = pk.registers : !pk.registers<1xindex>
  scf.for %task = %cta to %tasks step %ctas {
    %acc = pk.registers : !pk.registers<32xf32>
    scf.for %k = %one to %blocks step %one {
      %s = pk.get %stage[%zero] : !pk.registers<1xindex> -> index
      pk.instruction "mbarrier_wait"(%shared, %s) {awaits = "A, B", until = "filled"} : (index, index) -> ()
      pk.set %s, %stage[%zero] : index, !pk.registers<1xindex>
    }
    pk.instruction "wgmma_wait_0"() : () -> ()
    %p = pk.get %phase[%zero] : !pk.registers<1xindex> -> index
    pk.instruction "mbarrier_wait"(%shared, %p) {awaits = "C", until = "free"} : (index, index) -> ()
    %row = arith.addi %shared, %lane : index
    scf.for %i = %two to %four step %one {
      %e = arith.muli %i, %eight : index
      %x = pk.get %acc[%e] : !pk.registers<32xf32> -> f32
      %bits = pk.instruction "bits_f32"(%x) : (f32) -> ui32
      pk.instruction "store_shared_b32"(%row, %bits) : (index, ui32) -> ()
    } {unroll, later = 16 : i64}
    pk.instruction "mbarrier_arrive"(%shared) : (index) -> ()
    %q = pk.get %phase[%zero] : !pk.registers<1xindex> -> index
    pk.set %q, %phase[%zero] : index, !pk.registers<1xindex>
  } {tasks}
  pk.comment "end"
}

// -----

// What a task does in front of its loop might need the end of the one before.
// CHECK-LABEL: pk.kernel @more
// CHECK-NOT: later
// CHECK: remark: {{.*}}no MMAs run beside the end of the epilogue: a task does more in front of its loop [pk-overlap-epilogues]
pk.kernel @more() attributes {threads = 384 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %shared = pk.instruction "shared_base"() : () -> index
  %cta = pk.instruction "cta_number"() : () -> index
  %lane = pk.instruction "warp_number"() : () -> index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %four = arith.constant 4 : index
  %eight = arith.constant 8 : index
  %tasks = pk.dim "M"
  %blocks = pk.dim "K"
  %ctas = arith.constant 132 : index
  %stage = pk.registers : !pk.registers<1xindex>
  %phase = pk.registers : !pk.registers<1xindex>
  scf.for %task = %cta to %tasks step %ctas {
    %acc = pk.registers : !pk.registers<32xf32>
    pk.instruction "sync_threads"() : () -> ()
    scf.for %k = %zero to %blocks step %one {
      %s = pk.get %stage[%zero] : !pk.registers<1xindex> -> index
      pk.instruction "mbarrier_wait"(%shared, %s) {awaits = "A, B", until = "filled"} : (index, index) -> ()
      pk.set %s, %stage[%zero] : index, !pk.registers<1xindex>
    }
    pk.instruction "wgmma_wait_0"() : () -> ()
    %p = pk.get %phase[%zero] : !pk.registers<1xindex> -> index
    pk.instruction "mbarrier_wait"(%shared, %p) {awaits = "C", until = "free"} : (index, index) -> ()
    %row = arith.addi %shared, %lane : index
    scf.for %i = %two to %four step %one {
      %e = arith.muli %i, %eight : index
      %x = pk.get %acc[%e] : !pk.registers<32xf32> -> f32
      %bits = pk.instruction "bits_f32"(%x) : (f32) -> ui32
      pk.instruction "store_shared_b32"(%row, %bits) : (index, ui32) -> ()
    } {unroll, later = 16 : i64}
    pk.instruction "mbarrier_arrive"(%shared) : (index) -> ()
    %q = pk.get %phase[%zero] : !pk.registers<1xindex> -> index
    pk.set %q, %phase[%zero] : index, !pk.registers<1xindex>
  } {tasks}
  pk.comment "end"
}

// -----

// What waits keeps the loop waiting.
// CHECK-LABEL: pk.kernel @waits
// CHECK-NOT: later
// CHECK: remark: {{.*}}no MMAs run beside the end of the epilogue: it waits for others [pk-overlap-epilogues]
pk.kernel @waits() attributes {threads = 384 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %shared = pk.instruction "shared_base"() : () -> index
  %cta = pk.instruction "cta_number"() : () -> index
  %lane = pk.instruction "warp_number"() : () -> index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %four = arith.constant 4 : index
  %eight = arith.constant 8 : index
  %tasks = pk.dim "M"
  %blocks = pk.dim "K"
  %ctas = arith.constant 132 : index
  %stage = pk.registers : !pk.registers<1xindex>
  %phase = pk.registers : !pk.registers<1xindex>
  scf.for %task = %cta to %tasks step %ctas {
    %acc = pk.registers : !pk.registers<32xf32>
    scf.for %k = %zero to %blocks step %one {
      %s = pk.get %stage[%zero] : !pk.registers<1xindex> -> index
      pk.instruction "mbarrier_wait"(%shared, %s) {awaits = "A, B", until = "filled"} : (index, index) -> ()
      pk.set %s, %stage[%zero] : index, !pk.registers<1xindex>
    }
    pk.instruction "wgmma_wait_0"() : () -> ()
    %p = pk.get %phase[%zero] : !pk.registers<1xindex> -> index
    pk.instruction "mbarrier_wait"(%shared, %p) {awaits = "C", until = "free"} : (index, index) -> ()
    %row = arith.addi %shared, %lane : index
    scf.for %i = %two to %four step %one {
      %e = arith.muli %i, %eight : index
      %x = pk.get %acc[%e] : !pk.registers<32xf32> -> f32
      %bits = pk.instruction "bits_f32"(%x) : (f32) -> ui32
      pk.instruction "store_shared_b32"(%row, %bits) : (index, ui32) -> ()
    } {unroll, later = 16 : i64}
    pk.instruction "mbarrier_wait"(%shared, %one) {awaits = "D", until = "free"} : (index, index) -> ()
    pk.instruction "mbarrier_arrive"(%shared) : (index) -> ()
    %q = pk.get %phase[%zero] : !pk.registers<1xindex> -> index
    pk.set %q, %phase[%zero] : index, !pk.registers<1xindex>
  } {tasks}
  pk.comment "end"
}

// -----

// What a task has read may be something else later.
// CHECK-LABEL: pk.kernel @read
// CHECK-NOT: later
// CHECK: remark: {{.*}}no MMAs run beside the end of the epilogue: it needs what the task has read or counted [pk-overlap-epilogues]
pk.kernel @read() attributes {threads = 384 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %shared = pk.instruction "shared_base"() : () -> index
  %cta = pk.instruction "cta_number"() : () -> index
  %lane = pk.instruction "warp_number"() : () -> index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %four = arith.constant 4 : index
  %eight = arith.constant 8 : index
  %tasks = pk.dim "M"
  %blocks = pk.dim "K"
  %ctas = arith.constant 132 : index
  %stage = pk.registers : !pk.registers<1xindex>
  %phase = pk.registers : !pk.registers<1xindex>
  scf.for %task = %cta to %tasks step %ctas {
    %acc = pk.registers : !pk.registers<32xf32>
    scf.for %k = %zero to %blocks step %one {
      %s = pk.get %stage[%zero] : !pk.registers<1xindex> -> index
      pk.instruction "mbarrier_wait"(%shared, %s) {awaits = "A, B", until = "filled"} : (index, index) -> ()
      pk.set %s, %stage[%zero] : index, !pk.registers<1xindex>
    }
    pk.instruction "wgmma_wait_0"() : () -> ()
    %p = pk.get %phase[%zero] : !pk.registers<1xindex> -> index
    pk.instruction "mbarrier_wait"(%shared, %p) {awaits = "C", until = "free"} : (index, index) -> ()
    %row = arith.addi %shared, %lane : index
    %read = pk.instruction "load_shared_b32"(%shared) : (index) -> ui32
    scf.for %i = %two to %four step %one {
      %e = arith.muli %i, %eight : index
      %x = pk.get %acc[%e] : !pk.registers<32xf32> -> f32
      %bits = pk.instruction "bits_f32"(%x) : (f32) -> ui32
      pk.instruction "store_shared_b32"(%row, %bits) : (index, ui32) -> ()
    } {unroll, later = 16 : i64}
    pk.instruction "store_shared_b32"(%shared, %read) : (index, ui32) -> ()
    pk.instruction "mbarrier_arrive"(%shared) : (index) -> ()
    %q = pk.get %phase[%zero] : !pk.registers<1xindex> -> index
    pk.set %q, %phase[%zero] : index, !pk.registers<1xindex>
  } {tasks}
  pk.comment "end"
}

// -----

// The loop counts what the end counts.
// CHECK-LABEL: pk.kernel @changes
// CHECK-NOT: later
// CHECK: remark: {{.*}}no MMAs run beside the end of the epilogue: the loop changes what it needs [pk-overlap-epilogues]
pk.kernel @changes() attributes {threads = 384 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %shared = pk.instruction "shared_base"() : () -> index
  %cta = pk.instruction "cta_number"() : () -> index
  %lane = pk.instruction "warp_number"() : () -> index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %four = arith.constant 4 : index
  %eight = arith.constant 8 : index
  %tasks = pk.dim "M"
  %blocks = pk.dim "K"
  %ctas = arith.constant 132 : index
  %stage = pk.registers : !pk.registers<1xindex>
  %phase = pk.registers : !pk.registers<1xindex>
  scf.for %task = %cta to %tasks step %ctas {
    %acc = pk.registers : !pk.registers<32xf32>
    scf.for %k = %zero to %blocks step %one {
      %s = pk.get %stage[%zero] : !pk.registers<1xindex> -> index
      pk.instruction "mbarrier_wait"(%shared, %s) {awaits = "A, B", until = "filled"} : (index, index) -> ()
      pk.set %s, %stage[%zero] : index, !pk.registers<1xindex>
      pk.set %s, %phase[%zero] : index, !pk.registers<1xindex>
    }
    pk.instruction "wgmma_wait_0"() : () -> ()
    %p = pk.get %phase[%zero] : !pk.registers<1xindex> -> index
    pk.instruction "mbarrier_wait"(%shared, %p) {awaits = "C", until = "free"} : (index, index) -> ()
    %row = arith.addi %shared, %lane : index
    scf.for %i = %two to %four step %one {
      %e = arith.muli %i, %eight : index
      %x = pk.get %acc[%e] : !pk.registers<32xf32> -> f32
      %bits = pk.instruction "bits_f32"(%x) : (f32) -> ui32
      pk.instruction "store_shared_b32"(%row, %bits) : (index, ui32) -> ()
    } {unroll, later = 16 : i64}
    pk.instruction "mbarrier_arrive"(%shared) : (index) -> ()
    %q = pk.get %phase[%zero] : !pk.registers<1xindex> -> index
    pk.set %q, %phase[%zero] : index, !pk.registers<1xindex>
  } {tasks}
  pk.comment "end"
}

// -----

// What else is in registers may be overwritten.
// CHECK-LABEL: pk.kernel @two
// CHECK-NOT: later
// CHECK: remark: {{.*}}no MMAs run beside the end of the epilogue: it has more than results of matmuls in registers [pk-overlap-epilogues]
pk.kernel @two() attributes {threads = 384 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %shared = pk.instruction "shared_base"() : () -> index
  %cta = pk.instruction "cta_number"() : () -> index
  %lane = pk.instruction "warp_number"() : () -> index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %four = arith.constant 4 : index
  %eight = arith.constant 8 : index
  %tasks = pk.dim "M"
  %blocks = pk.dim "K"
  %ctas = arith.constant 132 : index
  %stage = pk.registers : !pk.registers<1xindex>
  %phase = pk.registers : !pk.registers<1xindex>
  scf.for %task = %cta to %tasks step %ctas {
    %acc = pk.registers : !pk.registers<32xf32>
    %other = pk.registers : !pk.registers<32xf32>
    scf.for %k = %zero to %blocks step %one {
      %s = pk.get %stage[%zero] : !pk.registers<1xindex> -> index
      pk.instruction "mbarrier_wait"(%shared, %s) {awaits = "A, B", until = "filled"} : (index, index) -> ()
      pk.set %s, %stage[%zero] : index, !pk.registers<1xindex>
    }
    pk.instruction "wgmma_wait_0"() : () -> ()
    %p = pk.get %phase[%zero] : !pk.registers<1xindex> -> index
    pk.instruction "mbarrier_wait"(%shared, %p) {awaits = "C", until = "free"} : (index, index) -> ()
    %row = arith.addi %shared, %lane : index
    scf.for %i = %two to %four step %one {
      %e = arith.muli %i, %eight : index
      %x = pk.get %acc[%e] : !pk.registers<32xf32> -> f32
      %bits = pk.instruction "bits_f32"(%x) : (f32) -> ui32
      pk.instruction "store_shared_b32"(%row, %bits) : (index, ui32) -> ()
    } {unroll, later = 16 : i64}
    %y = pk.get %other[%one] : !pk.registers<32xf32> -> f32
    %more = pk.instruction "bits_f32"(%y) : (f32) -> ui32
    pk.instruction "store_shared_b32"(%shared, %more) : (index, ui32) -> ()
    pk.instruction "mbarrier_arrive"(%shared) : (index) -> ()
    %q = pk.get %phase[%zero] : !pk.registers<1xindex> -> index
    pk.set %q, %phase[%zero] : index, !pk.registers<1xindex>
  } {tasks}
  pk.comment "end"
}
