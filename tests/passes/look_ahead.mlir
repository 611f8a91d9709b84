// A consumer that waits for the pieces of its one MMA looks for the next operands when it has released some.
// RUN: pkc-opt %s -p pk-look-ahead --split-input-file | filecheck %s

// What the product is scaled by is awaited while the MMA runs.
// CHECK-LABEL: pk.kernel @pieces
// CHECK: pk.consume %0 {ahead}
// CHECK: pk.consume %1 : !pk.channel<!pk.tile<256xf32>>
// CHECK-LABEL: pk.kernel @whole
// CHECK-NOT: ahead
pk.kernel @pieces() {
  %0 = pk.channel "A, B" stages 2 : !pk.channel<!pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>>
  %1 = pk.channel "s" stages 2 : !pk.channel<!pk.tile<256xf32>>
  pk.role consumer warps 8 {
    %zero = pk.full 0.000000e+00 : f32 : !pk.tile<256x128xf32>
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i9 = arith.constant 9 : index
    %sum = scf.for %i = %i0 to %i9 step %i1 iter_args(%acc = %zero) -> (!pk.tile<256x128xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>> -> !pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>
      %p = pk.mma %a, %b, %zero {pieces = 2 : i64} : !pk.tile<256x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<256x128xf32>
      %s = pk.consume %1 : !pk.channel<!pk.tile<256xf32>> -> !pk.tile<256xf32>
      %w = pk.broadcast %s axes [0] : !pk.tile<256xf32> -> !pk.tile<256x128xf32>
      pk.release %1 : !pk.channel<!pk.tile<256xf32>>
      %q = pk.mul %p, %w {chain = 0 : i64} : !pk.tile<256x128xf32>
      %next = pk.add %acc, %q {chain = 0 : i64} : !pk.tile<256x128xf32>
      pk.release %0 : !pk.channel<!pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>>
      scf.yield %next : !pk.tile<256x128xf32>
    }
  }
}
pk.kernel @whole() {
  %0 = pk.channel "A, B" stages 2 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>>
  pk.role consumer warps 8 {
    %zero = pk.full 0.000000e+00 : f32 : !pk.tile<128x64xf32>
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i9 = arith.constant 9 : index
    %sum = scf.for %i = %i0 to %i9 step %i1 iter_args(%acc = %zero) -> (!pk.tile<128x64xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>
      %m = pk.mma_issue %a, %b, %zero : !pk.tile<128x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<128x64xf32>
      %p = pk.mma_wait %m left 0 : !pk.tile<128x64xf32>
      pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>>
      %next = pk.add %acc, %p : !pk.tile<128x64xf32>
      scf.yield %next : !pk.tile<128x64xf32>
    }
  }
}

// -----

// While an MMA stays in flight, a look at a barrier costs tensor cores nothing.
// CHECK-NOT: ahead
pk.kernel @in_flight() {
  %0 = pk.channel "A, B" stages 2 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>>
  pk.role consumer warps 8 {
    %zero = pk.full 0.000000e+00 : f32 : !pk.tile<128x64xf32>
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i9 = arith.constant 9 : index
    %sum = scf.for %i = %i0 to %i9 step %i1 iter_args(%acc = %zero) -> (!pk.tile<128x64xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>
      %p = pk.mma %a, %b, %acc {in_flight = 1 : i64} : !pk.tile<128x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<128x64xf32>
      pk.release %0 deferred 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>>
      scf.yield %p : !pk.tile<128x64xf32>
    }
    pk.release_deferred %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>>
  }
}
