// The L2 cache keeps tiles that a task loads again, and gives up the others first, where it has room for these of all CTAs.
// RUN: pkc-opt %s -p pk-plan-cache --split-input-file --remarks | filecheck %s

// CHECK-LABEL: pk.kernel @twice
// CHECK: scf.for
// CHECK: pk.load %X{{.*}} {cache = "keep"}
// CHECK: scf.for
// CHECK: pk.load %X{{.*}} {cache = "once"}
// CHECK-NEXT: pk.load %w[%{{[a-z0-9_]+}} : !pk.block<512 by 128>] : !pk.private<[512], bf16>
// CHECK-NEXT: pk.store {{.*}} {cache = "once"}
pk.kernel @twice(%X: !pk.private<[M, 512], bf16> {pk.name = "X"}, %w: !pk.private<[512], bf16> {pk.name = "w"}, %Y: !pk.private<[M, 512], bf16> {pk.name = "Y"}) {
  %n = pk.dim "M"
  pk.tasks (%m) in (%n) {
    %zero = arith.constant 0 : index
    %four = arith.constant 4 : index
    %one = arith.constant 1 : index
    scf.for %i = %zero to %four step %one {
      %d = pk.block[%i] : !pk.block<512 by 128>
      %x = pk.load %X[%m, %d : index, !pk.block<512 by 128>] : !pk.private<[M, 512], bf16> -> !pk.tile<128xbf16>
    }
    scf.for %i = %zero to %four step %one {
      %d = pk.block[%i] : !pk.block<512 by 128>
      %x = pk.load %X[%m, %d : index, !pk.block<512 by 128>] : !pk.private<[M, 512], bf16> -> !pk.tile<128xbf16>
      %v = pk.load %w[%d : !pk.block<512 by 128>] : !pk.private<[512], bf16> -> !pk.tile<128xbf16>
      pk.store %x, %Y[%m, %d : index, !pk.block<512 by 128>] : !pk.tile<128xbf16>, !pk.private<[M, 512], bf16>
    }
  }
}

// -----

// CHECK-LABEL: pk.kernel @too_long
// CHECK-NOT: cache =
// CHECK: pk.load: the L2 cache does not keep it: the CTAs load 276824064 bytes before it comes again [pk-plan-cache]
pk.kernel @too_long(%X: !pk.private<[M, 1048576], bf16> {pk.name = "X"}, %Y: !pk.private<[M], bf16> {pk.name = "Y"}) {
  %n = pk.dim "M"
  pk.tasks (%m) in (%n) {
    %zero = arith.constant 0 : index
    %count = arith.constant 64 : index
    %one = arith.constant 1 : index
    scf.for %i = %zero to %count step %one {
      %d = pk.block[%i] : !pk.block<1048576 by 16384>
      %x = pk.load %X[%m, %d : index, !pk.block<1048576 by 16384>] : !pk.private<[M, 1048576], bf16> -> !pk.tile<16384xbf16>
    }
    scf.for %i = %zero to %count step %one {
      %d = pk.block[%i] : !pk.block<1048576 by 16384>
      %x = pk.load %X[%m, %d : index, !pk.block<1048576 by 16384>] : !pk.private<[M, 1048576], bf16> -> !pk.tile<16384xbf16>
    }
  }
}
