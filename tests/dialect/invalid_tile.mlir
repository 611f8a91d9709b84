// Operations on tiles that do not verify.
// RUN: pkc-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect | filecheck %s

// A constant of another type.
// CHECK: invalid `pk.full`: a constant of type f32 in a tile of type !pk.tile<8xi32>
%a = pk.full 0.0 : f32 : !pk.tile<8xi32>

// -----

// An index becomes i32.
// CHECK: invalid `pk.splat`: cannot splat index to !pk.tile<8xf32>: index and i32 give i32, f32 and i1 themselves
%a = pk.rank
%b = pk.splat %a : index -> !pk.tile<8xf32>

// -----

// Positions are i32, as many as the block has.
// CHECK: invalid `pk.positions`: expected result !pk.tile<8xi32>, got !pk.tile<4xi32>
%a = "t.v"() : () -> (!pk.block<M by 8>)
%r = pk.positions %a : !pk.block<M by 8> -> !pk.tile<4xi32>

// -----

// In zigzag order they have two ends and a gap.
// CHECK: invalid `pk.positions`: the first and last position and the elements before the gap are three numbers
%a, %b = "t.v"() : () -> (!pk.block<M by 8>, index)
%r = pk.positions %a zigzag %b, %b : !pk.block<M by 8> -> !pk.tile<8xi32>

// -----

// Another element type.
// CHECK: invalid `pk.broadcast`: a broadcast keeps the element type: !pk.tile<8xf32> to !pk.tile<8x4xi32>
%a = "t.v"() : () -> (!pk.tile<8xf32>)
%r = pk.broadcast %a axes [0] : !pk.tile<8xf32> -> !pk.tile<8x4xi32>

// -----

// One axis twice.
// CHECK: invalid `pk.broadcast`: expected 2 distinct axes, one for each axis of !pk.tile<8x8xf32>
%a = "t.v"() : () -> (!pk.tile<8x8xf32>)
%r = pk.broadcast %a axes [0, 0] : !pk.tile<8x8xf32> -> !pk.tile<8x8xf32>

// -----

// The extents differ.
// CHECK: invalid `pk.broadcast`: an axis of 8 cannot become axis 1 of !pk.tile<8x4xf32>
%a = "t.v"() : () -> (!pk.tile<8xf32>)
%r = pk.broadcast %a axes [1] : !pk.tile<8xf32> -> !pk.tile<8x4xf32>

// -----

// No two axes.
// CHECK: invalid `pk.transpose`: cannot transpose !pk.tile<8xf32> to !pk.tile<8xf32>
%a = "t.v"() : () -> (!pk.tile<8xf32>)
%r = pk.transpose %a : !pk.tile<8xf32> -> !pk.tile<8xf32>

// -----

// CHECK: invalid `pk.fold`: cannot fold the rows of !pk.tile<8xf32> to !pk.tile<3xf32>
%a = pk.full 0.0 : f32 : !pk.tile<8xf32>
%r = pk.fold "pk.row_sum" %a : !pk.tile<8xf32> -> !pk.tile<3xf32>

// -----

// CHECK: invalid `pk.fold`: pk.exp is no reduction of rows
%a = pk.full 0.0 : f32 : !pk.tile<8xf32>
%r = pk.fold "pk.exp" %a : !pk.tile<8xf32> -> !pk.tile<4xf32>

// -----

// CHECK: invalid `pk.repeat`: cannot repeat the rows of !pk.tile<3xf32> to !pk.tile<8xf32>
%a = pk.full 0.0 : f32 : !pk.tile<3xf32>
%r = pk.repeat %a : !pk.tile<3xf32> -> !pk.tile<8xf32>

// -----

// CHECK: invalid `pk.enlarge`: cannot enlarge !pk.tile<3xf32> to !pk.tile<8xf32>
%a = pk.full 0.0 : f32 : !pk.tile<3xf32>
%r = pk.enlarge %a : !pk.tile<3xf32> -> !pk.tile<8xf32>

// -----

