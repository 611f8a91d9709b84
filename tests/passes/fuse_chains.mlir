// Operations on elements as chains in front of what takes their result, where their tiles would not fit.
// RUN: pkc-opt %s -p pk-fuse-chains --split-input-file | filecheck %s

// Of each of 128 threads, %acc and %s would take 256 registers. What is cast is used by two chains, and made for each.
// CHECK-LABEL: pk.kernel @epilogue
// CHECK: %[[S:.*]] = pk.consume %{{.*}} -> !pk.tile<64x256xbf16>{{$}}
// CHECK: pk.commit %{{.*}}, %{{.*}} {chain = 0 : i64}
// CHECK-NOT: pk.release
// CHECK: pk.acquire
// CHECK: %[[W:.*]] = pk.cast %[[S]] {chain = 1 : i64}
// CHECK-NEXT: %[[X:.*]] = pk.add %{{.*}}, %[[W]] {chain = 1 : i64}
// CHECK-NEXT: %[[G:.*]] = pk.sigmoid %[[X]] {chain = 1 : i64}
// CHECK-NEXT: pk.mul %[[X]], %[[G]] {chain = 1 : i64}
// CHECK-NEXT: pk.commit %{{.*}}, %{{.*}} {chain = 1 : i64}
// CHECK-NEXT: pk.release
pk.kernel @epilogue() {
  %0 = pk.channel "R" stages 1 : !pk.channel<!pk.tile<64x256xbf16>>
  %1 = pk.channel "first" stages 1 : !pk.channel<!pk.tile<64x256xf32>>
  %2 = pk.channel "second" stages 1 : !pk.channel<!pk.tile<64x256xf32>>
  %3 = pk.channel "A, B" stages 1 : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x256xbf16>>
  pk.role consumer warps 4 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    %a, %b = pk.consume %3 : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x256xbf16>> -> !pk.tile<64x64xbf16>, !pk.tile<64x256xbf16>
    %zero = pk.full 0.000000e+00 : f32 : !pk.tile<64x256xf32>
    %acc = pk.mma %a, %b, %zero : !pk.tile<64x64xbf16>, !pk.tile<64x256xbf16> -> !pk.tile<64x256xf32>
    %s = pk.consume %0 : !pk.channel<!pk.tile<64x256xbf16>> -> !pk.tile<64x256xbf16>
    %r = pk.cast %s : !pk.tile<64x256xbf16> -> !pk.tile<64x256xf32>
    %x = pk.add %acc, %r : !pk.tile<64x256xf32>
    %g = pk.sigmoid %x : !pk.tile<64x256xf32>
    %y = pk.mul %x, %g : !pk.tile<64x256xf32>
    %z = pk.mul %acc, %r : !pk.tile<64x256xf32>
    pk.release %0 : !pk.channel<!pk.tile<64x256xbf16>>
    pk.acquire %1 : !pk.channel<!pk.tile<64x256xf32>>
    pk.commit %1, %z : !pk.channel<!pk.tile<64x256xf32>>, !pk.tile<64x256xf32>
    pk.acquire %2 : !pk.channel<!pk.tile<64x256xf32>>
    pk.commit %2, %y : !pk.channel<!pk.tile<64x256xf32>>, !pk.tile<64x256xf32>
  }
}

// -----

// What two reductions need has registers where these suffice, and is computed twice where they do not.
// CHECK-LABEL: pk.kernel @enough
// CHECK: %[[P:.*]] = pk.exp
// CHECK-NEXT: pk.row_sum %[[P]] {chain = 0 : i64}
// CHECK-NOT: pk.exp %
// CHECK: pk.mul %[[P]],
pk.kernel @enough() {
  %0 = pk.channel "X" stages 1 : !pk.channel<!pk.tile<64x192xf32>>
  %1 = pk.channel "sums" stages 1 : !pk.channel<!pk.tile<64xf32>, !pk.tile<64xf32>>
  pk.role consumer warps 4 attributes {group = "compute", first_warp = 0 : i64, registers = 152 : i64} {
    %x = pk.consume %0 : !pk.channel<!pk.tile<64x192xf32>> -> !pk.tile<64x192xf32>
    %p = pk.exp %x : !pk.tile<64x192xf32>
    %s = pk.row_sum %p : !pk.tile<64x192xf32> -> !pk.tile<64xf32>
    %q = pk.exp2 %x : !pk.tile<64x192xf32>
    %pq = pk.mul %p, %q : !pk.tile<64x192xf32>
    %t = pk.row_sum %pq : !pk.tile<64x192xf32> -> !pk.tile<64xf32>
    pk.release %0 : !pk.channel<!pk.tile<64x192xf32>>
    pk.commit %1, %s, %t : !pk.channel<!pk.tile<64xf32>, !pk.tile<64xf32>>, !pk.tile<64xf32>, !pk.tile<64xf32>
  }
}

