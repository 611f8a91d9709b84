// Channels that serve one phase have the shared memory of that phase.
// RUN: pkc-opt %s -p pk-reuse-memory,pk-merge-channels,pk-order-phases --split-input-file | filecheck %s

// The second phase passes other tiles. Who consumes those of the first signals at its end, beside who stores the array;
// who fills those of the second waits for all of them.
// CHECK-LABEL: pk.kernel @others
// CHECK: pk.channel "A" stages 1 {phase = 0 : i64}
// CHECK: pk.channel "T" stages 1 {phase = 1 : i64}
// CHECK: pk.role loader {
// CHECK: pk.commit
// CHECK: %[[C:.*]] = pk.ctas consumer
// CHECK-NEXT: pk.wait %phase0_over[%{{.*}}] for %[[C]]
// CHECK: pk.acquire
// CHECK: pk.role consumer {
// CHECK: pk.release
// CHECK: pk.signal %phase0_over
// CHECK-NOT: pk.wait
pk.kernel @others(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) attributes {derived, target = "sm_90a"} {
  %a = pk.channel "A" stages 1 : !pk.channel<!pk.tile<128xf32>>
  %b = pk.channel "T" stages 1 : !pk.channel<!pk.tile<64xf32>>
  %n = arith.constant 4 : index
  pk.role loader {
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 0} {
      %m = pk.block[%i] : !pk.block<M by 128>
      pk.acquire %a : !pk.channel<!pk.tile<128xf32>>
      %t = pk.load %X[%m : !pk.block<M by 128>] : !pk.private<[M], f32> -> !pk.tile<128xf32>
      pk.commit %a, %t : !pk.channel<!pk.tile<128xf32>>, !pk.tile<128xf32>
    }
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 1} {
      %m = pk.block[%i] : !pk.block<M by 64>
      pk.acquire %b : !pk.channel<!pk.tile<64xf32>>
      %t = pk.load %Y[%m : !pk.block<M by 64>] : !pk.private<[M], f32> -> !pk.tile<64xf32>
      pk.commit %b, %t : !pk.channel<!pk.tile<64xf32>>, !pk.tile<64xf32>
    }
  }
  pk.role consumer {
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 0} {
      %m = pk.block[%i] : !pk.block<M by 128>
      %x = pk.consume %a : !pk.channel<!pk.tile<128xf32>> -> !pk.tile<128xf32>
      pk.store %x, %Y[%m : !pk.block<M by 128>] : !pk.tile<128xf32>, !pk.private<[M], f32>
      pk.release %a : !pk.channel<!pk.tile<128xf32>>
    }
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 1} {
      %x = pk.consume %b : !pk.channel<!pk.tile<64xf32>> -> !pk.tile<64xf32>
      pk.release %b : !pk.channel<!pk.tile<64xf32>>
    }
  }
}

// -----

// Tiles of one kind: one channel serves both phases, and nobody waits for its memory.
// CHECK-LABEL: pk.kernel @alike
// CHECK: pk.channel "A; T" stages 1 : 
// CHECK-NOT: pk.signal
pk.kernel @alike(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {derived, target = "sm_90a"} {
  %a = pk.channel "A" stages 1 : !pk.channel<!pk.tile<64xf32>>
  %b = pk.channel "T" stages 1 : !pk.channel<!pk.tile<64xf32>>
  %n = arith.constant 4 : index
  pk.role loader {
    %t = pk.full 0.000000e+00 : f32 : !pk.tile<64xf32>
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 0} {
      pk.acquire %a : !pk.channel<!pk.tile<64xf32>>
      pk.commit %a, %t : !pk.channel<!pk.tile<64xf32>>, !pk.tile<64xf32>
    }
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 1} {
      pk.acquire %b : !pk.channel<!pk.tile<64xf32>>
      pk.commit %b, %t : !pk.channel<!pk.tile<64xf32>>, !pk.tile<64xf32>
    }
  }
  pk.role consumer {
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 0} {
      %x = pk.consume %a : !pk.channel<!pk.tile<64xf32>> -> !pk.tile<64xf32>
      pk.release %a : !pk.channel<!pk.tile<64xf32>>
    }
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 1} {
      %x = pk.consume %b : !pk.channel<!pk.tile<64xf32>> -> !pk.tile<64xf32>
      pk.release %b : !pk.channel<!pk.tile<64xf32>>
    }
  }
}

// -----

