// Tiles of which no stage has room go through a task by blocks of columns.
// RUN: pkc-opt %s -p pk-piece-tiles --split-input-file --remarks | filecheck %s

// Two stages of 128 x 256 f32 are 32 KiB more than a CTA has: two pieces. What orders tiles stays around both.
// CHECK-LABEL: pk.kernel @wide
// CHECK: %n = pk.block[%zero] : !pk.block<N by 256>
// CHECK-NEXT: pk.wait
// CHECK-NEXT: %[[FIRST:.*]] = pk.block_position %n
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
// CHECK-NEXT: %[[PART:.*]] = pk.block[%[[I]]] from %[[FIRST]] : !pk.block<N by 128>
// CHECK-NEXT: pk.load %X[%m, %[[PART]]{{.*}} -> !pk.tile<128x128xf32>
// CHECK-NEXT: pk.clip {{.*}} axis 1 to %[[PART]]
// CHECK-NEXT: pk.mul {{.*}} : !pk.tile<128x128xf32>
// CHECK-NEXT: pk.store {{.*}}%Y[%m, %[[PART]]
// CHECK-NEXT: }
// CHECK-NEXT: pk.signal
// CHECK: pk.load: tiles go through it in 2 pieces of 128 columns: shared memory has no room for the whole
pk.kernel @wide(%X: !pk.private<[M, N], f32> {pk.name = "X"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}, %s: !pk.signal<[1]> {pk.name = "s"}) {
  pk.role consumer {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %rank = pk.rank
    pk.tasks (%i) in (%one) {
      %m = pk.block[%zero] : !pk.block<M by 128>
      %n = pk.block[%zero] : !pk.block<N by 256>
      pk.wait %s[%zero] for %one : !pk.signal<[1]>
      %x = pk.load %X[%m, %n : !pk.block<M by 128>, !pk.block<N by 256>] : !pk.private<[M, N], f32> -> !pk.tile<128x256xf32>
      %c = pk.clip %x axis 1 to %n fill 0.0 : f32 : !pk.tile<128x256xf32>, !pk.block<N by 256> -> !pk.tile<128x256xf32>
      %y = pk.mul %c, %c : !pk.tile<128x256xf32>
      pk.store %y, %Y[%m, %n : !pk.block<M by 128>, !pk.block<N by 256>] : !pk.tile<128x256xf32>, !pk.private<[M, N], f32>
      pk.signal %s at %rank[%zero] by %one : !pk.signal<[1]>
    }
  }
}

// -----

// Stages of 128 columns have room, and a communicator has none.
// CHECK-LABEL: pk.kernel @narrow
// CHECK-NOT: scf.for
// CHECK-NOT: pk-piece-tiles
pk.kernel @narrow(%X: !pk.private<[M, N], f32> {pk.name = "X"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}, %F: !pk.private<[M, N], f32> {pk.name = "F"}) {
  pk.role consumer {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    pk.tasks (%i) in (%one) {
      %m = pk.block[%zero] : !pk.block<M by 128>
      %n = pk.block[%zero] : !pk.block<N by 128>
      %x = pk.load %X[%m, %n : !pk.block<M by 128>, !pk.block<N by 128>] : !pk.private<[M, N], f32> -> !pk.tile<128x128xf32>
      %y = pk.mul %x, %x : !pk.tile<128x128xf32>
      pk.store %y, %Y[%m, %n : !pk.block<M by 128>, !pk.block<N by 128>] : !pk.tile<128x128xf32>, !pk.private<[M, N], f32>
    }
  }
  pk.role communicator {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    pk.tasks (%i) in (%one) {
      %m = pk.block[%zero] : !pk.block<M by 128>
      %n = pk.block[%zero] : !pk.block<N by 256>
      %x = pk.load %F[%m, %n : !pk.block<M by 128>, !pk.block<N by 256>] : !pk.private<[M, N], f32> -> !pk.tile<128x256xf32>
      %y = pk.mul %x, %x : !pk.tile<128x256xf32>
      pk.store %y, %F[%m, %n : !pk.block<M by 128>, !pk.block<N by 256>] : !pk.tile<128x256xf32>, !pk.private<[M, N], f32>
    }
  }
}

// -----

// A sum along the rows needs all of their columns.
// CHECK-LABEL: pk.kernel @sums
// CHECK-NOT: scf.for
// CHECK-NOT: pk-piece-tiles
pk.kernel @sums(%X: !pk.private<[M, N], f32> {pk.name = "X"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}, %Z: !pk.private<[M], f32> {pk.name = "Z"}) {
  pk.role consumer {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    pk.tasks (%i) in (%one) {
      %m = pk.block[%zero] : !pk.block<M by 128>
      %n = pk.block[%zero] : !pk.block<N by 256>
      %x = pk.load %X[%m, %n : !pk.block<M by 128>, !pk.block<N by 256>] : !pk.private<[M, N], f32> -> !pk.tile<128x256xf32>
      %y = pk.mul %x, %x : !pk.tile<128x256xf32>
      pk.store %y, %Y[%m, %n : !pk.block<M by 128>, !pk.block<N by 256>] : !pk.tile<128x256xf32>, !pk.private<[M, N], f32>
      %z = pk.row_sum %y : !pk.tile<128x256xf32> -> !pk.tile<128xf32>
      pk.store %z, %Z[%m : !pk.block<M by 128>] : !pk.tile<128xf32>, !pk.private<[M], f32>
    }
  }
}