// -----

// CHECK-LABEL: pk.kernel @repeated
// CHECK: %[[P:.*]] = pk.exp %{{.*}} {chain = 0 : i64}
// CHECK-NEXT: pk.row_sum %[[P]] {chain = 0 : i64}
// CHECK-NEXT: %[[AGAIN:.*]] = pk.exp %{{.*}} {chain = 1 : i64}
// CHECK-NEXT: %[[Q:.*]] = pk.exp2
// CHECK-NEXT: pk.mul %[[AGAIN]], %[[Q]] {chain = 1 : i64}
pk.kernel @repeated() {
  %0 = pk.channel "X" stages 1 : !pk.channel<!pk.tile<64x192xf32>>
  %1 = pk.channel "sums" stages 1 : !pk.channel<!pk.tile<64xf32>, !pk.tile<64xf32>>
  pk.role consumer warps 4 attributes {group = "compute", first_warp = 0 : i64, registers = 104 : i64} {
    %x = pk.consume %0 : !pk.channel<!pk.tile<64x192xf32>> -> !pk.tile<64x192xf32>
    %p = pk.exp %x : !pk.tile<64x192xf32>
    %s = pk.row_sum %p : !pk.tile<64x192xf32> -> !pk.tile<64xf32>
    %q = pk.exp2 %x : !pk.tile<64x192xf32>
    %pq = pk.mul %p, %q : !pk.tile<64x192xf32>
    %t = pk.row_sum %pq : !pk.tile<64x192xf32> -> !pk.tile<64xf32>
    pk.release %0 : !pk.channel<!pk.tile<64x192xf32>>
    pk.commit %1, %s, %t : !pk.channel<!pk.tile<64xf32>, !pk.tile<64xf32>>, !pk.tile<64xf32>, !pk.tile<64xf32>
  }
}

// -----

// What fits stays as it is.
// CHECK-LABEL: pk.kernel @fits
// CHECK-NOT: chain
pk.kernel @fits() {
  %0 = pk.channel "X" stages 1 : !pk.channel<!pk.tile<64x64xf32>>
  %1 = pk.channel "sums" stages 1 : !pk.channel<!pk.tile<64xf32>>
  pk.role consumer warps 4 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    %x = pk.consume %0 : !pk.channel<!pk.tile<64x64xf32>> -> !pk.tile<64x64xf32>
    %p = pk.exp %x : !pk.tile<64x64xf32>
    %s = pk.row_sum %p : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
    pk.release %0 : !pk.channel<!pk.tile<64x64xf32>>
    pk.commit %1, %s : !pk.channel<!pk.tile<64xf32>>, !pk.tile<64xf32>
  }
}

// -----

// What a loop carries is in registers when its end comes, so that the stage is released before; what takes a chain as
// the last operation of a block reads the stage, which is released behind it.
// CHECK-LABEL: pk.kernel @ends
// CHECK: pk.add {{.*}} {chain = 0 : i64}
// CHECK-NEXT: pk.release %0
// CHECK-NEXT: scf.yield
// CHECK: %[[LAST:.*]] = pk.consume %0
// CHECK: pk.exp
// CHECK: pk.commit %1,
// CHECK-NEXT: pk.release %0
pk.kernel @ends() {
  %0 = pk.channel "X" stages 1 : !pk.channel<!pk.tile<64x192xf32>>
  %1 = pk.channel "sums" stages 1 : !pk.channel<!pk.tile<64x192xf32>>
  pk.role consumer warps 4 attributes {group = "compute", first_warp = 0 : i64, registers = 104 : i64} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %many = pk.dim "N"
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<64x192xf32>
    %sum = scf.for %i = %zero to %many step %one iter_args(%a = %acc) -> (!pk.tile<64x192xf32>) {
      %x = pk.consume %0 : !pk.channel<!pk.tile<64x192xf32>> -> !pk.tile<64x192xf32>
      %p = pk.exp %x : !pk.tile<64x192xf32>
      pk.release %0 : !pk.channel<!pk.tile<64x192xf32>>
      %b = pk.add %a, %p : !pk.tile<64x192xf32>
      scf.yield %b : !pk.tile<64x192xf32>
    }
    %y = pk.consume %0 : !pk.channel<!pk.tile<64x192xf32>> -> !pk.tile<64x192xf32>
    %q = pk.exp %y : !pk.tile<64x192xf32>
    pk.release %0 : !pk.channel<!pk.tile<64x192xf32>>
    pk.commit %1, %q : !pk.channel<!pk.tile<64x192xf32>>, !pk.tile<64x192xf32>
  }
}

