// MMAs of the next iteration issued before those that need what this iteration has computed.
// RUN: pkc-opt %s -p pk-pipeline-mma --split-input-file --remarks | filecheck %s

// The early half (the MMA with %k, the activation) runs an iteration ahead of the late one (the MMA with %v). The late
// half clips to the block of its iteration, whose number the loop carries for it. The cast, which writes to registers
// that the late MMA reads, stands behind the wait for that.
// CHECK-LABEL: pk.kernel @chained
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %zero, %steps : index
// CHECK-NEXT: %[[ALL:.*]] = scf.if %[[ANY]] -> (!pk.tile<64x64xf32>) {
// CHECK-NEXT: %[[K0:.*]] = pk.consume %[[K:.*]] :
// CHECK-NEXT: %[[S0:.*]] = pk.mma_issue %x, %[[K0]], %nil :
// CHECK-NEXT: %[[S1:.*]] = pk.mma_wait %[[S0]] left 0 :
// CHECK-NEXT: pk.release %[[K]] :
// CHECK-NEXT: %[[R0:.*]] = pk.max %[[S1]], %nil :
// CHECK-NEXT: %[[P0:.*]] = pk.cast %[[R0]] :
// CHECK-NEXT: %[[SECOND:.*]] = arith.addi %zero, %one : index
// CHECK-NEXT: %[[O1:.*]], %[[P1:.*]], %[[LAST:.*]] = scf.for %[[I:.*]] = %[[SECOND]] to %steps step %one iter_args(%[[O:.*]] = %acc, %[[P:.*]] = %[[P0]], %[[BEFORE:.*]] = %zero) -> (!pk.tile<64x64xf32>, !pk.tile<64x64xbf16>, index) {
// CHECK-NEXT: %[[K2:.*]] = pk.consume %[[K]] :
// CHECK-NEXT: %[[S2:.*]] = pk.mma_issue %x, %[[K2]], %nil :
// CHECK-NEXT: %[[N:.*]] = pk.block[%[[BEFORE]]]
// CHECK-NEXT: %[[W:.*]] = pk.clip %[[O]] axis 1 to %[[N]]
// CHECK-NEXT: %[[V2:.*]] = pk.consume %[[V:.*]] :
// CHECK-NEXT: %[[U2:.*]] = pk.mma_issue %[[P]], %[[V2]], %[[W]] :
// CHECK-NEXT: %[[S3:.*]] = pk.mma_wait %[[S2]] left 1 :
// CHECK-NEXT: pk.release %[[K]] :
// CHECK-NEXT: %[[R2:.*]] = pk.max %[[S3]], %nil :
// CHECK-NEXT: %[[U3:.*]] = pk.mma_wait %[[U2]] left 0 behind %[[R2]] :
// CHECK-NEXT: pk.release %[[V]] :
// CHECK-NEXT: %[[P2:.*]] = pk.cast %[[R2]] :
// CHECK-NEXT: scf.yield %[[U3]], %[[P2]], %[[I]] :
// CHECK-NEXT: }
// CHECK-NEXT: %[[N2:.*]] = pk.block[%[[LAST]]]
// CHECK-NEXT: %[[W2:.*]] = pk.clip %[[O1]] axis 1 to %[[N2]]
// CHECK-NEXT: %[[V4:.*]] = pk.consume %[[V]] :
// CHECK-NEXT: %[[U4:.*]] = pk.mma_issue %[[P1]], %[[V4]], %[[W2]] :
// CHECK-NEXT: %[[U5:.*]] = pk.mma_wait %[[U4]] left 0 :
// CHECK-NEXT: pk.release %[[V]] :
// CHECK-NEXT: scf.yield %[[U5]] :
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %acc :
// CHECK-NEXT: }
// CHECK-NEXT: pk.neg %[[ALL]] :
// CHECK-NOT: remark
pk.kernel @chained(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  %0 = pk.channel "K" stages 2 : !pk.channel<!pk.tile<64x64xbf16>>
  %1 = pk.channel "V" stages 2 : !pk.channel<!pk.tile<64x64xbf16>>
  pk.role consumer {
    %nil = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
    %acc = pk.full 1.000000e+00 : f32 : !pk.tile<64x64xf32>
    %x = pk.full 2.000000e+00 : bf16 : !pk.tile<64x64xbf16>
    %sum = scf.for %i = %zero to %steps step %one iter_args(%o = %acc) -> (!pk.tile<64x64xf32>) {
      %k = pk.consume %0 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      %s = pk.mma %x, %k, %nil : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      pk.release %0 : !pk.channel<!pk.tile<64x64xbf16>>
      %r = pk.max %s, %nil : !pk.tile<64x64xf32>
      %p = pk.cast %r : !pk.tile<64x64xf32> -> !pk.tile<64x64xbf16>
      %n = pk.block[%i] : !pk.block<K by 64>
      %w = pk.clip %o axis 1 to %n fill 0.000000e+00 : f32 : !pk.tile<64x64xf32>, !pk.block<K by 64> -> !pk.tile<64x64xf32>
      %v = pk.consume %1 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      %u = pk.mma %p, %v, %w : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      pk.release %1 : !pk.channel<!pk.tile<64x64xbf16>>
      scf.yield %u : !pk.tile<64x64xf32>
    }
    %end = pk.neg %sum : !pk.tile<64x64xf32>
  }
}