// CHECK: invalid `pk.window`: the window ends behind the 8 elements of an axis of !pk.tile<8xf32>
%a = pk.full 0.0 : f32 : !pk.tile<8xf32>
%r = pk.window %a at [2] step [2] : !pk.tile<8xf32> -> !pk.tile<4xf32>

// -----

// CHECK: invalid `pk.window`: the window ends behind the 4 elements of an axis of !pk.tile<4x8xf32>
%a = pk.full 0.0 : f32 : !pk.tile<4x8xf32>
%r = pk.window %a at [4, 0] step [0, 1] : !pk.tile<4x8xf32> -> !pk.tile<8xf32>

// -----

// CHECK: invalid `pk.window`: a window of !pk.tile<8xf32> with axes [0] is no !pk.tile<2x2xf32>
%a = pk.full 0.0 : f32 : !pk.tile<8xf32>
%r = pk.window %a at [2] : !pk.tile<8xf32> -> !pk.tile<2x2xf32>

// -----

// CHECK: invalid `pk.window`: expected an offset and a step for each axis of !pk.tile<8xf32>
%a = pk.full 0.0 : f32 : !pk.tile<8xf32>
%r = pk.window %a at [2, 0] : !pk.tile<8xf32> -> !pk.tile<2xf32>

// -----

// CHECK: invalid `pk.window`: offsets and steps are not negative
%a = pk.full 0.0 : f32 : !pk.tile<8xf32>
%r = pk.window %a at [-1] : !pk.tile<8xf32> -> !pk.tile<2xf32>

// -----

// CHECK: invalid `pk.pick`: there is no element 2 of 2
%a = pk.full 0.0 : f32 : !pk.tile<8xf32>
%r = pk.pick %a at 2 of 2 : !pk.tile<8xf32> -> !pk.tile<4xf32>

// -----

// CHECK: invalid `pk.pick`: every 3 elements of !pk.tile<8xf32> are no !pk.tile<2xf32>
%a = pk.full 0.0 : f32 : !pk.tile<8xf32>
%r = pk.pick %a at 0 of 3 : !pk.tile<8xf32> -> !pk.tile<2xf32>

// -----

// CHECK: invalid `pk.zip`: expected tiles of one type, with at least one axis
%a = pk.full 0.0 : f32 : !pk.tile<8xf32>
%b = pk.full 0.0 : f32 : !pk.tile<4xf32>
%r = pk.zip %a, %b : !pk.tile<8xf32>, !pk.tile<4xf32> -> !pk.tile<16xf32>

// -----

// CHECK: invalid `pk.zip`: 2 tiles of !pk.tile<8xf32> in turn are no !pk.tile<8xf32>
%a = pk.full 0.0 : f32 : !pk.tile<8xf32>
%r = pk.zip %a, %a : !pk.tile<8xf32>, !pk.tile<8xf32> -> !pk.tile<8xf32>

// -----

// CHECK: invalid `pk.cum_sum`: cannot add up the rows of !pk.tile<f32> to !pk.tile<f32>
%a = pk.full 0.0 : f32 : !pk.tile<f32>
%r = pk.cum_sum %a : !pk.tile<f32>

// -----

// Another shape.
// CHECK: invalid `pk.cast`: a cast keeps the shape: !pk.tile<8xf32> to !pk.tile<4xbf16>
%a = "t.v"() : () -> (!pk.tile<8xf32>)
%r = pk.cast %a : !pk.tile<8xf32> -> !pk.tile<4xbf16>

// -----

// To a boolean.
// CHECK: invalid `pk.cast`: expected elements of type bf16 or f16 or f32 or f8E4M3FN or f8E5M2 or i32 or i8, got !pk.tile<8xi1>; `pk.cast` converts
%a = "t.v"() : () -> (!pk.tile<8xf32>)
%r = pk.cast %a : !pk.tile<8xf32> -> !pk.tile<8xi1>

// -----