// -----

// Where everything is repeated, one chain alone is computed with the pieces of an MMA; what another one needs of it has
// registers.
// CHECK-LABEL: pk.kernel @two
// CHECK: %[[P:.*]] = pk.mma {{.*}} {pieces = 2 : i64}
// CHECK: %[[Q:.*]] = pk.mul %[[P]], %{{.*}} {chain = 0 : i64}
// CHECK-NEXT: pk.neg %[[Q]] {chain = 0 : i64}
// CHECK-NOT: pk.mul
// CHECK: pk.add %{{.*}}, %[[Q]] {chain = 1 : i64}
pk.kernel @two(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %0 = pk.channel "A, B" stages 2 : !pk.channel<!pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>>
  %1 = pk.channel "s" stages 2 : !pk.channel<!pk.tile<256xf32>>
  pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 208 : i64} {
    %zero = pk.full 0.000000e+00 : f32 : !pk.tile<256x128xf32>
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i9 = arith.constant 9 : index
    %sum = scf.for %i = %i0 to %i9 step %i1 iter_args(%acc = %zero) -> (!pk.tile<256x128xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>> -> !pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>
      %s = pk.consume %1 : !pk.channel<!pk.tile<256xf32>> -> !pk.tile<256xf32>
      %m = pk.block[%i] : !pk.block<M by 256>
      %n = pk.block[%i] : !pk.block<N by 128>
      %two = pk.broadcast %s axes [0] : !pk.tile<256xf32> -> !pk.tile<256x128xf32>
      pk.release %1 : !pk.channel<!pk.tile<256xf32>>
      %p = pk.mma %a, %b, %zero : !pk.tile<256x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<256x128xf32>
      pk.release %0 : !pk.channel<!pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>>
      %q = pk.mul %p, %two : !pk.tile<256x128xf32>
      %t = pk.neg %q : !pk.tile<256x128xf32>
      pk.store %t, %C[%m, %n : !pk.block<M by 256>, !pk.block<N by 128>] : !pk.tile<256x128xf32>, !pk.private<[M, N], f32>
      %next = pk.add %acc, %q : !pk.tile<256x128xf32>
      scf.yield %next : !pk.tile<256x128xf32>
    }
  }
}

// -----

// With fewer registers what a chain needs is repeated for it, behind the MMA that is in pieces by then: its stages are
// released behind the chain all the same.
// CHECK-LABEL: pk.kernel @fewer
// CHECK: %[[A:.*]], %[[B:.*]] = pk.consume
// CHECK-NEXT: %[[P:.*]] = pk.mma %[[A]], %[[B]], %{{.*}} {pieces = 2 : i64}
// CHECK: pk.broadcast %{{.*}} axes [0] {chain = 0 : i64}
// CHECK-NEXT: %[[Q:.*]] = pk.mul %[[P]], %{{.*}} {chain = 0 : i64}
// CHECK-NEXT: pk.add %{{.*}}, %[[Q]] {chain = 0 : i64}
// CHECK-NEXT: pk.release %1
// CHECK-NEXT: pk.release %0
pk.kernel @fewer() {
  %0 = pk.channel "A, B" stages 2 : !pk.channel<!pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>>
  %1 = pk.channel "s" stages 2 : !pk.channel<!pk.tile<256xf32>>
  pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 208 : i64} {
    %zero = pk.full 0.000000e+00 : f32 : !pk.tile<256x128xf32>
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i9 = arith.constant 9 : index
    %sum = scf.for %i = %i0 to %i9 step %i1 iter_args(%acc = %zero) -> (!pk.tile<256x128xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>> -> !pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>
      %s = pk.consume %1 : !pk.channel<!pk.tile<256xf32>> -> !pk.tile<256xf32>
      %two = pk.broadcast %s axes [0] : !pk.tile<256xf32> -> !pk.tile<256x128xf32>
      pk.release %1 : !pk.channel<!pk.tile<256xf32>>
      %p = pk.mma %a, %b, %zero : !pk.tile<256x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<256x128xf32>
      pk.release %0 : !pk.channel<!pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>>
      %q = pk.mul %p, %two : !pk.tile<256x128xf32>
      %next = pk.add %acc, %q : !pk.tile<256x128xf32>
      scf.yield %next : !pk.tile<256x128xf32>
    }
  }
}

