// Each role gets its warps and registers, communicators possibly separate SMs.
// RUN: pkc-opt %s -p pk-plan-warps --split-input-file | filecheck %s

// Two warpgroups of 64 rows each; who moves tiles shares a third one, the communicator too.
// (65536 - 128 * 40) / 256 registers are left for each thread that computes: 232 is the multiple of 8 below.
// CHECK-LABEL: pk.kernel @beside
// CHECK-SAME: comm_sms = 0 : i64
// CHECK: pk.role communicator warps 2 attributes {group = "compute", first_warp = 8 : i64, registers = 40 : i64}
// CHECK: pk.role loader warps 1 attributes {group = "compute", first_warp = 10 : i64, registers = 40 : i64}
// CHECK: pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64}
// CHECK: pk.role storer warps 1 attributes {group = "compute", first_warp = 11 : i64, registers = 40 : i64}
pk.kernel @beside(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {schedule = {}} {
  %c = pk.channel "X" stages 2 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
  pk.role communicator {
    %rank = pk.rank
  }
  pk.role loader {
    %rank = pk.rank
  }
  pk.role consumer {
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x256xf32>
    %a, %b = pk.consume %c : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>
    %sum = pk.mma %a, %b, %acc : !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16> -> !pk.tile<128x256xf32>
    pk.release %c : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
  }
  pk.role storer {
    %rank = pk.rank
  }
}

// -----

// separate SMs; there it has as many warpgroups as compute elsewhere, as a CTA is as large on every SM; of three it
// takes two, which share the chunks of a tile evenly.
// CHECK-LABEL: pk.kernel @separate
// CHECK-SAME: comm_sms = 20 : i64
// CHECK: pk.role communicator warps 8 attributes {group = "communicate", first_warp = 0 : i64, registers = 232 : i64}
// CHECK: pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64}
// CHECK: pk.role storer warps 1 attributes {group = "compute", first_warp = 8 : i64, registers = 40 : i64}
pk.kernel @separate(%X: !pk.private<[M, N], f32> {pk.name = "X"}) attributes {schedule = {comm_sms = 20 : i64, consumers = 2 : i64}} {
  %zero = arith.constant 0 : index
  %m = pk.block[%zero] : !pk.block<M by 64>
  %n = pk.block[%zero] : !pk.block<N by 64>
  pk.role communicator {
    %x = pk.load %X[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<64x64xf32>
    %y = pk.add %x, %x : !pk.tile<64x64xf32>
    pk.store %y, %X[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.tile<64x64xf32>, !pk.private<[M, N], f32>
  }
  pk.role consumer {
    %x = pk.load %X[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<64x64xf32>
    %y = pk.add %x, %x : !pk.tile<64x64xf32>
  }
  pk.role storer {
    %rank = pk.rank
  }
}

// -----

// A communicator that adds needs registers, which the consumers give; three warpgroups, as the schedule says.
// (65536 - 128 * 80) / 384 = 144.
// CHECK-LABEL: pk.kernel @adding
// CHECK-SAME: comm_sms = 0 : i64
// CHECK: pk.role communicator warps 2 attributes {group = "compute", first_warp = 12 : i64, registers = 128 : i64}
// CHECK: pk.role consumer warps 12 attributes {group = "compute", first_warp = 0 : i64, registers = 128 : i64}
// CHECK: pk.role storer warps 1 attributes {group = "compute", first_warp = 14 : i64, registers = 128 : i64}
pk.kernel @adding(%X: !pk.private<[M, N], f32> {pk.name = "X"}) attributes {schedule = {consumers = 3 : i64}} {
  pk.role communicator {
    %zero = arith.constant 0 : index
    %m = pk.block[%zero] : !pk.block<M by 64>
    %n = pk.block[%zero] : !pk.block<N by 64>
    %x = pk.load %X[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<64x64xf32>
    %y = pk.add %x, %x : !pk.tile<64x64xf32>
    pk.store %y, %X[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.tile<64x64xf32>, !pk.private<[M, N], f32>
  }
  pk.role consumer {
    %rank = pk.rank
  }
  pk.role storer {
    %rank = pk.rank
  }
}

// -----

// Two communicators and two others fill one warpgroup. Positions of rows in a table are addresses, not tiles to add.
// CHECK-LABEL: pk.kernel @two
// CHECK: pk.role communicator warps 1 attributes {group = "compute", first_warp = 0 : i64, registers = 40 : i64}
// CHECK: pk.role communicator warps 1 attributes {group = "compute", first_warp = 1 : i64, registers = 40 : i64}
// CHECK: pk.role loader warps 1 attributes {group = "compute", first_warp = 2 : i64, registers = 40 : i64}
// CHECK: pk.role storer warps 1 attributes {group = "compute", first_warp = 3 : i64, registers = 40 : i64}
pk.kernel @two() attributes {schedule = {}} {
  pk.role communicator {
    %rows = pk.full 1 : i32 : !pk.tile<64xi32>
  }
  pk.role communicator {
    %rank = pk.rank
  }
  pk.role loader {
    %rank = pk.rank
  }
  pk.role storer {
    %rank = pk.rank
  }
}

// -----

// Nothing but communication: the SMs that its author gave it, or all of them.
// CHECK-LABEL: pk.kernel @given
// CHECK-SAME: comm_sms = 16 : i64
// CHECK: pk.role communicator sms 16 warps 2 attributes {group = "communicate", first_warp = 0 : i64, registers = 112 : i64}
pk.kernel @given() attributes {schedule = {}} {
  pk.role communicator sms 16 {
    %rank = pk.rank
  }
}

// -----

// CHECK-LABEL: pk.kernel @all
// CHECK-SAME: comm_sms = 0 : i64
// CHECK: pk.role communicator warps 2 attributes {group = "compute", first_warp = 0 : i64, registers = 40 : i64}
pk.kernel @all() attributes {schedule = {}} {
  pk.role communicator {
    %rank = pk.rank
  }
}

// -----

// Copies within a GPU take few registers, whatever the array.
// CHECK-LABEL: pk.kernel @heads
// CHECK: pk.role loader warps 1 attributes {group = "compute", first_warp = 8 : i64, registers = 40 : i64}
// CHECK: pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64}
pk.kernel @heads(%X: !pk.private<[B, H, S, 64], f32> {pk.name = "X"}) attributes {derived, schedule = {consumers = 2 : i64}} {
  %zero = arith.constant 0 : index
  %s = pk.block[%zero] : !pk.block<S by 16>
  %d = pk.block[%zero] : !pk.block<64 by 64>
  pk.role loader {
    %x = pk.load %X[%zero, %zero, %s, %d : index, index, !pk.block<S by 16>, !pk.block<64 by 64>] : !pk.private<[B, H, S, 64], f32> -> !pk.tile<16x64xf32>
  }
  pk.role consumer {
    %rank = pk.rank
  }
}

// -----

// Those of many tiles need more.
// CHECK-LABEL: pk.kernel @many
// CHECK: pk.role loader warps 1 attributes {group = "compute", first_warp = 8 : i64, registers = 56 : i64}
// CHECK: pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 224 : i64}
pk.kernel @many(%X: !pk.private<[B, H, S, 64], f32> {pk.name = "X"}) attributes {derived, schedule = {consumers = 2 : i64}} {
  %zero = arith.constant 0 : index
  %s = pk.block[%zero] : !pk.block<S by 16>
  %d = pk.block[%zero] : !pk.block<64 by 64>
  pk.role loader {
    %x0 = pk.load %X[%zero, %zero, %s, %d : index, index, !pk.block<S by 16>, !pk.block<64 by 64>] : !pk.private<[B, H, S, 64], f32> -> !pk.tile<16x64xf32>
    %x1 = pk.load %X[%zero, %zero, %s, %d : index, index, !pk.block<S by 16>, !pk.block<64 by 64>] : !pk.private<[B, H, S, 64], f32> -> !pk.tile<16x64xf32>
    %x2 = pk.load %X[%zero, %zero, %s, %d : index, index, !pk.block<S by 16>, !pk.block<64 by 64>] : !pk.private<[B, H, S, 64], f32> -> !pk.tile<16x64xf32>
    %x3 = pk.load %X[%zero, %zero, %s, %d : index, index, !pk.block<S by 16>, !pk.block<64 by 64>] : !pk.private<[B, H, S, 64], f32> -> !pk.tile<16x64xf32>
    %x4 = pk.load %X[%zero, %zero, %s, %d : index, index, !pk.block<S by 16>, !pk.block<64 by 64>] : !pk.private<[B, H, S, 64], f32> -> !pk.tile<16x64xf32>
    %x5 = pk.load %X[%zero, %zero, %s, %d : index, index, !pk.block<S by 16>, !pk.block<64 by 64>] : !pk.private<[B, H, S, 64], f32> -> !pk.tile<16x64xf32>
    %x6 = pk.load %X[%zero, %zero, %s, %d : index, index, !pk.block<S by 16>, !pk.block<64 by 64>] : !pk.private<[B, H, S, 64], f32> -> !pk.tile<16x64xf32>
    %x7 = pk.load %X[%zero, %zero, %s, %d : index, index, !pk.block<S by 16>, !pk.block<64 by 64>] : !pk.private<[B, H, S, 64], f32> -> !pk.tile<16x64xf32>
    %x8 = pk.load %X[%zero, %zero, %s, %d : index, index, !pk.block<S by 16>, !pk.block<64 by 64>] : !pk.private<[B, H, S, 64], f32> -> !pk.tile<16x64xf32>
    %x9 = pk.load %X[%zero, %zero, %s, %d : index, index, !pk.block<S by 16>, !pk.block<64 by 64>] : !pk.private<[B, H, S, 64], f32> -> !pk.tile<16x64xf32>
    %x10 = pk.load %X[%zero, %zero, %s, %d : index, index, !pk.block<S by 16>, !pk.block<64 by 64>] : !pk.private<[B, H, S, 64], f32> -> !pk.tile<16x64xf32>
    %x11 = pk.load %X[%zero, %zero, %s, %d : index, index, !pk.block<S by 16>, !pk.block<64 by 64>] : !pk.private<[B, H, S, 64], f32> -> !pk.tile<16x64xf32>
  }
  pk.role consumer {
    %rank = pk.rank
  }
}

// -----

// What consumers cannot have goes to the others.
// CHECK-LABEL: pk.kernel @one_warpgroup
// CHECK: pk.role loader warps 1 attributes {group = "compute", first_warp = 4 : i64, registers = 240 : i64}
// CHECK: pk.role consumer warps 4 attributes {group = "compute", first_warp = 0 : i64, registers = 240 : i64}
pk.kernel @one_warpgroup(%X: !pk.private<[B, H, S, 64], f32> {pk.name = "X"}) attributes {derived} {
  %zero = arith.constant 0 : index
  %s = pk.block[%zero] : !pk.block<S by 16>
  %d = pk.block[%zero] : !pk.block<64 by 64>
  pk.role loader {
    %x = pk.load %X[%zero, %zero, %s, %d : index, index, !pk.block<S by 16>, !pk.block<64 by 64>] : !pk.private<[B, H, S, 64], f32> -> !pk.tile<16x64xf32>
  }
  pk.role consumer {
    %rank = pk.rank
  }
}

// Copies from and to arrays of four dimensions of ranks take more registers: 40, and 8 for each dimension beyond two.
// CHECK-LABEL: pk.kernel @heads_of_ranks
// CHECK: pk.role loader warps 1 attributes {group = "compute", first_warp = 8 : i64, registers = 56 : i64}
// CHECK: pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 224 : i64}
pk.kernel @heads_of_ranks(%X: !pk.pgl<[B, H, S, 64], f32, shard 1> {pk.name = "X"}) attributes {derived, schedule = {consumers = 2 : i64}} {
  %zero = arith.constant 0 : index
  %s = pk.block[%zero] : !pk.block<S by 16>
  %d = pk.block[%zero] : !pk.block<64 by 64>
  pk.role loader {
    %x = pk.load %X[%zero, %zero, %s, %d : index, index, !pk.block<S by 16>, !pk.block<64 by 64>] : !pk.pgl<[B, H, S, 64], f32, shard 1> -> !pk.tile<16x64xf32>
  }
  pk.role consumer {
    %rank = pk.rank
  }
}

// -----

// Without roles there is nothing to plan.
// CHECK-LABEL: pk.kernel @tile
// CHECK-NOT: comm_sms
pk.kernel @tile() {
}

// -----

// A copy engine has no warps.
// CHECK-LABEL: pk.kernel @copied
// CHECK: pk.role copy_engine {
// CHECK: pk.role loader warps 1
pk.kernel @copied(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) attributes {derived} {
  %zero = arith.constant 0 : index
  %m = pk.block[%zero] : !pk.block<M by 16>
  pk.role copy_engine {
    pk.copy %X[%m : !pk.block<M by 16>] along [0] to %Y[%m : !pk.block<M by 16>] along [0] : !pk.private<[M], f32> to !pk.private<[M], f32>
  }
  pk.role loader {
    %x = pk.load %Y[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
  }
}
