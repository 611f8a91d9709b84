// RUN: pkc-opt %s -p pk-split-edges --remarks | filecheck %s

// A mask of a mask is one branch; what only the masks use goes with them, and whole blocks keep their tile. So does the
// reduction that alone needs what is masked: the branch gives it, and no copy of the tile.
// CHECK-LABEL: pk.kernel @causal
// CHECK:       %s = pk.mma
// CHECK:       %[[LOW:.*]] = arith.constant -7 : index
// CHECK-NEXT:  %[[Q:.*]] = pk.block_position %q
// CHECK-NEXT:  %[[FIRST:.*]] = arith.addi %[[LOW]], %[[Q]]
// CHECK-NEXT:  %[[KV:.*]] = pk.block_position %kv
// CHECK-NEXT:  %[[ABOVE:.*]] = arith.subi %[[FIRST]], %[[KV]]
// CHECK-NEXT:  %[[HOLDS:.*]] = arith.cmpi sge, %[[ABOVE]], %{{.*}} : index
// CHECK-NEXT:  %[[WHOLE:.*]] = pk.is_whole %kv
// CHECK-NEXT:  %[[ALL:.*]] = arith.andi %[[HOLDS]], %[[WHOLE]] : i1
// CHECK-NEXT:  %h = scf.if %[[ALL]] -> (!pk.tile<8xf32>) {
// CHECK-NEXT:    %[[H:.*]] = pk.row_max %s
// CHECK-NEXT:    scf.yield %[[H]]
// CHECK-NEXT:  } else {
// CHECK-NEXT:    %qs = pk.positions %q
// CHECK-NEXT:    %ks = pk.positions %kv
// CHECK:         %b = pk.compare ge
// CHECK-NEXT:    %m = pk.select %b, %s, %none
// CHECK-NEXT:    %c = pk.clip %m
// CHECK-NEXT:    %[[M:.*]] = pk.row_max %c
// CHECK-NEXT:    scf.yield %[[M]]
// CHECK-NEXT:  }
// CHECK-NEXT:  pk.max %u, %h
pk.kernel @causal(%A: !pk.private<[N, 16], bf16> {pk.name = "A"}, %T: !pk.private<[N], f32> {pk.name = "T"}) {
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
  %c = pk.clip %m axis 1 to %kv fill 0xff800000 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
  %h = pk.row_max %c : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  %v = pk.max %u, %h : !pk.tile<8xf32>
  scf.yield %v : !pk.tile<8xf32>
  }
  pk.store %t, %T[%q : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
}

