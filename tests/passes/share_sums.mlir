// Who multiplies adds up the last rows of a sum.
// RUN: pkc-opt %s -p pk-share-sums --split-input-file --remarks | filecheck %s

// As many rows as have a tile for each CTA, at least one and at most all; the rest stays with the communicator. Both
// compute the same two numbers.
// CHECK-LABEL: pk.kernel @sum
// CHECK: pk.role communicator attributes {after_all}
// CHECK: %rows = pk.block_count <M by 16> of %rank sharded
// CHECK: %columns = pk.block_count <N by 16>
// CHECK-NEXT: %[[CTAS:.*]] = pk.ctas consumer
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1
// CHECK-NEXT: %[[CHUNKS:.*]] = arith.constant 1
// CHECK-NEXT: %[[SOME:.*]] = arith.maxsi %columns, %[[ONE]]
// CHECK-NEXT: %[[EACH:.*]] = arith.divsi %[[CTAS]], %[[SOME]]
// CHECK-NEXT: %[[LEAST:.*]] = arith.maxsi %[[EACH]], %[[ONE]]
// CHECK-NEXT: %[[WANTED:.*]] = arith.muli %[[LEAST]], %[[CHUNKS]]
// CHECK-NEXT: %[[LATE:.*]] = arith.minsi %[[WANTED]], %rows
// CHECK-NEXT: %[[EARLY:.*]] = arith.subi %rows, %[[LATE]]
// CHECK-NEXT: pk.tasks (%[[I:.*]], %{{.*}}) in (%[[EARLY]], %columns)
// CHECK-NEXT: pk.block[%[[I]]] of %rank sharded
// CHECK: pk.role consumer
// CHECK: pk.tasks (%{{.*}}) in (%all)
// CHECK: %[[RANK2:.*]] = pk.rank
// CHECK-NEXT: %[[ROWS2:.*]] = pk.block_count <M by 16> of %[[RANK2]] sharded
// CHECK-NEXT: %[[COLUMNS2:.*]] = pk.block_count <N by 16>
// CHECK-NEXT: %[[CTAS:.*]] = pk.ctas consumer
// CHECK: %[[LATE:.*]] = arith.minsi %{{.*}}, %[[ROWS2]]
// CHECK-NEXT: %[[EARLY:.*]] = arith.subi %[[ROWS2]], %[[LATE]]
// CHECK-NEXT: pk.tasks (%[[I:.*]], %{{.*}}) in (%[[LATE]], %[[COLUMNS2]])
// CHECK-NEXT: %[[ROW:.*]] = arith.addi %[[I]], %[[EARLY]]
// CHECK-NEXT: pk.block[%[[ROW]]] of %[[RANK2]] sharded
// CHECK: pk.load %S
// CHECK-NEXT: pk.store
pk.kernel @sum(%S: !pk.private<[2, M, N], f32> {pk.name = "S", pk.scratch}, %C: !pk.private<[M, N], f32> {pk.name = "C"}, %arrived: !pk.signal<[M by 16]> {pk.name = "arrived"}) attributes {schedule = {}, derived} {
  %zero = arith.constant 0 : index
  pk.role communicator attributes {after_all} {
    %rank = pk.rank
    %rows = pk.block_count <M by 16> of %rank sharded
    %columns = pk.block_count <N by 16>
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 16>
      %n = pk.block[%j] : !pk.block<N by 16>
      %s = pk.load %S[%zero, %m, %n : index, !pk.block<M by 16>, !pk.block<N by 16>] : !pk.private<[2, M, N], f32> -> !pk.tile<16x16xf32>
      pk.store %s, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xf32>, !pk.private<[M, N], f32>
    }
  }
  pk.role consumer {
    %all = pk.block_count <M by 16>
    pk.tasks (%i) in (%all) {
    }
  }
}

// -----

