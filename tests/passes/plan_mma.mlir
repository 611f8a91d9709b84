// MMAs that stay in flight while the next one is issued.
// RUN: pkc-opt %s -p pk-plan-mma --split-input-file --remarks | filecheck %s

// The accumulator is all that the loop carries, and only the MMA touches it: an iteration keeps its stage for the next.
// CHECK-LABEL: pk.kernel @gemm
// CHECK: %[[K:.*]] = pk.channel "A, B" stages 3
// CHECK: scf.for
// CHECK: pk.mma {{.*}} {in_flight = 1 : i64}
// CHECK-NEXT: pk.release %[[K]] deferred 1 :
// CHECK-NEXT: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: pk.release_deferred %[[K]] :
// CHECK-NOT: pk.release_deferred
pk.kernel @gemm(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  %0 = pk.channel "A, B" stages 3 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<128x64xbf16>>
  pk.role consumer {
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %sum = scf.for %s = %zero to %steps step %one iter_args(%t = %acc) -> (!pk.tile<128x128xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<128x64xbf16>
      %bt = pk.transpose %b : !pk.tile<128x64xbf16> -> !pk.tile<64x128xbf16>
      %u = pk.mma %a, %bt, %t : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<128x64xbf16>>
      scf.yield %u : !pk.tile<128x128xf32>
    }
  }
}

// -----

// Operands that come through separate channels: each has a stage kept, and freed behind the loop.
// CHECK-LABEL: pk.kernel @two_channels
// CHECK: %[[A:.*]] = pk.channel "A" stages 3
// CHECK: %[[B:.*]] = pk.channel "B" stages 2
// CHECK: pk.mma {{.*}} {in_flight = 1 : i64}
// CHECK-NEXT: pk.release %[[A]] deferred 1 :
// CHECK-NEXT: pk.release %[[B]] deferred 1 :
// CHECK-NEXT: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: pk.release_deferred %[[A]] :
// CHECK-NEXT: pk.release_deferred %[[B]] :
pk.kernel @two_channels(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  %0 = pk.channel "A" stages 3 : !pk.channel<!pk.tile<128x64xbf16>>
  %1 = pk.channel "B" stages 2 : !pk.channel<!pk.tile<64x128xbf16>>
  pk.role consumer {
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %sum = scf.for %s = %zero to %steps step %one iter_args(%t = %acc) -> (!pk.tile<128x128xf32>) {
      %a = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
      %b = pk.consume %1 : !pk.channel<!pk.tile<64x128xbf16>> -> !pk.tile<64x128xbf16>
      %u = pk.mma %a, %b, %t : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>>
      pk.release %1 : !pk.channel<!pk.tile<64x128xbf16>>
      scf.yield %u : !pk.tile<128x128xf32>
    }
  }
}

// -----

// With one stage the next iteration would wait for a stage that this one keeps: nothing changes.
// CHECK-LABEL: pk.kernel @one_stage
// CHECK: pk.mma
// CHECK-NOT: in_flight
// CHECK-NOT: deferred
// CHECK: // remark: {{.*}}: pk.mma: each MMA is waited for: A, B has one stage; smaller tiles leave room for two [pk-plan-mma]
pk.kernel @one_stage(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  %0 = pk.channel "A, B" stages 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<128x64xbf16>>
  pk.role consumer {
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %sum = scf.for %s = %zero to %steps step %one iter_args(%t = %acc) -> (!pk.tile<128x128xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<128x64xbf16>
      %bt = pk.transpose %b : !pk.tile<128x64xbf16> -> !pk.tile<64x128xbf16>
      %u = pk.mma %a, %bt, %t : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<128x64xbf16>>
      scf.yield %u : !pk.tile<128x128xf32>
    }
  }
}

// -----

// Something reads the result in the same iteration.
// CHECK-LABEL: pk.kernel @scaled
// CHECK-NOT: in_flight
// CHECK: // remark: {{.*}}: pk.mma: each MMA is waited for: `u` is used in the iteration that computes it [pk-plan-mma]
pk.kernel @scaled(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  %0 = pk.channel "A, B" stages 3 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
  pk.role consumer {
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %sum = scf.for %s = %zero to %steps step %one iter_args(%t = %acc) -> (!pk.tile<128x128xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>
      %u = pk.mma %a, %b, %t : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      %v = pk.add %u, %u : !pk.tile<128x128xf32>
      pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
      scf.yield %v : !pk.tile<128x128xf32>
    }
  }
}

