// pkc: opt -p pk-check-roles
pk.kernel @k(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {comm_sms = 0 : i64} {
  pk.role loader warps 2 attributes {group = "compute", first_warp = 4 : i64, registers = 40 : i64} {
    %r = pk.rank
  }
  pk.role storer warps 1 attributes {group = "compute", first_warp = 5 : i64, registers = 40 : i64} {
    %r = pk.rank
  }
}
