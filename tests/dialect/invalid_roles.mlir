// Channels that do not verify.
// RUN: pkc-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect | filecheck %s

// A channel without stages.
// CHECK: invalid `pk.channel`: a channel has at least one stage, not 0
pk.kernel @k() {
  %0 = pk.channel "X" stages 0 : !pk.channel<!pk.tile<8xf32>>
}

// -----

// A channel of one role.
// CHECK: invalid `pk.channel`: 'pk.channel' expects parent op 'pk.kernel'
pk.kernel @k() {
  pk.role loader {
    %0 = pk.channel "X" stages 1 : !pk.channel<!pk.tile<8xf32>>
  }
}

// -----

// A stage that holds nothing.
// CHECK: a stage holds at least one tile
"t.v"() : () -> !pk.channel<>

// -----

// A stage that holds no tile.
// CHECK: a stage holds tiles
"t.v"() : () -> !pk.channel<!pk.tile<8xf32>, f32>

// -----

// Stages of something else.
// CHECK: invalid `pk.acquire`
%r = pk.rank
"pk.acquire"(%r) : (index) -> ()

// -----

// A tile less.
// CHECK: invalid `pk.commit`: the tiles are not those of a stage of the channel
pk.kernel @k() {
  %0 = pk.channel "X" stages 2 : !pk.channel<!pk.tile<8xf32>, !pk.tile<8xf32>>
  pk.role loader {
    %x = pk.full 1.0 : f32 : !pk.tile<8xf32>
    "pk.commit"(%x, %0) : (!pk.tile<8xf32>, !pk.channel<!pk.tile<8xf32>, !pk.tile<8xf32>>) -> ()
  }
}

// -----

// A tile of another type.
// CHECK: invalid `pk.consume`: the results are not the tiles of a stage of the channel
pk.kernel @k() {
  %0 = pk.channel "X" stages 2 : !pk.channel<!pk.tile<8xf32>>
  pk.role consumer {
    %x = "pk.consume"(%0) : (!pk.channel<!pk.tile<8xf32>>) -> !pk.tile<8xi32>
  }
}

// -----

// Something else is released.
// CHECK: invalid `pk.release`
%r = pk.rank
"pk.release"(%r) : (index) -> ()

// -----

// A launch has a whole number.
// CHECK: invalid `pk.epoch`
%e = "pk.epoch"() : () -> f32

// -----

// A counter of two dimensions, one index.
// CHECK: invalid `pk.raise`: expected 2 indices, one for each dimension, got 1
pk.kernel @k(%ready: !pk.signal<[M by 128, 4]> {pk.name = "ready"}) {
  %r = pk.rank
  pk.raise %ready at %r[%r] to %r : !pk.signal<[M by 128, 4]>
}

// -----

// A fence orders one of the known things.
// CHECK: invalid `pk.fence`
"pk.fence"() : () -> ()

// -----

// Stores are drained this far or that.
// CHECK: invalid `pk.drain`
"pk.drain"() : () -> ()

// -----

// A drain of loads leaves none in flight; `left` is for stores, and positive.
// CHECK: invalid `pk.drain`: `left` is at least one store in flight; a drain of loads leaves none
pk.drain loads left 1

// -----

// CHECK: invalid `pk.drain`: `left` is at least one store in flight; a drain of loads leaves none
pk.drain full left 0

// -----

// The release of all stages is deferred: the producer would wait for ever.
// CHECK: invalid `pk.release`: of 2 stages 1 to 1 can be kept, not 2
pk.kernel @k() {
  %0 = pk.channel "X" stages 2 : !pk.channel<!pk.tile<8xf32>>
  pk.role storer {
    pk.release %0 deferred 2 : !pk.channel<!pk.tile<8xf32>>
  }
}

// -----

// Something else is kept.
// CHECK: invalid `pk.release_deferred`
%r = arith.constant 0 : index
"pk.release_deferred"(%r) : (index) -> ()

// -----

// Nothing is sent.
// CHECK: invalid `pk.send_deferred`: `batch` is positive and `left` is not negative
pk.send_deferred left 3 batch 0

// -----

// A copy engine on SMs.
// CHECK: invalid `pk.role`: a copy engine runs on no SM and has no warps
pk.kernel @k() {
  pk.role copy_engine sms 4 {
    %r = pk.rank
  }
}

// -----

// A role in front of the first warp.
// CHECK: invalid `pk.role`: the first warp of a CTA is 0, not -1
pk.kernel @k() {
  pk.role storer warps 1 attributes {group = "compute", first_warp = -1 : i64} {
    %r = pk.rank
  }
}
