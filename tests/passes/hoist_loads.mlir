// A load that gives the same tile in each iteration moves in front of the loop.
// RUN: pkc-opt %s -p pk-hoist-loads --split-input-file --remarks | filecheck %s

// Out of two loops, with the block that it needs; what an inner loop goes through moves out of that which it does not
// depend on.
// CHECK-LABEL: pk.kernel @loops
// CHECK: pk.tasks (%i) in
// CHECK: %[[D:.*]] = pk.block[%zero] : !pk.block<64 by 64>
// CHECK-NEXT: %q = pk.load %Q[%m, %[[D]] :
// CHECK-NEXT: scf.for %s =
// CHECK-NEXT: %k = pk.block[%s]
// CHECK-NEXT: %b = pk.load %B[%k, %[[D]] :
// CHECK-NEXT: scf.for %t =
// CHECK-NEXT: %n = pk.block[%t]
// CHECK-NEXT: %c = pk.load %B[%n, %[[D]] :
// CHECK-NOT: = pk.load
// CHECK-NOT: remark
pk.kernel @loops(%Q: !pk.private<[M, 64], f32> {pk.name = "Q"}, %B: !pk.private<[K, 64], f32> {pk.name = "B"}, %O: !pk.private<[M, 64], f32> {pk.name = "O"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = pk.block_count <M by 16>
  %steps = pk.block_count <K by 16>
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] : !pk.block<M by 16>
    %start = pk.full 0.0 : f32 : !pk.tile<16x64xf32>
    %all = scf.for %s = %zero to %steps step %one iter_args(%acc = %start) -> (!pk.tile<16x64xf32>) {
      %k = pk.block[%s] : !pk.block<K by 16>
      %sum = scf.for %t = %zero to %s step %one iter_args(%inner = %acc) -> (!pk.tile<16x64xf32>) {
        %n = pk.block[%t] : !pk.block<K by 16>
        %d = pk.block[%zero] : !pk.block<64 by 64>
        %q = pk.load %Q[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.private<[M, 64], f32> -> !pk.tile<16x64xf32>
        %b = pk.load %B[%k, %d : !pk.block<K by 16>, !pk.block<64 by 64>] : !pk.private<[K, 64], f32> -> !pk.tile<16x64xf32>
        %c = pk.load %B[%n, %d : !pk.block<K by 16>, !pk.block<64 by 64>] : !pk.private<[K, 64], f32> -> !pk.tile<16x64xf32>
        %p = pk.mul %q, %b : !pk.tile<16x64xf32>
        %u = pk.mul %p, %c : !pk.tile<16x64xf32>
        %v = pk.add %inner, %u : !pk.tile<16x64xf32>
        scf.yield %v : !pk.tile<16x64xf32>
      }
      scf.yield %sum : !pk.tile<16x64xf32>
    }
    %d = pk.block[%zero] : !pk.block<64 by 64>
    pk.store %all, %O[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, 64], f32>
  }
}

// -----

// Positions: one that tasks number is one of the array if they go through its dimension, a constant one if it is below
// a constant. Others may not exist where the loop has no iteration; a loop from 0 to 2 has one.
// CHECK-LABEL: pk.kernel @positions
// CHECK: pk.tasks (%i, %j) in
// CHECK: pk.load %X[%i, %c, %d
// CHECK: pk.load %X[%i, %c1, %d
// CHECK-NEXT: scf.for
// CHECK-NEXT: pk.load %X[%j, %c, %d
// CHECK: scf.yield
// CHECK: pk.load %X[%j, %c, %d
// CHECK-NEXT: scf.for
// CHECK-NOT: = pk.load
// CHECK: // remark: {{.*}}: pk.load: `X` is loaded in each iteration again: without an iteration, its position may not exist [pk-hoist-loads]
// CHECK-NOT: remark
pk.kernel @positions(%X: !pk.private<[H, 64, 64], f32> {pk.name = "X"}, %O: !pk.private<[H, L, 64], f32> {pk.name = "O"}) {
  %c = arith.constant 0 : index
  %c1 = arith.constant 63 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %h = pk.dim "H"
  %l = pk.dim "L"
  pk.tasks (%i, %j) in (%h, %l) {
    %d = pk.block[%c] : !pk.block<64 by 64>
    %start = pk.full 0.0 : f32 : !pk.tile<64xf32>
    %all = scf.for %s = %c to %l step %one iter_args(%acc = %start) -> (!pk.tile<64xf32>) {
      %x = pk.load %X[%i, %c, %d : index, index, !pk.block<64 by 64>] : !pk.private<[H, 64, 64], f32> -> !pk.tile<64xf32>
      %y = pk.load %X[%i, %c1, %d : index, index, !pk.block<64 by 64>] : !pk.private<[H, 64, 64], f32> -> !pk.tile<64xf32>
      %z = pk.load %X[%j, %c, %d : index, index, !pk.block<64 by 64>] : !pk.private<[H, 64, 64], f32> -> !pk.tile<64xf32>
      %u = pk.add %x, %y : !pk.tile<64xf32>
      %v = pk.add %u, %z : !pk.tile<64xf32>
      %w = pk.add %acc, %v : !pk.tile<64xf32>
      scf.yield %w : !pk.tile<64xf32>
    }
    %twice = scf.for %s = %c to %two step %one iter_args(%acc = %all) -> (!pk.tile<64xf32>) {
      %z = pk.load %X[%j, %c, %d : index, index, !pk.block<64 by 64>] : !pk.private<[H, 64, 64], f32> -> !pk.tile<64xf32>
      %w = pk.add %acc, %z : !pk.tile<64xf32>
      scf.yield %w : !pk.tile<64xf32>
    }
    pk.store %twice, %O[%i, %j, %d : index, index, !pk.block<64 by 64>] : !pk.tile<64xf32>, !pk.private<[H, L, 64], f32>
  }
}

