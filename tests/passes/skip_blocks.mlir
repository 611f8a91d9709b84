// RUN: pkc-opt %s -p pk-skip-blocks,pk-dce --remarks | filecheck %s

// Blocks from the first one on that begins behind the last position of %q: (8 - %first) / 8 rounded up are visited.
// CHECK-LABEL: pk.kernel @beyond
// CHECK:       %[[MINUS:.*]] = arith.constant -8 : index
// CHECK-NEXT:  %[[FIRST:.*]] = pk.block_position %kv
// CHECK-NEXT:  %[[BEGUN:.*]] = arith.addi %[[MINUS]], %[[FIRST]]
// CHECK-NEXT:  %[[Q:.*]] = pk.block_position %q
// CHECK-NEXT:  %[[REST:.*]] = arith.subi %[[BEGUN]], %[[Q]]
// CHECK:       %[[OVER:.*]] = arith.floordivsi %[[REST]], %{{.*}}
// CHECK-NEXT:  %[[NEEDED:.*]] = arith.subi %{{.*}}, %[[OVER]]
// CHECK-NEXT:  %[[BOUND:.*]] = pk.visited %[[NEEDED]] of %n
// CHECK-NEXT:  scf.for %j = %i to %[[BOUND]] step
pk.kernel @beyond(%A: !pk.private<[N, 16], bf16> {pk.name = "A"}, %T: !pk.private<[N], f32> {pk.name = "T"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <N by 8>
  %d16 = pk.block[%i] : !pk.block<16 by 16>
  %q = pk.block[%i] : !pk.block<N by 8>
  %x = pk.load %A[%q, %d16 : !pk.block<N by 8>, !pk.block<16 by 16>] : !pk.private<[N, 16], bf16> -> !pk.tile<8x16xbf16>
  %z = pk.full 0.0 : f32 : !pk.tile<8x8xf32>
  %none = pk.full 0xff800000 : f32 : !pk.tile<8x8xf32>
  %top = pk.full 0xff800000 : f32 : !pk.tile<8xf32>
  %t = scf.for %j = %i to %n step %one iter_args(%u = %top) -> (!pk.tile<8xf32>) {
  %kv = pk.block[%j] : !pk.block<N by 8>
  %y = pk.load %A[%kv, %d16 : !pk.block<N by 8>, !pk.block<16 by 16>] : !pk.private<[N, 16], bf16> -> !pk.tile<8x16xbf16>
  %yt = pk.transpose %y : !pk.tile<8x16xbf16> -> !pk.tile<16x8xbf16>
  %s = pk.mma %x, %yt, %z : !pk.tile<8x16xbf16>, !pk.tile<16x8xbf16> -> !pk.tile<8x8xf32>
  %qs = pk.positions %q : !pk.block<N by 8> -> !pk.tile<8xi32>
  %ks = pk.positions %kv : !pk.block<N by 8> -> !pk.tile<8xi32>
  %qr = pk.broadcast %qs axes [0] : !pk.tile<8xi32> -> !pk.tile<8x8xi32>
  %kr = pk.broadcast %ks axes [1] : !pk.tile<8xi32> -> !pk.tile<8x8xi32>
  %b = pk.compare ge, %qr, %kr : !pk.tile<8x8xi32> -> !pk.tile<8x8xi1>
  %m = pk.select %b, %s, %none : !pk.tile<8x8xi1>, !pk.tile<8x8xf32>
  %h = pk.row_max %m : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  %v = pk.max %u, %h : !pk.tile<8xf32>
  scf.yield %v : !pk.tile<8xf32>
  }
  pk.store %t, %T[%q : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
}

// In zigzag order positions ascend within a shard: of its blocks the first ones are visited.
// CHECK-LABEL: pk.kernel @folded
// CHECK:       %[[END:.*]] = pk.zigzag_position last %q
// CHECK:       %[[REST:.*]] = arith.subi %{{.*}}, %[[END]]
// CHECK:       %[[OVER:.*]] = arith.floordivsi %[[REST]], %{{.*}}
// CHECK-NEXT:  %[[LIMIT:.*]] = arith.subi %{{.*}}, %[[OVER]]
// CHECK-NEXT:  %[[NEEDED:.*]] = pk.zigzag_count <N by 8> of %peer before %[[LIMIT]]
// CHECK-NEXT:  %[[BOUND:.*]] = pk.visited %[[NEEDED]] of %n
// CHECK-NEXT:  scf.for %j = %i to %[[BOUND]] step
pk.kernel @folded(%A: !pk.pgl<[N, 16], bf16, shard 0 zigzag> {pk.name = "A"}, %T: !pk.pgl<[N], f32, shard 0 zigzag> {pk.name = "T"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rank = pk.rank
  %peer = pk.ring_peer %one
  %n = pk.block_count <N by 8> of %peer
  %d16 = pk.block[%i] : !pk.block<16 by 16>
  %q = pk.block[%i] of %rank : !pk.block<N by 8>
  %x = pk.load %A[%q, %d16 : !pk.block<N by 8>, !pk.block<16 by 16>] : !pk.pgl<[N, 16], bf16, shard 0 zigzag> -> !pk.tile<8x16xbf16>
  %z = pk.full 0.0 : f32 : !pk.tile<8x8xf32>
  %none = pk.full 0xff800000 : f32 : !pk.tile<8x8xf32>
  %top = pk.full 0xff800000 : f32 : !pk.tile<8xf32>
  %t = scf.for %j = %i to %n step %one iter_args(%u = %top) -> (!pk.tile<8xf32>) {
  %kv = pk.block[%j] of %peer : !pk.block<N by 8>
  %y = pk.load %A[%kv, %d16 : !pk.block<N by 8>, !pk.block<16 by 16>] : !pk.pgl<[N, 16], bf16, shard 0 zigzag> -> !pk.tile<8x16xbf16>
  %yt = pk.transpose %y : !pk.tile<8x16xbf16> -> !pk.tile<16x8xbf16>
  %s = pk.mma %x, %yt, %z : !pk.tile<8x16xbf16>, !pk.tile<16x8xbf16> -> !pk.tile<8x8xf32>
  %low = pk.zigzag_position %kv : !pk.block<N by 8>
  %last = pk.zigzag_position last %kv : !pk.block<N by 8>
  %gap = pk.zigzag_gap %kv : !pk.block<N by 8>
  %first = pk.zigzag_position %q : !pk.block<N by 8>
  %end = pk.zigzag_position last %q : !pk.block<N by 8>
  %hole = pk.zigzag_gap %q : !pk.block<N by 8>
  %qs = pk.positions %q zigzag %first, %end, %hole : !pk.block<N by 8> -> !pk.tile<8xi32>
  %ks = pk.positions %kv zigzag %low, %last, %gap : !pk.block<N by 8> -> !pk.tile<8xi32>
  %qr = pk.broadcast %qs axes [0] : !pk.tile<8xi32> -> !pk.tile<8x8xi32>
  %kr = pk.broadcast %ks axes [1] : !pk.tile<8xi32> -> !pk.tile<8x8xi32>
  %b = pk.compare ge, %qr, %kr : !pk.tile<8x8xi32> -> !pk.tile<8x8xi1>
  %m = pk.select %b, %s, %none : !pk.tile<8x8xi1>, !pk.tile<8x8xf32>
  %h = pk.row_max %m : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  %v = pk.max %u, %h : !pk.tile<8xf32>
  scf.yield %v : !pk.tile<8xf32>
  }
  pk.store %t, %T[%q : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.pgl<[N], f32, shard 0 zigzag>
}

// Blocks in front of a window, by the other operand of the choice; arrays of this rank alone.
// CHECK-LABEL: pk.kernel @in_front
// CHECK:       %[[OVER:.*]] = arith.floordivsi
// CHECK-NEXT:  %[[AFTER:.*]] = arith.addi %[[OVER]]
// CHECK-NEXT:  %[[FIRST:.*]] = pk.first_visited %[[AFTER]] from %i
// CHECK-NEXT:  scf.for %j = %[[FIRST]] to %n step
pk.kernel @in_front(%A: !pk.private<[N, 16], bf16> {pk.name = "A"}, %T: !pk.private<[N], f32> {pk.name = "T"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <N by 8>
  %d16 = pk.block[%i] : !pk.block<16 by 16>
  %q = pk.block[%i] : !pk.block<N by 8>
  %x = pk.load %A[%q, %d16 : !pk.block<N by 8>, !pk.block<16 by 16>] : !pk.private<[N, 16], bf16> -> !pk.tile<8x16xbf16>
  %z = pk.full 0.0 : f32 : !pk.tile<8x8xf32>
  %none = pk.full 0xff800000 : f32 : !pk.tile<8x8xf32>
  %top = pk.full 0xff800000 : f32 : !pk.tile<8xf32>
  %t = scf.for %j = %i to %n step %one iter_args(%u = %top) -> (!pk.tile<8xf32>) {
  %kv = pk.block[%j] : !pk.block<N by 8>
  %y = pk.load %A[%kv, %d16 : !pk.block<N by 8>, !pk.block<16 by 16>] : !pk.private<[N, 16], bf16> -> !pk.tile<8x16xbf16>
  %yt = pk.transpose %y : !pk.tile<8x16xbf16> -> !pk.tile<16x8xbf16>
  %s = pk.mma %x, %yt, %z : !pk.tile<8x16xbf16>, !pk.tile<16x8xbf16> -> !pk.tile<8x8xf32>
  %qs = pk.positions %q : !pk.block<N by 8> -> !pk.tile<8xi32>
  %ks = pk.positions %kv : !pk.block<N by 8> -> !pk.tile<8xi32>
  %qr = pk.broadcast %qs axes [0] : !pk.tile<8xi32> -> !pk.tile<8x8xi32>
  %kr = pk.broadcast %ks axes [1] : !pk.tile<8xi32> -> !pk.tile<8x8xi32>
  %d = pk.sub %qr, %kr : !pk.tile<8x8xi32>
  %w = pk.full 100 : i32 : !pk.tile<8x8xi32>
  %b = pk.compare ge, %d, %w : !pk.tile<8x8xi32> -> !pk.tile<8x8xi1>
  %m = pk.select %b, %none, %s : !pk.tile<8x8xi1>, !pk.tile<8x8xf32>
  %h = pk.row_max %m : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  %v = pk.max %u, %h : !pk.tile<8xf32>
  scf.yield %v : !pk.tile<8xf32>
  }
  pk.store %t, %T[%q : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
}

// What is counted changes with each block, masked or not: where all was -inf so far, the maximum is -inf again.
// CHECK-LABEL: pk.kernel @counted
// CHECK-NOT:   pk.visited
// CHECK:       scf.for %j = %i to %n step
pk.kernel @counted(%A: !pk.private<[N, 16], bf16> {pk.name = "A"}, %T: !pk.private<[N], f32> {pk.name = "T"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <N by 8>
  %d16 = pk.block[%i] : !pk.block<16 by 16>
  %q = pk.block[%i] : !pk.block<N by 8>
  %x = pk.load %A[%q, %d16 : !pk.block<N by 8>, !pk.block<16 by 16>] : !pk.private<[N, 16], bf16> -> !pk.tile<8x16xbf16>
  %z = pk.full 0.0 : f32 : !pk.tile<8x8xf32>
  %none = pk.full 0xff800000 : f32 : !pk.tile<8x8xf32>
  %top = pk.full 0xff800000 : f32 : !pk.tile<8xf32>
  %t = scf.for %j = %i to %n step %one iter_args(%u = %top) -> (!pk.tile<8xf32>) {
  %kv = pk.block[%j] : !pk.block<N by 8>
  %y = pk.load %A[%kv, %d16 : !pk.block<N by 8>, !pk.block<16 by 16>] : !pk.private<[N, 16], bf16> -> !pk.tile<8x16xbf16>
  %yt = pk.transpose %y : !pk.tile<8x16xbf16> -> !pk.tile<16x8xbf16>
  %s = pk.mma %x, %yt, %z : !pk.tile<8x16xbf16>, !pk.tile<16x8xbf16> -> !pk.tile<8x8xf32>
  %qs = pk.positions %q : !pk.block<N by 8> -> !pk.tile<8xi32>
  %ks = pk.positions %kv : !pk.block<N by 8> -> !pk.tile<8xi32>
  %qr = pk.broadcast %qs axes [0] : !pk.tile<8xi32> -> !pk.tile<8x8xi32>
  %kr = pk.broadcast %ks axes [1] : !pk.tile<8xi32> -> !pk.tile<8x8xi32>
  %b = pk.compare ge, %qr, %kr : !pk.tile<8x8xi32> -> !pk.tile<8x8xi1>
  %m = pk.select %b, %s, %none : !pk.tile<8x8xi1>, !pk.tile<8x8xf32>
  %h = pk.row_max %m : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  %low = pk.full 0xff800000 : f32 : !pk.tile<8xf32>
  %is = pk.compare eq, %u, %low : !pk.tile<8xf32> -> !pk.tile<8xi1>
  %zero = pk.full 0.0 : f32 : !pk.tile<8xf32>
  %k = pk.select %is, %zero, %u : !pk.tile<8xi1>, !pk.tile<8xf32>
  %v = pk.max %k, %h : !pk.tile<8xf32>
  scf.yield %v : !pk.tile<8xf32>
  }
  pk.store %t, %T[%q : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
}

// A column's maxima are not those of a row: a sum over the rows of what is carried may be anything.
// CHECK-LABEL: pk.kernel @rows_differ
// CHECK-NOT:   pk.visited
// CHECK:       scf.for %j = %i to %n step
pk.kernel @rows_differ(%A: !pk.private<[N, 16], bf16> {pk.name = "A"}, %T: !pk.private<[N], f32> {pk.name = "T"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <N by 8>
  %d16 = pk.block[%i] : !pk.block<16 by 16>
  %q = pk.block[%i] : !pk.block<N by 8>
  %x = pk.load %A[%q, %d16 : !pk.block<N by 8>, !pk.block<16 by 16>] : !pk.private<[N, 16], bf16> -> !pk.tile<8x16xbf16>
  %z = pk.full 0.0 : f32 : !pk.tile<8x8xf32>
  %none = pk.full 0xff800000 : f32 : !pk.tile<8x8xf32>
  %top = pk.full 0xff800000 : f32 : !pk.tile<8xf32>
  %t = scf.for %j = %i to %n step %one iter_args(%u = %top) -> (!pk.tile<8xf32>) {
  %kv = pk.block[%j] : !pk.block<N by 8>
  %y = pk.load %A[%kv, %d16 : !pk.block<N by 8>, !pk.block<16 by 16>] : !pk.private<[N, 16], bf16> -> !pk.tile<8x16xbf16>
  %yt = pk.transpose %y : !pk.tile<8x16xbf16> -> !pk.tile<16x8xbf16>
  %s = pk.mma %x, %yt, %z : !pk.tile<8x16xbf16>, !pk.tile<16x8xbf16> -> !pk.tile<8x8xf32>
  %qs = pk.positions %q : !pk.block<N by 8> -> !pk.tile<8xi32>
  %ks = pk.positions %kv : !pk.block<N by 8> -> !pk.tile<8xi32>
  %qr = pk.broadcast %qs axes [0] : !pk.tile<8xi32> -> !pk.tile<8x8xi32>
  %kr = pk.broadcast %ks axes [1] : !pk.tile<8xi32> -> !pk.tile<8x8xi32>
  %b = pk.compare ge, %qr, %kr : !pk.tile<8x8xi32> -> !pk.tile<8x8xi1>
  %m = pk.select %b, %s, %none : !pk.tile<8x8xi1>, !pk.tile<8x8xf32>
  %c = pk.broadcast %u axes [1] : !pk.tile<8xf32> -> !pk.tile<8x8xf32>
  %cm = pk.max %c, %m : !pk.tile<8x8xf32>
  %h = pk.row_max %cm : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  %v = pk.max %u, %h : !pk.tile<8xf32>
  scf.yield %v : !pk.tile<8xf32>
  }
  pk.store %t, %T[%q : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
}

// What masked blocks add to an array, with any number taken off scores and any factor, is zero or NaN: they are left
// out. What a load gives is not.
// CHECK-LABEL: pk.kernel @added
// CHECK:       %[[LOWER:.*]] = pk.first_visited %{{.*}} from %i
// CHECK:       scf.for %j = %[[LOWER]] to %n step
// CHECK:       scf.for %u = %i to %n step
pk.kernel @added(%A: !pk.private<[N, 16], bf16> {pk.name = "A"}, %L: !pk.private<[N], f32> {pk.name = "L"}, %C: !pk.private<[N, 16], f32> {pk.name = "C"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <N by 8>
  %d16 = pk.block[%i] : !pk.block<16 by 16>
  %kv = pk.block[%one] : !pk.block<N by 8>
  %x = pk.load %A[%kv, %d16 : !pk.block<N by 8>, !pk.block<16 by 16>] : !pk.private<[N, 16], bf16> -> !pk.tile<8x16xbf16>
  %z = pk.full 0.0 : f32 : !pk.tile<8x8xf32>
  %o = pk.full 0.0 : f32 : !pk.tile<8x16xf32>
  %none = pk.full 0xff800000 : f32 : !pk.tile<8x8xf32>
  scf.for %j = %i to %n step %one {
  %q = pk.block[%j] : !pk.block<N by 8>
  %y = pk.load %A[%q, %d16 : !pk.block<N by 8>, !pk.block<16 by 16>] : !pk.private<[N, 16], bf16> -> !pk.tile<8x16xbf16>
  %yt = pk.transpose %y : !pk.tile<8x16xbf16> -> !pk.tile<16x8xbf16>
  %s = pk.mma %x, %yt, %z : !pk.tile<8x16xbf16>, !pk.tile<16x8xbf16> -> !pk.tile<8x8xf32>
  %qs = pk.positions %q : !pk.block<N by 8> -> !pk.tile<8xi32>
  %ks = pk.positions %kv : !pk.block<N by 8> -> !pk.tile<8xi32>
  %qr = pk.broadcast %qs axes [1] : !pk.tile<8xi32> -> !pk.tile<8x8xi32>
  %kr = pk.broadcast %ks axes [0] : !pk.tile<8xi32> -> !pk.tile<8x8xi32>
  %b = pk.compare le, %kr, %qr : !pk.tile<8x8xi32> -> !pk.tile<8x8xi1>
  %m = pk.select %b, %s, %none : !pk.tile<8x8xi1>, !pk.tile<8x8xf32>
  %l = pk.load %L[%q : !pk.block<N by 8>] : !pk.private<[N], f32> -> !pk.tile<8xf32>
  %lr = pk.broadcast %l axes [1] : !pk.tile<8xf32> -> !pk.tile<8x8xf32>
  %d = pk.sub %m, %lr : !pk.tile<8x8xf32>
  %p = pk.exp2 %d : !pk.tile<8x8xf32>
  %e = pk.mul %p, %lr : !pk.tile<8x8xf32>
  %h = pk.cast %e : !pk.tile<8x8xf32> -> !pk.tile<8x8xbf16>
  %t = pk.transpose %h : !pk.tile<8x8xbf16> -> !pk.tile<8x8xbf16>
  %c = pk.mma %t, %x, %o : !pk.tile<8x8xbf16>, !pk.tile<8x16xbf16> -> !pk.tile<8x16xf32>
  pk.store_add %c, %C[%q, %d16 : !pk.block<N by 8>, !pk.block<16 by 16>] : !pk.tile<8x16xf32>, !pk.private<[N, 16], f32>
  }
  scf.for %u = %i to %n step %one {
  %q = pk.block[%u] : !pk.block<N by 8>
  %y = pk.load %A[%q, %d16 : !pk.block<N by 8>, !pk.block<16 by 16>] : !pk.private<[N, 16], bf16> -> !pk.tile<8x16xbf16>
  %yt = pk.transpose %y : !pk.tile<8x16xbf16> -> !pk.tile<16x8xbf16>
  %s = pk.mma %x, %yt, %z : !pk.tile<8x16xbf16>, !pk.tile<16x8xbf16> -> !pk.tile<8x8xf32>
  %qs = pk.positions %q : !pk.block<N by 8> -> !pk.tile<8xi32>
  %ks = pk.positions %kv : !pk.block<N by 8> -> !pk.tile<8xi32>
  %qr = pk.broadcast %qs axes [1] : !pk.tile<8xi32> -> !pk.tile<8x8xi32>
  %kr = pk.broadcast %ks axes [0] : !pk.tile<8xi32> -> !pk.tile<8x8xi32>
  %b = pk.compare le, %kr, %qr : !pk.tile<8x8xi32> -> !pk.tile<8x8xi1>
  %m = pk.select %b, %s, %none : !pk.tile<8x8xi1>, !pk.tile<8x8xf32>
  %p = pk.exp2 %m : !pk.tile<8x8xf32>
  %h = pk.cast %p : !pk.tile<8x8xf32> -> !pk.tile<8x8xbf16>
  %w = pk.mma %h, %y, %o : !pk.tile<8x8xbf16>, !pk.tile<8x16xbf16> -> !pk.tile<8x16xf32>
  %f = pk.cast %y : !pk.tile<8x16xbf16> -> !pk.tile<8x16xf32>
  %g = pk.add %w, %f : !pk.tile<8x16xf32>
  pk.store_add %g, %C[%q, %d16 : !pk.block<N by 8>, !pk.block<16 by 16>] : !pk.tile<8x16xf32>, !pk.private<[N, 16], f32>
  }
}

// Of a list that goes over the boundaries of shards, where blocks may be shorter, positions say how many.
// CHECK-LABEL: pk.kernel @across
// CHECK:       %[[NEEDED:.*]] = pk.sharded_count <N by 8> before %{{.*}}
// CHECK-NEXT:  %[[BOUND:.*]] = pk.visited %[[NEEDED]] of %n
// CHECK-NEXT:  scf.for %j = %i to %[[BOUND]] step
pk.kernel @across(%A: !pk.pgl<[N, 16], bf16, shard 0> {pk.name = "A"}, %T: !pk.pgl<[N], f32, shard 0> {pk.name = "T"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <N by 8> sharded
  %d16 = pk.block[%i] : !pk.block<16 by 16>
  %q = pk.block[%i] sharded : !pk.block<N by 8>
  %x = pk.load %A[%q, %d16 : !pk.block<N by 8>, !pk.block<16 by 16>] : !pk.pgl<[N, 16], bf16, shard 0> -> !pk.tile<8x16xbf16>
  %z = pk.full 0.0 : f32 : !pk.tile<8x8xf32>
  %none = pk.full 0xff800000 : f32 : !pk.tile<8x8xf32>
  %top = pk.full 0xff800000 : f32 : !pk.tile<8xf32>
  %t = scf.for %j = %i to %n step %one iter_args(%u = %top) -> (!pk.tile<8xf32>) {
  %kv = pk.block[%j] sharded : !pk.block<N by 8>
  %y = pk.load %A[%kv, %d16 : !pk.block<N by 8>, !pk.block<16 by 16>] : !pk.pgl<[N, 16], bf16, shard 0> -> !pk.tile<8x16xbf16>
  %yt = pk.transpose %y : !pk.tile<8x16xbf16> -> !pk.tile<16x8xbf16>
  %s = pk.mma %x, %yt, %z : !pk.tile<8x16xbf16>, !pk.tile<16x8xbf16> -> !pk.tile<8x8xf32>
  %qs = pk.positions %q : !pk.block<N by 8> -> !pk.tile<8xi32>
  %ks = pk.positions %kv : !pk.block<N by 8> -> !pk.tile<8xi32>
  %qr = pk.broadcast %qs axes [0] : !pk.tile<8xi32> -> !pk.tile<8x8xi32>
  %kr = pk.broadcast %ks axes [1] : !pk.tile<8xi32> -> !pk.tile<8x8xi32>
  %b = pk.compare ge, %qr, %kr : !pk.tile<8x8xi32> -> !pk.tile<8x8xi1>
  %m = pk.select %b, %s, %none : !pk.tile<8x8xi1>, !pk.tile<8x8xf32>
  %h = pk.row_max %m : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  %v = pk.max %u, %h : !pk.tile<8xf32>
  scf.yield %v : !pk.tile<8xf32>
  }
  pk.store %t, %T[%q : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.pgl<[N], f32, shard 0>
}

// Of half the position of a block it is not known in which iteration it comes to a limit.
// CHECK-LABEL: pk.kernel @half
// CHECK:       scf.for %j = %i to %n step
pk.kernel @half(%A: !pk.private<[N, 8], f32> {pk.name = "A"}, %T: !pk.private<[N], f32> {pk.name = "T"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %n = pk.block_count <N by 8>
  %d = pk.block[%i] : !pk.block<8 by 8>
  %q = pk.block[%i] : !pk.block<N by 8>
  %none = pk.full 0xff800000 : f32 : !pk.tile<8x8xf32>
  %top = pk.full 0xff800000 : f32 : !pk.tile<8xf32>
  %qs = pk.positions %q : !pk.block<N by 8> -> !pk.tile<8xi32>
  %qr = pk.broadcast %qs axes [0] : !pk.tile<8xi32> -> !pk.tile<8x8xi32>
  %t = scf.for %j = %i to %n step %one iter_args(%u = %top) -> (!pk.tile<8xf32>) {
    %kv = pk.block[%j] : !pk.block<N by 8>
    %x = pk.load %A[%kv, %d : !pk.block<N by 8>, !pk.block<8 by 8>] : !pk.private<[N, 8], f32> -> !pk.tile<8x8xf32>
    %begin = pk.block_position %kv : !pk.block<N by 8>
    %middle = arith.floordivsi %begin, %two : index
    %limit = pk.splat %middle : index -> !pk.tile<8x8xi32>
    %b = pk.compare ge, %qr, %limit : !pk.tile<8x8xi32> -> !pk.tile<8x8xi1>
    %m = pk.select %b, %x, %none : !pk.tile<8x8xi1>, !pk.tile<8x8xf32>
    %h = pk.row_max %m : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
    %v = pk.max %u, %h : !pk.tile<8xf32>
    scf.yield %v : !pk.tile<8xf32>
  }
  pk.store %t, %T[%q : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
}

// Nothing is said of a loop that goes over no blocks.
// CHECK-LABEL: pk.kernel @rounds
pk.kernel @rounds(%A: !pk.private<[M, 8], f32> {pk.name = "A"}, %T: !pk.private<[M, 8], f32> {pk.name = "T"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 8 : index
  %q = pk.block[%i] : !pk.block<M by 8>
  %d = pk.block[%i] : !pk.block<8 by 8>
  %x = pk.load %A[%q, %d : !pk.block<M by 8>, !pk.block<8 by 8>] : !pk.private<[M, 8], f32> -> !pk.tile<8x8xf32>
  %ds = pk.positions %d : !pk.block<8 by 8> -> !pk.tile<8xi32>
  %dr = pk.broadcast %ds axes [1] : !pk.tile<8xi32> -> !pk.tile<8x8xi32>
  %t = scf.for %j = %i to %n step %one iter_args(%u = %x) -> (!pk.tile<8x8xf32>) {
    %js = pk.splat %j : index -> !pk.tile<8x8xi32>
    %b = pk.compare eq, %dr, %js : !pk.tile<8x8xi32> -> !pk.tile<8x8xi1>
    %h = pk.exp %u : !pk.tile<8x8xf32>
    %v = pk.select %b, %h, %u : !pk.tile<8x8xi1>, !pk.tile<8x8xf32>
    %w = pk.add %v, %h : !pk.tile<8x8xf32>
    scf.yield %w : !pk.tile<8x8xf32>
  }
  pk.store %t, %T[%q, %d : !pk.block<M by 8>, !pk.block<8 by 8>] : !pk.tile<8x8xf32>, !pk.private<[M, 8], f32>
}

// CHECK:       remark: {{.*}}pk.select: blocks that are masked as a whole are visited: it is not sure that they change nothing [pk-skip-blocks]
// CHECK:       remark: {{.*}}pk.select: blocks that are masked as a whole are visited: the mask does not go from block to block in equal steps [pk-skip-blocks]
// CHECK-NOT:   pk-skip-blocks