// Of tiles that are added up in chunks, as many chunks as make a tile for each CTA.
// CHECK-LABEL: pk.kernel @chunks
// CHECK: pk.ctas consumer
// CHECK: %[[CHUNKS:.*]] = arith.constant 4
// CHECK: %[[EACH:.*]] = arith.divsi
// CHECK-NEXT: %[[LEAST:.*]] = arith.maxsi %[[EACH]],
// CHECK-NEXT: %[[WANTED:.*]] = arith.muli %[[LEAST]], %[[CHUNKS]]
// CHECK-NEXT: arith.minsi %[[WANTED]], %rows
pk.kernel @chunks(%S: !pk.private<[M, N], f32> {pk.name = "S", pk.scratch}, %C: !pk.private<[M, N], f32> {pk.name = "C"}) attributes {schedule = {}, derived} {
  pk.role communicator attributes {after_all} {
    %rank = pk.rank
    %rows = pk.block_count <M by 16> of %rank sharded
    %columns = pk.block_count <N by 16>
    pk.tasks (%i, %j) in (%rows, %columns) attributes {chunks = 4 : i64} {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 16>
      %n = pk.block[%j] : !pk.block<N by 16>
      %s = pk.load %S[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.private<[M, N], f32> -> !pk.tile<16x16xf32>
      pk.store %s, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xf32>, !pk.private<[M, N], f32>
    }
  }
  pk.role consumer {
    %all = pk.block_count <M by 16>
    pk.tasks (%i) in (%all) {
    }
  }
}

// -----

// A communicator with separate SMs has few of them: the others help it in the end.
// CHECK-LABEL: pk.kernel @own_sms
// CHECK: pk.role communicator
// CHECK: pk.ctas consumer
// CHECK: pk.role consumer
// CHECK: pk.ctas consumer
pk.kernel @own_sms(%S: !pk.private<[2, M, N], f32> {pk.name = "S", pk.scratch}, %C: !pk.private<[M, N], f32> {pk.name = "C"}, %arrived: !pk.signal<[M by 16]> {pk.name = "arrived"}) attributes {schedule = {comm_sms = 8 : i64}, derived} {
  %zero = arith.constant 0 : index
  pk.role communicator attributes {after_all} {
    %rank = pk.rank
    %rows = pk.block_count <M by 16> of %rank sharded
    %columns = pk.block_count <N by 16>
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 16>
      %n = pk.block[%j] : !pk.block<N by 16>
      %s = pk.load %S[%zero, %m, %n : index, !pk.block<M by 16>, !pk.block<N by 16>] : !pk.private<[2, M, N], f32> -> !pk.tile<16x16xf32>
      pk.store %s, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xf32>, !pk.private<[M, N], f32>
    }
  }
  pk.role consumer {
    %all = pk.block_count <M by 16>
    pk.tasks (%i) in (%all) {
    }
  }
}

// -----

// Nobody multiplies.
// CHECK-LABEL: pk.kernel @alone
// CHECK-NOT: pk.ctas
pk.kernel @alone(%S: !pk.private<[2, M, N], f32> {pk.name = "S", pk.scratch}, %C: !pk.private<[M, N], f32> {pk.name = "C"}, %arrived: !pk.signal<[M by 16]> {pk.name = "arrived"}) attributes {schedule = {}, derived} {
  %zero = arith.constant 0 : index
  pk.role communicator attributes {after_all} {
    %rank = pk.rank
    %rows = pk.block_count <M by 16> of %rank sharded
    %columns = pk.block_count <N by 16>
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 16>
      %n = pk.block[%j] : !pk.block<N by 16>
      %s = pk.load %S[%zero, %m, %n : index, !pk.block<M by 16>, !pk.block<N by 16>] : !pk.private<[2, M, N], f32> -> !pk.tile<16x16xf32>
      pk.store %s, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xf32>, !pk.private<[M, N], f32>
    }
  }
}

// -----

// What an author wrote as roles stays as it is.
// CHECK-LABEL: pk.kernel @written
// CHECK-NOT: pk.ctas
pk.kernel @written(%S: !pk.private<[2, M, N], f32> {pk.name = "S", pk.scratch}, %C: !pk.private<[M, N], f32> {pk.name = "C"}, %arrived: !pk.signal<[M by 16]> {pk.name = "arrived"}) attributes {schedule = {}} {
  %zero = arith.constant 0 : index
  pk.role communicator attributes {after_all} {
    %rank = pk.rank
    %rows = pk.block_count <M by 16> of %rank sharded
    %columns = pk.block_count <N by 16>
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 16>
      %n = pk.block[%j] : !pk.block<N by 16>
      %s = pk.load %S[%zero, %m, %n : index, !pk.block<M by 16>, !pk.block<N by 16>] : !pk.private<[2, M, N], f32> -> !pk.tile<16x16xf32>
      pk.store %s, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xf32>, !pk.private<[M, N], f32>
    }
  }
  pk.role consumer {
    %all = pk.block_count <M by 16>
    pk.tasks (%i) in (%all) {
    }
  }
}

// -----

// A sum that a later phase may read stays with the communicator.
// CHECK-LABEL: pk.kernel @earlier
// CHECK: pk.tasks (%{{.*}}, %{{.*}}) in (%rows, %columns)
// CHECK: pk.role consumer
// CHECK-NOT: pk.load
// CHECK: // remark: {{.*}}: pk.role: communicators alone add up this sum: a later phase may wait for it [pk-share-sums]
pk.kernel @earlier(%S: !pk.private<[2, M, N], f32> {pk.name = "S", pk.scratch}, %C: !pk.private<[M, N], f32> {pk.name = "C"}) attributes {schedule = {}, derived} {
  %zero = arith.constant 0 : index
  pk.role communicator attributes {after_all, phase = 0} {
    %rank = pk.rank
    %rows = pk.block_count <M by 16> of %rank sharded
    %columns = pk.block_count <N by 16>
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 16>
      %n = pk.block[%j] : !pk.block<N by 16>
      %s = pk.load %S[%zero, %m, %n : index, !pk.block<M by 16>, !pk.block<N by 16>] : !pk.private<[2, M, N], f32> -> !pk.tile<16x16xf32>
      pk.store %s, %C[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.tile<16x16xf32>, !pk.private<[M, N], f32>
    }
  }
  pk.role consumer {
    %all = pk.block_count <M by 16>
    pk.tasks (%i) in (%all) attributes {phase = 0} {
    }
    pk.tasks (%i) in (%all) attributes {phase = 1} {
    }
  }
}
