// pkc: opt -p pk-check-roles
pk.kernel @k(%X: !pk.private<[M, N], f32> {pk.name = "X"}) attributes {derived} {
  %rank = pk.rank
  %rows = pk.block_count <M by 16>
  %columns = pk.block_count <N by 16>
  pk.role loader {
    pk.tasks (%i, %j) in (%rows, %columns) attributes {per_cta} {
      %0 = pk.rotate %i by %rank of %columns
      %m = pk.block[%0] : !pk.block<M by 16>
      %n = pk.block[%j] : !pk.block<N by 16>
      %x = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by 16>] : !pk.private<[M, N], f32> -> !pk.tile<16x16xf32>
    }
  }
}
