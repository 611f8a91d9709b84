// From roles and tiles to what each thread does.
// RUN: pkc-opt %s -p pk-plan-memory,pk-plan-barriers,pk-lower-tiles,pk-cse,pk-dce --split-input-file --remarks | filecheck %s

// One thread of each role: TMA into a stage, TMA out of it. Two stages of 8192 bytes, then two barriers that they are
// full, which the bytes complete, and two that they are empty. A shard of the sharded dimension is a coordinate of the
// tensor map; shards beyond the whole ones are in the second map.
// CHECK-LABEL: pk.kernel @copy
// CHECK-SAME: shared_bytes = 17440 : i64, threads = 128 : i64, machine = 1 : i64
// CHECK-DAG: %[[THREAD:.*]] = pk.instruction "thread_number"()
// CHECK-DAG: %[[WARP:.*]] = pk.instruction "warp_number"()
// CHECK-DAG: %[[SHARED:.*]] = pk.instruction "shared_base"()
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[THREAD]]
// CHECK: scf.if %[[FIRST]] {
// CHECK: pk.instruction "mbarrier_init"
// CHECK: pk.instruction "mbarrier_init"
// CHECK: pk.instruction "mbarrier_init"
// CHECK: pk.instruction "mbarrier_init"
// CHECK-NEXT: pk.instruction "mbarrier_init_fence"
// CHECK: pk.instruction "sync_threads"
// CHECK: pk.comment "loader: warp from 0"
// CHECK: %[[PHASE:.*]] = pk.registers : !pk.registers<1xindex>
// CHECK: %[[STAGE:.*]] = pk.registers : !pk.registers<1xindex>
// CHECK: %[[M:.*]] = pk.dim "M"
// CHECK: %[[RANKS:.*]] = pk.dim "ranks"
// CHECK: %[[ROUNDED:.*]] = arith.divsi %{{.*}}, %[[RANKS]]
// CHECK-NEXT: %[[LENGTH:.*]] = arith.maxsi %[[ROUNDED]], %[[ONE:.*]] : index
// CHECK-NEXT: %[[WHOLE:.*]] = arith.divsi %[[M]], %[[LENGTH]]
// CHECK: scf.for %[[TASK:.*]] = %cta to %n step %computing {
// CHECK: %[[EACH:.*]] = arith.remsi %[[TASK]], %[[BLOCKS:.*]] : index
// CHECK-NEXT: %[[ROW:.*]] = arith.muli %[[EACH]]
// CHECK-NEXT: %[[SHARD:.*]] = arith.divsi %[[TASK]], %[[BLOCKS]]
// CHECK: %[[FREE:.*]] = arith.xori %{{.*}}, %[[ONE]]
// CHECK-NEXT: pk.instruction "mbarrier_wait"(%{{.*}}, %[[FREE]])
// CHECK: %[[BYTES:.*]] = arith.constant 8192 : index
// CHECK-NEXT: pk.instruction "mbarrier_expect"(%[[FULL:.*]], %[[BYTES]])
// CHECK: %[[BEYOND:.*]] = arith.cmpi sge, %[[SHARD]], %[[WHOLE]]
// CHECK-NEXT: %[[LAST:.*]] = arith.select %[[BEYOND]]
// CHECK: %[[INSIDE:.*]] = arith.select %{{.*}}, %{{.*}}, %[[SHARD]]
// CHECK-NEXT: %[[MAP:.*]] = pk.tensor_map %X last %[[LAST]] box [64, 64, 1] swizzle 128 split 0
// CHECK-NEXT: pk.instruction "tma_load_3d"(%{{.*}}, %[[MAP]], %{{.*}}, %{{.*}}, %[[ROW]], %[[INSIDE]])
// CHECK: pk.set %{{.*}}, %[[PHASE]]
// CHECK: pk.set %{{.*}}, %[[STAGE]]
// CHECK: pk.comment "storer: warp from 1"
// CHECK: pk.instruction "mbarrier_wait"
// CHECK: pk.instruction "tma_store_3d"
// CHECK-NEXT: pk.instruction "bulk_commit"
// CHECK-NEXT: pk.instruction "bulk_wait_read"
// CHECK: pk.instruction "mbarrier_arrive"
// CHECK: pk.instruction "bulk_wait_full"
pk.kernel @copy(%X: !pk.pgl<[M, 64], bf16, shard 0> {pk.name = "X"}, %Y: !pk.private<[M, 64], bf16> {pk.name = "Y"}) attributes {schedule = {}, derived, comm_sms = 0 : i64} {
  %rows = pk.block_count <M by 64> sharded
  %zero = arith.constant 0 : index
  %0 = pk.channel "X" stages 2 : !pk.channel<!pk.tile<64x64xbf16>>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 0 : i64, registers = 40 : i64} {
    %z = arith.constant 0 : index
    %n = pk.block_count <M by 64> sharded
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] sharded : !pk.block<M by 64>
      %d = pk.block[%z] : !pk.block<64 by 64>
      pk.acquire %0 : !pk.channel<!pk.tile<64x64xbf16>>
      %x = pk.load %X[%m, %d : !pk.block<M by 64>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.pgl<[M, 64], bf16, shard 0> -> !pk.tile<64x64xbf16>
      pk.commit %0, %x : !pk.channel<!pk.tile<64x64xbf16>>, !pk.tile<64x64xbf16>
    }
  }
  pk.role storer warps 1 attributes {group = "compute", first_warp = 1 : i64, registers = 40 : i64} {
    %z = arith.constant 0 : index
    %n = pk.block_count <M by 64> sharded
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] sharded : !pk.block<M by 64>
      %d = pk.block[%z] : !pk.block<64 by 64>
      %x = pk.consume %0 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      pk.store %x, %Y[%m, %d : !pk.block<M by 64>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.tile<64x64xbf16>, !pk.private<[M, 64], bf16>
      pk.drain read
      pk.release %0 : !pk.channel<!pk.tile<64x64xbf16>>
    }
    pk.drain full
  }
}

