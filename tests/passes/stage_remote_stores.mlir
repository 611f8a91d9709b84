// What copy engines send to other ranks: buffered, awaited, copied, announced.
// RUN: pkc-opt %s -p pk-stage-remote-stores --split-input-file --remarks | filecheck %s

// One counter for each tile; the copy engine goes through rows of them, and sends each at once.
// CHECK-LABEL: pk.kernel @spread
// CHECK-SAME: %Y_staged: !pk.private<[M, N], f32> {pk.name = "Y.staged", pk.scratch}
// CHECK-SAME: %Y_computed: !pk.signal<[M by 16, N by 16]> {pk.name = "Y.computed"}
// CHECK: pk.role copy_engine
// CHECK: pk.tasks (%{{.*}}) in (
// CHECK: %[[M:.*]] = pk.block[%{{.*}}] of
// CHECK: %[[COLUMNS:.*]] = pk.block_count <N by 16>
// CHECK: scf.for %[[C:.*]] = %{{.*}} to %[[COLUMNS]]
// CHECK: %[[N:.*]] = pk.block[%[[C]]]
// CHECK: %[[I:.*]] = pk.block_number %[[M]]
// CHECK-NEXT: %[[J:.*]] = pk.block_number %[[N]]
// CHECK-NEXT: pk.wait %Y_computed[%[[I]], %[[J]]] for
// CHECK-NEXT: }
// CHECK-NEXT: pk.copy %Y_staged[%[[M]] : {{.*}}] along [0] to %Y[%[[M]] : {{.*}}] along [0]
// CHECK-NOT: pk.raise
// CHECK: pk.role consumer
// CHECK: pk.store %{{.*}}, %Y_staged[
// CHECK: pk.raise %Y_computed at
// CHECK-NOT: pk.store
pk.kernel @spread(%X: !pk.pgl<[M, N], f32, shard 0> {pk.name = "X"}, %Y: !pk.pgl<[M, N], f32, replicate> {pk.name = "Y"}) {
  %r = pk.rank
  %0 = pk.block_count <M by 16> of %r sharded
  %1 = pk.block_count <N by 16>
  pk.tasks (%i, %j) in (%0, %1) {
    %m = pk.block[%i] of %r sharded : !pk.block<M by 16>
    %n = pk.block[%j] : !pk.block<N by 16>
    %x = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<16x16xf32>
    pk.store %x, %Y[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] {remote = {overlap = "copy_engine", why = ""}} : !pk.tile<16x16xf32>, !pk.pgl<[M, N], f32, replicate>
  }
}

// -----

// Tasks of some of the columns store no row: each tile is sent separately.
// CHECK-LABEL: pk.kernel @some
// CHECK: pk.role copy_engine
// CHECK: pk.tasks (%{{.*}}, %{{.*}}) in (
// CHECK-NOT: scf.for
// CHECK: pk.wait %Y_computed
// CHECK-NEXT: pk.copy %Y_staged[%{{.*}}, %{{.*}} : {{.*}}] along [0, 1] to %Y[
// CHECK: // remark: {{.*}}: pk.store: a copy for each tile of `Y`, not for a row: its tasks do not go through whole rows [pk-stage-remote-stores]
pk.kernel @some(%X: !pk.pgl<[M, N], f32, shard 0> {pk.name = "X"}, %Y: !pk.pgl<[M, N], f32, replicate> {pk.name = "Y"}, %end: i32 {pk.name = "end"}) {
  %r = pk.rank
  %last = arith.index_cast %end : i32 to index
  %0 = pk.block_count <M by 16> of %r sharded
  %1 = pk.block_count <N by 16> to %last
  pk.tasks (%i, %j) in (%0, %1) {
    %m = pk.block[%i] of %r sharded : !pk.block<M by 16>
    %n = pk.block[%j] to %last : !pk.block<N by 16>
    %x = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<16x16xf32>
    pk.store %x, %Y[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] {remote = {overlap = "copy_engine", why = ""}} : !pk.tile<16x16xf32>, !pk.pgl<[M, N], f32, replicate>
  }
}

// -----