// Another type.
// CHECK: invalid `pk.clip`: a clip keeps the type: expected !pk.tile<8xf32>, got !pk.tile<8xi32>
%a, %b = "t.v"() : () -> (!pk.tile<8xf32>, !pk.block<M by 8>)
%r = pk.clip %a axis 0 to %b fill 0.0 : f32 : !pk.tile<8xf32>, !pk.block<M by 8> -> !pk.tile<8xi32>

// -----

// A fill of another type.
// CHECK: invalid `pk.clip`: expected a fill of type f32, got i32
%a, %b = "t.v"() : () -> (!pk.tile<8xf32>, !pk.block<M by 8>)
%r = pk.clip %a axis 0 to %b fill 0 : i32 : !pk.tile<8xf32>, !pk.block<M by 8> -> !pk.tile<8xf32>

// -----

// An axis that is not the block's.
// CHECK: invalid `pk.clip`: axis 0 of !pk.tile<8xf32> is not along !pk.block<M by 4>
%a, %b = "t.v"() : () -> (!pk.tile<8xf32>, !pk.block<M by 4>)
%r = pk.clip %a axis 0 to %b fill 0.0 : f32 : !pk.tile<8xf32>, !pk.block<M by 4> -> !pk.tile<8xf32>

// -----

// An axis before the first.
// CHECK: invalid `pk.clip`: axis -1 of !pk.tile<8xf32> is not along !pk.block<M by 8>
%a, %b = "t.v"() : () -> (!pk.tile<8xf32>, !pk.block<M by 8>)
%r = pk.clip %a axis -1 to %b fill 0.0 : f32 : !pk.tile<8xf32>, !pk.block<M by 8> -> !pk.tile<8xf32>

// -----

// Two shapes.
// CHECK: attribute !pk.tile<8xf32> expected from variable 'T', but got !pk.tile<4xf32>
%a, %b = "t.v"() : () -> (!pk.tile<8xf32>, !pk.tile<4xf32>)
%r = "pk.add"(%a, %b) : (!pk.tile<8xf32>, !pk.tile<4xf32>) -> !pk.tile<8xf32>

// -----

// Narrow floats are widened first.
// CHECK: invalid `pk.compare`: expected elements of type f32 or i1 or i32, got !pk.tile<8xbf16>; `pk.cast` converts
%a = "t.v"() : () -> (!pk.tile<8xbf16>)
%r = pk.compare lt, %a, %a : !pk.tile<8xbf16> -> !pk.tile<8xi1>

// -----

// A comparison gives i1.
// CHECK: invalid `pk.compare`: cannot compare !pk.tile<8xf32> to give !pk.tile<8xf32>
%a = "t.v"() : () -> (!pk.tile<8xf32>)
%r = pk.compare lt, %a, %a : !pk.tile<8xf32> -> !pk.tile<8xf32>

// -----

// A condition of another shape.
// CHECK: invalid `pk.select`: expected a condition of i1 in the shape of !pk.tile<8xf32>
%a, %b = "t.v"() : () -> (!pk.tile<4xi1>, !pk.tile<8xf32>)
%r = pk.select %a, %b, %b : !pk.tile<4xi1>, !pk.tile<8xf32>

// -----

// A scalar has no rows.
// CHECK: invalid `pk.row_max`: cannot reduce the rows of !pk.tile<f32> to !pk.tile<f32>
%a = "t.v"() : () -> (!pk.tile<f32>)
%r = pk.row_max %a : !pk.tile<f32> -> !pk.tile<f32>

// -----

// The inner axes differ.
// CHECK: invalid `pk.mma`: cannot multiply !pk.tile<8x16xbf16> and !pk.tile<8x16xbf16>: expected axes (m, k) and (k, n)
%a, %b, %c = "t.v"() : () -> (!pk.tile<8x16xbf16>, !pk.tile<8x16xbf16>, !pk.tile<8x16xf32>)
%r = pk.mma %a, %b, %c : !pk.tile<8x16xbf16>, !pk.tile<8x16xbf16> -> !pk.tile<8x16xf32>

// -----

