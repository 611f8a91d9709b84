// Shared memory is filled with stages.
// RUN: pkc-opt %s -p pk-plan-stages --split-input-file --verify-diagnostics --remarks | filecheck %s

// 231424 bytes. Four stages of 49168 do not fit beside a result of 65552; three do, and leave 18368.
// CHECK-LABEL: pk.kernel @large
// CHECK: pk.channel "A, B" stages 3
// CHECK: pk.channel "C" stages 1
// CHECK: // remark: {{.*}}: pk.channel: C has one stage: the next task waits for this one; shared memory has no room for 65552 bytes more [pk-plan-stages]
pk.kernel @large(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {schedule = {}} {
  %in = pk.channel "A, B" stages 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
  %out = pk.channel "C" stages 1 : !pk.channel<!pk.tile<128x256xbf16>>
  pk.role loader attributes {group = "compute"} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    scf.for %i = %zero to %one step %one {
      pk.acquire %in : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
    }
  }
  pk.role consumer attributes {group = "compute"} {
    pk.acquire %out : !pk.channel<!pk.tile<128x256xbf16>>
  }
}

// -----

// Four stages of 16400, two results of 8208; of the 149408 bytes left, loops take nine stages more.
// CHECK-LABEL: pk.kernel @small
// CHECK: pk.channel "A, B" stages 13
// CHECK: pk.channel "C" stages 2
pk.kernel @small(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {schedule = {}} {
  %in = pk.channel "A, B" stages 1 : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>>
  %out = pk.channel "C" stages 1 : !pk.channel<!pk.tile<64x64xbf16>>
  pk.role loader attributes {group = "compute"} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    scf.for %i = %zero to %one step %one {
      pk.acquire %in : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>>
    }
  }
  pk.role consumer attributes {group = "compute"} {
    pk.acquire %out : !pk.channel<!pk.tile<64x64xbf16>>
  }
}

// -----

// The schedule says that results have one stage.
// CHECK-LABEL: pk.kernel @single
// CHECK: pk.channel "A, B" stages 13
// CHECK: pk.channel "C" stages 1
pk.kernel @single(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {schedule = {task_stages = 1 : i64}} {
  %in = pk.channel "A, B" stages 1 : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>>
  %out = pk.channel "C" stages 1 : !pk.channel<!pk.tile<64x64xbf16>>
  pk.role loader attributes {group = "compute"} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    scf.for %i = %zero to %one step %one {
      pk.acquire %in : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>>
    }
  }
  pk.role consumer attributes {group = "compute"} {
    pk.acquire %out : !pk.channel<!pk.tile<64x64xbf16>>
  }
}

// -----

// 128 x 256 x 64 takes the tensor cores 0.7 us, 128 x 256 x 128 1.4 us, which is longer than a load: two stages of 65552
// hide it, and the room of a third is for the next row of tiles.
// CHECK-LABEL: pk.kernel @slow
// CHECK: pk.channel "A" stages 2
// CHECK: pk.channel "B" stages 2
pk.kernel @slow(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {schedule = {}} {
  %once = pk.channel "A" stages 1 : !pk.channel<!pk.tile<128x128xbf16>>
  %in = pk.channel "B" stages 1 : !pk.channel<!pk.tile<128x256xbf16>>
  pk.role loader attributes {group = "compute"} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    pk.acquire %once : !pk.channel<!pk.tile<128x128xbf16>>
    scf.for %i = %zero to %one step %one {
      pk.acquire %in : !pk.channel<!pk.tile<128x256xbf16>>
    }
  }
  pk.role consumer attributes {group = "compute"} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %sum = pk.full 0.000000e+00 : f32 : !pk.tile<128x256xf32>
    %a = pk.consume %once : !pk.channel<!pk.tile<128x128xbf16>> -> !pk.tile<128x128xbf16>
    %all = scf.for %i = %zero to %one step %one iter_args(%c = %sum) -> (!pk.tile<128x256xf32>) {
      %b = pk.consume %in : !pk.channel<!pk.tile<128x256xbf16>> -> !pk.tile<128x256xbf16>
      %next = pk.mma %a, %b, %c : !pk.tile<128x128xbf16>, !pk.tile<128x256xbf16> -> !pk.tile<128x256xf32>
      pk.release %in : !pk.channel<!pk.tile<128x256xbf16>>
      scf.yield %next : !pk.tile<128x256xf32>
    }
    pk.release %once : !pk.channel<!pk.tile<128x128xbf16>>
  }
}

// -----

// The schedule decides for loops alone.
// CHECK-LABEL: pk.kernel @scheduled
// CHECK: pk.channel "A, B" stages 3
// CHECK: pk.channel "C" stages 2
pk.kernel @scheduled(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {schedule = {stages = 3 : i64}} {
  %in = pk.channel "A, B" stages 1 : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>>
  %out = pk.channel "C" stages 1 : !pk.channel<!pk.tile<64x64xbf16>>
  pk.role loader attributes {group = "compute"} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    scf.for %i = %zero to %one step %one {
      pk.acquire %in : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>>
    }
  }
  pk.role consumer attributes {group = "compute"} {
    pk.acquire %out : !pk.channel<!pk.tile<64x64xbf16>>
  }
}

// -----

// More stages than fit: 4 * 49168 + 65552.
// CHECK: error[PK435]: `refused` needs 262224 bytes of shared memory, and a CTA has 231424
pk.kernel @refused(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {schedule = {stages = 4 : i64}} {
  %in = pk.channel "A, B" stages 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
  %out = pk.channel "C" stages 1 : !pk.channel<!pk.tile<128x256xbf16>>
  pk.role loader attributes {group = "compute"} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    scf.for %i = %zero to %one step %one {
      pk.acquire %in : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
    }
  }
  pk.role consumer attributes {group = "compute"} {
    pk.acquire %out : !pk.channel<!pk.tile<128x256xbf16>>
  }
}

// -----

// The channel of a communicator keeps its stage, and takes that room from the others of its CTA: 231424 - 32784 leaves
// room for two stages of 65552 and 32 of 1040, the most that there are.
// CHECK-LABEL: pk.kernel @beside
// CHECK: pk.channel "L" stages 1
// CHECK: pk.channel "Q" stages 32
// CHECK: pk.channel "K" stages 2
pk.kernel @beside(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {schedule = {}} {
  %copied = pk.channel "L" stages 1 : !pk.channel<!pk.tile<128x128xbf16>>
  %q = pk.channel "Q" stages 1 : !pk.channel<!pk.tile<16x16xbf16>>
  %k = pk.channel "K" stages 1 : !pk.channel<!pk.tile<128x256xbf16>>
  pk.role communicator attributes {group = "compute"} {
    pk.acquire %copied : !pk.channel<!pk.tile<128x128xbf16>>
  }
  pk.role loader attributes {group = "compute"} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    scf.for %i = %zero to %one step %one {
      pk.acquire %q : !pk.channel<!pk.tile<16x16xbf16>>
      pk.acquire %k : !pk.channel<!pk.tile<128x256xbf16>>
    }
  }
}

// -----

// Without loops: as many as fit, up to four.
// CHECK-LABEL: pk.kernel @copied
// CHECK: pk.channel "X" stages 3
pk.kernel @copied(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {schedule = {}} {
  %in = pk.channel "X" stages 1 : !pk.channel<!pk.tile<128x256xbf16>>
  pk.role loader attributes {group = "compute"} {
    pk.acquire %in : !pk.channel<!pk.tile<128x256xbf16>>
  }
}
