// Operands of MMAs whose rows begin anywhere are copied to padded rows before tasks that load them again and again.
// RUN: pkc-opt %s -p pk-align-rows --split-input-file --remarks | filecheck %s

// Rows of A and B begin 2 bytes, or a multiple of that, behind each other. Each task loads what others load, too: A of
// all columns, B of all rows. B goes through a transposition, and there are two loads of it.
// CHECK-LABEL: pk.kernel @both
// CHECK-SAME: %A_aligned: !pk.private<[M, K], bf16, padded> {pk.name = "A.aligned", pk.scratch}
// CHECK-SAME: %B_aligned: !pk.private<[N, K], bf16, padded> {pk.name = "B.aligned", pk.scratch}
// CHECK: %[[R:.*]] = pk.block_count <M by 16>
// CHECK-NEXT: %[[C:.*]] = pk.block_count <K by 1024>
// CHECK-NEXT: pk.tasks (%[[I:.*]], %[[J:.*]]) in (%[[R]], %[[C]]) {
// CHECK-NEXT: %[[M:.*]] = pk.block[%[[I]]] : !pk.block<M by 16>
// CHECK-NEXT: %[[K:.*]] = pk.block[%[[J]]] : !pk.block<K by 1024>
// CHECK-NEXT: %[[X:.*]] = pk.load %A[%[[M]], %[[K]] : {{.*}}] {role = #pk<role_name consumer>}
// CHECK-NEXT: pk.store %[[X]], %A_aligned[%[[M]], %[[K]] : {{.*}}] {role = #pk<role_name consumer>}
// CHECK: pk.tasks
// CHECK: pk.load %B[
// CHECK-NEXT: pk.store {{.*}}, %B_aligned[
// CHECK: pk.tasks
// CHECK: pk.load %A_aligned[%m, %k :
// CHECK-NEXT: pk.load %B_aligned[%n, %k :
// CHECK: pk.load %B_aligned[%n, %k :
// CHECK: remark: {{.*}}`A` is copied first, to rows that TMA moves: its rows begin 2 bytes{{.*}} [pk-align-rows]
// CHECK: remark: {{.*}}`B` is copied first
pk.kernel @both(%A: !pk.private<[M, K], bf16> {pk.name = "A"}, %B: !pk.private<[N, K], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], f32> {pk.name = "C"}) attributes {target = "sm_90a", schedule = {}, divisors = {K = 1 : i64}} {
  %0 = pk.block_count <M by 64>
  %1 = pk.block_count <N by 64>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] : !pk.block<M by 64>
    %n = pk.block[%3] : !pk.block<N by 64>
    %zero = arith.constant 0 : index
    %k = pk.block[%zero] : !pk.block<K by 64>
    %acc = pk.full 0.0 : f32 : !pk.tile<64x64xf32>
    %a = pk.load %A[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<64x64xbf16>
    %b = pk.load %B[%n, %k : !pk.block<N by 64>, !pk.block<K by 64>] : !pk.private<[N, K], bf16> -> !pk.tile<64x64xbf16>
    %t = pk.transpose %b : !pk.tile<64x64xbf16> -> !pk.tile<64x64xbf16>
    %x = pk.mma %a, %t, %acc : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
    %b2 = pk.load %B[%n, %k : !pk.block<N by 64>, !pk.block<K by 64>] : !pk.private<[N, K], bf16> -> !pk.tile<64x64xbf16>
    %t2 = pk.transpose %b2 : !pk.tile<64x64xbf16> -> !pk.tile<64x64xbf16>
    %y = pk.mma %a, %t2, %x : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
    pk.store %y, %C[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.tile<64x64xf32>, !pk.private<[M, N], f32>
  }
}

// -----

