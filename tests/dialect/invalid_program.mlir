// Frame operations that do not verify.
// RUN: pkc-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect | filecheck %s

// The function type and the block disagree.
// CHECK: invalid `pk.kernel`: the types of the arguments are not those of the function type
"pk.kernel"() <{sym_name = "k", function_type = (f32) -> (), arg_attrs = [{pk.name = "x"}]}> ({
^bb0(%x: i32):
}) : () -> ()

// -----

// One argument, no dictionary.
// CHECK: invalid `pk.kernel`: expected 1 dictionaries of argument attributes, got 0
"pk.kernel"() <{sym_name = "k", function_type = (f32) -> (), arg_attrs = []}> ({
^bb0(%x: f32):
}) : () -> ()

// -----

// An argument without a name.
// CHECK: invalid `pk.kernel`: every argument has its name in the source: {pk.name = "A"}
pk.kernel @k(%x: f32) {
}

// -----

// Two arguments of one name.
// CHECK: invalid `pk.kernel`: two arguments have the same name
pk.kernel @k(%x: f32 {pk.name = "x"}, %y: f32 {pk.name = "x"}) {
}

// -----

// A tile is not an argument.
// CHECK: invalid `pk.kernel`: !pk.tile<8xf32> is not a type of kernel arguments: expected an array, signal, f32 or i32
pk.kernel @k(%x: !pk.tile<8xf32> {pk.name = "x"}) {
}

// -----

// No counts.
// CHECK: invalid `pk.tasks`: expected at least one count
pk.tasks () in () {
  %r = pk.rank
}

// -----

// Two counts, one index.
// CHECK: invalid `pk.tasks`: expected 2 arguments of type index, one for each count
%n = "t.v"() : () -> index
"pk.tasks"(%n, %n) ({
^bb0(%i: index):
}) : (index, index) -> ()

// -----

// Bands of tasks with one index.
// CHECK: invalid `pk.tasks`: a raster of 8 rows needs two task indices, got 1
%n = arith.constant 3 : index
pk.tasks (%i) in (%n) attributes {raster = 8} {
}

// -----

// A role outside a kernel.
// CHECK: invalid `pk.role`: a role stands directly in a `pk.kernel`
pk.role loader {
^bb0:
}

// -----

// A role that gets nothing.
// CHECK: invalid `pk.role`: sms must be positive, got 0
pk.kernel @k() {
  pk.role loader sms 0 {
  ^bb0:
  }
}

// -----

// A shard and bounds.
// CHECK: invalid `pk.block_count`: a rank's shard and explicit bounds exclude each other
%r = pk.rank
%n = pk.block_count <M by 64> of %r to %r

// -----

// The place of a block in a list of another dimension.
// CHECK: invalid `pk.block_index`: !pk.block<M by 64> is not a block of dimension N
%i = pk.rank
%m = pk.block[%i] : !pk.block<M by 64>
%n = pk.block_index %m in <N by 64> : !pk.block<M by 64>

// -----

// Outside of a dimension without a start.
// CHECK: invalid `pk.block`: a list without a start begins with its dimension
%r = pk.rank
%b = pk.block[%r] to %r outside : !pk.block<M by 64>

// -----

// A sharded dimension with bounds.
// CHECK: invalid `pk.block`: a sharded dimension takes no explicit bounds
%r = pk.rank
%b = pk.block[%r] from %r sharded : !pk.block<M by 64>

// -----

// A rank is an index.
// CHECK: invalid `pk.rank`
%r = "pk.rank"() : () -> f32

// -----

// So is the part of a cluster.
// CHECK: invalid `pk.part`
%r = "pk.part"() : () -> f32

// -----

// So is a dimension.
// CHECK: invalid `pk.dim`
%r = "pk.dim"() <{dim = "M"}> : () -> i32

// -----

// A step is an index.
// CHECK: invalid `pk.ring_peer`
%a = "t.v"() : () -> f32
%r = "pk.ring_peer"(%a) : (f32) -> index

// -----

// Blocks are whole, numbers are not.
// CHECK: invalid `pk.is_whole`
%a = pk.rank
%r = "pk.is_whole"(%a) : (index) -> i1

// -----

// What is visited is a number of iterations.
// CHECK: invalid `pk.visited`
%a = pk.rank
%b = pk.block[%a] : !pk.block<8 by 8>
%r = "pk.visited"(%a, %b) : (index, !pk.block<8 by 8>) -> index

// -----

// So is the first one.
// CHECK: invalid `pk.first_visited`
%a = pk.rank
%b = pk.block[%a] : !pk.block<8 by 8>
%r = "pk.first_visited"(%a, %b) : (index, !pk.block<8 by 8>) -> index

