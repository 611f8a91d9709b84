// What the target has instructions for passes; tests/errors has what is refused (PK510).
// RUN: pkc-opt %s -p pk-check-lowering --split-input-file --verify-diagnostics | filecheck %s

// Sixteen elements of bf16 are what one MMA instruction sums over.
// CHECK-LABEL: pk.kernel @good
// CHECK: pk.mma
pk.kernel @good(%A: !pk.private<[M], bf16> {pk.name = "A"}) attributes {target = "sm_90a"} {
  %n = arith.constant 1 : index
  %c = pk.channel "A" stages 1 : !pk.channel<!pk.tile<64x16xbf16>, !pk.tile<16x64xbf16>>
  pk.role consumer warps 4 {
    pk.tasks (%i) in (%n) {
      %z = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
      %a, %b = pk.consume %c : !pk.channel<!pk.tile<64x16xbf16>, !pk.tile<16x64xbf16>> -> !pk.tile<64x16xbf16>, !pk.tile<16x64xbf16>
      %s = pk.mma %a, %b, %z : !pk.tile<64x16xbf16>, !pk.tile<16x64xbf16> -> !pk.tile<64x64xf32>
      pk.release %c : !pk.channel<!pk.tile<64x16xbf16>, !pk.tile<16x64xbf16>>
    }
  }
}

// -----

// Eight are fewer.
// CHECK: error[PK510]: cannot be compiled for sm_90a yet: an MMA that sums over 8 elements of bf16
pk.kernel @short(%A: !pk.private<[M], bf16> {pk.name = "A"}) attributes {target = "sm_90a"} {
  %n = arith.constant 1 : index
  %c = pk.channel "A" stages 1 : !pk.channel<!pk.tile<64x8xbf16>, !pk.tile<8x64xbf16>>
  pk.role consumer warps 4 {
    pk.tasks (%i) in (%n) {
      %z = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
      %a, %b = pk.consume %c : !pk.channel<!pk.tile<64x8xbf16>, !pk.tile<8x64xbf16>> -> !pk.tile<64x8xbf16>, !pk.tile<8x64xbf16>
      %s = pk.mma %a, %b, %z : !pk.tile<64x8xbf16>, !pk.tile<8x64xbf16> -> !pk.tile<64x64xf32>
      pk.release %c : !pk.channel<!pk.tile<64x8xbf16>, !pk.tile<8x64xbf16>>
    }
  }
}
