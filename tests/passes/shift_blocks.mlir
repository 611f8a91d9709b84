// Positions of a block and a number more are a block of another list.
// RUN: pkc-opt %s -p pk-shift-blocks --split-input-file --verify-diagnostics | filecheck %s

// What sizes alone decide stands behind the block.
// CHECK-LABEL: pk.kernel @columns
// CHECK: %n = pk.block[%j] : !pk.block<N by 128>
// CHECK: %[[BY:.*]] = pk.dim "N"
// CHECK: %[[STOP:.*]] = arith.addi %{{.*}}, %[[BY]] : index
// CHECK: %[[END:.*]] = arith.minsi %[[STOP]], %{{.*}} : index
// CHECK: %[[SHIFTED:.*]] = pk.block[%j] from %[[BY]] to %[[END]] {shifted = !pk.block<N by 128>} : !pk.block<L by 128>
// CHECK-NOT: pk.gather
// CHECK: %w = pk.load %W[%k, %[[SHIFTED]] : !pk.block<K by 64>, !pk.block<L by 128>]
pk.kernel @columns(%W: !pk.private<[K, L], bf16> {pk.name = "W"}, %Y: !pk.private<[K, N], bf16> {pk.name = "Y"}) attributes {schedule = {}} {
  %rows = pk.block_count <K by 64>
  %columns = pk.block_count <N by 128>
  pk.tasks (%i, %j) in (%rows, %columns) {
    %k = pk.block[%i] : !pk.block<K by 64>
    %n = pk.block[%j] : !pk.block<N by 128>
    %p = pk.positions %n : !pk.block<N by 128> -> !pk.tile<128xi32>
    %by = pk.dim "N"
    %bys = pk.splat %by : index -> !pk.tile<128xi32>
    %q = pk.add %p, %bys : !pk.tile<128xi32>
    %length = pk.dim "L"
    %lengths = pk.splat %length : index -> !pk.tile<128xi32>
    %inside = pk.compare lt, %q, %lengths : !pk.tile<128xi32> -> !pk.tile<128xi1>
    %none = pk.full -1 : i32 : !pk.tile<128xi32>
    %t = pk.select %inside, %q, %none : !pk.tile<128xi1>, !pk.tile<128xi32>
    %table = pk.clip %t axis 0 to %n fill -1 : i32 : !pk.tile<128xi32>, !pk.block<N by 128> -> !pk.tile<128xi32>
    %w = pk.gather %W rows %table dim 1 axes [0, 1][%k : !pk.block<K by 64>] : !pk.private<[K, L], bf16>, !pk.tile<128xi32> -> !pk.tile<64x128xbf16>
    pk.store %w, %Y[%k, %n : !pk.block<K by 64>, !pk.block<N by 128>] : !pk.tile<64x128xbf16>, !pk.private<[K, N], bf16>
  }
}

// -----

