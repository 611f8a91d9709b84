// A communicator that copies tiles becomes one role that loads and one that stores.
// RUN: pkc-opt %s -p pk-split-copies --split-input-file | filecheck %s

// Beside roles that compute: as many stages as 16 KB hold, and at most twelve. Both go through the same tasks; who waits loads, who signals stores.
// CHECK-LABEL: pk.kernel @fetch
// CHECK: %[[C:.*]] = pk.channel "A" stages 12 : !pk.channel<!pk.tile<16x16xbf16>>
// CHECK: pk.role communicator {
// CHECK: pk.tasks {{.*}} attributes {per_cta}
// CHECK: pk.wait %sent
// CHECK: pk.acquire %[[C]]
// CHECK-NEXT: %[[A:.*]] = pk.load %A
// CHECK-NEXT: pk.commit %[[C]], %[[A]]
// CHECK-NOT: pk.store
// CHECK-NOT: pk.signal %ready
// CHECK: pk.role communicator {
// CHECK: pk.tasks {{.*}} attributes {per_cta}
// CHECK-NOT: pk.wait
// CHECK: %[[B:.*]] = pk.consume %[[C]]
// CHECK-NEXT: pk.store %[[B]], %L
// CHECK-NEXT: pk.release %[[C]]
// CHECK: pk.signal %ready
// CHECK-NOT: pk.role
pk.kernel @fetch(%A: !pk.pgl<[M, K], bf16, shard 0> {pk.name = "A"}, %L: !pk.private<[M, K], bf16> {pk.name = "L", pk.scratch}, %sent: !pk.signal<[M by 16]> {pk.name = "sent"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {schedule = {}, derived} {
  %rank = pk.rank
  %one = arith.constant 1 : index
  pk.role communicator {
    %rows = pk.block_count <M by 16> sharded
    %columns = pk.block_count <K by 16>
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %k = pk.block[%j] : !pk.block<K by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.wait %sent[%number] for %one : !pk.signal<[M by 16]>
      %a = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<16x16xbf16>
      pk.store %a, %L[%m, %k : !pk.block<M by 16>, !pk.block<K by 16>] : !pk.tile<16x16xbf16>, !pk.private<[M, K], bf16>
      pk.signal %ready at %rank[%number] by %one : !pk.signal<[M by 16]>
    }
  }
}

// -----

// On separate SMs: as many stages as fit, of 16400 bytes for each of the two that share those SMs.
// CHECK-LABEL: pk.kernel @separate
// CHECK-DAG: pk.channel "A" stages 7
// CHECK-DAG: pk.channel "B" stages 7
pk.kernel @separate(%A: !pk.pgl<[M, 64], bf16, shard 0> {pk.name = "A"}, %B: !pk.pgl<[M, 64], bf16, shard 0> {pk.name = "B"}, %L: !pk.private<[M, 64], bf16> {pk.name = "L", pk.scratch}) attributes {schedule = {comm_sms = 4 : i64}, derived} {
  %zero = arith.constant 0 : index
  pk.role communicator {
    %rows = pk.block_count <M by 128> sharded
    pk.tasks (%i) in (%rows) {
      %m = pk.block[%i] sharded : !pk.block<M by 128>
      %k = pk.block[%zero] : !pk.block<64 by 64>
      %a = pk.load %A[%m, %k : !pk.block<M by 128>, !pk.block<64 by 64>] : !pk.pgl<[M, 64], bf16, shard 0> -> !pk.tile<128x64xbf16>
      pk.store %a, %L[%m, %k : !pk.block<M by 128>, !pk.block<64 by 64>] : !pk.tile<128x64xbf16>, !pk.private<[M, 64], bf16>
    }
  }
  pk.role communicator {
    %rows = pk.block_count <M by 128> sharded
    pk.tasks (%i) in (%rows) {
      %m = pk.block[%i] sharded : !pk.block<M by 128>
      %k = pk.block[%zero] : !pk.block<64 by 64>
      %b = pk.load %B[%m, %k : !pk.block<M by 128>, !pk.block<64 by 64>] : !pk.pgl<[M, 64], bf16, shard 0> -> !pk.tile<128x64xbf16>
      pk.store %b, %L[%m, %k : !pk.block<M by 128>, !pk.block<64 by 64>] : !pk.tile<128x64xbf16>, !pk.private<[M, 64], bf16>
    }
  }
}

// -----

// Of 65552 bytes each, three stages fit into 231424.
// CHECK-LABEL: pk.kernel @large
// CHECK: pk.channel "A" stages 3
pk.kernel @large(%A: !pk.pgl<[M, 256], bf16, shard 0> {pk.name = "A"}, %L: !pk.private<[M, 256], bf16> {pk.name = "L", pk.scratch}) attributes {schedule = {comm_sms = 4 : i64}, derived} {
  %zero = arith.constant 0 : index
  pk.role communicator {
    %rows = pk.block_count <M by 128> sharded
    pk.tasks (%i) in (%rows) {
      %m = pk.block[%i] sharded : !pk.block<M by 128>
      %k = pk.block[%zero] : !pk.block<256 by 256>
      %a = pk.load %A[%m, %k : !pk.block<M by 128>, !pk.block<256 by 256>] : !pk.pgl<[M, 256], bf16, shard 0> -> !pk.tile<128x256xbf16>
      pk.store %a, %L[%m, %k : !pk.block<M by 128>, !pk.block<256 by 256>] : !pk.tile<128x256xbf16>, !pk.private<[M, 256], bf16>
    }
  }
}

// -----

// What is computed with needs registers anyway: one role does it all. So does a role that the author wrote.
// CHECK-LABEL: pk.kernel @adds
// CHECK-NOT: pk.channel
// CHECK-LABEL: pk.kernel @written
// CHECK-NOT: pk.channel
pk.kernel @adds(%A: !pk.pgl<[M, 64], f32, shard 0> {pk.name = "A"}, %L: !pk.private<[M, 64], f32> {pk.name = "L", pk.scratch}) attributes {schedule = {}, derived} {
  %zero = arith.constant 0 : index
  pk.role communicator {
    %rows = pk.block_count <M by 16> sharded
    pk.tasks (%i) in (%rows) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %k = pk.block[%zero] : !pk.block<64 by 64>
      %a = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.pgl<[M, 64], f32, shard 0> -> !pk.tile<16x64xf32>
      %twice = pk.add %a, %a : !pk.tile<16x64xf32>
      pk.store %twice, %L[%m, %k : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, 64], f32>
    }
  }
}
pk.kernel @written(%A: !pk.pgl<[M, 64], f32, shard 0> {pk.name = "A"}, %L: !pk.private<[M, 64], f32> {pk.name = "L", pk.scratch}) attributes {schedule = {}} {
  %zero = arith.constant 0 : index
  pk.role communicator {
    %rows = pk.block_count <M by 16> sharded
    pk.tasks (%i) in (%rows) {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %k = pk.block[%zero] : !pk.block<64 by 64>
      %a = pk.load %A[%m, %k : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.pgl<[M, 64], f32, shard 0> -> !pk.tile<16x64xf32>
      pk.store %a, %L[%m, %k : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, 64], f32>
    }
  }
}
