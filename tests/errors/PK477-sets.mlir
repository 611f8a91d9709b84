// pkc: opt -p pk-check-roles
pk.kernel @k(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {target = "sm_90a", derived, queue = 8 : i64} {
  %n = pk.block_count <M by 16>
  pk.role storer {
    pk.tasks (%i) in (%n) attributes {per_cta} { }
    pk.tasks (%i) in (%n) attributes {per_cta} { }
  }
}