// Not of i32.
// CHECK: invalid `pk.mma`: expected elements of type bf16 or f16 or f32 or f8E4M3FN or f8E5M2, got !pk.tile<8x8xi32>; `pk.cast` converts
%a, %b, %c = "t.v"() : () -> (!pk.tile<8x8xi32>, !pk.tile<8x8xi32>, !pk.tile<8x8xf32>)
%r = pk.mma %a, %b, %c : !pk.tile<8x8xi32>, !pk.tile<8x8xi32> -> !pk.tile<8x8xf32>

// -----

// Mixed types.
// CHECK: invalid `pk.mma`: cannot multiply bf16 and f16: only 8-bit floats may be mixed
%a, %b, %c = "t.v"() : () -> (!pk.tile<8x8xbf16>, !pk.tile<8x8xf16>, !pk.tile<8x8xf32>)
%r = pk.mma %a, %b, %c : !pk.tile<8x8xbf16>, !pk.tile<8x8xf16> -> !pk.tile<8x8xf32>

// -----

// A narrow accumulator.
// CHECK: invalid `pk.mma`: expected an accumulator of type !pk.tile<8x8xf32>, got !pk.tile<8x8xbf16>
%a, %b, %c = "t.v"() : () -> (!pk.tile<8x8xbf16>, !pk.tile<8x8xbf16>, !pk.tile<8x8xbf16>)
%r = pk.mma %a, %b, %c : !pk.tile<8x8xbf16>, !pk.tile<8x8xbf16> -> !pk.tile<8x8xbf16>

// -----

// Used without a wait.
// CHECK: invalid `pk.mma_issue`: the result of an issued MMA is awaited once, by `pk.mma_wait` in the same block
%a, %b, %c = "t.v"() : () -> (!pk.tile<8x8xbf16>, !pk.tile<8x8xbf16>, !pk.tile<8x8xf32>)
%r = pk.mma_issue %a, %b, %c : !pk.tile<8x8xbf16>, !pk.tile<8x8xbf16> -> !pk.tile<8x8xf32>
%s = pk.add %r, %r : !pk.tile<8x8xf32>

// -----

// Awaited twice.
// CHECK: invalid `pk.mma_issue`: the result of an issued MMA is awaited once, by `pk.mma_wait` in the same block
%a, %b, %c = "t.v"() : () -> (!pk.tile<8x8xbf16>, !pk.tile<8x8xbf16>, !pk.tile<8x8xf32>)
%r = pk.mma_issue %a, %b, %c : !pk.tile<8x8xbf16>, !pk.tile<8x8xbf16> -> !pk.tile<8x8xf32>
%s = pk.mma_wait %r left 0 : !pk.tile<8x8xf32>
%t = pk.mma_wait %r left 0 : !pk.tile<8x8xf32>

// -----

// A wait for something else.
// CHECK: invalid `pk.mma_wait`: expected the result of `pk.mma_issue`
%c = "t.v"() : () -> !pk.tile<8x8xf32>
%s = pk.mma_wait %c left 0 : !pk.tile<8x8xf32>

// -----

// A block is no value that could be printed.
// CHECK: invalid `pk.print`: cannot print !pk.block<M by 8>
%m = "t.v"() : () -> !pk.block<M by 8>
pk.print "m" %m axes [] to : : !pk.block<M by 8>

// -----

// A block without its axis.
// CHECK: invalid `pk.print`: expected a distinct axis of !pk.tile<8xf32> for each block
%t, %m = "t.v"() : () -> (!pk.tile<8xf32>, !pk.block<M by 8>)
pk.print "t" %t axes [1] to %m : !pk.block<M by 8> : !pk.tile<8xf32>

// -----

// An axis that another block goes through.
// CHECK: invalid `pk.print`: the blocks are not those of the axes of !pk.tile<8xf32>
%t, %m = "t.v"() : () -> (!pk.tile<8xf32>, !pk.block<M by 4>)
pk.print "t" %t axes [0] to %m : !pk.block<M by 4> : !pk.tile<8xf32>
