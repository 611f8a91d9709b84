// RUN: pkc-opt %s -p pk-load-windows --remarks | filecheck %s

// The places of all loads are in one tile, whose rows begin and end at multiples of 16 bytes: that of a table, too.
// CHECK-LABEL: pk.kernel @stencil
// CHECK:       %[[ROW:.*]] = arith.muli %i, %{{.*}} : index
// CHECK-NEXT:  %[[LESS:.*]] = arith.constant -1 : index
// CHECK-NEXT:  %[[FROM:.*]] = arith.addi %[[ROW]], %[[LESS]] : index
// CHECK:       %[[ROWS:.*]] = pk.block[%{{.*}}] from %[[FROM]] outside {shifted = !pk.block<M by 8>} : !pk.block<M by 9>
// CHECK:       %[[COLUMNS:.*]] = pk.block[%{{.*}}] from %{{.*}} outside {shifted = !pk.block<N by 64>} : !pk.block<N by 68>
// CHECK:       %[[ALL:.*]] = pk.load %X[%[[ROWS]], %[[COLUMNS]]
// CHECK-NEXT:  %a = pk.window %[[ALL]] at [1, 4] : !pk.tile<9x68xf32> -> !pk.tile<8x64xf32>
// CHECK-NEXT:  %b = pk.window %[[ALL]] at [0, 4] : !pk.tile<9x68xf32> -> !pk.tile<8x64xf32>
// CHECK-NEXT:  %c = pk.window %[[ALL]] at [1, 3] : !pk.tile<9x68xf32> -> !pk.tile<8x64xf32>
// CHECK-NOT:   pk.gather
// CHECK-NOT:   pk.clip
pk.kernel @stencil(%X: !pk.private<[M, N], f32> {pk.name = "X"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}) {
  %counts = pk.block_count <M by 8>
  %many = pk.block_count <N by 64>
  pk.tasks (%i, %j) in (%counts, %many) {
    %m = pk.block[%i] : !pk.block<M by 8>
    %n = pk.block[%j] : !pk.block<N by 64>
    %less = arith.constant -1 : index
    %rows = pk.dim "M"
    %end = arith.addi %rows, %less : index
    %above = pk.block[%i] from %less to %end outside {shifted = !pk.block<M by 8>} : !pk.block<M by 8>
    %a = pk.load %X[%m, %n : !pk.block<M by 8>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<8x64xf32>
    %b = pk.load %X[%above, %n : !pk.block<M by 8>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<8x64xf32>
    %p = pk.positions %n : !pk.block<N by 64> -> !pk.tile<64xi32>
    %one = pk.full 1 : i32 : !pk.tile<64xi32>
    %q = pk.sub %p, %one : !pk.tile<64xi32>
    %columns = pk.dim "N"
    %length = pk.splat %columns : index -> !pk.tile<64xi32>
    %inside = pk.compare lt, %q, %length : !pk.tile<64xi32> -> !pk.tile<64xi1>
    %none = pk.full -1 : i32 : !pk.tile<64xi32>
    %s = pk.select %inside, %q, %none : !pk.tile<64xi1>, !pk.tile<64xi32>
    %t = pk.clip %s axis 0 to %n fill -1 : i32 : !pk.tile<64xi32>, !pk.block<N by 64> -> !pk.tile<64xi32>
    %c = pk.gather %X rows %t dim 1 axes [0, 1][%m : !pk.block<M by 8>] : !pk.private<[M, N], f32>, !pk.tile<64xi32> -> !pk.tile<8x64xf32>
    %ab = pk.add %a, %b : !pk.tile<8x64xf32>
    %abc = pk.add %ab, %c : !pk.tile<8x64xf32>
    pk.store %abc, %Y[%m, %n : !pk.block<M by 8>, !pk.block<N by 64>] : !pk.tile<8x64xf32>, !pk.private<[M, N], f32>
  }
}

// Rows of weights beside taps come together; what is reduced past the end of a block is zero there, as it was.
// CHECK-LABEL: pk.kernel @taps
// CHECK:       %[[X:.*]] = pk.load %X[%{{.*}}, %n : !pk.block<M by 9>, !pk.block<N by 64>]
// CHECK-NEXT:  %a = pk.window %[[X]] at [0, 0]
// CHECK-NEXT:  %[[B:.*]] = pk.window %[[X]] at [1, 0]
// CHECK:       %[[W:.*]] = pk.load %W[%{{.*}}, %n : !pk.block<4 by 2>, !pk.block<N by 64>]
// CHECK-NEXT:  %u = pk.window %[[W]] at [0, 0] step [0, 1] : !pk.tile<2x64xf32> -> !pk.tile<64xf32>
// CHECK-NEXT:  %v = pk.window %[[W]] at [1, 0] step [0, 1]
// CHECK:       pk.block[%i] from %one to %five : !pk.block<M by 8>
// CHECK:       %[[D:.*]] = pk.window %{{.*}} at [1, 0] : !pk.tile<9x64xbf16> -> !pk.tile<8x64xbf16>
// CHECK-NEXT:  %d = pk.clip %[[D]] axis 0 to %inner fill 0.000000e+00 : bf16
pk.kernel @taps(%X: !pk.private<[M, N], f32> {pk.name = "X"}, %V: !pk.private<[M, N], bf16> {pk.name = "V"}, %W: !pk.private<[4, N], f32> {pk.name = "W"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}, %S: !pk.private<[M], f32> {pk.name = "S"}) {
  %counts = pk.block_count <M by 8>
  %many = pk.block_count <N by 64>
  pk.tasks (%i, %j) in (%counts, %many) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %five = arith.constant 5 : index
    %m = pk.block[%i] : !pk.block<M by 8>
    %n = pk.block[%j] : !pk.block<N by 64>
    %rows = pk.dim "M"
    %below = pk.block[%i] from %one to %rows {shifted = !pk.block<M by 8>} : !pk.block<M by 8>
    %a = pk.load %X[%m, %n : !pk.block<M by 8>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<8x64xf32>
    %b = pk.load %X[%below, %n : !pk.block<M by 8>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<8x64xf32>
    %u = pk.load %W[%zero, %n : index, !pk.block<N by 64>] : !pk.private<[4, N], f32> -> !pk.tile<64xf32>
    %v = pk.load %W[%one, %n : index, !pk.block<N by 64>] : !pk.private<[4, N], f32> -> !pk.tile<64xf32>
    %uu = pk.broadcast %u axes [1] : !pk.tile<64xf32> -> !pk.tile<8x64xf32>
    %vv = pk.broadcast %v axes [1] : !pk.tile<64xf32> -> !pk.tile<8x64xf32>
    %au = pk.mul %a, %uu : !pk.tile<8x64xf32>
    %bv = pk.mul %b, %vv : !pk.tile<8x64xf32>
    %abuv = pk.add %au, %bv : !pk.tile<8x64xf32>
    pk.store %abuv, %Y[%m, %n : !pk.block<M by 8>, !pk.block<N by 64>] : !pk.tile<8x64xf32>, !pk.private<[M, N], f32>
    %inner = pk.block[%i] from %one to %five : !pk.block<M by 8>
    %c = pk.load %V[%m, %n : !pk.block<M by 8>, !pk.block<N by 64>] : !pk.private<[M, N], bf16> -> !pk.tile<8x64xbf16>
    %d = pk.load %V[%inner, %n : !pk.block<M by 8>, !pk.block<N by 64>] : !pk.private<[M, N], bf16> -> !pk.tile<8x64xbf16>
    %e = pk.cast %c : !pk.tile<8x64xbf16> -> !pk.tile<8x64xf32>
    %h = pk.cast %d : !pk.tile<8x64xbf16> -> !pk.tile<8x64xf32>
    %f = pk.add %e, %h : !pk.tile<8x64xf32>
    %g = pk.row_sum %f : !pk.tile<8x64xf32> -> !pk.tile<8xf32>
    pk.store %g, %S[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
  }
}

// Rows of 68 bytes are no box of TMA; blocks of rows that begin at any multiple of 2 elements are none, either; the
// phase writes the array; halves share nothing, of which nothing is said; a matmul reads what is loaded as it is.
// CHECK-LABEL: pk.kernel @kept
// CHECK-NOT:   pk.window
// CHECK:       remark: {{.*}}pk.load: what is loaded of `A` is no part of a tile that TMA loads: rows of the array begin at no multiple of 16 bytes, and TMA moves such alone [pk-load-windows]
// CHECK:       remark: {{.*}}pk.load: what is loaded of `B` is no part of a tile that TMA loads: their blocks may begin where no multiple of 16 bytes is, which TMA needs [pk-load-windows]
// CHECK:       remark: {{.*}}pk.load: what is loaded of `E` is no part of a tile that TMA loads: a tile with all of them has 73728 bytes, and stages have room for 65536 [pk-load-windows]
// CHECK-NOT:   remark
pk.kernel @kept(%A: !pk.private<[M, 17], f32> {pk.name = "A"}, %B: !pk.private<[M, N], f32> {pk.name = "B"}, %C: !pk.private<[M, N], f32> {pk.name = "C"}, %D: !pk.private<[M, N], f32> {pk.name = "D"}, %E: !pk.private<[M, N], f32> {pk.name = "E"}, %Y: !pk.private<[M, N], f32> {pk.name = "Y"}) {
  %counts = pk.block_count <M by 8>
  %many = pk.block_count <N by 64>
  pk.tasks (%i, %j) in (%counts, %many) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %half = arith.constant 32 : index
    %m = pk.block[%i] : !pk.block<M by 8>
    %n = pk.block[%j] : !pk.block<N by 64>
    %below = pk.block[%i] from %one {shifted = !pk.block<M by 8>} : !pk.block<M by 8>
    %all = pk.block[%zero] : !pk.block<17 by 16>
    %a0 = pk.load %A[%m, %all : !pk.block<M by 8>, !pk.block<17 by 16>] : !pk.private<[M, 17], f32> -> !pk.tile<8x16xf32>
    %a1 = pk.load %A[%below, %all : !pk.block<M by 8>, !pk.block<17 by 16>] : !pk.private<[M, 17], f32> -> !pk.tile<8x16xf32>
    %twice = arith.muli %j, %two : index
    %any = pk.block[%zero] from %twice : !pk.block<N by 64>
    %b0 = pk.load %B[%m, %any : !pk.block<M by 8>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<8x64xf32>
    %b1 = pk.load %B[%below, %any : !pk.block<M by 8>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<8x64xf32>
    %c0 = pk.load %C[%m, %n : !pk.block<M by 8>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<8x64xf32>
    %c1 = pk.load %C[%below, %n : !pk.block<M by 8>, !pk.block<N by 64>] : !pk.private<[M, N], f32> -> !pk.tile<8x64xf32>
    %b = pk.add %b0, %b1 : !pk.tile<8x64xf32>
    pk.store %b, %C[%m, %n : !pk.block<M by 8>, !pk.block<N by 64>] : !pk.tile<8x64xf32>, !pk.private<[M, N], f32>
    %first = pk.block[%j] : !pk.block<N by 32>
    %second = pk.block[%j] from %half : !pk.block<N by 32>
    %d0 = pk.load %D[%m, %first : !pk.block<M by 8>, !pk.block<N by 32>] : !pk.private<[M, N], f32> -> !pk.tile<8x32xf32>
    %d1 = pk.load %D[%m, %second : !pk.block<M by 8>, !pk.block<N by 32>] : !pk.private<[M, N], f32> -> !pk.tile<8x32xf32>
    %sixteen = arith.constant 16 : index
    %large = pk.block[%i] : !pk.block<M by 128>
    %larger = pk.block[%i] from %sixteen : !pk.block<M by 128>
    %wide = pk.block[%j] : !pk.block<N by 128>
    %e0 = pk.load %E[%large, %wide : !pk.block<M by 128>, !pk.block<N by 128>] : !pk.private<[M, N], f32> -> !pk.tile<128x128xf32>
    %e1 = pk.load %E[%larger, %wide : !pk.block<M by 128>, !pk.block<N by 128>] : !pk.private<[M, N], f32> -> !pk.tile<128x128xf32>
  }
}
