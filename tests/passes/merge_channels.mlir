// Phases that pass tiles of one kind between the same roles have one channel.
// RUN: pkc-opt %s -p pk-merge-channels --split-input-file | filecheck %s

// CHECK-LABEL: pk.kernel @phases
// CHECK: [[A:%.*]] = pk.channel "A; T" stages 1
// CHECK-NOT: pk.channel "
// CHECK: pk.role loader
// CHECK: pk.acquire [[A]]
// CHECK: pk.acquire [[A]]
// CHECK: pk.role consumer
// CHECK: pk.consume [[A]]
// CHECK: pk.consume [[A]]
pk.kernel @phases(%X: !pk.private<[M], f32> {pk.name = "X"}) {
  %a = pk.channel "A" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
  %b = pk.channel "T" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
  pk.role loader {
    %n = pk.block_count <M by 128>
    %t = pk.full 0.000000e+00 : bf16 : !pk.tile<128x64xbf16>
    pk.tasks (%i) in (%n) {
      pk.acquire %a : !pk.channel<!pk.tile<128x64xbf16>>
      pk.commit %a, %t : !pk.channel<!pk.tile<128x64xbf16>>, !pk.tile<128x64xbf16>
    }
    pk.tasks (%i) in (%n) {
      pk.acquire %b : !pk.channel<!pk.tile<128x64xbf16>>
      pk.commit %b, %t : !pk.channel<!pk.tile<128x64xbf16>>, !pk.tile<128x64xbf16>
    }
  }
  pk.role consumer {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %x = pk.consume %a : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
      pk.release %a : !pk.channel<!pk.tile<128x64xbf16>>
    }
    pk.tasks (%i) in (%n) {
      %x = pk.consume %b : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
      pk.release %b : !pk.channel<!pk.tile<128x64xbf16>>
    }
  }
}

// -----

// Both in one phase: the consumer takes the second one first.
// CHECK-LABEL: pk.kernel @beside
// CHECK: pk.channel "A" stages 1
// CHECK: pk.channel "T" stages 1
pk.kernel @beside(%X: !pk.private<[M], f32> {pk.name = "X"}) {
  %a = pk.channel "A" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
  %b = pk.channel "T" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
  pk.role loader {
    %n = pk.block_count <M by 128>
    %t = pk.full 0.000000e+00 : bf16 : !pk.tile<128x64xbf16>
    pk.tasks (%i) in (%n) {
      pk.acquire %a : !pk.channel<!pk.tile<128x64xbf16>>
      pk.commit %a, %t : !pk.channel<!pk.tile<128x64xbf16>>, !pk.tile<128x64xbf16>
    }
    pk.tasks (%i) in (%n) {
      pk.acquire %b : !pk.channel<!pk.tile<128x64xbf16>>
      pk.commit %b, %t : !pk.channel<!pk.tile<128x64xbf16>>, !pk.tile<128x64xbf16>
    }
  }
  pk.role consumer {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %y = pk.consume %b : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
      pk.release %b : !pk.channel<!pk.tile<128x64xbf16>>
      %x = pk.consume %a : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
      pk.release %a : !pk.channel<!pk.tile<128x64xbf16>>
    }
  }
}

// -----

// Other roles consume the second one.
// CHECK-LABEL: pk.kernel @other
// CHECK: pk.channel "A" stages 1
// CHECK: pk.channel "T" stages 1
pk.kernel @other(%X: !pk.private<[M], f32> {pk.name = "X"}) {
  %a = pk.channel "A" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
  %b = pk.channel "T" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
  pk.role loader {
    %n = pk.block_count <M by 128>
    %t = pk.full 0.000000e+00 : bf16 : !pk.tile<128x64xbf16>
    pk.tasks (%i) in (%n) {
      pk.acquire %a : !pk.channel<!pk.tile<128x64xbf16>>
      pk.commit %a, %t : !pk.channel<!pk.tile<128x64xbf16>>, !pk.tile<128x64xbf16>
    }
    pk.tasks (%i) in (%n) {
      pk.acquire %b : !pk.channel<!pk.tile<128x64xbf16>>
      pk.commit %b, %t : !pk.channel<!pk.tile<128x64xbf16>>, !pk.tile<128x64xbf16>
    }
  }
  pk.role consumer {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %x = pk.consume %a : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
      pk.release %a : !pk.channel<!pk.tile<128x64xbf16>>
    }
  }
  pk.role storer {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %x = pk.consume %b : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
      pk.release %b : !pk.channel<!pk.tile<128x64xbf16>>
    }
  }
}

// -----

// Two loops of a task load tiles of one kind one after the other; what is loaded once has a channel of its own.
// CHECK-LABEL: pk.kernel @loops
// CHECK: [[X:%.*]] = pk.channel "x; y" stages 1
// CHECK-NEXT: pk.channel "z" stages 1
// CHECK: pk.role loader
// CHECK: pk.acquire [[X]]
// CHECK: scf.for
// CHECK: pk.acquire [[X]]
pk.kernel @loops(%X: !pk.private<[M], f32> {pk.name = "X"}) {
  %x = pk.channel "x" stages 1 : !pk.channel<!pk.tile<128xf32>>
  %y = pk.channel "y" stages 1 : !pk.channel<!pk.tile<128xf32>>
  %z = pk.channel "z" stages 1 : !pk.channel<!pk.tile<128xf32>>
  pk.role loader warps 1 {
    %n = pk.dim "M"
    pk.tasks (%i) in (%n) {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %t = pk.full 0.000000e+00 : f32 : !pk.tile<128xf32>
      scf.for %k = %zero to %n step %one {
        pk.acquire %x : !pk.channel<!pk.tile<128xf32>>
        pk.commit %x, %t : !pk.channel<!pk.tile<128xf32>>, !pk.tile<128xf32>
      }
      scf.for %k = %zero to %n step %one {
        pk.acquire %y : !pk.channel<!pk.tile<128xf32>>
        pk.commit %y, %t : !pk.channel<!pk.tile<128xf32>>, !pk.tile<128xf32>
      }
      pk.acquire %z : !pk.channel<!pk.tile<128xf32>>
      pk.commit %z, %t : !pk.channel<!pk.tile<128xf32>>, !pk.tile<128xf32>
    }
  }
  pk.role consumer warps 4 {
    %n = pk.dim "M"
    pk.tasks (%i) in (%n) {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      scf.for %k = %zero to %n step %one {
        %t = pk.consume %x : !pk.channel<!pk.tile<128xf32>> -> !pk.tile<128xf32>
        pk.release %x : !pk.channel<!pk.tile<128xf32>>
      }
      scf.for %k = %zero to %n step %one {
        %t = pk.consume %y : !pk.channel<!pk.tile<128xf32>> -> !pk.tile<128xf32>
        pk.release %y : !pk.channel<!pk.tile<128xf32>>
      }
      %t = pk.consume %z : !pk.channel<!pk.tile<128xf32>> -> !pk.tile<128xf32>
      pk.release %z : !pk.channel<!pk.tile<128xf32>>
    }
  }
}
