// Accesses to memory and signals that do not verify.
// RUN: pkc-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect | filecheck %s

// One index too few.
// CHECK: invalid `pk.read`: expected 2 indices, one for each dimension, got 1
%a, %b = "t.v"() : () -> (!pk.private<[M, N], i32>, index)
%r = pk.read %a[%b] : !pk.private<[M, N], i32>

// -----

// A rank for a private array.
// CHECK: invalid `pk.read`: only an array of which each rank has a copy is addressed by rank
%a, %b = "t.v"() : () -> (!pk.private<[M], i32>, index)
%r = pk.read %a at %b[%b] : !pk.private<[M], i32>

// -----

// Not an integer.
// CHECK: invalid `pk.read`: expected an array of i32, got !pk.private<[M], f32>
%a, %b = "t.v"() : () -> (!pk.private<[M], f32>, index)
%r = pk.read %a[%b] : !pk.private<[M], f32>

// -----

// Blocks in the wrong order.
// CHECK: invalid `pk.load`: a block of dimension N cannot index dimension M
%a, %b, %c = "t.v"() : () -> (!pk.private<[M, N], f32>, !pk.block<M by 8>, !pk.block<N by 16>)
%r = pk.load %a[%c, %b : !pk.block<N by 16>, !pk.block<M by 8>] : !pk.private<[M, N], f32> -> !pk.tile<16x8xf32>

// -----

// A tile of another shape.
// CHECK: invalid `pk.load`: expected a tile of type !pk.tile<8x16xf32>, got !pk.tile<8x8xf32>
%a, %b, %c = "t.v"() : () -> (!pk.private<[M, N], f32>, !pk.block<M by 8>, !pk.block<N by 16>)
%r = pk.load %a[%b, %c : !pk.block<M by 8>, !pk.block<N by 16>] : !pk.private<[M, N], f32> -> !pk.tile<8x8xf32>

// -----

// The local shard of an array is in a sharded array like it.
// CHECK: invalid `pk.load`: `local` is a sharded array like !pk.private<[M, N], f32>, not !pk.pgl<[M, N], f32, replicate>
%a, %b, %c, %d = "t.v"() : () -> (!pk.private<[M, N], f32>, !pk.block<M by 8>, !pk.block<N by 16>, !pk.pgl<[M, N], f32, replicate>)
%r = pk.load %a local %d : !pk.pgl<[M, N], f32, replicate>[%b, %c : !pk.block<M by 8>, !pk.block<N by 16>] : !pk.private<[M, N], f32> -> !pk.tile<8x16xf32>

// -----

// CHECK: invalid `pk.load`: `local` is a sharded array like !pk.private<[M, N], f32>, not !pk.pgl<[N, M], f32, shard 0>
%a, %b, %c, %d = "t.v"() : () -> (!pk.private<[M, N], f32>, !pk.block<M by 8>, !pk.block<N by 16>, !pk.pgl<[N, M], f32, shard 0>)
%r = pk.load %a local %d : !pk.pgl<[N, M], f32, shard 0>[%b, %c : !pk.block<M by 8>, !pk.block<N by 16>] : !pk.private<[M, N], f32> -> !pk.tile<8x16xf32>

// -----

// A sharded array has one owner of each element.
// CHECK: invalid `pk.load`: only an array of which each rank has a copy is addressed by rank
%a, %b, %c, %d = "t.v"() : () -> (!pk.pgl<[M, N], f32, shard 0>, !pk.block<M by 8>, !pk.block<N by 16>, index)
%r = pk.load %a at %d[%b, %c : !pk.block<M by 8>, !pk.block<N by 16>] : !pk.pgl<[M, N], f32, shard 0> -> !pk.tile<8x16xf32>

// -----

// Rows of floats.
// CHECK: invalid `pk.gather`: expected i32 rows with one axis, got !pk.tile<8xf32>
%a, %b, %c = "t.v"() : () -> (!pk.private<[M, N], f32>, !pk.tile<8xf32>, !pk.block<N by 16>)
%r = pk.gather %a rows %b[%c : !pk.block<N by 16>] : !pk.private<[M, N], f32>, !pk.tile<8xf32> -> !pk.tile<8x16xf32>

// -----

