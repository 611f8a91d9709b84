// pkc: opt
pk.kernel @copy(%A: !pk.private<[M], f32> {pk.name = "A"}, %B: !pk.private<[M], f32> {pk.name = "B"}) {
  %rows = pk.block_count <M by 8>
  pk.tasks (%i) in (%rows) {
    %m = pk.block[%i] : !pk.block<M by 8>
    %t = pk.load %A[%m : !pk.block<M by 8>] : !pk.private<[M], f32> -> !pk.tile<4xf32>
    pk.store %t, %B[%m : !pk.block<M by 8>] : !pk.tile<4xf32>, !pk.private<[M], f32>
  }
}
