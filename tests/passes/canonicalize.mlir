// RUN: pkc-opt %s -p pk-canonicalize | filecheck %s
// RUN: pkc-opt %s -p pk-canonicalize --print-debuginfo | filecheck %s --check-prefix=LOC

// A matmul that is added becomes one that accumulates, in either order of the sum, at the place of the sum.
// CHECK-LABEL: pk.kernel @accumulate
// CHECK-NOT:   pk.full
// CHECK:       %a = pk.load
// CHECK-NEXT:  %s = pk.mma %a, %a, %x :
// CHECK-NEXT:  %t = pk.mma %a, %a, %s :
// CHECK-NEXT:  pk.store %t
// LOC-LABEL:   pk.kernel @accumulate
// LOC:         pk.mma {{.*}} loc("user.pk":4:9)
// LOC-NEXT:    pk.mma {{.*}} loc("user.pk":5:9)
pk.kernel @accumulate(%A: !pk.private<[8, 8], bf16> {pk.name = "A"}, %X: !pk.private<[8, 8], f32> {pk.name = "X"}) {
  %i = arith.constant 0 : index
  %b = pk.block[%i] : !pk.block<8 by 8>
  %x = pk.load %X[%b, %b : !pk.block<8 by 8>, !pk.block<8 by 8>] : !pk.private<[8, 8], f32> -> !pk.tile<8x8xf32>
  %a = pk.load %A[%b, %b : !pk.block<8 by 8>, !pk.block<8 by 8>] : !pk.private<[8, 8], bf16> -> !pk.tile<8x8xbf16>
  %z = pk.full 0.0 : f32 : !pk.tile<8x8xf32>
  %p = pk.mma %a, %a, %z : !pk.tile<8x8xbf16>, !pk.tile<8x8xbf16> -> !pk.tile<8x8xf32>
  %s = pk.add %x, %p : !pk.tile<8x8xf32> loc("user.pk":4:9)
  %q = pk.mma %a, %a, %z : !pk.tile<8x8xbf16>, !pk.tile<8x8xbf16> -> !pk.tile<8x8xf32>
  %t = pk.add %q, %s : !pk.tile<8x8xf32> loc("user.pk":5:9)
  pk.store %t, %X[%b, %b : !pk.block<8 by 8>, !pk.block<8 by 8>] : !pk.tile<8x8xf32>, !pk.private<[8, 8], f32>
}

// A matmul that has another use stays, and so does one that does not begin at zero, or that a loop would repeat.
// CHECK-LABEL: pk.kernel @keep
// CHECK:       pk.mma
// CHECK:       pk.mma
// CHECK:       pk.add
// CHECK-NEXT:  pk.add
// CHECK:       pk.mma
// CHECK-NEXT:  scf.for
// CHECK-NEXT:  pk.add
pk.kernel @keep(%A: !pk.private<[8, 8], bf16> {pk.name = "A"}, %X: !pk.private<[8, 8], f32> {pk.name = "X"}) {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.dim "N"
  %b = pk.block[%i] : !pk.block<8 by 8>
  %x = pk.load %X[%b, %b : !pk.block<8 by 8>, !pk.block<8 by 8>] : !pk.private<[8, 8], f32> -> !pk.tile<8x8xf32>
  %a = pk.load %A[%b, %b : !pk.block<8 by 8>, !pk.block<8 by 8>] : !pk.private<[8, 8], bf16> -> !pk.tile<8x8xbf16>
  %z = pk.full 0.0 : f32 : !pk.tile<8x8xf32>
  %one_f = pk.full 1.0 : f32 : !pk.tile<8x8xf32>
  %p = pk.mma %a, %a, %z : !pk.tile<8x8xbf16>, !pk.tile<8x8xbf16> -> !pk.tile<8x8xf32>
  %q = pk.mma %a, %a, %one_f : !pk.tile<8x8xbf16>, !pk.tile<8x8xbf16> -> !pk.tile<8x8xf32>
  %s = pk.add %p, %q : !pk.tile<8x8xf32>
  %t = pk.add %s, %p : !pk.tile<8x8xf32>
  %r = pk.mma %a, %a, %z : !pk.tile<8x8xbf16>, !pk.tile<8x8xbf16> -> !pk.tile<8x8xf32>
  %u = scf.for %j = %i to %n step %one iter_args(%c = %t) -> (!pk.tile<8x8xf32>) {
    %d = pk.add %c, %r : !pk.tile<8x8xf32>
    scf.yield %d : !pk.tile<8x8xf32>
  }
  pk.store %u, %X[%b, %b : !pk.block<8 by 8>, !pk.block<8 by 8>] : !pk.tile<8x8xf32>, !pk.private<[8, 8], f32>
}