// -----

// Two warpgroups compute 128 rows: each the MMAs of 64, 16 of the contracted dimension at a time, with one MMA in
// flight: the stage of the iteration before is released. The result goes to its stage by stmatrix.
// CHECK-LABEL: pk.kernel @matmul
// CHECK: threads = 384 : i64
// CHECK: pk.instruction "setmaxnreg_inc_232"
// CHECK: pk.comment "consumer: 8 warps from 0"
// CHECK: %[[ACC:.*]] = pk.registers : !pk.registers<32xf32>
// CHECK: pk.instruction "mbarrier_wait"
// CHECK: pk.instruction "wgmma_fence"
// CHECK: pk.instruction "wgmma_n64_bf16_ss_kn"
// CHECK: pk.instruction "wgmma_n64_bf16_ss_kn"
// CHECK: pk.instruction "wgmma_n64_bf16_ss_kn"
// CHECK: pk.instruction "wgmma_n64_bf16_ss_kn"
// CHECK-NOT: "wgmma_n64_bf16_ss_kn"
// CHECK: pk.instruction "wgmma_commit"
// CHECK-NEXT: pk.instruction "wgmma_wait_1"
// CHECK-NEXT: arith.cmpi ne
// CHECK-NEXT: scf.if %{{.*}} {
// CHECK: pk.instruction "mbarrier_arrive"
// CHECK: pk.instruction "wgmma_wait_0"
// CHECK-NEXT: pk.instruction "wgmma_done_32"
// CHECK-NEXT: arith.cmpi slt
// CHECK-NEXT: scf.if %{{.*}} {
// CHECK: pk.instruction "mbarrier_arrive"
// CHECK: pk.instruction "mbarrier_wait"
// CHECK: pk.instruction "pack_bf16"
// CHECK: pk.instruction "stmatrix_x4"
// CHECK: pk.instruction "fence_async_shared"
// CHECK-NOT: pk.instruction "stmatrix_x4"
// CHECK: pk.instruction "mbarrier_arrive"
// CHECK: pk.instruction "setmaxnreg_dec_40"
// CHECK: pk.comment "loader: warp from 8"
// CHECK: pk.instruction "tma_load_2d"
// CHECK: pk.instruction "tma_load_2d"
// CHECK-NOT: pk.instruction "tma_load_2d"
pk.kernel @matmul(%A: !pk.private<[128, K], bf16> {pk.name = "A"}, %B: !pk.private<[K, 64], bf16> {pk.name = "B"}, %C: !pk.private<[128, 64], bf16> {pk.name = "C"}) attributes {schedule = {}, derived, comm_sms = 0 : i64} {
  %0 = pk.channel "A, B" stages 3 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>>
  %1 = pk.channel "C" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 8 : i64, registers = 40 : i64} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = pk.block_count <K by 64>
    pk.tasks (%i) in (%one) attributes {per_cta} {
      %m = pk.block[%zero] : !pk.block<128 by 128>
      %d = pk.block[%zero] : !pk.block<64 by 64>
      scf.for %s = %zero to %n step %one {
        %k = pk.block[%s] : !pk.block<K by 64>
        pk.acquire %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>>
        %a = pk.load %A[%m, %k : !pk.block<128 by 128>, !pk.block<K by 64>] {transfer = {by = "tma", why = ""}} : !pk.private<[128, K], bf16> -> !pk.tile<128x64xbf16>
        %b = pk.load %B[%k, %d : !pk.block<K by 64>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.private<[K, 64], bf16> -> !pk.tile<64x64xbf16>
        pk.commit %0, %a, %b : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>>, !pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>
      }
    }
  }
  pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = pk.block_count <K by 64>
    pk.tasks (%i) in (%one) attributes {per_cta} {
      %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x64xf32>
      %sum = scf.for %s = %zero to %n step %one iter_args(%t = %acc) -> (!pk.tile<128x64xf32>) {
        %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>
        %u = pk.mma %a, %b, %t {in_flight = 1 : i64} : !pk.tile<128x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<128x64xf32>
        pk.release %0 deferred 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>>
        scf.yield %u : !pk.tile<128x64xf32>
      }
      pk.release_deferred %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>>
      pk.acquire %1 : !pk.channel<!pk.tile<128x64xbf16>>
      %c = pk.cast %sum : !pk.tile<128x64xf32> -> !pk.tile<128x64xbf16>
      pk.fence async_shared
      pk.commit %1, %c : !pk.channel<!pk.tile<128x64xbf16>>, !pk.tile<128x64xbf16>
    }
  }
  pk.role storer warps 1 attributes {group = "compute", first_warp = 9 : i64, registers = 40 : i64} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    pk.tasks (%i) in (%one) attributes {per_cta} {
      %m = pk.block[%zero] : !pk.block<128 by 128>
      %d = pk.block[%zero] : !pk.block<64 by 64>
      %c = pk.consume %1 : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
      pk.store %c, %C[%m, %d : !pk.block<128 by 128>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.tile<128x64xbf16>, !pk.private<[128, 64], bf16>
      pk.drain read
      pk.release %1 : !pk.channel<!pk.tile<128x64xbf16>>
    }
    pk.drain full
  }
}