// What stays: an operand that each task has for itself (A), one whose rows suit TMA (B), what no MMA reads (D), and what
// the kernel writes (C).
// CHECK-LABEL: pk.kernel @stay
// CHECK-SAME: %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes
pk.kernel @stay(%A: !pk.private<[M, K], bf16> {pk.name = "A"}, %B: !pk.private<[K, 64], bf16> {pk.name = "B"}, %D: !pk.private<[64, N], bf16> {pk.name = "D"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {target = "sm_90a", schedule = {}, divisors = {K = 1 : i64, N = 1 : i64}} {
  %0 = pk.block_count <M by 64>
  pk.tasks (%1) in (%0) {
    %m = pk.block[%1] : !pk.block<M by 64>
    %zero = arith.constant 0 : index
    %k = pk.block[%zero] : !pk.block<K by 64>
    %n = pk.block[%zero] : !pk.block<N by 64>
    %i = pk.block[%zero] : !pk.block<64 by 64>
    %acc = pk.full 0.0 : f32 : !pk.tile<64x64xf32>
    %a = pk.load %A[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<64x64xbf16>
    %b = pk.load %B[%k, %i : !pk.block<K by 64>, !pk.block<64 by 64>] : !pk.private<[K, 64], bf16> -> !pk.tile<64x64xbf16>
    %c = pk.load %C[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.private<[M, N], bf16> -> !pk.tile<64x64xbf16>
    %d = pk.load %D[%i, %n : !pk.block<64 by 64>, !pk.block<N by 64>] : !pk.private<[64, N], bf16> -> !pk.tile<64x64xbf16>
    %x = pk.mma %a, %b, %acc : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
    %y = pk.mma %c, %b, %x : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
    %e = pk.cast %d : !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
    %z = pk.add %y, %e : !pk.tile<64x64xf32>
    %s = pk.cast %z : !pk.tile<64x64xf32> -> !pk.tile<64x64xbf16>
    pk.store %s, %C[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.tile<64x64xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// Where the schedule says so, nothing is copied.
// CHECK-LABEL: pk.kernel @unasked
// CHECK-SAME: %C: !pk.private<[M, N], f32> {pk.name = "C"}) attributes
pk.kernel @unasked(%A: !pk.private<[M, K], bf16> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], f32> {pk.name = "C"}) attributes {target = "sm_90a", schedule = {aligned_copies = false}, divisors = {K = 1 : i64}} {
  %0 = pk.block_count <M by 64>
  %1 = pk.block_count <N by 64>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] : !pk.block<M by 64>
    %n = pk.block[%3] : !pk.block<N by 64>
    %zero = arith.constant 0 : index
    %k = pk.block[%zero] : !pk.block<K by 64>
    %acc = pk.full 0.0 : f32 : !pk.tile<64x64xf32>
    %a = pk.load %A[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<64x64xbf16>
    %b = pk.load %B[%k, %n : !pk.block<K by 64>, !pk.block<N by 64>] : !pk.private<[K, N], bf16> -> !pk.tile<64x64xbf16>
    %x = pk.mma %a, %b, %acc : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
    pk.store %x, %C[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.tile<64x64xf32>, !pk.private<[M, N], f32>
  }
}

// -----

// Nothing there is to copy: the schedule asks in vain.
// CHECK: remark: {{.*}}`aligned_copies=true` changes nothing: {{.*}} [pk-align-rows]
pk.kernel @in_vain(%A: !pk.private<[M, N], bf16> {pk.name = "A"}, %C: !pk.private<[M, N], bf16> {pk.name = "C"}) attributes {target = "sm_90a", schedule = {aligned_copies = true}, divisors = {N = 1 : i64}} {
  %0 = pk.block_count <M by 64>
  pk.tasks (%1) in (%0) {
    %m = pk.block[%1] : !pk.block<M by 64>
    %zero = arith.constant 0 : index
    %n = pk.block[%zero] : !pk.block<N by 64>
    %a = pk.load %A[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.private<[M, N], bf16> -> !pk.tile<64x64xbf16>
    pk.store %a, %C[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.tile<64x64xbf16>, !pk.private<[M, N], bf16>
  }
}

// -----

// Where copy engines send what a task computes, no phase can come first.
// CHECK-LABEL: pk.kernel @by_engines
// CHECK-SAME: %C: !pk.pgl<[M, N], f32, shard 0> {pk.name = "C"}) attributes
// CHECK: remark: {{.*}}threads load rows that begin anywhere: copy engines send results{{.*}} [pk-align-rows]
pk.kernel @by_engines(%A: !pk.private<[M, K], bf16> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.pgl<[M, N], f32, shard 0> {pk.name = "C"}) attributes {target = "sm_90a", schedule = {overlap = "copy_engine"}, divisors = {K = 1 : i64}} {
  %0 = pk.block_count <M by 64> sharded
  %1 = pk.block_count <N by 64>
  pk.tasks (%2, %3) in (%0, %1) {
    %m = pk.block[%2] sharded : !pk.block<M by 64>
    %n = pk.block[%3] : !pk.block<N by 64>
    %zero = arith.constant 0 : index
    %k = pk.block[%zero] : !pk.block<K by 64>
    %acc = pk.full 0.0 : f32 : !pk.tile<64x64xf32>
    %a = pk.load %A[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<64x64xbf16>
    %b = pk.load %B[%k, %n : !pk.block<K by 64>, !pk.block<N by 64>] : !pk.private<[K, N], bf16> -> !pk.tile<64x64xbf16>
    %x = pk.mma %a, %b, %acc : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
    pk.accumulate %x, %C[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.tile<64x64xf32>, !pk.pgl<[M, N], f32, shard 0>
  }
}

// -----

// Of several matrices all are used by tasks (A), or one alone (W), which threads load. Rows of a constant length are
// copied as long as they are, and more of them at once.
// CHECK-LABEL: pk.kernel @matrices
// CHECK-SAME: %A_aligned: !pk.private<[B, M, 36], bf16, padded>
// CHECK-NOT: W_aligned
// CHECK: pk.block_count <M by 256>
// CHECK-NEXT: pk.block_count <36 by 48>
// CHECK: pk.load %A[{{.*}}] {role = #pk<role_name consumer>} : {{.*}} -> !pk.tile<256x48xbf16>
// CHECK: pk.tasks
// CHECK: pk.load %A_aligned[%b, %m, %k :
// CHECK-NEXT: pk.load %W[
// CHECK: remark: {{.*}}all matrices of `W` would be copied, of which only some may be used [pk-align-rows]
pk.kernel @matrices(%A: !pk.private<[B, M, 36], bf16> {pk.name = "A"}, %W: !pk.private<[L, 36, 77], bf16> {pk.name = "W"}, %C: !pk.private<[B, M, 77], f32> {pk.name = "C"}) attributes {target = "sm_90a", schedule = {}} {
  %0 = pk.dim "B"
  %1 = pk.block_count <M by 64>
  %2 = pk.block_count <77 by 16>
  pk.tasks (%b, %3, %4) in (%0, %1, %2) {
    %m = pk.block[%3] : !pk.block<M by 64>
    %n = pk.block[%4] : !pk.block<77 by 16>
    %zero = arith.constant 0 : index
    %k = pk.block[%zero] : !pk.block<36 by 48>
    %acc = pk.full 0.0 : f32 : !pk.tile<64x16xf32>
    %a = pk.load %A[%b, %m, %k : index, !pk.block<M by 64>, !pk.block<36 by 48>] : !pk.private<[B, M, 36], bf16> -> !pk.tile<64x48xbf16>
    %w = pk.load %W[%zero, %k, %n : index, !pk.block<36 by 48>, !pk.block<77 by 16>] : !pk.private<[L, 36, 77], bf16> -> !pk.tile<48x16xbf16>
    %x = pk.mma %a, %w, %acc : !pk.tile<64x48xbf16>, !pk.tile<48x16xbf16> -> !pk.tile<64x16xf32>
    pk.store %x, %C[%b, %m, %n : index, !pk.block<M by 64>, !pk.block<77 by 16>] : !pk.tile<64x16xf32>, !pk.private<[B, M, 77], f32>
  }
}
