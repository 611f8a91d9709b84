// MMAs that are issued as soon as their operands are there, and awaited where their results are used.
// RUN: pkc-opt %s -p pk-overlap-mma --split-input-file --remarks | filecheck %s

// As in the gradients of attention: two MMAs can begin at once, the second one with the stage that it reads; the third
// one runs while what the fourth one needs is computed. Releases follow the waits of all MMAs that read the stage.
// CHECK-LABEL: pk.kernel @chained
// CHECK: scf.for
// CHECK-NEXT: %q = pk.consume %0
// CHECK-NEXT: %[[S:.*]] = pk.mma_issue %x, %q, %nil :
// CHECK-NEXT: %o = pk.consume %1
// CHECK-NEXT: %[[D:.*]] = pk.mma_issue %x, %o, %nil :
// CHECK-NEXT: %s = pk.mma_wait %[[S]] left 1 :
// CHECK-NEXT: %p = pk.exp2 %s :
// CHECK-NEXT: %h = pk.cast %p :
// CHECK-NEXT: %[[A:.*]] = pk.mma_issue %h, %o, %a0 :
// CHECK-NEXT: %d = pk.mma_wait %[[D]] left 1 behind %p :
// CHECK-NEXT: %e = pk.mul %p, %d :
// CHECK-NEXT: %g = pk.cast %e :
// CHECK-NEXT: %[[B:.*]] = pk.mma_issue %g, %q, %b0 :
// CHECK-NEXT: %a1 = pk.mma_wait %[[A]] left 1 :
// CHECK-NEXT: pk.release %1 :
// CHECK-NEXT: %b1 = pk.mma_wait %[[B]] left 0 :
// CHECK-NEXT: pk.release %0 :
// CHECK-NEXT: scf.yield %a1, %b1
// CHECK-NOT: remark
pk.kernel @chained(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  %0 = pk.channel "Q" stages 1 : !pk.channel<!pk.tile<64x64xbf16>>
  %1 = pk.channel "O" stages 1 : !pk.channel<!pk.tile<64x64xbf16>>
  pk.role consumer {
    %nil = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
    %x = pk.full 2.000000e+00 : bf16 : !pk.tile<64x64xbf16>
    %ra, %rb = scf.for %i = %zero to %steps step %one iter_args(%a0 = %nil, %b0 = %nil) -> (!pk.tile<64x64xf32>, !pk.tile<64x64xf32>) {
      %q = pk.consume %0 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      %s = pk.mma %x, %q, %nil : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %p = pk.exp2 %s : !pk.tile<64x64xf32>
      %o = pk.consume %1 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      %d = pk.mma %x, %o, %nil : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %h = pk.cast %p : !pk.tile<64x64xf32> -> !pk.tile<64x64xbf16>
      %a1 = pk.mma %h, %o, %a0 : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      pk.release %1 : !pk.channel<!pk.tile<64x64xbf16>>
      %e = pk.mul %p, %d : !pk.tile<64x64xf32>
      %g = pk.cast %e : !pk.tile<64x64xf32> -> !pk.tile<64x64xbf16>
      %b1 = pk.mma %g, %q, %b0 : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      pk.release %0 : !pk.channel<!pk.tile<64x64xbf16>>
      scf.yield %a1, %b1 : !pk.tile<64x64xf32>, !pk.tile<64x64xf32>
    }
    %end = pk.add %ra, %rb : !pk.tile<64x64xf32>
  }
}

// -----

// A channel from the role to itself keeps its order; MMAs that nothing in the iteration needs are left to pk-plan-mma.
// CHECK-LABEL: pk.kernel @staged
// CHECK: %[[S:.*]] = pk.mma_issue
// CHECK-NEXT: %s = pk.mma_wait %[[S]] left 0
// CHECK-NEXT: %h = pk.cast %s
// CHECK-NEXT: pk.acquire %0
// CHECK-NEXT: pk.commit %0, %h
// CHECK-NEXT: %w = pk.consume %0
// CHECK-NEXT: %[[T:.*]] = pk.mma_issue %x, %w, %a0
// CHECK-NEXT: %a1 = pk.mma_wait %[[T]] left 0
// CHECK-NEXT: pk.release %0
// CHECK: scf.for
// CHECK-NOT: pk.mma_issue
// CHECK: pk.mma %x, %x, %c0
pk.kernel @staged(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  %0 = pk.channel "H" stages 1 : !pk.channel<!pk.tile<64x64xbf16>>
  pk.role consumer {
    %nil = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
    %x = pk.full 2.000000e+00 : bf16 : !pk.tile<64x64xbf16>
    %ra = scf.for %i = %zero to %steps step %one iter_args(%a0 = %nil) -> (!pk.tile<64x64xf32>) {
      %s = pk.mma %x, %x, %nil : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %h = pk.cast %s : !pk.tile<64x64xf32> -> !pk.tile<64x64xbf16>
      pk.acquire %0 : !pk.channel<!pk.tile<64x64xbf16>>
      pk.commit %0, %h : !pk.channel<!pk.tile<64x64xbf16>>, !pk.tile<64x64xbf16>
      %w = pk.consume %0 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      %a1 = pk.mma %x, %w, %a0 : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      pk.release %0 : !pk.channel<!pk.tile<64x64xbf16>>
      scf.yield %a1 : !pk.tile<64x64xf32>
    }
    %rb, %rc = scf.for %i = %zero to %steps step %one iter_args(%b0 = %nil, %c0 = %nil) -> (!pk.tile<64x64xf32>, !pk.tile<64x64xf32>) {
      %b1 = pk.mma %x, %x, %b0 : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %c1 = pk.mma %x, %x, %c0 : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      scf.yield %b1, %c1 : !pk.tile<64x64xf32>, !pk.tile<64x64xf32>
    }
    %end = pk.add %ra, %rb : !pk.tile<64x64xf32>
    %last = pk.add %end, %rc : !pk.tile<64x64xf32>
  }
}

