// RUN: pkc-opt %s -p pk-cse | filecheck %s

// Two loads of one place are one, until something is written, signalled or awaited.
// CHECK-LABEL: pk.kernel @loads
// CHECK:       %[[A:.*]] = pk.load
// CHECK-NEXT:  pk.add %[[A]], %[[A]]
// CHECK-NEXT:  pk.wait
// CHECK-NEXT:  %[[B:.*]] = pk.load
// CHECK-NEXT:  pk.signal
// CHECK-NEXT:  %[[C:.*]] = pk.load
// CHECK-NEXT:  pk.store
// CHECK-NEXT:  %[[D:.*]] = pk.load
// CHECK-NEXT:  pk.add %[[B]], %[[C]]
// CHECK-NEXT:  pk.store
// CHECK-NEXT:  pk.store %[[D]]
pk.kernel @loads(%X: !pk.pgl<[8], f32, symmetric> {pk.name = "X"}, %ready: !pk.signal<[1]> {pk.name = "ready"}) {
  pk.role communicator {
    %i = arith.constant 0 : index
    %one = arith.constant 1 : index
    %b = pk.block[%i] : !pk.block<8 by 8>
    %b2 = pk.block[%i] : !pk.block<8 by 8>
    %x0 = pk.load %X[%b : !pk.block<8 by 8>] : !pk.pgl<[8], f32, symmetric> -> !pk.tile<8xf32>
    %x1 = pk.load %X[%b2 : !pk.block<8 by 8>] : !pk.pgl<[8], f32, symmetric> -> !pk.tile<8xf32>
    %s = pk.add %x0, %x1 : !pk.tile<8xf32>
    pk.wait %ready[%i] for %one : !pk.signal<[1]>
    %x2 = pk.load %X[%b : !pk.block<8 by 8>] : !pk.pgl<[8], f32, symmetric> -> !pk.tile<8xf32>
    pk.signal %ready at %i[%i] by %one : !pk.signal<[1]>
    %x3 = pk.load %X[%b : !pk.block<8 by 8>] : !pk.pgl<[8], f32, symmetric> -> !pk.tile<8xf32>
    pk.store %s, %X[%b : !pk.block<8 by 8>] : !pk.tile<8xf32>, !pk.pgl<[8], f32, symmetric>
    %x4 = pk.load %X[%b : !pk.block<8 by 8>] : !pk.pgl<[8], f32, symmetric> -> !pk.tile<8xf32>
    %t = pk.add %x2, %x3 : !pk.tile<8xf32>
    pk.store %t, %X[%b : !pk.block<8 by 8>] : !pk.tile<8xf32>, !pk.pgl<[8], f32, symmetric>
    pk.store %x4, %X[%b : !pk.block<8 by 8>] : !pk.tile<8xf32>, !pk.pgl<[8], f32, symmetric>
  }
}

// What a task needs to know is computed once; a load is not taken from outside.
// CHECK-LABEL: pk.kernel @nested
// CHECK:       %[[I:.*]] = arith.constant 0
// CHECK-NEXT:  %[[B:.*]] = pk.block[%[[I]]]
// CHECK:       pk.tasks
// CHECK-NOT:   pk.block[
// CHECK:       pk.load %{{.*}}[%[[B]] :
pk.kernel @nested(%X: !pk.private<[8], f32> {pk.name = "X"}, %Y: !pk.private<[8], f32> {pk.name = "Y"}) {
  %i = arith.constant 0 : index
  %b = pk.block[%i] : !pk.block<8 by 8>
  %x0 = pk.load %X[%b : !pk.block<8 by 8>] : !pk.private<[8], f32> -> !pk.tile<8xf32>
  pk.store %x0, %Y[%b : !pk.block<8 by 8>] : !pk.tile<8xf32>, !pk.private<[8], f32>
  %n = pk.block_count <8 by 8>
  pk.tasks (%j) in (%n) {
    %k = arith.constant 0 : index
    %c = pk.block[%k] : !pk.block<8 by 8>
    %x1 = pk.load %X[%c : !pk.block<8 by 8>] : !pk.private<[8], f32> -> !pk.tile<8xf32>
    pk.store %x1, %Y[%c : !pk.block<8 by 8>] : !pk.tile<8xf32>, !pk.private<[8], f32>
  }
}

