// Loops of few iterations over neighbours are written out, inner ones first.
// RUN: pkc-opt %s -p pk-unroll-taps --remarks | filecheck %s

// CHECK-LABEL: pk.kernel @box
// CHECK-NOT:   scf.for
// CHECK-COUNT-4: pk.load %X
// CHECK:       pk.store
pk.kernel @box(%X: !pk.private<[M, N], f32> {pk.name = "X"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %rows = pk.block_count <M by 8>
  %columns = pk.block_count <N by 64>
  pk.tasks (%i, %j) in (%rows, %columns) {
    %m = pk.block[%i] : !pk.block<M by 8>
    %n = pk.block[%j] : !pk.block<N by 64>
    %none = pk.full 0.0 : f32 : !pk.tile<8x64xf32>
    %all = scf.for %a = %zero to %two step %one iter_args(%sum = %none) -> (!pk.tile<8x64xf32>) {
      %more = scf.for %b = %zero to %two step %one iter_args(%so_far = %sum) -> (!pk.tile<8x64xf32>) {
        %p = pk.block[%i] from %a {shifted = !pk.block<M by 8>} : !pk.block<M by 8>
        %q = pk.block[%j] from %b {shifted = !pk.block<N by 64>} : !pk.block<N by 64>
        %x = pk.load %X[%p, %q : !pk.block<M by 8>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<8x64xf32>
        %y = pk.add %so_far, %x : !pk.tile<8x64xf32>
        scf.yield %y : !pk.tile<8x64xf32>
      }
      scf.yield %more : !pk.tile<8x64xf32>
    }
    pk.store %all, %Y[%m, %n : !pk.block<M by 8>, !pk.block<N by 64>] : !pk.tile<8x64xf32>, !pk.private<[M, N], f32>
  }
}

// A run-time value says how many iterations there are; there are many; blocks of another list share nothing, of which
// nothing is said.
// CHECK-LABEL: pk.kernel @kept
// CHECK-COUNT-3: scf.for
// CHECK:       remark: {{.*}}scf.for: each iteration loads what others load, too: written out, it has 17 iterations of 1 loads [pk-unroll-taps]
// CHECK:       remark: {{.*}}scf.for: each iteration loads what others load, too: a run-time value says how many iterations this loop has [pk-unroll-taps]
// CHECK-NOT:   remark
pk.kernel @kept(%X: !pk.private<[M, N], f32> {pk.name = "X"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %many = arith.constant 17 : index
  %taps = pk.dim "T"
  %rows = pk.block_count <M by 32>
  %columns = pk.block_count <N by 64>
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] : !pk.block<M by 32>
    %n = pk.block[%zero] : !pk.block<N by 64>
    %none = pk.full 0.0 : f32 : !pk.tile<32x64xf32>
    %first = scf.for %a = %zero to %taps step %one iter_args(%sum = %none) -> (!pk.tile<32x64xf32>) {
      %p = pk.block[%i] from %a {shifted = !pk.block<M by 32>} : !pk.block<M by 32>
      %x = pk.load %X[%p, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<32x64xf32>
      %y = pk.add %sum, %x : !pk.tile<32x64xf32>
      scf.yield %y : !pk.tile<32x64xf32>
    }
    %second = scf.for %a = %zero to %many step %one iter_args(%sum = %first) -> (!pk.tile<32x64xf32>) {
      %p = pk.block[%i] from %a {shifted = !pk.block<M by 32>} : !pk.block<M by 32>
      %x = pk.load %X[%p, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<32x64xf32>
      %y = pk.add %sum, %x : !pk.tile<32x64xf32>
      scf.yield %y : !pk.tile<32x64xf32>
    }
    %third = scf.for %a = %zero to %one step %one iter_args(%sum = %second) -> (!pk.tile<32x64xf32>) {
      %b = pk.block[%a] : !pk.block<N by 64>
      %x = pk.load %X[%m, %b : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<32x64xf32>
      %y = pk.add %sum, %x : !pk.tile<32x64xf32>
      scf.yield %y : !pk.tile<32x64xf32>
    }
    pk.store %third, %Y[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.tile<32x64xf32>, !pk.private<[M, N], f32>
  }
}
