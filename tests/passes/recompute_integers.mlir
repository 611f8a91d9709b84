// Loops around other loops compute again what comes from run-time dimensions.
// RUN: pkc-opt %s -p "pk-recompute-integers{always=true}" --split-input-file | filecheck %s
// RUN: pkc-opt %s -p pk-recompute-integers --split-input-file | filecheck %s --check-prefix SHORT

// The compiler knows nothing of the base of shared memory, nor that a dimension is the same in all iterations. A loop
// inside begins with the same dimensions again; the innermost loop computes nothing again. Numbers of iterations and
// CTAs are what may be computed with; what was read is not, nor what comes from constants alone.
// CHECK-LABEL: pk.kernel @tasks
// CHECK: %[[SHARED:.*]] = pk.instruction "shared_base"()
// CHECK-NEXT: %[[HIDDEN:.*]] = pk.instruction "unknown"(%[[SHARED]])
// CHECK: %[[S:.*]] = pk.dim "S"
// CHECK: %[[READ:.*]] = pk.instruction "load_u32"
// CHECK: %[[OF_READ:.*]] = arith.addi %[[READ]], %[[S]]
// CHECK: scf.for %[[GROUP:.*]] = %
// CHECK-NEXT: %[[AGAIN:.*]] = pk.instruction "unknown"(%[[S]])
// CHECK-NEXT: %[[BLOCKS:.*]] = arith.divsi %[[AGAIN]], %
// CHECK: %[[FIRST:.*]] = arith.muli %[[GROUP]], %[[BLOCKS]]
// CHECK: scf.for %{{.*}} = %[[FIRST]] to
// CHECK-NEXT: %[[MORE:.*]] = pk.instruction "unknown"(%[[S]])
// CHECK-NEXT: %[[HERE:.*]] = arith.divsi %[[MORE]], %
// CHECK-NEXT: %[[PLACE:.*]] = arith.muli %[[GROUP]], %[[HERE]]
// CHECK-NEXT: scf.for %{{.*}} = %{{.*}} to %[[HERE]]
// CHECK-NEXT: pk.instruction "mbarrier_wait"(%[[HIDDEN]], %[[PLACE]])
// CHECK-NEXT: pk.instruction "mbarrier_wait"(%[[OF_READ]], %[[S]])
// CHECK-NEXT: scf.for
// CHECK-NEXT: pk.instruction "mbarrier_wait"
pk.kernel @tasks() attributes {threads = 128 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %shared = pk.instruction "shared_base"() : () -> index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %n = arith.constant 128 : index
  %s = pk.dim "S"
  %epochs = pk.launch_value "epochs"
  %read = pk.instruction "load_u32"(%epochs) : (i64) -> index
  %from = arith.addi %read, %s : index
  %blocks = arith.divsi %s, %n : index
  scf.for %group = %zero to %four step %one {
    %first = arith.muli %group, %blocks : index
    scf.for %task = %first to %blocks step %one {
      scf.for %kv = %zero to %blocks step %one {
        pk.instruction "mbarrier_wait"(%shared, %first) : (index, index) -> ()
        pk.instruction "mbarrier_wait"(%from, %s) : (index, index) -> ()
        scf.for %i = %zero to %four step %one {
          pk.instruction "mbarrier_wait"(%i, %blocks) : (index, index) -> ()
        } {unroll}
      }
    }
  }
}

// -----

// A loop without others inside stays as it is.
// CHECK-LABEL: pk.kernel @innermost
// CHECK: arith.divsi
// CHECK-NEXT: scf.for
// CHECK-NEXT: pk.instruction "mbarrier_wait"
pk.kernel @innermost() attributes {threads = 128 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 128 : index
  %s = pk.dim "S"
  %blocks = arith.divsi %s, %n : index
  scf.for %kv = %zero to %blocks step %one {
    pk.instruction "mbarrier_wait"(%kv, %blocks) : (index, index) -> ()
  }
}

// -----

// Unless that is asked for, it is done where a loop with MMAs keeps more integers than there is room for beside tiles: here
// what was read, and the number of blocks, while of 5 registers 1.9 may be for these, of 6 registers 2.3.
// SHORT-LABEL: pk.kernel @tasks
// SHORT-NOT: unknown
// SHORT-LABEL: pk.kernel @short
// SHORT: pk.instruction "unknown"
// SHORT-LABEL: pk.kernel @enough
// SHORT-NOT: unknown
pk.kernel @short() attributes {target = "sm_90a", threads = 128 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 128 : index
  %s = pk.dim "S"
  %epochs = pk.launch_value "epochs"
  %thread = pk.instruction "thread_number"() : () -> index
  %low = arith.cmpi slt, %thread, %n : index
  %read = pk.instruction "load_u32"(%epochs) : (i64) -> index
  %blocks = arith.divsi %s, %n : index
  scf.if %low {
    %acc = pk.registers : !pk.registers<64xf32>
    scf.for %task = %zero to %blocks step %one {
      scf.for %kv = %zero to %blocks step %one {
        pk.instruction "wgmma_n128_bf16_ss_kk"(%acc, %epochs, %epochs, %read) : (!pk.registers<64xf32>, i64, i64, index) -> ()
      }
    }
  } {role = "consumer", first_warp = 0 : i64, spare_registers = 5 : i64}
}
pk.kernel @enough() attributes {target = "sm_90a", threads = 128 : i64, shared_bytes = 1024 : i64, machine = 1 : i64} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 128 : index
  %s = pk.dim "S"
  %epochs = pk.launch_value "epochs"
  %thread = pk.instruction "thread_number"() : () -> index
  %low = arith.cmpi slt, %thread, %n : index
  %read = pk.instruction "load_u32"(%epochs) : (i64) -> index
  %blocks = arith.divsi %s, %n : index
  scf.if %low {
    %acc = pk.registers : !pk.registers<64xf32>
    scf.for %task = %zero to %blocks step %one {
      scf.for %kv = %zero to %blocks step %one {
        pk.instruction "wgmma_n128_bf16_ss_kk"(%acc, %epochs, %epochs, %read) : (!pk.registers<64xf32>, i64, i64, index) -> ()
      }
    }
  } {role = "consumer", first_warp = 0 : i64, spare_registers = 6 : i64}
}
