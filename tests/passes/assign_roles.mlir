// Which role carries out what; integers belong to nobody.
// RUN: pkc-opt %s -p pk-assign-roles --split-input-file --verify-diagnostics | filecheck %s

// Reads, arithmetic, writes; a loop that carries tiles is the consumer's.
// CHECK-LABEL: pk.kernel @ag
// CHECK: pk.role consumer attributes {derived}
// CHECK: pk.block_count <M by 16> sharded{{$}}
// CHECK: pk.full {{.*}}role_name consumer
// CHECK: pk.load %A{{.*}}role_name loader
// CHECK: pk.load %B{{.*}}role_name loader
// CHECK: pk.mma {{.*}}role_name consumer
// CHECK: scf.yield {role = #pk<role_name consumer>}
// CHECK-NEXT: } {role = #pk<role_name consumer>}
// CHECK: pk.cast {{.*}}role_name consumer
// CHECK: pk.store {{.*}}role_name storer
pk.kernel @ag(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 16> sharded
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] sharded : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<16x32xf32>
    %4 = pk.block_count <K by 16>
    %5 = arith.constant 0 : index
    %6 = arith.constant 1 : index
    %acc_1 = scf.for %7 = %5 to %4 step %6 iter_args(%acc_2 = %acc) -> (!pk.tile<16x32xf32>) {
      %k = pk.block[%7] : !pk.block<K by 16>
      %8 = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      %9 = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 32>] : !pk.private<[K, N], bf16> -> !pk.tile<16x32xbf16>
      %acc_3 = pk.mma %8, %9, %acc_2 : !pk.tile<16x16xbf16>, !pk.tile<16x32xbf16> -> !pk.tile<16x32xf32>
      scf.yield %acc_3 : !pk.tile<16x32xf32>
    }
    %10 = pk.cast %acc_1 : !pk.tile<16x32xf32> -> !pk.tile<16x32xbf16>
    pk.store %10, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// The table of a gather is the loader's, clipped or not.
// CHECK-LABEL: pk.kernel @gathered
// CHECK: pk.read %count[%{{.*}}] :
// CHECK: pk.load %rows{{.*}}role_name loader
// CHECK: pk.gather {{.*}}role_name loader
// CHECK: pk.store {{.*}}role_name storer
pk.kernel @gathered(%X: !pk.pgl<[T, H], f32, shard 0> {pk.name = "X"}, %rows: !pk.private<[E, P], i32> {pk.name = "rows"}, %count: !pk.private<[E], i32> {pk.name = "count"}, %Y: !pk.private<[E, P, N, H], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %0 = pk.dim "E"
  pk.tasks (%e) in (%0) {
    %1 = pk.read %count[%e] : !pk.private<[E], i32>
    %2 = pk.dim "N"
    %3 = pk.block_count <P by 8> to %1
    pk.tasks (%4, %n) in (%3, %2) {
      %p = pk.block[%4] to %1 : !pk.block<P by 8>
      %5 = pk.block_count <H by 16>
      %6 = arith.constant 0 : index
      %7 = arith.constant 1 : index
      scf.for %8 = %6 to %5 step %7 {
        %h = pk.block[%8] : !pk.block<H by 16>
        %9 = pk.load %rows[%e, %p : index, !pk.block<P by 8>] : !pk.private<[E, P], i32> -> !pk.tile<8xi32>
        %10 = pk.gather %X rows %9[%h : !pk.block<H by 16>] : !pk.pgl<[T, H], f32, shard 0>, !pk.tile<8xi32> -> !pk.tile<8x16xf32>
        pk.store %10, %Y[%e, %p, %n, %h : index, !pk.block<P by 8>, index, !pk.block<H by 16>] : !pk.tile<8x16xf32>, !pk.private<[E, P, N, H], f32>
      }
    }
  }
}

// -----