// -----

// Operands of separate channels: one wait for the MMA of the iteration before, then a stage of each is released. The
// number of the iteration tells whether there is one: no count is kept.
// CHECK-LABEL: pk.kernel @two_channels
// CHECK: pk.comment "consumer: 8 warps from 0"
// CHECK-NOT: _kept
// CHECK: pk.instruction "wgmma_commit"
// CHECK-NEXT: pk.instruction "wgmma_wait_1"
// CHECK-NEXT: %[[LATER:.*]] = arith.cmpi ne
// CHECK-NEXT: scf.if %[[LATER]] {
// CHECK: pk.instruction "mbarrier_arrive"
// CHECK-NOT: wgmma_wait
// CHECK: scf.if %[[LATER]] {
// CHECK: pk.instruction "mbarrier_arrive"
// CHECK: pk.instruction "wgmma_wait_0"
// CHECK-NEXT: pk.instruction "wgmma_done_32"
// CHECK-NEXT: %[[SOME:.*]] = arith.cmpi slt
// CHECK-NEXT: scf.if %[[SOME]] {
// CHECK: pk.instruction "mbarrier_arrive"
// CHECK: scf.if %[[SOME]] {
// CHECK: pk.instruction "mbarrier_arrive"
// CHECK: pk.comment "loader: warp from 8"
pk.kernel @two_channels(%A: !pk.private<[128, K], bf16> {pk.name = "A"}, %B: !pk.private<[K, 64], bf16> {pk.name = "B"}, %C: !pk.private<[128, 64], bf16> {pk.name = "C"}) attributes {schedule = {}, derived, comm_sms = 0 : i64} {
  %0 = pk.channel "A" stages 3 : !pk.channel<!pk.tile<128x64xbf16>>
  %2 = pk.channel "B" stages 2 : !pk.channel<!pk.tile<64x64xbf16>>
  %1 = pk.channel "C" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 8 : i64, registers = 40 : i64} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = pk.block_count <K by 64>
    pk.tasks (%i) in (%one) attributes {per_cta} {
      %m = pk.block[%zero] : !pk.block<128 by 128>
      %d = pk.block[%zero] : !pk.block<64 by 64>
      scf.for %s = %zero to %n step %one {
        %k = pk.block[%s] : !pk.block<K by 64>
        pk.acquire %0 : !pk.channel<!pk.tile<128x64xbf16>>
        %a = pk.load %A[%m, %k : !pk.block<128 by 128>, !pk.block<K by 64>] {transfer = {by = "tma", why = ""}} : !pk.private<[128, K], bf16> -> !pk.tile<128x64xbf16>
        pk.commit %0, %a : !pk.channel<!pk.tile<128x64xbf16>>, !pk.tile<128x64xbf16>
        pk.acquire %2 : !pk.channel<!pk.tile<64x64xbf16>>
        %b = pk.load %B[%k, %d : !pk.block<K by 64>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.private<[K, 64], bf16> -> !pk.tile<64x64xbf16>
        pk.commit %2, %b : !pk.channel<!pk.tile<64x64xbf16>>, !pk.tile<64x64xbf16>
      }
    }
  }
  pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = pk.block_count <K by 64>
    pk.tasks (%i) in (%one) attributes {per_cta} {
      %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x64xf32>
      %sum = scf.for %s = %zero to %n step %one iter_args(%t = %acc) -> (!pk.tile<128x64xf32>) {
        %a = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
        %b = pk.consume %2 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
        %u = pk.mma %a, %b, %t {in_flight = 1 : i64} : !pk.tile<128x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<128x64xf32>
        pk.release %0 deferred 1 : !pk.channel<!pk.tile<128x64xbf16>>
        pk.release %2 deferred 1 : !pk.channel<!pk.tile<64x64xbf16>>
        scf.yield %u : !pk.tile<128x64xf32>
      }
      pk.release_deferred %0 : !pk.channel<!pk.tile<128x64xbf16>>
      pk.release_deferred %2 : !pk.channel<!pk.tile<64x64xbf16>>
      pk.acquire %1 : !pk.channel<!pk.tile<128x64xbf16>>
      %c = pk.cast %sum : !pk.tile<128x64xf32> -> !pk.tile<128x64xbf16>
      pk.fence async_shared
      pk.commit %1, %c : !pk.channel<!pk.tile<128x64xbf16>>, !pk.tile<128x64xbf16>
    }
  }
  pk.role storer warps 1 attributes {group = "compute", first_warp = 9 : i64, registers = 40 : i64} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    pk.tasks (%i) in (%one) attributes {per_cta} {
      %m = pk.block[%zero] : !pk.block<128 by 128>
      %d = pk.block[%zero] : !pk.block<64 by 64>
      %c = pk.consume %1 : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
      pk.store %c, %C[%m, %d : !pk.block<128 by 128>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.tile<128x64xbf16>, !pk.private<[128, 64], bf16>
      pk.drain read
      pk.release %1 : !pk.channel<!pk.tile<128x64xbf16>>
    }
    pk.drain full
  }
}

