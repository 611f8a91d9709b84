// What is there when a kernel begins is loaded ahead of what comes from other ranks.
// RUN: pkc-opt %s -p pk-split-loads --split-input-file | filecheck %s

// B has a separate channel and loader, without the wait; the integers that only the other one needs may stay.
// CHECK-LABEL: pk.kernel @matmul
// CHECK: %[[A:.*]] = pk.channel "A.fetched" stages 1 : !pk.channel<!pk.tile<16x32xbf16>>
// CHECK: %[[B:.*]] = pk.channel "B" stages 1 : !pk.channel<!pk.tile<32x16xbf16>>
// CHECK: pk.role loader {
// CHECK: pk.tasks
// CHECK: pk.wait %ready
// CHECK-NEXT: scf.for
// CHECK-NEXT: pk.block
// CHECK-NEXT: pk.acquire %[[A]]
// CHECK-NEXT: %[[TILE:.*]] = pk.load %A_fetched
// CHECK-NEXT: pk.commit %[[A]], %[[TILE]]
// CHECK-NEXT: }
// CHECK: pk.role loader {
// CHECK: pk.tasks
// CHECK-NOT: pk.wait
// CHECK: scf.for
// CHECK-NEXT: pk.block
// CHECK-NEXT: pk.acquire %[[B]]
// CHECK-NEXT: %[[TILE:.*]] = pk.load %B
// CHECK-NEXT: pk.commit %[[B]], %[[TILE]]
// CHECK-NEXT: }
// CHECK: pk.role consumer
// CHECK: %[[LEFT:.*]] = pk.consume %[[A]]
// CHECK-NEXT: %[[RIGHT:.*]] = pk.consume %[[B]]
// CHECK-NEXT: pk.mma %[[LEFT]], %[[RIGHT]], %
// CHECK-NEXT: pk.release %[[A]]
// CHECK-NEXT: pk.release %[[B]]
pk.kernel @matmul(%A_fetched: !pk.private<[M, K], bf16> {pk.name = "A.fetched", pk.scratch}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {schedule = {separate_loader = true}, derived} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0 = pk.channel "A.fetched, B" stages 1 : !pk.channel<!pk.tile<16x32xbf16>, !pk.tile<32x16xbf16>>
  pk.role communicator {
    %rows = pk.block_count <M by 16>
    %steps = pk.block_count <K by 32>
    %rank = pk.rank
    pk.tasks (%i, %s) in (%rows, %steps) {
      %m = pk.block[%i] : !pk.block<M by 16>
      %k = pk.block[%s] : !pk.block<K by 32>
      %t = pk.full 0.0 : bf16 : !pk.tile<16x32xbf16>
      pk.store %t, %A_fetched[%m, %k : !pk.block<M by 16>, !pk.block<K by 32>] : !pk.tile<16x32xbf16>, !pk.private<[M, K], bf16>
      pk.signal %ready at %rank[%i] by %one : !pk.signal<[M by 16]>
    }
  }
  pk.role loader {
    %rows = pk.block_count <M by 16>
    %columns = pk.block_count <N by 16>
    %steps = pk.block_count <K by 32>
    pk.tasks (%i, %j) in (%rows, %columns) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %n = pk.block[%j] : !pk.block<N by 16>
      pk.wait %ready[%i] for %steps : !pk.signal<[M by 16]>
      scf.for %s = %zero to %steps step %one {
        %k = pk.block[%s] : !pk.block<K by 32>
        pk.acquire %0 : !pk.channel<!pk.tile<16x32xbf16>, !pk.tile<32x16xbf16>>
        %a = pk.load %A_fetched[%m, %k : !pk.block<M by 16>, !pk.block<K by 32>] : !pk.private<[M, K], bf16> -> !pk.tile<16x32xbf16>
        %b = pk.load %B[%k, %n : !pk.block<K by 32>, !pk.block<N by 16>] : !pk.private<[K, N], bf16> -> !pk.tile<32x16xbf16>
        pk.commit %0, %a, %b : !pk.channel<!pk.tile<16x32xbf16>, !pk.tile<32x16xbf16>>, !pk.tile<16x32xbf16>, !pk.tile<32x16xbf16>
      }
    }
  }
  pk.role consumer {
    %rows = pk.block_count <M by 16>
    %columns = pk.block_count <N by 16>
    %steps = pk.block_count <K by 32>
    pk.tasks (%i, %j) in (%rows, %columns) attributes {per_cta} {
      %start = pk.full 0.0 : f32 : !pk.tile<16x16xf32>
      %acc = scf.for %s = %zero to %steps step %one iter_args(%sum = %start) -> (!pk.tile<16x16xf32>) {
        %a, %b = pk.consume %0 : !pk.channel<!pk.tile<16x32xbf16>, !pk.tile<32x16xbf16>> -> !pk.tile<16x32xbf16>, !pk.tile<32x16xbf16>
        %next = pk.mma %a, %b, %sum : !pk.tile<16x32xbf16>, !pk.tile<32x16xbf16> -> !pk.tile<16x16xf32>
        pk.release %0 : !pk.channel<!pk.tile<16x32xbf16>, !pk.tile<32x16xbf16>>
        scf.yield %next : !pk.tile<16x16xf32>
      }
    }
  }
}