// What is computed for a table too.
// CHECK-LABEL: pk.kernel @gathered
// CHECK: pk.load %rows{{.*}}role_name loader
// CHECK: pk.add {{.*}}role_name loader
// CHECK: pk.gather {{.*}}role_name loader
pk.kernel @gathered(%X: !pk.pgl<[T, H], f32, shard 0> {pk.name = "X"}, %rows: !pk.private<[E, P], i32> {pk.name = "rows"}, %count: !pk.private<[E], i32> {pk.name = "count"}, %Y: !pk.private<[E, P, N, H], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %0 = pk.dim "E"
  pk.tasks (%e) in (%0) {
    %1 = pk.read %count[%e] : !pk.private<[E], i32>
    %2 = pk.dim "N"
    %3 = pk.block_count <P by 8> to %1
    pk.tasks (%4, %n) in (%3, %2) {
      %p = pk.block[%4] to %1 : !pk.block<P by 8>
      %5 = pk.block_count <H by 16>
      %6 = arith.constant 0 : index
      %7 = arith.constant 1 : index
      scf.for %8 = %6 to %5 step %7 {
        %h = pk.block[%8] : !pk.block<H by 16>
        %9 = pk.load %rows[%e, %p : index, !pk.block<P by 8>] : !pk.private<[E, P], i32> -> !pk.tile<8xi32>
        %10 = pk.full 1 : i32 : !pk.tile<8xi32>
        %11 = pk.add %9, %10 : !pk.tile<8xi32>
        %12 = pk.gather %X rows %11[%h : !pk.block<H by 16>] : !pk.pgl<[T, H], f32, shard 0>, !pk.tile<8xi32> -> !pk.tile<8x16xf32>
        pk.store %12, %Y[%e, %p, %n, %h : index, !pk.block<P by 8>, index, !pk.block<H by 16>] : !pk.tile<8x16xf32>, !pk.private<[E, P, N, H], f32>
      }
    }
  }
}

// -----

// The table of a scatter is loaded by the loader, like any tile; its rows are what is used.
// CHECK-LABEL: pk.kernel @scattered
// CHECK: pk.load %rows{{.*}}role_name loader
// CHECK: pk.load %Y{{.*}}role_name loader
// CHECK: pk.scatter_add {{.*}}role_name storer
pk.kernel @scattered(%Y: !pk.private<[P, N], f32> {pk.name = "Y"}, %rows: !pk.private<[P], i32> {pk.name = "rows"}, %O: !pk.pgl<[T, N], f32, shard 0> {pk.name = "O"}) attributes {schedule = {}} {
  %0 = pk.block_count <P by 8>
  %1 = pk.block_count <N by 16>
  pk.tasks (%2, %3) in (%0, %1) {
    %p = pk.block[%2] : !pk.block<P by 8>
    %n = pk.block[%3] : !pk.block<N by 16>
    %4 = pk.load %rows[%p : !pk.block<P by 8>] : !pk.private<[P], i32> -> !pk.tile<8xi32>
    %5 = pk.load %Y[%p, %n : !pk.block<P by 8>, !pk.block<N by 16>] : !pk.private<[P, N], f32> -> !pk.tile<8x16xf32>
    %6 = pk.clip %4 axis 0 to %p fill -1 : i32 : !pk.tile<8xi32>, !pk.block<P by 8> -> !pk.tile<8xi32>
    pk.scatter_add %5, %O rows %6[%n : !pk.block<N by 16>] : !pk.tile<8x16xf32>, !pk.pgl<[T, N], f32, shard 0>, !pk.tile<8xi32>
  }
}

// -----