// Who fills a channel of the second phase after it has consumed a tile of it, which comes from the loader, need not wait:
// the loader has.
// CHECK-LABEL: pk.kernel @told
// CHECK: pk.role loader {
// CHECK: pk.wait %phase0_over
// CHECK: pk.role consumer {
// CHECK: pk.signal %phase0_over
// CHECK-NOT: pk.wait
pk.kernel @told(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) attributes {derived, target = "sm_90a"} {
  %a = pk.channel "A" stages 1 : !pk.channel<!pk.tile<128xf32>>
  %b = pk.channel "T" stages 1 : !pk.channel<!pk.tile<64xf32>>
  %c = pk.channel "C" stages 1 : !pk.channel<!pk.tile<32xf32>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 4 : index
  pk.role loader {
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 0} {
      %m = pk.block[%i] : !pk.block<M by 128>
      pk.acquire %a : !pk.channel<!pk.tile<128xf32>>
      %t = pk.load %X[%m : !pk.block<M by 128>] : !pk.private<[M], f32> -> !pk.tile<128xf32>
      pk.commit %a, %t : !pk.channel<!pk.tile<128xf32>>, !pk.tile<128xf32>
    }
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 1} {
      %m = pk.block[%i] : !pk.block<M by 64>
      scf.for %j = %zero to %n step %one {
        pk.acquire %b : !pk.channel<!pk.tile<64xf32>>
        %t = pk.load %Y[%m : !pk.block<M by 64>] : !pk.private<[M], f32> -> !pk.tile<64xf32>
        pk.commit %b, %t : !pk.channel<!pk.tile<64xf32>>, !pk.tile<64xf32>
      }
    }
  }
  pk.role consumer {
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 0} {
      %m = pk.block[%i] : !pk.block<M by 128>
      %x = pk.consume %a : !pk.channel<!pk.tile<128xf32>> -> !pk.tile<128xf32>
      pk.store %x, %Y[%m : !pk.block<M by 128>] : !pk.tile<128xf32>, !pk.private<[M], f32>
      pk.release %a : !pk.channel<!pk.tile<128xf32>>
    }
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 1} {
      scf.for %j = %zero to %n step %one {
        %x = pk.consume %b : !pk.channel<!pk.tile<64xf32>> -> !pk.tile<64xf32>
        pk.release %b : !pk.channel<!pk.tile<64xf32>>
      }
      %y = pk.full 0.000000e+00 : f32 : !pk.tile<32xf32>
      pk.acquire %c : !pk.channel<!pk.tile<32xf32>>
      pk.commit %c, %y : !pk.channel<!pk.tile<32xf32>>, !pk.tile<32xf32>
    }
  }
  pk.role storer {
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 0} {
      %m = pk.block[%i] : !pk.block<M by 128>
    }
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 1} {
      %x = pk.consume %c : !pk.channel<!pk.tile<32xf32>> -> !pk.tile<32xf32>
      pk.release %c : !pk.channel<!pk.tile<32xf32>>
    }
  }
}

// -----

// A loop that may have no iterations tells nothing: the consumer waits itself.
// CHECK-LABEL: pk.kernel @untold
// CHECK: pk.role loader {
// CHECK: pk.wait %phase0_over
// CHECK: pk.role consumer {
// CHECK: pk.signal %phase0_over
// CHECK: pk.wait %phase0_over
// CHECK: pk.role storer
// CHECK-NOT: pk.wait
pk.kernel @untold(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) attributes {derived, target = "sm_90a"} {
  %a = pk.channel "A" stages 1 : !pk.channel<!pk.tile<128xf32>>
  %b = pk.channel "T" stages 1 : !pk.channel<!pk.tile<64xf32>>
  %c = pk.channel "C" stages 1 : !pk.channel<!pk.tile<32xf32>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 4 : index
  %rank = pk.rank
  %some = pk.block_count <N by 64> of %rank
  pk.role loader {
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 0} {
      %m = pk.block[%i] : !pk.block<M by 128>
      pk.acquire %a : !pk.channel<!pk.tile<128xf32>>
      %t = pk.load %X[%m : !pk.block<M by 128>] : !pk.private<[M], f32> -> !pk.tile<128xf32>
      pk.commit %a, %t : !pk.channel<!pk.tile<128xf32>>, !pk.tile<128xf32>
    }
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 1} {
      %m = pk.block[%i] : !pk.block<M by 64>
      scf.for %j = %zero to %some step %one {
        pk.acquire %b : !pk.channel<!pk.tile<64xf32>>
        %t = pk.load %Y[%m : !pk.block<M by 64>] : !pk.private<[M], f32> -> !pk.tile<64xf32>
        pk.commit %b, %t : !pk.channel<!pk.tile<64xf32>>, !pk.tile<64xf32>
      }
    }
  }
  pk.role consumer {
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 0} {
      %m = pk.block[%i] : !pk.block<M by 128>
      %x = pk.consume %a : !pk.channel<!pk.tile<128xf32>> -> !pk.tile<128xf32>
      pk.store %x, %Y[%m : !pk.block<M by 128>] : !pk.tile<128xf32>, !pk.private<[M], f32>
      pk.release %a : !pk.channel<!pk.tile<128xf32>>
    }
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 1} {
      scf.for %j = %zero to %some step %one {
        %x = pk.consume %b : !pk.channel<!pk.tile<64xf32>> -> !pk.tile<64xf32>
        pk.release %b : !pk.channel<!pk.tile<64xf32>>
      }
      %y = pk.full 0.000000e+00 : f32 : !pk.tile<32xf32>
      pk.acquire %c : !pk.channel<!pk.tile<32xf32>>
      pk.commit %c, %y : !pk.channel<!pk.tile<32xf32>>, !pk.tile<32xf32>
    }
  }
  pk.role storer {
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 0} {
      %m = pk.block[%i] : !pk.block<M by 128>
    }
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 1} {
      %x = pk.consume %c : !pk.channel<!pk.tile<32xf32>> -> !pk.tile<32xf32>
      pk.release %c : !pk.channel<!pk.tile<32xf32>>
    }
  }
}

