// Which tiles have a padding that nothing reads.
// RUN: pkc-opt %s -p pk-plan-padding --split-input-file | filecheck %s

// Rows of the left operand past the end become rows of the result, which the store leaves out. Of the right operand the
// same axis is summed over. The whole columns need nothing.
// CHECK-LABEL: pk.kernel @rows
// CHECK: %[[A:.*]] = pk.load %A[%m, %k : {{.*}}] {unread = array<i64: 0>} :
// CHECK: pk.load %B[%k, %n : {{.*}}] : {{.*}} -> !pk.tile<64x128xbf16>
pk.kernel @rows(%A: !pk.private<[M, K], bf16> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[M, N], f32> {pk.name = "C"}, %count: !pk.private<[8], i32> {pk.name = "count"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = pk.read %count[%zero] : !pk.private<[8], i32>
  %steps = pk.block_count <K by 64>
  %m = pk.block[%zero] to %rows : !pk.block<M by 64>
  %n = pk.block[%zero] : !pk.block<N by 128>
  %acc = pk.full 0.0 : f32 : !pk.tile<64x128xf32>
  %sum = scf.for %i = %zero to %steps step %one iter_args(%old = %acc) -> (!pk.tile<64x128xf32>) {
    %k = pk.block[%i] : !pk.block<K by 64>
    %a = pk.load %A[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<64x64xbf16>
    %b = pk.load %B[%k, %n : !pk.block<K by 64>, !pk.block<N by 128>] : !pk.private<[K, N], bf16> -> !pk.tile<64x128xbf16>
    %new = pk.mma %a, %b, %old : !pk.tile<64x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<64x128xf32>
    scf.yield %new : !pk.tile<64x128xf32>
  }
  pk.store %sum, %C[%m, %n : !pk.block<M by 64>, !pk.block<N by 128>] : !pk.tile<64x128xf32>, !pk.private<[M, N], f32>
}

// -----

// Summed over, stored with another block, or part of what the next iteration begins with: it is read. Clipped: it is
// not, whatever comes behind.
// CHECK-LABEL: pk.kernel @read
// CHECK: %[[S:.*]] = pk.load %A[%m, %k : {{.*}}] : {{.*}} -> !pk.tile<64x64xf32>
// CHECK: %[[O:.*]] = pk.load %A[%m, %whole : {{.*}}] : {{.*}} -> !pk.tile<64x64xf32>
// CHECK: %[[C:.*]] = pk.load %B[%m, %k : {{.*}}] {unread = array<i64: 1>} : {{.*}} -> !pk.tile<64x64xf32>
pk.kernel @read(%A: !pk.private<[M, K], f32> {pk.name = "A"}, %B: !pk.private<[M, K], f32> {pk.name = "B"}, %C: !pk.private<[M], f32> {pk.name = "C"}, %D: !pk.private<[M, K], f32> {pk.name = "D"}, %count: !pk.private<[8], i32> {pk.name = "count"}) {
  %zero = arith.constant 0 : index
  %rows = pk.read %count[%zero] : !pk.private<[8], i32>
  %m = pk.block[%zero] to %rows : !pk.block<M by 64>
  %all = pk.block[%zero] : !pk.block<M by 64>
  %k = pk.block[%zero] to %rows : !pk.block<K by 64>
  %whole = pk.block[%zero] : !pk.block<K by 64>
  %s = pk.load %A[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], f32> -> !pk.tile<64x64xf32>
  %t = pk.row_sum %s : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
  pk.store %t, %C[%all : !pk.block<M by 64>] : !pk.tile<64xf32>, !pk.private<[M], f32>
  %o = pk.load %A[%m, %whole : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], f32> -> !pk.tile<64x64xf32>
  pk.store %o, %D[%all, %whole : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.tile<64x64xf32>, !pk.private<[M, K], f32>
  %c = pk.load %B[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], f32> -> !pk.tile<64x64xf32>
  %d = pk.clip %c axis 1 to %k fill 0.0 : f32 : !pk.tile<64x64xf32>, !pk.block<K by 64> -> !pk.tile<64x64xf32>
  %e = pk.row_sum %d : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
  pk.store %e, %C[%all : !pk.block<M by 64>] : !pk.tile<64xf32>, !pk.private<[M], f32>
}

// -----

// Blocks that end with the shards of two dimensions, those of X and those of Y: a load by TMA goes on past the end of one
// of Y. The tensor map itself ends with the shards of X, or, of an array without shards, with those of the first such block.
// CHECK-LABEL: pk.kernel @turn
// CHECK: pk.load %X[%m, %n : {{.*}}] {unread = array<i64: 1>} :
// CHECK: pk.load %Z[%m, %n : {{.*}}] {unread = array<i64: 0>} :
// CHECK: pk.load %V[%m, %n : {{.*}}] {unread = array<i64: 1>} :
pk.kernel @turn(%X: !pk.pgl<[M, N], f32, shard 0> {pk.name = "X"}, %Y: !pk.pgl<[M, N], f32, shard 1> {pk.name = "Y"}, %Z: !pk.pgl<[M, N], f32, shard 1> {pk.name = "Z"}, %V: !pk.private<[M, N], f32> {pk.name = "V"}) {
  %rank = pk.rank
  %zero = arith.constant 0 : index
  %m = pk.block[%zero] of %rank sharded : !pk.block<M by 64>
  %n = pk.block[%zero] sharded : !pk.block<N by 64>
  %x = pk.load %X[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<64x64xf32>
  pk.store %x, %Y[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.tile<64x64xf32>, !pk.pgl<[M, N], f32, shard 1>
  %z = pk.load %Z[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.pgl<[M, N], f32, shard 1> -> !pk.tile<64x64xf32>
  pk.store %z, %Y[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.tile<64x64xf32>, !pk.pgl<[M, N], f32, shard 1>
  %v = pk.load %V[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<64x64xf32>
  pk.store %v, %Y[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.tile<64x64xf32>, !pk.pgl<[M, N], f32, shard 1>
}

// -----

// What a branch reads that is taken where the block is whole has no padding; the other branch clips.
// CHECK-LABEL: pk.kernel @edges
// CHECK: pk.load %A[%m, %k : {{.*}}] {unread = array<i64: 1>} :
// CHECK: pk.load %B[%m, %k : {{.*}}] : {{.*}} -> !pk.tile<64x64xf32>
pk.kernel @edges(%A: !pk.private<[M, K], f32> {pk.name = "A"}, %B: !pk.private<[M, K], f32> {pk.name = "B"}, %C: !pk.private<[M], f32> {pk.name = "C"}, %count: !pk.private<[8], i32> {pk.name = "count"}) {
  %zero = arith.constant 0 : index
  %rows = pk.read %count[%zero] : !pk.private<[8], i32>
  %m = pk.block[%zero] : !pk.block<M by 64>
  %k = pk.block[%zero] to %rows : !pk.block<K by 64>
  %some = arith.cmpi slt, %zero, %rows : index
  %whole = pk.is_whole %k : !pk.block<K by 64>
  %inside = arith.andi %some, %whole : i1
  %a = pk.load %A[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], f32> -> !pk.tile<64x64xf32>
  %b = scf.if %inside -> (!pk.tile<64x64xf32>) {
    scf.yield %a : !pk.tile<64x64xf32>
  } else {
    %clipped = pk.clip %a axis 1 to %k fill 0.0 : f32 : !pk.tile<64x64xf32>, !pk.block<K by 64> -> !pk.tile<64x64xf32>
    scf.yield %clipped : !pk.tile<64x64xf32>
  }
  %c = pk.row_sum %b : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
  pk.store %c, %C[%m : !pk.block<M by 64>] : !pk.tile<64xf32>, !pk.private<[M], f32>
  %x = pk.load %B[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], f32> -> !pk.tile<64x64xf32>
  %y = scf.if %some -> (!pk.tile<64x64xf32>) {
    scf.yield %x : !pk.tile<64x64xf32>
  } else {
    %cut = pk.clip %x axis 1 to %k fill 0.0 : f32 : !pk.tile<64x64xf32>, !pk.block<K by 64> -> !pk.tile<64x64xf32>
    scf.yield %cut : !pk.tile<64x64xf32>
  }
  %z = pk.row_sum %y : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
  pk.store %z, %C[%m : !pk.block<M by 64>] : !pk.tile<64xf32>, !pk.private<[M], f32>
}

// -----

// Of rows that begin anywhere it also says along which axes nothing reads what lies past the end of the array: of the
// rows that are stored, but not of those behind them, which have zeros there.
// CHECK-LABEL: pk.kernel @anywhere
// CHECK: pk.load %X[%m, %n : {{.*}}] {never_read = array<i64: 0>}
// CHECK: pk.load %X[%m_1, %n : {{.*}}] : {{.*}}
pk.kernel @anywhere(%X: !pk.private<[M, 131], f32> {pk.name = "X"}, %Y: !pk.private<[M, 131], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %m = pk.block[%i] : !pk.block<M by 8>
  %m_1 = pk.block[%i] from %one : !pk.block<M by 8>
  %n = pk.block[%i] : !pk.block<131 by 131>
  %x = pk.load %X[%m, %n : !pk.block<M by 8>, !pk.block<131 by 131>] : !pk.private<[M, 131], f32> -> !pk.tile<8x131xf32>
  %y = pk.load %X[%m_1, %n : !pk.block<M by 8>, !pk.block<131 by 131>] : !pk.private<[M, 131], f32> -> !pk.tile<8x131xf32>
  %z = pk.add %x, %y : !pk.tile<8x131xf32>
  pk.store %z, %Y[%m, %n : !pk.block<M by 8>, !pk.block<131 by 131>] : !pk.tile<8x131xf32>, !pk.private<[M, 131], f32>
}