// -----

// The left operand is computed: it stays in registers, four for each 16 of the contracted dimension. A transposed one
// is read the other way round. Rows are reduced over a thread's registers, then over the four threads of a row. No
// registers are set to zero: the first instruction of each MMA overwrites them (its last operand is 0).
// CHECK-LABEL: pk.kernel @scores
// CHECK: %[[NO:.*]] = arith.constant 0 : index
// CHECK: %[[YES:.*]] = arith.constant 1 : index
// CHECK: pk.comment "consumer: 4 warps from 0"
// CHECK: %[[S:.*]] = pk.registers : !pk.registers<32xf32>
// CHECK-NOT: pk.set
// CHECK: %[[ALL:.*]] = pk.subview %[[S]]
// CHECK-NEXT: pk.instruction "wgmma_n64_bf16_ss_kk"(%[[ALL]], %{{.*}}, %{{.*}}, %[[NO]])
// CHECK: pk.instruction "wgmma_n64_bf16_ss_kk"(%[[ALL]], %{{.*}}, %{{.*}}, %[[YES]])
// CHECK: pk.instruction "wgmma_n64_bf16_ss_kk"(%[[ALL]], %{{.*}}, %{{.*}}, %[[YES]])
// CHECK: pk.instruction "wgmma_n64_bf16_ss_kk"(%[[ALL]], %{{.*}}, %{{.*}}, %[[YES]])
// CHECK: pk.instruction "wgmma_wait_0"
// CHECK: pk.instruction "max_nan"
// CHECK: pk.instruction "shuffle_xor"
// CHECK: pk.instruction "max_nan"
// CHECK: pk.instruction "shuffle_xor"
// CHECK: pk.instruction "exp2_f32"
// CHECK: pk.instruction "wgmma_n64_bf16_rs_kn"(%{{.*}}, %[[P0:.*]], %[[P1:.*]], %[[P2:.*]], %[[P3:.*]], %{{.*}}, %[[NO]])
// CHECK: pk.instruction "wgmma_n64_bf16_rs_kn"({{.*}}, %[[YES]])
// CHECK: pk.instruction "mbarrier_arrive"
// CHECK-NOT: remark
pk.kernel @scores(%Q: !pk.private<[64, 64], bf16> {pk.name = "Q"}) attributes {schedule = {}, derived, comm_sms = 0 : i64} {
  %0 = pk.channel "Q, K, V" stages 1 : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 4 : i64, registers = 40 : i64} {
    %zero = arith.constant 0 : index
    %d = pk.block[%zero] : !pk.block<64 by 64>
    pk.acquire %0 : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>>
    %q = pk.load %Q[%d, %d : !pk.block<64 by 64>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.private<[64, 64], bf16> -> !pk.tile<64x64xbf16>
    %k = pk.load %Q[%d, %d : !pk.block<64 by 64>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.private<[64, 64], bf16> -> !pk.tile<64x64xbf16>
    %v = pk.load %Q[%d, %d : !pk.block<64 by 64>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.private<[64, 64], bf16> -> !pk.tile<64x64xbf16>
    pk.commit %0, %q, %k, %v : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>>, !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>
  }
  pk.role consumer warps 4 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    %zero = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
    %q, %k, %v = pk.consume %0 : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>
    %kt = pk.transpose %k : !pk.tile<64x64xbf16> -> !pk.tile<64x64xbf16>
    %s = pk.mma %q, %kt, %zero : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
    %top = pk.row_max %s : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
    %tops = pk.broadcast %top axes [0] : !pk.tile<64xf32> -> !pk.tile<64x64xf32>
    %t = pk.sub %s, %tops : !pk.tile<64x64xf32>
    %e = pk.exp2 %t : !pk.tile<64x64xf32>
    %p = pk.cast %e : !pk.tile<64x64xf32> -> !pk.tile<64x64xbf16>
    %o = pk.mma %p, %v, %zero : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
    pk.release %0 : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>>
  }
}

// -----

// An MMA that adds to a tile from outside of its loop leaves that tile for the next iteration, and adds to a copy. So does
// an inner loop that begins with one.
// CHECK-LABEL: pk.kernel @kept
// CHECK: %[[S:.*]] = pk.registers : !pk.registers<32xf32>
// CHECK: %[[S_ALL:.*]] = pk.subview %[[S]] from 0
// CHECK-NEXT: pk.instruction "wgmma_n64_bf16_ss_kn"(%[[S_ALL]]
// CHECK: %[[R:.*]] = pk.registers : !pk.registers<2xf32>
// CHECK: %[[T:.*]] = pk.registers : !pk.registers<32xf32>
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NEXT: %[[U:.*]] = pk.registers : !pk.registers<32xf32>
// CHECK: pk.get %[[S]]
// CHECK-NEXT: pk.set %{{.*}}, %[[U]]
// CHECK: %[[U_ALL:.*]] = pk.subview %[[U]] from 0
// CHECK-NEXT: pk.instruction "wgmma_n64_bf16_ss_kn"(%[[U_ALL]]
// CHECK: %[[Y:.*]] = pk.registers : !pk.registers<2xf32>
// CHECK: pk.get %[[R]]{{\[}}
// CHECK-NEXT: pk.set %{{.*}}, %[[Y]]
// CHECK-NOT: pk.set %{{.*}}, %[[R]]{{\[}}
// CHECK: // remark: {{.*}}: pk.mma: what the MMA adds to is copied first: it is used by something else too [pk-lower-tiles]
pk.kernel @kept(%Q: !pk.private<[64, 64], bf16> {pk.name = "Q"}, %X: !pk.private<[M, 64], bf16> {pk.name = "X"}) attributes {schedule = {}, derived, comm_sms = 0 : i64} {
  %0 = pk.channel "Q, K, V" stages 1 : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 4 : i64, registers = 40 : i64} {
    %zero = arith.constant 0 : index
    %d = pk.block[%zero] : !pk.block<64 by 64>
    pk.acquire %0 : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>>
    %q = pk.load %Q[%d, %d : !pk.block<64 by 64>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.private<[64, 64], bf16> -> !pk.tile<64x64xbf16>
    %k = pk.load %Q[%d, %d : !pk.block<64 by 64>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.private<[64, 64], bf16> -> !pk.tile<64x64xbf16>
    %v = pk.load %Q[%d, %d : !pk.block<64 by 64>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.private<[64, 64], bf16> -> !pk.tile<64x64xbf16>
    pk.commit %0, %q, %k, %v : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>>, !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>
  }
  pk.role consumer warps 4 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    %zeros = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = pk.block_count <M by 64>
    %q, %k, %v = pk.consume %0 : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>
    %s = pk.mma %q, %k, %zeros : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
    %r = pk.row_max %s : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
    %sum = scf.for %i = %zero to %n step %one iter_args(%t = %zeros) -> (!pk.tile<64x64xf32>) {
      %u = pk.mma %q, %v, %s : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %x = scf.for %j = %zero to %n step %one iter_args(%y = %r) -> (!pk.tile<64xf32>) {
        %z = pk.mul %y, %y : !pk.tile<64xf32>
        scf.yield %z : !pk.tile<64xf32>
      }
      %w = pk.max %t, %u : !pk.tile<64x64xf32>
      scf.yield %w : !pk.tile<64x64xf32>
    }
    pk.release %0 : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>>
  }
}

// -----

// Warps without a warpgroup go over a tile in chunks of 16 bytes, each if it exists; where chunks exist partly or are
// not aligned, element by element. A
// signal is sent by one thread when all have come; one thread of each warp looks at a counter.
// CHECK-LABEL: pk.kernel @add
// CHECK: %[[SECOND:.*]] = arith.subi %cta, %computing
// CHECK: pk.comment "communicator: 2 warps from 0"
// CHECK: scf.for %{{.*}} = %[[SECOND]] to
// CHECK: scf.if %{{.*}} {
// CHECK-NEXT: pk.instruction "spin"
// CHECK: pk.instruction "sync_warp"
// CHECK-NEXT: pk.instruction "fence_acquire_sys"
// CHECK: pk.instruction "load_global_v4_where"
// CHECK: pk.instruction "load_global_v4_where"
// CHECK: arith.addf
// CHECK: pk.instruction "store_global_v4_where"
// CHECK: pk.instruction "load_global_b32"
// CHECK: pk.instruction "store_global_b32"
// CHECK: pk.instruction "sync_{{[0-9]+}}_of_64"
// CHECK: scf.if %{{.*}} {
// CHECK-NEXT: pk.instruction "signal_release_gpu"
pk.kernel @add(%X: !pk.pgl<[M, 64], f32, symmetric> {pk.name = "X"}, %Y: !pk.private<[M, 64], f32> {pk.name = "Y"}, %in: !pk.signal<[ranks]> {pk.name = "in"}, %out: !pk.signal<[1]> {pk.name = "out"}) attributes {schedule = {}, derived, comm_sms = 8 : i64} {
  pk.role communicator warps 2 attributes {group = "communicate", first_warp = 0 : i64, registers = 40 : i64} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %rank = pk.rank
    %peer = pk.ring_peer %one
    %n = pk.block_count <M by 16>
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %d = pk.block[%zero] : !pk.block<64 by 64>
      pk.wait %in[%peer] for %one : !pk.signal<[ranks]>
      pk.fence acquire_sys
      %x = pk.load %X at %peer[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] {transfer = {by = "register", why = ""}} : !pk.pgl<[M, 64], f32, symmetric> -> !pk.tile<16x64xf32>
      %twice = pk.add %x, %x : !pk.tile<16x64xf32>
      pk.store %twice, %Y[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] {transfer = {by = "register", why = ""}} : !pk.tile<16x64xf32>, !pk.private<[M, 64], f32>
      pk.signal %out at %rank[%zero] by %one {order = "release_gpu"} : !pk.signal<[1]>
    }
  }
  pk.role loader warps 1 attributes {group = "compute", first_warp = 0 : i64, registers = 40 : i64} {
    %0 = pk.rank
  }
}

