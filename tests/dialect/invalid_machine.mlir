// Operations of the machine level that do not verify.
// RUN: pkc-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect | filecheck %s

// An instruction that the target does not have.
// CHECK: invalid `pk.instruction`: no instruction `tma_load_6d` in the table
pk.kernel @k() {
  pk.instruction "tma_load_6d"() : () -> ()
}

// -----

// A shape that no tensor core instruction has.
// CHECK: invalid `pk.instruction`: no instruction `wgmma_n12_bf16_ss_kk` in the table
%acc = pk.registers : !pk.registers<6xf32>
%d = "t.v"() : () -> i64
%1 = arith.constant 1 : index
pk.instruction "wgmma_n12_bf16_ss_kk"(%acc, %d, %d, %1) : (!pk.registers<6xf32>, i64, i64, index) -> ()

// -----

// 8-bit elements, which the tensor cores take with the contracted dimension innermost only.
// CHECK: invalid `pk.instruction`: no instruction `wgmma_n8_e4m3_ss_kn` in the table
pk.instruction "wgmma_n8_e4m3_ss_kn"() : () -> ()

// -----

// A from registers has one order of elements.
// CHECK: invalid `pk.instruction`: no instruction `wgmma_n8_bf16_rs_mk` in the table
pk.instruction "wgmma_n8_bf16_rs_mk"() : () -> ()

// -----

// Registers are given in eights.
// CHECK: invalid `pk.instruction`: no instruction `setmaxnreg_dec_41` in the table
pk.instruction "setmaxnreg_dec_41"() : () -> ()

// -----

// A CTA has sixteen barriers.
// CHECK: invalid `pk.instruction`: no instruction `sync_16_of_128` in the table
pk.instruction "sync_16_of_128"() : () -> ()

// -----

// Barriers count whole warps.
// CHECK: invalid `pk.instruction`: no instruction `sync_1_of_100` in the table
pk.instruction "sync_1_of_100"() : () -> ()

// -----

// An operand of another kind.
// CHECK: invalid `pk.instruction`: `mbarrier_arrive` takes (index)
%a = "t.v"() : () -> i64
pk.instruction "mbarrier_arrive"(%a) : (i64) -> ()

// -----

// Too few registers for the accumulator.
// CHECK: invalid `pk.instruction`: `wgmma_n16_bf16_ss_kk` takes (!pk.registers<8xf32>, i64, i64, index)
%acc = pk.registers : !pk.registers<4xf32>
%d = "t.v"() : () -> i64
%1 = arith.constant 1 : index
pk.instruction "wgmma_n16_bf16_ss_kk"(%acc, %d, %d, %1) : (!pk.registers<4xf32>, i64, i64, index) -> ()

// -----

// No result where there is one.
// CHECK: invalid `pk.instruction`: `warp_number` gives (index)
pk.instruction "warp_number"() : () -> ()

// -----

// A result where there is none.
// CHECK: invalid `pk.instruction`: `wgmma_commit` gives ()
%r = pk.instruction "wgmma_commit"() : () -> index

// -----

// No registers at all.
// CHECK: expected at least one register, got 0
%acc = pk.registers : !pk.registers<0xf32>

// -----

// Registers of a type that a thread does not compute with.
// CHECK: bf16 is not the type of a register
%acc = pk.registers : !pk.registers<4xbf16>

// -----

// A scalar is no registers.
// CHECK: invalid `pk.registers`
%acc = "pk.registers"() : () -> f32

// -----

// An element of another type.
// CHECK: invalid `pk.get`: f32 is not the type of registers !pk.registers<4xui32>
%0 = arith.constant 0 : index
%r = pk.registers : !pk.registers<4xui32>
%x = pk.get %r[%0] : !pk.registers<4xui32> -> f32

// -----

// One register too far.
// CHECK: invalid `pk.get`: there is no register 4 in !pk.registers<4xf32>
%4 = arith.constant 4 : index
%r = pk.registers : !pk.registers<4xf32>
%x = pk.get %r[%4] : !pk.registers<4xf32> -> f32

// -----

// A value of another type.
// CHECK: invalid `pk.set`: i32 is not the type of registers !pk.registers<4xf32>
%0 = arith.constant 0 : index
%v = arith.constant 0 : i32
%r = pk.registers : !pk.registers<4xf32>
pk.set %v, %r[%0] : i32, !pk.registers<4xf32>

// -----

