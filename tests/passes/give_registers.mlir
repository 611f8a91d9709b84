// Consumers whose tiles do not fit get registers of those that move tiles.
// RUN: pkc-opt %s -p pk-give-registers --split-input-file | filecheck %s

// Two accumulators of 128 x 128 and two products of 128 x 80 take 208 registers of each of 256 threads, and 20 are for
// all else: 232, a multiple of 8. (65536 - 1024 - 256 * 232) / 128 leave 32 or more to the others.
// CHECK-LABEL: pk.kernel @narrow
// CHECK: pk.role loader warps 1 attributes {group = "compute", first_warp = 8 : i64, registers = 40 : i64}
// CHECK: pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64}
pk.kernel @narrow() attributes {schedule = {}} {
  %0 = pk.channel "A, B" stages 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>, !pk.tile<64x80xbf16>>
  %1 = pk.channel "C" stages 1 : !pk.channel<!pk.tile<128x128xf32>, !pk.tile<128x128xf32>, !pk.tile<128x80xf32>, !pk.tile<128x80xf32>>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 8 : i64, registers = 56 : i64} {
    %rank = pk.rank
  }
  pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 224 : i64} {
    %a, %b, %c = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>, !pk.tile<64x80xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>, !pk.tile<64x80xbf16>
    %wide = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %less = pk.full 0.000000e+00 : f32 : !pk.tile<128x80xf32>
    %w = pk.mma %a, %b, %wide : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
    %x = pk.mma %a, %b, %wide : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
    %y = pk.mma %a, %c, %less : !pk.tile<128x64xbf16>, !pk.tile<64x80xbf16> -> !pk.tile<128x80xf32>
    %z = pk.mma %a, %c, %less : !pk.tile<128x64xbf16>, !pk.tile<64x80xbf16> -> !pk.tile<128x80xf32>
    pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>, !pk.tile<64x80xbf16>>
    pk.acquire %1 : !pk.channel<!pk.tile<128x128xf32>, !pk.tile<128x128xf32>, !pk.tile<128x80xf32>, !pk.tile<128x80xf32>>
    pk.commit %1, %w, %x, %y, %z : !pk.channel<!pk.tile<128x128xf32>, !pk.tile<128x128xf32>, !pk.tile<128x80xf32>, !pk.tile<128x80xf32>>, !pk.tile<128x128xf32>, !pk.tile<128x128xf32>, !pk.tile<128x80xf32>, !pk.tile<128x80xf32>
  }
}

// -----

// What fits stays as it is.
// CHECK-LABEL: pk.kernel @enough
// CHECK: pk.role loader warps 1 attributes {group = "compute", first_warp = 8 : i64, registers = 56 : i64}
// CHECK: pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 224 : i64}
pk.kernel @enough() attributes {schedule = {}} {
  %0 = pk.channel "A, B" stages 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
  %1 = pk.channel "C" stages 1 : !pk.channel<!pk.tile<128x128xf32>>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 8 : i64, registers = 56 : i64} {
    %rank = pk.rank
  }
  pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 224 : i64} {
    %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>
    %zero = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %w = pk.mma %a, %b, %zero : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
    pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
    pk.acquire %1 : !pk.channel<!pk.tile<128x128xf32>>
    pk.commit %1, %w : !pk.channel<!pk.tile<128x128xf32>>, !pk.tile<128x128xf32>
  }
}

// -----

// Nor is there any use in it where movers could not spare enough: 512 registers of each thread.
// CHECK-LABEL: pk.kernel @too_many
// CHECK: pk.role loader warps 1 attributes {group = "compute", first_warp = 4 : i64, registers = 56 : i64}
// CHECK: pk.role consumer warps 4 attributes {group = "compute", first_warp = 0 : i64, registers = 224 : i64}
pk.kernel @too_many() attributes {schedule = {}} {
  %0 = pk.channel "A, B" stages 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
  %1 = pk.channel "C" stages 1 : !pk.channel<!pk.tile<128x256xf32>, !pk.tile<128x256xf32>>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 4 : i64, registers = 56 : i64} {
    %rank = pk.rank
  }
  pk.role consumer warps 4 attributes {group = "compute", first_warp = 0 : i64, registers = 224 : i64} {
    %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>
    %zero = pk.full 0.000000e+00 : f32 : !pk.tile<128x256xf32>
    %w = pk.mma %a, %b, %zero : !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16> -> !pk.tile<128x256xf32>
    %x = pk.mma %a, %b, %zero : !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16> -> !pk.tile<128x256xf32>
    pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
    pk.acquire %1 : !pk.channel<!pk.tile<128x256xf32>, !pk.tile<128x256xf32>>
    pk.commit %1, %w, %x : !pk.channel<!pk.tile<128x256xf32>, !pk.tile<128x256xf32>>, !pk.tile<128x256xf32>, !pk.tile<128x256xf32>
  }
}