// -----

// MMAs that do not need each other are left to pk-plan-mma, without a remark.
// CHECK-LABEL: pk.kernel @apart
// CHECK-NOT: pk.mma_issue
// CHECK-NOT: remark
pk.kernel @apart(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  %0 = pk.channel "K" stages 2 : !pk.channel<!pk.tile<64x64xbf16>>
  %1 = pk.channel "V" stages 2 : !pk.channel<!pk.tile<64x64xbf16>>
  pk.role consumer {
    %nil = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
    %acc = pk.full 1.000000e+00 : f32 : !pk.tile<64x64xf32>
    %x = pk.full 2.000000e+00 : bf16 : !pk.tile<64x64xbf16>
    %sum = scf.for %i = %zero to %steps step %one iter_args(%o = %acc) -> (!pk.tile<64x64xf32>) {
      %k = pk.consume %0 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      %v = pk.consume %1 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      %s = pk.mma %x, %k, %o : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %u = pk.mma %x, %v, %s : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      pk.release %0 : !pk.channel<!pk.tile<64x64xbf16>>
      pk.release %1 : !pk.channel<!pk.tile<64x64xbf16>>
      scf.yield %u : !pk.tile<64x64xf32>
    }
    %end = pk.neg %sum : !pk.tile<64x64xf32>
  }
}

// -----

// What is committed keeps its place.
// CHECK-LABEL: pk.kernel @stored
// CHECK-NOT: pk.mma_issue
// CHECK: // remark: {{.*}}: pk.acquire: the MMAs of the loop are not pipelined: `pk.acquire` in the loop keeps its place among the operations around it [pk-pipeline-mma]
pk.kernel @stored(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  %0 = pk.channel "K" stages 2 : !pk.channel<!pk.tile<64x64xbf16>>
  %1 = pk.channel "V" stages 2 : !pk.channel<!pk.tile<64x64xbf16>>
  %2 = pk.channel "P" stages 2 : !pk.channel<!pk.tile<64x64xbf16>>
  pk.role consumer {
    %nil = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
    %acc = pk.full 1.000000e+00 : f32 : !pk.tile<64x64xf32>
    %x = pk.full 2.000000e+00 : bf16 : !pk.tile<64x64xbf16>
    %sum = scf.for %i = %zero to %steps step %one iter_args(%o = %acc) -> (!pk.tile<64x64xf32>) {
      %k = pk.consume %0 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      %s = pk.mma %x, %k, %nil : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      pk.release %0 : !pk.channel<!pk.tile<64x64xbf16>>
      %r = pk.max %s, %nil : !pk.tile<64x64xf32>
      %p = pk.cast %r : !pk.tile<64x64xf32> -> !pk.tile<64x64xbf16>
      pk.acquire %2 : !pk.channel<!pk.tile<64x64xbf16>>
      pk.commit %2, %p : !pk.channel<!pk.tile<64x64xbf16>>, !pk.tile<64x64xbf16>
      %v = pk.consume %1 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      %u = pk.mma %p, %v, %o : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      pk.release %1 : !pk.channel<!pk.tile<64x64xbf16>>
      scf.yield %u : !pk.tile<64x64xf32>
    }
    %end = pk.neg %sum : !pk.tile<64x64xf32>
  }
}

// -----

// Both halves read %k, which would be released by the first of them.
// CHECK-LABEL: pk.kernel @read_twice
// CHECK-NOT: pk.mma_issue
// CHECK: // remark: {{.*}}: pk.consume: the MMAs of the loop are not pipelined: both halves of an iteration read the stage of K [pk-pipeline-mma]
pk.kernel @read_twice(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  %0 = pk.channel "K" stages 2 : !pk.channel<!pk.tile<64x64xbf16>>
  %1 = pk.channel "V" stages 2 : !pk.channel<!pk.tile<64x64xbf16>>
  pk.role consumer {
    %nil = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
    %acc = pk.full 1.000000e+00 : f32 : !pk.tile<64x64xf32>
    %x = pk.full 2.000000e+00 : bf16 : !pk.tile<64x64xbf16>
    %sum = scf.for %i = %zero to %steps step %one iter_args(%o = %acc) -> (!pk.tile<64x64xf32>) {
      %k = pk.consume %0 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      %s = pk.mma %x, %k, %nil : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %r = pk.max %s, %nil : !pk.tile<64x64xf32>
      %p = pk.cast %r : !pk.tile<64x64xf32> -> !pk.tile<64x64xbf16>
      %u = pk.mma %p, %k, %o : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      pk.release %0 : !pk.channel<!pk.tile<64x64xbf16>>
      scf.yield %u : !pk.tile<64x64xf32>
    }
    %end = pk.neg %sum : !pk.tile<64x64xf32>
  }
}

// -----