// In zigzag order a block ends where its last element is, behind the gap that it may have.
// CHECK-LABEL: pk.kernel @folded
// CHECK:       %first = pk.zigzag_position %q
// CHECK:       %[[FIRST:.*]] = arith.addi %{{.*}}, %first
// CHECK-NEXT:  %[[ABOVE:.*]] = arith.subi %[[FIRST]], %last
// CHECK-NEXT:  %[[HOLDS:.*]] = arith.cmpi sge, %[[ABOVE]], %{{.*}} : index
// CHECK-NEXT:  %h = scf.if %[[HOLDS]]
// CHECK:       } else {
// CHECK:         %ks = pk.positions %kv zigzag %low, %last, %gap
// CHECK:         pk.compare ge
// CHECK-NEXT:    %m = pk.select
pk.kernel @folded(%A: !pk.pgl<[N, 16], bf16, shard 0 zigzag> {pk.name = "A"}, %T: !pk.pgl<[N], f32, shard 0 zigzag> {pk.name = "T"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rank = pk.rank
  %n = pk.block_count <N by 8> of %rank
  %d16 = pk.block[%i] : !pk.block<16 by 16>
  %q = pk.block[%i] of %rank : !pk.block<N by 8>
  %x = pk.load %A[%q, %d16 : !pk.block<N by 8>, !pk.block<16 by 16>] : !pk.pgl<[N, 16], bf16, shard 0 zigzag> -> !pk.tile<8x16xbf16>
  %z = pk.full 0.0 : f32 : !pk.tile<8x8xf32>
  %none = pk.full 0xff800000 : f32 : !pk.tile<8x8xf32>
  %top = pk.full 0xff800000 : f32 : !pk.tile<8xf32>
  %t = scf.for %j = %i to %n step %one iter_args(%u = %top) -> (!pk.tile<8xf32>) {
  %kv = pk.block[%j] of %rank : !pk.block<N by 8>
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

// A window: both comparisons must hold for all elements. A condition on elements of arrays is no mask.
// CHECK-LABEL: pk.kernel @window
// CHECK:       %[[GE:.*]] = arith.cmpi sge
// CHECK:       arith.constant 92 : index
// CHECK:       %[[LT:.*]] = arith.cmpi sge
// CHECK-NEXT:  %[[ALL:.*]] = arith.andi %[[GE]], %[[LT]]
// CHECK-NEXT:  %m = scf.if %[[ALL]]
// CHECK:       } else {
// CHECK:         pk.and
// CHECK-NEXT:    pk.select
// CHECK:       %o = pk.compare
// CHECK-NEXT:  %r = pk.select %o
// CHECK-NOT:   scf.if
pk.kernel @window(%A: !pk.private<[N, 16], bf16> {pk.name = "A"}, %T: !pk.private<[N], f32> {pk.name = "T"}) {
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
  %d = pk.sub %qr, %kr : !pk.tile<8x8xi32>
  %w = pk.full 100 : i32 : !pk.tile<8x8xi32>
  %l = pk.compare lt, %d, %w : !pk.tile<8x8xi32> -> !pk.tile<8x8xi1>
  %a = pk.and %b, %l : !pk.tile<8x8xi1>
  %m = pk.select %a, %s, %none : !pk.tile<8x8xi1>, !pk.tile<8x8xf32>
  %o = pk.compare lt, %m, %none : !pk.tile<8x8xf32> -> !pk.tile<8x8xi1>
  %r = pk.select %o, %m, %none : !pk.tile<8x8xi1>, !pk.tile<8x8xf32>
  %h = pk.row_max %r : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  %v = pk.max %u, %h : !pk.tile<8xf32>
  scf.yield %v : !pk.tile<8xf32>
  }
  pk.store %t, %T[%q : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
}

// Of a condition with another part, that by positions is a mask of its own: whole blocks have the other one alone. One
// that chooses the constant is turned around.
// CHECK-LABEL: pk.kernel @parts
// CHECK:       %[[NOT:.*]] = pk.not %hidden : !pk.tile<8xi1>
// CHECK-NEXT:  %[[KEPT:.*]] = pk.broadcast %[[NOT]] axes [1]
// CHECK-NEXT:  %[[S:.*]] = pk.select %[[KEPT]], %s, %none
// CHECK:       %h = scf.if %{{.*}} -> (!pk.tile<8xf32>) {
// CHECK-NEXT:    %[[H:.*]] = pk.row_max %[[S]]
// CHECK-NEXT:    scf.yield %[[H]]
// CHECK-NEXT:  } else {
// CHECK:         %b = pk.compare lt, %qr, %kr
// CHECK-NEXT:    %[[A:.*]] = pk.not %b
// CHECK-NEXT:    %m = pk.select %[[A]], %[[S]], %none
// CHECK-NEXT:    %[[M:.*]] = pk.row_max %m
// CHECK-NEXT:    scf.yield %[[M]]
// CHECK-NEXT:  }
pk.kernel @parts(%A: !pk.private<[N, 16], bf16> {pk.name = "A"}, %F: !pk.private<[N], f32> {pk.name = "F"}, %T: !pk.private<[N], f32> {pk.name = "T"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <N by 8>
  %d16 = pk.block[%i] : !pk.block<16 by 16>
  %q = pk.block[%i] : !pk.block<N by 8>
  %x = pk.load %A[%q, %d16 : !pk.block<N by 8>, !pk.block<16 by 16>] : !pk.private<[N, 16], bf16> -> !pk.tile<8x16xbf16>
  %z = pk.full 0.0 : f32 : !pk.tile<8x8xf32>
  %none = pk.full 0xff800000 : f32 : !pk.tile<8x8xf32>
  %top = pk.full 0xff800000 : f32 : !pk.tile<8xf32>
  %zero = pk.full 0.0 : f32 : !pk.tile<8xf32>
  %t = scf.for %j = %i to %n step %one iter_args(%u = %top) -> (!pk.tile<8xf32>) {
  %kv = pk.block[%j] : !pk.block<N by 8>
  %y = pk.load %A[%kv, %d16 : !pk.block<N by 8>, !pk.block<16 by 16>] : !pk.private<[N, 16], bf16> -> !pk.tile<8x16xbf16>
  %f = pk.load %F[%kv : !pk.block<N by 8>] : !pk.private<[N], f32> -> !pk.tile<8xf32>
  %yt = pk.transpose %y : !pk.tile<8x16xbf16> -> !pk.tile<16x8xbf16>
  %s = pk.mma %x, %yt, %z : !pk.tile<8x16xbf16>, !pk.tile<16x8xbf16> -> !pk.tile<8x8xf32>
  %qs = pk.positions %q : !pk.block<N by 8> -> !pk.tile<8xi32>
  %ks = pk.positions %kv : !pk.block<N by 8> -> !pk.tile<8xi32>
  %qr = pk.broadcast %qs axes [0] : !pk.tile<8xi32> -> !pk.tile<8x8xi32>
  %kr = pk.broadcast %ks axes [1] : !pk.tile<8xi32> -> !pk.tile<8x8xi32>
  %b = pk.compare lt, %qr, %kr : !pk.tile<8x8xi32> -> !pk.tile<8x8xi1>
  %hidden = pk.compare eq, %f, %zero : !pk.tile<8xf32> -> !pk.tile<8xi1>
  %hr = pk.broadcast %hidden axes [1] : !pk.tile<8xi1> -> !pk.tile<8x8xi1>
  %or = pk.or %hr, %b : !pk.tile<8x8xi1>
  %m = pk.select %or, %none, %s : !pk.tile<8x8xi1>, !pk.tile<8x8xf32>
  %h = pk.row_max %m : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  %v = pk.max %u, %h : !pk.tile<8xf32>
  scf.yield %v : !pk.tile<8xf32>
  }
  pk.store %t, %T[%q : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
}

// In loops without MMAs memory is the limit, behind the loop there is one block alone, and a row is no work.
// CHECK-LABEL: pk.kernel @elsewhere
// CHECK-NOT:   scf.if
// CHECK:       remark: {{.*}}pk.clip: whole blocks are masked element by element like others: no MMA is in its loop, whose limit is memory [pk-split-edges]
// CHECK:       remark: {{.*}}pk.clip: whole blocks are masked element by element like others: the mask is not in a loop over blocks [pk-split-edges]
// CHECK-NOT:   remark
pk.kernel @elsewhere(%X: !pk.private<[N, N], f32> {pk.name = "X"}, %T: !pk.private<[N], f32> {pk.name = "T"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <N by 8>
  %q = pk.block[%i] : !pk.block<N by 8>
  %top = pk.full 0.0 : f32 : !pk.tile<8xf32>
  %t = scf.for %j = %i to %n step %one iter_args(%u = %top) -> (!pk.tile<8xf32>) {
    %kv = pk.block[%j] : !pk.block<N by 8>
    %s = pk.load %X[%q, %kv : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.private<[N, N], f32> -> !pk.tile<8x8xf32>
    %e = pk.exp %s : !pk.tile<8x8xf32>
    %c = pk.clip %e axis 1 to %kv fill 0.0 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
    %m = pk.row_sum %c : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
    %v = pk.add %u, %m : !pk.tile<8xf32>
    scf.yield %v : !pk.tile<8xf32>
  }
  %r = pk.clip %t axis 0 to %q fill 0.0 : f32 : !pk.tile<8xf32>, !pk.block<N by 8> -> !pk.tile<8xf32>
  %z = pk.broadcast %r axes [0] : !pk.tile<8xf32> -> !pk.tile<8x8xf32>
  %p = pk.clip %z axis 1 to %q fill 0.0 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
  %y = pk.row_sum %p : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  pk.store %y, %T[%q : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
  %a = pk.full 1.0 : bf16 : !pk.tile<8x8xbf16>
  %product = pk.mma %a, %a, %z : !pk.tile<8x8xbf16>, !pk.tile<8x8xbf16> -> !pk.tile<8x8xf32>
}