// -----

// CHECK-LABEL: pk.kernel @added
// CHECK-NOT: pk.mma_issue
// CHECK: remark: {{.*}}each MMA of the loop is waited for: this one adds to the result of another [pk-overlap-mma]
pk.kernel @added(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  pk.role consumer {
    %nil = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
    %x = pk.full 2.000000e+00 : bf16 : !pk.tile<64x64xbf16>
    %ra = scf.for %i = %zero to %steps step %one iter_args(%a0 = %nil) -> (!pk.tile<64x64xf32>) {
      %s = pk.mma %x, %x, %nil : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %t = pk.mma %x, %x, %s : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %a1 = pk.add %a0, %t : !pk.tile<64x64xf32>
      scf.yield %a1 : !pk.tile<64x64xf32>
    }
    %end = pk.neg %ra : !pk.tile<64x64xf32>
  }
}

// -----

// An MMA that adds to what the iteration computes begins when all before it are complete: its registers are written.
// CHECK-LABEL: pk.kernel @begins_with_a_row
// CHECK: scf.for
// CHECK: %[[S:.*]] = pk.mma_issue %x, %q, %nil :
// CHECK-NEXT: %n = pk.neg %x1 :
// CHECK-NEXT: %r = pk.broadcast %n
// CHECK-NEXT: %s = pk.mma_wait %[[S]] left 0 :
// CHECK-NEXT: %[[D:.*]] = pk.mma_issue %x, %q, %r :
// CHECK-NEXT: %p = pk.exp2 %s :
// CHECK-NEXT: %d = pk.mma_wait %[[D]] left 0 behind %p :
// CHECK: remark: {{.*}}the MMAs before it are waited for: it adds to what the iteration computes [pk-overlap-mma]
pk.kernel @begins_with_a_row(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  %0 = pk.channel "Q" stages 1 : !pk.channel<!pk.tile<64x64xbf16>>
  pk.role consumer {
    %nil = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
    %x = pk.full 2.000000e+00 : bf16 : !pk.tile<64x64xbf16>
    %x1 = pk.full 2.000000e+00 : f32 : !pk.tile<64xf32>
    %ra = scf.for %i = %zero to %steps step %one iter_args(%a0 = %nil) -> (!pk.tile<64x64xf32>) {
      %q = pk.consume %0 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      %s = pk.mma %x, %q, %nil : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %n = pk.neg %x1 : !pk.tile<64xf32>
      %r = pk.broadcast %n axes [1] : !pk.tile<64xf32> -> !pk.tile<64x64xf32>
      %d = pk.mma %x, %q, %r : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %p = pk.exp2 %s : !pk.tile<64x64xf32>
      %e = pk.mul %p, %d : !pk.tile<64x64xf32>
      %g = pk.cast %e : !pk.tile<64x64xf32> -> !pk.tile<64x64xbf16>
      %a1 = pk.mma %g, %q, %a0 : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      pk.release %0 : !pk.channel<!pk.tile<64x64xbf16>>
      scf.yield %a1 : !pk.tile<64x64xf32>
    }
    %end = pk.add %ra, %ra : !pk.tile<64x64xf32>
  }
}

// -----

// What a single MMA of an iteration is scaled by is computed while it runs; where there are no registers for the whole
// product, it stays as it is.
// CHECK-LABEL: pk.kernel @scaled
// CHECK: %[[P:.*]] = pk.mma_issue %a, %b, %zero :
// CHECK-NEXT: %s = pk.consume %1
// CHECK-NEXT: %t = pk.mul %s, %s :
// CHECK-NEXT: pk.release %1
// CHECK-NEXT: pk.broadcast %t
// CHECK-NEXT: %p = pk.mma_wait %[[P]] left 0 :
// CHECK-NEXT: pk.release %0
// CHECK-LABEL: pk.kernel @too_large
// CHECK: %p = pk.mma %a, %b, %zero :
pk.kernel @scaled() {
  %0 = pk.channel "A, B" stages 2 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>>
  %1 = pk.channel "s" stages 2 : !pk.channel<!pk.tile<128xf32>>
  pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    %zero = pk.full 0.000000e+00 : f32 : !pk.tile<128x64xf32>
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i9 = arith.constant 9 : index
    %sum = scf.for %i = %i0 to %i9 step %i1 iter_args(%acc = %zero) -> (!pk.tile<128x64xf32>) {
      %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>
      %p = pk.mma %a, %b, %zero : !pk.tile<128x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<128x64xf32>
      pk.release %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>>
      %s = pk.consume %1 : !pk.channel<!pk.tile<128xf32>> -> !pk.tile<128xf32>
      %t = pk.mul %s, %s : !pk.tile<128xf32>
      pk.release %1 : !pk.channel<!pk.tile<128xf32>>
      %w = pk.broadcast %t axes [0] : !pk.tile<128xf32> -> !pk.tile<128x64xf32>
      %q = pk.mul %p, %w : !pk.tile<128x64xf32>
      %next = pk.add %acc, %q : !pk.tile<128x64xf32>
      scf.yield %next : !pk.tile<128x64xf32>
    }
  }
}
pk.kernel @too_large() {
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
