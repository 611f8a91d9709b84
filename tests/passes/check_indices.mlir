// Accesses of which memory decides an index are marked with the dimension.
// RUN: pkc-opt %s -p pk-check-indices | filecheck %s

// CHECK: pk.read %table[%{{[a-z0-9_]+}}] :
// CHECK: pk.load %X[%{{.*}}] {checked = array<i64: 0>}
// CHECK: pk.gather %X rows {{.*}} {checked = array<i64: 0>}
// CHECK: pk.store {{.*}}, %Y[%{{.*}}] :
// CHECK: pk.store {{.*}}, %Y[%{{.*}}] {checked = array<i64: 0>}
pk.kernel @picked(%X: !pk.private<[M, N], f32> {pk.name = "X"}, %table: !pk.private<[M], i32> {pk.name = "table"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}) attributes {derived, target = "sm_90a"} {
  %zero = arith.constant 0 : index
  pk.role consumer {
    %n = pk.block[%zero] : !pk.block<N by 64>
    %m = pk.block[%zero] : !pk.block<M by 16>
    %row = pk.read %table[%zero] : !pk.private<[M], i32>
    %rows = pk.load %table[%m : !pk.block<M by 16>] : !pk.private<[M], i32> -> !pk.tile<16xi32>
    %one = pk.load %X[%row, %n : index, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<64xf32>
    %some = pk.gather %X rows %rows[%n : !pk.block<N by 64>] : !pk.private<[M, N], f32>, !pk.tile<16xi32> -> !pk.tile<16x64xf32>
    pk.store %some, %Y[%m, %n : !pk.block<M by 16>, !pk.block<N by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, N], f32>
    pk.store %one, %Y[%row, %n : index, !pk.block<N by 64>] : !pk.tile<64xf32>, !pk.private<[M, N], f32>
  }
}