// -----

// What this rank owns is read from the array itself: at another address, or by TMA through another map.
// CHECK-LABEL: pk.kernel @near
// CHECK: pk.comment "consumer
// CHECK: %[[MINE:.*]] = arith.cmpi eq, %{{.*}}, %rank : index
// CHECK: %[[A:.*]] = pk.address %A
// CHECK: %[[SHARD:.*]] = arith.addi %[[A]], %{{.*}} : i64
// CHECK: %[[L:.*]] = pk.address %L
// CHECK: %[[HERE:.*]] = arith.addi %[[SHARD]], %{{.*}} : i64
// CHECK: %[[THERE:.*]] = arith.addi %[[L]], %{{.*}} : i64
// CHECK-NEXT: %[[ADDRESS:.*]] = arith.select %[[MINE]], %[[HERE]], %[[THERE]] : i64
// CHECK: pk.instruction "load_global_b32"(%[[ADDRESS]])
// CHECK: pk.comment "loader
// CHECK: %[[FAR:.*]] = pk.tensor_map %L last
// CHECK: %[[MINE:.*]] = arith.cmpi eq, %{{.*}}, %rank : index
// CHECK-NEXT: %[[NEAR:.*]] = pk.tensor_map %A last
// CHECK-NEXT: %[[MAP:.*]] = arith.select %[[MINE]], %[[NEAR]], %[[FAR]] : !pk.map
// CHECK: pk.instruction "tma_load_3d"(%{{.*}}, %[[MAP]],
// CHECK: // remark: {{.*}}: pk.load: each thread loads single elements of `L`, 4 bytes, not 16: its tiles are spread over registers as those of an MMA [pk-lower-tiles]
// CHECK: // remark: {{.*}}: pk.store: each thread stores single elements of `Y`, 4 bytes, not 16: its tiles are spread over registers as those of an MMA [pk-lower-tiles]
pk.kernel @near(%A: !pk.pgl<[M, 64], f32, shard 0> {pk.name = "A"}, %L: !pk.private<[M, 64], f32> {pk.name = "L", pk.scratch}, %Y: !pk.private<[M, 64], f32> {pk.name = "Y"}) attributes {schedule = {}, derived, comm_sms = 0 : i64} {
  %0 = pk.channel "L" stages 1 : !pk.channel<!pk.tile<64x64xf32>>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 4 : i64, registers = 40 : i64} {
    %zero = arith.constant 0 : index
    %m = pk.block[%zero] sharded : !pk.block<M by 64>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    pk.acquire %0 : !pk.channel<!pk.tile<64x64xf32>>
    %x = pk.load %L local %A : !pk.pgl<[M, 64], f32, shard 0>[%m, %d : !pk.block<M by 64>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.private<[M, 64], f32> -> !pk.tile<64x64xf32>
    pk.commit %0, %x : !pk.channel<!pk.tile<64x64xf32>>, !pk.tile<64x64xf32>
  }
  pk.role consumer warps 4 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    %zero = arith.constant 0 : index
    %m = pk.block[%zero] sharded : !pk.block<M by 64>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %far = pk.load %L local %A : !pk.pgl<[M, 64], f32, shard 0>[%m, %d : !pk.block<M by 64>, !pk.block<64 by 64>] {transfer = {by = "register", why = ""}} : !pk.private<[M, 64], f32> -> !pk.tile<64x64xf32>
    %x = pk.consume %0 : !pk.channel<!pk.tile<64x64xf32>> -> !pk.tile<64x64xf32>
    %sum = pk.add %x, %far : !pk.tile<64x64xf32>
    pk.store %sum, %Y[%m, %d : !pk.block<M by 64>, !pk.block<64 by 64>] {transfer = {by = "register", why = ""}} : !pk.tile<64x64xf32>, !pk.private<[M, 64], f32>
    pk.release %0 : !pk.channel<!pk.tile<64x64xf32>>
  }
}