// A symmetric array is gathered by (rank, row).
// CHECK: invalid `pk.gather`: expected i32 rows with axes (p, 2), got !pk.tile<8xi32>
%a, %b, %c = "t.v"() : () -> (!pk.pgl<[M, N], f32, symmetric>, !pk.tile<8xi32>, !pk.block<N by 16>)
%r = pk.gather %a rows %b[%c : !pk.block<N by 16>] : !pk.pgl<[M, N], f32, symmetric>, !pk.tile<8xi32> -> !pk.tile<8x16xf32>

// -----

// The first dimension is not indexed.
// CHECK: invalid `pk.gather`: expected 1 indices, one for each dimension, got 2
%a, %b, %c, %d = "t.v"() : () -> (!pk.private<[M, N], f32>, !pk.tile<8xi32>, !pk.block<M by 8>, !pk.block<N by 16>)
%r = pk.gather %a rows %b[%c, %d : !pk.block<M by 8>, !pk.block<N by 16>] : !pk.private<[M, N], f32>, !pk.tile<8xi32> -> !pk.tile<8x16xf32>

// -----

// Two places go along one axis.
// CHECK: invalid `pk.gather`: axis 0 has 8 elements, and 16
%a, %b, %c = "t.v"() : () -> (!pk.private<[M, N], f32>, !pk.tile<8xi32>, !pk.block<N by 16>)
%r = pk.gather %a rows %b dim 0 axes [0, 0][%c : !pk.block<N by 16>] : !pk.private<[M, N], f32>, !pk.tile<8xi32> -> !pk.tile<8xf32>

// -----

// One of two places has no axis.
// CHECK: invalid `pk.gather`: expected an axis for each of those of 2 places, got 1
%a, %b, %c = "t.v"() : () -> (!pk.private<[M, N], f32>, !pk.tile<8xi32>, !pk.block<N by 16>)
%r = pk.gather %a rows %b dim 0 axes [0][%c : !pk.block<N by 16>] : !pk.private<[M, N], f32>, !pk.tile<8xi32> -> !pk.tile<8xf32>

// -----

// An axis of the result is that of no place.
// CHECK: invalid `pk.gather`: expected all axes of a tile, got [0, 2]
%a, %b, %c = "t.v"() : () -> (!pk.private<[M, N], f32>, !pk.tile<8xi32>, !pk.block<N by 16>)
%r = pk.gather %a rows %b dim 0 axes [0, 2][%c : !pk.block<N by 16>] : !pk.private<[M, N], f32>, !pk.tile<8xi32> -> !pk.tile<8x16xf32>

// -----

// Rows of two arrays have one table.
// CHECK: invalid `pk.gather`: tables along any dimension pick from one array
%a, %l, %b, %c = "t.v"() : () -> (!pk.private<[M, N], f32>, !pk.pgl<[M, N], f32, shard 0>, !pk.tile<8xi32>, !pk.block<M by 16>)
%r = pk.gather %a local %l : !pk.pgl<[M, N], f32, shard 0> rows %b dim 1 axes [0, 1][%c : !pk.block<M by 16>] : !pk.private<[M, N], f32>, !pk.tile<8xi32> -> !pk.tile<16x8xf32>

// -----

// Only copies can be summed.
// CHECK: invalid `pk.reduce`: expected a symmetric array, got !pk.pgl<[M, N], f32, replicate>
%a, %b, %c = "t.v"() : () -> (!pk.pgl<[M, N], f32, replicate>, !pk.block<M by 8>, !pk.block<N by 16>)
%r = pk.reduce %a[%b, %c : !pk.block<M by 8>, !pk.block<N by 16>] : !pk.pgl<[M, N], f32, replicate> -> !pk.tile<8x16xf32>

// -----

// The sum is f32.
// CHECK: invalid `pk.reduce`: expected a tile of type !pk.tile<8xf32>, got !pk.tile<8xbf16>
%a, %b = "t.v"() : () -> (!pk.pgl<[M], bf16, symmetric>, !pk.block<M by 8>)
%r = pk.reduce %a[%b : !pk.block<M by 8>] : !pk.pgl<[M], bf16, symmetric> -> !pk.tile<8xbf16>

// -----

