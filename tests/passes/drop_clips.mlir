// RUN: pkc-opt %s -p pk-drop-clips | filecheck %s

// Softmax: operations behind the first clip use the clipped tile, and the clips of the sum and of the MMA go.
// CHECK-LABEL: pk.kernel @softmax
// CHECK:       %c = pk.clip %x axis 1 to %n fill 0xff800000
// CHECK-NEXT:  %m = pk.row_max %c
// CHECK-NEXT:  %t = pk.max %top, %m
// CHECK-NEXT:  %r = pk.broadcast %t
// CHECK-NEXT:  %d = pk.sub %c, %r
// CHECK-NEXT:  %p = pk.exp2 %d
// CHECK-NEXT:  %h = pk.cast %p
// CHECK-NEXT:  pk.mma %h, %v, %z
// CHECK-NEXT:  pk.row_sum %p
// CHECK-NEXT:  pk.store
pk.kernel @softmax(%X: !pk.private<[N, N], f32> {pk.name = "X"}, %V: !pk.private<[N, N], bf16> {pk.name = "V"}, %T: !pk.private<[N], f32> {pk.name = "T"}) {
  %i = arith.constant 0 : index
  %j = arith.constant 1 : index
  %m0 = pk.block[%i] : !pk.block<N by 8>
  %n = pk.block[%j] : !pk.block<N by 8>
  %q = pk.load %X[%m0, %n : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.private<[N, N], f32> -> !pk.tile<8x8xf32>
  %v = pk.load %V[%n, %m0 : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.private<[N, N], bf16> -> !pk.tile<8x8xbf16>
  %top = pk.load %T[%m0 : !pk.block<N by 8>] : !pk.private<[N], f32> -> !pk.tile<8xf32>
  %z = pk.full 0.0 : f32 : !pk.tile<8x8xf32>
  %x = pk.mul %q, %q : !pk.tile<8x8xf32>
  %c = pk.clip %x axis 1 to %n fill 0xff800000 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
  %m = pk.row_max %c : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  %t = pk.max %top, %m : !pk.tile<8xf32>
  %r = pk.broadcast %t axes [0] : !pk.tile<8xf32> -> !pk.tile<8x8xf32>
  %d = pk.sub %x, %r : !pk.tile<8x8xf32>
  %p = pk.exp2 %d : !pk.tile<8x8xf32>
  %h = pk.cast %p : !pk.tile<8x8xf32> -> !pk.tile<8x8xbf16>
  %hc = pk.clip %h axis 1 to %n fill 0.0 : bf16 : !pk.tile<8x8xbf16>, !pk.block<N by 8> -> !pk.tile<8x8xbf16>
  %o = pk.mma %hc, %v, %z : !pk.tile<8x8xbf16>, !pk.tile<8x8xbf16> -> !pk.tile<8x8xf32>
  %pc = pk.clip %p axis 1 to %n fill 0.0 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
  %s = pk.row_sum %pc : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  pk.store %o, %X[%m0, %n : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.tile<8x8xf32>, !pk.private<[N, N], f32>
  pk.store %s, %T[%m0 : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
}

// The row is not known to be at least the greatest element: where it is -inf the padding would be NaN.
// CHECK-LABEL: pk.kernel @other_row
// CHECK:       pk.sub %x, %r
// CHECK-NEXT:  %p = pk.exp2
// CHECK-NEXT:  %pc = pk.clip %p
// CHECK-NEXT:  pk.row_sum %pc
pk.kernel @other_row(%X: !pk.private<[N, N], f32> {pk.name = "X"}, %V: !pk.private<[N, N], bf16> {pk.name = "V"}, %T: !pk.private<[N], f32> {pk.name = "T"}) {
  %i = arith.constant 0 : index
  %j = arith.constant 1 : index
  %m0 = pk.block[%i] : !pk.block<N by 8>
  %n = pk.block[%j] : !pk.block<N by 8>
  %q = pk.load %X[%m0, %n : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.private<[N, N], f32> -> !pk.tile<8x8xf32>
  %v = pk.load %V[%n, %m0 : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.private<[N, N], bf16> -> !pk.tile<8x8xbf16>
  %top = pk.load %T[%m0 : !pk.block<N by 8>] : !pk.private<[N], f32> -> !pk.tile<8xf32>
  %z = pk.full 0.0 : f32 : !pk.tile<8x8xf32>
  %x = pk.mul %q, %q : !pk.tile<8x8xf32>
  %c = pk.clip %x axis 1 to %n fill 0xff800000 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
  %m = pk.row_max %c : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  %r = pk.broadcast %top axes [0] : !pk.tile<8xf32> -> !pk.tile<8x8xf32>
  %d = pk.sub %x, %r : !pk.tile<8x8xf32>
  %p = pk.exp2 %d : !pk.tile<8x8xf32>
  %pc = pk.clip %p axis 1 to %n fill 0.0 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
  %s = pk.row_sum %pc : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  pk.store %x, %X[%m0, %n : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.tile<8x8xf32>, !pk.private<[N, N], f32>
  pk.store %s, %T[%m0 : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
}

// A clip stays that has users to which one NaN is not as good as many.
// CHECK-LABEL: pk.kernel @compared
// CHECK:       %p = pk.exp2
// CHECK-NEXT:  %pc = pk.clip %p
// CHECK-NEXT:  pk.compare
pk.kernel @compared(%X: !pk.private<[N, N], f32> {pk.name = "X"}, %V: !pk.private<[N, N], bf16> {pk.name = "V"}, %T: !pk.private<[N], f32> {pk.name = "T"}) {
  %i = arith.constant 0 : index
  %j = arith.constant 1 : index
  %m0 = pk.block[%i] : !pk.block<N by 8>
  %n = pk.block[%j] : !pk.block<N by 8>
  %q = pk.load %X[%m0, %n : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.private<[N, N], f32> -> !pk.tile<8x8xf32>
  %v = pk.load %V[%n, %m0 : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.private<[N, N], bf16> -> !pk.tile<8x8xbf16>
  %top = pk.load %T[%m0 : !pk.block<N by 8>] : !pk.private<[N], f32> -> !pk.tile<8xf32>
  %z = pk.full 0.0 : f32 : !pk.tile<8x8xf32>
  %x = pk.mul %q, %q : !pk.tile<8x8xf32>
  %c = pk.clip %x axis 1 to %n fill 0xff800000 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
  %m = pk.row_max %c : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  %r = pk.broadcast %m axes [0] : !pk.tile<8xf32> -> !pk.tile<8x8xf32>
  %d = pk.sub %x, %r : !pk.tile<8x8xf32>
  %p = pk.exp2 %d : !pk.tile<8x8xf32>
  %pc = pk.clip %p axis 1 to %n fill 0.0 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
  %e = pk.compare eq, %pc, %pc : !pk.tile<8x8xf32> -> !pk.tile<8x8xi1>
  %w = pk.select %e, %pc, %z : !pk.tile<8x8xi1>, !pk.tile<8x8xf32>
  %s = pk.row_sum %w : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  pk.store %x, %X[%m0, %n : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.tile<8x8xf32>, !pk.private<[N, N], f32>
  pk.store %s, %T[%m0 : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
}

// A user of the tile that the MMA reads needs its zeros: it does not get the clipped tile, and neither do the others.
// CHECK-LABEL: pk.kernel @zeros_are_needed
// CHECK:       pk.mma %h, %v, %z
// CHECK:       pk.sub %x, %r
// CHECK:       pk.clip
// CHECK-NEXT:  pk.row_sum
pk.kernel @zeros_are_needed(%X: !pk.private<[N, N], f32> {pk.name = "X"}, %V: !pk.private<[N, N], bf16> {pk.name = "V"}, %T: !pk.private<[N], f32> {pk.name = "T"}) {
  %i = arith.constant 0 : index
  %j = arith.constant 1 : index
  %m0 = pk.block[%i] : !pk.block<N by 8>
  %n = pk.block[%j] : !pk.block<N by 8>
  %q = pk.load %X[%m0, %n : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.private<[N, N], f32> -> !pk.tile<8x8xf32>
  %v = pk.load %V[%n, %m0 : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.private<[N, N], bf16> -> !pk.tile<8x8xbf16>
  %top = pk.load %T[%m0 : !pk.block<N by 8>] : !pk.private<[N], f32> -> !pk.tile<8xf32>
  %z = pk.full 0.0 : f32 : !pk.tile<8x8xf32>
  %x = pk.mul %q, %q : !pk.tile<8x8xf32>
  %c = pk.clip %x axis 1 to %n fill 0xff800000 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
  %m = pk.row_max %c : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  %h = pk.cast %x : !pk.tile<8x8xf32> -> !pk.tile<8x8xbf16>
  %o = pk.mma %h, %v, %z : !pk.tile<8x8xbf16>, !pk.tile<8x8xbf16> -> !pk.tile<8x8xf32>
  %r = pk.broadcast %m axes [0] : !pk.tile<8xf32> -> !pk.tile<8x8xf32>
  %d = pk.sub %x, %r : !pk.tile<8x8xf32>
  %p = pk.exp2 %d : !pk.tile<8x8xf32>
  %pc = pk.clip %p axis 1 to %n fill 0.0 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
  %s = pk.row_sum %pc : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  pk.store %o, %X[%m0, %n : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.tile<8x8xf32>, !pk.private<[N, N], f32>
  pk.store %s, %T[%m0 : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
}

// Another block, another axis, another number, zero of the other sign: the second clip stays. The same one goes.
// CHECK-LABEL: pk.kernel @constants
// CHECK:       %b = pk.clip %a axis 1 to %m0 fill 0.000000e+00
// CHECK:       %e = pk.clip %a axis 0 to %n fill 0.000000e+00
// CHECK:       %f = pk.clip %a axis 1 to %n fill 1.000000e+00
// CHECK:       %g = pk.neg %a
// CHECK-NEXT:  %gc = pk.clip %g
// CHECK:       %k = pk.sqrt %a
// CHECK-NEXT:  pk.row_sum %k
pk.kernel @constants(%X: !pk.private<[N, N], f32> {pk.name = "X"}, %V: !pk.private<[N, N], bf16> {pk.name = "V"}, %T: !pk.private<[N], f32> {pk.name = "T"}) {
  %i = arith.constant 0 : index
  %j = arith.constant 1 : index
  %m0 = pk.block[%i] : !pk.block<N by 8>
  %n = pk.block[%j] : !pk.block<N by 8>
  %q = pk.load %X[%m0, %n : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.private<[N, N], f32> -> !pk.tile<8x8xf32>
  %v = pk.load %V[%n, %m0 : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.private<[N, N], bf16> -> !pk.tile<8x8xbf16>
  %top = pk.load %T[%m0 : !pk.block<N by 8>] : !pk.private<[N], f32> -> !pk.tile<8xf32>
  %z = pk.full 0.0 : f32 : !pk.tile<8x8xf32>
  %x = pk.mul %q, %q : !pk.tile<8x8xf32>
  %c = pk.clip %x axis 1 to %n fill 0xff800000 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
  %m = pk.row_max %c : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  %w = pk.exp2 %q : !pk.tile<8x8xf32>
  %a = pk.clip %w axis 1 to %n fill 0.0 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
  %b = pk.clip %a axis 1 to %m0 fill 0.0 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
  %bs = pk.row_sum %b : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  %e = pk.clip %a axis 0 to %n fill 0.0 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
  %es = pk.row_sum %e : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  %f = pk.clip %a axis 1 to %n fill 1.0 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
  %fs = pk.row_sum %f : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  %g = pk.neg %a : !pk.tile<8x8xf32>
  %gc = pk.clip %g axis 1 to %n fill 0.0 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
  %js = pk.row_sum %gc : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  %k = pk.sqrt %a : !pk.tile<8x8xf32>
  %l = pk.clip %k axis 1 to %n fill 0.0 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
  %ls = pk.row_sum %l : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  %s1 = pk.add %bs, %es : !pk.tile<8xf32>
  %s2 = pk.add %fs, %js : !pk.tile<8xf32>
  %s3 = pk.add %s1, %s2 : !pk.tile<8xf32>
  %s = pk.add %s3, %ls : !pk.tile<8xf32>
  pk.store %x, %X[%m0, %n : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.tile<8x8xf32>, !pk.private<[N, N], f32>
  pk.store %s, %T[%m0 : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
}

// Two MMAs, of which each sums over another axis of the same tile: one tile that ends at both edges.
// CHECK-LABEL: pk.kernel @both_edges
// CHECK:       %a = pk.clip %x axis 1 to %n fill 0.000000e+00
// CHECK-NEXT:  %b = pk.clip %a axis 0 to %m0 fill 0.000000e+00
// CHECK:       pk.mma %b, %v, %z
// CHECK:       %bt = pk.transpose %b
// CHECK-NEXT:  pk.mma %bt, %v, %z
// CHECK:       %c = pk.clip %y axis 1 to %n
// CHECK-NEXT:  pk.row_sum %c
// CHECK:       %d = pk.clip %y axis 0 to %m0
pk.kernel @both_edges(%X: !pk.private<[N, N], bf16> {pk.name = "X"}, %Y: !pk.private<[N, N], f32> {pk.name = "Y"}, %T: !pk.private<[N], f32> {pk.name = "T"}) {
  %i = arith.constant 0 : index
  %j = arith.constant 1 : index
  %m0 = pk.block[%i] : !pk.block<N by 8>
  %n = pk.block[%j] : !pk.block<N by 8>
  %v = pk.load %X[%n, %m0 : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.private<[N, N], bf16> -> !pk.tile<8x8xbf16>
  %q = pk.load %Y[%m0, %n : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.private<[N, N], f32> -> !pk.tile<8x8xf32>
  %z = pk.full 0.0 : f32 : !pk.tile<8x8xf32>
  %y = pk.exp2 %q : !pk.tile<8x8xf32>
  %x = pk.cast %y : !pk.tile<8x8xf32> -> !pk.tile<8x8xbf16>
  %a = pk.clip %x axis 1 to %n fill 0.0 : bf16 : !pk.tile<8x8xbf16>, !pk.block<N by 8> -> !pk.tile<8x8xbf16>
  %o = pk.mma %a, %v, %z : !pk.tile<8x8xbf16>, !pk.tile<8x8xbf16> -> !pk.tile<8x8xf32>
  pk.store %o, %Y[%m0, %m0 : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.tile<8x8xf32>, !pk.private<[N, N], f32>
  %b = pk.clip %x axis 0 to %m0 fill 0.0 : bf16 : !pk.tile<8x8xbf16>, !pk.block<N by 8> -> !pk.tile<8x8xbf16>
  %bt = pk.transpose %b : !pk.tile<8x8xbf16> -> !pk.tile<8x8xbf16>
  %p = pk.mma %bt, %v, %z : !pk.tile<8x8xbf16>, !pk.tile<8x8xbf16> -> !pk.tile<8x8xf32>
  pk.store %p, %Y[%n, %m0 : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.tile<8x8xf32>, !pk.private<[N, N], f32>
  // Of what is not multiplied each keeps its own edge.
  %c = pk.clip %y axis 1 to %n fill 0.0 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
  %s = pk.row_sum %c : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  pk.store %s, %T[%m0 : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
  %d = pk.clip %y axis 0 to %m0 fill 0.0 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
  %t = pk.row_sum %d : !pk.tile<8x8xf32> -> !pk.tile<8xf32>
  pk.store %t, %T[%n : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
}

// What is loaded is zero past the end, and so is what is cast of it; not what is computed of it.
// CHECK-LABEL: pk.kernel @loaded
// CHECK:       %h = pk.cast %q
// CHECK-NEXT:  pk.mma %h, %v, %z
// CHECK:       %e = pk.exp2
// CHECK-NEXT:  pk.clip %e
pk.kernel @loaded(%X: !pk.private<[N, N], i8> {pk.name = "X"}, %V: !pk.private<[N, N], bf16> {pk.name = "V"}, %T: !pk.private<[N, N], f32> {pk.name = "T"}) {
  %i = arith.constant 0 : index
  %j = arith.constant 1 : index
  %m0 = pk.block[%i] : !pk.block<N by 8>
  %n = pk.block[%j] : !pk.block<N by 8>
  %q = pk.load %X[%m0, %n : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.private<[N, N], i8> -> !pk.tile<8x8xi8>
  %v = pk.load %V[%n, %m0 : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.private<[N, N], bf16> -> !pk.tile<8x8xbf16>
  %z = pk.full 0.0 : f32 : !pk.tile<8x8xf32>
  %h = pk.cast %q : !pk.tile<8x8xi8> -> !pk.tile<8x8xbf16>
  %hc = pk.clip %h axis 1 to %n fill 0.0 : bf16 : !pk.tile<8x8xbf16>, !pk.block<N by 8> -> !pk.tile<8x8xbf16>
  %o = pk.mma %hc, %v, %z : !pk.tile<8x8xbf16>, !pk.tile<8x8xbf16> -> !pk.tile<8x8xf32>
  %f = pk.cast %q : !pk.tile<8x8xi8> -> !pk.tile<8x8xf32>
  %e = pk.exp2 %f : !pk.tile<8x8xf32>
  %ec = pk.clip %e axis 1 to %n fill 0.0 : f32 : !pk.tile<8x8xf32>, !pk.block<N by 8> -> !pk.tile<8x8xf32>
  %p = pk.add %o, %ec : !pk.tile<8x8xf32>
  pk.store %p, %T[%m0, %n : !pk.block<N by 8>, !pk.block<N by 8>] : !pk.tile<8x8xf32>, !pk.private<[N, N], f32>
}

// A dimension of constant length that blocks divide has no edge inside of a block; one that they do not divide has.
// CHECK-LABEL: pk.kernel @constant
// CHECK:       %[[Y:.*]] = pk.exp2 %x
// CHECK-NEXT:  pk.store %[[Y]]
// CHECK:       %[[V:.*]] = pk.exp2 %u
// CHECK-NEXT:  %[[C:.*]] = pk.clip %[[V]]
// CHECK-NEXT:  pk.store %[[C]]
pk.kernel @constant(%X: !pk.private<[64], f32> {pk.name = "X"}, %U: !pk.private<[60], f32> {pk.name = "U"}) {
  %i = arith.constant 0 : index
  %n = pk.block[%i] : !pk.block<64 by 8>
  %m = pk.block[%i] : !pk.block<60 by 8>
  %x = pk.load %X[%n : !pk.block<64 by 8>] : !pk.private<[64], f32> -> !pk.tile<8xf32>
  %y = pk.exp2 %x : !pk.tile<8xf32>
  %c = pk.clip %y axis 0 to %n fill 0.0 : f32 : !pk.tile<8xf32>, !pk.block<64 by 8> -> !pk.tile<8xf32>
  pk.store %c, %X[%n : !pk.block<64 by 8>] : !pk.tile<8xf32>, !pk.private<[64], f32>
  %u = pk.load %U[%m : !pk.block<60 by 8>] : !pk.private<[60], f32> -> !pk.tile<8xf32>
  %v = pk.exp2 %u : !pk.tile<8xf32>
  %d = pk.clip %v axis 0 to %m fill 0.0 : f32 : !pk.tile<8xf32>, !pk.block<60 by 8> -> !pk.tile<8xf32>
  pk.store %d, %U[%m : !pk.block<60 by 8>] : !pk.tile<8xf32>, !pk.private<[60], f32>
}