// -----

// What the phase writes, what stands in a branch, and roles that an author wrote stay as they are.
// CHECK-LABEL: pk.kernel @kept
// CHECK: scf.for
// CHECK-NEXT: %x = pk.load %X
// CHECK: scf.if
// CHECK-NEXT: %y = pk.load %Y
// CHECK: pk.role consumer
// CHECK: scf.for
// CHECK-NEXT: pk.load %Y
// CHECK: // remark: {{.*}}: pk.load: `X` is loaded in each iteration again: this phase writes it [pk-hoist-loads]
// CHECK: // remark: {{.*}}: pk.load: `Y` is loaded in each iteration again: it is in a branch [pk-hoist-loads]
// CHECK-NOT: remark
pk.kernel @kept(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = pk.block_count <M by 16>
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] : !pk.block<M by 16>
    scf.for %s = %zero to %rows step %one {
      %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      %even = arith.cmpi eq, %s, %zero : index
      %sum = scf.if %even -> (!pk.tile<16xf32>) {
        %y = pk.load %Y[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
        scf.yield %y : !pk.tile<16xf32>
      } else {
        scf.yield %x : !pk.tile<16xf32>
      }
      pk.store %sum, %X[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
    }
  }
  pk.role consumer {
    pk.tasks (%i) in (%rows) {
      %m = pk.block[%i] : !pk.block<M by 16>
      scf.for %s = %zero to %rows step %one {
        %y = pk.load %Y[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
        pk.store %y, %X[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
      }
    }
  }
}

// -----

// Elements that nobody writes are read once for all tasks inside, at positions that exist: of the dimension of one that
// is read there already. They are not read where there may be none, nor before what writes them.
// CHECK-LABEL: pk.kernel @elements
// CHECK: pk.tasks (%b) in
// CHECK-NEXT: %[[R:.*]] = pk.read %rows[%b]
// CHECK-NEXT: %[[K:.*]] = pk.read %keys[%b]
// CHECK-NEXT: pk.tasks (%h) in (%[[R]]) {
// CHECK-NEXT: pk.read %other[%b]
// CHECK-NEXT: scf.for %{{.*}} = %{{.*}} to %[[K]] step
// CHECK-NEXT: pk.read %written[%b]
pk.kernel @elements(%rows: !pk.private<[N], i32> {pk.name = "rows"}, %keys: !pk.private<[N], i32> {pk.name = "keys"}, %other: !pk.private<[M], i32> {pk.name = "other"}, %written: !pk.private<[N], i32> {pk.name = "written"}) {
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : index
  %n = pk.dim "N"
  %less = arith.subi %n, %one : index
  pk.tasks (%b) in (%less) {
    %r = pk.read %rows[%b] : !pk.private<[N], i32>
    pk.tasks (%h) in (%r) {
      %o = pk.read %other[%b] : !pk.private<[M], i32>
      %k = pk.read %keys[%b] : !pk.private<[N], i32>
      scf.for %i = %zero to %k step %one {
        %w = pk.read %written[%b] : !pk.private<[N], i32>
        %sum = arith.addi %w, %o : index
        %t = pk.splat %sum : index -> !pk.tile<i32>
        pk.store %t, %written[%h : index] : !pk.tile<i32>, !pk.private<[N], i32>
      }
    }
  }
}