// -----

// An operand whose stage outlives the loop is released behind it anyway. One that lies in registers keeps them.
// CHECK-LABEL: pk.kernel @attention
// CHECK: pk.consume %[[Q:.*]] :
// CHECK: pk.mma %q, %v, %t {in_flight = 1 : i64}
// CHECK-NEXT: pk.release %[[V:.*]] deferred 1
// CHECK: pk.release_deferred %[[V]]
// CHECK-NEXT: pk.release %[[Q]] :
// CHECK-NOT: in_flight
// CHECK: // remark: {{.*}}: pk.mma: each MMA is waited for: `w` lies in registers, which the next one needs [pk-plan-mma]
// CHECK-NOT: remark
pk.kernel @attention(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  %0 = pk.channel "Q" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
  %1 = pk.channel "V" stages 3 : !pk.channel<!pk.tile<64x128xbf16>>
  pk.role consumer {
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %q = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
    %sum = scf.for %s = %zero to %steps step %one iter_args(%t = %acc) -> (!pk.tile<128x128xf32>) {
      %v = pk.consume %1 : !pk.channel<!pk.tile<64x128xbf16>> -> !pk.tile<64x128xbf16>
      %u = pk.mma %q, %v, %t : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      pk.release %1 : !pk.channel<!pk.tile<64x128xbf16>>
      scf.yield %u : !pk.tile<128x128xf32>
    }
    pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>>
    %w = pk.full 1.000000e+00 : bf16 : !pk.tile<128x64xbf16>
    %more = scf.for %s = %zero to %steps step %one iter_args(%t = %acc) -> (!pk.tile<128x128xf32>) {
      %v = pk.consume %1 : !pk.channel<!pk.tile<64x128xbf16>> -> !pk.tile<64x128xbf16>
      %u = pk.mma %w, %v, %t : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      pk.release %1 : !pk.channel<!pk.tile<64x128xbf16>>
      scf.yield %u : !pk.tile<128x128xf32>
    }
  }
}

// -----

// Two MMAs with separate accumulators: both stay in flight, and the stage that both read is kept once.
// CHECK-LABEL: pk.kernel @two
// CHECK: pk.mma {{.*}} {in_flight = 2 : i64}
// CHECK-NEXT: pk.mma {{.*}} {in_flight = 2 : i64}
// CHECK-NEXT: pk.release %[[K:.*]] deferred 1 :
// CHECK: pk.release_deferred %[[K]]
// CHECK-NOT: remark
pk.kernel @two(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  %0 = pk.channel "A, B" stages 3 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
  pk.role consumer {
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %x, %y = scf.for %s = %zero to %steps step %one iter_args(%t = %acc, %u = %acc) -> (!pk.tile<128x128xf32>, !pk.tile<128x128xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>
      %v = pk.mma %a, %b, %t : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      %w = pk.mma %a, %b, %u : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
      scf.yield %v, %w : !pk.tile<128x128xf32>, !pk.tile<128x128xf32>
    }
  }
}

// -----

// One after the other into the same accumulator: the tensor cores keep their order. The first channel is released before
// the second MMA is issued, a stage later than it was read.
// CHECK-LABEL: pk.kernel @chain
// CHECK: pk.mma {{.*}} {in_flight = 2 : i64}
// CHECK-NEXT: pk.release %[[A:.*]] deferred 1 :
// CHECK: pk.mma {{.*}} {in_flight = 2 : i64}
// CHECK-NEXT: pk.release %[[B:.*]] deferred 1 :
// CHECK: }
// CHECK-NEXT: pk.release_deferred %[[A]]
// CHECK-NEXT: pk.release_deferred %[[B]]
pk.kernel @chain(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  %0 = pk.channel "A, B" stages 3 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
  %1 = pk.channel "D, E" stages 2 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
  pk.role consumer {
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %sum = scf.for %s = %zero to %steps step %one iter_args(%t = %acc) -> (!pk.tile<128x128xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>
      %v = pk.mma %a, %b, %t : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
      %d, %e = pk.consume %1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>
      %w = pk.mma %d, %e, %v : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      pk.release %1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
      scf.yield %w : !pk.tile<128x128xf32>
    }
  }
}