// -----

// A channel that holds nothing else goes as it is, and so does its place in the loop around the other one.
// CHECK-LABEL: pk.kernel @once
// CHECK: %[[Q:.*]] = pk.channel "Q" stages 1
// CHECK: %[[A:.*]] = pk.channel "A" stages 1
// CHECK-NOT: = pk.channel
// CHECK: pk.role loader {
// CHECK-NOT: pk.load %Q
// CHECK: pk.wait
// CHECK: pk.load %A
// CHECK: pk.role loader {
// CHECK-NOT: pk.wait
// CHECK-NOT: pk.load %A
// CHECK: pk.acquire %[[Q]]
// CHECK-NEXT: pk.load %Q
// CHECK-NEXT: pk.commit %[[Q]]
pk.kernel @once(%Q: !pk.private<[M], f32> {pk.name = "Q"}, %A: !pk.pgl<[M], f32, symmetric> {pk.name = "A"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {schedule = {separate_loader = true}, derived} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0 = pk.channel "Q" stages 1 : !pk.channel<!pk.tile<16xf32>>
  %1 = pk.channel "A" stages 1 : !pk.channel<!pk.tile<16xf32>>
  pk.role loader {
    %rows = pk.block_count <M by 16>
    %ranks = pk.dim "ranks"
    pk.tasks (%i) in (%rows) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      pk.acquire %0 : !pk.channel<!pk.tile<16xf32>>
      %q = pk.load %Q[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      pk.commit %0, %q : !pk.channel<!pk.tile<16xf32>>, !pk.tile<16xf32>
      scf.for %r = %zero to %ranks step %one {
        pk.wait %ready[%i] for %r : !pk.signal<[M by 16]>
        pk.acquire %1 : !pk.channel<!pk.tile<16xf32>>
        %a = pk.load %A at %r[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, symmetric> -> !pk.tile<16xf32>
        pk.commit %1, %a : !pk.channel<!pk.tile<16xf32>>, !pk.tile<16xf32>
      }
    }
  }
}

// -----

// Together where the schedule does not say otherwise.
// CHECK-LABEL: pk.kernel @together
// CHECK-COUNT-1: pk.role loader
// CHECK-NOT: pk.role loader
pk.kernel @together(%Q: !pk.private<[M], f32> {pk.name = "Q"}, %A: !pk.pgl<[M], f32, symmetric> {pk.name = "A"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {schedule = {}, derived} {
  %one = arith.constant 1 : index
  %0 = pk.channel "Q, A" stages 1 : !pk.channel<!pk.tile<16xf32>, !pk.tile<16xf32>>
  pk.role loader {
    %rows = pk.block_count <M by 16>
    pk.tasks (%i) in (%rows) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      pk.wait %ready[%i] for %one : !pk.signal<[M by 16]>
      pk.acquire %0 : !pk.channel<!pk.tile<16xf32>, !pk.tile<16xf32>>
      %q = pk.load %Q[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      %a = pk.load %A at %one[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, symmetric> -> !pk.tile<16xf32>
      pk.commit %0, %q, %a : !pk.channel<!pk.tile<16xf32>, !pk.tile<16xf32>>, !pk.tile<16xf32>, !pk.tile<16xf32>
    }
  }
}
