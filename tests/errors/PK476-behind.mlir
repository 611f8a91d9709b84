// pkc: opt -p pk-check-roles
pk.kernel @k(%X: !pk.private<[M], f32> {pk.name = "X"}) {
  pk.role communicator warps 4 attributes {group = "compute", first_warp = 30 : i64} {
    %r = pk.rank
  }
}
