// What all tasks load alike is loaded in front of them, and stays until the last one.
// RUN: pkc-opt %s -p pk-load-once,pk-dce --split-input-file --remarks | filecheck %s

// CHECK-LABEL: pk.kernel @weighted
// CHECK: pk.role loader {
// CHECK: %[[D:.*]] = pk.block[%{{.*}}] : !pk.block<64 by 64>
// CHECK-NEXT: pk.acquire %[[W:.*]] :
// CHECK-NEXT: %[[T:.*]] = pk.load %w[%[[D]] :
// CHECK-NEXT: pk.commit %[[W]], %[[T]]
// CHECK-NEXT: pk.tasks
// CHECK: pk.acquire %[[X:.*]] :
// CHECK-NEXT: pk.load %X
// CHECK-NOT: pk.acquire
// CHECK: pk.role consumer {
// CHECK: pk.consume %[[W]]
// CHECK-NEXT: pk.tasks
// CHECK: pk.consume %[[X]]
// CHECK: pk.release %[[X]]
// CHECK-NEXT: }
// CHECK-NEXT: pk.release %[[W]]
pk.kernel @weighted(%X: !pk.private<[M, 64], f32> {pk.name = "X"}, %w: !pk.private<[64], f32> {pk.name = "w"}, %Y: !pk.private<[M, 64], f32> {pk.name = "Y"}) attributes {derived} {
  %0 = pk.channel "X" stages 1 : !pk.channel<!pk.tile<64xf32>>
  %1 = pk.channel "w" stages 1 : !pk.channel<!pk.tile<64xf32>>
  pk.role loader {
    %n = pk.dim "M"
    pk.tasks (%m) in (%n) attributes {per_cta} {
      %zero = arith.constant 0 : index
      %d = pk.block[%zero] : !pk.block<64 by 64>
      pk.acquire %0 : !pk.channel<!pk.tile<64xf32>>
      %x = pk.load %X[%m, %d : index, !pk.block<64 by 64>] : !pk.private<[M, 64], f32> -> !pk.tile<64xf32>
      pk.commit %0, %x : !pk.channel<!pk.tile<64xf32>>, !pk.tile<64xf32>
      pk.acquire %1 : !pk.channel<!pk.tile<64xf32>>
      %t = pk.load %w[%d : !pk.block<64 by 64>] : !pk.private<[64], f32> -> !pk.tile<64xf32>
      pk.commit %1, %t : !pk.channel<!pk.tile<64xf32>>, !pk.tile<64xf32>
    }
  }
  pk.role consumer {
    %n = pk.dim "M"
    pk.tasks (%m) in (%n) attributes {per_cta} {
      %zero = arith.constant 0 : index
      %d = pk.block[%zero] : !pk.block<64 by 64>
      %x = pk.consume %0 : !pk.channel<!pk.tile<64xf32>> -> !pk.tile<64xf32>
      %t = pk.consume %1 : !pk.channel<!pk.tile<64xf32>> -> !pk.tile<64xf32>
      %y = pk.mul %x, %t : !pk.tile<64xf32>
      pk.store %y, %Y[%m, %d : index, !pk.block<64 by 64>] : !pk.tile<64xf32>, !pk.private<[M, 64], f32>
      pk.release %1 : !pk.channel<!pk.tile<64xf32>>
      pk.release %0 : !pk.channel<!pk.tile<64xf32>>
    }
  }
}

// -----

// The kernel writes what it loads: another task may see another value.
// CHECK-LABEL: pk.kernel @written
// CHECK: pk.tasks
// CHECK: pk.acquire
// CHECK: pk.tasks
// CHECK: pk.consume
// CHECK: pk.release
pk.kernel @written(%X: !pk.private<[64], f32> {pk.name = "X"}) attributes {derived} {
  %0 = pk.channel "X" stages 1 : !pk.channel<!pk.tile<64xf32>>
  pk.role loader {
    %n = arith.constant 3 : index
    pk.tasks (%m) in (%n) attributes {per_cta} {
      %zero = arith.constant 0 : index
      %d = pk.block[%zero] : !pk.block<64 by 64>
      pk.acquire %0 : !pk.channel<!pk.tile<64xf32>>
      %x = pk.load %X[%d : !pk.block<64 by 64>] : !pk.private<[64], f32> -> !pk.tile<64xf32>
      pk.commit %0, %x : !pk.channel<!pk.tile<64xf32>>, !pk.tile<64xf32>
    }
  }
  pk.role consumer {
    %n = arith.constant 3 : index
    pk.tasks (%m) in (%n) attributes {per_cta} {
      %zero = arith.constant 0 : index
      %d = pk.block[%zero] : !pk.block<64 by 64>
      %x = pk.consume %0 : !pk.channel<!pk.tile<64xf32>> -> !pk.tile<64xf32>
      pk.store %x, %X[%d : !pk.block<64 by 64>] : !pk.tile<64xf32>, !pk.private<[64], f32>
      pk.release %0 : !pk.channel<!pk.tile<64xf32>>
    }
  }
}

// -----

// The loader goes on to other tasks, which need room for their tiles.
// CHECK-LABEL: pk.kernel @others
// CHECK: pk.tasks
// CHECK: pk.acquire
// CHECK: pk.load: each task loads anew what is the same for all: its role has other tasks, too [pk-load-once]
pk.kernel @others(%w: !pk.private<[64], f32> {pk.name = "w"}, %Y: !pk.private<[3, 64], f32> {pk.name = "Y"}) attributes {derived} {
  %0 = pk.channel "w" stages 1 : !pk.channel<!pk.tile<64xf32>>
  pk.role loader {
    %n = arith.constant 3 : index
    pk.tasks (%m) in (%n) attributes {per_cta} {
      %zero = arith.constant 0 : index
      %d = pk.block[%zero] : !pk.block<64 by 64>
      pk.acquire %0 : !pk.channel<!pk.tile<64xf32>>
      %t = pk.load %w[%d : !pk.block<64 by 64>] : !pk.private<[64], f32> -> !pk.tile<64xf32>
      pk.commit %0, %t : !pk.channel<!pk.tile<64xf32>>, !pk.tile<64xf32>
    }
    pk.tasks (%m) in (%n) attributes {per_cta} {
    }
  }
  pk.role consumer {
    %n = arith.constant 3 : index
    pk.tasks (%m) in (%n) attributes {per_cta} {
      %zero = arith.constant 0 : index
      %d = pk.block[%zero] : !pk.block<64 by 64>
      %t = pk.consume %0 : !pk.channel<!pk.tile<64xf32>> -> !pk.tile<64xf32>
      pk.store %t, %Y[%m, %d : index, !pk.block<64 by 64>] : !pk.tile<64xf32>, !pk.private<[3, 64], f32>
      pk.release %0 : !pk.channel<!pk.tile<64xf32>>
    }
  }
}
