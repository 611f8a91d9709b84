// Roles that fit together pass; tests/errors has those that do not (PK460...).
// RUN: pkc-opt %s -p pk-check-roles --split-input-file --verify-diagnostics | filecheck %s
// CHECK: pk.kernel @k

pk.kernel @k(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) {
  %c = pk.channel "X" stages 2 : !pk.channel<!pk.tile<16xf32>>
  %n = pk.block_count <M by 16>
  pk.role loader {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      pk.acquire %c : !pk.channel<!pk.tile<16xf32>>
      %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      pk.commit %c, %x : !pk.channel<!pk.tile<16xf32>>, !pk.tile<16xf32>
    }
  }
  pk.role storer {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %x = pk.consume %c : !pk.channel<!pk.tile<16xf32>> -> !pk.tile<16xf32>
      pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
      pk.release %c : !pk.channel<!pk.tile<16xf32>>
    }
  }
}

// -----

// Each rank signals each counter once in a launch, whatever the order of its tasks: a wait for as many as there are
// ranks is right for all sizes. So are waits for a signal of each CTA of each rank.
// CHECK: pk.kernel @counted
pk.kernel @counted(%arrived: !pk.signal<[M by 16]> {pk.name = "arrived"}, %entered: !pk.signal<[1]> {pk.name = "entered"}) attributes {derived} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rank = pk.rank
  %ranks = pk.dim "ranks"
  %epoch = pk.epoch
  pk.role storer {
    pk.signal_all %entered[%zero] by %one : !pk.signal<[1]>
    %n = pk.block_count <M by 16> sharded
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %0 = pk.rotate %i by %rank of %n
      %m = pk.block[%0] sharded : !pk.block<M by 16>
      %owner = pk.owner %m : !pk.block<M by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.signal %arrived at %owner[%number] by %one : !pk.signal<[M by 16]>
    }
  }
  pk.role communicator {
    %ctas = pk.ctas storer
    %each = arith.muli %ctas, %epoch : index
    %all = arith.muli %ranks, %each : index
    pk.wait %entered[%zero] for %all : !pk.signal<[1]>
    %own = pk.block_count <M by 16> of %rank sharded
    %wanted = arith.muli %ranks, %epoch : index
    pk.tasks (%i) in (%own) attributes {per_cta} {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.wait %arrived[%number] for %wanted : !pk.signal<[M by 16]>
    }
  }
}

// -----

// One counter for all that a rank owns: as many signals as it has blocks, from each rank. An epoch left out.
// CHECK: error[PK471]: `arrived` is awaited for blocks(M by 16) of this rank * ranks, and gets blocks(M by 16) of this rank * ranks * epoch
pk.kernel @whole(%arrived: !pk.signal<[1]> {pk.name = "arrived"}) attributes {derived} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rank = pk.rank
  %ranks = pk.dim "ranks"
  pk.role storer {
    %n = pk.block_count <M by 16> sharded
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %owner = pk.owner %m : !pk.block<M by 16>
      pk.signal %arrived at %owner[%zero] by %one : !pk.signal<[1]>
    }
  }
  pk.role communicator {
    %own = pk.block_count <M by 16> of %rank sharded
    %wanted = arith.muli %ranks, %own : index
    pk.wait %arrived[%zero] for %wanted : !pk.signal<[1]>
  }
}

// -----

// What it waits for is read from memory: nothing can be said for all sizes.
// CHECK: pk.kernel @unknown
pk.kernel @unknown(%count: !pk.private<[E], i32> {pk.name = "count"}, %arrived: !pk.signal<[1]> {pk.name = "arrived"}) attributes {derived} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rank = pk.rank
  pk.role storer {
    pk.signal %arrived at %rank[%zero] by %one : !pk.signal<[1]>
  }
  pk.role communicator {
    %wanted = pk.read %count[%zero] : !pk.private<[E], i32>
    pk.wait %arrived[%zero] for %wanted : !pk.signal<[1]>
  }
}

// -----

// An accumulator of 128 registers for each of 256 threads, and the tile that it becomes in its place.
// CHECK: pk.kernel @registers
pk.kernel @registers() attributes {comm_sms = 0 : i64} {
  %c = pk.channel "A, B" stages 2 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 8 : i64, registers = 40 : i64} {
    pk.acquire %c : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
    %a = pk.full 1.000000e+00 : bf16 : !pk.tile<128x64xbf16>
    %b = pk.full 1.000000e+00 : bf16 : !pk.tile<64x256xbf16>
    pk.commit %c, %a, %b : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>, !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>
  }
  pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 152 : i64} {
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x256xf32>
    %a, %b = pk.consume %c : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>
    %sum = pk.mma %a, %b, %acc : !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16> -> !pk.tile<128x256xf32>
    pk.release %c : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
    %out = pk.cast %sum : !pk.tile<128x256xf32> -> !pk.tile<128x256xbf16>
  }
}

