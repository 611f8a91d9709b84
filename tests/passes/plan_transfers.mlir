// Which way each tile takes, and why.
// RUN: pkc-opt %s -p pk-plan-transfers --split-input-file --remarks | filecheck %s

// Into a stage and out of it as it is: by TMA. Made from what is loaded: through registers.
// CHECK-LABEL: pk.kernel @stages
// CHECK: pk.load %A{{.*}} {transfer = {by = "tma", why = "goes into its stage as it is"}}
// CHECK: pk.store {{.*}} {transfer = {by = "tma", why = "leaves its stage as it is"}}
// CHECK: pk.load %A{{.*}} {transfer = {by = "register", why = "used where it is loaded"}}
// CHECK: pk.store {{.*}} {transfer = {by = "register", why = "made where it is stored"}}
pk.kernel @stages(%A: !pk.private<[M, 64], f32> {pk.name = "A"}, %B: !pk.private<[M, 64], f32> {pk.name = "B"}) attributes {derived} {
  %0 = pk.channel "A" stages 2 : !pk.channel<!pk.tile<16x64xf32>>
  %zero = arith.constant 0 : index
  pk.role loader {
    %m = pk.block[%zero] : !pk.block<M by 16>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    pk.acquire %0 : !pk.channel<!pk.tile<16x64xf32>>
    %a = pk.load %A[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.private<[M, 64], f32> -> !pk.tile<16x64xf32>
    pk.commit %0, %a : !pk.channel<!pk.tile<16x64xf32>>, !pk.tile<16x64xf32>
  }
  pk.role storer {
    %m_1 = pk.block[%zero] : !pk.block<M by 16>
    %d_1 = pk.block[%zero] : !pk.block<64 by 64>
    %t = pk.consume %0 : !pk.channel<!pk.tile<16x64xf32>> -> !pk.tile<16x64xf32>
    pk.store %t, %B[%m_1, %d_1 : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, 64], f32>
    pk.release %0 : !pk.channel<!pk.tile<16x64xf32>>
  }
  pk.role communicator {
    %m_2 = pk.block[%zero] : !pk.block<M by 16>
    %d_2 = pk.block[%zero] : !pk.block<64 by 64>
    %x = pk.load %A[%m_2, %d_2 : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.private<[M, 64], f32> -> !pk.tile<16x64xf32>
    %y = pk.neg %x : !pk.tile<16x64xf32>
    pk.store %y, %B[%m_2, %d_2 : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, 64], f32>
  }
}

// -----

// To another rank a few rows at a time; at once if the tile has no more, or stays.
// CHECK-LABEL: pk.kernel @pieces
// CHECK: pk.store {{.*}} %B{{.*}} {transfer = {by = "tma", why = "leaves its stage as it is, 16 rows at a time: loads of the same SM wait behind it", rows = 16 : i64}}
// CHECK: pk.store {{.*}} %C{{.*}} {transfer = {by = "tma", why = "leaves its stage as it is"}}
pk.kernel @pieces(%A: !pk.private<[M, 64], bf16> {pk.name = "A"}, %B: !pk.pgl<[M, 64], bf16, shard 0> {pk.name = "B"}, %C: !pk.private<[M, 64], bf16> {pk.name = "C"}) attributes {derived} {
  %0 = pk.channel "A" stages 2 : !pk.channel<!pk.tile<64x64xbf16>>
  %zero = arith.constant 0 : index
  pk.role loader {
    %m = pk.block[%zero] : !pk.block<M by 64>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    pk.acquire %0 : !pk.channel<!pk.tile<64x64xbf16>>
    %a = pk.load %A[%m, %d : !pk.block<M by 64>, !pk.block<64 by 64>] : !pk.private<[M, 64], bf16> -> !pk.tile<64x64xbf16>
    pk.commit %0, %a : !pk.channel<!pk.tile<64x64xbf16>>, !pk.tile<64x64xbf16>
  }
  pk.role storer {
    %m_1 = pk.block[%zero] sharded : !pk.block<M by 64>
    %d_1 = pk.block[%zero] : !pk.block<64 by 64>
    %t = pk.consume %0 : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
    pk.store %t, %B[%m_1, %d_1 : !pk.block<M by 64>, !pk.block<64 by 64>] : !pk.tile<64x64xbf16>, !pk.pgl<[M, 64], bf16, shard 0>
    pk.store %t, %C[%m_1, %d_1 : !pk.block<M by 64>, !pk.block<64 by 64>] : !pk.tile<64x64xbf16>, !pk.private<[M, 64], bf16>
    pk.release %0 : !pk.channel<!pk.tile<64x64xbf16>>
  }
}

// -----

// A copy goes by TMA both ways, unless one of its ends cannot; then both ends go through registers.
// CHECK-LABEL: pk.kernel @copies
// CHECK: pk.load %A{{.*}} {transfer = {by = "tma", why = "stored as it is: through shared memory"}}
// CHECK: pk.store {{.*}} {transfer = {by = "tma", why = "takes the way of the load"}}
// CHECK: pk.load %A{{.*}} {transfer = {by = "register", why = "the last block may end inside of the array, where TMA does not stop"}}
// CHECK: pk.store {{.*}} {transfer = {by = "register", why = "takes the way of the load"}}
// CHECK: pk.load %A{{.*}} {transfer = {by = "register", why = "rows of 4 bytes: TMA moves multiples of 16"}}
// CHECK: pk.load %A{{.*}} {transfer = {by = "register", why = "follows the shards of two dimensions, a tensor map those of one"}}
// CHECK: pk.load %W{{.*}} {transfer = {by = "register", why = "7 dimensions: a tensor map has 5"}}
// CHECK: // remark: {{.*}}: pk.load: `A` is not loaded by TMA: the last block may end inside of the array, where TMA does not stop [pk-plan-transfers]
// CHECK: // remark: {{.*}}: pk.load: `A` is not loaded by TMA: follows the shards of two dimensions, a tensor map those of one [pk-plan-transfers]
// CHECK: // remark: {{.*}}: pk.load: `W` is not loaded by TMA: 7 dimensions: a tensor map has 5 [pk-plan-transfers]
pk.kernel @copies(%A: !pk.pgl<[M, N], f32, shard 0> {pk.name = "A"}, %B: !pk.private<[M, N], f32> {pk.name = "B"}, %W: !pk.pgl<[2, 2, 2, M, N], f32, symmetric> {pk.name = "W"}, %V: !pk.private<[M, N], f32> {pk.name = "V"}) attributes {derived} {
  %zero = arith.constant 0 : index
  pk.role communicator {
    %m = pk.block[%zero] sharded : !pk.block<M by 16>
    %n = pk.block[%zero] : !pk.block<N by 16>
    %a = pk.load %A[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<16x16xf32>
    pk.store %a, %B[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xf32>, !pk.private<[M, N], f32>
    %five = arith.constant 5 : index
    %p = pk.block[%zero] to %five : !pk.block<N by 16>
    %b = pk.load %A[%m, %p : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<16x16xf32>
    pk.store %b, %B[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xf32>, !pk.private<[M, N], f32>
    %c = pk.load %A[%m, %zero : !pk.block<M by 16>, index] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<16xf32>
    pk.store %c, %B[%m, %zero : !pk.block<M by 16>, index] : !pk.tile<16xf32>, !pk.private<[M, N], f32>
    %q = pk.block[%zero] sharded : !pk.block<N by 16>
    %e = pk.load %A[%m, %q : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<16x16xf32>
    pk.store %e, %B[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xf32>, !pk.private<[M, N], f32>
    %w = pk.load %W at %zero[%zero, %zero, %zero, %m, %n : index, index, index, !pk.block<M by 16>, !pk.block<N by 16>] : !pk.pgl<[2, 2, 2, M, N], f32, symmetric> -> !pk.tile<16x16xf32>
    pk.store %w, %V[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xf32>, !pk.private<[M, N], f32>
  }
}

// -----

// TMA begins at multiples of 16 bytes: of a shard, of a list with such a start, not where a start is unknown, nor where
// the shard of another array begins.
// CHECK-LABEL: pk.kernel @begins
// CHECK: pk.load %A{{.*}} {transfer = {by = "tma", why = "stored as it is: through shared memory"}}
// CHECK: pk.load %B{{.*}} {transfer = {by = "tma", why = "stored as it is: through shared memory"}}
// CHECK: pk.load %B{{.*}} {transfer = {by = "register", why = "its blocks may begin where no multiple of 16 bytes is, which TMA needs"}}
// CHECK: pk.load %B{{.*}} {transfer = {by = "register", why = "its blocks may begin where no multiple of 16 bytes is, which TMA needs"}}
pk.kernel @begins(%A: !pk.pgl<[M, N], bf16, shard 1> {pk.name = "A"}, %B: !pk.private<[M, N], bf16> {pk.name = "B"}, %at: !pk.private<[M], i32> {pk.name = "at"}) attributes {derived} {
  %zero = arith.constant 0 : index
  pk.role communicator {
    %m = pk.block[%zero] : !pk.block<M by 16>
    %n = pk.block[%zero] : !pk.block<N by 16>
    %s = pk.block[%zero] sharded : !pk.block<N by 16>
    %a = pk.load %A[%m, %s : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.pgl<[M, N], bf16, shard 1> -> !pk.tile<16x16xbf16>
    pk.store %a, %A[%m, %s : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xbf16>, !pk.pgl<[M, N], bf16, shard 1>
    %eight = arith.constant 8 : index
    %e = pk.block[%zero] from %eight : !pk.block<N by 16>
    %b = pk.load %B[%m, %e : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.private<[M, N], bf16> -> !pk.tile<16x16xbf16>
    pk.store %b, %B[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xbf16>, !pk.private<[M, N], bf16>
    %r = pk.read %at[%zero] : !pk.private<[M], i32>
    %u = pk.block[%zero] from %r : !pk.block<N by 16>
    %c = pk.load %B[%m, %u : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.private<[M, N], bf16> -> !pk.tile<16x16xbf16>
    pk.store %c, %B[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xbf16>, !pk.private<[M, N], bf16>
    %d = pk.load %B[%m, %s : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.private<[M, N], bf16> -> !pk.tile<16x16xbf16>
    pk.store %d, %B[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// Elements, table rows and additions are the business of ordinary instructions.
// CHECK-LABEL: pk.kernel @rows
// CHECK: pk.read {{.*}} {transfer = {by = "register", why = "one element"}}
// CHECK: pk.gather {{.*}} {transfer = {by = "register", why = "rows that the table leaves out are zero, which no copy writes"}}
// CHECK: pk.scatter_add {{.*}} {transfer = {by = "register", why = "each element is added at its place"}}
// CHECK: // remark: {{.*}}: pk.gather: rows of `X` do not move by TMA: rows that the table leaves out are zero, which no copy writes [pk-plan-transfers]
// CHECK: // remark: {{.*}}: pk.scatter_add: rows of `Y` do not move by TMA: each element is added at its place [pk-plan-transfers]
pk.kernel @rows(%X: !pk.private<[T, 64], bf16> {pk.name = "X"}, %at: !pk.private<[T], i32> {pk.name = "at"}, %Y: !pk.pgl<[T, 64], bf16, shard 0> {pk.name = "Y"}) attributes {derived} {
  %zero = arith.constant 0 : index
  pk.role communicator {
    %r = pk.read %at[%zero] : !pk.private<[T], i32>
    %p = pk.block[%r] : !pk.block<T by 16>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %rows = pk.load %at[%p : !pk.block<T by 16>] : !pk.private<[T], i32> -> !pk.tile<16xi32>
    %g = pk.gather %X rows %rows[%d : !pk.block<64 by 64>] : !pk.private<[T, 64], bf16>, !pk.tile<16xi32> -> !pk.tile<16x64xbf16>
    pk.scatter_add %g, %Y rows %rows[%d : !pk.block<64 by 64>] : !pk.tile<16x64xbf16>, !pk.pgl<[T, 64], bf16, shard 0>, !pk.tile<16xi32>
  }
}

// -----

// What an author wrote as roles stays as it is.
// CHECK-LABEL: pk.kernel @written
// CHECK-NOT: transfer
pk.kernel @written(%A: !pk.private<[M], f32> {pk.name = "A"}, %B: !pk.private<[M], f32> {pk.name = "B"}) {
  %zero = arith.constant 0 : index
  pk.role consumer {
    %m = pk.block[%zero] : !pk.block<M by 16>
    %a = pk.load %A[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
    pk.store %a, %B[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
  }
}

// -----

// A tile with rows of several ranks leaves its stage by ordinary instructions.
// CHECK-LABEL: pk.kernel @across
// CHECK: pk.store {{.*}} {transfer = {by = "register", why = "its rows go to several ranks, and no TMA store begins before an array"}}
// CHECK: // remark: {{.*}}: pk.store: `Y` is not stored by TMA: its rows go to several ranks, and no TMA store begins before an array [pk-plan-transfers]
pk.kernel @across(%Y: !pk.pgl<[M, 64], bf16, shard 0> {pk.name = "Y"}) attributes {derived} {
  %0 = pk.channel "y" stages 1 : !pk.channel<!pk.tile<16x64xbf16>>
  %zero = arith.constant 0 : index
  pk.role consumer {
    pk.acquire %0 : !pk.channel<!pk.tile<16x64xbf16>>
    %y = pk.full 1.0 : bf16 : !pk.tile<16x64xbf16>
    pk.commit %0, %y : !pk.channel<!pk.tile<16x64xbf16>>, !pk.tile<16x64xbf16>
  }
  pk.role storer {
    %m = pk.block[%zero] : !pk.block<M by 16>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %y = pk.consume %0 : !pk.channel<!pk.tile<16x64xbf16>> -> !pk.tile<16x64xbf16>
    pk.store %y, %Y[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xbf16>, !pk.pgl<[M, 64], bf16, shard 0>
    pk.release %0 : !pk.channel<!pk.tile<16x64xbf16>>
  }
}

// -----

// A row that is stored goes by TMA where every row of the array is aligned, at the sizes of the launch. It tells them of
// the arrays that it gets, and nothing of rows that others alone have.
// CHECK-LABEL: pk.kernel @out
// CHECK: pk.store {{.*}}, %U[{{.*}} {transfer = {by = "register", why = "its rows begin 8 bytes, or a multiple of that, behind each other, and with TMA 16"}}
// CHECK: pk.store {{.*}}, %S[{{.*}} {transfer = {by = "register", why = "rows of the array may begin where no multiple of 16 bytes is, which TMA needs"}}
// CHECK: pk.store {{.*}}, %R[{{.*}} {transfer = {by = "tma", why = "leaves its stage as it is"}}
// CHECK: pk.store {{.*}}, %L[{{.*}} {transfer = {by = "tma", why = "leaves its stage as it is"}}
// CHECK: pk.store {{.*}}, %P[{{.*}} {transfer = {by = "tma", why = "leaves its stage as it is"}}
// CHECK: pk.store {{.*}}, %V[{{.*}} {transfer = {by = "tma", why = "leaves its stage as it is"}}
pk.kernel @out(%U: !pk.private<[H, N], f32> {pk.name = "U"}, %S: !pk.private<[H, O], f32> {pk.name = "S", pk.scratch}, %R: !pk.private<[H, M], f32> {pk.name = "R", pk.scratch}, %L: !pk.private<[H, M], f32> {pk.name = "L"}, %P: !pk.private<[H, 64], f32> {pk.name = "P"}, %V: !pk.private<[M], f32> {pk.name = "V"}) attributes {derived, divisors = {N = 2 : i64}} {
  %zero = arith.constant 0 : index
  %0 = pk.channel "row" stages 1 : !pk.channel<!pk.tile<64xf32>>
  pk.role storer {
    %m = pk.block[%zero] : !pk.block<M by 64>
    %p = pk.block[%zero] : !pk.block<64 by 64>
    %n = pk.block[%zero] : !pk.block<N by 64>
    %t = pk.consume %0 : !pk.channel<!pk.tile<64xf32>> -> !pk.tile<64xf32>
    pk.store %t, %U[%zero, %n : index, !pk.block<N by 64>] : !pk.tile<64xf32>, !pk.private<[H, N], f32>
    %o = pk.block[%zero] : !pk.block<O by 64>
    pk.store %t, %S[%zero, %o : index, !pk.block<O by 64>] : !pk.tile<64xf32>, !pk.private<[H, O], f32>
    pk.store %t, %R[%zero, %m : index, !pk.block<M by 64>] : !pk.tile<64xf32>, !pk.private<[H, M], f32>
    pk.store %t, %L[%zero, %m : index, !pk.block<M by 64>] : !pk.tile<64xf32>, !pk.private<[H, M], f32>
    pk.store %t, %P[%zero, %p : index, !pk.block<64 by 64>] : !pk.tile<64xf32>, !pk.private<[H, 64], f32>
    pk.store %t, %V[%m : !pk.block<M by 64>] : !pk.tile<64xf32>, !pk.private<[M], f32>
    pk.release %0 : !pk.channel<!pk.tile<64xf32>>
  }
}

// What follows the shards of two dimensions goes by TMA if all of the other dimension's end with whole blocks.
// CHECK-LABEL: pk.kernel @crossed
// CHECK: pk.load %X{{.*}} {transfer = {by = "tma", why = "stored as it is: through shared memory"}}
// CHECK: pk.store {{.*}}, %Y{{.*}} {transfer = {by = "tma"
// CHECK: pk.load %X{{.*}} {transfer = {by = "register", why = "follows the shards of two dimensions, a tensor map those of one"}}
pk.kernel @crossed(%X: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "X"}, %Y: !pk.pgl<[M, N], bf16, shard 1> {pk.name = "Y"}) attributes {derived, divisors = {M.shards = 32 : i64, N.shards = 16 : i64}} {
  %zero = arith.constant 0 : index
  pk.role communicator {
    %m = pk.block[%zero] sharded : !pk.block<M by 32>
    %n = pk.block[%zero] sharded : !pk.block<N by 16>
    %a = pk.load %X[%m, %n : !pk.block<M by 32>, !pk.block<N by 16>] : !pk.pgl<[M, N], bf16, shard 0> -> !pk.tile<32x16xbf16>
    pk.store %a, %Y[%m, %n : !pk.block<M by 32>, !pk.block<N by 16>] : !pk.tile<32x16xbf16>, !pk.pgl<[M, N], bf16, shard 1>
    %l = pk.block[%zero] sharded : !pk.block<N by 32>
    %b = pk.load %X[%m, %l : !pk.block<M by 32>, !pk.block<N by 32>] : !pk.pgl<[M, N], bf16, shard 0> -> !pk.tile<32x32xbf16>
    pk.store %b, %Y[%m, %l : !pk.block<M by 32>, !pk.block<N by 32>] : !pk.tile<32x32xbf16>, !pk.pgl<[M, N], bf16, shard 1>
  }
}

// Sums in f32 leave their stage by TMA where the array is this rank's; others are added by threads, each element at its
// place.
// CHECK-LABEL: pk.kernel @added
// CHECK: pk.store_add {{.*}}, %B[{{.*}} {transfer = {by = "tma", why = "added from its stage as it is"}}
// CHECK: pk.store_add {{.*}}, %C at {{.*}} {transfer = {by = "register", why = "each element is added at its place"}}
// CHECK: pk.store_add {{.*}}, %D[{{.*}} {transfer = {by = "register", why = "each element is added at its place"}}
// CHECK: pk.store_add {{.*}}, %E[{{.*}} {transfer = {by = "register", why = "each element is added at its place: its rows begin 268 bytes
pk.kernel @added(%B: !pk.private<[M, 64], f32> {pk.name = "B"}, %C: !pk.pgl<[M, 64], f32, symmetric> {pk.name = "C"}, %D: !pk.private<[M, 64], bf16> {pk.name = "D"}, %E: !pk.private<[M, 67], f32> {pk.name = "E"}) attributes {derived} {
  %zero = arith.constant 0 : index
  %0 = pk.channel "t" stages 1 : !pk.channel<!pk.tile<16x64xf32>, !pk.tile<16x64xbf16>>
  pk.role storer {
    %m = pk.block[%zero] : !pk.block<M by 16>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %e = pk.block[%zero] : !pk.block<67 by 64>
    %t, %u = pk.consume %0 : !pk.channel<!pk.tile<16x64xf32>, !pk.tile<16x64xbf16>> -> !pk.tile<16x64xf32>, !pk.tile<16x64xbf16>
    %next = arith.constant 1 : index
    pk.store_add %t, %B[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, 64], f32>
    pk.store_add %t, %C at %next[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.pgl<[M, 64], f32, symmetric>
    pk.store_add %u, %D[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xbf16>, !pk.private<[M, 64], bf16>
    pk.store_add %t, %E[%m, %e : !pk.block<M by 16>, !pk.block<67 by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, 67], f32>
    pk.release %0 : !pk.channel<!pk.tile<16x64xf32>, !pk.tile<16x64xbf16>>
  }
}

// -----

// Rows that begin anywhere come with what lies around them, where threads go through them, or store them; not where
// zeros have to stand behind the end of the array, which only threads write.
// CHECK-LABEL: pk.kernel @anywhere
// CHECK: pk.load %A{{.*}} transfer = {by = "tma", why = "each row with what lies around it: rows of 1002 bytes: TMA moves multiples of 16", anywhere}}
// CHECK: pk.load %A{{.*}} {transfer = {by = "register", why = "rows of 1002 bytes: TMA moves multiples of 16"}}
// CHECK: pk.store {{.*}} {transfer = {by = "register", why = "rows of 1002 bytes: TMA moves multiples of 16"}}
pk.kernel @anywhere(%A: !pk.private<[M, 501], bf16> {pk.name = "A"}, %B: !pk.private<[M, 501], bf16> {pk.name = "B"}) attributes {derived, around, target = "sm_90a"} {
  %0 = pk.channel "A" stages 2 : !pk.channel<!pk.tile<4x501xbf16>>
  %1 = pk.channel "B" stages 2 : !pk.channel<!pk.tile<4x501xbf16>>
  %zero = arith.constant 0 : index
  pk.role loader {
    %m = pk.block[%zero] : !pk.block<M by 4>
    %d = pk.block[%zero] : !pk.block<501 by 501>
    pk.acquire %0 : !pk.channel<!pk.tile<4x501xbf16>>
    %a = pk.load %A[%m, %d : !pk.block<M by 4>, !pk.block<501 by 501>] {never_read = array<i64: 0>} : !pk.private<[M, 501], bf16> -> !pk.tile<4x501xbf16>
    pk.commit %0, %a : !pk.channel<!pk.tile<4x501xbf16>>, !pk.tile<4x501xbf16>
    pk.acquire %1 : !pk.channel<!pk.tile<4x501xbf16>>
    %b = pk.load %A[%m, %d : !pk.block<M by 4>, !pk.block<501 by 501>] : !pk.private<[M, 501], bf16> -> !pk.tile<4x501xbf16>
    pk.commit %1, %b : !pk.channel<!pk.tile<4x501xbf16>>, !pk.tile<4x501xbf16>
  }
  pk.role storer {
    %m_1 = pk.block[%zero] : !pk.block<M by 4>
    %d_1 = pk.block[%zero] : !pk.block<501 by 501>
    %t = pk.consume %0 : !pk.channel<!pk.tile<4x501xbf16>> -> !pk.tile<4x501xbf16>
    pk.store %t, %B[%m_1, %d_1 : !pk.block<M by 4>, !pk.block<501 by 501>] : !pk.tile<4x501xbf16>, !pk.private<[M, 501], bf16>
    pk.release %0 : !pk.channel<!pk.tile<4x501xbf16>>
    %u = pk.consume %1 : !pk.channel<!pk.tile<4x501xbf16>> -> !pk.tile<4x501xbf16>
    pk.store %u, %B[%m_1, %d_1 : !pk.block<M by 4>, !pk.block<501 by 501>] : !pk.tile<4x501xbf16>, !pk.private<[M, 501], bf16>
    pk.release %1 : !pk.channel<!pk.tile<4x501xbf16>>
  }
}
