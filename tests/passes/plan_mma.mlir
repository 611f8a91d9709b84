// Products that stay in flight while the next one is issued.
// RUN: pkc-opt %s -p pk-plan-mma --split-input-file | filecheck %s

// The accumulator is all that the loop carries, and only the product touches it: a turn keeps its stage for the next.
// CHECK-LABEL: pk.kernel @gemm
// CHECK: %[[K:.*]] = pk.channel "A, B" stages 3
// CHECK: scf.for
// CHECK: pk.mma {{.*}} {in_flight = 1 : i64}
// CHECK-NEXT: pk.release %[[K]] held 1 :
// CHECK-NEXT: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: pk.release_held %[[K]] :
// CHECK-NOT: pk.release_held
pk.kernel @gemm(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %turns = pk.block_count <K by 64>
  %0 = pk.channel "A, B" stages 3 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<128x64xbf16>>
  pk.role consumer {
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %sum = scf.for %s = %zero to %turns step %one iter_args(%t = %acc) -> (!pk.tile<128x128xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<128x64xbf16>
      %bt = pk.transpose %b : !pk.tile<128x64xbf16> -> !pk.tile<64x128xbf16>
      %u = pk.mma %a, %bt, %t : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<128x64xbf16>>
      scf.yield %u : !pk.tile<128x128xf32>
    }
  }
}

// -----

// Operands that come through channels of their own: each has a stage kept, and freed behind the loop.
// CHECK-LABEL: pk.kernel @two_channels
// CHECK: %[[A:.*]] = pk.channel "A" stages 3
// CHECK: %[[B:.*]] = pk.channel "B" stages 2
// CHECK: pk.mma {{.*}} {in_flight = 1 : i64}
// CHECK-NEXT: pk.release %[[A]] held 1 :
// CHECK-NEXT: pk.release %[[B]] held 1 :
// CHECK-NEXT: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: pk.release_held %[[A]] :
// CHECK-NEXT: pk.release_held %[[B]] :
pk.kernel @two_channels(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %turns = pk.block_count <K by 64>
  %0 = pk.channel "A" stages 3 : !pk.channel<!pk.tile<128x64xbf16>>
  %1 = pk.channel "B" stages 2 : !pk.channel<!pk.tile<64x128xbf16>>
  pk.role consumer {
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %sum = scf.for %s = %zero to %turns step %one iter_args(%t = %acc) -> (!pk.tile<128x128xf32>) {
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

// With one stage the next turn would wait for a stage that this one holds: nothing changes.
// CHECK-LABEL: pk.kernel @one_stage
// CHECK: pk.mma
// CHECK-NOT: in_flight
// CHECK-NOT: held
pk.kernel @one_stage(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %turns = pk.block_count <K by 64>
  %0 = pk.channel "A, B" stages 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<128x64xbf16>>
  pk.role consumer {
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %sum = scf.for %s = %zero to %turns step %one iter_args(%t = %acc) -> (!pk.tile<128x128xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<128x64xbf16>
      %bt = pk.transpose %b : !pk.tile<128x64xbf16> -> !pk.tile<64x128xbf16>
      %u = pk.mma %a, %bt, %t : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<128x64xbf16>>
      scf.yield %u : !pk.tile<128x128xf32>
    }
  }
}

// -----

// Something reads the product in the same turn.
// CHECK-LABEL: pk.kernel @scaled
// CHECK-NOT: in_flight
pk.kernel @scaled(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %turns = pk.block_count <K by 64>
  %0 = pk.channel "A, B" stages 3 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
  pk.role consumer {
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %sum = scf.for %s = %zero to %turns step %one iter_args(%t = %acc) -> (!pk.tile<128x128xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>
      %u = pk.mma %a, %b, %t : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      %v = pk.add %u, %u : !pk.tile<128x128xf32>
      pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
      scf.yield %v : !pk.tile<128x128xf32>
    }
  }
}

// -----

// An operand that lies in registers, and one whose stage outlives the loop.
// CHECK-LABEL: pk.kernel @attention
// CHECK-NOT: in_flight
pk.kernel @attention(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %turns = pk.block_count <K by 64>
  %0 = pk.channel "Q" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
  %1 = pk.channel "V" stages 3 : !pk.channel<!pk.tile<64x128xbf16>>
  pk.role consumer {
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %q = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
    %sum = scf.for %s = %zero to %turns step %one iter_args(%t = %acc) -> (!pk.tile<128x128xf32>) {
      %v = pk.consume %1 : !pk.channel<!pk.tile<64x128xbf16>> -> !pk.tile<64x128xbf16>
      %u = pk.mma %q, %v, %t : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      pk.release %1 : !pk.channel<!pk.tile<64x128xbf16>>
      scf.yield %u : !pk.tile<128x128xf32>
    }
    pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>>
    %w = pk.full 1.000000e+00 : bf16 : !pk.tile<128x64xbf16>
    %more = scf.for %s = %zero to %turns step %one iter_args(%t = %acc) -> (!pk.tile<128x128xf32>) {
      %v = pk.consume %1 : !pk.channel<!pk.tile<64x128xbf16>> -> !pk.tile<64x128xbf16>
      %u = pk.mma %w, %v, %t : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      pk.release %1 : !pk.channel<!pk.tile<64x128xbf16>>
      scf.yield %u : !pk.tile<128x128xf32>
    }
  }
}

// -----

// Two products in one turn: the second may need the first.
// CHECK-LABEL: pk.kernel @two
// CHECK-NOT: in_flight
pk.kernel @two(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %turns = pk.block_count <K by 64>
  %0 = pk.channel "A, B" stages 3 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
  pk.role consumer {
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %x, %y = scf.for %s = %zero to %turns step %one iter_args(%t = %acc, %u = %acc) -> (!pk.tile<128x128xf32>, !pk.tile<128x128xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>
      %v = pk.mma %a, %b, %t : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      %w = pk.mma %a, %b, %u : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
      scf.yield %v, %w : !pk.tile<128x128xf32>, !pk.tile<128x128xf32>
    }
  }
}
