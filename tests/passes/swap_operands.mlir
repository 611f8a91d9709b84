// What is computed for an MMA becomes its left operand; results are transposed up to where they are stored.
// RUN: pkc-opt %s -p pk-swap-operands,pk-dce --split-input-file --remarks | filecheck %s

// The accumulator that the loop carries, what is added to it and what scales it.
// CHECK-LABEL: pk.kernel @carried
// CHECK: %[[ZERO:.*]] = pk.full 0.000000e+00 : f32 : !pk.tile<128x32xf32>
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[ZERO]]) -> (!pk.tile<128x32xf32>) {
// CHECK: %[[X:.*]] = pk.load %X
// CHECK: %[[W:.*]] = pk.load %W
// CHECK-NEXT: %[[B:.*]] = pk.cast %[[W]] : !pk.tile<128x64xi8> -> !pk.tile<128x64xbf16>
// CHECK: %[[A:.*]] = pk.transpose %[[X]] : !pk.tile<32x64xbf16> -> !pk.tile<64x32xbf16>
// CHECK-NEXT: %[[P:.*]] = pk.mma %[[B]], %[[A]], %{{.*}} : !pk.tile<128x64xbf16>, !pk.tile<64x32xbf16> -> !pk.tile<128x32xf32>
// CHECK: pk.broadcast %s axes [0] : !pk.tile<128xf32> -> !pk.tile<128x32xf32>
// CHECK: %[[Q:.*]] = pk.mul %[[P]], %{{.*}} : !pk.tile<128x32xf32>
// CHECK-NEXT: %[[R:.*]] = pk.add %[[ACC]], %[[Q]] : !pk.tile<128x32xf32>
// CHECK-NEXT: scf.yield %[[R]] : !pk.tile<128x32xf32>
// CHECK: %[[Y:.*]] = pk.cast %[[SUM]] : !pk.tile<128x32xf32> -> !pk.tile<128x32xbf16>
// CHECK-NEXT: %[[T:.*]] = pk.transpose %[[Y]] : !pk.tile<128x32xbf16> -> !pk.tile<32x128xbf16>
// CHECK-NEXT: pk.store %[[T]], %Y
pk.kernel @carried(%X: !pk.private<[M, K], bf16> {pk.name = "X"}, %W: !pk.private<[N, K], i8> {pk.name = "W"}, %S: !pk.private<[N], f32> {pk.name = "S"}, %Y: !pk.private<[M, N], bf16> {pk.name = "Y"}) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %m = pk.block[%0] : !pk.block<M by 32>
  %n = pk.block[%0] : !pk.block<N by 128>
  %steps = pk.block_count <K by 64>
  %zero = pk.full 0.000000e+00 : f32 : !pk.tile<32x128xf32>
  %s = pk.load %S[%n : !pk.block<N by 128>] : !pk.private<[N], f32> -> !pk.tile<128xf32>
  %sum = scf.for %i = %0 to %steps step %1 iter_args(%acc = %zero) -> (!pk.tile<32x128xf32>) {
    %k = pk.block[%i] : !pk.block<K by 64>
    %x = pk.load %X[%m, %k : !pk.block<M by 32>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<32x64xbf16>
    %w = pk.load %W[%n, %k : !pk.block<N by 128>, !pk.block<K by 64>] : !pk.private<[N, K], i8> -> !pk.tile<128x64xi8>
    %c = pk.cast %w : !pk.tile<128x64xi8> -> !pk.tile<128x64xbf16>
    %b = pk.transpose %c : !pk.tile<128x64xbf16> -> !pk.tile<64x128xbf16>
    %p = pk.mma %x, %b, %zero : !pk.tile<32x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<32x128xf32>
    %r = pk.broadcast %s axes [1] : !pk.tile<128xf32> -> !pk.tile<32x128xf32>
    %q = pk.mul %p, %r : !pk.tile<32x128xf32>
    %t = pk.add %acc, %q : !pk.tile<32x128xf32>
    scf.yield %t : !pk.tile<32x128xf32>
  }
  %y = pk.cast %sum : !pk.tile<32x128xf32> -> !pk.tile<32x128xbf16>
  pk.store %y, %Y[%m, %n : !pk.block<M by 32>, !pk.block<N by 128>] : !pk.tile<32x128xbf16>, !pk.private<[M, N], bf16>
}

// -----

// A mask in a branch, copies of elements, and a residual, which is loaded; the transpose that is stored goes.
// CHECK-LABEL: pk.kernel @masked
// CHECK: %[[W:.*]] = pk.load %W
// CHECK-NEXT: %[[WT:.*]] = pk.transpose %[[W]] : !pk.tile<8x64xi32> -> !pk.tile<64x8xi32>
// CHECK-NEXT: %[[E:.*]] = pk.enlarge %[[WT]] : !pk.tile<64x8xi32> -> !pk.tile<64x64xi32>
// CHECK: %[[B:.*]] = pk.cast %[[E]] : !pk.tile<64x64xi32> -> !pk.tile<64x64xbf16>
// CHECK: %[[M:.*]] = scf.if {{.*}} -> (!pk.tile<64x64xbf16>) {
// CHECK-NEXT: scf.yield %[[B]]
// CHECK: pk.clip %[[B]] axis 1 to %k
// CHECK: %[[X:.*]] = pk.transpose %x : !pk.tile<16x64xbf16> -> !pk.tile<64x16xbf16>
// CHECK-NEXT: %[[P:.*]] = pk.mma %[[M]], %[[X]], %{{.*}} -> !pk.tile<64x16xf32>
// CHECK: %[[R:.*]] = pk.transpose %{{.*}} : !pk.tile<16x64xf32> -> !pk.tile<64x16xf32>
// CHECK: %[[Q:.*]] = pk.add %[[P]], %[[R]] : !pk.tile<64x16xf32>
// CHECK-NEXT: pk.store %[[Q]], %Y
pk.kernel @masked(%X: !pk.private<[M, K], bf16> {pk.name = "X"}, %W: !pk.private<[L, N], i32> {pk.name = "W"}, %R: !pk.private<[M, N], f32> {pk.name = "R"}, %Y: !pk.private<[N, M], f32> {pk.name = "Y"}) {
  %0 = arith.constant 0 : index
  %m = pk.block[%0] : !pk.block<M by 16>
  %n = pk.block[%0] : !pk.block<N by 64>
  %k = pk.block[%0] : !pk.block<K by 64>
  %l = pk.block[%0] : !pk.block<L by 8>
  %zero = pk.full 0.000000e+00 : f32 : !pk.tile<16x64xf32>
  %x = pk.load %X[%m, %k : !pk.block<M by 16>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<16x64xbf16>
  %w = pk.load %W[%l, %n : !pk.block<L by 8>, !pk.block<N by 64>] : !pk.private<[L, N], i32> -> !pk.tile<8x64xi32>
  %e = pk.enlarge %w : !pk.tile<8x64xi32> -> !pk.tile<64x64xi32>
  %c = pk.cast %e : !pk.tile<64x64xi32> -> !pk.tile<64x64xbf16>
  %whole = pk.is_whole %k : !pk.block<K by 64>
  %b = scf.if %whole -> (!pk.tile<64x64xbf16>) {
    scf.yield %c : !pk.tile<64x64xbf16>
  } else {
    %clip = pk.clip %c axis 0 to %k fill 0.000000e+00 : bf16 : !pk.tile<64x64xbf16>, !pk.block<K by 64> -> !pk.tile<64x64xbf16>
    scf.yield %clip : !pk.tile<64x64xbf16>
  }
  %p = pk.mma %x, %b, %zero : !pk.tile<16x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<16x64xf32>
  %r = pk.load %R[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<16x64xf32>
  %q = pk.add %p, %r : !pk.tile<16x64xf32>
  %t = pk.transpose %q : !pk.tile<16x64xf32> -> !pk.tile<64x16xf32>
  pk.store %t, %Y[%n, %m : !pk.block<N by 64>, !pk.block<M by 16>] : !pk.tile<64x16xf32>, !pk.private<[N, M], f32>
}

// -----

// Rows of the result are reduced: threads would have parts of them.
// CHECK-LABEL: pk.kernel @reduced
// CHECK: pk.mma %x, %b, %zero
// CHECK: // remark: {{.*}}pk.mma: its right operand goes through shared memory: its result is not only computed with element by element, and stored
pk.kernel @reduced(%X: !pk.private<[M, K], bf16> {pk.name = "X"}, %W: !pk.private<[K, N], i8> {pk.name = "W"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) {
  %0 = arith.constant 0 : index
  %m = pk.block[%0] : !pk.block<M by 64>
  %n = pk.block[%0] : !pk.block<N by 64>
  %k = pk.block[%0] : !pk.block<K by 64>
  %zero = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
  %x = pk.load %X[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<64x64xbf16>
  %w = pk.load %W[%k, %n : !pk.block<K by 64>, !pk.block<N by 64>] : !pk.private<[K, N], i8> -> !pk.tile<64x64xi8>
  %b = pk.cast %w : !pk.tile<64x64xi8> -> !pk.tile<64x64xbf16>
  %p = pk.mma %x, %b, %zero : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
  %s = pk.row_sum %p : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
  pk.store %s, %Y[%m : !pk.block<M by 64>] : !pk.tile<64xf32>, !pk.private<[M], f32>
}

// -----

// Fewer columns than an MMA has rows, and an operand that another MMA makes.
// CHECK-LABEL: pk.kernel @few
// CHECK: // remark: {{.*}}pk.mma: its right operand goes through shared memory: blocks of 32 columns are no multiple of 64
// CHECK: // remark: {{.*}}pk.mma: its right operand goes through shared memory: its transpose does not follow from loads
pk.kernel @few(%X: !pk.private<[M, K], bf16> {pk.name = "X"}, %W: !pk.private<[K, N], i8> {pk.name = "W"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}, %Z: !pk.private<[M, K], f32> {pk.name = "Z"}) {
  %0 = arith.constant 0 : index
  %m = pk.block[%0] : !pk.block<M by 64>
  %n = pk.block[%0] : !pk.block<N by 32>
  %k = pk.block[%0] : !pk.block<K by 64>
  %zero = pk.full 0.000000e+00 : f32 : !pk.tile<64x32xf32>
  %nil = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
  %x = pk.load %X[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<64x64xbf16>
  %w = pk.load %W[%k, %n : !pk.block<K by 64>, !pk.block<N by 32>] : !pk.private<[K, N], i8> -> !pk.tile<64x32xi8>
  %b = pk.cast %w : !pk.tile<64x32xi8> -> !pk.tile<64x32xbf16>
  %p = pk.mma %x, %b, %zero : !pk.tile<64x64xbf16>, !pk.tile<64x32xbf16> -> !pk.tile<64x32xf32>
  pk.store %p, %Y[%m, %n : !pk.block<M by 64>, !pk.block<N by 32>] : !pk.tile<64x32xf32>, !pk.private<[M, N], f32>
  %q = pk.mma %x, %x, %nil : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
  %c = pk.cast %q : !pk.tile<64x64xf32> -> !pk.tile<64x64xbf16>
  %r = pk.mma %x, %c, %nil : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
  pk.store %r, %Z[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.tile<64x64xf32>, !pk.private<[M, K], f32>
}

// -----

// What are rows then, three times those of a warpgroup, two of these cannot share; three can.
// CHECK-LABEL: pk.kernel @two
// CHECK: pk.mma %x, %b, %zero
// CHECK: // remark: {{.*}}pk.mma: its right operand goes through shared memory: 2 warpgroups cannot share blocks of 192 columns, 64 at a time
pk.kernel @two(%X: !pk.private<[M, K], bf16> {pk.name = "X"}, %W: !pk.private<[K, N], i8> {pk.name = "W"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}) {
  %0 = arith.constant 0 : index
  %m = pk.block[%0] : !pk.block<M by 64>
  %n = pk.block[%0] : !pk.block<N by 192>
  %k = pk.block[%0] : !pk.block<K by 64>
  %zero = pk.full 0.000000e+00 : f32 : !pk.tile<64x192xf32>
  %x = pk.load %X[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<64x64xbf16>
  %w = pk.load %W[%k, %n : !pk.block<K by 64>, !pk.block<N by 192>] : !pk.private<[K, N], i8> -> !pk.tile<64x192xi8>
  %b = pk.cast %w : !pk.tile<64x192xi8> -> !pk.tile<64x192xbf16>
  %p = pk.mma %x, %b, %zero : !pk.tile<64x64xbf16>, !pk.tile<64x192xbf16> -> !pk.tile<64x192xf32>
  pk.store %p, %Y[%m, %n : !pk.block<M by 64>, !pk.block<N by 192>] : !pk.tile<64x192xf32>, !pk.private<[M, N], f32>
}

// -----

// CHECK-LABEL: pk.kernel @three
// CHECK: pk.mma {{.*}} -> !pk.tile<192x64xf32>
// CHECK-NOT: remark
pk.kernel @three(%X: !pk.private<[M, K], bf16> {pk.name = "X"}, %W: !pk.private<[K, N], i8> {pk.name = "W"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}) attributes {schedule = {consumers = 3 : i64}} {
  %0 = arith.constant 0 : index
  %m = pk.block[%0] : !pk.block<M by 64>
  %n = pk.block[%0] : !pk.block<N by 192>
  %k = pk.block[%0] : !pk.block<K by 64>
  %zero = pk.full 0.000000e+00 : f32 : !pk.tile<64x192xf32>
  %x = pk.load %X[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<64x64xbf16>
  %w = pk.load %W[%k, %n : !pk.block<K by 64>, !pk.block<N by 192>] : !pk.private<[K, N], i8> -> !pk.tile<64x192xi8>
  %b = pk.cast %w : !pk.tile<64x192xi8> -> !pk.tile<64x192xbf16>
  %p = pk.mma %x, %b, %zero : !pk.tile<64x64xbf16>, !pk.tile<64x192xbf16> -> !pk.tile<64x192xf32>
  pk.store %p, %Y[%m, %n : !pk.block<M by 64>, !pk.block<N by 192>] : !pk.tile<64x192xf32>, !pk.private<[M, N], f32>
}

// -----

// Fewer rows than an MMA may have columns.
// CHECK-LABEL: pk.kernel @low
// CHECK: // remark: {{.*}}pk.mma: its right operand goes through shared memory: blocks of 4 rows are no multiple of 8
pk.kernel @low(%X: !pk.private<[M, K], bf16> {pk.name = "X"}, %W: !pk.private<[K, N], i8> {pk.name = "W"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}) {
  %0 = arith.constant 0 : index
  %m = pk.block[%0] : !pk.block<M by 4>
  %n = pk.block[%0] : !pk.block<N by 64>
  %k = pk.block[%0] : !pk.block<K by 64>
  %zero = pk.full 0.000000e+00 : f32 : !pk.tile<4x64xf32>
  %x = pk.load %X[%m, %k : !pk.block<M by 4>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<4x64xbf16>
  %w = pk.load %W[%k, %n : !pk.block<K by 64>, !pk.block<N by 64>] : !pk.private<[K, N], i8> -> !pk.tile<64x64xi8>
  %b = pk.cast %w : !pk.tile<64x64xi8> -> !pk.tile<64x64xbf16>
  %p = pk.mma %x, %b, %zero : !pk.tile<4x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<4x64xf32>
  pk.store %p, %Y[%m, %n : !pk.block<M by 4>, !pk.block<N by 64>] : !pk.tile<4x64xf32>, !pk.private<[M, N], f32>
}

// -----

// The transpose of a result is needed, and of what is computed from that the result itself.
// CHECK-LABEL: pk.kernel @back
// CHECK: pk.mma %x, %b, %zero
// CHECK: // remark: {{.*}}pk.mma: its right operand goes through shared memory: its result is needed both as it is and transposed
pk.kernel @back(%X: !pk.private<[64, K], bf16> {pk.name = "X"}, %W: !pk.private<[K, 64], i8> {pk.name = "W"}, %Y: !pk.private<[64, 64], f32> {pk.name = "Y"}) {
  %0 = arith.constant 0 : index
  %m = pk.block[%0] : !pk.block<64 by 64>
  %k = pk.block[%0] : !pk.block<K by 64>
  %zero = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
  %x = pk.load %X[%m, %k : !pk.block<64 by 64>, !pk.block<K by 64>] : !pk.private<[64, K], bf16> -> !pk.tile<64x64xbf16>
  %w = pk.load %W[%k, %m : !pk.block<K by 64>, !pk.block<64 by 64>] : !pk.private<[K, 64], i8> -> !pk.tile<64x64xi8>
  %b = pk.cast %w : !pk.tile<64x64xi8> -> !pk.tile<64x64xbf16>
  %p = pk.mma %x, %b, %zero : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
  %t = pk.transpose %p : !pk.tile<64x64xf32> -> !pk.tile<64x64xf32>
  %e = pk.exp %t : !pk.tile<64x64xf32>
  %q = pk.add %p, %e : !pk.tile<64x64xf32>
  pk.store %q, %Y[%m, %m : !pk.block<64 by 64>, !pk.block<64 by 64>] : !pk.tile<64x64xf32>, !pk.private<[64, 64], f32>
}

// -----

// Threads read columns of what the operand is computed from, each 8 of them.
// CHECK-LABEL: pk.kernel @folded
// CHECK: pk.mma %x, %b, %zero
// CHECK: // remark: {{.*}}pk.mma: its right operand goes through shared memory: columns of what it is computed from are folded beside it
pk.kernel @folded(%X: !pk.private<[M, K], bf16> {pk.name = "X"}, %W: !pk.private<[K, N], i8> {pk.name = "W"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}, %S: !pk.private<[N], f32> {pk.name = "S"}) {
  %0 = arith.constant 0 : index
  %m = pk.block[%0] : !pk.block<M by 64>
  %n = pk.block[%0] : !pk.block<N by 64>
  %k = pk.block[%0] : !pk.block<K by 64>
  %zero = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
  %x = pk.load %X[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<64x64xbf16>
  %w = pk.load %W[%k, %n : !pk.block<K by 64>, !pk.block<N by 64>] : !pk.private<[K, N], i8> -> !pk.tile<64x64xi8>
  %b = pk.cast %w : !pk.tile<64x64xi8> -> !pk.tile<64x64xbf16>
  %p = pk.mma %x, %b, %zero : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
  pk.store %p, %Y[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.tile<64x64xf32>, !pk.private<[M, N], f32>
  %t = pk.transpose %w : !pk.tile<64x64xi8> -> !pk.tile<64x64xi8>
  %f = pk.cast %t : !pk.tile<64x64xi8> -> !pk.tile<64x64xf32>
  %fold = pk.fold "pk.row_sum" %f : !pk.tile<64x64xf32> -> !pk.tile<64x32xf32>
  %s = pk.row_sum %fold : !pk.tile<64x32xf32> -> !pk.tile<64xf32>
  pk.store %s, %S[%n : !pk.block<N by 64>] : !pk.tile<64xf32>, !pk.private<[N], f32>
}
