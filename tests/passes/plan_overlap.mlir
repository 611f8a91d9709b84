// What each access between ranks is planned to be, and why.
// RUN: pkc-opt %s -p pk-plan-overlap --split-input-file --verify-diagnostics --remarks | filecheck %s

// An operand that several tasks use is fetched ahead; what is private has no plan.
// CHECK-LABEL: pk.kernel @ag
// CHECK: pk.load %A{{.*}}remote = {overlap = "inter_sm", why = "used again along n: fetched once, by a communicator"}
// CHECK-NOT: edge
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

// The schedule wins, with a reason that says so.
// CHECK-LABEL: pk.kernel @ag
// CHECK: pk.load %A{{.*}}remote = {overlap = "intra_sm", why = "the schedule says so"}
pk.kernel @ag(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {schedule = {overlap = "intra_sm"}} {
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

// Nothing overlaps if the schedule says so.
// CHECK-LABEL: pk.kernel @ag
// CHECK: pk.load %A{{.*}}remote = {overlap = "none", why = "the schedule says so"}
pk.kernel @ag(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {schedule = {overlap = "none"}} {
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

// A sum that its owners keep is sent by the SM that computes it.
// CHECK-LABEL: pk.kernel @rs
// CHECK: pk.accumulate {{.*}}remote = {overlap = "intra_sm", why = "one aligned write
pk.kernel @rs(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 16> sharded
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] sharded : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %4 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.private<[M, N], bf16> -> !pk.tile<16x32xbf16>
    pk.accumulate %4, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.pgl<[M, N], bf16, shard 0>
  }
}

// -----

// A sum that every rank gets comes back from separate SMs.
// CHECK-LABEL: pk.kernel @ar
// CHECK: pk.accumulate {{.*}}remote = {overlap = "inter_sm", why = "every rank gets the sum
pk.kernel @ar(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, replicate> {pk.name = "C"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 16>
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %4 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.private<[M, N], bf16> -> !pk.tile<16x32xbf16>
    pk.accumulate %4, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.pgl<[M, N], bf16, replicate>
  }
}

// -----

// Local rows are read here, columns of others written.
// CHECK-LABEL: pk.kernel @push
// CHECK: pk.load %X{{.*}}] : !pk.pgl
// CHECK: pk.store {{.*}}remote = {overlap = "intra_sm", why = "one aligned write
pk.kernel @push(%X: !pk.pgl<[M, N], f32, shard 0> {pk.name = "X"}, %Y: !pk.pgl<[M, N], f32, shard 1> {pk.name = "Y"}) attributes {schedule = {}} {
  %0 = pk.rank
  %1 = pk.block_count <M by 16> of %0 sharded
  %2 = pk.block_count <N by 16> sharded
  pk.tasks (%3, %4) in (%1, %2) {
    %m = pk.block[%3] of %0 sharded : !pk.block<M by 16>
    %n = pk.block[%4] sharded : !pk.block<N by 16>
    %5 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<16x16xf32>
    pk.store %5, %Y[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xf32>, !pk.pgl<[M, N], f32, shard 1>
  }
}

// -----

// A replicated array is written on every rank.
// CHECK-LABEL: pk.kernel @spread
// CHECK: pk.store {{.*}}remote = {overlap = "intra_sm"
pk.kernel @spread(%X: !pk.pgl<[M, N], f32, shard 0> {pk.name = "X"}, %Y: !pk.pgl<[M, N], f32, replicate> {pk.name = "Y"}) attributes {schedule = {}} {
  %0 = pk.rank
  %1 = pk.block_count <M by 16> of %0 sharded
  %2 = pk.block_count <N by 16>
  pk.tasks (%3, %4) in (%1, %2) {
    %m = pk.block[%3] of %0 sharded : !pk.block<M by 16>
    %n = pk.block[%4] : !pk.block<N by 16>
    %5 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<16x16xf32>
    pk.store %5, %Y[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xf32>, !pk.pgl<[M, N], f32, replicate>
  }
}

// -----

// A gather is one edge, its table none.
// CHECK-LABEL: pk.kernel @gathered
// CHECK: pk.load %rows{{.*}}] : !pk.private
// CHECK: pk.gather %X{{.*}}remote = {overlap = "inter_sm", why = "used again along n
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

// Rows that a table scatters.
// CHECK-LABEL: pk.kernel @scattered
// CHECK: pk.scatter_accumulate {{.*}}remote = {overlap = "intra_sm", why = "rows go where a table says
pk.kernel @scattered(%Y: !pk.private<[P, N], f32> {pk.name = "Y"}, %rows: !pk.private<[P], i32> {pk.name = "rows"}, %O: !pk.pgl<[T, N], f32, shard 0> {pk.name = "O"}) attributes {schedule = {}} {
  %0 = pk.block_count <P by 8>
  %1 = pk.block_count <N by 16>
  pk.tasks (%2, %3) in (%0, %1) {
    %p = pk.block[%2] : !pk.block<P by 8>
    %n = pk.block[%3] : !pk.block<N by 16>
    %4 = pk.load %rows[%p : !pk.block<P by 8>] : !pk.private<[P], i32> -> !pk.tile<8xi32>
    %5 = pk.load %Y[%p, %n : !pk.block<P by 8>, !pk.block<N by 16>] : !pk.private<[P, N], f32> -> !pk.tile<8x16xf32>
    %6 = pk.clip %4 axis 0 to %p fill -1 : i32 : !pk.tile<8xi32>, !pk.block<P by 8> -> !pk.tile<8xi32>
    pk.scatter_accumulate %5, %O rows %6[%n : !pk.block<N by 16>] : !pk.tile<8x16xf32>, !pk.pgl<[T, N], f32, shard 0>, !pk.tile<8xi32>
  }
}

// -----

// They have no other plan.
// CHECK: error[PK430]: `overlap=inter_sm` is not possible for this scattered sum of `O`
pk.kernel @scattered(%Y: !pk.private<[P, N], f32> {pk.name = "Y"}, %rows: !pk.private<[P], i32> {pk.name = "rows"}, %O: !pk.pgl<[T, N], f32, shard 0> {pk.name = "O"}) attributes {schedule = {overlap = "inter_sm"}} {
  %0 = pk.block_count <P by 8>
  %1 = pk.block_count <N by 16>
  pk.tasks (%2, %3) in (%0, %1) {
    %p = pk.block[%2] : !pk.block<P by 8>
    %n = pk.block[%3] : !pk.block<N by 16>
    %4 = pk.load %rows[%p : !pk.block<P by 8>] : !pk.private<[P], i32> -> !pk.tile<8xi32>
    %5 = pk.load %Y[%p, %n : !pk.block<P by 8>, !pk.block<N by 16>] : !pk.private<[P, N], f32> -> !pk.tile<8x16xf32>
    %6 = pk.clip %4 axis 0 to %p fill -1 : i32 : !pk.tile<8xi32>, !pk.block<P by 8> -> !pk.tile<8xi32>
    pk.scatter_accumulate %5, %O rows %6[%n : !pk.block<N by 16>] : !pk.tile<8x16xf32>, !pk.pgl<[T, N], f32, shard 0>, !pk.tile<8xi32>
  }
}

// -----

// Copy engines send contributions too; the owners add.
// CHECK-LABEL: pk.kernel @rs
// CHECK: pk.accumulate {{.*}}remote = {overlap = "copy_engine", why = "the schedule says so"}
pk.kernel @rs(%X: !pk.private<[M, N], bf16> {pk.name = "X"}, %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) attributes {schedule = {overlap = "copy_engine"}} {
  %0 = pk.block_count <M by 16> sharded
  %1 = pk.block_count <N by 32>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] sharded : !pk.block<M by 16>
    %n = pk.block[%3] : !pk.block<N by 32>
    %4 = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.private<[M, N], bf16> -> !pk.tile<16x32xbf16>
    pk.accumulate %4, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 32>] : !pk.tile<16x32xbf16>, !pk.pgl<[M, N], bf16, shard 0>
  }
}

// -----

// But not in a loop: the host enqueues one copy for each task.
// CHECK: error[PK430]: `overlap=copy_engine` is not possible for this write of `Y`
// CHECK: it stands in a loop or branch, and the host enqueues one copy for each task
pk.kernel @looped(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.pgl<[M], f32, shard 0> {pk.name = "Y"}) attributes {schedule = {overlap = "copy_engine"}} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  pk.tasks (%2) in (%1) {
    %3 = pk.block_count <M by 16> sharded
    scf.for %4 = %0 to %3 step %1 {
      %m = pk.block[%4] sharded : !pk.block<M by 16>
      %5 = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      pk.store %5, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, shard 0>
    }
  }
}