// -----

// A position is a block's.
// CHECK: invalid `pk.block_position`
%a = pk.rank
%r = "pk.block_position"(%a) : (index) -> index

// -----

// In zigzag order too.
// CHECK: invalid `pk.zigzag_position`
%a = pk.rank
%r = "pk.zigzag_position"(%a) : (index) -> index

// -----

// A limit is a number.
// CHECK: invalid `pk.zigzag_count`
%a, %b = "t.v"() : () -> (index, f32)
%r = "pk.zigzag_count"(%b, %a) <{block = !pk.block<K by 64>}> : (f32, index) -> index

// -----

// A limit is a number.
// CHECK: invalid `pk.sharded_count`
%a = "t.v"() : () -> f32
%r = "pk.sharded_count"(%a) <{block = !pk.block<K by 64>}> : (f32) -> index

// -----

// A gap is in a block.
// CHECK: invalid `pk.zigzag_gap`
%a = pk.rank
%r = "pk.zigzag_gap"(%a) : (index) -> index

// -----

// So is the number of CTAs.
// CHECK: invalid `pk.ctas`
%n = "pk.ctas"() <{role = #pk<role_name loader>}> : () -> i32

// -----

// Only integers are rotated.
// CHECK: invalid `pk.rotate`
%a = pk.rank
%t = pk.full 0.0 : f32 : !pk.tile<f32>
%r = "pk.rotate"(%t, %a, %a) : (!pk.tile<f32>, index, index) -> index

// -----

// The shard to begin with is an index.
// CHECK: invalid `pk.interleave`
%a = pk.rank
%t = pk.full 0.0 : f32 : !pk.tile<f32>
%r = "pk.interleave"(%a, %t) <{block = !pk.block<M by 8>}> : (index, !pk.tile<f32>) -> index

// -----

// Only blocks are numbered.
// CHECK: invalid `pk.block_number`
%a = pk.rank
%r = "pk.block_number"(%a) : (index) -> index

// -----

// Only blocks have an owner.
// CHECK: invalid `pk.owner`
%a = pk.rank
%r = "pk.owner"(%a) : (index) -> index

// -----

// Use before definition in one block.
// CHECK: operand 1 of `pk.ring_peer` is not defined where it is used
%p = pk.ring_peer %q
%q = pk.rank

// -----

// A value of an inner region used outside.
// CHECK: values used but not defined: [%q]
%n = pk.rank
"pk.tasks"(%n) ({
^bb0(%i: index):
  %q = "pk.rank"() : () -> index
}) : (index) -> ()
%p = pk.ring_peer %q

// -----

// A loop without its terminator.
// CHECK: invalid `scf.for`: a block is empty and lacks its terminator
%n = pk.rank
"scf.for"(%n, %n, %n) ({
^bb0(%i: index):
}) : (index, index, index) -> ()

// -----

// A sharded constant.
// CHECK: a constant dimension cannot be sharded
"t.v"() : () -> !pk.pgl<[64], f32, shard 0>

// -----

// A replicated layout with a sharded dimension.
// CHECK: a sharded layout, and no other, names the dimension it splits
"t.v"() : () -> !pk.pgl<[M], f32, replicate 0>

// -----

// A replicated layout in an order of shards.
// CHECK: zigzag is an order of shards
"t.v"() : () -> !pk.pgl<[M], f32, replicate zigzag>

// -----

// Sharded along a dimension it lacks.
// CHECK: shard 1 of an array with 1 dimensions
"t.v"() : () -> !pk.pgl<[M], f32, shard 1>

// -----

// No dimension.
// CHECK: an array has at least one dimension
"t.v"() : () -> !pk.private<[], f32>

// -----

// An element type of tiles only.
// CHECK: i1 is not an element type of arrays
"t.v"() : () -> !pk.private<[M], i1>

// -----

// A dimension of nothing.
// CHECK: constant dimensions must be positive
"t.v"() : () -> !pk.private<[0], f32>

// -----

// A signal without counters.
// CHECK: a signal array has at least one dimension
"t.v"() : () -> !pk.signal<[]>

// -----

// An empty tile.
// CHECK: tile extents must be positive, got [8, 0]
"t.v"() : () -> !pk.tile<8x0xf32>

// -----

// A tile of doubles.
// CHECK: f64 is not an element type of tiles
"t.v"() : () -> !pk.tile<8xf64>

// -----

// A block of nothing.
// CHECK: the size of a block must be positive, got 0
"t.v"() : () -> !pk.block<M by 0>

// -----

// A counter for each block of nothing.
// CHECK: the size of a block must be positive, got 0
"t.v"() : () -> !pk.signal<[M by 0, 4]>
