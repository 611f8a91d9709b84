// Tasks of uneven length come longest first.
// RUN: pkc-opt %s -p pk-balance-tasks --split-input-file --remarks | filecheck %s

// The loop grows with the last index: that goes downwards, in bands of rows.
// CHECK-LABEL: pk.kernel @grows
// CHECK: pk.tasks (%h, %i) in (%heads, %blocks) attributes {raster = 8 : i64, longest_first} {
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[LAST:.*]] = arith.subi %blocks, %[[ONE]] : index
// CHECK-NEXT: %[[BACK:.*]] = arith.subi %[[LAST]], %i : index
// CHECK-NEXT: pk.block[%[[BACK]]] : !pk.block<S by 16>
pk.kernel @grows(%X: !pk.private<[H, S], f32> {pk.name = "X"}) {
  %heads = pk.dim "H"
  %blocks = pk.block_count <S by 16>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  pk.tasks (%h, %i) in (%heads, %blocks) {
    %q = pk.block[%i] : !pk.block<S by 16>
    %end = pk.block_position %q : !pk.block<S by 16>
    %count = pk.block_count <S by 16> to %end
    scf.for %k = %zero to %count step %one {
    }
  }
}

// -----

// It falls: the order is right, and bands let tasks of one length come together. One index has no rows.
// CHECK-LABEL: pk.kernel @falls
// CHECK: pk.tasks (%h, %i) in (%heads, %blocks) attributes {raster = 8 : i64, longest_first} {
// CHECK-NEXT: pk.block[%i] : !pk.block<S by 16>
// CHECK: pk.tasks (%i_1) in (%blocks) attributes {longest_first} {
// CHECK-NEXT: pk.block[%i_1] : !pk.block<S by 16>
pk.kernel @falls(%X: !pk.private<[H, S], f32> {pk.name = "X"}) {
  %heads = pk.dim "H"
  %blocks = pk.block_count <S by 16>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  pk.tasks (%h, %i) in (%heads, %blocks) {
    %q = pk.block[%i] : !pk.block<S by 16>
    %start = pk.block_position %q : !pk.block<S by 16>
    %count = pk.block_count <S by 16> from %start
    scf.for %k = %zero to %count step %one {
    }
  }
  pk.tasks (%i) in (%blocks) {
    %q = pk.block[%i] : !pk.block<S by 16>
    %start = pk.block_position %q : !pk.block<S by 16>
    %count = pk.block_count <S by 16> from %start
    scf.for %k = %zero to %count step %one {
    }
  }
}

// -----

// Even tasks stay; of uneven ones, those that grow with another index, or that are numbered already, with a remark.
// CHECK-LABEL: pk.kernel @left
// CHECK: pk.tasks (%h, %i) in (%heads, %blocks) {
// CHECK: pk.tasks (%i_1, %h_1) in (%blocks, %heads) {
// CHECK: pk.tasks (%h_2, %i_2) in (%heads, %blocks) attributes {raster = 4 : i64} {
// CHECK: tasks of uneven length do not come longest first: it is not known to grow or to fall with the last index alone
// CHECK: tasks of uneven length do not come longest first: an earlier pass has numbered them
pk.kernel @left(%X: !pk.private<[H, S], f32> {pk.name = "X"}) {
  %heads = pk.dim "H"
  %blocks = pk.block_count <S by 16>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  pk.tasks (%h, %i) in (%heads, %blocks) {
    scf.for %k = %zero to %blocks step %one {
    }
  }
  pk.tasks (%i, %h) in (%blocks, %heads) {
    scf.for %k = %zero to %i step %one {
    }
  }
  pk.tasks (%h, %i) in (%heads, %blocks) attributes {raster = 4 : i64} {
    scf.for %k = %zero to %i step %one {
    }
  }
}

// -----

// Tasks in tasks.
// CHECK-LABEL: pk.kernel @inside
// CHECK: pk.tasks (%e) in (%lists) {
// CHECK: pk.tasks (%h, %i) in (%heads, %blocks) attributes {raster = 8 : i64, longest_first} {
pk.kernel @inside(%X: !pk.private<[E, H, S], f32> {pk.name = "X"}, %count: !pk.private<[E], i32> {pk.name = "count"}) {
  %lists = pk.dim "E"
  %heads = pk.dim "H"
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  pk.tasks (%e) in (%lists) {
    %end = pk.read %count[%e] : !pk.private<[E], i32>
    %blocks = pk.block_count <S by 16> to %end
    pk.tasks (%h, %i) in (%heads, %blocks) {
      scf.for %k = %zero to %i step %one {
      }
    }
  }
}
