// Tasks in tasks are numbered by the indices of both, where that changes nothing but who has which.
// RUN: pkc-opt %s -p pk-join-tasks --split-input-file --remarks | filecheck %s

// Three levels; how many inner ones there are is known before.
// CHECK-LABEL: pk.kernel @joined
// CHECK: %m = pk.block_count <M by 16>
// CHECK: %n = pk.block_count <N by 64>
// CHECK: pk.tasks (%b, %i, %j) in (%batches, %m, %n) {
// CHECK-NEXT: %c = pk.block[%i] : !pk.block<M by 16>
// CHECK-NEXT: %s = pk.read %S[%b]
// CHECK: %d = pk.block[%j] : !pk.block<N by 64>
// CHECK-NEXT: pk.load %X[%b, %c, %d
// CHECK-NOT: pk.tasks
// CHECK-NOT: remark
pk.kernel @joined(%X: !pk.private<[B, M, N], f32> {pk.name = "X"}, %S: !pk.private<[B], i32> {pk.name = "S"}) {
  %batches = pk.dim "B"
  pk.tasks (%b) in (%batches) {
    %m = pk.block_count <M by 16>
    pk.tasks (%i) in (%m) {
      %c = pk.block[%i] : !pk.block<M by 16>
      %s = pk.read %S[%b] : !pk.private<[B], i32>
      %n = pk.block_count <N by 64>
      pk.tasks (%j) in (%n) {
        %d = pk.block[%j] : !pk.block<N by 64>
        %x = pk.load %X[%b, %c, %d : index, !pk.block<M by 16>, !pk.block<N by 64>] : !pk.private<[B, M, N], f32> -> !pk.tile<16x64xf32>
        %y = pk.exp2 %x : !pk.tile<16x64xf32>
        pk.store %y, %X[%b, %c, %d : index, !pk.block<M by 16>, !pk.block<N by 64>] : !pk.tile<16x64xf32>, !pk.private<[B, M, N], f32>
      }
    }
  }
}

// -----

// As many as memory says for each of the outer ones; and outer ones that load a tile.
// CHECK-LABEL: pk.kernel @apart
// CHECK: pk.tasks (%e) in (%experts) {
// CHECK: pk.tasks (%i) in (%n) {
// CHECK: pk.tasks (%b) in (%batches) {
// CHECK: pk.tasks (%j) in (%m) {
// CHECK: // remark: {{.*}}pk.tasks: each CTA goes through all tasks around these: they do more than compute integers
pk.kernel @apart(%X: !pk.private<[E, M, N], f32> {pk.name = "X"}, %C: !pk.private<[E], i32> {pk.name = "C"}) {
  %experts = pk.dim "E"
  %batches = pk.dim "E"
  %zero = arith.constant 0 : index
  pk.tasks (%e) in (%experts) {
    %count = pk.read %C[%e] : !pk.private<[E], i32>
    %n = pk.block_count <M by 16> to %count
    pk.tasks (%i) in (%n) {
      %c = pk.block[%i] to %count : !pk.block<M by 16>
      %d = pk.block[%zero] : !pk.block<N by 64>
      %x = pk.load %X[%e, %c, %d : index, !pk.block<M by 16>, !pk.block<N by 64>] : !pk.private<[E, M, N], f32> -> !pk.tile<16x64xf32>
      pk.store %x, %X[%e, %c, %d : index, !pk.block<M by 16>, !pk.block<N by 64>] : !pk.tile<16x64xf32>, !pk.private<[E, M, N], f32>
    }
  }
  pk.tasks (%b) in (%batches) {
    %f = pk.block[%zero] : !pk.block<N by 64>
    %g = pk.block[%zero] : !pk.block<M by 16>
    %y = pk.load %X[%b, %g, %f : index, !pk.block<M by 16>, !pk.block<N by 64>] : !pk.private<[E, M, N], f32> -> !pk.tile<16x64xf32>
    %m = pk.block_count <M by 16>
    pk.tasks (%j) in (%m) {
      %c = pk.block[%j] : !pk.block<M by 16>
      pk.store %y, %X[%b, %c, %f : index, !pk.block<M by 16>, !pk.block<N by 64>] : !pk.tile<16x64xf32>, !pk.private<[E, M, N], f32>
    }
  }
}

// -----

// Two indices of a matmul are numbered by bands.
// CHECK-LABEL: pk.kernel @bands
// CHECK: pk.tasks (%b) in (%batches) {
// CHECK: pk.tasks (%i, %j) in (%m, %n) {
// CHECK: // remark: {{.*}}pk.tasks: each CTA goes through all tasks around these: those of a matmul are numbered by bands
pk.kernel @bands(%X: !pk.private<[B, M, 64], bf16> {pk.name = "X"}, %Y: !pk.private<[B, M, M], f32> {pk.name = "Y"}) {
  %batches = pk.dim "B"
  %zero = arith.constant 0 : index
  pk.tasks (%b) in (%batches) {
    %m = pk.block_count <M by 64>
    %n = pk.block_count <M by 64>
    pk.tasks (%i, %j) in (%m, %n) {
      %c = pk.block[%i] : !pk.block<M by 64>
      %d = pk.block[%j] : !pk.block<M by 64>
      %k = pk.block[%zero] : !pk.block<64 by 64>
      %nil = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
      %x = pk.load %X[%b, %c, %k : index, !pk.block<M by 64>, !pk.block<64 by 64>] : !pk.private<[B, M, 64], bf16> -> !pk.tile<64x64xbf16>
      %z = pk.load %X[%b, %d, %k : index, !pk.block<M by 64>, !pk.block<64 by 64>] : !pk.private<[B, M, 64], bf16> -> !pk.tile<64x64xbf16>
      %t = pk.transpose %z : !pk.tile<64x64xbf16> -> !pk.tile<64x64xbf16>
      %p = pk.mma %x, %t, %nil : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      pk.store %p, %Y[%b, %c, %d : index, !pk.block<M by 64>, !pk.block<M by 64>] : !pk.tile<64x64xf32>, !pk.private<[B, M, M], f32>
    }
  }
}