// -----

// So is one position of the sharded dimension: its shard is found from it.
// CHECK-LABEL: pk.kernel @near_row
// CHECK: pk.comment "loader
// CHECK: %[[INSIDE:.*]] = arith.remsi %{{.*}}, %[[LENGTH:.*]] : index
// CHECK: %[[SHARD:.*]] = arith.divsi %{{.*}}, %[[LENGTH]] : index
// CHECK: pk.tensor_map %L last %{{.*}} box [64, 1, 1] swizzle 0 split 0
// CHECK: arith.cmpi eq, %[[SHARD]], %rank : index
// CHECK: pk.tensor_map %A last %{{.*}} box [64, 1, 1] swizzle 0 split 0
// CHECK: pk.instruction "tma_load_3d"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[INSIDE]], %{{.*}})
pk.kernel @near_row(%A: !pk.pgl<[M, 64], f32, shard 0> {pk.name = "A"}, %L: !pk.private<[M, 64], f32> {pk.name = "L", pk.scratch}, %Y: !pk.private<[M, 64], f32> {pk.name = "Y"}) attributes {schedule = {}, derived, comm_sms = 0 : i64} {
  %0 = pk.channel "L" stages 1 : !pk.channel<!pk.tile<64xf32>>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 0 : i64, registers = 40 : i64} {
    %m = pk.dim "M"
    %two = arith.constant 2 : index
    %zero = arith.constant 0 : index
    %row = arith.divsi %m, %two : index
    %d = pk.block[%zero] : !pk.block<64 by 64>
    pk.acquire %0 : !pk.channel<!pk.tile<64xf32>>
    %x = pk.load %L local %A : !pk.pgl<[M, 64], f32, shard 0>[%row, %d : index, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.private<[M, 64], f32> -> !pk.tile<64xf32>
    pk.commit %0, %x : !pk.channel<!pk.tile<64xf32>>, !pk.tile<64xf32>
  }
  pk.role storer warps 1 attributes {group = "compute", first_warp = 1 : i64, registers = 40 : i64} {
    %zero = arith.constant 0 : index
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %x = pk.consume %0 : !pk.channel<!pk.tile<64xf32>> -> !pk.tile<64xf32>
    pk.store %x, %Y[%zero, %d : index, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.tile<64xf32>, !pk.private<[M, 64], f32>
    pk.release %0 : !pk.channel<!pk.tile<64xf32>>
  }
}

// -----

// A signal to every rank is released by one fence.
// CHECK-LABEL: pk.kernel @all
// CHECK: pk.instruction "fence_release_sys"
// CHECK-NEXT: %[[RANKS:.*]] = pk.dim "ranks"
// CHECK-NEXT: scf.for %{{.*}} = %{{.*}} to %[[RANKS]]
// CHECK: pk.instruction "signal_relaxed_sys"
// CHECK-NOT: pk.instruction "signal_release_sys"
pk.kernel @all(%there: !pk.signal<[1]> {pk.name = "there"}) attributes {schedule = {}, derived, comm_sms = 0 : i64} {
  pk.role communicator warps 1 attributes {group = "compute", first_warp = 0 : i64, registers = 40 : i64} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    pk.signal_all %there[%zero] by %one {order = "release_sys"} : !pk.signal<[1]>
  }
}