// Elements of an array that the kernel only reads are the same everywhere.
// CHECK-LABEL: pk.kernel @elements
// CHECK:       pk.read %count[%{{.*}}]
// CHECK:       pk.tasks
// CHECK-NOT:   pk.read %count
// CHECK:       pk.read %written[%{{.*}}]
// CHECK:       pk.tasks
// CHECK:       pk.read %written[%{{.*}}]
pk.kernel @elements(%count: !pk.private<[8], i32> {pk.name = "count"}, %written: !pk.private<[8], i32> {pk.name = "written"}) {
  %i = arith.constant 0 : index
  %n = pk.read %count[%i] : !pk.private<[8], i32>
  pk.tasks (%j) in (%n) {
    %m = pk.read %count[%i] : !pk.private<[8], i32>
    %a = pk.read %written[%i] : !pk.private<[8], i32>
    pk.tasks (%k) in (%a) {
      %b = pk.read %written[%i] : !pk.private<[8], i32>
      %sum = arith.addi %m, %b : index
      %t = pk.splat %sum : index -> !pk.tile<i32>
      pk.store %t, %written[%k : index] : !pk.tile<i32>, !pk.private<[8], i32>
    }
  }
}

// Tiles are loaded once, whatever is stored elsewhere in between; behind a store to their array they are loaded again.
// CHECK-LABEL: pk.kernel @in_place
// CHECK:       %[[X:.*]] = pk.load %X
// CHECK-NEXT:  %[[Y:.*]] = pk.load %Y
// CHECK-NEXT:  pk.store %[[Y]], %Z
// CHECK-NEXT:  %[[S:.*]] = pk.add %[[X]], %[[Y]]
// CHECK-NEXT:  pk.store %[[X]], %Z
// CHECK-NEXT:  pk.store %[[S]], %X
// CHECK-NEXT:  %[[X2:.*]] = pk.load %X
// CHECK-NEXT:  pk.store %[[X2]], %Z
pk.kernel @in_place(%X: !pk.private<[8], f32> {pk.name = "X"}, %Y: !pk.private<[8], f32> {pk.name = "Y"}, %Z: !pk.private<[8], f32> {pk.name = "Z"}) {
  %i = arith.constant 0 : index
  %b = pk.block[%i] : !pk.block<8 by 8>
  %x = pk.load %X[%b : !pk.block<8 by 8>] : !pk.private<[8], f32> -> !pk.tile<8xf32>
  %y = pk.load %Y[%b : !pk.block<8 by 8>] : !pk.private<[8], f32> -> !pk.tile<8xf32>
  pk.store %y, %Z[%b : !pk.block<8 by 8>] : !pk.tile<8xf32>, !pk.private<[8], f32>
  %x2 = pk.load %X[%b : !pk.block<8 by 8>] : !pk.private<[8], f32> -> !pk.tile<8xf32>
  %y2 = pk.load %Y[%b : !pk.block<8 by 8>] : !pk.private<[8], f32> -> !pk.tile<8xf32>
  %s = pk.add %x2, %y2 : !pk.tile<8xf32>
  pk.store %x, %Z[%b : !pk.block<8 by 8>] : !pk.tile<8xf32>, !pk.private<[8], f32>
  pk.store %s, %X[%b : !pk.block<8 by 8>] : !pk.tile<8xf32>, !pk.private<[8], f32>
  %x3 = pk.load %X[%b : !pk.block<8 by 8>] : !pk.private<[8], f32> -> !pk.tile<8xf32>
  pk.store %x3, %Z[%b : !pk.block<8 by 8>] : !pk.tile<8xf32>, !pk.private<[8], f32>
}
