// Rows that communicators fetch beside tasks come in pieces, of which several are in flight.
// RUN: pkc-opt %s -p pk-attach-target,pk-piece-gathers --split-input-file --verify-diagnostics | filecheck %s

// Of 32 rows of 128 bytes two pieces of 16 make 2 KB each; each has its part of the table, and ends where the list ends.
// CHECK-LABEL: pk.kernel @fetch
// CHECK: %p = pk.block[%i] to %n : !pk.block<P by 32>
// CHECK-NEXT: %[[FIRST:.*]] = pk.block_position %p : !pk.block<P by 32>
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0
// CHECK-NEXT: %[[A:.*]] = pk.block[%[[ZERO]]] from %[[FIRST]] to %n : !pk.block<P by 16>
// CHECK-NEXT: %[[OFA:.*]] = pk.load %rows[%e, %[[A]] :
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1
// CHECK-NEXT: %[[B:.*]] = pk.block[%[[ONE]]] from %[[FIRST]] to %n : !pk.block<P by 16>
// CHECK-NEXT: %[[OFB:.*]] = pk.load %rows[%e, %[[B]] :
// CHECK: scf.for
// CHECK: %[[X:.*]] = pk.gather %X rows %[[OFA]][%k :
// CHECK-NEXT: %[[Y:.*]] = pk.gather %X rows %[[OFB]][%k :
// CHECK-NEXT: pk.store %[[X]], %F[%e, %[[A]], %k :
// CHECK-NEXT: pk.store %[[Y]], %F[%e, %[[B]], %k :
// CHECK-NOT: pk.gather
// CHECK: pk.raise %ready at %rank[%e, %number] to %one
pk.kernel @fetch(%X: !pk.pgl<[T, H], bf16, shard 0> {pk.name = "X"}, %rows: !pk.private<[E, P], i32> {pk.name = "rows"}, %count: !pk.private<[E], i32> {pk.name = "count"}, %F: !pk.private<[E, P, H], bf16> {pk.name = "F", pk.scratch}, %ready: !pk.signal<[E, P by 32]> {pk.name = "ready"}) attributes {schedule = {}, derived} {
  %rank = pk.rank
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  pk.role communicator {
    %0 = pk.dim "E"
    pk.tasks (%e) in (%0) {
      %n = pk.read %count[%e] : !pk.private<[E], i32>
      %1 = pk.block_count <P by 32> to %n
      pk.tasks (%i) in (%1) {
        %p = pk.block[%i] to %n : !pk.block<P by 32>
        %named = pk.load %rows[%e, %p : index, !pk.block<P by 32>] : !pk.private<[E, P], i32> -> !pk.tile<32xi32>
        %2 = pk.block_count <H by 64>
        scf.for %j = %zero to %2 step %one {
          %k = pk.block[%j] : !pk.block<H by 64>
          %3 = pk.gather %X rows %named[%k : !pk.block<H by 64>] : !pk.pgl<[T, H], bf16, shard 0>, !pk.tile<32xi32> -> !pk.tile<32x64xbf16>
          pk.store %3, %F[%e, %p, %k : index, !pk.block<P by 32>, !pk.block<H by 64>] : !pk.tile<32x64xbf16>, !pk.private<[E, P, H], bf16>
        }
        %number = pk.block_number %p : !pk.block<P by 32>
        pk.raise %ready at %rank[%e, %number] to %one : !pk.signal<[E, P by 32]>
      }
    }
  }
}

// -----

// SMs that only communicate have room for many tiles.
// CHECK-LABEL: pk.kernel @separate
// CHECK: pk.gather {{.*}} -> !pk.tile<32x64xbf16>
// CHECK-NOT: pk.gather
pk.kernel @separate(%X: !pk.pgl<[T, H], bf16, shard 0> {pk.name = "X"}, %rows: !pk.private<[P], i32> {pk.name = "rows"}, %F: !pk.private<[P, H], bf16> {pk.name = "F", pk.scratch}) attributes {schedule = {comm_sms = 4 : i64}, derived} {
  pk.role communicator {
    %0 = pk.block_count <P by 32>
    %1 = pk.block_count <H by 64>
    pk.tasks (%i, %j) in (%0, %1) {
      %p = pk.block[%i] : !pk.block<P by 32>
      %k = pk.block[%j] : !pk.block<H by 64>
      %named = pk.load %rows[%p : !pk.block<P by 32>] : !pk.private<[P], i32> -> !pk.tile<32xi32>
      %2 = pk.gather %X rows %named[%k : !pk.block<H by 64>] : !pk.pgl<[T, H], bf16, shard 0>, !pk.tile<32xi32> -> !pk.tile<32x64xbf16>
      pk.store %2, %F[%p, %k : !pk.block<P by 32>, !pk.block<H by 64>] : !pk.tile<32x64xbf16>, !pk.private<[P, H], bf16>
    }
  }
}

// -----

// Rows that an operation has computed are not loaded piece by piece; nor are rows stored elsewhere.
// CHECK-LABEL: pk.kernel @computed
// CHECK: pk.gather {{.*}} -> !pk.tile<32x64xbf16>
// CHECK-NOT: pk.gather
pk.kernel @computed(%X: !pk.pgl<[T, H], bf16, shard 0> {pk.name = "X"}, %rows: !pk.private<[P], i32> {pk.name = "rows"}, %F: !pk.private<[P, H], bf16> {pk.name = "F", pk.scratch}) attributes {schedule = {}, derived} {
  pk.role communicator {
    %0 = pk.block_count <P by 32>
    %1 = pk.block_count <H by 64>
    pk.tasks (%i, %j) in (%0, %1) {
      %p = pk.block[%i] : !pk.block<P by 32>
      %k = pk.block[%j] : !pk.block<H by 64>
      %named = pk.load %rows[%p : !pk.block<P by 32>] : !pk.private<[P], i32> -> !pk.tile<32xi32>
      %next = pk.add %named, %named : !pk.tile<32xi32>
      // expected-remark@+1 {{a tile of its rows comes as a whole: what names them is no row of a table}}
      %2 = pk.gather %X rows %next[%k : !pk.block<H by 64>] : !pk.pgl<[T, H], bf16, shard 0>, !pk.tile<32xi32> -> !pk.tile<32x64xbf16>
      pk.store %2, %F[%p, %k : !pk.block<P by 32>, !pk.block<H by 64>] : !pk.tile<32x64xbf16>, !pk.private<[P, H], bf16>
    }
  }
}
