// pkc: opt
pk.kernel @copy(%A: !pk.private<[M], f32> {pk.name = "A"}, %B: !pk.private<[M], f32> {pk.name = "B"}) {
  %rows = pk.block_count <M by 8>
  pk.tasks (%i) in (%rows) {
    %t = pk.load %A[%m : !pk.block<M by 8>] : !pk.private<[M], f32> -> !pk.tile<8xf32>
    %m = pk.block[%i] : !pk.block<M by 8>
    pk.store %t, %B[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
  }
}