// -----

// Accumulators that trade places in each iteration would have to be copied, and so to be complete.
// CHECK-LABEL: pk.kernel @swapped
// CHECK-NOT: in_flight
// CHECK: // remark: {{.*}}: pk.mma: each MMA is waited for: `t` is used beside it [pk-plan-mma]
// CHECK: // remark: {{.*}}: pk.mma: each MMA is waited for: `u` is used beside it [pk-plan-mma]
pk.kernel @swapped(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  %0 = pk.channel "A, B" stages 3 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
  pk.role consumer {
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %x, %y = scf.for %s = %zero to %steps step %one iter_args(%t = %acc, %u = %acc) -> (!pk.tile<128x128xf32>, !pk.tile<128x128xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>
      %v = pk.mma %a, %b, %t : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      %w = pk.mma %a, %b, %u : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
      scf.yield %w, %v : !pk.tile<128x128xf32>, !pk.tile<128x128xf32>
    }
  }
}

// -----

// One MMA of two whose result is used in the same iteration: waiting for it is waiting for both. One in a branch as well.
// CHECK-LABEL: pk.kernel @mixed
// CHECK-NOT: in_flight
// CHECK: // remark: {{.*}}: pk.mma: the MMA stands in a branch of its loop, and is waited for there [pk-plan-mma]
// CHECK: // remark: {{.*}}: pk.mma: another MMA of the loop is waited for in each iteration, and this one with it [pk-plan-mma]
pk.kernel @mixed(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %often = arith.constant true
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  %0 = pk.channel "A, B" stages 3 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
  pk.role consumer {
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %x, %y = scf.for %s = %zero to %steps step %one iter_args(%t = %acc, %u = %acc) -> (!pk.tile<128x128xf32>, !pk.tile<128x128xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>
      %v = pk.mma %a, %b, %t : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      %w = scf.if %often -> (!pk.tile<128x128xf32>) {
        %z = pk.mma %a, %b, %u : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
        scf.yield %z : !pk.tile<128x128xf32>
      } else {
        scf.yield %u : !pk.tile<128x128xf32>
      }
      pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
      scf.yield %v, %w : !pk.tile<128x128xf32>, !pk.tile<128x128xf32>
    }
  }
}

// -----

// What is computed of a stage beside its MMA comes behind the release, which frees the stage of the iteration before.
// CHECK-LABEL: pk.kernel @summed
// CHECK: pk.mma {{.*}} {in_flight = 1 : i64}
// CHECK-NEXT: pk.release %[[K:.*]] deferred 1 :
// CHECK: pk.row_sum
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: pk.release_deferred %[[K]]
// CHECK-NOT: remark
pk.kernel @summed(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  %0 = pk.channel "A, B" stages 2 : !pk.channel<!pk.tile<128x64xf32>, !pk.tile<64x128xf32>>
  pk.role consumer {
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %none = pk.full 0.000000e+00 : f32 : !pk.tile<128xf32>
    %sum, %rows = scf.for %s = %zero to %steps step %one iter_args(%t = %acc, %r = %none) -> (!pk.tile<128x128xf32>, !pk.tile<128xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xf32>, !pk.tile<64x128xf32>> -> !pk.tile<128x64xf32>, !pk.tile<64x128xf32>
      %u = pk.mma %a, %b, %t : !pk.tile<128x64xf32>, !pk.tile<64x128xf32> -> !pk.tile<128x128xf32>
      %each = pk.row_sum %a : !pk.tile<128x64xf32> -> !pk.tile<128xf32>
      %next = pk.add %r, %each : !pk.tile<128xf32>
      pk.release %0 : !pk.channel<!pk.tile<128x64xf32>, !pk.tile<64x128xf32>>
      scf.yield %u, %next : !pk.tile<128x128xf32>, !pk.tile<128xf32>
    }
  }
}