// -----

// A store to a replicated array goes to every rank, in CTA 0 beginning with the next one, in CTA 1 with the one after.
// CHECK-LABEL: pk.kernel @spread
// CHECK: pk.comment "storer
// CHECK: %[[RANKS:.*]] = pk.dim "ranks"
// CHECK: %[[NEXT:.*]] = arith.addi %rank
// CHECK-NEXT: %[[FIRST:.*]] = arith.addi %[[NEXT]], %cta
// CHECK: scf.for %[[STEP:.*]] = %{{.*}} to %[[RANKS]]
// CHECK-NEXT: %[[LATER:.*]] = arith.addi %[[FIRST]], %[[STEP]]
// CHECK-NEXT: %[[PEER:.*]] = arith.remsi %[[LATER]], %[[RANKS]]
// CHECK: pk.instruction "tma_store_3d"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[PEER]])
// CHECK: pk.instruction "bulk_commit"
// CHECK: // remark: {{.*}}: pk.commit: Y goes into its stage 4 bytes at a time, not by stmatrix: it is not in registers [pk-lower-tiles]
pk.kernel @spread(%Y: !pk.pgl<[64, 64], bf16, replicate> {pk.name = "Y"}) attributes {schedule = {}, derived, comm_sms = 0 : i64} {
  %0 = pk.channel "Y" stages 1 : !pk.channel<!pk.tile<64x64xbf16>>
  pk.role consumer warps 4 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    %y = pk.full 1.000000e+00 : bf16 : !pk.tile<64x64xbf16>
    pk.acquire %0 : !pk.channel<!pk.tile<64x64xbf16>>
    pk.fence async_shared
    pk.commit %0, %y : !pk.channel<!pk.tile<64x64xbf16>>, !pk.tile<64x64xbf16>
  }
  pk.role storer warps 1 attributes {group = "compute", first_warp = 4 : i64, registers = 40 : i64} {
    %zero = arith.constant 0 : index
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %y = pk.consume %0 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
    pk.store %y, %Y[%d, %d : !pk.block<64 by 64>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.tile<64x64xbf16>, !pk.pgl<[64, 64], bf16, replicate>
    pk.drain full
    pk.release %0 : !pk.channel<!pk.tile<64x64xbf16>>
  }
}

// -----

