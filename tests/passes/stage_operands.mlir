// Operands that are computed go through shared memory, where MMAs read them.
// RUN: pkc-opt %s -p pk-stage-operands --split-input-file --remarks | filecheck %s

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

// -----

// Tensor cores read f32 only along the dimension that is summed over: a right operand that lies otherwise is written the
// other way round.
// CHECK-LABEL: pk.kernel @otherwise
// CHECK: %[[CH:.*]] = pk.channel "operand" stages 1 : !pk.channel<!pk.tile<128x32xf32>>
// CHECK: %[[A:.*]], %[[B:.*]] = pk.consume
// CHECK: %[[T:.*]] = pk.transpose %[[B]]
// CHECK-NEXT: %[[W:.*]] = pk.cast %[[T]] : !pk.tile<128x32xf32> -> !pk.tile<128x32xf32>
// CHECK-NEXT: pk.acquire %[[CH]]
// CHECK-NEXT: pk.commit %[[CH]], %[[W]]
// CHECK-NEXT: %[[READ:.*]] = pk.consume %[[CH]]
// CHECK-NEXT: %[[BACK:.*]] = pk.transpose %[[READ]]
// CHECK-NEXT: pk.mma %[[A]], %[[BACK]], %{{.*}}
// CHECK: // remark: {{.*}}threads write the right operand the other way round
pk.kernel @otherwise() {
  %0 = pk.channel "A, B" stages 2 : !pk.channel<!pk.tile<128x32xf32>, !pk.tile<32x128xf32>>
  pk.role consumer {
    %zero = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x32xf32>, !pk.tile<32x128xf32>> -> !pk.tile<128x32xf32>, !pk.tile<32x128xf32>
    %acc = pk.mma %a, %b, %zero : !pk.tile<128x32xf32>, !pk.tile<32x128xf32> -> !pk.tile<128x128xf32>
    pk.release %0 : !pk.channel<!pk.tile<128x32xf32>, !pk.tile<32x128xf32>>
  }
}