// A load is zero past the end of its blocks; another fill, and another block, still need the clip.
// CHECK-LABEL: pk.kernel @clip
// CHECK:       %[[X:.*]] = pk.load
// CHECK-NEXT:  %[[C:.*]] = pk.clip %[[X]] axis 0 to %{{.*}} fill 1.000000e+00
// CHECK-NEXT:  %[[D:.*]] = pk.clip %[[C]]
// CHECK-NEXT:  %[[S:.*]] = pk.add %[[X]], %[[D]]
// CHECK-NEXT:  pk.store %[[S]]
pk.kernel @clip(%X: !pk.private<[N], f32> {pk.name = "X"}) {
  %i = arith.constant 0 : index
  %b = pk.block[%i] : !pk.block<N by 8>
  %x = pk.load %X[%b : !pk.block<N by 8>] : !pk.private<[N], f32> -> !pk.tile<8xf32>
  %c = pk.clip %x axis 0 to %b fill 0.0 : f32 : !pk.tile<8xf32>, !pk.block<N by 8> -> !pk.tile<8xf32>
  %d = pk.clip %x axis 0 to %b fill 1.0 : f32 : !pk.tile<8xf32>, !pk.block<N by 8> -> !pk.tile<8xf32>
  %e = pk.clip %d axis 0 to %b fill 0.0 : f32 : !pk.tile<8xf32>, !pk.block<N by 8> -> !pk.tile<8xf32>
  %f = pk.cast %e : !pk.tile<8xf32> -> !pk.tile<8xf32>
  %s = pk.add %c, %f : !pk.tile<8xf32>
  pk.store %s, %X[%b : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
}

// A folded constant stands for the operation that it replaces.
// LOC-LABEL: pk.kernel @fold
// LOC:       arith.constant 5 : index loc("user.pk":7:3)
pk.kernel @fold(%X: !pk.private<[N, 9], f32> {pk.name = "X"}, %t: f32 {pk.name = "t"}) {
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  %five = arith.addi %two, %three : index loc("user.pk":7:3)
  %s = pk.splat %t : f32 -> !pk.tile<f32>
  pk.store %s, %X[%two, %five : index, index] : !pk.tile<f32>, !pk.private<[N, 9], f32>
}

// A row is subtracted by the MMA in front of it: it begins with the row, negated. Not where it would begin behind
// something else, nor from a tile that is no row.
// CHECK-LABEL: pk.kernel @subtract
// CHECK:       %[[N:.*]] = pk.neg %d
// CHECK-NEXT:  %[[R:.*]] = pk.broadcast %[[N]] axes [1]
// CHECK-NEXT:  %[[S:.*]] = pk.mma %a, %a, %[[R]] :
// CHECK-NEXT:  %[[P:.*]] = pk.mma
// CHECK-NEXT:  pk.exp2 %[[S]]
// CHECK-NEXT:  pk.broadcast %d
// CHECK-NEXT:  pk.sub %[[P]]
// CHECK-NEXT:  %[[Q:.*]] = pk.mma
// CHECK-NEXT:  pk.sub %[[Q]]
pk.kernel @subtract(%A: !pk.private<[8, 8], bf16> {pk.name = "A"}, %X: !pk.private<[8, 8], f32> {pk.name = "X"}, %D: !pk.private<[8], f32> {pk.name = "D"}) {
  %i = arith.constant 0 : index
  %b = pk.block[%i] : !pk.block<8 by 8>
  %a = pk.load %A[%b, %b : !pk.block<8 by 8>, !pk.block<8 by 8>] : !pk.private<[8, 8], bf16> -> !pk.tile<8x8xbf16>
  %z = pk.full 0.0 : f32 : !pk.tile<8x8xf32>
  %o = pk.mma %a, %a, %z : !pk.tile<8x8xbf16>, !pk.tile<8x8xbf16> -> !pk.tile<8x8xf32>
  %d = pk.load %D[%b : !pk.block<8 by 8>] : !pk.private<[8], f32> -> !pk.tile<8xf32>
  %r = pk.broadcast %d axes [1] : !pk.tile<8xf32> -> !pk.tile<8x8xf32>
  %s = pk.sub %o, %r : !pk.tile<8x8xf32>
  %p = pk.mma %a, %a, %z : !pk.tile<8x8xbf16>, !pk.tile<8x8xbf16> -> !pk.tile<8x8xf32>
  %e = pk.exp2 %s : !pk.tile<8x8xf32>
  %r2 = pk.broadcast %d axes [1] : !pk.tile<8xf32> -> !pk.tile<8x8xf32>
  %t = pk.sub %p, %r2 : !pk.tile<8x8xf32>
  %q = pk.mma %a, %a, %z : !pk.tile<8x8xbf16>, !pk.tile<8x8xbf16> -> !pk.tile<8x8xf32>
  %u = pk.sub %q, %e : !pk.tile<8x8xf32>
  %v = pk.mul %t, %u : !pk.tile<8x8xf32>
  pk.store %v, %X[%b, %b : !pk.block<8 by 8>, !pk.block<8 by 8>] : !pk.tile<8x8xf32>, !pk.private<[8, 8], f32>
}

// Past the end of a block, one that is shifted from it has ended too; not so one that is longer.
// CHECK-LABEL: pk.kernel @shifted
// CHECK:       %[[X:.*]] = pk.load
// CHECK:       %[[Y:.*]] = pk.load
// CHECK-NEXT:  %[[C:.*]] = pk.clip %[[Y]]
// CHECK-NEXT:  pk.add %[[X]], %[[C]]
pk.kernel @shifted(%X: !pk.private<[L], f32> {pk.name = "X"}, %Y: !pk.private<[K], f32> {pk.name = "Y"}) {
  %count = pk.block_count <K by 8>
  pk.tasks (%i) in (%count) {
    %by = arith.constant 16 : index
    %k = pk.block[%i] : !pk.block<K by 8>
    %size = pk.dim "K"
    %stop = arith.addi %size, %by : index
    %length = pk.dim "L"
    %end = arith.minsi %stop, %length : index
    %b = pk.block[%i] from %by to %end {shifted = !pk.block<K by 8>} : !pk.block<L by 8>
    %x = pk.load %X[%b : !pk.block<L by 8>] : !pk.private<[L], f32> -> !pk.tile<8xf32>
    %cx = pk.clip %x axis 0 to %k fill 0.0 : f32 : !pk.tile<8xf32>, !pk.block<K by 8> -> !pk.tile<8xf32>
    %more = pk.block[%i] from %by to %length {shifted = !pk.block<K by 8>} : !pk.block<L by 8>
    %y = pk.load %X[%more : !pk.block<L by 8>] : !pk.private<[L], f32> -> !pk.tile<8xf32>
    %cy = pk.clip %y axis 0 to %k fill 0.0 : f32 : !pk.tile<8xf32>, !pk.block<K by 8> -> !pk.tile<8xf32>
    %z = pk.add %cx, %cy : !pk.tile<8xf32>
    pk.store %z, %Y[%k : !pk.block<K by 8>] : !pk.tile<8xf32>, !pk.private<[K], f32>
  }
}