// The late half would have its stage when the loader, which may load V first, waits for one.
// CHECK-LABEL: pk.kernel @one_stage
// CHECK-NOT: pk.mma_issue
// CHECK: // remark: {{.*}}: pk.consume: the MMAs of the loop are not pipelined: V has one stage, and two iterations would have one at a time [pk-pipeline-mma]
pk.kernel @one_stage(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  %0 = pk.channel "K" stages 2 : !pk.channel<!pk.tile<64x64xbf16>>
  %1 = pk.channel "V" stages 1 : !pk.channel<!pk.tile<64x64xbf16>>
  pk.role consumer {
    %nil = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
    %acc = pk.full 1.000000e+00 : f32 : !pk.tile<64x64xf32>
    %x = pk.full 2.000000e+00 : bf16 : !pk.tile<64x64xbf16>
    %sum = scf.for %i = %zero to %steps step %one iter_args(%o = %acc) -> (!pk.tile<64x64xf32>) {
      %k = pk.consume %0 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      %s = pk.mma %x, %k, %nil : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      pk.release %0 : !pk.channel<!pk.tile<64x64xbf16>>
      %r = pk.max %s, %nil : !pk.tile<64x64xf32>
      %p = pk.cast %r : !pk.tile<64x64xf32> -> !pk.tile<64x64xbf16>
      %v = pk.consume %1 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      %u = pk.mma %p, %v, %o : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      pk.release %1 : !pk.channel<!pk.tile<64x64xbf16>>
      scf.yield %u : !pk.tile<64x64xf32>
    }
    %end = pk.neg %sum : !pk.tile<64x64xf32>
  }
}

// -----

// There are two halves, and not three.
// CHECK-LABEL: pk.kernel @three
// CHECK-NOT: pk.mma_issue
// CHECK: // remark: {{.*}}: pk.mma: the MMAs of the loop are not pipelined: it is the third of three MMAs that need one another [pk-pipeline-mma]
pk.kernel @three(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  %0 = pk.channel "K" stages 2 : !pk.channel<!pk.tile<64x64xbf16>>
  %1 = pk.channel "V" stages 2 : !pk.channel<!pk.tile<64x64xbf16>>
  pk.role consumer {
    %nil = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
    %acc = pk.full 1.000000e+00 : f32 : !pk.tile<64x64xf32>
    %x = pk.full 2.000000e+00 : bf16 : !pk.tile<64x64xbf16>
    %sum = scf.for %i = %zero to %steps step %one iter_args(%o = %acc) -> (!pk.tile<64x64xf32>) {
      %k = pk.consume %0 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      %s = pk.mma %x, %k, %nil : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      pk.release %0 : !pk.channel<!pk.tile<64x64xbf16>>
      %r = pk.max %s, %nil : !pk.tile<64x64xf32>
      %p = pk.cast %r : !pk.tile<64x64xf32> -> !pk.tile<64x64xbf16>
      %v = pk.consume %1 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      %t = pk.mma %p, %v, %nil : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %q = pk.cast %t : !pk.tile<64x64xf32> -> !pk.tile<64x64xbf16>
      %u = pk.mma %q, %v, %o : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      pk.release %1 : !pk.channel<!pk.tile<64x64xbf16>>
      scf.yield %u : !pk.tile<64x64xf32>
    }
    %end = pk.neg %sum : !pk.tile<64x64xf32>
  }
}

// -----

// The first MMA would need what the last one of the iteration before has not yet made.
// CHECK-LABEL: pk.kernel @late_operand
// CHECK-NOT: pk.mma_issue
// CHECK: // remark: {{.*}}: pk.mma: the MMAs of the loop are not pipelined: it needs what a later MMA made in the iteration before [pk-pipeline-mma]
pk.kernel @late_operand(%C: !pk.private<[M, N], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = pk.block_count <K by 64>
  %0 = pk.channel "K" stages 2 : !pk.channel<!pk.tile<64x64xbf16>>
  %1 = pk.channel "V" stages 2 : !pk.channel<!pk.tile<64x64xbf16>>
  pk.role consumer {
    %nil = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
    %acc = pk.full 1.000000e+00 : f32 : !pk.tile<64x64xf32>
    %x = pk.full 2.000000e+00 : bf16 : !pk.tile<64x64xbf16>
    %sum = scf.for %i = %zero to %steps step %one iter_args(%o = %acc) -> (!pk.tile<64x64xf32>) {
      %y = pk.cast %o : !pk.tile<64x64xf32> -> !pk.tile<64x64xbf16>
      %k = pk.consume %0 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      %s = pk.mma %y, %k, %nil : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      pk.release %0 : !pk.channel<!pk.tile<64x64xbf16>>
      %r = pk.max %s, %nil : !pk.tile<64x64xf32>
      %p = pk.cast %r : !pk.tile<64x64xf32> -> !pk.tile<64x64xbf16>
      %v = pk.consume %1 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      %u = pk.mma %p, %v, %nil : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      pk.release %1 : !pk.channel<!pk.tile<64x64xbf16>>
      scf.yield %u : !pk.tile<64x64xf32>
    }
    %end = pk.neg %sum : !pk.tile<64x64xf32>
  }
}
