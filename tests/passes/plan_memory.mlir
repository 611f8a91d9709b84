// Where channels and their barriers lie in shared memory.
// RUN: pkc-opt %s -p pk-plan-memory --split-input-file | filecheck %s

// Stages of all channels first, each tile at a multiple of 1024, then two barriers of 8 bytes for each stage:
// 3 * (16384 + 32768) = 147456; 147456 + 65536 = 212992; + 3 * 16 = 213040; + 16 = 213056; + 1024 to align the start.
// CHECK-LABEL: pk.kernel @gemm
// CHECK-SAME: shared_bytes = 214080 : i64
// CHECK: pk.channel "A, B" stages 3 {offset = 0 : i64, stage_bytes = 49152 : i64, barriers = 212992 : i64}
// CHECK: pk.channel "C" stages 1 {offset = 147456 : i64, stage_bytes = 65536 : i64, barriers = 213040 : i64}
pk.kernel @gemm(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %0 = pk.channel "A, B" stages 3 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
  %1 = pk.channel "C" stages 1 : !pk.channel<!pk.tile<128x256xbf16>>
  pk.role loader attributes {group = "compute"} {
    pk.acquire %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
  }
  pk.role consumer attributes {group = "compute"} {
    pk.acquire %1 : !pk.channel<!pk.tile<128x256xbf16>>
  }
}

// -----

// CTAs that communicate have separate shared memory; as much is asked for as the larger group needs: 2 * 16384
// and 2 * 16 here, 2048 and 16 there.
// CHECK-LABEL: pk.kernel @groups
// CHECK-SAME: shared_bytes = 33824 : i64
// CHECK: pk.channel "A" stages 2 {offset = 0 : i64, stage_bytes = 16384 : i64, barriers = 32768 : i64}
// CHECK: pk.channel "B" stages 1 {offset = 0 : i64, stage_bytes = 2048 : i64, barriers = 2048 : i64}
pk.kernel @groups(%C: !pk.private<[M, N], f32> {pk.name = "C"}) attributes {comm_sms = 4 : i64} {
  %0 = pk.channel "A" stages 2 : !pk.channel<!pk.tile<128x64xbf16>>
  %1 = pk.channel "B" stages 1 : !pk.channel<!pk.tile<16x64xbf16>>
  pk.role communicator attributes {group = "communicate"} {
    pk.acquire %0 : !pk.channel<!pk.tile<128x64xbf16>>
  }
  pk.role loader attributes {group = "compute"} {
    pk.acquire %1 : !pk.channel<!pk.tile<16x64xbf16>>
  }
}

// -----

// A row of 12 bytes takes 16, and the next tile begins at a multiple of 1024 all the same; so does a scalar.
// CHECK-LABEL: pk.kernel @small
// CHECK-SAME: shared_bytes = 4112 : i64
// CHECK: pk.channel "rows" stages 1 {offset = 0 : i64, stage_bytes = 3072 : i64, barriers = 3072 : i64}
pk.kernel @small(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %0 = pk.channel "rows" stages 1 : !pk.channel<!pk.tile<8x3xf32>, !pk.tile<3xf32>, !pk.tile<f32>>
  pk.role loader attributes {group = "compute"} {
    pk.acquire %0 : !pk.channel<!pk.tile<8x3xf32>, !pk.tile<3xf32>, !pk.tile<f32>>
  }
}

// -----

// Without channels, without shared memory.
// CHECK-LABEL: pk.kernel @none
// CHECK-SAME: shared_bytes = 1024 : i64
pk.kernel @none(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  pk.role loader attributes {group = "compute"} {
    %0 = pk.rank
  }
}

// -----

// An MMA of 16 rows reads 64: 48 * 128 bytes behind the last stage must exist. 2 * (2048 + 8192) + 2 * 16 and 6144.
// CHECK-LABEL: pk.kernel @behind
// CHECK-SAME: shared_bytes = 27680 : i64
pk.kernel @behind(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %0 = pk.channel "A, B" stages 2 : !pk.channel<!pk.tile<16x64xbf16>, !pk.tile<64x64xbf16>>
  pk.role loader attributes {group = "compute"} {
    pk.acquire %0 : !pk.channel<!pk.tile<16x64xbf16>, !pk.tile<64x64xbf16>>
  }
  pk.role consumer attributes {group = "compute"} {
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<16x64xf32>
    %a, %b = pk.consume %0 : !pk.channel<!pk.tile<16x64xbf16>, !pk.tile<64x64xbf16>> -> !pk.tile<16x64xbf16>, !pk.tile<64x64xbf16>
    %c = pk.mma %a, %b, %acc : !pk.tile<16x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<16x64xf32>
    pk.release %0 : !pk.channel<!pk.tile<16x64xbf16>, !pk.tile<64x64xbf16>>
  }
}