// A tile of another type.
// CHECK: invalid `pk.store`: expected a tile of type !pk.tile<8x16xf32>, got !pk.tile<8x16xbf16>
%a, %b, %c, %d = "t.v"() : () -> (!pk.private<[M, N], f32>, !pk.block<M by 8>, !pk.block<N by 16>, !pk.tile<8x16xbf16>)
pk.store %d, %a[%b, %c : !pk.block<M by 8>, !pk.block<N by 16>] : !pk.tile<8x16xbf16>, !pk.private<[M, N], f32>

// -----

// A sharded array is stored at its owner.
// CHECK: invalid `pk.store`: only an array of which each rank has a copy is addressed by rank
%a, %b, %c, %d, %e = "t.v"() : () -> (!pk.pgl<[M, N], f32, shard 0>, !pk.block<M by 8>, !pk.block<N by 16>, !pk.tile<8x16xf32>, index)
pk.store %d, %a at %e[%b, %c : !pk.block<M by 8>, !pk.block<N by 16>] : !pk.tile<8x16xf32>, !pk.pgl<[M, N], f32, shard 0>

// -----

// Added to a sharded array.
// CHECK: invalid `pk.store_add`: expected a symmetric array, got !pk.pgl<[M, N], f32, shard 0>
%a, %b, %c, %d = "t.v"() : () -> (!pk.pgl<[M, N], f32, shard 0>, !pk.block<M by 8>, !pk.block<N by 16>, !pk.tile<8x16xf32>)
pk.store_add %d, %a[%b, %c : !pk.block<M by 8>, !pk.block<N by 16>] : !pk.tile<8x16xf32>, !pk.pgl<[M, N], f32, shard 0>

// -----

// Summed over ranks into a private array.
// CHECK: invalid `pk.accumulate`: a sum over ranks goes to a sharded or replicated array, got !pk.private<[M, N], f32>
%a, %b, %c, %d = "t.v"() : () -> (!pk.private<[M, N], f32>, !pk.block<M by 8>, !pk.block<N by 16>, !pk.tile<8x16xf32>)
pk.accumulate %d, %a[%b, %c : !pk.block<M by 8>, !pk.block<N by 16>] : !pk.tile<8x16xf32>, !pk.private<[M, N], f32>

// -----

// Summed over ranks into copies.
// CHECK: invalid `pk.scatter_accumulate`: a sum over ranks goes to a sharded or replicated array, got !pk.pgl<[M, N], f32, symmetric>
%a, %b, %c, %d = "t.v"() : () -> (!pk.pgl<[M, N], f32, symmetric>, !pk.tile<8xi32>, !pk.block<N by 16>, !pk.tile<8x16xf32>)
pk.scatter_accumulate %d, %a rows %b[%c : !pk.block<N by 16>] : !pk.tile<8x16xf32>, !pk.pgl<[M, N], f32, symmetric>, !pk.tile<8xi32>

// -----

// Rows with two axes.
// CHECK: invalid `pk.scatter_accumulate`: expected i32 rows with one axis, got !pk.tile<8x2xi32>
%a, %b, %c, %d = "t.v"() : () -> (!pk.pgl<[M, N], f32, shard 0>, !pk.tile<8x2xi32>, !pk.block<N by 16>, !pk.tile<8x16xf32>)
pk.scatter_accumulate %d, %a rows %b[%c : !pk.block<N by 16>] : !pk.tile<8x16xf32>, !pk.pgl<[M, N], f32, shard 0>, !pk.tile<8x2xi32>

// -----

// Already one array.
// CHECK: invalid `pk.all_reduce`: expected a symmetric array, got !pk.pgl<[M, N], f32, shard 0>
%a, %b, %c = "t.v"() : () -> (!pk.pgl<[M, N], f32, shard 0>, !pk.block<M by 8>, !pk.block<N by 16>)
pk.all_reduce %a[%b, %c : !pk.block<M by 8>, !pk.block<N by 16>] : !pk.pgl<[M, N], f32, shard 0>

// -----

// One index too few.
// CHECK: invalid `pk.signal`: expected 2 indices, one for each dimension, got 1
%a, %b = "t.v"() : () -> (!pk.signal<[ranks, 2]>, index)
pk.signal %a at %b[%b] by %b : !pk.signal<[ranks, 2]>

