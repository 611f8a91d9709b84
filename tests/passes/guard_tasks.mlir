// A branch around tasks becomes one inside of each task.
// RUN: pkc-opt %s -p pk-guard-tasks --split-input-file --remarks | filecheck %s

// CHECK-LABEL: pk.kernel @guarded
// CHECK-NOT: scf.if
// CHECK: pk.tasks
// CHECK-NEXT: scf.if %live {
// CHECK: pk.store %{{.*}}, %Y
// CHECK: pk.tasks
// CHECK-NEXT: scf.if %live {
// CHECK-NEXT: } else {
// CHECK: pk.store %{{.*}}, %X
// CHECK-NOT: remark
pk.kernel @guarded(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}, %n: !pk.private<[1], i32> {pk.name = "n"}) {
  %zero = arith.constant 0 : index
  %count = pk.read %n[%zero] : !pk.private<[1], i32>
  %live = arith.cmpi sgt, %count, %zero : index
  %rows = pk.block_count <M by 16>
  scf.if %live {
    pk.tasks (%j) in (%rows) {
      %m = pk.block[%j] : !pk.block<M by 16>
      %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
    }
  } else {
    pk.tasks (%j) in (%rows) {
      %m = pk.block[%j] : !pk.block<M by 16>
      %x = pk.full 0.000000e+00 : f32 : !pk.tile<16xf32>
      pk.store %x, %X[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
    }
  }
}

// -----

// A branch that does more stays.
// CHECK-LABEL: pk.kernel @more
// CHECK: scf.if
// CHECK: // remark: {{.*}}this branch does more than run `tasks` [pk-guard-tasks]
pk.kernel @more(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}, %n: !pk.private<[1], i32> {pk.name = "n"}) {
  %zero = arith.constant 0 : index
  %count = pk.read %n[%zero] : !pk.private<[1], i32>
  %live = arith.cmpi sgt, %count, %zero : index
  %rows = pk.block_count <M by 16>
  scf.if %live {
    %first = pk.load %X[%zero : index] : !pk.private<[M], f32> -> !pk.tile<f32>
    pk.store %first, %Y[%zero : index] : !pk.tile<f32>, !pk.private<[M], f32>
    pk.tasks (%j) in (%rows) {
      %m = pk.block[%j] : !pk.block<M by 16>
      %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
    }
  }
}