// -----

// An index that a loop carries is not known ahead; nor is an address that a branch guards.
// CHECK-LABEL: pk.kernel @carried
// CHECK: pk.load %X{{.*}}remote = {overlap = "intra_sm", why = "its address is known only where it is used
// CHECK: // remark: {{.*}}: pk.load: `X` is not fetched ahead, and each task along l fetches it again: its address is known only where it is used [pk-plan-overlap]
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

// A branch.
// CHECK-LABEL: pk.kernel @guarded
// CHECK: pk.load %X{{.*}}remote = {overlap = "intra_sm", why = "its address is known only where it is used
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

// K and V are used by every block of queries; queries stay on their rank.
// CHECK-LABEL: pk.kernel @attention
// CHECK: pk.load %Q{{.*}}] : !pk.pgl
// CHECK: pk.load %K{{.*}}overlap = "inter_sm", why = "used again along q
// CHECK: pk.load %V{{.*}}overlap = "inter_sm"
// CHECK: pk.store {{.*}}] : !pk.tile
pk.kernel @attention(%Q: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "Q"}, %K: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "K"}, %V: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "V"}, %O: !pk.pgl<[S, 16], bf16, shard 0> {pk.name = "O"}) attributes {schedule = {}} {
  %0 = pk.rank
  %1 = pk.block_count <S by 16> of %0 sharded
  pk.tasks (%2) in (%1) {
    %q = pk.block[%2] of %0 sharded : !pk.block<S by 16>
    %o = pk.full 0.000000e+00 : f32 : !pk.tile<16x16xf32>
    %3 = pk.dim "ranks"
    %4 = arith.constant 0 : index
    %5 = arith.constant 1 : index
    %o_1 = scf.for %6 = %4 to %3 step %5 iter_args(%o_2 = %o) -> (!pk.tile<16x16xf32>) {
      %7 = pk.ring_peer %6
      %8 = pk.block_count <S by 16> of %7 sharded
      %o_3 = scf.for %9 = %4 to %8 step %5 iter_args(%o_4 = %o_2) -> (!pk.tile<16x16xf32>) {
        %kv = pk.block[%9] of %7 sharded : !pk.block<S by 16>
        %10 = pk.block[%4] : !pk.block<16 by 16>
        %11 = pk.load %Q[%q, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] : !pk.pgl<[S, 16], bf16, shard 0> -> !pk.tile<16x16xbf16>
        %12 = pk.load %K[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] : !pk.pgl<[S, 16], bf16, shard 0> -> !pk.tile<16x16xbf16>
        %13 = pk.transpose %12 : !pk.tile<16x16xbf16> -> !pk.tile<16x16xbf16>
        %14 = pk.mma %11, %13, %o : !pk.tile<16x16xbf16>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xf32>
        %15 = pk.cast %14 : !pk.tile<16x16xf32> -> !pk.tile<16x16xbf16>
        %16 = pk.load %V[%kv, %10 : !pk.block<S by 16>, !pk.block<16 by 16>] : !pk.pgl<[S, 16], bf16, shard 0> -> !pk.tile<16x16xbf16>
        %17 = pk.clip %15 axis 1 to %kv fill 0.000000e+00 : bf16 : !pk.tile<16x16xbf16>, !pk.block<S by 16> -> !pk.tile<16x16xbf16>
        %o_5 = pk.mma %17, %16, %o_4 : !pk.tile<16x16xbf16>, !pk.tile<16x16xbf16> -> !pk.tile<16x16xf32>
        scf.yield %o_5 : !pk.tile<16x16xf32>
      }
      scf.yield %o_3 : !pk.tile<16x16xf32>
    }
    %18 = pk.block[%4] : !pk.block<16 by 16>
    %19 = pk.cast %o_1 : !pk.tile<16x16xf32> -> !pk.tile<16x16xbf16>
    pk.store %19, %O[%q, %18 : !pk.block<S by 16>, !pk.block<16 by 16>] : !pk.tile<16x16xbf16>, !pk.pgl<[S, 16], bf16, shard 0>
  }
}