// A register before the first.
// CHECK: invalid `pk.set`: there is no register -1 in !pk.registers<4xf32>
%before = arith.constant -1 : index
%v = arith.constant 0.0 : f32
%r = pk.registers : !pk.registers<4xf32>
pk.set %v, %r[%before] : f32, !pk.registers<4xf32>

// -----

// A subview longer than the registers that follow.
// CHECK: invalid `pk.subview`: !pk.registers<4xf32> from 5 is not a subview of !pk.registers<8xf32>
%r = pk.registers : !pk.registers<8xf32>
%p = pk.subview %r from 5 : !pk.registers<8xf32> -> !pk.registers<4xf32>

// -----

// The same registers under another type.
// CHECK: invalid `pk.subview`: !pk.registers<4xui32> from 0 is not a subview of !pk.registers<8xf32>
%r = pk.registers : !pk.registers<8xf32>
%p = pk.subview %r from 0 : !pk.registers<8xf32> -> !pk.registers<4xui32>

// -----

// Counters have no tensor map.
// CHECK: invalid `pk.tensor_map`: !pk.signal<[4]> has no elements
pk.kernel @k(%s: !pk.signal<[4]> {pk.name = "s"}) {
  %0 = arith.constant 0 : index
  %m = pk.tensor_map %s last %0 box [4] swizzle 0 : !pk.signal<[4]>
}

// -----

// A box without the coordinate of the rank.
// CHECK: invalid `pk.tensor_map`: expected a box of 3 dimensions, at most 5
pk.kernel @k(%X: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "X"}) {
  %0 = arith.constant 0 : index
  %m = pk.tensor_map %X last %0 box [64, 64] swizzle 128 split 0 : !pk.pgl<[M, N], bf16, shard 0>
}

// -----

// An array in the heap has the rank as a dimension of its map, so one of five has six.
// CHECK: invalid `pk.tensor_map`: expected a box of 6 dimensions, at most 5
pk.kernel @k(%X: !pk.pgl<[A, B, C, M, N], bf16, symmetric> {pk.name = "X"}) {
  %0 = arith.constant 0 : index
  %m = pk.tensor_map %X last %0 box [64, 64, 1, 1, 1, 1] swizzle 128 : !pk.pgl<[A, B, C, M, N], bf16, symmetric>
}

// -----

// A box longer than TMA takes.
// CHECK: invalid `pk.tensor_map`: a box has 1 to 256 elements in each dimension
pk.kernel @k(%X: !pk.private<[M, N], f32> {pk.name = "X"}) {
  %0 = arith.constant 0 : index
  %m = pk.tensor_map %X last %0 box [32, 512] swizzle 128 : !pk.private<[M, N], f32>
}

// -----

// A swizzle that no target has.
// CHECK: invalid `pk.tensor_map`: no swizzle of 96 bytes, only of 0, 32, 64, 128
pk.kernel @k(%X: !pk.private<[M, N], f32> {pk.name = "X"}) {
  %0 = arith.constant 0 : index
  %m = pk.tensor_map %X last %0 box [24, 64] swizzle 96 : !pk.private<[M, N], f32>
}

// -----

// Rows that the swizzle does not reach around.
// CHECK: invalid `pk.tensor_map`: the rows of the box are longer than the 128 bytes of the swizzle
pk.kernel @k(%X: !pk.private<[M, N], f32> {pk.name = "X"}) {
  %0 = arith.constant 0 : index
  %m = pk.tensor_map %X last %0 box [64, 64] swizzle 128 : !pk.private<[M, N], f32>
}

// -----

// Split along a dimension that is not there.
// CHECK: invalid `pk.tensor_map`: the array has no dimension 2
pk.kernel @k(%X: !pk.private<[M, N], f32> {pk.name = "X"}) {
  %0 = arith.constant 0 : index
  %m = pk.tensor_map %X last %0 box [32, 64, 1] swizzle 128 split 2 : !pk.private<[M, N], f32>
}

// -----

// The address of a number.
// CHECK: invalid `pk.address`
pk.kernel @k(%x: f32 {pk.name = "x"}) {
  %a = "pk.address"(%x) : (f32) -> i64
}

// -----

// A launch has nothing of this name.
// CHECK: invalid `pk.launch_value`: a launch has heap_stride, epochs and alarm, no `grid`
%g = pk.launch_value "grid"

// -----

// A comment that would swallow the next line of the generated code.
// CHECK: invalid `pk.comment`: a comment is one line of text, and does not end in a backslash
pk.comment "C:\\"

// -----

// A comment of two lines.
// CHECK: invalid `pk.comment`: a comment is one line of text, and does not end in a backslash
pk.comment "one\ntwo"