// -----

// The same with 8 registers less.
// CHECK: error[PK468]: tiles of 32768 registers live here, 128 for each of 256 threads, which have 144
pk.kernel @fewer() attributes {comm_sms = 0 : i64} {
  %c = pk.channel "A, B" stages 2 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 8 : i64, registers = 40 : i64} {
    pk.acquire %c : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
    %a = pk.full 1.000000e+00 : bf16 : !pk.tile<128x64xbf16>
    %b = pk.full 1.000000e+00 : bf16 : !pk.tile<64x256xbf16>
    pk.commit %c, %a, %b : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>, !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>
  }
  pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 144 : i64} {
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x256xf32>
    %a, %b = pk.consume %c : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>
    %sum = pk.mma %a, %b, %acc : !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16> -> !pk.tile<128x256xf32>
    pk.release %c : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
    %out = pk.cast %sum : !pk.tile<128x256xf32> -> !pk.tile<128x256xbf16>
  }
}

// -----

// An MMA in pieces reads its stages where its product is used.
// CHECK: error[PK463]: a tile of the channel of `A, B` is used after its stage is released
pk.kernel @pieces() attributes {comm_sms = 0 : i64} {
  %c = pk.channel "A, B" stages 2 : !pk.channel<!pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 8 : i64, registers = 40 : i64} {
    pk.acquire %c : !pk.channel<!pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>>
    %a = pk.full 0.000000e+00 : bf16 : !pk.tile<256x64xbf16>
    %b = pk.full 0.000000e+00 : bf16 : !pk.tile<64x128xbf16>
    pk.commit %c, %a, %b : !pk.channel<!pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>>, !pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>
  }
  pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    %zero = pk.full 0.000000e+00 : f32 : !pk.tile<256x128xf32>
    %a, %b = pk.consume %c : !pk.channel<!pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>> -> !pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>
    %p = pk.mma %a, %b, %zero {pieces = 2 : i64} : !pk.tile<256x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<256x128xf32>
    pk.release %c : !pk.channel<!pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>>
    %q = pk.add %p, %p {chain = 0 : i64} : !pk.tile<256x128xf32>
  }
}

// -----

// A release that is deferred in a loop frees the stage of the iteration before.
// CHECK-NOT: error
// CHECK: pk.kernel @freed_later
pk.kernel @freed_later() attributes {comm_sms = 0 : i64} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %c = pk.channel "A" stages 4 : !pk.channel<!pk.tile<64x64xf32>>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 4 : i64, registers = 40 : i64} {
    scf.for %i = %zero to %four step %one {
      %t = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
      pk.acquire %c : !pk.channel<!pk.tile<64x64xf32>>
      pk.commit %c, %t : !pk.channel<!pk.tile<64x64xf32>>, !pk.tile<64x64xf32>
    }
  }
  pk.role consumer warps 4 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    scf.for %i = %zero to %four step %one {
      %a = pk.consume %c : !pk.channel<!pk.tile<64x64xf32>> -> !pk.tile<64x64xf32>
      pk.release %c deferred 1 : !pk.channel<!pk.tile<64x64xf32>>
      %s = pk.row_sum %a : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
    }
    pk.release_deferred %c : !pk.channel<!pk.tile<64x64xf32>>
  }
}

// -----

// The next release of the same iteration frees it.
// CHECK: error[PK463]: a tile of the channel of `A` is used after its stage is released
pk.kernel @freed_by_the_next() attributes {comm_sms = 0 : i64} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %c = pk.channel "A" stages 4 : !pk.channel<!pk.tile<64x64xf32>>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 4 : i64, registers = 40 : i64} {
    scf.for %i = %zero to %four step %one {
      %t = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
      pk.acquire %c : !pk.channel<!pk.tile<64x64xf32>>
      pk.commit %c, %t : !pk.channel<!pk.tile<64x64xf32>>, !pk.tile<64x64xf32>
      pk.acquire %c : !pk.channel<!pk.tile<64x64xf32>>
      pk.commit %c, %t : !pk.channel<!pk.tile<64x64xf32>>, !pk.tile<64x64xf32>
    }
  }
  pk.role consumer warps 4 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    scf.for %i = %zero to %four step %one {
      %a = pk.consume %c : !pk.channel<!pk.tile<64x64xf32>> -> !pk.tile<64x64xf32>
      pk.release %c deferred 1 : !pk.channel<!pk.tile<64x64xf32>>
      %d = pk.consume %c : !pk.channel<!pk.tile<64x64xf32>> -> !pk.tile<64x64xf32>
      pk.release %c deferred 1 : !pk.channel<!pk.tile<64x64xf32>>
      %s = pk.row_sum %a : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
    }
    pk.release_deferred %c : !pk.channel<!pk.tile<64x64xf32>>
  }
}
