// pkc: opt -p pk-check-roles
pk.kernel @k(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.pgl<[M], f32, replicate> {pk.name = "Y"}) {
  %r = pk.rank
  pk.role copy_engine {
    %n = pk.block_count <M by 16> of %r
    pk.tasks (%i) in (%n) {
      %m = pk.block[%i] of %r : !pk.block<M by 16>
      %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, replicate>
    }
  }
}
