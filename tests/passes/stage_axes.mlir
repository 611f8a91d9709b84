// What threads have along rows, and need along columns, goes through shared memory.
// RUN: pkc-opt %s -p pk-stage-axes --split-input-file | filecheck %s

// What is reduced, spread along columns: the stage is released behind what reads it last.
// CHECK-LABEL: pk.kernel @reduced
// CHECK: %[[CH:.*]] = pk.channel "s" stages 1 : !pk.channel<!pk.tile<64xf32>>
// CHECK: %[[S:.*]] = pk.row_sum
// CHECK-NEXT: pk.broadcast %[[S]] axes [0]
// CHECK-NEXT: pk.acquire %[[CH]]
// CHECK-NEXT: pk.commit %[[CH]], %[[S]]
// CHECK-NEXT: %[[READ:.*]] = pk.consume %[[CH]]
// CHECK-NEXT: pk.broadcast %[[READ]] axes [1]
// CHECK-NEXT: pk.sub
// CHECK-NEXT: pk.release %[[CH]]
// CHECK-NEXT: pk.release
pk.kernel @reduced() {
  %0 = pk.channel "X" stages 2 : !pk.channel<!pk.tile<64x64xf32>>
  pk.role consumer {
    %n = arith.constant 1 : index
    pk.tasks (%i) in (%n) {
      %x = pk.consume %0 : !pk.channel<!pk.tile<64x64xf32>> -> !pk.tile<64x64xf32>
      %s = pk.row_sum %x : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
      %r = pk.broadcast %s axes [0] : !pk.tile<64xf32> -> !pk.tile<64x64xf32>
      %c = pk.broadcast %s axes [1] : !pk.tile<64xf32> -> !pk.tile<64x64xf32>
      %d = pk.sub %r, %c : !pk.tile<64x64xf32>
      pk.release %0 : !pk.channel<!pk.tile<64x64xf32>>
    }
  }
}

// -----

// Sums along what lies along rows: of numbers in one stage, into another one.
// CHECK-LABEL: pk.kernel @summed
// CHECK: pk.row_sum
// CHECK-NEXT: pk.acquire %[[IN:.*]] :
// CHECK-NEXT: pk.commit %[[IN]]
// CHECK-NEXT: %[[READ:.*]] = pk.consume %[[IN]]
// CHECK-NEXT: %[[SUMS:.*]] = pk.cum_sum %[[READ]]
// CHECK-NEXT: pk.release %[[IN]]
// CHECK-NEXT: pk.acquire %[[OUT:.*]] :
// CHECK-NEXT: pk.commit %[[OUT]], %[[SUMS]]
// CHECK-NEXT: %[[ALONG:.*]] = pk.consume %[[OUT]]
// CHECK-NEXT: pk.broadcast %[[ALONG]] axes [0]
pk.kernel @summed() {
  %0 = pk.channel "X" stages 2 : !pk.channel<!pk.tile<64x64xf32>>
  pk.role consumer {
    %n = arith.constant 1 : index
    pk.tasks (%i) in (%n) {
      %x = pk.consume %0 : !pk.channel<!pk.tile<64x64xf32>> -> !pk.tile<64x64xf32>
      %s = pk.row_sum %x : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
      %t = pk.cum_sum %s : !pk.tile<64xf32>
      %r = pk.broadcast %t axes [0] : !pk.tile<64xf32> -> !pk.tile<64x64xf32>
      %d = pk.mul %x, %r : !pk.tile<64x64xf32>
      pk.release %0 : !pk.channel<!pk.tile<64x64xf32>>
    }
  }
}

// -----

// What is computed, transposed; what lies in a stage is read there as its transpose.
// CHECK-LABEL: pk.kernel @turned
// CHECK: pk.transpose %x
// CHECK: %[[E:.*]] = pk.exp
// CHECK-NEXT: pk.acquire
// CHECK-NEXT: pk.commit %{{.*}}, %[[E]]
// CHECK-NEXT: %[[READ:.*]] = pk.consume
// CHECK-NEXT: pk.transpose %[[READ]]
pk.kernel @turned() {
  %0 = pk.channel "X" stages 2 : !pk.channel<!pk.tile<64x64xf32>>
  pk.role consumer {
    %n = arith.constant 1 : index
    pk.tasks (%i) in (%n) {
      %x = pk.consume %0 : !pk.channel<!pk.tile<64x64xf32>> -> !pk.tile<64x64xf32>
      %u = pk.transpose %x : !pk.tile<64x64xf32> -> !pk.tile<64x64xf32>
      %e = pk.exp %x : !pk.tile<64x64xf32>
      %t = pk.transpose %e : !pk.tile<64x64xf32> -> !pk.tile<64x64xf32>
      %d = pk.mul %u, %t : !pk.tile<64x64xf32>
      pk.release %0 : !pk.channel<!pk.tile<64x64xf32>>
    }
  }
}
