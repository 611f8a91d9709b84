// RUN: pkc-opt %s -p pk-simplify-arithmetic | filecheck %s

// 1 + tanh(x) is twice a step from 0 to 1, and so is 1 + erf(x). Powers of two are multiplied with other constants, also across a product: of
// the GELU by tanh no factor is left but that of the operand. A tanh that something else uses stays, and so do constants
// whose product would be rounded, or that differ.
// CHECK-LABEL: pk.kernel @gelu
// CHECK:       %[[X:.*]] = pk.load
// CHECK-NEXT:  pk.full 5.000000e-01
// CHECK-NEXT:  %[[C:.*]] = pk.full 1.500000e+00
// CHECK-NEXT:  %[[U:.*]] = pk.mul %[[X]], %[[C]]
// CHECK-NEXT:  %[[S:.*]] = pk.step_tanh %[[U]]
// CHECK-NEXT:  %[[Y:.*]] = pk.mul %[[X]], %[[S]]
// CHECK-NEXT:  pk.store %[[Y]]
// CHECK-NEXT:  %[[ONE:.*]] = pk.full 1.000000e+00
// CHECK-NEXT:  %[[T:.*]] = pk.tanh %[[X]]
// CHECK-NEXT:  %[[A:.*]] = pk.add %[[T]], %[[ONE]]
// CHECK-NEXT:  %[[P:.*]] = pk.mul %[[A]], %[[T]]
// CHECK-NEXT:  %[[THIRD:.*]] = pk.full 3.300000e-01
// CHECK-NEXT:  %[[Q:.*]] = pk.mul %[[THIRD]], %[[P]]
// CHECK-NEXT:  %[[R:.*]] = pk.mul %[[THIRD]], %[[Q]]
// CHECK-NEXT:  pk.store %[[R]]
// CHECK-NEXT:  %[[STEP:.*]] = pk.step_erf %[[X]]
// CHECK-NEXT:  pk.store %[[STEP]]
// CHECK-NEXT:  pk.tanh
// CHECK-NEXT:  pk.full 2.500000e-01
// CHECK-NOT:   pk.step_tanh
pk.kernel @gelu(%X: !pk.private<[N], f32> {pk.name = "X"}, %Y: !pk.private<[N], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %b = pk.block[%i] : !pk.block<N by 8>
  %x = pk.load %X[%b : !pk.block<N by 8>] : !pk.private<[N], f32> -> !pk.tile<8xf32>
  %half = pk.full 0.5 : f32 : !pk.tile<8xf32>
  %hx = pk.mul %half, %x : !pk.tile<8xf32>
  %c = pk.full 1.5 : f32 : !pk.tile<8xf32>
  %cx = pk.mul %x, %c : !pk.tile<8xf32>
  %t = pk.tanh %cx : !pk.tile<8xf32>
  %one = pk.full 1.0 : f32 : !pk.tile<8xf32>
  %s = pk.add %one, %t : !pk.tile<8xf32>
  %g = pk.mul %hx, %s : !pk.tile<8xf32>
  pk.store %g, %Y[%b : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
  %o = pk.full 1.0 : f32 : !pk.tile<8xf32>
  %u = pk.tanh %x : !pk.tile<8xf32>
  %a = pk.add %u, %o : !pk.tile<8xf32>
  %p = pk.mul %a, %u : !pk.tile<8xf32>
  %third = pk.full 0.33 : f32 : !pk.tile<8xf32>
  %q = pk.mul %third, %p : !pk.tile<8xf32>
  %r = pk.mul %third, %q : !pk.tile<8xf32>
  pk.store %r, %Y[%b : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
  %v = pk.erf %x : !pk.tile<8xf32>
  %hv = pk.mul %v, %half : !pk.tile<8xf32>
  %d = pk.add %hv, %half : !pk.tile<8xf32>
  pk.store %d, %Y[%b : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
  %w = pk.tanh %x : !pk.tile<8xf32>
  %quarter = pk.full 0.25 : f32 : !pk.tile<8xf32>
  %hw = pk.mul %w, %quarter : !pk.tile<8xf32>
  %e = pk.add %hw, %half : !pk.tile<8xf32>
  pk.store %e, %Y[%b : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
}

// Of a softmax e to the power x - rowmax(x) is steep, as it is added up and what is stored has 16 bits. It stays what it
// is where it is stored in 32 bits, or something else than the maximum is subtracted.
// CHECK-LABEL: pk.kernel @softmax
// CHECK:       %[[D:.*]] = pk.sub
// CHECK-NEXT:  %[[E:.*]] = pk.steep_exp %[[D]]
// CHECK-NEXT:  pk.row_sum %[[E]]
// CHECK:       pk.exp %
// CHECK-NEXT:  pk.store
// CHECK-NEXT:  pk.sub
// CHECK-NEXT:  pk.exp %
// CHECK-NEXT:  pk.row_sum
// CHECK-NOT:   pk.steep_exp
pk.kernel @softmax(%X: !pk.private<[M, 8], f32> {pk.name = "X"}, %Y: !pk.private<[M, 8], f32> {pk.name = "Y"}, %Z: !pk.private<[M, 8], bf16> {pk.name = "Z"}, %S: !pk.private<[M], f32> {pk.name = "S"}) {
  %i = arith.constant 0 : index
  %b = pk.block[%i] : !pk.block<M by 4>
  %n = pk.block[%i] : !pk.block<8 by 8>
  %x = pk.load %X[%b, %n : !pk.block<M by 4>, !pk.block<8 by 8>] : !pk.private<[M, 8], f32> -> !pk.tile<4x8xf32>
  %m = pk.row_max %x : !pk.tile<4x8xf32> -> !pk.tile<4xf32>
  %top = pk.broadcast %m axes [0] : !pk.tile<4xf32> -> !pk.tile<4x8xf32>
  %d = pk.sub %x, %top : !pk.tile<4x8xf32>
  %e = pk.exp %d : !pk.tile<4x8xf32>
  %s = pk.row_sum %e : !pk.tile<4x8xf32> -> !pk.tile<4xf32>
  %sum = pk.broadcast %s axes [0] : !pk.tile<4xf32> -> !pk.tile<4x8xf32>
  %p = pk.div %e, %sum : !pk.tile<4x8xf32>
  %r = pk.cast %p : !pk.tile<4x8xf32> -> !pk.tile<4x8xbf16>
  pk.store %r, %Z[%b, %n : !pk.block<M by 4>, !pk.block<8 by 8>] : !pk.tile<4x8xbf16>, !pk.private<[M, 8], bf16>
  %f = pk.exp %d : !pk.tile<4x8xf32>
  pk.store %f, %Y[%b, %n : !pk.block<M by 4>, !pk.block<8 by 8>] : !pk.tile<4x8xf32>, !pk.private<[M, 8], f32>
  %g = pk.sub %x, %sum : !pk.tile<4x8xf32>
  %h = pk.exp %g : !pk.tile<4x8xf32>
  %t = pk.row_sum %h : !pk.tile<4x8xf32> -> !pk.tile<4xf32>
  pk.store %t, %S[%b : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M], f32>
}
