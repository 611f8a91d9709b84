// Operands that are computed go through shared memory, where MMAs read them.
// RUN: pkc-opt %s -p pk-stage-operands | filecheck %s

// The right one, transposed; the left one stays in registers.
// CHECK-LABEL: pk.kernel @computed
// CHECK: %[[CH:.*]] = pk.channel "w" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
// CHECK: pk.role consumer
// CHECK: %[[LEFT:.*]] = pk.cast
// CHECK: %[[W:.*]] = pk.cast
// CHECK-NEXT: pk.acquire %[[CH]]
// CHECK-NEXT: pk.commit %[[CH]], %[[W]]
// CHECK-NEXT: %[[READ:.*]] = pk.consume %[[CH]]
// CHECK-NEXT: %[[T:.*]] = pk.transpose %[[READ]]
// CHECK-NEXT: pk.mma %[[LEFT]], %[[T]], %{{.*}}
// CHECK-NEXT: pk.release %[[CH]]
// CHECK-NEXT: pk.release
pk.kernel @computed() {
  %0 = pk.channel "A, B" stages 2 : !pk.channel<!pk.tile<128x64xf32>, !pk.tile<128x64xf32>>
  pk.role consumer {
    %zero = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xf32>, !pk.tile<128x64xf32>> -> !pk.tile<128x64xf32>, !pk.tile<128x64xf32>
    %left = pk.cast %a : !pk.tile<128x64xf32> -> !pk.tile<128x64xbf16>
    %w = pk.cast %b : !pk.tile<128x64xf32> -> !pk.tile<128x64xbf16>
    %t = pk.transpose %w : !pk.tile<128x64xbf16> -> !pk.tile<64x128xbf16>
    %acc = pk.mma %left, %t, %zero : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
    pk.release %0 : !pk.channel<!pk.tile<128x64xf32>, !pk.tile<128x64xf32>>
  }
}
