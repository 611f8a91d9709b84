// pkc: opt -p pk-check-roles
pk.kernel @k(%Y: !pk.private<[M], f32> {pk.name = "Y"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) {
  %n = pk.block_count <M by 16>
  %zero = pk.rank
  pk.role storer {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.send_deferred left 3 batch 4
      pk.signal %ready at %zero[%number] by %zero {deferred} : !pk.signal<[M by 16]>
    }
  }
}
