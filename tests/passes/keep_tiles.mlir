// Tiles that leave the loop or branch that loads them are copied to registers there, as are carried ones for the storer.
// RUN: pkc-opt %s -p pk-assign-roles,pk-keep-tiles --split-input-file | filecheck %s

// One of 16 bits through f32, and back; one that only the other branch computes stays as it is.
// CHECK-LABEL: pk.kernel @branch
// CHECK: scf.if
// CHECK: %[[X:.*]] = pk.load %X[
// CHECK-NEXT: %[[W:.*]] = pk.cast %[[X]] {role = #pk<role_name consumer>} : !pk.tile<16xbf16> -> !pk.tile<16xf32>
// CHECK-NEXT: %[[Z:.*]] = pk.full -0.000000e+00 : f32 {role = #pk<role_name consumer>} : !pk.tile<16xf32>
// CHECK-NEXT: %[[S:.*]] = pk.add %[[W]], %[[Z]] {role = #pk<role_name consumer>} : !pk.tile<16xf32>
// CHECK-NEXT: %[[N:.*]] = pk.cast %[[S]] {role = #pk<role_name consumer>} : !pk.tile<16xf32> -> !pk.tile<16xbf16>
// CHECK-NEXT: scf.yield {{.*}}%[[N]] : !pk.tile<16xbf16>
// CHECK: else
// CHECK-NEXT: %[[F:.*]] = pk.full 1.000000e+00
// CHECK-NEXT: scf.yield {{.*}}%[[F]] :
pk.kernel @branch(%X: !pk.private<[M], bf16> {pk.name = "X"}, %Y: !pk.private<[M], bf16> {pk.name = "Y"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 16>
  pk.tasks (%i) in (%0) {
    %m = pk.block[%i] : !pk.block<M by 16>
    %zero = arith.constant 0 : index
    %first = arith.cmpi eq, %i, %zero : index
    %t = scf.if %first -> (!pk.tile<16xbf16>) {
      %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], bf16> -> !pk.tile<16xbf16>
      scf.yield %x : !pk.tile<16xbf16>
    } else {
      %one = pk.full 1.000000e+00 : bf16 : !pk.tile<16xbf16>
      scf.yield %one : !pk.tile<16xbf16>
    }
    pk.store %t, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xbf16>, !pk.private<[M], bf16>
  }
}

// -----

// What a loop carries on, under another name: a cast may be the stage's memory. What is computed from a tile is none.
// CHECK-LABEL: pk.kernel @loop
// CHECK: %[[C:.*]] = pk.cast
// CHECK-NEXT: %[[D:.*]] = pk.mul
// CHECK-NEXT: %[[Z:.*]] = pk.full -0.000000e+00
// CHECK-NEXT: %[[S:.*]] = pk.add %[[C]], %[[Z]]
// CHECK-NEXT: scf.yield {{.*}}%[[S]], %[[D]] :
pk.kernel @loop(%X: !pk.private<[M, 16], bf16> {pk.name = "X"}, %Y: !pk.private<[16], f32> {pk.name = "Y"}, %n: !pk.private<[1], i32> {pk.name = "n"}) attributes {schedule = {}} {
  %one = arith.constant 1 : index
  pk.tasks (%i) in (%one) {
    %zero = arith.constant 0 : index
    %count = pk.read %n[%zero] : !pk.private<[1], i32>
    %d = pk.block[%zero] : !pk.block<16 by 16>
    %start = pk.full 0.000000e+00 : f32 : !pk.tile<16xf32>
    %t, %u = scf.for %m = %zero to %count step %one iter_args(%a = %start, %b = %start) -> (!pk.tile<16xf32>, !pk.tile<16xf32>) {
      %x = pk.load %X[%m, %d : index, !pk.block<16 by 16>] : !pk.private<[M, 16], bf16> -> !pk.tile<16xbf16>
      %wide = pk.cast %x : !pk.tile<16xbf16> -> !pk.tile<16xf32>
      %twice = pk.mul %wide, %wide : !pk.tile<16xf32>
      scf.yield %wide, %twice : !pk.tile<16xf32>, !pk.tile<16xf32>
    }
    %sum = pk.add %t, %u : !pk.tile<16xf32>
    pk.store %sum, %Y[%d : !pk.block<16 by 16>] : !pk.tile<16xf32>, !pk.private<[16], f32>
  }
}

// -----

// A tile that a loop carries is stored, in two places of one block: both store one copy. What is stored behind the loop
// is its result, which needs none; neither does an operand of the consumer.
// CHECK-LABEL: pk.kernel @carried
// CHECK: scf.for {{.*}} iter_args(%[[T:.*]] = %
// CHECK: %[[Z:.*]] = pk.full -0.000000e+00 : f32 {role = #pk<role_name consumer>} : !pk.tile<16xf32>
// CHECK-NEXT: %[[C:.*]] = pk.add %[[T]], %[[Z]] {role = #pk<role_name consumer>} : !pk.tile<16xf32>
// CHECK-NEXT: pk.store %[[C]], %Y[
// CHECK-NEXT: pk.store %[[C]], %Z[
// CHECK: %[[U:.*]] = pk.add %[[T]], %
// CHECK-NEXT: scf.yield {{.*}}%[[U]] :
// CHECK-NOT: pk.full -0.0
pk.kernel @carried(%X: !pk.private<[3, M], f32> {pk.name = "X"}, %Y: !pk.private<[3, M], f32> {pk.name = "Y"}, %Z: !pk.private<[3, M], f32> {pk.name = "Z"}, %S: !pk.private<[M], f32> {pk.name = "S"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 16>
  pk.tasks (%i) in (%0) {
    %m = pk.block[%i] : !pk.block<M by 16>
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %three = arith.constant 3 : index
    %start = pk.full 0.000000e+00 : f32 : !pk.tile<16xf32>
    %sum = scf.for %l = %zero to %three step %one iter_args(%t = %start) -> (!pk.tile<16xf32>) {
      pk.store %t, %Y[%l, %m : index, !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[3, M], f32>
      pk.store %t, %Z[%l, %m : index, !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[3, M], f32>
      %x = pk.load %X[%l, %m : index, !pk.block<M by 16>] : !pk.private<[3, M], f32> -> !pk.tile<16xf32>
      %u = pk.add %t, %x : !pk.tile<16xf32>
      scf.yield %u : !pk.tile<16xf32>
    }
    pk.store %sum, %S[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
  }
}
