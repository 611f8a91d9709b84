// Loops around tasks whose iterations constants count are written out.
// RUN: pkc-opt %s -p pk-unroll-phases --split-input-file --remarks | filecheck %s

// What a loop carries goes from one iteration to the next.
// CHECK-LABEL: pk.kernel @written_out
// CHECK-NOT: scf.for
// CHECK: pk.block_count
// CHECK-NEXT: %[[FIRST:.*]] = arith.constant 0 : index
// CHECK-NEXT: pk.tasks
// CHECK: pk.store %{{.*}}, %Y[%[[FIRST]], %{{.*}} : index
// CHECK: %[[MORE:.*]] = arith.addi %zero, %one
// CHECK-NEXT: %[[SECOND:.*]] = arith.constant 1 : index
// CHECK-NEXT: pk.tasks
// CHECK: pk.store %{{.*}}, %Y[%[[SECOND]], %{{.*}} : index
// CHECK: arith.addi %[[MORE]], %one
// CHECK-NOT: remark
pk.kernel @written_out(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.private<[2, M], f32> {pk.name = "Y"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %rows = pk.block_count <M by 16>
  %last = scf.for %i = %zero to %two step %one iter_args(%at = %zero) -> (index) {
    pk.tasks (%j) in (%rows) {
      %m = pk.block[%j] : !pk.block<M by 16>
      %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      pk.store %x, %Y[%i, %m : index, !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[2, M], f32>
    }
    %next = arith.addi %at, %one : index
    scf.yield %next : index
  }
}

// -----

// What a run-time value counts stays.
// CHECK-LABEL: pk.kernel @counted
// CHECK: scf.for
// CHECK: // remark: {{.*}}a run-time value says how many iterations this loop around `tasks` has [pk-unroll-phases]
pk.kernel @counted(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.private<[R, M], f32> {pk.name = "Y"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %count = pk.dim "R"
  %rows = pk.block_count <M by 16>
  scf.for %i = %zero to %count step %one {
    pk.tasks (%j) in (%rows) {
      %m = pk.block[%j] : !pk.block<M by 16>
      %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      pk.store %x, %Y[%i, %m : index, !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[R, M], f32>
    }
  }
}
