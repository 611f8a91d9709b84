// pkc: opt -p pk-check-roles
pk.kernel @k(%X: !pk.private<[M], f32> {pk.name = "X"}, %s: !pk.signal<[1]> {pk.name = "s"}) attributes {target = "sm_90a", derived, queue = 8 : i64} {
  %n = pk.block_count <M by 16>
  pk.role storer {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %x = pk.full 1.000000e+00 : f32 : !pk.tile<16xf32>
      pk.store %x, %X[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
    }
  }
}