// -----

// No phase writes what the other one uses; but each has a loop of MMAs, which want three stages, and shared memory has no
// room for so many of both. So the second waits for the memory of the first.
// CHECK-LABEL: pk.kernel @short
// CHECK: pk.channel "A" stages 1 {phase = 0 : i64}
// CHECK: pk.channel "B" stages 1 {phase = 1 : i64}
// CHECK: pk.role loader {
// CHECK: pk.commit
// CHECK: %[[C:.*]] = pk.ctas consumer
// CHECK-NEXT: pk.wait %phase0_over[%{{.*}}] for %[[C]]
// CHECK: pk.acquire
// CHECK: pk.role consumer {
// CHECK: pk.signal %phase0_over
pk.kernel @short(%X: !pk.private<[M, 64], bf16> {pk.name = "X"}, %Y: !pk.private<[M, 64], bf16> {pk.name = "Y"}, %U: !pk.private<[M, 64], f32> {pk.name = "U"}, %V: !pk.private<[M, 64], f32> {pk.name = "V"}) attributes {derived, target = "sm_90a"} {
  %a = pk.channel "A" stages 1 : !pk.channel<!pk.tile<256x64xbf16>>
  %b = pk.channel "B" stages 1 : !pk.channel<!pk.tile<512x64xbf16>>
  %n = arith.constant 4 : index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  pk.role loader {
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 0} {
      %d = pk.block[%zero] : !pk.block<64 by 64>
      scf.for %j = %zero to %n step %one {
        %m = pk.block[%j] : !pk.block<M by 256>
        pk.acquire %a : !pk.channel<!pk.tile<256x64xbf16>>
        %t = pk.load %X[%m, %d : !pk.block<M by 256>, !pk.block<64 by 64>] : !pk.private<[M, 64], bf16> -> !pk.tile<256x64xbf16>
        pk.commit %a, %t : !pk.channel<!pk.tile<256x64xbf16>>, !pk.tile<256x64xbf16>
      }
    }
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 1} {
      %d = pk.block[%zero] : !pk.block<64 by 64>
      scf.for %j = %zero to %n step %one {
        %m = pk.block[%j] : !pk.block<M by 512>
        pk.acquire %b : !pk.channel<!pk.tile<512x64xbf16>>
        %t = pk.load %Y[%m, %d : !pk.block<M by 512>, !pk.block<64 by 64>] : !pk.private<[M, 64], bf16> -> !pk.tile<512x64xbf16>
        pk.commit %b, %t : !pk.channel<!pk.tile<512x64xbf16>>, !pk.tile<512x64xbf16>
      }
    }
  }
  pk.role consumer {
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 0} {
      %d = pk.block[%zero] : !pk.block<64 by 64>
      %m = pk.block[%i] : !pk.block<M by 64>
      %start = pk.full 0.0 : f32 : !pk.tile<64x64xf32>
      %sum = scf.for %j = %zero to %n step %one iter_args(%acc = %start) -> (!pk.tile<64x64xf32>) {
        %t = pk.consume %a : !pk.channel<!pk.tile<256x64xbf16>> -> !pk.tile<256x64xbf16>
        %tt = pk.transpose %t : !pk.tile<256x64xbf16> -> !pk.tile<64x256xbf16>
        %next = pk.mma %tt, %t, %acc : !pk.tile<64x256xbf16>, !pk.tile<256x64xbf16> -> !pk.tile<64x64xf32>
        pk.release %a : !pk.channel<!pk.tile<256x64xbf16>>
        scf.yield %next : !pk.tile<64x64xf32>
      }
      pk.store %sum, %U[%m, %d : !pk.block<M by 64>, !pk.block<64 by 64>] : !pk.tile<64x64xf32>, !pk.private<[M, 64], f32>
    }
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 1} {
      %d = pk.block[%zero] : !pk.block<64 by 64>
      %m = pk.block[%i] : !pk.block<M by 64>
      %start = pk.full 0.0 : f32 : !pk.tile<64x64xf32>
      %sum = scf.for %j = %zero to %n step %one iter_args(%acc = %start) -> (!pk.tile<64x64xf32>) {
        %t = pk.consume %b : !pk.channel<!pk.tile<512x64xbf16>> -> !pk.tile<512x64xbf16>
        %tt = pk.transpose %t : !pk.tile<512x64xbf16> -> !pk.tile<64x512xbf16>
        %next = pk.mma %tt, %t, %acc : !pk.tile<64x512xbf16>, !pk.tile<512x64xbf16> -> !pk.tile<64x64xf32>
        pk.release %b : !pk.channel<!pk.tile<512x64xbf16>>
        scf.yield %next : !pk.tile<64x64xf32>
      }
      pk.store %sum, %V[%m, %d : !pk.block<M by 64>, !pk.block<64 by 64>] : !pk.tile<64x64xf32>, !pk.private<[M, 64], f32>
    }
  }
}
