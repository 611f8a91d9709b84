// RUN: pkc-opt %s -p pk-join-dimensions --remarks | filecheck %s

// Both of each pair are loaded, and both stored: pairs move together. A single place is one of the joined dimension.
// CHECK-LABEL: pk.kernel @pairs(%X: !pk.private<[M, 128], bf16> {pk.name = "X", pk.joined = 2 : i64}, %Y: !pk.private<[M, 128], bf16> {pk.name = "Y", pk.joined = 2 : i64}
// CHECK:       %[[BOTH:.*]] = pk.block[%i] : !pk.block<128 by 64>
// CHECK-NEXT:  %[[X:.*]] = pk.load %X[%m, %[[BOTH]] : !pk.block<M by 8>, !pk.block<128 by 64>]
// CHECK-NEXT:  %a = pk.pick %[[X]] at 0 of 2 : !pk.tile<8x64xbf16> -> !pk.tile<8x32xbf16>
// CHECK-NEXT:  %b = pk.pick %[[X]] at 1 of 2 : !pk.tile<8x64xbf16> -> !pk.tile<8x32xbf16>
// CHECK-NEXT:  %[[AT:.*]] = arith.constant 3 : index
// CHECK-NEXT:  %single = pk.load %X[%m, %[[AT]] : !pk.block<M by 8>, index]
// CHECK:       %[[ZIP:.*]] = pk.zip %b, %a
// CHECK-NEXT:  pk.store %[[ZIP]], %Y[%m, %{{.*}} : !pk.block<M by 8>, !pk.block<128 by 64>]
// CHECK-NOT:   pk.store {{.*}}%Y
pk.kernel @pairs(%X: !pk.private<[M, 64, 2], bf16> {pk.name = "X"}, %Y: !pk.private<[M, 64, 2], bf16> {pk.name = "Y"}, %Z: !pk.private<[M], bf16> {pk.name = "Z"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %m = pk.block[%i] : !pk.block<M by 8>
  %n = pk.block[%i] : !pk.block<64 by 32>
  %a = pk.load %X[%m, %n, %i : !pk.block<M by 8>, !pk.block<64 by 32>, index] : !pk.private<[M, 64, 2], bf16> -> !pk.tile<8x32xbf16>
  %b = pk.load %X[%m, %n, %one : !pk.block<M by 8>, !pk.block<64 by 32>, index] : !pk.private<[M, 64, 2], bf16> -> !pk.tile<8x32xbf16>
  %single = pk.load %X[%m, %one, %one : !pk.block<M by 8>, index, index] : !pk.private<[M, 64, 2], bf16> -> !pk.tile<8xbf16>
  pk.store %a, %Y[%m, %n, %one : !pk.block<M by 8>, !pk.block<64 by 32>, index] : !pk.tile<8x32xbf16>, !pk.private<[M, 64, 2], bf16>
  pk.store %single, %Z[%m : !pk.block<M by 8>] : !pk.tile<8xbf16>, !pk.private<[M], bf16>
  pk.store %b, %Y[%m, %n, %i : !pk.block<M by 8>, !pk.block<64 by 32>, index] : !pk.tile<8x32xbf16>, !pk.private<[M, 64, 2], bf16>
}

// What lies between is loaded with one of two, if all is little.
// CHECK-LABEL: pk.kernel @some
// CHECK:       pk.load %X[%{{.*}} : !pk.block<128 by 128>]
// CHECK-NEXT:  %a = pk.pick %{{.*}} at 1 of 2
pk.kernel @some(%X: !pk.private<[64, 2], f32> {pk.name = "X"}, %Y: !pk.private<[64], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block[%i] : !pk.block<64 by 64>
  %a = pk.load %X[%n, %one : !pk.block<64 by 64>, index] : !pk.private<[64, 2], f32> -> !pk.tile<64xf32>
  pk.store %a, %Y[%n : !pk.block<64 by 64>] : !pk.tile<64xf32>, !pk.private<[64], f32>
}

// A list that begins and ends somewhere does so at twice as many elements.
// CHECK-LABEL: pk.kernel @bounds
// CHECK:       %[[START:.*]] = arith.muli %from, %{{.*}} : index
// CHECK:       %[[STOP:.*]] = arith.muli %to, %{{.*}} : index
// CHECK:       pk.block[%i] from %[[START]] to %[[STOP]] : !pk.block<128 by 64>
pk.kernel @bounds(%X: !pk.private<[64, 2], f32> {pk.name = "X"}, %Y: !pk.private<[64], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %from = arith.constant 8 : index
  %to = arith.constant 60 : index
  %n = pk.block[%i] from %from to %to : !pk.block<64 by 32>
  %a = pk.load %X[%n, %i : !pk.block<64 by 32>, index] : !pk.private<[64, 2], f32> -> !pk.tile<32xf32>
  %b = pk.load %X[%n, %one : !pk.block<64 by 32>, index] : !pk.private<[64, 2], f32> -> !pk.tile<32xf32>
  %c = pk.add %a, %b : !pk.tile<32xf32>
  pk.store %c, %Y[%n : !pk.block<64 by 32>] : !pk.tile<32xf32>, !pk.private<[64], f32>
}

// One of two is loaded, of many, or stored; an array is stored to and loaded in between; a dimension is no constant; all
// of a last dimension are loaded at once; a number says which; a block begins in front of the array. Of a last dimension
// with more than a sector nothing is said.
// CHECK-LABEL: pk.kernel @kept
// CHECK-NOT:   pk.pick
// CHECK-NOT:   pk.zip
pk.kernel @kept(%A: !pk.private<[8192, 2], f32> {pk.name = "A"}, %S: !pk.private<[64, 2], f32> {pk.name = "S"}, %B: !pk.private<[64, 2], f32> {pk.name = "B"}, %C: !pk.private<[N, 2], f32> {pk.name = "C"}, %D: !pk.private<[64, 16], f32> {pk.name = "D"}, %E: !pk.private<[64, 2], f32> {pk.name = "E"}, %F: !pk.private<[64, 2], f32> {pk.name = "F"}, %G: !pk.private<[64, 2], f32> {pk.name = "G"}, %Y: !pk.private<[64, 2], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block[%i] : !pk.block<64 by 64>
  %m = pk.block[%i] : !pk.block<N by 64>
  %all = pk.block[%i] : !pk.block<2 by 2>
  %less = arith.constant -1 : index
  %front = pk.block[%i] from %less outside : !pk.block<64 by 64>
  %count = pk.block_count <N by 64>
  %long = pk.block[%i] : !pk.block<8192 by 8192>
  %few = pk.load %A[%long, %i : !pk.block<8192 by 8192>, index] : !pk.private<[8192, 2], f32> -> !pk.tile<8192xf32>
  %a = pk.full 0.0 : f32 : !pk.tile<64xf32>
  pk.store %a, %S[%n, %i : !pk.block<64 by 64>, index] : !pk.tile<64xf32>, !pk.private<[64, 2], f32>
  pk.store %a, %B[%n, %i : !pk.block<64 by 64>, index] : !pk.tile<64xf32>, !pk.private<[64, 2], f32>
  %b = pk.load %B[%one, %i : index, index] : !pk.private<[64, 2], f32> -> !pk.tile<f32>
  pk.store %a, %B[%n, %one : !pk.block<64 by 64>, index] : !pk.tile<64xf32>, !pk.private<[64, 2], f32>
  %c0 = pk.load %C[%m, %i : !pk.block<N by 64>, index] : !pk.private<[N, 2], f32> -> !pk.tile<64xf32>
  %c1 = pk.load %C[%m, %one : !pk.block<N by 64>, index] : !pk.private<[N, 2], f32> -> !pk.tile<64xf32>
  %d = pk.load %D[%n, %i : !pk.block<64 by 64>, index] : !pk.private<[64, 16], f32> -> !pk.tile<64xf32>
  %e = pk.load %E[%n, %i : !pk.block<64 by 64>, index] : !pk.private<[64, 2], f32> -> !pk.tile<64xf32>
  %both = pk.load %E[%n, %all : !pk.block<64 by 64>, !pk.block<2 by 2>] : !pk.private<[64, 2], f32> -> !pk.tile<64x2xf32>
  %f = pk.load %F[%n, %count : !pk.block<64 by 64>, index] : !pk.private<[64, 2], f32> -> !pk.tile<64xf32>
  %f0 = pk.load %F[%n, %i : !pk.block<64 by 64>, index] : !pk.private<[64, 2], f32> -> !pk.tile<64xf32>
  %g0 = pk.load %G[%front, %i : !pk.block<64 by 64>, index] : !pk.private<[64, 2], f32> -> !pk.tile<64xf32>
  %g1 = pk.load %G[%front, %one : !pk.block<64 by 64>, index] : !pk.private<[64, 2], f32> -> !pk.tile<64xf32>
  pk.store %both, %Y[%n, %all : !pk.block<64 by 64>, !pk.block<2 by 2>] : !pk.tile<64x2xf32>, !pk.private<[64, 2], f32>
}

// A matmul reads what is loaded as it is.
// CHECK-LABEL: pk.kernel @operands
// CHECK-NOT:   pk.pick
pk.kernel @operands(%A: !pk.private<[64, 64], bf16> {pk.name = "A"}, %W: !pk.private<[64, 128, 2], bf16> {pk.name = "W"}, %Y: !pk.private<[64, 128, 2], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %m = pk.block[%i] : !pk.block<64 by 64>
  %n = pk.block[%i] : !pk.block<128 by 128>
  %k = pk.block[%i] : !pk.block<64 by 32>
  %a = pk.load %A[%m, %k : !pk.block<64 by 64>, !pk.block<64 by 32>] : !pk.private<[64, 64], bf16> -> !pk.tile<64x32xbf16>
  %g = pk.load %W[%k, %n, %i : !pk.block<64 by 32>, !pk.block<128 by 128>, index] : !pk.private<[64, 128, 2], bf16> -> !pk.tile<32x128xbf16>
  %u = pk.load %W[%k, %n, %one : !pk.block<64 by 32>, !pk.block<128 by 128>, index] : !pk.private<[64, 128, 2], bf16> -> !pk.tile<32x128xbf16>
  %zero = pk.full 0.0 : f32 : !pk.tile<64x128xf32>
  %c = pk.mma %a, %g, %zero : !pk.tile<64x32xbf16>, !pk.tile<32x128xbf16> -> !pk.tile<64x128xf32>
  %d = pk.mma %a, %u, %zero : !pk.tile<64x32xbf16>, !pk.tile<32x128xbf16> -> !pk.tile<64x128xf32>
  pk.store %c, %Y[%m, %n, %i : !pk.block<64 by 64>, !pk.block<128 by 128>, index] : !pk.tile<64x128xf32>, !pk.private<[64, 128, 2], f32>
  pk.store %d, %Y[%m, %n, %one : !pk.block<64 by 64>, !pk.block<128 by 128>, index] : !pk.tile<64x128xf32>, !pk.private<[64, 128, 2], f32>
}

// The kernel reaches other ranks.
// CHECK-LABEL: pk.kernel @remote
// CHECK-NOT:   pk.pick
// CHECK:       remark: {{.*}}pk.load: elements of `A` that do not lie side by side move one by one: not each of the 2 is loaded beside the others, and all of them take more than 32768 bytes [pk-join-dimensions]
// CHECK:       remark: {{.*}}pk.store: elements of `S` that do not lie side by side move one by one: not each of the 2 is stored once beside the others [pk-join-dimensions]
// CHECK:       remark: {{.*}}pk.store: elements of `B` that do not lie side by side move one by one: the array is accessed, or something is waited for, between those of one place [pk-join-dimensions]
// CHECK:       remark: {{.*}}pk.load: elements of `C` that do not lie side by side move one by one: dimension N is no constant [pk-join-dimensions]
// CHECK:       remark: {{.*}}pk.load: elements of `E` that do not lie side by side move one by one: other accesses are by tables, or to several of them at once [pk-join-dimensions]
// CHECK:       remark: {{.*}}pk.load: elements of `F` that do not lie side by side move one by one: the last index is no constant below 2 [pk-join-dimensions]
// CHECK:       remark: {{.*}}pk.load: elements of `G` that do not lie side by side move one by one: their blocks are those of a shard, or begin in front of the array [pk-join-dimensions]
// CHECK:       remark: {{.*}}pk.load: elements of `W` that do not lie side by side move one by one: an MMA, a transposition or a table reads them as they are loaded [pk-join-dimensions]
// CHECK:       remark: {{.*}}pk.store: elements of `Y` that do not lie side by side move one by one: beside MMAs, shared memory has no room for all of them at once [pk-join-dimensions]
// CHECK:       remark: {{.*}}pk.load: elements of `X` that do not lie side by side move one by one: the kernel reaches other ranks [pk-join-dimensions]
pk.kernel @remote(%X: !pk.private<[64, 2], f32> {pk.name = "X"}, %Y: !pk.pgl<[64], f32, symmetric> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block[%i] : !pk.block<64 by 64>
  %a = pk.load %X[%n, %i : !pk.block<64 by 64>, index] : !pk.private<[64, 2], f32> -> !pk.tile<64xf32>
  %b = pk.load %X[%n, %one : !pk.block<64 by 64>, index] : !pk.private<[64, 2], f32> -> !pk.tile<64xf32>
  %c = pk.add %a, %b : !pk.tile<64xf32>
  pk.store %c, %Y[%n : !pk.block<64 by 64>] : !pk.tile<64xf32>, !pk.pgl<[64], f32, symmetric>
}
