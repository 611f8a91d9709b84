// RUN: pkc-opt %s -p pk-simplify-arithmetic | filecheck %s

// 1 + tanh(x) is 2 sigmoid(2 x). Powers of two are multiplied with other constants, also across a product: of the GELU
// by tanh no factor is left but that of the sigmoid. A tanh that something else uses stays, and so do constants whose
// product would be rounded.
// CHECK-LABEL: pk.kernel @gelu
// CHECK:       %[[X:.*]] = pk.load
// CHECK-NEXT:  %[[C:.*]] = pk.full 3.000000e+00
// CHECK-NEXT:  %[[U:.*]] = pk.mul %[[C]], %[[X]]
// CHECK-NEXT:  %[[S:.*]] = pk.sigmoid %[[U]]
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
}