// -----

// Beside the accumulator there is room for half of a product: the MMA is computed in two pieces, the first as soon as
// its operands are there, while the scales are awaited, the other when the chain needs it, so that its stages are
// released behind the chain.
// CHECK-LABEL: pk.kernel @pieces
// CHECK: scf.for
// CHECK: %[[A:.*]], %[[B:.*]] = pk.consume
// CHECK-NEXT: %[[P:.*]] = pk.mma %[[A]], %[[B]], %{{.*}} {pieces = 2 : i64}
// CHECK-NEXT: %[[S:.*]] = pk.consume %1
// CHECK-NEXT: pk.broadcast %[[S]] axes [0]
// CHECK-NEXT: pk.release %1
// CHECK-NEXT: %[[Q:.*]] = pk.mul %[[P]], %{{.*}} {chain = 0 : i64}
// CHECK-NEXT: pk.add %{{.*}}, %[[Q]] {chain = 0 : i64}
// CHECK-NEXT: pk.release %0
// CHECK-LABEL: pk.kernel @alone
// CHECK: pk.mma {{.*}} {pieces = 2 : i64}
pk.kernel @pieces() {
  %0 = pk.channel "A, B" stages 2 : !pk.channel<!pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>>
  %1 = pk.channel "s" stages 2 : !pk.channel<!pk.tile<256xf32>>
  pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    %zero = pk.full 0.000000e+00 : f32 : !pk.tile<256x128xf32>
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i9 = arith.constant 9 : index
    %sum = scf.for %i = %i0 to %i9 step %i1 iter_args(%acc = %zero) -> (!pk.tile<256x128xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>> -> !pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>
      %s = pk.consume %1 : !pk.channel<!pk.tile<256xf32>> -> !pk.tile<256xf32>
      %two = pk.broadcast %s axes [0] : !pk.tile<256xf32> -> !pk.tile<256x128xf32>
      pk.release %1 : !pk.channel<!pk.tile<256xf32>>
      %p = pk.mma %a, %b, %zero : !pk.tile<256x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<256x128xf32>
      pk.release %0 : !pk.channel<!pk.tile<256x64xbf16>, !pk.tile<64x128xbf16>>
      %q = pk.mul %p, %two : !pk.tile<256x128xf32>
      %next = pk.add %acc, %q : !pk.tile<256x128xf32>
      scf.yield %next : !pk.tile<256x128xf32>
    }
  }
}
pk.kernel @alone() {
  %0 = pk.channel "A, B" stages 2 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
  pk.role consumer warps 4 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    %zero = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
    %two = pk.full 2.000000e+00 : f32 : !pk.tile<128x128xf32>
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i9 = arith.constant 9 : index
    %sum = scf.for %i = %i0 to %i9 step %i1 iter_args(%acc = %zero) -> (!pk.tile<128x128xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>
      %p = pk.mma %a, %b, %zero : !pk.tile<128x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<128x128xf32>
      pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
      %q = pk.mul %p, %two : !pk.tile<128x128xf32>
      %next = pk.add %acc, %q : !pk.tile<128x128xf32>
      scf.yield %next : !pk.tile<128x128xf32>
    }
  }
}

// -----

// A product of which no warpgroup has several times the rows of an MMA is computed in pieces of its columns, as few as
// fit beside the accumulator.
// CHECK-LABEL: pk.kernel @columns
// CHECK: pk.mma {{.*}} {pieces = 2 : i64}
pk.kernel @columns() {
  %0 = pk.channel "A, B" stages 2 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
  pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    %zero = pk.full 0.000000e+00 : f32 : !pk.tile<128x256xf32>
    %two = pk.full 2.000000e+00 : f32 : !pk.tile<128x256xf32>
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i9 = arith.constant 9 : index
    %sum = scf.for %i = %i0 to %i9 step %i1 iter_args(%acc = %zero) -> (!pk.tile<128x256xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>
      %p = pk.mma %a, %b, %zero : !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16> -> !pk.tile<128x256xf32>
      pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
      %q = pk.mul %p, %two : !pk.tile<128x256xf32>
      %next = pk.add %acc, %q : !pk.tile<128x256xf32>
      scf.yield %next : !pk.tile<128x256xf32>
    }
  }
}
