// Operands of MMAs that may end inside of their array are clipped along the rows that are summed over.
// RUN: pkc-opt %s -p pk-clip-operands --split-input-file | filecheck %s

// The left operand, transposed, and the right one. Of the other left operand the columns are summed over: threads load
// its last block. A block that ends where its array does needs no clip.
// CHECK-LABEL: pk.kernel @operands
// CHECK: %[[A:.*]] = pk.load %A[%k, %m :
// CHECK-NEXT: %[[A1:.*]] = pk.clip %[[A]] axis 0 to %k fill 0.000000e+00 : bf16 :
// CHECK: %[[B:.*]] = pk.load %B[%k, %n :
// CHECK-NEXT: %[[B1:.*]] = pk.clip %[[B]] axis 0 to %k fill 0.000000e+00 : bf16 :
// CHECK: %[[C:.*]] = pk.load %A[%m2, %k :
// CHECK-NEXT: %[[D:.*]] = pk.load %B[%all, %n :
// CHECK-NEXT: %[[T:.*]] = pk.transpose %[[A1]]
// CHECK-NEXT: pk.mma %[[T]], %[[B1]],
// CHECK-NEXT: pk.mma %[[C]], %[[B1]],
// CHECK-NEXT: pk.mma %[[C]], %[[D]],
pk.kernel @operands(%A: !pk.private<[K, K], bf16> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[K, N], f32> {pk.name = "C"}, %count: !pk.private<[8], i32> {pk.name = "count"}) attributes {target = "sm_90a"} {
  %zero = arith.constant 0 : index
  %rows = pk.read %count[%zero] : !pk.private<[8], i32>
  %m = pk.block[%zero] : !pk.block<K by 64>
  %m2 = pk.block[%zero] : !pk.block<K by 64>
  %n = pk.block[%zero] : !pk.block<N by 64>
  %k = pk.block[%zero] to %rows : !pk.block<K by 64>
  %all = pk.block[%zero] : !pk.block<K by 64>
  %acc = pk.full 0.0 : f32 : !pk.tile<64x64xf32>
  %a = pk.load %A[%k, %m : !pk.block<K by 64>, !pk.block<K by 64>] : !pk.private<[K, K], bf16> -> !pk.tile<64x64xbf16>
  %b = pk.load %B[%k, %n : !pk.block<K by 64>, !pk.block<N by 64>] : !pk.private<[K, N], bf16> -> !pk.tile<64x64xbf16>
  %c = pk.load %A[%m2, %k : !pk.block<K by 64>, !pk.block<K by 64>] : !pk.private<[K, K], bf16> -> !pk.tile<64x64xbf16>
  %d = pk.load %B[%all, %n : !pk.block<K by 64>, !pk.block<N by 64>] : !pk.private<[K, N], bf16> -> !pk.tile<64x64xbf16>
  %at = pk.transpose %a : !pk.tile<64x64xbf16> -> !pk.tile<64x64xbf16>
  %x = pk.mma %at, %b, %acc : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
  %y = pk.mma %c, %b, %x : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
  %z = pk.mma %c, %d, %y : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
  pk.store %z, %C[%m, %n : !pk.block<K by 64>, !pk.block<N by 64>] : !pk.tile<64x64xf32>, !pk.private<[K, N], f32>
}

// -----

// A tile that something else reads is loaded with its zeros.
// CHECK-LABEL: pk.kernel @read
// CHECK-NOT: pk.clip
pk.kernel @read(%A: !pk.private<[M, K], bf16> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %C: !pk.private<[K, N], f32> {pk.name = "C"}, %count: !pk.private<[8], i32> {pk.name = "count"}) attributes {target = "sm_90a"} {
  %zero = arith.constant 0 : index
  %rows = pk.read %count[%zero] : !pk.private<[8], i32>
  %m = pk.block[%zero] : !pk.block<M by 64>
  %n = pk.block[%zero] : !pk.block<N by 64>
  %k = pk.block[%zero] to %rows : !pk.block<K by 64>
  %b = pk.load %B[%k, %n : !pk.block<K by 64>, !pk.block<N by 64>] : !pk.private<[K, N], bf16> -> !pk.tile<64x64xbf16>
  %a = pk.load %A[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<64x64xbf16>
  %wide = pk.cast %b : !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
  %x = pk.mma %a, %b, %wide : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
  pk.store %x, %C[%k, %n : !pk.block<K by 64>, !pk.block<N by 64>] : !pk.tile<64x64xf32>, !pk.private<[K, N], f32>
}