// A branch that gives tiles is the consumer's, as are the views that it yields.
// CHECK-LABEL: pk.kernel @guarded
// CHECK: pk.read %T[%{{.*}}] :
// CHECK: scf.if
// CHECK: pk.load %X{{.*}}role_name loader
// CHECK: pk.mul {{.*}}role_name consumer
// CHECK: scf.yield {role = #pk<role_name consumer>}
pk.kernel @guarded(%X: !pk.pgl<[M, N], f32, shard 0> {pk.name = "X"}, %T: !pk.private<[L], i32> {pk.name = "T"}, %Y: !pk.private<[L, N], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %0 = pk.dim "L"
  %1 = pk.block_count <N by 16>
  pk.tasks (%l, %2) in (%0, %1) {
    %n = pk.block[%2] : !pk.block<N by 16>
    %t = pk.full 0.000000e+00 : f32 : !pk.tile<16xf32>
    %3 = arith.constant 0 : index
    %4 = pk.read %T[%3] : !pk.private<[L], i32>
    %5 = arith.cmpi sge, %4, %3 : index
    %t_1 = scf.if %5 -> (!pk.tile<16xf32>) {
      %6 = pk.read %T[%3] : !pk.private<[L], i32>
      %7 = pk.load %X[%6, %n : index, !pk.block<N by 16>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<16xf32>
      %8 = pk.full 2.000000e+00 : f32 : !pk.tile<16xf32>
      %t_2 = pk.mul %7, %8 : !pk.tile<16xf32>
      scf.yield %t_2 : !pk.tile<16xf32>
    } else {
      scf.yield %t : !pk.tile<16xf32>
    }
    pk.store %t_1, %Y[%l, %n : index, !pk.block<N by 16>] : !pk.tile<16xf32>, !pk.private<[L, N], f32>
  }
}

// -----

// A loop that carries an integer belongs to those who need it.
// CHECK-LABEL: pk.kernel @carried
// CHECK: pk.load %X{{.*}}role_name loader
pk.kernel @carried(%X: !pk.pgl<[M, N], f32, shard 0> {pk.name = "X"}, %Y: !pk.private<[L, N], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %0 = pk.dim "L"
  %1 = pk.block_count <N by 16>
  pk.tasks (%l, %2) in (%0, %1) {
    %n = pk.block[%2] : !pk.block<N by 16>
    %acc = pk.full 0.000000e+00 : f32 : !pk.tile<16xf32>
    %3 = arith.constant 3 : index
    %4 = arith.constant 0 : index
    %5 = arith.constant 1 : index
    %6 = arith.constant 2 : index
    %i, %acc_1 = scf.for %7 = %4 to %3 step %5 iter_args(%i_1 = %4, %acc_2 = %acc) -> (index, !pk.tile<16xf32>) {
      %8 = arith.addi %i_1, %6 : index
      %9 = arith.floordivsi %8, %3 : index
      %10 = arith.muli %9, %3 : index
      %i_2 = arith.subi %8, %10 : index
      %11 = pk.load %X[%i_2, %n : index, !pk.block<N by 16>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<16xf32>
      %acc_3 = pk.add %acc_2, %11 : !pk.tile<16xf32>
      scf.yield %i_2, %acc_3 : index, !pk.tile<16xf32>
    }
    pk.store %acc_1, %Y[%l, %n : index, !pk.block<N by 16>] : !pk.tile<16xf32>, !pk.private<[L, N], f32>
  }
}

// -----

// In place: what is stored follows from what was loaded.
// CHECK-LABEL: pk.kernel @in_place
// CHECK: pk.load %Y{{.*}}role_name loader
// CHECK: pk.store {{.*}}role_name storer
pk.kernel @in_place(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 16>
  pk.tasks (%1) in (%0) {
    %m = pk.block[%1] : !pk.block<M by 16>
    %2 = pk.load %Y[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
    %3 = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
    %4 = pk.mul %2, %3 : !pk.tile<16xf32>
    pk.store %4, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
  }
}

// -----

// A read behind a write, which the loader would not wait for.
// CHECK: error[PK436]: a task reads and writes `T` in an order that its loader and storer would not keep
pk.kernel @behind(%X: !pk.private<[M], f32> {pk.name = "X"}, %T: !pk.private<[M], f32> {pk.name = "T", pk.scratch}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 16>
  pk.tasks (%1) in (%0) {
    %m = pk.block[%1] : !pk.block<M by 16>
    %2 = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
    %3 = pk.full 2.000000e+00 : f32 : !pk.tile<16xf32>
    %4 = pk.mul %2, %3 : !pk.tile<16xf32>
    pk.store %4, %T[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
    %5 = pk.load %T[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
    %6 = pk.full 1.000000e+00 : f32 : !pk.tile<16xf32>
    %7 = pk.add %5, %6 : !pk.tile<16xf32>
    pk.store %7, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
  }
}

// -----

// The next iteration would read what this one has not yet written.
// CHECK: error[PK436]: a task reads and writes `Y` in
pk.kernel @steps(%Y: !pk.private<[M], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 16>
  pk.tasks (%1) in (%0) {
    %m = pk.block[%1] : !pk.block<M by 16>
    %2 = arith.constant 3 : index
    %3 = arith.constant 0 : index
    %4 = arith.constant 1 : index
    scf.for %5 = %3 to %2 step %4 {
      %6 = pk.load %Y[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      %7 = pk.full 2.000000e+00 : f32 : !pk.tile<16xf32>
      %8 = pk.mul %6, %7 : !pk.tile<16xf32>
      pk.store %8, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
    }
  }
}

// -----

// Roles that the author wrote are left alone.
// CHECK-LABEL: pk.kernel @written
// CHECK-NOT: role =
pk.kernel @written(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  pk.role consumer {
    %0 = pk.block_count <M by 16>
    pk.tasks (%1) in (%0) {
      %m = pk.block[%1] : !pk.block<M by 16>
      %2 = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      %3 = pk.full 1.000000e+00 : f32 : !pk.tile<16xf32>
      %4 = pk.add %2, %3 : !pk.tile<16xf32>
      pk.store %4, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
    }
  }
}

// -----

// What an earlier pass has assigned stays: a wait of the storer.
// CHECK-LABEL: pk.kernel @given
// CHECK: pk.wait %ready{{.*}}role_name storer
// CHECK: pk.wait %ready{{.*}}role_name loader
pk.kernel @given(%Y: !pk.private<[M], f32> {pk.name = "Y"}, %ready: !pk.signal<[1]> {pk.name = "ready"}) attributes {derived} {
  pk.role consumer attributes {derived} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    pk.wait %ready[%zero] for %one {role = #pk<role_name storer>} : !pk.signal<[1]>
    pk.wait %ready[%zero] for %one : !pk.signal<[1]>
    pk.tasks (%i) in (%one) {
      %m = pk.block[%i] : !pk.block<M by 16>
      %x = pk.full 0.0 : f32 : !pk.tile<16xf32>
      pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
    }
  }
}

// -----

// Consumers compute what a table follows from floats by; the rest of it goes with the access.
// CHECK-LABEL: pk.kernel @buckets
// CHECK: pk.floor {{.*}}role_name consumer
// CHECK: pk.cast {{.*}}role_name consumer
// CHECK: pk.min {{.*}}role_name loader
// CHECK: pk.gather {{.*}}role_name loader
pk.kernel @buckets(%X: !pk.private<[M], f32> {pk.name = "X"}, %T: !pk.private<[64], f32> {pk.name = "T"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 16>
  pk.tasks (%1) in (%0) {
    %m = pk.block[%1] : !pk.block<M by 16>
    %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
    %f = pk.floor %x : !pk.tile<16xf32>
    %i = pk.cast %f : !pk.tile<16xf32> -> !pk.tile<16xi32>
    %most = pk.full 63 : i32 : !pk.tile<16xi32>
    %b = pk.min %i, %most : !pk.tile<16xi32>
    %t = pk.gather %T rows %b[:] : !pk.private<[64], f32>, !pk.tile<16xi32> -> !pk.tile<16xf32>
    pk.store %t, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
  }
}
