// Stores of whole blocks, and of those that end inside of an array.
// RUN: pkc-opt %s -p pk-plan-transfers,pk-split-stores --split-input-file --remarks | filecheck %s

// By TMA if both blocks are whole, else by threads. The load may read past the end of the rows, where nothing looks;
// past that of the columns it may not.
// CHECK-LABEL: pk.kernel @cut
// CHECK: pk.load {{.*}} {unread = array<i64: 0>, transfer = {by = "tma", why = "goes into its stage as it is; by threads the last block, which may end inside of the array", whole}}
// CHECK: pk.consume
// CHECK-NEXT: %[[ROWS:.*]] = pk.is_whole %m_1
// CHECK-NEXT: %[[COLUMNS:.*]] = pk.is_whole %d_1
// CHECK-NEXT: %[[BOTH:.*]] = arith.andi %[[ROWS]], %[[COLUMNS]] : i1
// CHECK-NEXT: scf.if %[[BOTH]] {
// CHECK-NEXT: pk.store {{.*}} {transfer = {by = "tma", why = "its block is whole"}}
// CHECK-NEXT: } else {
// CHECK-NEXT: pk.store {{.*}} {transfer = {by = "register", why = "its block ends inside of the array, where TMA does not stop"}}
// CHECK-NEXT: }
// CHECK-NEXT: pk.release
pk.kernel @cut(%A: !pk.private<[M, N], f32> {pk.name = "A"}, %B: !pk.private<[M, N], f32> {pk.name = "B"}, %count: !pk.private<[8], i32> {pk.name = "count"}) attributes {derived} {
  %0 = pk.channel "A" stages 2 : !pk.channel<!pk.tile<16x64xf32>>
  %zero = arith.constant 0 : index
  pk.role loader {
    %rows = pk.read %count[%zero] : !pk.private<[8], i32>
    %m = pk.block[%zero] to %rows : !pk.block<M by 16>
    %d = pk.block[%zero] to %rows : !pk.block<N by 64>
    pk.acquire %0 : !pk.channel<!pk.tile<16x64xf32>>
    %a = pk.load %A[%m, %d : !pk.block<M by 16>, !pk.block<N by 64>] {unread = array<i64: 0>} : !pk.private<[M, N], f32> -> !pk.tile<16x64xf32>
    pk.commit %0, %a : !pk.channel<!pk.tile<16x64xf32>>, !pk.tile<16x64xf32>
  }
  pk.role storer {
    %rows_1 = pk.read %count[%zero] : !pk.private<[8], i32>
    %m_1 = pk.block[%zero] to %rows_1 : !pk.block<M by 16>
    %d_1 = pk.block[%zero] to %rows_1 : !pk.block<N by 64>
    %t = pk.consume %0 : !pk.channel<!pk.tile<16x64xf32>> -> !pk.tile<16x64xf32>
    pk.store %t, %B[%m_1, %d_1 : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, N], f32>
    pk.release %0 : !pk.channel<!pk.tile<16x64xf32>>
  }
}

// -----

// A block of whole blocks goes by TMA alone.
// CHECK-LABEL: pk.kernel @whole
// CHECK: pk.store {{.*}} {transfer = {by = "tma", why = "leaves its stage as it is"}}
// CHECK-NOT: scf.if
pk.kernel @whole(%A: !pk.private<[M, 64], f32> {pk.name = "A"}, %B: !pk.private<[M, 64], f32> {pk.name = "B"}) attributes {derived} {
  %0 = pk.channel "A" stages 2 : !pk.channel<!pk.tile<16x64xf32>>
  %zero = arith.constant 0 : index
  %end = arith.constant 32 : index
  pk.role loader {
    %m = pk.block[%zero] to %end : !pk.block<M by 16>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    pk.acquire %0 : !pk.channel<!pk.tile<16x64xf32>>
    %a = pk.load %A[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.private<[M, 64], f32> -> !pk.tile<16x64xf32>
    pk.commit %0, %a : !pk.channel<!pk.tile<16x64xf32>>, !pk.tile<16x64xf32>
  }
  pk.role storer {
    %m_1 = pk.block[%zero] to %end : !pk.block<M by 16>
    %d_1 = pk.block[%zero] : !pk.block<64 by 64>
    %t = pk.consume %0 : !pk.channel<!pk.tile<16x64xf32>> -> !pk.tile<16x64xf32>
    pk.store %t, %B[%m_1, %d_1 : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, 64], f32>
    pk.release %0 : !pk.channel<!pk.tile<16x64xf32>>
  }
}