// -----

// Between phases nothing is read: who would know when?
// CHECK: error[PK431]: no roles can be derived for `between`: it is not a sequence of `tasks` statements
pk.kernel @between(%X: !pk.private<[M], f32> {pk.name = "X"}, %T: !pk.private<[M], f32> {pk.name = "T", pk.scratch}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 16>
  pk.tasks (%1) in (%0) {
    %m = pk.block[%1] : !pk.block<M by 16>
    %2 = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
    pk.store %2, %T[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
  }
  %5 = arith.constant 0 : index
  %6 = pk.load %T[%5 : index] : !pk.private<[M], f32> -> !pk.tile<f32>
  pk.tasks (%3) in (%0) {
    %m_1 = pk.block[%3] : !pk.block<M by 16>
    %4 = pk.load %T[%m_1 : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
    pk.store %4, %Y[%m_1 : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
  }
}

// -----

// The owner sends what every rank reads.
// CHECK-LABEL: pk.kernel @ag
// CHECK: pk.load %A{{.*}}remote = {overlap = "inter_sm", why = "the schedule lets its owner send it", direction = "push"}
pk.kernel @ag(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {schedule = {transfer = "push"}} {
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

// Phases are numbered; what one of them writes the next may read.
// CHECK-LABEL: pk.kernel @phases
// CHECK: pk.tasks {{.*}}attributes {phase = 0 : i64}
// CHECK: pk.tasks {{.*}}attributes {phase = 1 : i64}
pk.kernel @phases(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) attributes {schedule = {}} {
  %0 = pk.block_count <M by 16>
  pk.tasks (%1) in (%0) {
    %m = pk.block[%1] : !pk.block<M by 16>
    %2 = pk.full 0.0 : f32 : !pk.tile<16xf32>
    pk.store %2, %X[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
  }
  pk.tasks (%3) in (%0) {
    %m = pk.block[%3] : !pk.block<M by 16>
    %4 = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
    pk.store %4, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
  }
}