// Rows that are stored, shifted by the number of an iteration.
// CHECK-LABEL: pk.kernel @rows
// CHECK: scf.for %[[I:.*]] =
// CHECK: pk.block[%j] from %[[I]] to %{{.*}} {shifted = !pk.block<M by 16>} : !pk.block<M by 16>
// CHECK: pk.store
// CHECK-NOT: pk.scatter_store
pk.kernel @rows(%X: !pk.private<[M, 64], f32> {pk.name = "X"}, %Y: !pk.private<[M, 64], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %rows = pk.block_count <M by 16>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  pk.tasks (%j) in (%rows) {
    %m = pk.block[%j] : !pk.block<M by 16>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %x = pk.load %X[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.private<[M, 64], f32> -> !pk.tile<16x64xf32>
    scf.for %i = %zero to %three step %one {
      %p = pk.positions %m : !pk.block<M by 16> -> !pk.tile<16xi32>
      %bys = pk.splat %i : index -> !pk.tile<16xi32>
      %q = pk.add %p, %bys : !pk.tile<16xi32>
      %length = pk.dim "M"
      %lengths = pk.splat %length : index -> !pk.tile<16xi32>
      %inside = pk.compare lt, %q, %lengths : !pk.tile<16xi32> -> !pk.tile<16xi1>
      %none = pk.full -1 : i32 : !pk.tile<16xi32>
      %t = pk.select %inside, %q, %none : !pk.tile<16xi1>, !pk.tile<16xi32>
      %table = pk.clip %t axis 0 to %m fill -1 : i32 : !pk.tile<16xi32>, !pk.block<M by 16> -> !pk.tile<16xi32>
      pk.scatter_store %x, %Y rows %table[%d : !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, 64], f32>, !pk.tile<16xi32>
    }
  }
}

// -----

// Numbers that are not negative: ranks, positions, quotients and remainders of such, the least and the greatest.
// CHECK-LABEL: pk.kernel @signs
// CHECK: pk.block[%j] from %by to %{{.*}} {shifted = !pk.block<N by 16>} : !pk.block<L by 16>
// CHECK-NOT: pk.gather
pk.kernel @signs(%X: !pk.private<[L, 64], f32> {pk.name = "X"}, %Y: !pk.private<[N, 64], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %columns = pk.block_count <N by 16>
  pk.tasks (%j) in (%columns) {
    %n = pk.block[%j] : !pk.block<N by 16>
    %zero = arith.constant 0 : index
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %rank = pk.rank
    %first = pk.block_position %n : !pk.block<N by 16>
    %size = pk.dim "N"
    %below = arith.constant -3 : index
    %four = arith.constant 4 : index
    %quotient = arith.floordivsi %size, %four : index
    %product = arith.muli %quotient, %four : index
    %rest = arith.subi %size, %product : index
    %least = arith.minsi %quotient, %rest : index
    %most = arith.maxsi %least, %below : index
    %more = arith.addi %rank, %first : index
    %by = arith.addi %more, %most : index
    %p = pk.positions %n : !pk.block<N by 16> -> !pk.tile<16xi32>
    %bys = pk.splat %by : index -> !pk.tile<16xi32>
    %q = pk.add %p, %bys : !pk.tile<16xi32>
    %length = pk.dim "L"
    %lengths = pk.splat %length : index -> !pk.tile<16xi32>
    %inside = pk.compare lt, %q, %lengths : !pk.tile<16xi32> -> !pk.tile<16xi1>
    %none = pk.full -1 : i32 : !pk.tile<16xi32>
    %t = pk.select %inside, %q, %none : !pk.tile<16xi1>, !pk.tile<16xi32>
    %table = pk.clip %t axis 0 to %n fill -1 : i32 : !pk.tile<16xi32>, !pk.block<N by 16> -> !pk.tile<16xi32>
    %x = pk.gather %X rows %table[%d : !pk.block<64 by 64>] : !pk.private<[L, 64], f32>, !pk.tile<16xi32> -> !pk.tile<16x64xf32>
    pk.store %x, %Y[%n, %d : !pk.block<N by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.private<[N, 64], f32>
  }
}

// -----

// Rows in front of the array are none: their block begins outside of it.
// CHECK-LABEL: pk.kernel @before
// CHECK:       %[[OUTSIDE:.*]] = pk.block[%j] from %[[BY:.*]] to %{{.*}} outside {shifted = !pk.block<M by 16>} : !pk.block<M by 16>
// CHECK:       pk.load %X[%[[OUTSIDE]], %d :
// CHECK-NOT:   pk.gather
pk.kernel @before(%X: !pk.private<[M, 64], f32> {pk.name = "X"}, %Y: !pk.private<[M, 64], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %rows = pk.block_count <M by 16>
  %zero = arith.constant 0 : index
  pk.tasks (%j) in (%rows) {
    %m = pk.block[%j] : !pk.block<M by 16>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %p = pk.positions %m : !pk.block<M by 16> -> !pk.tile<16xi32>
    %bys = pk.full -1 : i32 : !pk.tile<16xi32>
    %q = pk.add %p, %bys : !pk.tile<16xi32>
    %length = pk.dim "M"
    %lengths = pk.splat %length : index -> !pk.tile<16xi32>
    %inside = pk.compare lt, %q, %lengths : !pk.tile<16xi32> -> !pk.tile<16xi1>
    %t = pk.select %inside, %q, %bys : !pk.tile<16xi1>, !pk.tile<16xi32>
    %table = pk.clip %t axis 0 to %m fill -1 : i32 : !pk.tile<16xi32>, !pk.block<M by 16> -> !pk.tile<16xi32>
    %x = pk.gather %X rows %table[%d : !pk.block<64 by 64>] : !pk.private<[M, 64], f32>, !pk.tile<16xi32> -> !pk.tile<16x64xf32>
    pk.store %x, %Y[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, 64], f32>
  }
}

// -----

// Columns in front of a row are other rows' elements, and tables that go on past the end of the array stay.
// CHECK-LABEL: pk.kernel @columns
// CHECK: pk.gather
pk.kernel @columns(%X: !pk.private<[64, M], f32> {pk.name = "X"}, %Y: !pk.private<[64, M], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %rows = pk.block_count <M by 16>
  %zero = arith.constant 0 : index
  pk.tasks (%j) in (%rows) {
    %m = pk.block[%j] : !pk.block<M by 16>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %p = pk.positions %m : !pk.block<M by 16> -> !pk.tile<16xi32>
    %bys = pk.full -1 : i32 : !pk.tile<16xi32>
    %q = pk.add %p, %bys : !pk.tile<16xi32>
    %length = pk.dim "M"
    %lengths = pk.splat %length : index -> !pk.tile<16xi32>
    %inside = pk.compare lt, %q, %lengths : !pk.tile<16xi32> -> !pk.tile<16xi1>
    %t = pk.select %inside, %q, %bys : !pk.tile<16xi1>, !pk.tile<16xi32>
    %table = pk.clip %t axis 0 to %m fill -1 : i32 : !pk.tile<16xi32>, !pk.block<M by 16> -> !pk.tile<16xi32>
    %x = pk.gather %X rows %table dim 1 axes [0, 1][%d : !pk.block<64 by 64>] : !pk.private<[64, M], f32>, !pk.tile<16xi32> -> !pk.tile<64x16xf32>
    pk.store %x, %Y[%d, %m : !pk.block<64 by 64>, !pk.block<M by 16>] : !pk.tile<64x16xf32>, !pk.private<[64, M], f32>
  }
}
