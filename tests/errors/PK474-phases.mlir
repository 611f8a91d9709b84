// pkc: opt -p pk-check-roles
// A phase may have no tasks in a CTA: it does not release what another one kept.
pk.kernel @k(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) {
  %c = pk.channel "X" stages 2 : !pk.channel<!pk.tile<16xf32>>
  %n = pk.block_count <M by 16>
  pk.role loader {
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 0} {
      %m = pk.block[%i] : !pk.block<M by 16>
      pk.acquire %c : !pk.channel<!pk.tile<16xf32>>
      %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      pk.commit %c, %x : !pk.channel<!pk.tile<16xf32>>, !pk.tile<16xf32>
    }
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 1} {
      %m = pk.block[%i] : !pk.block<M by 16>
      pk.acquire %c : !pk.channel<!pk.tile<16xf32>>
      %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      pk.commit %c, %x : !pk.channel<!pk.tile<16xf32>>, !pk.tile<16xf32>
    }
  }
  pk.role storer {
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 0} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %x = pk.consume %c : !pk.channel<!pk.tile<16xf32>> -> !pk.tile<16xf32>
      pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
      pk.release %c deferred 1 : !pk.channel<!pk.tile<16xf32>>
    }
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 1} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %x = pk.consume %c : !pk.channel<!pk.tile<16xf32>> -> !pk.tile<16xf32>
      pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
      pk.release %c deferred 1 : !pk.channel<!pk.tile<16xf32>>
      pk.release_deferred %c : !pk.channel<!pk.tile<16xf32>>
    }
  }
}