// A stage is released two iterations late, and signals of five iterations wait in registers: the first three of them are sent
// behind one fence once all stores but the last two are complete. When the tasks are over, the rest.
// CHECK-LABEL: pk.kernel @behind
// CHECK: pk.comment "communicator: 2 warps from 2"
// CHECK: %[[KEPT:.*]] = pk.registers : !pk.registers<1xindex>
// CHECK: %[[DEFERRED:.*]] = pk.registers : !pk.registers<5xi64>
// CHECK: %[[HOLDING:.*]] = pk.registers : !pk.registers<1xindex>
// CHECK: pk.instruction "bulk_commit"
// CHECK-NEXT: pk.instruction "bulk_wait_read_2"
// CHECK: %[[FULL:.*]] = arith.cmpi eq
// CHECK-NEXT: scf.if %[[FULL]] {
// CHECK: pk.instruction "mbarrier_arrive"
// CHECK: pk.set %{{.*}}, %[[KEPT]]
// CHECK: pk.set %{{.*}}, %[[DEFERRED]]
// CHECK: pk.set %{{.*}}, %[[HOLDING]]
// CHECK: pk.instruction "bulk_wait_full_2"
// CHECK: pk.instruction "fence_release_gpu"
// CHECK: pk.instruction "signal_relaxed_sys"
// CHECK: pk.instruction "bulk_wait_read"
// CHECK: pk.instruction "mbarrier_arrive"
// CHECK: pk.instruction "mbarrier_arrive"
// CHECK: pk.instruction "bulk_wait_full"
// CHECK: pk.instruction "fence_release_gpu"
// CHECK: pk.instruction "signal_relaxed_sys"
pk.kernel @behind(%X: !pk.pgl<[M, 64], bf16, shard 0> {pk.name = "X"}, %Y: !pk.private<[M, 64], bf16> {pk.name = "Y", pk.scratch}, %ready: !pk.signal<[M by 64]> {pk.name = "ready"}) attributes {schedule = {}, derived, comm_sms = 4 : i64} {
  %0 = pk.channel "X" stages 4 : !pk.channel<!pk.tile<64x64xbf16>>
  pk.role communicator warps 2 attributes {group = "communicate", first_warp = 0 : i64, registers = 80 : i64} {
    %z = arith.constant 0 : index
    %n = pk.block_count <M by 64> sharded
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] sharded : !pk.block<M by 64>
      %d = pk.block[%z] : !pk.block<64 by 64>
      pk.acquire %0 : !pk.channel<!pk.tile<64x64xbf16>>
      %x = pk.load %X[%m, %d : !pk.block<M by 64>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.pgl<[M, 64], bf16, shard 0> -> !pk.tile<64x64xbf16>
      pk.commit %0, %x : !pk.channel<!pk.tile<64x64xbf16>>, !pk.tile<64x64xbf16>
    }
  }
  pk.role communicator warps 2 attributes {group = "communicate", first_warp = 2 : i64, registers = 80 : i64} {
    %z = arith.constant 0 : index
    %one = arith.constant 1 : index
    %rank = pk.rank
    %n = pk.block_count <M by 64> sharded
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] sharded : !pk.block<M by 64>
      %d = pk.block[%z] : !pk.block<64 by 64>
      %number = pk.block_number %m : !pk.block<M by 64>
      %x = pk.consume %0 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      pk.store %x, %Y[%m, %d : !pk.block<M by 64>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.tile<64x64xbf16>, !pk.private<[M, 64], bf16>
      pk.drain read left 2
      pk.release %0 deferred 2 : !pk.channel<!pk.tile<64x64xbf16>>
      pk.signal %ready at %rank[%number] by %one {deferred, order = "release_gpu"} : !pk.signal<[M by 64]>
      pk.drain full left 2
      pk.send_deferred left 2 batch 3
    }
    pk.drain read
    pk.release_deferred %0 : !pk.channel<!pk.tile<64x64xbf16>>
    pk.drain full
    pk.send_deferred left 0 batch 1
  }
}

// -----

// Counters of some ranks: one release, then a signal to each.
// CHECK-LABEL: pk.kernel @some
// CHECK: pk.instruction "fence_release_sys"
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step
// CHECK: pk.instruction "signal_relaxed_sys"
pk.kernel @some(%there: !pk.signal<[1]> {pk.name = "there"}) attributes {schedule = {}, derived, comm_sms = 0 : i64} {
  pk.role communicator warps 1 attributes {group = "compute", first_warp = 0 : i64, registers = 40 : i64} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %m = pk.block[%zero] : !pk.block<M by 64>
    %first = pk.owner %m : !pk.block<M by 64>
    %last = pk.owner last %m : !pk.block<M by 64>
    pk.signal_all %there from %first to %last[%zero] by %one {order = "release_sys"} : !pk.signal<[1]>
  }
}

// -----

// A staged tile whose rows belong to several ranks: the owner of each row is found by its position, 16 bytes at once
// where rows come out even.
// CHECK-LABEL: pk.kernel @rows
// CHECK: pk.comment "storer
// CHECK: scf.if
// CHECK: scf.for %[[CHUNK:.*]] = %{{.*}} to
// CHECK: %[[ROW:.*]] = arith.shrui %[[CHUNK]],
// CHECK: %[[RANK:.*]] = arith.divsi %[[ROW]], %[[SHARD:.*]] : index
// CHECK-NEXT: %[[WIDE:.*]] = arith.index_cast %[[RANK]]
// CHECK-NEXT: %[[STRIDE:.*]] = pk.launch_value "heap_stride"
// CHECK-NEXT: arith.muli %[[WIDE]], %[[STRIDE]]
// CHECK: arith.remsi %[[ROW]], %[[SHARD]] : index
// CHECK: pk.instruction "load_shared_v4"
// CHECK-NEXT: pk.instruction "store_global_v4"
// CHECK: pk.instruction "store_global_b16"
// CHECK: pk.instruction "sync_warp"
// CHECK: pk.instruction "mbarrier_arrive"
pk.kernel @rows(%Y: !pk.pgl<[M, 64], bf16, shard 0> {pk.name = "Y"}) attributes {schedule = {}, derived, comm_sms = 0 : i64} {
  %0 = pk.channel "Y" stages 1 : !pk.channel<!pk.tile<64x64xbf16>>
  pk.role consumer warps 4 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    %y = pk.full 1.000000e+00 : bf16 : !pk.tile<64x64xbf16>
    pk.acquire %0 : !pk.channel<!pk.tile<64x64xbf16>>
    pk.commit %0, %y : !pk.channel<!pk.tile<64x64xbf16>>, !pk.tile<64x64xbf16>
  }
  pk.role storer warps 1 attributes {group = "compute", first_warp = 4 : i64, registers = 40 : i64} {
    %zero = arith.constant 0 : index
    %m = pk.block[%zero] : !pk.block<M by 64>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %y = pk.consume %0 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
    pk.store %y, %Y[%m, %d : !pk.block<M by 64>, !pk.block<64 by 64>] {transfer = {by = "register", why = ""}} : !pk.tile<64x64xbf16>, !pk.pgl<[M, 64], bf16, shard 0>
    pk.release %0 : !pk.channel<!pk.tile<64x64xbf16>>
  }
}