// Each tile of a row is announced when the row has been sent.
// CHECK-LABEL: pk.kernel @announced
// CHECK: pk.role copy_engine
// CHECK: pk.copy %S_staged[%[[M:.*]] : !pk.block<M by 16>] along [0] to %S[%[[R:.*]], %[[M]] : index, !pk.block<M by 16>] along [0, 1]
// CHECK: scf.for %[[C:.*]] = %
// CHECK: %[[N:.*]] = pk.block[%[[C]]] : !pk.block<N by 16>
// CHECK: %[[J:.*]] = pk.block_number %[[N]]
// CHECK: %[[O:.*]] = pk.owner %[[M]]
// CHECK: pk.raise %arrived at %[[O]][%{{.*}}, %{{.*}}, %[[J]]]
pk.kernel @announced(%X: !pk.private<[M, N], f32> {pk.name = "X"}, %S: !pk.pgl<[ranks, M, N], f32, shard 1> {pk.name = "S", pk.scratch}, %arrived: !pk.signal<[ranks, M by 16, N by 16]> {pk.name = "arrived"}) {
  %r = pk.rank
  %one = arith.constant 1 : index
  %0 = pk.block_count <M by 16> sharded
  %1 = pk.block_count <N by 16>
  pk.tasks (%i, %j) in (%0, %1) {
    %m = pk.block[%i] sharded : !pk.block<M by 16>
    %n = pk.block[%j] : !pk.block<N by 16>
    %o = pk.owner %m : !pk.block<M by 16>
    %b = pk.block_number %m : !pk.block<M by 16>
    %c = pk.block_number %n : !pk.block<N by 16>
    %x = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.private<[M, N], f32> -> !pk.tile<16x16xf32>
    pk.store %x, %S[%r, %m, %n : index, !pk.block<M by 16>, !pk.block<N by 16>] {remote = {overlap = "copy_engine", why = ""}} : !pk.tile<16x16xf32>, !pk.pgl<[ranks, M, N], f32, shard 1>
    pk.raise %arrived at %o[%r, %b, %c] to %one {remote = {overlap = "copy_engine", why = ""}} : !pk.signal<[ranks, M by 16, N by 16]>
  }
}

// -----

// The buffer has no dimension for the rank, and the announcement goes with the copy. What follows signals from every rank
// is copied after them.
// CHECK-LABEL: pk.kernel @contribute
// CHECK-SAME: %S_staged: !pk.private<[M], f32>
// CHECK: pk.role consumer
// CHECK: pk.store %{{.*}}, %S_staged[
// CHECK-NOT: pk.raise %arrived
// CHECK: pk.raise %S_computed at
// CHECK-NOT: pk.raise %arrived
// CHECK: pk.role copy_engine attributes {after_all}
// CHECK: pk.wait %S_computed
// CHECK-NEXT: pk.copy %S_staged[%[[M:.*]] : !pk.block<M by 16>] along [0] to %S[%[[R:.*]], %[[M]] : index, !pk.block<M by 16>] along [0, 1]
// CHECK: %[[O:.*]] = pk.owner %[[M]]
// CHECK: pk.raise %arrived at %[[O]][%[[R]],
// CHECK: // remark: {{.*}}: pk.store: a copy for each tile of `S`, not for a row: its tasks have no other index within which they go through a row [pk-stage-remote-stores]
pk.kernel @contribute(%X: !pk.private<[M], f32> {pk.name = "X"}, %S: !pk.pgl<[ranks, M], f32, shard 1> {pk.name = "S", pk.scratch}, %arrived: !pk.signal<[ranks, M by 16]> {pk.name = "arrived"}) {
  pk.role consumer attributes {after_all, derived} {
    %r = pk.rank
    %one = arith.constant 1 : index
    %0 = pk.block_count <M by 16> sharded
    pk.tasks (%i) in (%0) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %o = pk.owner %m : !pk.block<M by 16>
      %b = pk.block_number %m : !pk.block<M by 16>
      %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      pk.store %x, %S[%r, %m : index, !pk.block<M by 16>] {remote = {overlap = "copy_engine", why = ""}} : !pk.tile<16xf32>, !pk.pgl<[ranks, M], f32, shard 1>
      pk.raise %arrived at %o[%r, %b] to %one {remote = {overlap = "copy_engine", why = ""}} : !pk.signal<[ranks, M by 16]>
    }
  }
}

// -----

// What the SM that computes sends is left alone.
// CHECK-LABEL: pk.kernel @sent
// CHECK-NOT: pk.role
// CHECK: pk.store %{{.*}}, %Y[
pk.kernel @sent(%Y: !pk.pgl<[M], f32, replicate> {pk.name = "Y"}) {
  %r = pk.rank
  %0 = pk.block_count <M by 16> of %r
  pk.tasks (%i) in (%0) {
    %m = pk.block[%i] of %r : !pk.block<M by 16>
    %x = pk.full 0.0 : f32 : !pk.tile<16xf32>
    pk.store %x, %Y[%m : !pk.block<M by 16>] {remote = {overlap = "intra_sm", why = ""}} : !pk.tile<16xf32>, !pk.pgl<[M], f32, replicate>
  }
}
