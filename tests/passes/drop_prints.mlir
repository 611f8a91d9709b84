// What is printed stays at the tile level; roles print nothing.
// RUN: pkc-opt %s -p pk-drop-prints | filecheck %s

// CHECK-LABEL: pk.kernel @printed
// CHECK-NOT:   pk.print
// CHECK:       %x = pk.load
// CHECK-NEXT:  pk.store %x
// CHECK-NOT:   pk.print
pk.kernel @printed(%A: !pk.private<[M], f32> {pk.name = "A"}, %C: !pk.private<[M], f32> {pk.name = "C"}) {
  %n = pk.block_count <M by 128>
  pk.print "M" %n axes [] to : : index
  pk.tasks (%i) in (%n) {
    %m = pk.block[%i] : !pk.block<M by 128>
    %x = pk.load %A[%m : !pk.block<M by 128>] : !pk.private<[M], f32> -> !pk.tile<128xf32>
    pk.print "x" %x axes [0] to %m : !pk.block<M by 128> : !pk.tile<128xf32>
    pk.store %x, %C[%m : !pk.block<M by 128>] : !pk.tile<128xf32>, !pk.private<[M], f32>
  }
}