// -----

// One index too many.
// CHECK: invalid `pk.signal_all`: expected 2 indices, one for each dimension, got 3
%a, %b = "t.v"() : () -> (!pk.signal<[ranks, 2]>, index)
pk.signal_all %a[%b, %b, %b] by %b : !pk.signal<[ranks, 2]>

// -----

// One index too few.
// CHECK: invalid `pk.wait`: expected 2 indices, one for each dimension, got 1
%a, %b = "t.v"() : () -> (!pk.signal<[ranks, 2]>, index)
pk.wait %a[%b] for %b : !pk.signal<[ranks, 2]>

// -----

// No index.
// CHECK: invalid `pk.barrier`: expected 2 indices, one for each dimension, got 0
%a = "t.v"() : () -> (!pk.signal<[ranks, 2]>)
pk.barrier %a[] : !pk.signal<[ranks, 2]>

// -----

// A wait is on a signal.
// CHECK: invalid `pk.wait`: !pk.private<[M, N], f32> should be of base attribute pk.signal
%a, %b = "t.v"() : () -> (!pk.private<[M, N], f32>, index)
"pk.wait"(%b, %a, %b) <{operandSegmentSizes = array<i32: 1, 0, 1, 1>}> : (index, !pk.private<[M, N], f32>, index) -> ()

// -----

// A signal has one of the known orders.
// CHECK: invalid `pk.raise`: order is one of release_gpu, release_sys, relaxed_sys, in_packets, not "release_cta"
pk.kernel @k(%ready: !pk.signal<[1]> {pk.name = "ready"}) {
  %r = pk.rank
  pk.raise %ready at %r[%r] to %r {order = "release_cta"} : !pk.signal<[1]>
}

// -----

// A copy of another shape.
// CHECK: invalid `pk.copy`: the boxes of a copy have the same axes, in the same order
%a, %b, %c = "t.v"() : () -> (!pk.private<[M, N], f32>, !pk.private<[N, M], f32>, !pk.block<M by 8>)
pk.copy %a[%c : !pk.block<M by 8>] along [0] to %b[%c : !pk.block<M by 8>] along [1] : !pk.private<[M, N], f32> to !pk.private<[N, M], f32>

// -----

// A copy into another element type.
// CHECK: invalid `pk.copy`: a copy keeps the element type
%a, %b, %c = "t.v"() : () -> (!pk.private<[M], f32>, !pk.private<[M], bf16>, !pk.block<M by 8>)
pk.copy %a[%c : !pk.block<M by 8>] along [0] to %b[%c : !pk.block<M by 8>] along [0] : !pk.private<[M], f32> to !pk.private<[M], bf16>

// -----

// A copy from several ranks.
// CHECK: invalid `pk.copy`: a box lies on one rank: it has an index for the sharded dimension
%a, %b, %c = "t.v"() : () -> (!pk.pgl<[M, N], f32, shard 1>, !pk.private<[M, N], f32>, !pk.block<M by 8>)
pk.copy %a[%c : !pk.block<M by 8>] along [0] to %b[%c : !pk.block<M by 8>] along [0] : !pk.pgl<[M, N], f32, shard 1> to !pk.private<[M, N], f32>

// -----

// A box with an index for a dimension that is not there.
// CHECK: invalid `pk.copy`: each index of a box has its dimension, in ascending order
%a, %c = "t.v"() : () -> (!pk.private<[M], f32>, !pk.block<M by 8>)
pk.copy %a[%c : !pk.block<M by 8>] along [1] to %a[%c : !pk.block<M by 8>] along [0] : !pk.private<[M], f32> to !pk.private<[M], f32>

// -----

// A block of another dimension.
// CHECK: invalid `pk.copy`: a block of dimension N cannot index dimension M
%a, %c = "t.v"() : () -> (!pk.private<[M], f32>, !pk.block<N by 8>)
pk.copy %a[%c : !pk.block<N by 8>] along [0] to %a[%c : !pk.block<N by 8>] along [0] : !pk.private<[M], f32> to !pk.private<[M], f32>

// -----

// Additions in no order to a private array.
// CHECK: invalid `pk.atomic_add`: a sum over ranks goes to a sharded or replicated array
%a, %b, %c = "t.v"() : () -> (!pk.private<[M], f32>, !pk.block<M by 8>, !pk.tile<8xf32>)
pk.atomic_add %c, %a[%b : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>

// -----

// A tile without the axes of the table.
// CHECK: invalid `pk.scatter_store`: expected a tile of type !pk.tile<4x8xf32>, got !pk.tile<4xf32>
%a, %b, %c, %d = "t.v"() : () -> (!pk.private<[M, N], f32>, !pk.block<M by 4>, !pk.tile<4xf32>, !pk.tile<8xi32>)
pk.scatter_store %c, %a rows %d dim 1 axes [0, 1][%b : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M, N], f32>, !pk.tile<8xi32>

// -----

// Additions at once to what ranks share.
// CHECK: invalid `pk.scatter_store_add`: expected a symmetric array, got !pk.pgl<[M], f32, shard 0>
%a, %b, %c = "t.v"() : () -> (!pk.pgl<[M], f32, shard 0>, !pk.tile<8xi32>, !pk.tile<8xf32>)
pk.scatter_store_add %c, %a rows %b[:] : !pk.tile<8xf32>, !pk.pgl<[M], f32, shard 0>, !pk.tile<8xi32>

// -----

// Scattered additions by a table of floats.
// CHECK: invalid `pk.scatter_add`: expected i32 rows with one axis
%a, %b, %c = "t.v"() : () -> (!pk.pgl<[M, N], f32, shard 0>, !pk.block<N by 8>, !pk.tile<4x8xf32>)
%d = pk.full 0.0 : f32 : !pk.tile<4xf32>
pk.scatter_add %c, %a rows %d[%b : !pk.block<N by 8>] : !pk.tile<4x8xf32>, !pk.pgl<[M, N], f32, shard 0>, !pk.tile<4xf32>

// -----

// A table of one rank.
// CHECK: invalid `pk.invert`: expected a table of all ranks, i32 [ranks, ...] replicated, got !pk.pgl<[P], i32, replicate>
%a, %b, %c, %d, %e = "t.v"() : () -> (!pk.pgl<[P], i32, replicate>, !pk.pgl<[T, N], f32, shard 0>, !pk.block<T by 64>, !pk.private<[T, 10], i32>, !pk.private<[P], i32>)
pk.invert %a of %b[%c] to %d, %e : !pk.pgl<[P], i32, replicate>, !pk.pgl<[T, N], f32, shard 0>, !pk.block<T by 64>, !pk.private<[T, 10], i32>, !pk.private<[P], i32>

// -----

// Lists of fewer entries than the table has.
// CHECK: invalid `pk.invert`: `order` has a place for each entry of the table
%a, %b, %c, %d, %e = "t.v"() : () -> (!pk.pgl<[ranks, E, P], i32, replicate>, !pk.pgl<[T, N], f32, shard 0>, !pk.block<T by 64>, !pk.private<[T, 10], i32>, !pk.private<[ranks, P], i32>)
pk.invert %a of %b[%c] to %d, %e : !pk.pgl<[ranks, E, P], i32, replicate>, !pk.pgl<[T, N], f32, shard 0>, !pk.block<T by 64>, !pk.private<[T, 10], i32>, !pk.private<[ranks, P], i32>

// -----

// Blocks of columns are inverted.
// CHECK: invalid `pk.invert`: expected a block of T, got !pk.block<N by 64>
%a, %b, %c, %d, %e = "t.v"() : () -> (!pk.pgl<[ranks, P], i32, replicate>, !pk.pgl<[T, N], f32, shard 0>, !pk.block<N by 64>, !pk.private<[T, 10], i32>, !pk.private<[ranks, P], i32>)
pk.invert %a of %b[%c] to %d, %e : !pk.pgl<[ranks, P], i32, replicate>, !pk.pgl<[T, N], f32, shard 0>, !pk.block<N by 64>, !pk.private<[T, 10], i32>, !pk.private<[ranks, P], i32>

// -----

// A list that begins and ends nowhere.
// CHECK: invalid `pk.sum_rows`: expected i32 bounds of each row of the array, got !pk.private<[T], i32>
%a, %b, %c, %d, %e, %f = "t.v"() : () -> (!pk.pgl<[P, N], f32, symmetric>, !pk.private<[T], i32>, !pk.private<[ranks, P], i32>, !pk.pgl<[T, N], f32, shard 0>, !pk.block<T by 32>, !pk.block<N by 16>)
pk.sum_rows %a by %b, %c to %d[%e, %f : !pk.block<T by 32>, !pk.block<N by 16>] : !pk.pgl<[P, N], f32, symmetric>, !pk.private<[T], i32>, !pk.private<[ranks, P], i32>, !pk.pgl<[T, N], f32, shard 0>

// -----

// A list of this rank's entries alone.
// CHECK: invalid `pk.sum_rows`: expected the numbers of entries, i32 [ranks, ...], got !pk.private<[P], i32>
%a, %b, %c, %d, %e, %f = "t.v"() : () -> (!pk.pgl<[P, N], f32, symmetric>, !pk.private<[T, 10], i32>, !pk.private<[P], i32>, !pk.pgl<[T, N], f32, shard 0>, !pk.block<T by 32>, !pk.block<N by 16>)
pk.sum_rows %a by %b, %c to %d[%e, %f : !pk.block<T by 32>, !pk.block<N by 16>] : !pk.pgl<[P, N], f32, symmetric>, !pk.private<[T, 10], i32>, !pk.private<[P], i32>, !pk.pgl<[T, N], f32, shard 0>

// -----

// One row.
// CHECK: invalid `pk.sum_rows`: the rows that are summed are those of a block
%a, %b, %c, %d, %e, %f = "t.v"() : () -> (!pk.pgl<[P, N], f32, symmetric>, !pk.private<[T, 10], i32>, !pk.private<[ranks, P], i32>, !pk.pgl<[T, N], f32, shard 0>, index, !pk.block<N by 16>)
pk.sum_rows %a by %b, %c to %d[%e, %f : index, !pk.block<N by 16>] : !pk.pgl<[P, N], f32, symmetric>, !pk.private<[T, 10], i32>, !pk.private<[ranks, P], i32>, !pk.pgl<[T, N], f32, shard 0>

// -----

// Slots of another table.
// CHECK: invalid `pk.sum_rows`: expected a symmetric array of [P, N] of f32, got !pk.pgl<[R, N], f32, symmetric>
%a, %b, %c, %d, %e, %f = "t.v"() : () -> (!pk.pgl<[R, N], f32, symmetric>, !pk.private<[T, 10], i32>, !pk.private<[ranks, P], i32>, !pk.pgl<[T, N], f32, shard 0>, !pk.block<T by 32>, !pk.block<N by 16>)
pk.sum_rows %a by %b, %c to %d[%e, %f : !pk.block<T by 32>, !pk.block<N by 16>] : !pk.pgl<[R, N], f32, symmetric>, !pk.private<[T, 10], i32>, !pk.private<[ranks, P], i32>, !pk.pgl<[T, N], f32, shard 0>

// -----

// What is reset are counters.
// CHECK: invalid `pk.reset`
%a = "t.v"() : () -> (!pk.private<[M], f32>)
"pk.reset"(%a) : (!pk.private<[M], f32>) -> ()

// -----

// Groups of no tiles.
// CHECK: invalid `pk.fetch`: `spread` and `group` are positive, or left out
pk.kernel @k(%a: !pk.pgl<[M], f32, shard 0> {pk.name = "a"}, %l: !pk.private<[M], f32> {pk.name = "l", pk.scratch}, %s: !pk.signal<[1]> {pk.name = "s"}) {
  %i = arith.constant 0 : index
  %m = pk.block[%i] sharded : !pk.block<M by 8>
  %t = pk.load %a[%m : !pk.block<M by 8>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<8xf32>
  %f = pk.fetch %t into %l[%m : !pk.block<M by 8>] ready %s group 0 : !pk.private<[M], f32>, !pk.signal<[1]>, !pk.tile<8xf32> -> !pk.tile<8xf32>
}

// -----

// Two fetches with one counter and different decisions.
// CHECK: invalid `pk.fetch`: fetches with one counter have the same `local`, `spread`, `group` and `visited`
pk.kernel @k(%a: !pk.pgl<[M], f32, shard 0> {pk.name = "a"}, %l: !pk.private<[M], f32> {pk.name = "l", pk.scratch}, %s: !pk.signal<[1]> {pk.name = "s"}) {
  %i = arith.constant 0 : index
  %m = pk.block[%i] sharded : !pk.block<M by 8>
  %t = pk.load %a[%m : !pk.block<M by 8>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<8xf32>
  %f = pk.fetch %t into %l[%m : !pk.block<M by 8>] ready %s : !pk.private<[M], f32>, !pk.signal<[1]>, !pk.tile<8xf32> -> !pk.tile<8xf32>
  %g = pk.fetch %t into %l[%m : !pk.block<M by 8>] ready %s local : !pk.private<[M], f32>, !pk.signal<[1]>, !pk.tile<8xf32> -> !pk.tile<8xf32>
}

// -----

// A tile that is computed.
// CHECK: invalid `pk.fetch`: the tile of a fetch is the result of a load or gather
pk.kernel @k(%a: !pk.pgl<[M], f32, shard 0> {pk.name = "a"}, %l: !pk.private<[M], f32> {pk.name = "l", pk.scratch}, %s: !pk.signal<[1]> {pk.name = "s"}) {
  %i = arith.constant 0 : index
  %m = pk.block[%i] sharded : !pk.block<M by 8>
  %t = pk.load %a[%m : !pk.block<M by 8>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<8xf32>
  %u = pk.neg %t : !pk.tile<8xf32>
  %f = pk.fetch %u into %l[%m : !pk.block<M by 8>] ready %s : !pk.private<[M], f32>, !pk.signal<[1]>, !pk.tile<8xf32> -> !pk.tile<8xf32>
}

// -----

// A place in another dimension.
// CHECK: invalid `pk.fetch`: a block of dimension N cannot index dimension M
pk.kernel @k(%a: !pk.pgl<[M], f32, shard 0> {pk.name = "a"}, %l: !pk.private<[M], f32> {pk.name = "l", pk.scratch}, %s: !pk.signal<[1]> {pk.name = "s"}) {
  %i = arith.constant 0 : index
  %m = pk.block[%i] sharded : !pk.block<M by 8>
  %t = pk.load %a[%m : !pk.block<M by 8>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<8xf32>
  %n = pk.block[%i] : !pk.block<N by 8>
  %f = pk.fetch %t into %l[%n : !pk.block<N by 8>] ready %s : !pk.private<[M], f32>, !pk.signal<[1]>, !pk.tile<8xf32> -> !pk.tile<8xf32>
}

// -----

// A tile of another type.
// CHECK: invalid `pk.fetch`: a fetch does not change the type of its tile
pk.kernel @k(%a: !pk.pgl<[M], f32, shard 0> {pk.name = "a"}, %l: !pk.private<[M], f32> {pk.name = "l", pk.scratch}, %s: !pk.signal<[1]> {pk.name = "s"}) {
  %i = arith.constant 0 : index
  %m = pk.block[%i] sharded : !pk.block<M by 8>
  %t = pk.load %a[%m : !pk.block<M by 8>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<8xf32>
  %f = pk.fetch %t into %l[%m : !pk.block<M by 8>] ready %s : !pk.private<[M], f32>, !pk.signal<[1]>, !pk.tile<8xf32> -> !pk.tile<8xf16>
}

// -----

// A buffer that is not an argument of the kernel.
// CHECK: invalid `pk.fetch`: a receive buffer and its counters are arguments of the kernel
%l, %s, %m, %t = "t.v"() : () -> (!pk.private<[M], f32>, !pk.signal<[1]>, !pk.block<M by 8>, !pk.tile<8xf32>)
%f = pk.fetch %t into %l[%m : !pk.block<M by 8>] ready %s : !pk.private<[M], f32>, !pk.signal<[1]>, !pk.tile<8xf32> -> !pk.tile<8xf32>

// -----

// Copies that are multiplied.
// CHECK: invalid `pk.reduce`: copies are combined by "max" or "min", not by "product"
%a, %b = "t.v"() : () -> (!pk.pgl<[M], f32, symmetric>, !pk.block<M by 8>)
%r = pk.reduce by "product" %a[%b : !pk.block<M by 8>] : !pk.pgl<[M], f32, symmetric> -> !pk.tile<8xf32>
